"""Smoke test of an installed hetenv: it is not the checkout's, and an episode of every shipped id runs."""

import sys
from pathlib import Path

import gymnasium as gym

import hetenv
from hetenv import scenario

assert Path(sys.prefix).resolve() in Path(hetenv.__file__).resolve().parents, hetenv.__file__
assert scenario.names(), "no scenario in the wheel"
env = gym.make("hetenv/HetCluster-v0", scenario="smoke")
observation, info = env.reset(seed=0)
steps, done = 0, False
while not done:
    action = int(env.action_space.sample(mask=info["action_mask"]))
    observation, reward, terminated, truncated, info = env.step(action)
    steps, done = steps + 1, terminated or truncated
print(f"{hetenv.__file__}: {steps} steps of smoke, scenarios {', '.join(scenario.names())}")
