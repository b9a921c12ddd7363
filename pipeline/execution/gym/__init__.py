"""An environment for those who train models that write kernels; its reward is the trusted verdict."""

from pipeline.execution.gym.environment_task import Action, Observation
from pipeline.execution.gym.evaluation import Rewards
from pipeline.execution.gym.gymnasium_adapter import as_gymnasium, task_text
from pipeline.execution.gym.kernel_environment import Info, KernelEnvironment, Step

__all__ = [
    "Action",
    "Info",
    "KernelEnvironment",
    "Observation",
    "Rewards",
    "Step",
    "as_gymnasium",
    "task_text",
]
