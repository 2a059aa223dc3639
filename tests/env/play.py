"""Playing environments in tests: random legal actions, digests of all that came back.

`python -m tests.env.play SCENARIO SEED STEPS` prints the digest of one play: other processes can be compared with this one.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetenv.env.single import HetEnv

Pick = Callable[[NDArray[np.int8]], int]
Returned = tuple[Any, float, bool, bool, dict[str, Any]]


def wait(mask: NDArray[np.int8]) -> int:
    return 0


def first_legal(mask: NDArray[np.int8]) -> int:
    """The first row besides `wait`."""
    return 1 + int(mask[1:].argmax()) if mask[1:].any() else 0


def at_random(seed: int = 0) -> Pick:
    rng = np.random.default_rng(seed)
    return lambda mask: int(rng.choice(np.flatnonzero(mask)))


def play(env: Any, pick: Pick, n: int = 10**9) -> Iterator[tuple[int, Returned]]:
    """Up to n steps of the present episode: actions with what they returned."""
    mask = env.action_masks()
    for _ in range(n):
        action = pick(mask)
        returned = env.step(action)
        yield action, returned
        if returned[2] or returned[3]:
            return
        mask = returned[4]["action_mask"]


def digest(value: Any) -> str:
    """Hash of nested dicts, sequences, arrays and numbers, exact to the bit and to the type."""
    found = hashlib.sha256()
    _feed(found, value)
    return found.hexdigest()[:16]


def _feed(found: Any, value: Any) -> None:
    found.update(type(value).__name__.encode())
    if isinstance(value, dict):
        for key in sorted(value):
            found.update(key.encode())
            _feed(found, value[key])
    elif isinstance(value, list | tuple):
        for item in value:
            _feed(found, item)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        _feed(found, value.tolist())
    elif isinstance(value, np.ndarray):
        found.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
    else:
        found.update(repr(value).encode())


def episode_digest(env: Any, seed: int | None, n: int = 200, pick_seed: int = 0) -> str:
    """Digest of a reset and n random legal steps."""
    return digest([env.reset(seed=seed), list(play(env, at_random(pick_seed), n))])


def copied(value: Any) -> Any:
    """A deep copy of nested dicts, tuples and arrays."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(copied(item) for item in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def is_plain(value: Any) -> bool:
    """Whether a value is numbers, strings, numeric arrays, and dicts and lists of these."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return isinstance(value, bool | int | float | str)


if __name__ == "__main__":
    name, seed, n = sys.argv[1:]
    print(episode_digest(HetEnv(name), int(seed), int(n)))
