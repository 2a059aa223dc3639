"""Where GPUs are taken: feasibility, placement and release inside a pool (rules: docs/design.md, Placement).

`free_counts[k]` says how many nodes have at least k free GPUs, `free_bits[k]` which have exactly k: a gang without CPU or
memory demands is checked in O(its nodes) and placed without a scan. Demands on accounted CPUs or memory scan the pool.
"""

from hetenv.jit import kernel
from hetenv.sim.bitset import following, insert, remove, summary_words
from hetenv.sim.nodes import reschedule_node, rouse, settle_busy
from hetenv.sim.tables import NONE, Facts, Rows, State


@kernel
def fits(state: State, b: int, request: Rows, size: Rows, run: int) -> bool:
    """Whether a request's configuration can be placed now; the GPUs of its own running slot `run` (or NONE) count as free."""
    spreads = size["any_nodes"] == 1
    if not _fits_pool(state, b, request, size["pool_a"], size["full_a"], size["rest_a"], spreads, run):
        return False
    if size["pool_b"] < 0:
        return True
    return _fits_pool(state, b, request, size["pool_b"], size["full_b"], size["rest_b"], spreads, run)


@kernel
def fits_uncharged(state: State, b: int, size: Rows, run: int) -> bool:
    """`fits` for a request without accounted demands for CPUs or memory; necessary for every other."""
    spreads = size["any_nodes"] == 1
    if not _fits_counted(state, b, size["pool_a"], size["full_a"], size["rest_a"], spreads, run):
        return False
    return size["pool_b"] < 0 or _fits_counted(state, b, size["pool_b"], size["full_b"], size["rest_b"], spreads, run)


@kernel
def place(state: State, facts: Facts, b: int, request: Rows, size: Rows, run: int) -> None:
    """Take the GPUs of a configuration that `fits`; writes the slot's allocations and whether it is spread."""
    row = state.runs[b, run]
    row["is_spread"], row["pools"], row["wake_s"] = 0, 1 << size["pool_a"], 0.0
    _place_part(state, facts, b, request, size["pool_a"], size["full_a"], size["rest_a"], run)
    if size["pool_b"] >= 0:
        row["pools"] |= 1 << size["pool_b"]
        _place_part(state, facts, b, request, size["pool_b"], size["full_b"], size["rest_b"], run)


@kernel
def needs_scan(pool: Rows, request: Rows) -> bool:
    """Whether the request's CPU or memory demand is accounted in this pool."""
    return (pool["cpus_per_node"] > 0 and request["cpus_per_gpu"] > 0) or (
        pool["mbytes_per_node"] > 0 and request["host_mbytes_per_gpu"] > 0
    )


@kernel
def _fits_pool(
    state: State, b: int, request: Rows, p: int, full: int, rest: int, spreads: bool, run: int
) -> bool:
    """Whether `full` whole nodes and `rest` GPUs on one more are free in a pool (or as many anywhere, if it spreads)."""
    if needs_scan(state.pools[b, p], request):
        return _fits_scanned(state, b, request, p, full, rest, spreads, run)
    return _fits_counted(state, b, p, full, rest, spreads, run)


@kernel
def _fits_counted(state: State, b: int, p: int, full: int, rest: int, spreads: bool, run: int) -> bool:
    pool, counts = state.pools[b, p], state.free_counts[b]
    per_node, first = pool["gpus_per_node"], pool["first_count"]
    n_full, n_rest, free = counts[first + per_node], counts[first + rest], pool["free_gpus"]
    wanted = full * per_node + rest
    if (n_full >= full and (rest == 0 or n_rest > full)) or (spreads and free >= wanted):
        return True
    if run == NONE or (state.runs[b, run]["pools"] >> p) & 1 == 0:
        return False
    alloc = state.runs[b, run]["alloc"]
    while alloc != NONE:
        row = state.allocs[b, alloc]
        node = state.nodes[b, row["node"]]
        if node["pool"] == p:
            free += row["gpus"]
            if node["free"] < per_node <= node["free"] + row["gpus"]:
                n_full += 1
            if node["free"] < rest <= node["free"] + row["gpus"]:
                n_rest += 1
        alloc = row["next_of_run"]
    return (n_full >= full and (rest == 0 or n_rest > full)) or (spreads and free >= wanted)


@kernel
def _usable(state: State, b: int, request: Rows, p: int, node_index: int, run: int) -> int:
    """Free GPUs of a node for a request with CPU or memory demands; the slot's own share counts as free."""
    pool, node = state.pools[b, p], state.nodes[b, node_index]
    if node["is_up"] == 0:
        return 0
    own = 0
    if run != NONE:
        alloc = state.runs[b, run]["alloc"]
        while alloc != NONE:
            if state.allocs[b, alloc]["node"] == node_index:
                own = state.allocs[b, alloc]["gpus"]
            alloc = state.allocs[b, alloc]["next_of_run"]
    gpus = node["free"] + own
    if pool["cpus_per_node"] > 0 and request["cpus_per_gpu"] > 0:
        gpus = min(gpus, node["free_cpus"] // request["cpus_per_gpu"] + own)
    if pool["mbytes_per_node"] > 0 and request["host_mbytes_per_gpu"] > 0:
        gpus = min(gpus, node["free_mbytes"] // request["host_mbytes_per_gpu"] + own)
    return gpus


@kernel
def _fits_scanned(
    state: State, b: int, request: Rows, p: int, full: int, rest: int, spreads: bool, run: int
) -> bool:
    pool = state.pools[b, p]
    per_node = pool["gpus_per_node"]
    n_full, n_rest, total = 0, 0, 0
    for index in range(pool["first_node"], pool["first_node"] + pool["n_nodes"]):
        usable = _usable(state, b, request, p, index, run)
        total += usable
        if usable >= per_node:
            n_full += 1
        if usable >= rest:
            n_rest += 1
    return (n_full >= full and (rest == 0 or n_rest > full)) or (spreads and total >= full * per_node + rest)


@kernel
def _place_part(state: State, facts: Facts, b: int, request: Rows, p: int, full: int, rest: int, run: int) -> None:
    pool = state.pools[b, p]
    per_node = pool["gpus_per_node"]
    scan = needs_scan(pool, request)
    packs = _fits_pool(state, b, request, p, full, rest, False, NONE)
    if not packs:
        state.runs[b, run]["is_spread"] = 1
    left = full * per_node + rest
    while left > 0:
        if packs:
            taken = min(left, per_node)
            node_index = _pick(state, b, request, p, taken, per_node, scan)
        else:
            node_index, usable = _emptiest(state, b, request, p, per_node, scan)
            taken = min(usable, left)
        _take(state, facts, b, request, node_index, taken, run)
        left -= taken


@kernel
def _pick(state: State, b: int, request: Rows, p: int, least: int, most: int, scan: bool) -> int:
    """The node with the fewest free GPUs in least..most; ties by lowest index."""
    pool = state.pools[b, p]
    if not scan:
        for k in range(least, most + 1):
            node_index = _lowest(state, b, p, k)
            if node_index != NONE:
                return node_index
        return NONE
    best, best_usable = NONE, most + 1
    for index in range(pool["first_node"], pool["first_node"] + pool["n_nodes"]):
        usable = _usable(state, b, request, p, index, NONE)
        if least <= usable < best_usable:
            best, best_usable = index, usable
    return best


@kernel
def _emptiest(state: State, b: int, request: Rows, p: int, most: int, scan: bool) -> tuple[int, int]:
    """The node with most free GPUs (ties by lowest index), and how many."""
    pool = state.pools[b, p]
    if not scan:
        for k in range(most, 0, -1):
            node_index = _lowest(state, b, p, k)
            if node_index != NONE:
                return node_index, k
        return NONE, 0
    best, best_usable = NONE, 0
    for index in range(pool["first_node"], pool["first_node"] + pool["n_nodes"]):
        usable = _usable(state, b, request, p, index, NONE)
        if usable > best_usable:
            best, best_usable = index, usable
    return best, best_usable


@kernel
def _lowest(state: State, b: int, p: int, k: int) -> int:
    """Lowest node of a pool with exactly k free GPUs, or NONE."""
    pool = state.pools[b, p]
    member = following(
        state.free_bits[b], pool["first_word"] + k * pool["words"], summary_words(pool["n_nodes"]), 0
    )
    return NONE if member < 0 else pool["first_node"] + member


@kernel
def list_node(state: State, b: int, node_index: int, is_in: bool) -> None:
    """Enter an up node into its pool's free tables, or take it out; callers change `free` in between."""
    node = state.nodes[b, node_index]
    pool = state.pools[b, node["pool"]]
    free = node["free"]
    first = pool["first_word"] + free * pool["words"]
    summary = summary_words(pool["n_nodes"])
    member = node_index - pool["first_node"]
    step = 1 if is_in else -1
    if is_in:
        insert(state.free_bits[b], first, summary, member)
    else:
        remove(state.free_bits[b], first, summary, member)
    for k in range(free + 1):
        state.free_counts[b, pool["first_count"] + k] += step
    state.pools[b, node["pool"]]["free_gpus"] += step * free


@kernel
def _take(state: State, facts: Facts, b: int, request: Rows, node_index: int, gpus: int, run: int) -> None:
    clock, node = state.clock[b], state.nodes[b, node_index]
    settle_busy(state, b, node_index)
    if node["is_asleep"] == 1:
        rouse(state, b, node_index)
        state.runs[b, run]["wake_s"] = max(state.runs[b, run]["wake_s"], state.pools[b, node["pool"]]["wake_s"])
    list_node(state, b, node_index, False)
    node["free"] -= gpus
    node["free_cpus"] -= gpus * request["cpus_per_gpu"]
    node["free_mbytes"] -= gpus * request["host_mbytes_per_gpu"]
    list_node(state, b, node_index, True)
    alloc = clock["free_alloc"]
    row = state.allocs[b, alloc]
    clock["free_alloc"] = row["next_of_run"]
    row["run"], row["node"], row["gpus"] = run, node_index, gpus
    row["next_of_run"] = state.runs[b, run]["alloc"]
    row["next_of_node"] = node["alloc"]
    state.runs[b, run]["alloc"] = alloc
    node["alloc"] = alloc
    clock["held_gpus"] += gpus
    state.pools[b, node["pool"]]["held_gpus"] += gpus
    reschedule_node(state, facts, b, node_index)


@kernel
def give_back(state: State, facts: Facts, b: int, request: Rows, run: int) -> None:
    """Free all GPUs of a slot."""
    clock = state.clock[b]
    alloc = state.runs[b, run]["alloc"]
    while alloc != NONE:
        row = state.allocs[b, alloc]
        node = state.nodes[b, row["node"]]
        gpus = row["gpus"]
        settle_busy(state, b, row["node"])
        list_node(state, b, row["node"], False)
        node["free"] += gpus
        node["free_cpus"] += gpus * request["cpus_per_gpu"]
        node["free_mbytes"] += gpus * request["host_mbytes_per_gpu"]
        list_node(state, b, row["node"], True)
        _unlink_from_node(state, b, row["node"], alloc)
        if node["alloc"] == NONE:
            node["idle_since"] = clock["now"]
        reschedule_node(state, facts, b, row["node"])
        clock["held_gpus"] -= gpus
        state.pools[b, node["pool"]]["held_gpus"] -= gpus
        following_alloc = row["next_of_run"]
        row["run"] = NONE
        row["next_of_run"] = clock["free_alloc"]
        clock["free_alloc"] = alloc
        alloc = following_alloc
    state.runs[b, run]["alloc"] = NONE


@kernel
def _unlink_from_node(state: State, b: int, node_index: int, alloc: int) -> None:
    node = state.nodes[b, node_index]
    if node["alloc"] == alloc:
        node["alloc"] = state.allocs[b, alloc]["next_of_node"]
        return
    before = node["alloc"]
    while state.allocs[b, before]["next_of_node"] != alloc:
        before = state.allocs[b, before]["next_of_node"]
    state.allocs[b, before]["next_of_node"] = state.allocs[b, alloc]["next_of_node"]
