"""The cases of one problem: planned at once, expected values computed while candidates are tried.

In: a problem and how strictly to judge. Out: plans in order, and the `ModelCase` of each once it is ready.
Expected values are computed in the judge's main thread (a time limit on the problem's code needs signals);
other threads already try candidates. Only the judge knows them.
"""

import contextlib
import copy
import faulthandler
import itertools
import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import FrameType
from typing import Literal

import msgspec
import torch

from pipeline.backends.devices.device_registry import HOST, executes_on_host
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.record import Record
from pipeline.sandbox.models.model_problem import DeclaredTolerance, ModelProblem, ProblemError
from pipeline.sandbox.torch_internals import TorchDispatchMode
from pipeline.verify.harness.planning.case_plans import (
    CasePlan,
    CasePlanner,
    output_gradients,
    perturbed_outputs,
    refuse_kept_state,
    returned_alike,
)
from pipeline.verify.harness.planning.extent import Extent
from pipeline.verify.harness.planning.trial_conditions import (
    Condition,
    ConditionRequest,
    conditions,
)
from pipeline.verify.harness.planning.trial_sizes import ALIGNED, SizeBudget, Sizes, TrialSizes
from pipeline.verify.oracle.computing_operators import is_computing
from pipeline.verify.oracle.degeneracy import LIMIT, degeneracies
from pipeline.verify.oracle.input_variations import (
    BEYOND,
    CONCENTRATED,
    CONSTANT_EVERYWHERE,
    LARGER,
    NAMES,
    ONE_SIGN,
    REFUSABLE,
    STRIDED,
)
from pipeline.verify.oracle.random_inputs import draw_seeds
from pipeline.verify.oracle.rounding.expectation import Allowance, RandomReference, declared, expectation
from pipeline.verify.oracle.rounding.gradients import NoGradient, gradient_expectation
from pipeline.verify.oracle.rounding.wrapped_run import tensor_arguments
from pipeline.verify.oracle.tolerance import Expected, aligned, deviation, on_host, tiny, widened
from pipeline.verify.oracle.trivial_answers import trivial_answers
from pipeline.verify.torch_internals import operator_name

NO_REASON = "no reason given"
_GRACE_SECONDS = 30.0
ROUGHLY = 2.0**-7  # of a value and of the root mean square of all
_OPERATIONS_A_SECOND = 1e10  # that PyTorch does on one core, at least
_DEVICE_TIMES = 100  # as fast is a device at least, in float64
LARGE = 1 << 25  # elements of one tensor, of which there is not always memory for many copies
_PER_INPUT, _PER_OUTPUT = 12, 16
"""Bytes of a float32 in all copies: inputs of `Model` and of the candidate, results of both, bounds."""
MEMORY_SHARE = 2 / 3  # of what each core has, if all judge
_DECLARED_OPERATORS_AT_MOST = 15000  # of one call: with errors, it takes some twenty seconds
_NOISE = 8.0  # root mean squares of what one rounding step of the inputs changes
GIB = 1 << 30  # bytes
ENOUGH = 0.5  # of the bound that PyTorch's own result may use
TOO_WIDE = 0.25  # of an output's spread: a wider bound says nothing


class ModelCase(Record, frozen=True, kw_only=True, eq=False):
    """One condition that is ready to be judged on."""

    plan: CasePlan
    expected: tuple[Expected, ...]
    trivial: frozenset[str]
    """Trivial answers that would pass."""
    computing: dict[str, int]
    """Operators that `Model` calls and that compute, with the elements of their largest tensor."""
    called: dict[str, int] = {}
    """How often it calls each of them."""

    @property
    def condition(self) -> Condition:
        """What it is a case of."""
        return self.plan.condition


class GradientCase(Record, frozen=True, kw_only=True, eq=False):
    """A case with expected gradients."""

    case: ModelCase
    expected: dict[str, Expected]
    """`gradient of input 0`, `gradient of weight`, ..."""


class OperatorCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the computing operators of PyTorch that run: elements of the largest tensor, and calls."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: dict[str, int] = {}
        self.called: dict[str, int] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Otherwise PyTorch imports its compiler, about a second, to switch it off in the method below."""
        return False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN204
        result = function(*args, **(kwargs or {}))
        name = plain_name(operator_name(function))
        if is_computing(name):
            sizes = [each.numel() for each in (*args, result) if isinstance(each, torch.Tensor)]
            self.found[name] = max([self.found.get(name, 0), *sizes])
            self.called[name] = self.called.get(name, 0) + 1
        return result


def plain_name(operator: str) -> str:
    """`aten::relu_` and `aten::relu.out` are `aten::relu`."""
    library, separator, name = operator.partition("::")
    return f"{library}{separator}{name.partition('.')[0].rstrip('_')}" if separator else operator


class _Overdue(BaseException):
    """The time is up; no Exception, which much code catches."""


@contextlib.contextmanager
def time_limited(seconds: float, what: str) -> Iterator[None]:
    """ProblemError where the block takes longer; only in the main thread, elsewhere there is no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise _Overdue

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again, where the problem catches everything
    # What never comes back to Python does not see the signal: then the whole process has to end.
    faulthandler.dump_traceback_later(seconds + _GRACE_SECONDS, exit=True)
    try:
        yield
    except _Overdue:
        raise ProblemError(f"{what} takes longer than {seconds:g} s") from None
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class ModelOracle:
    """Computes expected values of one problem."""

    def __init__(
        self,
        plans: CasePlanner,
        tolerance: DeclaredTolerance | None,
        *,
        mixed_precision: bool = True,
        tf32_products: bool = False,
    ) -> None:
        self._planner = plans
        self._tolerance = tolerance
        # Who declares how precise a result must be means that.
        self._allowance = Allowance(
            mixed_precision=mixed_precision and tolerance is None, tf32_products=tf32_products
        )
        self._drawn: dict[int, ModelCase] = {}
        """By the seed of the inputs: what views of the same values have in common."""

    def plan(self, condition: Condition) -> CasePlan:
        """The condition without expected values; ProblemError where the problem does not allow it."""
        return self._planner.make(condition)

    def case(self, plan: CasePlan) -> ModelCase:
        """Expected values and bounds; ProblemError where `Model` is random."""
        if plan.condition.kind == "full":
            is_large = any(value.numel() > LARGE for value in plan.values)
            if is_large or self._planner.device(plan.condition).is_host:
                return coarse(plan)
            return ModelCase(plan=plan, expected=self._expected(plan), trivial=frozenset(), computing={})
        if plan.condition.variation == BEYOND:
            finite = tuple(anything_finite(value) for value in plan.values)
            passing = frozenset(("anything finite",))
            return self._counted(ModelCase(plan=plan, expected=finite, trivial=passing, computing={}))
        drawn = self._drawn.get(plan.condition.seed)
        if plan.condition.variation == STRIDED and drawn is not None:
            return msgspec.structs.replace(drawn, plan=plan)
        expected = self._expected(plan)
        trivial = trivial_answers(
            {name: tensor for name, tensor in plan.encoded.tensors.items() if tensor.is_floating_point()},
            {f"output {number}": each for number, each in enumerate(expected)},
        )
        case = self._counted(ModelCase(plan=plan, expected=expected, trivial=trivial, computing={}))
        if plan.condition.kind == "base":
            self._drawn[plan.condition.seed] = case
        return case

    def _expected(self, plan: CasePlan) -> tuple[Expected, ...]:
        where = self._planner.device(plan.condition)
        model = plan.model if where.is_host else copy.deepcopy(plan.model).to(where.torch_device)
        arguments = plan.encoded.copied().on(where.torch_device).decode()
        try:
            with where.computing():
                found = expectation(model, arguments, seed=plan.condition.seed, allowance=self._allowance)
                found = found if where.is_host else on_host(found)
        except RandomReference as error:
            raise ProblemError(f"Model is random: {error}") from error
        names = [str(number) for number in range(min(len(found), len(plan.values)))]
        expected = dict(zip(names, found, strict=False))
        own = aligned(dict(zip(names, plan.values, strict=False)), expected)
        return tuple(self._widened(lets_pass(expected[name], own[name])) for name in names)

    def gradients(self, case: ModelCase) -> GradientCase:
        """Expected gradients under `output_gradients`; ProblemError where there are none."""
        plan, encoded = case.plan, case.plan.encoded.copied()
        model = copy.deepcopy(plan.model)
        names = {id(tensor): name for name, tensor in (*encoded.tensors.items(), *model.named_parameters())}
        try:
            found = gradient_expectation(
                model,
                encoded.decode(),
                list(output_gradients(plan).values()),
                seed=plan.condition.seed,
                allowance=Allowance(tf32_products=self._allowance.tf32_products),
            )
        except (NoGradient, RandomReference) as error:
            raise ProblemError(f"check_grad = True: {error}") from error
        wanted = tensor_arguments(model, encoded.decode())
        expected = {
            f"gradient of {names[id(tensor)]}": self._widened(each)
            for tensor, each in zip(wanted, found, strict=True)
        }
        return GradientCase(case=case, expected=expected)

    def _widened(self, expected: Expected) -> Expected:
        rule = self._tolerance
        if rule is None:
            return expected
        return declared(expected, rtol=rule.rtol, atol=rule.atol, reason=rule.reason or NO_REASON)

    @staticmethod
    def _counted(case: ModelCase) -> ModelCase:
        """With the operators that `Model` calls on its inputs."""
        with OperatorCounter() as mode, torch.no_grad():
            copy.deepcopy(case.plan.model)(*case.plan.encoded.copied().decode())
        return msgspec.structs.replace(case, computing=mode.found, called=mode.called)


def _turn(plan: CasePlan) -> int:
    """In which turn, where there is no time for all: what other weights show, nothing else does."""
    condition = plan.condition
    return (
        0 if condition.kind == "base" else 1 if condition.kind == "weights" and not condition.variation else 2
    )


def _longest(plan: CasePlan) -> int:
    """The largest of its sizes."""
    return max(plan.condition.sizes.values(), default=0)


def coarse(plan: CasePlan) -> ModelCase:
    """Of sizes on which nothing but `Model` itself can be run; a second run shows how much rounding matters.

    Of a mean that is 0 but for rounding errors, for example, nothing else would be left.
    """
    expected = tuple(roughly(value) for value in plan.values)
    others: tuple[torch.Tensor, ...] = ()
    with contextlib.suppress(ProblemError):  # a check of the inputs' values may refuse others
        others = perturbed_outputs(plan)
    for each, value, other in zip(expected, plan.values, others, strict=False):
        if value.is_floating_point() and value.shape == other.shape:
            difference = other.sub_(value).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
            noise = float(torch.linalg.vector_norm(difference.float())) / math.sqrt(max(value.numel(), 1))
            each.bound.add_(_NOISE * noise)
    return ModelCase(plan=plan, expected=expected, trivial=frozenset(), computing={})


def roughly(eager: torch.Tensor) -> Expected:
    """PyTorch's own result, within a share of its size: on sizes on which nothing else can be computed.

    How precise a candidate is shows on smaller sizes; whether it computes all of a large result shows here.
    """
    value = torch.view_as_real(eager) if eager.is_complex() else eager
    dtype = eager.dtype.to_real() if eager.is_complex() else eager.dtype
    is_large = value.numel() > LARGE and dtype.is_floating_point
    kept = torch.promote_types(dtype, torch.float32) if is_large else torch.float64
    reference = value.detach().to(kept).contiguous()
    bound, plain = torch.full_like(reference, 0.5), True
    if dtype.is_floating_point:
        bound = reference.abs().nan_to_num_(nan=0.0, posinf=0.0)
        scale = float(torch.linalg.vector_norm(bound)) / math.sqrt(max(bound.numel(), 1))
        bound.add_(scale).mul_(max(ROUGHLY, 8 * float(torch.finfo(dtype).eps))).add_(tiny(dtype))
        ends = (*reference.aminmax(), bound.max()) if bound.numel() else ()  # NaN, if there is one
        plain = sum(float(each.abs()) for each in ends) < torch.finfo(dtype).max
    return Expected(dtype=str(dtype).removeprefix("torch."), reference=reference, bound=bound, plain=plain)


def anything_finite(eager: torch.Tensor) -> Expected:
    """Any finite value: nothing else is asked on inputs that the problem does not give."""
    value = torch.view_as_real(eager) if eager.is_complex() else eager
    reference = value.detach().to(torch.float64).contiguous()
    most = torch.finfo(value.dtype).max / 4 if value.dtype.is_floating_point else math.inf
    return Expected(
        dtype=str(value.dtype).removeprefix("torch."),
        reference=reference,
        bound=torch.full_like(reference, most),
        plain=not value.dtype.is_floating_point,
        anything_finite=True,
    )


def lets_pass(expected: Expected, eager: torch.Tensor) -> Expected:
    """Widened where PyTorch's own result in the model's types would use more than half of the bound.

    No rule of rounding errors covers every operator; what PyTorch computes is right in any case. Integers,
    such as codes that were rounded, may also be PyTorch's own.
    """
    if eager.shape[: expected.reference.dim()] != expected.reference.shape:
        return expected
    if expected.spread is None:
        own = eager.detach().to(torch.float64)
        known = expected.unordered or torch.equal(own, expected.reference)
        return expected if known else msgspec.structs.replace(expected, accepted=(*expected.accepted, own))
    share = deviation(eager.detach(), expected).share
    return widened(expected, share / ENOUGH) if ENOUGH < share < math.inf else expected


def is_finite(values: Sequence[torch.Tensor]) -> bool:
    """Whether all floating outputs are finite everywhere."""
    # In float64, because PyTorch has no such functions for types of 8 bits.
    return all(bool(value.double().isfinite().all()) for value in values if value.is_floating_point())


def is_informative(case: ModelCase) -> bool:
    """Whether the bounds are narrow enough that a wrong value would show."""
    for expected, output in zip(case.expected, case.plan.values, strict=True):
        if not output.is_floating_point():
            continue
        values = expected.reference[expected.reference.isfinite()]
        if values.numel() and float(expected.bound.median()) > TOO_WIDE * float(values.abs().max()):
            return False
    return True


OPERATIONS_PER_ELEMENT = 3000  # of the budget: a product of 256^3 in the interpreter takes about 0.3 s
DECLARED_TIMES = 16  # the budget of the host, for trying declared sizes at all
_NEAREST = SizeBudget(elements=1 << 24, operations=1 << 31)  # less than a second, and 1 GB
PREPARE_SECONDS = 60.0  # of computing; after that, only what the problem itself gave is prepared


def oracle_for(plans: CasePlanner, tolerance: DeclaredTolerance | None, settings: Verify) -> ModelOracle:
    """As the settings have it."""
    return ModelOracle(
        plans,
        tolerance,
        mixed_precision=settings.mixed_precision,
        tf32_products=settings.tf32_products,
    )


_FEW_ELEMENTS = 1024  # of all outputs
_TRIED_DRAWS = 3  # of inputs on reduced sizes, of which random indices may be beyond some
_DERIVED = ("values", "sizes", "weights")
_OF_EACH_UNNAMED = 2  # sizes that it alone has, before those of 1
PROBLEM_SECONDS = 300.0  # for the problem's own code, expected values included
GROUPS_AT_MOST = 64


class ModelCaseSet:
    """Cases of one problem; safe to read from several threads, made in the main one."""

    def __init__(self, problem: ModelProblem, settings: Verify, kind: DeviceKind = HOST) -> None:
        """`kind`: of the device that candidates run on, in no interpreter."""
        self._problem = problem
        self._settings = settings
        self._on_host = executes_on_host(kind)
        self._planner = CasePlanner(problem, strict_strides=settings.strict_strides, kind=kind)
        self._oracle = oracle_for(self._planner, problem.tolerance, settings)
        self.reduced = ""
        """The sizes that most calls are made on, where these are not the declared ones."""
        self.too_large = ""
        """Why the declared sizes are not tried."""
        self.growth = 1.0
        """Operations on the declared sizes over those on the reduced ones."""
        self._long = False
        """Whether a call on the declared sizes takes too many operators to be computed with errors."""
        self.notes: list[str] = []
        """What the problem does not allow to ask, and what is weak about it."""
        with time_limited(PROBLEM_SECONDS, "planning its conditions"):
            self.plans = tuple(self._plan())
            self.notes += self._weaknesses()
        self._futures: dict[int, Future[ModelCase | None]] = {id(plan): Future() for plan in self.plans}
        self._gradients: dict[int, Future[GradientCase | None]] = {id(plan): Future() for plan in self.plans}

    @property
    def tolerance_note(self) -> str | None:
        """What bound the problem declares."""
        rule = self._problem.tolerance
        if rule is None:
            return None
        return f"declared bound: rtol={rule.rtol:g} atol={rule.atol:g} ({rule.reason or 'no reason given'})"

    @property
    def check_gradients(self) -> bool:
        """Whether the problem wants gradients to be right."""
        return self._problem.check_gradients

    @property
    def largest(self) -> CasePlan:
        """The plan that is nearest to the problem as it is declared."""
        declared = [plan for plan in self.plans if plan.condition.kind in ("declared", "full")]
        return (declared or list(self.plans))[0]

    def case(self, plan: CasePlan) -> ModelCase | None:
        """The case of a plan when it is ready; None where it says nothing. ProblemError as it was raised."""
        return self._futures[id(plan)].result()

    def gradient_case(self, plan: CasePlan) -> GradientCase | None:
        """Expected gradients of a plan; None if there are none. ProblemError as it was raised."""
        return self._gradients[id(plan)].result()

    def prepare(self) -> None:
        """Make all cases, in the main thread; exceptions are raised to those who get the case."""
        started, left_out = time.thread_time(), 0
        for plan in sorted(self.plans, key=_turn):
            future = self._futures[id(plan)]
            if plan.condition.kind in _DERIVED and time.thread_time() - started > PREPARE_SECONDS:
                future.set_result(None)
                left_out += 1
                continue
            try:
                with time_limited(PROBLEM_SECONDS, "computing expected values"):
                    future.set_result(self._case(plan))
            except BaseException as error:
                on_device = not self._planner.device(plan.condition).is_host
                if on_device and isinstance(error, ProblemError | torch.OutOfMemoryError):
                    future.set_result(coarse(plan))  # of smaller sizes the host has computed all
                else:
                    future.set_exception(error)
        if left_out:
            self.notes.append(f"{left_out} conditions left out: expected values take too long")
        self._prepare_gradients()

    def _prepare_gradients(self) -> None:
        """Of the problem's own draws (a buffer that is not cleared shows), other sizes, all other weights.

        Of other sizes the first ones and the longest, as sums over rows may be those of a few blocks of them.
        """
        sizes = [plan for plan in self.plans if plan.condition.kind == "sizes"]
        chosen = {id(plan) for plan in (*sizes[:1], *sorted(sizes, key=_longest)[-1:])}
        chosen |= {id(each) for each in self.plans if each.condition.kind in ("base", "weights", "group")}
        for plan in self.plans:
            future = self._gradients[id(plan)]
            if id(plan) not in chosen or not self.check_gradients:
                future.set_result(None)
                continue
            try:
                with time_limited(PROBLEM_SECONDS, "computing expected gradients"):
                    case = self.case(plan)
                    future.set_result(None if case is None else self._oracle.gradients(case))
            except BaseException as error:
                future.set_exception(error)

    def _case(self, plan: CasePlan) -> ModelCase | None:
        """Bounds that tell nothing are only kept where the problem itself gave the inputs."""
        if self._long and plan.condition.kind == "group":  # its sizes are the declared ones
            return coarse(plan)
        try:
            case = self._oracle.case(plan)
        except ProblemError:
            if plan.condition.variation in REFUSABLE:  # a share of dropout was 0, for instance
                return None
            raise
        own = plan.condition.kind in ("base", "declared", "full", "group")
        own = own or plan.condition.variation == BEYOND
        return case if own or is_informative(case) else None

    def _plan(self) -> Iterator[CasePlan]:
        settings = self._settings
        elements = settings.interpreter_elements_at_most * 2 if self._on_host else settings.elements_at_most
        budget = SizeBudget(elements=elements, operations=OPERATIONS_PER_ELEMENT * elements)
        workloads = TrialSizes(self._problem, budget)
        self._long = workloads.declared.operators > _DECLARED_OPERATORS_AT_MOST
        self._nearest = workloads.nearest(_NEAREST) if workloads.reduced else {}
        seeds = draw_seeds(64)
        groups = self._problem.declared.groups(seeds[0])
        if workloads.reduced:
            workloads.base = self._accepted(workloads.base, seeds[:_TRIED_DRAWS])
        request = ConditionRequest(
            draws=max(2, settings.seeds + 1),
            variations=self._variations() if groups is None else (),
            others=self._others(workloads),
            base=workloads.base,
            groups=min(len(groups or []), GROUPS_AT_MOST),
            try_declared=self._try_declared(workloads),
            seeds=seeds,
        )
        self.reduced = _sizes_text(workloads.base)
        base = workloads.extent(workloads.base)
        if base is not None and base.operations:
            self.growth = workloads.declared.operations / base.operations
        yield from self._planned(conditions(request))

    def _accepted(self, base: Sizes, seeds: Sequence[int]) -> Sizes:
        """Reduced sizes that `Model` does not refuse: all of the base, all but one of it, one of it, or none.

        They were chosen without values, and indices may be those of the declared sizes.
        """
        all_but_one = ({other: base[other] for other in base if other != name} for name in base)
        for sizes in (base, *all_but_one, *({name: size} for name, size in base.items()), {}):
            with contextlib.suppress(ProblemError):
                for seed in seeds:
                    self._planner.make(
                        Condition(kind="base", sizes=sizes, weights=seeds[0], seed=seed, refusable=True)
                    )
                return sizes
        return base

    def _planned(self, planned: tuple[Condition, ...]) -> Iterator[CasePlan]:
        """The first condition must be possible; the others are left out where they are not."""
        first = self._planner.make(planned[0])
        refuse_kept_state(first)
        yield first
        variations = self._planner.variations(planned[0], NAMES)
        planned += self._drawn_again(planned, first)
        for condition in planned[1:]:
            large = not self._planner.device(condition).is_host  # its memory may not suffice
            if condition.kind in ("base", "group", "declared", "full") and not large:
                yield self._planner.make(condition)
                continue
            plan = None
            if condition.variation is None or condition.variation in variations:
                plan = self._possible(condition, first)
            if plan is None and condition.kind == "sizes" and condition.variation is not None:
                plan = self._possible(msgspec.structs.replace(condition, variation=None), first)
            if plan is not None:
                yield plan

    def _possible(self, condition: Condition, first: CasePlan) -> CasePlan | None:
        """What the condition makes of the problem; None where that says nothing."""
        try:
            plan = self._planner.make(condition)
        except ProblemError:
            return None
        varies_weights = condition.kind == "weights" and condition.constants != "as constructed"
        unchanged = varies_weights and not plan.changed
        # Sizes that leave nothing to compute are often those that the model does not mean.
        emptied = _is_empty(plan) and not _is_empty(first)
        not_finite = is_finite(first.values) and not is_finite(plan.values)
        reads_memory = condition.variation == STRIDED and not returned_alike(plan, first)
        # What was replaced was the size of something.
        replaced = condition.variation in (CONCENTRATED, *CONSTANT_EVERYWHERE)
        resized = replaced and _shapes(plan) != _shapes(first)
        return None if unchanged or emptied or not_finite or reads_memory or resized else plan

    def _drawn_again(self, planned: tuple[Condition, ...], first: CasePlan) -> tuple[Condition, ...]:
        """Other sizes under another seed, where outputs are so small that one draw may miss a fault."""
        if sum(value.numel() for value in first.values) > _FEW_ELEMENTS:
            return ()
        sizes = [each for each in planned if each.kind == "sizes"]
        return tuple(
            msgspec.structs.replace(each, seed=seed, variation=None if each.variation else ONE_SIGN)
            for each, seed in zip(sizes, draw_seeds(len(sizes)), strict=True)
        )

    def _variations(self) -> tuple[str, ...]:
        """An absolute tolerance means the values that the problem shows."""
        if self._problem.tolerance is None:
            return NAMES
        return tuple(name for name in NAMES if name != LARGER)

    def _others(self, workloads: TrialSizes) -> list[Sizes]:
        # Those without names come on top: what is tried of the others stays what it is.
        most = self._settings.edge_shapes + len(ALIGNED) + _OF_EACH_UNNAMED * len(workloads.spelled_out)
        return list(itertools.islice(workloads.others(), most))

    def _weaknesses(self) -> Iterator[str]:
        """What makes the problem a weak one for a benchmark that compares with the usual tolerance.

        On its own draws, of the declared sizes where they can be had: means and norms shrink with the sizes.
        """
        base = [plan for plan in self.plans if plan.condition.kind == "base"]
        weights = [plan for plan in self.plans if plan.condition.kind == "weights"]
        others = [plan for plan in weights if not _same_state(plan.state, base[0].state)]
        by_weights = [self._planner.outputs_with(base[0], each) for each in others]
        nearest = drawn = base if base[0].encoded.tensors else base[:1]  # no seed changes what is not there
        if self._nearest and self._nearest != base[0].condition.sizes:
            with contextlib.suppress(ProblemError):
                nearest = [self._resized(plan, self._nearest) for plan in base[:2]]
        found = degeneracies(
            [plan.values for plan in nearest], [base[0].values, *by_weights] if others else ()
        )
        yield from (f"degenerate problem: {line}" for line in found)
        weak = frozenset.intersection(*(_usual_answers(plan) for plan in nearest))
        if weak:
            sizes = "" if nearest is drawn else f" on {_sizes_text(self._nearest or {})}"
            names = ", ".join(sorted(weak)).replace("input input", "input")
            yield f"weakly_checked: {names} would pass a tolerance of {LIMIT:g}{sizes}"

    def _resized(self, plan: CasePlan, sizes: Sizes) -> CasePlan:
        return self._planner.make(msgspec.structs.replace(plan.condition, sizes=sizes))

    def _try_declared(self, workloads: TrialSizes) -> Literal["often", "once", "no"]:
        elements = DECLARED_TIMES * self._settings.elements_at_most
        often = SizeBudget(elements=elements, operations=1000 * elements)
        if often.fits(workloads.declared) and not self._long:
            return "often"
        scale = 1 if self._on_host else _DEVICE_TIMES
        operations = int(scale * _OPERATIONS_A_SECOND * self._settings.declared_seconds)
        if workloads.declared.operations > operations:
            self.too_large = f"PyTorch needs over declared_seconds={self._settings.declared_seconds:g}"
        elif workloads.declared.elements > LARGE and (needed := _memory(workloads.declared)) > _memory_here():
            self.too_large = f"they need {needed / GIB:.1f} GiB, each core has {_memory_here() / GIB:.1f}"
        return "no" if self.too_large else "once"


def _memory(extent: Extent) -> int:
    """Bytes for judging one call; of the outputs the largest is known."""
    given = sum(math.prod(shape) for shape in (*extent.inputs, *extent.parameters))
    return _PER_INPUT * given + _PER_OUTPUT * extent.elements


def _memory_here() -> int:
    """Bytes that one of as many judges as there are cores may use."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(whole * MEMORY_SHARE / len(os.sched_getaffinity(0)))


def _usual_answers(plan: CasePlan) -> frozenset[str]:
    """Trivial answers within the tolerance that benchmarks use."""
    inputs = {name: each for name, each in plan.encoded.tensors.items() if each.is_floating_point()}
    expected = {}
    for number, value in enumerate(plan.values):
        rough = roughly(value)
        bound = LIMIT * (1.0 + torch.where(rough.reference.isfinite(), rough.reference.abs(), 0.0))
        expected[f"output {number}"] = msgspec.structs.replace(rough, bound=bound)
    return trivial_answers(inputs, expected)


def _shapes(plan: CasePlan) -> list[torch.Size]:
    return [value.shape for value in plan.values]


def _is_empty(plan: CasePlan) -> bool:
    return any(value.numel() == 0 for value in plan.values)


def _sizes_text(sizes: Sizes) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def _same_state(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    """As where a model has buffers alone, which no seed changes."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
