"""An environment for those who train models that write kernels; its reward is the trusted verdict."""

from pipeline.gym.environment import KernelEnvironment, Step
from pipeline.gym.observation import Action, Observation
from pipeline.gym.reward import Rewards

__all__ = ["Action", "KernelEnvironment", "Observation", "Rewards", "Step"]
