"""The candidate-scoring network: one shared scorer over candidate rows, whatever their number, and that of jobs, pools and sites.

Axes: B decisions, A candidate rows, N legal rows of all decisions together. Only legal rows are computed.
"""

from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hetenv.beliefs import N_BACKLOG_BINS
from hetenv.env.observation import N_CLUSTER, N_POOL, N_ROW, N_SITE

IS_LEGAL: Final = 0
"""Place of `is_legal` in a candidate row of the observation."""


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes and fixed scales of a network; everything that is not a trained weight."""

    row_size: int = 64
    global_size: int = 64
    score_size: int = 32
    rule_bonus: float = 0.0
    """Start of the trained weight h of `rule_rank` (1 at the rule's pick); 0: the network begins without a rule."""
    value_centre: float = 0.0
    """The critic's first answer everywhere, in scaled reward."""

    def asdict(self) -> dict[str, float]:
        """Plain data for a file."""
        return asdict(self)


class Rows(nn.Module):
    """Encodes table rows alike and pools them over the table by mean and maximum: [B, n, fields] -> [B, 2 x size]."""

    def __init__(self, n_fields: int, size: int) -> None:
        super().__init__()
        self.encode = nn.Linear(n_fields, size)

    def forward(self, table: Tensor) -> Tensor:
        rows = torch.relu(self.encode(table))
        return torch.cat([rows.mean(1), rows.amax(1)], -1)


class Surroundings(nn.Module):
    """Everything but the candidate rows, as one vector per decision: [B, size]."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.pools, self.sites = Rows(N_POOL, 16), Rows(N_SITE, 8)
        self.mix = nn.Linear(N_CLUSTER + N_BACKLOG_BINS + 2 * 16 + 2 * 8, size)

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        parts = [obs["cluster"], obs["backlog"], self.pools(obs["pools"]), self.sites(obs["sites"])]
        return torch.relu(self.mix(torch.cat(parts, -1)))


class Actor(nn.Module):
    """Scores of candidate rows: [B, A] logits, 0 at illegal rows (the mask takes them out)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.encode = nn.Linear(N_ROW + 1, config.row_size)
        self.surroundings = Surroundings(config.global_size)
        self.from_row = nn.Linear(config.row_size, config.score_size)
        self.from_context = nn.Linear(config.row_size + config.global_size, config.score_size, bias=False)
        self.score = nn.Linear(config.score_size, 1)
        self.rule_bonus = nn.Parameter(torch.tensor(float(config.rule_bonus)))

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        legal = obs["candidates"][..., IS_LEGAL] > 0.5
        owner = legal.nonzero()[:, 0]
        table = obs["candidates"][legal]
        rank = obs["rule_rank"][legal] if "rule_rank" in obs else table.new_zeros(table.shape[0])
        rows = torch.relu(self.encode(torch.cat([table, rank[:, None]], 1)))
        context = torch.cat([mean_by(rows, owner, legal), self.surroundings(obs)], -1)
        hidden = torch.relu(self.from_row(rows) + self.from_context(context)[owner])
        scores = self.score(hidden)[:, 0] + self.rule_bonus * rank
        return torch.zeros(legal.shape, dtype=scores.dtype).masked_scatter(legal, scores)


class Critic(nn.Module):
    """Value of a decision: [B, 1], in scaled reward."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.encode = nn.Linear(N_ROW, config.row_size)
        self.surroundings = Surroundings(config.global_size)
        self.mix = nn.Linear(config.row_size + config.global_size, config.global_size)
        self.value = nn.Linear(config.global_size, 1)
        self.centre = config.value_centre

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        legal = obs["candidates"][..., IS_LEGAL] > 0.5
        rows = torch.relu(self.encode(obs["candidates"][legal]))
        pooled = mean_by(rows, legal.nonzero()[:, 0], legal)
        hidden = torch.relu(self.mix(torch.cat([pooled, self.surroundings(obs)], -1)))
        return self.value(hidden) + self.centre


def mean_by(rows: Tensor, owner: Tensor, legal: Tensor) -> Tensor:
    """[B, size] mean of the legal rows [N, size] of each decision; 0 where there is none (a finished episode)."""
    total = torch.zeros(legal.shape[0], rows.shape[1], dtype=rows.dtype).index_add(0, owner, rows)
    return total / legal.sum(1, keepdim=True).clamp(min=1)


class CandidateNetwork(nn.Module):
    """Actor and critic, which share nothing. The last layers begin small: the first policy is the rule, the first value the centre."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.actor, self.critic = Actor(config), Critic(config)
        for last in (self.actor.score, self.critic.value):
            nn.init.orthogonal_(last.weight, 0.1)
            nn.init.zeros_(last.bias)

    def forward(self, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return self.actor(obs), self.critic(obs)


def actor_weights(network: CandidateNetwork) -> dict[str, NDArray[np.float32]]:
    """Copies of the actor's weights by name, for a Scorer."""
    return {name: value.detach().numpy().copy() for name, value in network.actor.state_dict().items()}
