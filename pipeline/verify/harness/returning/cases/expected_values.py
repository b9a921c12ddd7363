"""What a right candidate returns under each condition, known to the judge only.

In: a problem and its conditions. Out: `Case`s: a draft with its expected values, made in the judge's main
thread (a time limit on the problem's code needs signals) while other threads already try candidates.
"""

import contextlib
import copy
import faulthandler
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pipeline.records.record import Record
from pipeline.verify.candidates.model_problem import ProblemError, Tolerance
from pipeline.verify.harness.returning.cases.case_plans import Draft, Drafts, output_gradients
from pipeline.verify.harness.returning.cases.trial_conditions import Condition
from pipeline.verify.oracle.computing_operators import is_computing
from pipeline.verify.oracle.rounding.expectation import RandomReference, declared, expectation
from pipeline.verify.oracle.rounding.gradients import NoGradient, gradient_expectation
from pipeline.verify.oracle.rounding.wrapped_run import tensor_arguments
from pipeline.verify.oracle.tolerance import Expected
from pipeline.verify.oracle.trivial_answers import trivial_answers

NO_REASON = "no reason given"
_GRACE_SECONDS = 30.0
TOO_WIDE = 0.25  # of an output's spread: a bound wider than this tells nothing


class Case(Record, frozen=True, kw_only=True, eq=False):
    """One condition that is ready to be judged on."""

    draft: Draft
    expected: tuple[Expected, ...]
    trivial: frozenset[str]
    """Trivial answers that would pass."""
    computing: dict[str, int]
    """Operators that `Model` calls and that compute, with the elements of their largest tensor."""

    @property
    def condition(self) -> Condition:
        """What it is a case of."""
        return self.draft.condition


class GradientCase(Record, frozen=True, kw_only=True, eq=False):
    """A case with expected gradients."""

    case: Case
    expected: dict[str, Expected]
    """`gradient of input 0`, `gradient of weight`, ..."""


class Computing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the computing operators of PyTorch that run: name -> elements of the largest tensor."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: dict[str, int] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Otherwise PyTorch imports its compiler, about a second, to switch it off in the method below."""
        return False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN204
        result = function(*args, **(kwargs or {}))
        name = plain_name(function._schema.name)
        if is_computing(name):
            sizes = [each.numel() for each in (*args, result) if isinstance(each, torch.Tensor)]
            self.found[name] = max([self.found.get(name, 0), *sizes])
        return result


def plain_name(operator: str) -> str:
    """`aten::relu_` and `aten::relu.out` are `aten::relu`."""
    library, separator, name = operator.partition("::")
    return f"{library}{separator}{name.partition('.')[0].rstrip('_')}" if separator else operator


class _Overdue(BaseException):
    """The time is up; no Exception, which much code catches."""


@contextlib.contextmanager
def limited(seconds: float, what: str) -> Iterator[None]:
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


class Oracle:
    """Computes expected values of one problem."""

    def __init__(self, drafts: Drafts, tolerance: Tolerance | None) -> None:
        self._drafts = drafts
        self._tolerance = tolerance

    def draft(self, condition: Condition) -> Draft:
        """The condition without expected values; ProblemError where the problem does not allow it."""
        return self._drafts.make(condition)

    def case(self, draft: Draft) -> Case:
        """Expected values and bounds; ProblemError where `Model` is random."""
        expected = self._expected(draft)
        trivial = trivial_answers(
            {name: tensor for name, tensor in draft.encoded.tensors.items() if tensor.is_floating_point()},
            {f"output {number}": each for number, each in enumerate(expected)},
        )
        return Case(draft=draft, expected=expected, trivial=trivial, computing=self._computing(draft))

    def _expected(self, draft: Draft) -> tuple[Expected, ...]:
        try:
            found = expectation(draft.model, draft.encoded.copied().decode(), seed=draft.condition.seed)
        except RandomReference as error:
            raise ProblemError(f"Model is random: {error}") from error
        return tuple(self._widened(each) for each in found)

    def gradients(self, case: Case) -> GradientCase:
        """Expected gradients under `output_gradients`; ProblemError where there are none."""
        draft, encoded = case.draft, case.draft.encoded.copied()
        model = copy.deepcopy(draft.model)
        names = {id(tensor): name for name, tensor in (*encoded.tensors.items(), *model.named_parameters())}
        try:
            found = gradient_expectation(
                model, encoded.decode(), list(output_gradients(draft).values()), seed=draft.condition.seed
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

    def _computing(self, draft: Draft) -> dict[str, int]:
        with Computing() as mode, torch.no_grad():
            copy.deepcopy(draft.model)(*draft.encoded.copied().decode())
        found: dict[str, int] = mode.found
        return found


def finite(values: Sequence[torch.Tensor]) -> bool:
    """Whether all floating outputs are finite everywhere."""
    return all(bool(value.isfinite().all()) for value in values if value.is_floating_point())


def telling(case: Case) -> bool:
    """Whether the bounds are narrow enough that a wrong value would show."""
    for expected, output in zip(case.expected, case.draft.values, strict=True):
        if not output.is_floating_point():
            continue
        values = expected.reference[expected.reference.isfinite()]
        if values.numel() and float(expected.bound.median()) > TOO_WIDE * float(values.abs().max()):
            return False
    return True
