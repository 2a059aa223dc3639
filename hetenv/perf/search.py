"""Complete search over plans of one kind of device, and the few configurations per GPU count that a simulator
tabulates.

Space: tp, pp, dp, cp, ep divisors; micro-batch and virtual stages powers of two (any dividing micro-batch that is the
whole share too); ZeRO 0-3; three recompute modes; sequence parallel with every tp > 1.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from hetenv.jit import kernel
from hetenv.perf.estimate import Estimate, estimate_of
from hetenv.perf.rows import ESTIMATE_ROW, PLAN_ROW, REASON_TEXT, LinkLevel, Reason, Schedule
from hetenv.perf.step import estimate_rows
from hetenv.perf.training import Devices, Training, setting_row

MAX_TP = 64
MAX_CP = 64
MAX_MICRO_BATCH = 64
MAX_CONFIGURATIONS = 4
MAX_SLOWDOWN = 4.0
"""A configuration slower than this many times the fastest is never worth tabulating."""


@dataclass(frozen=True)
class SearchResult:
    """best: legal plans, fastest first. illegal: number of plans of the space per reason. n_plans: size of the
    space."""

    best: tuple[Estimate, ...]
    illegal: dict[str, int]
    n_plans: int


@kernel
def _write_knobs(setting, dp: int, tp: int, pp: int, cp: int, ep: int, plans, n: int) -> int:  # type: ignore[no-untyped-def]
    """Append all knobs of one set of degrees to `plans` from row `n`; returns the next row. Past the end it only
    counts."""
    virtual = 1
    while virtual == 1 or (pp > 1 and pp * virtual <= setting["layers"] and virtual <= 16):
        micro = 1
        while micro <= MAX_MICRO_BATCH and dp * micro <= setting["global_batch"]:
            for recompute in range(1 if setting["is_convolution"] > 0 else 3):
                for zero in range(4 if dp * cp > 1 else 1):
                    if n < len(plans):
                        plan = plans[n]
                        plan["dp"], plan["tp"], plan["pp"], plan["cp"], plan["ep"] = dp, tp, pp, cp, ep
                        plan["micro_batch"], plan["virtual_stages"], plan["zero"] = micro, virtual, zero
                        plan["recompute"] = recompute
                        plan["seq_parallel"] = 1 if tp > 1 else 0
                        plan["schedule"] = Schedule.INTERLEAVED.value if virtual > 1 else Schedule.ONE_F_ONE_B.value
                    n += 1
            micro *= 2
        virtual *= 2
    return n


@kernel
def write_plans(setting, plans) -> int:  # type: ignore[no-untyped-def]
    """Fill `plans` with the space of one SETTING_ROW; returns its size, which may exceed len(plans)."""
    n_gpus = int(setting["n_gpus"])
    n = 0
    for tp in range(1, min(n_gpus, MAX_TP) + 1):
        if n_gpus % tp != 0 or (tp > 1 and (setting["is_convolution"] > 0 or int(setting["heads"]) % tp != 0)):
            continue
        for cp in range(1, min(n_gpus // tp, MAX_CP) + 1):
            if (n_gpus // tp) % cp != 0 or (
                cp > 1 and (setting["is_convolution"] > 0 or int(setting["seq_len"]) % (2 * cp) != 0)
            ):
                continue
            rest = n_gpus // tp // cp
            for pp in range(1, rest + 1):
                if rest % pp != 0 or (pp > 1 and (setting["is_convolution"] > 0 or pp > setting["layers"])):
                    continue
                dp = rest // pp
                if dp > setting["global_batch"]:
                    continue
                n = _write_knobs(setting, dp, tp, pp, cp, 1, plans, n)
                if setting["n_experts"] > 0:
                    for ep in range(2, int(setting["n_experts"]) + 1):
                        if int(setting["n_experts"]) % ep == 0 and (dp * cp * tp) % ep == 0:
                            n = _write_knobs(setting, dp, tp, pp, cp, ep, plans, n)
    return n


def plan_space(training: Training, devices: Devices) -> NDArray[np.void]:
    """[N] PLAN_ROW: every plan of the stated space."""
    setting = setting_row(training, devices)[0]
    plans = np.zeros(16384, PLAN_ROW)
    n = write_plans(setting, plans)
    if n > len(plans):
        plans = np.zeros(n, PLAN_ROW)
        write_plans(setting, plans)
    return plans[:n]


def _evaluate(training: Training, devices: Devices) -> tuple[NDArray[np.void], NDArray[np.void]]:
    plans = plan_space(training, devices)
    rows = np.zeros(len(plans), ESTIMATE_ROW)
    estimate_rows(setting_row(training, devices)[0], plans, rows)
    return plans, rows


def search(training: Training, devices: Devices, top: int = 5) -> SearchResult:
    """The `top` fastest legal plans, and how many plans fail for which reason."""
    plans, rows = _evaluate(training, devices)
    reasons = rows["reason"]
    counts = np.bincount(reasons, minlength=len(Reason))
    legal = np.flatnonzero(reasons == Reason.OK)
    times = rows["iter_s"][legal]
    if len(legal) > top:
        legal = legal[np.sort(np.argpartition(times, top)[: top + 1])]
    order = legal[np.lexsort((rows["memory_bytes"][legal], rows["iter_s"][legal]))][:top]
    best = tuple(estimate_of(training, devices, plans[i], rows[i]) for i in order)
    illegal = {REASON_TEXT[Reason(code)]: int(n) for code, n in enumerate(counts) if code and n}
    return SearchResult(best, illegal, len(plans))


def _step_s(rows: NDArray[np.void], bandwidth_factor: float) -> NDArray[np.float64]:
    """[N] seconds of a step with all links between nodes and sites at `bandwidth_factor`."""
    total = rows["compute_s"].copy()
    for level in LinkLevel:
        factor = 1.0 if level == LinkLevel.INTRA else bandwidth_factor
        total += np.maximum(0.0, rows["comm_s"][:, level] / factor - rows["hideable_s"][:, level])
    return np.asarray(total)


def configurations(training: Training, devices: Devices) -> list[Estimate]:
    """At most four legal plans: the fastest, the least-energy, the smallest-memory one, the fastest under half
    bandwidth."""
    plans, rows = _evaluate(training, devices)
    keep = rows["reason"] == Reason.OK
    plans, rows = plans[keep], rows[keep]
    near = rows["iter_s"] <= MAX_SLOWDOWN * rows["iter_s"].min(initial=inf)
    plans, rows = plans[near], rows[near]
    if not len(rows):
        return []
    exposed = rows["iter_s"] - rows["compute_s"]
    energy = rows["power_compute_w"] * rows["compute_s"] + rows["power_comm_w"] * exposed
    slow_links = _step_s(rows, 0.5)
    orders = (
        (rows["iter_s"], rows["memory_bytes"]),
        (energy, rows["iter_s"]),
        (rows["memory_bytes"], rows["iter_s"]),
        (slow_links, rows["iter_s"]),
    )
    chosen: list[int] = []
    for key, tie in orders:
        best = np.flatnonzero(key <= key.min() * (1.0 + 1e-12))
        pick = int(best[np.argmin(tie[best])])
        if all(not _same(rows[pick], rows[other]) for other in chosen):
            chosen.append(pick)
    return [estimate_of(training, devices, plans[i], rows[i]) for i in chosen[:MAX_CONFIGURATIONS]]


def _same(a: np.void, b: np.void) -> bool:
    """Whether two estimates are equal in all that a scheduler sees."""
    return all(
        np.array_equal(a[name], b[name]) for name in ("iter_s", "compute_s", "comm_s", "hideable_s", "memory_bytes")
    )


def fastest(training: Training, devices: Devices) -> Estimate | None:
    """The fastest legal plan, None where none fits."""
    found = search(training, devices, top=1).best
    return found[0] if found and found[0].iter_s < inf else None
