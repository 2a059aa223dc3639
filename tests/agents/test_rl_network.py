"""The candidate-scoring network does not depend on the number or order of candidate rows, jobs and pools, and begins at its rule."""
# ruff: noqa: E402

import pytest

torch = pytest.importorskip("torch")

from agents.rl.network import CandidateNetwork, NetworkConfig
from hetenv.beliefs import N_BACKLOG_BINS
from hetenv.env.observation import N_CLUSTER, N_POOL, N_ROW, N_SITE


def tables(n_rows: int, n_pools: int = 3, n_sites: int = 2, batch: int = 5, seed: int = 0) -> dict:
    generator = torch.Generator().manual_seed(seed)
    shapes = {
        "candidates": (n_rows, N_ROW),
        "pools": (n_pools, N_POOL),
        "sites": (n_sites, N_SITE),
        "backlog": (N_BACKLOG_BINS,),
        "cluster": (N_CLUSTER,),
    }
    obs = {name: torch.rand(batch, *shape, generator=generator) * 2 - 1 for name, shape in shapes.items()}
    obs["candidates"][..., 0] = (torch.rand(batch, n_rows, generator=generator) < 0.5).float()
    obs["candidates"][:, 0, 0] = 1.0
    obs["candidates"] *= obs["candidates"][..., :1]
    obs["rule_rank"] = torch.zeros(batch, n_rows)
    obs["rule_rank"][:, 0] = 1.0
    return obs


@pytest.fixture
def network() -> CandidateNetwork:
    torch.manual_seed(0)
    return CandidateNetwork(NetworkConfig(rule_bonus=3.0, value_centre=-2.0))


@pytest.mark.parametrize(("n_rows", "n_pools", "n_sites"), [(1, 1, 1), (25, 2, 1), (145, 4, 3)])
def test_one_network_takes_tables_of_any_size(
    network: CandidateNetwork, n_rows: int, n_pools: int, n_sites: int
) -> None:
    logits, value = network(tables(n_rows, n_pools, n_sites))
    assert logits.shape == (5, n_rows) and value.shape == (5, 1)


def test_illegal_rows_change_nothing(network: CandidateNetwork) -> None:
    obs = tables(20)
    wider = {**obs}
    wider["candidates"] = torch.cat([obs["candidates"], torch.zeros(5, 30, N_ROW)], 1)
    wider["rule_rank"] = torch.cat([obs["rule_rank"], torch.zeros(5, 30)], 1)
    (logits, value), (wide_logits, wide_value) = network(obs), network(wider)
    torch.testing.assert_close(wide_logits[:, :20], logits)
    torch.testing.assert_close(wide_value, value)


def test_rows_in_another_order_give_their_scores_in_that_order(network: CandidateNetwork) -> None:
    obs, order = tables(20), torch.randperm(20)
    shuffled = {**obs, "candidates": obs["candidates"][:, order], "rule_rank": obs["rule_rank"][:, order]}
    torch.testing.assert_close(network(shuffled)[0], network(obs)[0][:, order])


def test_each_decision_of_a_batch_is_scored_alone(network: CandidateNetwork) -> None:
    obs = tables(20)
    for b in range(5):
        alone = network({name: table[b : b + 1] for name, table in obs.items()})
        torch.testing.assert_close(alone[0][0], network(obs)[0][b])
        torch.testing.assert_close(alone[1][0], network(obs)[1][b])


def test_the_first_policy_is_the_rule_and_the_first_value_the_centre(network: CandidateNetwork) -> None:
    obs = tables(40)
    obs["rule_rank"] = torch.zeros(5, 40)
    picks = torch.stack([row.nonzero()[-1, 0] for row in obs["candidates"][..., 0]])
    obs["rule_rank"][torch.arange(5), picks] = 1.0
    logits, value = network(obs)
    legal = obs["candidates"][..., 0] > 0.5
    assert (logits.masked_fill(~legal, -1e9).argmax(1) == picks).all()
    assert (value + 2.0).abs().max() < 0.1


def test_no_legal_row_at_all_gives_finite_values(network: CandidateNetwork) -> None:
    obs = tables(20)
    obs["candidates"] = torch.zeros(5, 20, N_ROW)
    assert network(obs)[1].isfinite().all()
