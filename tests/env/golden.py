"""`python -m tests.env.golden` writes golden.json: what one fixed play of each id shows. Do so when an id changes on purpose.

The hash of the dynamics is the benchmark's (tests/bench/golden.json); here stand rewards, masks and the observation itself, as sums with
a tolerance, because the last digits differ between processors.
"""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import hetenv  # noqa: F401  registers the ids
from hetenv.errors import TraceError

PATH = Path(__file__).parent / "golden.json"
N_STEPS = 300

Golden = dict[str, float]


def ids() -> list[str]:
    """All registered ids of hetenv."""
    return sorted(name for name in gym.registry if name.startswith("hetenv/"))


def found(name: str) -> Golden:
    """Seed 0, N_STEPS decisions, each the k-th legal row with k from a fixed sequence."""
    env: Any = gym.make(name)
    observation, info = env.reset(seed=0)
    sums = dict.fromkeys(observation, 0.0)
    total, n_steps, elapsed_s = 0.0, 0, 0.0
    for choice in np.random.default_rng(0).random(N_STEPS):
        for part, table in observation.items():
            sums[part] += float(np.abs(table, dtype=np.float64).mean())
        legal = np.flatnonzero(info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(int(legal[int(choice * legal.size)]))
        total, n_steps, elapsed_s = total + reward, n_steps + 1, elapsed_s + info["elapsed_s"]
        if terminated or truncated:
            break
    return {"steps": n_steps, "elapsed_s": elapsed_s, "return": total, **{f"{part}_sum": value for part, value in sums.items()}}


if __name__ == "__main__":
    known = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    for each in ids():
        try:
            known[each] = found(each)
        except TraceError as error:
            print(f"{each} left as it is: {error}")
    kept = {name: known[name] for name in ids() if name in known}
    PATH.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
