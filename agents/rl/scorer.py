"""The actor of `network` in numpy: trained schedulers play without torch, and faster than with it on single decisions."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetenv.env.observation import N_ROW

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Scorer:
    """Weights of an actor by the names that torch gives them."""

    weights: Mapping[str, Floats]

    def scores(self, obs: Mapping[str, Floats], legal: NDArray[np.bool_]) -> Floats:
        """scores: [B, A] of candidate rows, -inf where not legal. Each decision needs a legal row.

        Args:
            obs: observation tables [B, ...]; `rule_rank` [B, A] may be missing.
        """
        owner = legal.nonzero()[0]
        counts = np.bincount(owner, minlength=legal.shape[0])
        rank = obs["rule_rank"][legal] if "rule_rank" in obs else np.zeros(owner.size, np.float32)
        encode = self.weights["encode.weight"]
        rows = obs["candidates"][legal] @ encode[:, :N_ROW].T
        rows += rank[:, None] * encode[:, N_ROW] + self.weights["encode.bias"]
        np.maximum(rows, 0.0, out=rows)
        starts = np.concatenate([[0], counts.cumsum()[:-1]])
        mean = np.add.reduceat(rows, starts, axis=0) / counts[:, None].astype(np.float32)
        context = np.concatenate([mean, self._surroundings(obs)], axis=1) @ self.weights["from_context.weight"].T
        hidden = np.maximum(self._linear("from_row", rows) + context[owner], 0.0)
        found = np.full(legal.shape, -np.inf, np.float32)
        found[legal] = self._linear("score", hidden)[:, 0] + self.weights["rule_bonus"] * rank
        return found

    def _surroundings(self, obs: Mapping[str, Floats]) -> Floats:
        parts = [obs["cluster"], obs["backlog"]]
        for name in ("pools", "sites"):
            rows = np.maximum(self._linear(f"surroundings.{name}.encode", obs[name]), 0.0)
            parts += [rows.mean(1), rows.max(1)]
        return np.maximum(self._linear("surroundings.mix", np.concatenate(parts, axis=1)), 0.0)

    def _linear(self, name: str, x: Floats) -> Floats:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
