"""The commands. Each imports what it needs when it runs, so that `hetenv --help` is quick, and leaves tables to `show`."""

import json
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hetenv.cli import accuracy, presets
from hetenv.cli.backtest import backtest
from hetenv.cli.reference import reference
from hetenv.cli.trace_fit import trace_fit
from hetenv.errors import ScenarioError

app = typer.Typer(
    name="hetenv",
    help="Scheduling jobs, with their parallelism, on heterogeneous GPU clusters.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
trace_app = typer.Typer(help="Traces in their original formats.", no_args_is_help=True)
app.add_typer(trace_app, name="trace")

DEFAULT_BASELINE: Final = "first_fit"
Json = Annotated[bool, typer.Option("--json", help="print one JSON value and nothing else on stdout")]
ScenarioName = Annotated[str, typer.Argument(help="a name from `hetenv scenarios`, or a YAML file", metavar="SCENARIO")]


class Split(StrEnum):
    """Disjoint seeds of a scenario."""

    TEST = "test"
    VALIDATION = "validation"
    TRAIN = "train"


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, allow_nan=False))


def _without_infinities(value: Any) -> Any:
    """The same without entries that JSON has no number for (a default of infinity: no limit)."""
    if isinstance(value, dict):
        return {key: _without_infinities(entry) for key, entry in value.items() if entry not in (inf, -inf)}
    return [_without_infinities(entry) for entry in value] if isinstance(value, list) else value


@app.command()
def scenarios(as_json: Json = False) -> None:
    """List the shipped scenarios.

    Example: hetenv scenarios
    """
    from hetenv import cluster, scenario
    from hetenv.cli import show

    rows = []
    for name in scenario.names():
        found = scenario.load(name)
        built = cluster.build(found.cluster)
        rows.append(
            {
                "scenario": name,
                "version": found.version,
                "summary": found.summary,
                "n_gpus": built.n_gpus,
                "n_pools": len(built.pool_names),
                "n_sites": len(built.site_names),
                "horizon_s": found.horizon_s,
                "primary_metric": found.primary_metric,
            }
        )
    _print_json(rows) if as_json else show.scenarios(rows)


@app.command()
def run(
    scenario: ScenarioName,
    policy: Annotated[str, typer.Option("--policy", "-p", help="a heuristic, a planner or rl:FOLDER")] = "fifo",
    seed: Annotated[int, typer.Option("--seed", "-s", help="the world; the same for every policy", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Run one episode and print its metrics.

    Example: hetenv run smoke --policy easy_backfill --seed 0 --json
    """
    from hetenv.bench.run import run as run_episode
    from hetenv.cli import show

    result = run_episode(scenario, policy, seed)
    _print_json(result) if as_json else show.result(result)


@app.command()
def bench(
    scenarios: Annotated[list[str], typer.Argument(help="names or YAML files", metavar="SCENARIO...")],
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="repeat it; default: every registered one")
    ] = None,
    seeds: Annotated[int, typer.Option(help="how many worlds, the first of the split", min=1)] = 20,
    split: Annotated[Split, typer.Option(help="whose seeds")] = Split.TEST,
    baseline: Annotated[
        str | None, typer.Option(help="the policy to compare with; default: first_fit, else the first")
    ] = None,
    processes: Annotated[int | None, typer.Option(help="worker processes; default: one per core", min=1)] = None,
    out: Annotated[
        Path | None, typer.Option(help="folder for episodes.csv, comparison.csv, table.md; run again to go on")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare policies on common worlds: means, paired differences to a baseline, corrected 95 % intervals.

    Example: hetenv bench smoke -p fifo -p easy_backfill -p srtf --seeds 20 --out runs/smoke
    """
    from dataclasses import asdict

    from hetenv.bench.bench import bench as run_bench
    from hetenv.cli import show
    from hetenv.policy import policy_names

    policies = policy or policy_names()
    if baseline is None and DEFAULT_BASELINE in policies:
        baseline = DEFAULT_BASELINE
    with show.progress(len(scenarios) * len(policies) * seeds) as on_episode:
        found = run_bench(
            scenarios,
            policies,
            lambda found: found.seeds.numbers(split.value, seeds),
            baseline=baseline,
            processes=processes,
            folder=out,
            on_episode=on_episode,
        )
    _print_json([asdict(row) for row in found.rows]) if as_json else print(found.table)


@app.command()
def ablate(
    scenario: ScenarioName,
    policy: Annotated[str, typer.Option("--policy", "-p", help="whose use of the capabilities is measured")] = "index",
    without: Annotated[list[str] | None, typer.Option(help="a capability; repeat it; default: every one")] = None,
    seeds: Annotated[int, typer.Option(help="how many worlds, the first of the split", min=2)] = 20,
    split: Annotated[Split, typer.Option(help="whose seeds")] = Split.TEST,
    page: Annotated[Path | None, typer.Option(help="rewrite the scenario's section of this page, e.g. docs/ablations.md")] = None,
    processes: Annotated[int | None, typer.Option(help="worker processes; default: one per core", min=1)] = None,
    as_json: Json = False,
) -> None:
    """Show what each capability (replan, resize, migrate, preempt, wait, degrade, mixed) is worth to a policy.

    Example: hetenv ablate mixed_gpus --policy index --without resize --without preempt --seeds 20
    """
    from dataclasses import asdict

    from hetenv import scenario as scenarios
    from hetenv.bench.ablate import CAPABILITIES, rewrite
    from hetenv.bench.ablate import ablate as run_ablation
    from hetenv.cli import show

    loaded = scenarios.load(scenario)
    capabilities = tuple(without or CAPABILITIES)
    with show.progress((1 + len(capabilities)) * seeds) as on_episode:
        rows = run_ablation(
            loaded, policy, loaded.seeds.numbers(split.value, seeds), capabilities, processes, on_episode
        )
    if page is not None:
        taken = "".join(f" --without {name}" for name in without or ())
        rewrite(page, loaded, f"hetenv ablate {scenario} --policy {policy}{taken} --seeds {seeds} --page {page}", rows)
    _print_json([asdict(row) for row in rows]) if as_json else show.ablation(rows, loaded.primary_metric)


@app.command()
def plan(
    name: Annotated[str | None, typer.Argument(help="a model of the catalog, e.g. llama3-8b", metavar="MODEL")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="the same as an option")] = None,
    on: Annotated[list[str] | None, typer.Option("--on", help="NAME:COUNT of the catalog; twice for two kinds")] = None,
    accelerator: Annotated[str | None, typer.Option("--accelerator", "-a", help="with --gpus: as --on NAME:COUNT")] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", "-g", min=1)] = None,
    batch: Annotated[int, typer.Option("--batch", "--global-batch", "-b", help="samples per step", min=1)] = 256,
    seq: Annotated[int, typer.Option("--seq", "--seq-len", help="tokens per sample; 0: the model's default", min=0)] = 0,
    precision: Annotated[str, typer.Option()] = "bf16",
    stack: Annotated[str, typer.Option(help="calibrated constants, a row of the catalog")] = "default",
    gpus_per_node: Annotated[int, typer.Option(min=1)] = 8,
    inter_link: Annotated[str, typer.Option(help="a node's links to the others")] = "IB-HDR-4x",
    top: Annotated[int, typer.Option(help="how many plans", min=1)] = 5,
    timeline: Annotated[Path | None, typer.Option(help="file for the best plan's step, Chrome trace format")] = None,
    as_json: Json = False,
) -> None:
    """Search the fastest parallel plans of a training job on one or two kinds of GPU.

    Example: hetenv plan --model llama3-70b --seq 8192 --batch 512 --on H100-SXM-80:64 --on A100-SXM-80:64
    """
    from hetenv.cli import show
    from hetenv.cli.plans import pools_of, searched
    from hetenv.perf import Training

    chosen = model or name
    if chosen is None or (model and name):
        raise ScenarioError("name one model, e.g. hetenv plan llama3-8b")
    if (accelerator is None) != (gpus is None):
        raise ScenarioError("--accelerator and --gpus go together; --on NAME:COUNT says both")
    wanted = [*(on or []), *([f"{accelerator}:{gpus}"] if accelerator else [])]
    pools = pools_of(wanted, gpus_per_node, inter_link)
    found = searched(Training(chosen, batch, seq, precision, stack), pools, top, timeline)
    _print_json(found) if as_json else show.plans(found)


app.command()(accuracy.validate)
app.command()(accuracy.calibrate)
app.command("fit-stacks")(accuracy.fit_stacks)
app.command()(presets.presets)
app.command()(reference)
app.command()(backtest)


@app.command()
def speed(
    steps: Annotated[int, typer.Option(help="timed decisions per measurement", min=1000)] = 20_000,
    as_json: Json = False,
) -> None:
    """Measure this machine: decisions and estimates per CPU second, import, first reset, cold compile.

    Example: hetenv speed --json
    """
    from hetenv.bench.speed import measure
    from hetenv.cli import show

    found = measure(steps)
    _print_json(found) if as_json else show.pairs("hetenv speed", found)


@app.command()
def schema() -> None:
    """Print the JSON schema of a scenario file.

    Example: hetenv schema > scenario.schema.json
    """
    from hetenv.scenario import Scenario

    _print_json(_without_infinities(Scenario.model_json_schema()))


@app.command()
def warmup() -> None:
    """Compile all kernels into the cache, so that the first episode starts at once.

    Example: hetenv warmup
    """
    from hetenv.bench.warmup import warm_up
    from hetenv.jit import cache_folder

    seconds = warm_up()
    print(f"kernels ready after {seconds:.1f} s; cache: {cache_folder() or 'in memory only, no folder is writable'}")


@app.command()
def tune(
    scenario: ScenarioName,
    trials: Annotated[int, typer.Option(help="parameter settings to try", min=1)] = 400,
    seed: Annotated[int, typer.Option(help="of the search", min=0)] = 0,
    minutes: Annotated[float | None, typer.Option(help="stop the search after this time", min=0.0)] = None,
    out: Annotated[Path | None, typer.Option(help="file for the result, JSON")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="have `index` use the result on this scenario from now on")] = False,
    as_json: Json = False,
) -> None:
    """Tune the `index` rule on a scenario's training worlds; the validation worlds choose among the best.

    Example: hetenv tune smoke --trials 200 --out index_smoke.json
    """
    from hetenv.cli import show
    from hetenv.policy import agents_package

    with show.tuning(trials) as progress:
        found = agents_package().tune(scenario, trials, seed, minutes, progress)
    if keep:
        agents_package().keep(found)
    if out is not None:
        out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if as_json:
        _print_json(found)
    else:
        show.pairs(f"index, tuned for {found['scenario']}", {**found, **found["parameters"]})


trace_app.command("fit")(trace_fit)


@trace_app.command("show")
def trace_show(
    paths: Annotated[list[Path], typer.Argument(help="trace files, or folders of them", metavar="PATH...")],
    format: Annotated[str, typer.Option("--format", "-f", help="e.g. philly_csv; an unknown one lists all")],
    scenario: Annotated[str | None, typer.Option(help="report the load against this scenario's cluster")] = None,
    zone: Annotated[
        str | None, typer.Option(help="of a signal file's naive stamps: UTC, Europe/Berlin, +10:00")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what a trace holds: the load report (what was repaired, dropped, rejected) and statistics.

    Example: hetenv trace show philly.csv --format philly_csv --json
    """
    from hetenv import cluster, traces
    from hetenv.cli import show
    from hetenv.scenario import load

    built = None if scenario is None else cluster.build(load(scenario).cluster)
    found = traces.show(paths, format, built, zone)
    _print_json(found) if as_json else show.tree("trace", found)
