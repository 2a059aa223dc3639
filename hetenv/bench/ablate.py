"""What a capability is worth: a policy on a scenario, and on the same worlds with the capability taken away."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from hetenv.bench.bench import bench
from hetenv.bench.compare import ComparisonRow, compare
from hetenv.bench.compiled import compiled_scenario
from hetenv.bench.run import Result
from hetenv.errors import ScenarioError, unknown
from hetenv.scenario import Capability, Scenario
from hetenv.workload import AnalyticClass

CAPABILITIES: Final = (*get_args(Capability), "mixed")
"""All that can be taken away: commands (`Scenario.without`), and configurations over two pools."""


def without(scenario: Scenario, capability: str) -> Scenario:
    """The scenario with a capability taken away; its name says so.

    Raises:
        ScenarioError: an unknown capability.
    """
    if capability not in CAPABILITIES:
        raise ScenarioError(unknown("capability", capability, CAPABILITIES))
    changes: dict[str, Any] = {"name": f"{scenario.name}_no_{capability}"}
    if capability == "mixed":
        changes["classes"] = {
            name: job_class.model_copy(update={"pool_pairs": ()}) if isinstance(job_class, AnalyticClass) else job_class
            for name, job_class in scenario.classes.items()
        }
    else:
        changes["without"] = (*scenario.without, capability)
    return scenario.model_copy(update=changes)


def ablate(
    source: str | Path | Scenario,
    policy: str,
    seeds: Iterable[int],
    capabilities: Sequence[str] = CAPABILITIES,
    processes: int | None = None,
    on_episode: Callable[[Result, int, int], None] | None = None,
) -> list[ComparisonRow]:
    """Run a policy with everything and without each capability in turn, on common worlds.

    Returns:
        Rows of `compare`: policy `NAME` the whole scenario, the baseline; `NAME no CAPABILITY` each ablation.
    """
    whole = compiled_scenario(source).scenario
    variants = [whole, *(without(whole, capability) for capability in capabilities)]
    found = bench(variants, [policy], tuple(seeds), processes=processes, on_episode=on_episode)
    golden = found.episodes[0]["golden"]
    for episode in found.episodes:
        taken = str(episode["scenario"]).removeprefix(whole.name)
        episode["policy"] = f"{episode['policy']}{taken.replace('_', ' ')}"
        episode["scenario"], episode["golden"] = whole.name, golden
    return compare(found.episodes, str(found.episodes[0]["policy"]))


def losses(rows: Sequence[ComparisonRow], metric: str) -> list[list[str | float | int | None]]:
    """policy, mean, loss and its corrected interval as shares of the whole's mean, verdict, worlds: of the whole and each ablation."""
    own = [row for row in rows if row.metric == metric]
    scale = abs(own[0].mean or 0.0)
    found: list[list[str | float | int | None]] = []
    for row in own:
        parts = [None if part is None or not scale else f"{part / scale:+.1%}" for part in (row.diff, row.diff_lo, row.diff_hi)]
        found.append([row.policy, row.mean, *parts, row.verdict, row.n])
    return found


def rewrite(page: Path, scenario: Scenario, command: str, rows: Sequence[ComparisonRow]) -> None:
    """Put a scenario's table into its section of a page, or a new section at the end."""
    lines = [f"## {scenario.name}", f"`{command}`", ""]
    lines += [f"| policy | {scenario.primary_metric} | loss | from | to | | worlds |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for policy, mean, *rest in losses(rows, scenario.primary_metric):
        cells = [str(policy), f"{mean:.5g}", *("" if cell is None else str(cell) for cell in rest)]
        lines.append("| " + " | ".join(cells) + " |")
    section = "\n".join(lines) + "\n"
    head, *sections = re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    kept = [text for text in sections if not text.startswith(f"## {scenario.name}\n")]
    page.write_text(head + "\n".join(text.strip() + "\n" for text in sorted([*kept, section])), encoding="utf-8")
