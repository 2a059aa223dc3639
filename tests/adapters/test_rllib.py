"""What RLlib asks of environments, checked without ray."""

import pickle

import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from hetenv.adapters.rllib import HetRLlibEnv, hetenv_vector


def random_legal(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])


def test_p12_the_single_env_takes_one_config_mapping_and_passes_the_checker() -> None:
    env = HetRLlibEnv({"scenario": "smoke"})
    check_env(env, skip_render_check=True)
    observation, _ = HetRLlibEnv().reset(seed=0)
    assert set(observation) == {"observations", "action_mask"}
    assert env.observation_space.contains(pickle.loads(pickle.dumps(env)).reset(seed=1)[0])


def test_the_vector_env_follows_next_step_and_shows_its_masks() -> None:
    env = hetenv_vector({"scenario": "smoke", "num_envs": 3})
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP and env.num_envs == 3
    observations, _ = env.reset(seed=0)
    rng, was_over, n_resets = np.random.default_rng(0), np.zeros(3, bool), 0
    for _ in range(400):
        assert env.observation_space.contains(observations)
        assert set(np.unique(observations["action_mask"])) <= {0.0, 1.0}
        observations, rewards, terminated, truncated, _ = env.step(random_legal(observations["action_mask"], rng))
        assert not rewards[was_over].any() and not (terminated | truncated)[was_over].any()
        n_resets += was_over.sum()
        was_over = terminated | truncated
    assert n_resets > 0
