"""Problems as text, and what tests make of them."""

from pathlib import Path

from pipeline.records.configuration.stage_settings import Verify
from pipeline.sandbox.models.model_problem import ModelProblem

SCALED_SOFTMAX = """
import torch

class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return torch.softmax(x, dim=1) * self.weight

rows = 24
columns = 2 * 40

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return [columns]
"""

SCALING_KERNEL = """
import time, torch, triton, triton.language as tl
@triton.jit
def double(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) * FACTOR, mask=at < n)
"""
"""Of candidates: y = FACTOR x."""

SETTINGS = Verify(
    name="test",
    description="",
    seeds=1,
    distributions=("normal", "small"),
    edge_shapes=5,
    inputs_per_shape=1,
    elements_at_most=1 << 16,
    interpreter_elements_at_most=4096,
    repetitions=2,
    elsewhere="first",
    protect="first",
    settle_seconds=0.01,
    time_limit=60.0,
    memory_limit=2 << 30,
    output_limit=1 << 24,
)


def problem_of(folder: Path, source: str) -> ModelProblem:
    """A problem of its own file."""
    path = folder / "problem.py"
    path.write_text(source)
    return ModelProblem(path)
