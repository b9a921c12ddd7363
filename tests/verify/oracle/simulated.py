"""Observations without a process: a Python function plays the candidate on real buffers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from pipeline.records.planning.problem import Problem
from pipeline.verify.checks.call_observation import CallKind, CallObservation
from pipeline.verify.harness.buffers import AGAIN, FIRST, Arena, Layout, lay_out
from pipeline.verify.harness.kernel_cases import KernelCase, KernelCaseSet, PreparedCase
from pipeline.verify.harness.messages import Observed, OutputState
from pipeline.verify.harness.planning.shapes import Shape
from pipeline.verify.oracle.reference import ReferenceOracle, find_function
from tests.verify.harness.build import PROBLEM, TOLERANCE

Action = Callable[[dict[str, torch.Tensor]], None]


def oracle() -> ReferenceOracle:
    """That of softmax."""
    return ReferenceOracle(
        reference=find_function("kernels.softmax.reference:reference"),
        magnitude=find_function(TOLERANCE.magnitude),
        tolerance=TOLERANCE,
        terms=lambda problem: problem.dimensions["cols"] + 8,
    )


def prepared(
    problem: Problem = PROBLEM, *, distribution: str = "normal", padded: bool = True
) -> PreparedCase:
    """One case of softmax."""
    case_set = KernelCaseSet(problem, oracle(), distributions=("normal", "special"), seeds=(7,))
    shape = Shape(edge="workload", dimensions={"rows": 13, "cols": 29}, padded=padded)
    return case_set.prepare(KernelCase(shape=shape, distribution=distribution, seed=7))


def softmax(tensors: dict[str, torch.Tensor]) -> None:
    """A right kernel."""
    tensors["y"].copy_(torch.softmax(tensors["x"], dim=-1))


class Stage:
    """Buffers on which one action after the other is observed."""

    def __init__(self, case: PreparedCase, arena: Arena, layout: Layout) -> None:
        self.case, self.arena, self.layout = case, arena, layout

    def observe(
        self,
        action: Action,
        *,
        turn: CallKind = "first",
        first: CallObservation | None = None,
        deterministic: bool = True,
        seen: tuple[OutputState, ...] | None = None,
        observed: Observed | None = None,
        later: Action | None = None,
    ) -> CallObservation:
        """Let the action write into the buffers and look at what it left."""
        patterns = AGAIN if turn == "again" else FIRST
        self.arena.write(self.layout, self.case.inputs, patterns)
        action({slot.name: self.arena.view(slot) for slot in self.layout.slots})
        outputs = [slot for slot in self.layout.slots if slot.role == "output"]
        written = {slot.name: self.arena.copy(slot) for slot in outputs}
        if later is not None:
            later({slot.name: self.arena.view(slot) for slot in self.layout.slots})
        honest = tuple(
            OutputState(name=slot.name, dtype=slot.dtype, shape=slot.shape, strides=slot.strides, moved=False)
            for slot in outputs
        )
        return CallObservation(
            prepared=self.case,
            deterministic=deterministic,
            turn=turn,
            arena=self.arena,
            layout=self.layout,
            patterns=patterns,
            seen=honest if seen is None else seen,
            outputs=written,
            later={slot.name: self.arena.copy(slot) for slot in outputs},
            observed=observed or Observed(counted=1),
            accesses_seen=True,
            first=None if first is None else first.outputs,
        )


@contextmanager
def stage(case: PreparedCase | None = None) -> Iterator[Stage]:
    """Buffers for a case."""
    case = case or prepared()
    layout = lay_out(case.problem, padded=case.case.shape.padded)
    with Arena(layout.size) as arena:
        yield Stage(case, arena, layout)
