"""The cases of one job: drawn once, prepared once, and shared by all variants.

In: the problem, settings, oracle. Out: `PreparedCase`s: inputs, expected values, and the trivial answers that
would pass. Candidates cannot know the seeds beforehand, so that sharing them gives nothing away.
"""

import contextlib
import math
import threading
from collections.abc import Callable

import torch

from pipeline.backends.devices.device_registry import HOST, device, executes_on_host
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.stage_settings import Distribution
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record
from pipeline.verify.harness.planning.shapes import Shape
from pipeline.verify.oracle.exact import integer_inputs
from pipeline.verify.oracle.random_inputs import make_inputs
from pipeline.verify.oracle.reference import ReferenceOracle
from pipeline.verify.oracle.tolerance import Expected, on_host
from pipeline.verify.oracle.trivial_answers import trivial_answers

TINY = 16  # elements
LARGE = 1 << 20  # elements of all tensors
Oracle = Callable[[Problem, dict[str, torch.Tensor]], dict[str, Expected]]


class KernelCase(Record, frozen=True, kw_only=True):
    """One set of inputs."""

    shape: Shape
    distribution: Distribution
    seed: int

    @property
    def label(self) -> str:
        """For reasons and tables: `rows=5 cols=7 padded, normal, seed 17`."""
        sizes = " ".join(f"{name}={size}" for name, size in self.shape.dimensions.items())
        return f"{sizes}{' padded' if self.shape.padded else ''}, {self.distribution}, seed {self.seed}"


class PreparedCase(Record, frozen=True, kw_only=True, eq=False):
    """A case with what is needed to call a candidate and to judge it."""

    case: KernelCase
    problem: Problem
    """On the case's dimensions."""
    inputs: dict[str, torch.Tensor]
    expected: dict[str, Expected]
    trivial: frozenset[str]
    """Trivial answers that would pass."""

    @property
    def empty(self) -> bool:
        """Whether the outputs have no elements."""
        return all(output.reference.numel() == 0 for output in self.expected.values())


class KernelCaseSet:
    """All cases of a job; safe to use from several threads."""

    def __init__(  # noqa: PLR0913  (each of them is a property of the job)
        self,
        problem: Problem,
        oracle: ReferenceOracle,
        *,
        distributions: tuple[Distribution, ...],
        seeds: tuple[int, ...],
        per_shape: int = 1,
        kind: DeviceKind = HOST,
    ) -> None:
        """`kind`: of the device that candidates run on, in no interpreter."""
        self._kind = kind
        self._problem = problem
        self._oracle = oracle
        self._distributions = distributions
        self._seeds = seeds
        self._per_shape = per_shape
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._prepared: dict[str, PreparedCase] = {}
        self._checked = False

    def full(self, shapes: tuple[Shape, ...]) -> tuple[KernelCase, ...]:
        """The first shape with every distribution and seed, each further one with the next `per_shape`.

        So the same shape has other data at the same addresses, which shows results that were kept.
        """
        return self._spread(shapes, len(self._distributions) * len(self._seeds), self._per_shape)

    def sparse(self, shapes: tuple[Shape, ...]) -> tuple[KernelCase, ...]:
        """For slow interpreters: few inputs on the first shape; the other distributions meet other shapes.

        Special values are among the few: only the first shape has several blocks, some of which they fill.
        """
        cases = self._spread(shapes, 2, 1)
        if "special" not in self._distributions:
            return cases
        special = KernelCase(shape=shapes[0], distribution="special", seed=self._seeds[0])
        return (*cases[:2], special, *(case for case in cases[2:] if case.label != special.label))

    def plain(self, shapes: tuple[Shape, ...]) -> tuple[KernelCase, ...]:
        """Each shape once, with ordinary values."""
        return tuple(KernelCase(shape=shape, distribution="normal", seed=self._seeds[0]) for shape in shapes)

    def _spread(self, shapes: tuple[Shape, ...], on_first: int, per_shape: int) -> tuple[KernelCase, ...]:
        inputs = [(distribution, seed) for seed in self._seeds for distribution in self._distributions]
        cases = [
            KernelCase(shape=shapes[0], distribution=distribution, seed=seed)
            for distribution, seed in inputs[:on_first]
        ]
        turn = on_first
        for shape in [shape for shape in shapes[1:] for _ in range(per_shape)]:
            # On a few elements one distribution is like another: none of them is spent there.
            tiny = math.prod(shape.dimensions.values()) <= TINY
            distribution, seed = inputs[0 if tiny else turn % len(inputs)]
            cases.append(KernelCase(shape=shape, distribution=distribution, seed=seed))
            turn += not tiny
        return tuple({case.label: case for case in cases}.values())

    def prepare(self, case: KernelCase) -> PreparedCase:
        """Inputs and expected values, computed by the first thread that asks."""
        with self._lock:
            lock = self._locks.setdefault(case.label, threading.Lock())
        with lock:
            if case.label not in self._prepared:
                self._prepared[case.label] = self._prepare(case)
            return self._prepared[case.label]

    def _prepare(self, case: KernelCase) -> PreparedCase:
        problem = self._problem.with_dimensions(case.shape.dimensions)
        if case.distribution == "integers":
            inputs = integer_inputs(problem, terms=self._oracle.terms(problem), seed=case.seed)
            expected = self._on_device(self._oracle.exact, problem, inputs)
        else:
            inputs = make_inputs(problem, case.distribution, case.seed)
            self._check_once(case, problem, inputs)
            expected = self._on_device(self._oracle.expected, problem, inputs)
        return PreparedCase(
            case=case,
            problem=problem,
            inputs=inputs,
            expected=expected,
            trivial=trivial_answers(inputs, expected),
        )

    def _on_device(
        self, oracle: Oracle, problem: Problem, inputs: dict[str, torch.Tensor]
    ) -> dict[str, Expected]:
        """Large cases there, if it can: in float64 the host would take minutes for some of them."""
        sizes = (math.prod(problem.shape(name)) for name in problem.tensors)
        if not executes_on_host(self._kind) and sum(sizes) >= LARGE:
            where = device(self._kind)
            with contextlib.suppress(RuntimeError, TypeError), where.computing():  # no memory, no float64
                there = {name: tensor.to(where.torch_device) for name, tensor in inputs.items()}
                found: dict[str, Expected] = on_host(oracle(problem, there))
                return found
        return oracle(problem, inputs)

    def _check_once(self, case: KernelCase, problem: Problem, inputs: dict[str, torch.Tensor]) -> None:
        """The oracle itself, on the first inputs that say something about it."""
        with self._lock:
            if self._checked or case.distribution == "special" or 0 in case.shape.dimensions.values():
                return
            self._checked = True
        self._oracle.check(problem, inputs)
