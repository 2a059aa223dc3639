"""Going on smaller: a job that lost a data-parallel replica with a node takes the fastest smaller configuration at once."""

from hetenv.jit import kernel
from hetenv.objective import Account
from hetenv.sim.placement import fits, list_node
from hetenv.sim.running import count, occupy
from hetenv.sim.tables import NONE, Facts, State
from hetenv.workload.requests import Elasticity


@kernel
def shrink(state: State, facts: Facts, b: int, run: int, lost_node: int) -> bool:
    """Place the job of a vacated slot without the lost node; False, and nothing done, where no smaller configuration fits."""
    job = state.jobs[b, state.runs[b, run]["order"]]
    request = facts.requests[state.clock[b]["world"], state.runs[b, run]["order"]]
    if request["elasticity"] == Elasticity.RIGID:
        return False
    node = state.nodes[b, lost_node]
    list_node(state, b, lost_node, False)
    free = node["free"]
    node["free"], node["is_up"] = 0, 0
    found = _fastest_smaller(state, facts, b, job["config"], request["min_gpus"], run)
    if found != NONE:
        occupy(state, facts, b, run, found, facts.classes[facts.configs[found]["job_class"]]["degrade_s"])
        count(state, b, Account.N_DEGRADED, 1.0)
    node["free"], node["is_up"] = free, 1
    list_node(state, b, lost_node, True)
    return found != NONE


@kernel
def _fastest_smaller(state: State, facts: Facts, b: int, config_id: int, min_gpus: int, run: int) -> int:
    """The fastest configuration that fits on fewer GPUs of the first pool of a configuration, or NONE."""
    config = facts.configs[config_id]
    request = facts.requests[state.clock[b]["world"], state.runs[b, run]["order"]]
    group = config["pool_a"]
    for place in range(facts.first_fastest[config["job_class"], group], facts.first_fastest[config["job_class"], group + 1]):
        candidate = facts.fastest[place]
        size = facts.sizes[candidate]
        if size["pool_b"] < 0 and min_gpus <= size["n_gpus"] < config["n_gpus"] and fits(state, b, request, size, NONE):
            return candidate
    return NONE
