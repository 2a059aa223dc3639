"""What a capability is worth: a policy on a scenario, and on the same worlds with the capability taken away."""

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
