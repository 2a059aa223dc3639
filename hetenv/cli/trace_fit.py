"""`hetenv trace fit`: a synthetic workload in a trace's place."""

import json
from pathlib import Path
from typing import Annotated

import typer


def trace_fit(
    path: Annotated[Path, typer.Argument(help="a trace file, or a folder of them", metavar="PATH")],
    format: Annotated[str, typer.Option("--format", "-f", help="e.g. philly_csv; an unknown one lists all")],
    out: Annotated[Path | None, typer.Option(help="file for the sections, YAML")] = None,
    seed: Annotated[int, typer.Option(help="of the draws that are compared with the trace", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON value and nothing else on stdout")] = False,
) -> None:
    """Fit a synthetic workload to a trace: sections `classes`, `workload` and `events` of a scenario, and how well they fit.

    Example: hetenv trace fit philly.csv --format philly_csv --out fitted.yaml
    """
    import yaml

    from hetenv.cli import show
    from hetenv.traces import trace_format
    from hetenv.workload.fit import fit

    found = fit(trace_format(format).load(path), seed)
    sections = yaml.safe_dump(found["scenario"], sort_keys=False)
    if out is not None:
        out.write_text(sections, encoding="utf-8")
    if as_json:
        print(json.dumps(found, indent=2, allow_nan=False))
        return
    if out is None:
        print(sections)
    show.pairs("distances of the fit from the trace", found["fit"])
