"""What verdicts mean: an outcome in, its cause and what to look at out. The guide has the same causes."""

from pipeline.records.outcome import Outcome
from pipeline.records.record import Record

CONDITIONS = (
    "several draws of get_inputs(), with seeds that are chosen when the candidate is judged",
    "other values of the same kind: permuted, small, of one sign, constant rows, ends of the range",
    "every list of get_input_groups(), if the problem defines it",
    "other sizes, never above the declared ones: primes, 2^k + 1, odd numbers, 1; a candidate may refuse "
    "them by an exception, but not the declared sizes",
    "inputs that begin at the second element of their storage; a candidate may refuse these",
    "other weights: ModelNew is constructed with the seeds of Model and takes over its parameters by name",
    "1, 2, 3, 4 and 8 threads, if the candidate is native code",
    "the declared sizes, called several times in random order: cached results meet other data",
    "a kernel of the candidate's own (Triton, an extension, ctypes) must do the work, not PyTorch",
)
"""What a candidate must be right for, in the words of docs/guide/judge.md."""


class VerdictMeaning(Record, frozen=True, kw_only=True):
    """Of one outcome."""

    cause: str
    """As in the table of docs/guide/judge.md, in Markdown."""
    look_at: str
    """What the writer of the candidate checks first."""


_ENDED = "how its process ended"
_METADATA = (
    "number, type, shape or device of an output (strides with `verify=paranoid`); "
    "an output in an input's memory"
)
_UNJUDGED = "the problem is invalid; the harness failed"
MEANINGS = {
    Outcome.PASSED: VerdictMeaning(
        cause="correct under all conditions",
        look_at="measure it: it is right, now make it faster",
    ),
    Outcome.PASSED_REDUCED: VerdictMeaning(
        cause="correct as far as it could be tried here: on reduced sizes, or until the interpreter ran out "
        "of time; the reason says which",
        look_at="nothing is wrong; on a machine with the device, the declared sizes can be tried",
    ),
    Outcome.COMPILE_ERROR: VerdictMeaning(
        cause="not Python, no `ModelNew`, import or build failed, or a kernel does not compile for the "
        "target",
        look_at="the message of the compiler in the reason; the file must define a class ModelNew",
    ),
    Outcome.LAUNCH_ERROR: VerdictMeaning(
        cause="construction, call or `backward` raised an exception where none is allowed",
        look_at="the exception and the call in which it was raised; ModelNew takes the arguments of Model",
    ),
    Outcome.CRASHED: VerdictMeaning(
        cause=_ENDED, look_at="accesses through bad pointers, sizes and strides that are taken for granted"
    ),
    Outcome.TIMEOUT: VerdictMeaning(
        cause=_ENDED, look_at="loops that do not end, waits for other programs, work that grows too fast"
    ),
    Outcome.OUT_OF_MEMORY: VerdictMeaning(
        cause=_ENDED, look_at="temporary tensors: how large are they for the declared sizes?"
    ),
    Outcome.OUTPUT_LIMIT: VerdictMeaning(cause=_ENDED, look_at="what it prints and writes: far too much"),
    Outcome.TAMPERED: VerdictMeaning(
        cause="it changed PyTorch, the clock, the random state or the harness; writes or deletes files; "
        "works after `forward` returned; leaves processes; or its own kernels did not do the work",
        look_at="the operator of PyTorch that the reason names: the kernel must compute it itself",
    ),
    Outcome.WRONG_SHAPE: VerdictMeaning(
        cause=_METADATA, look_at="shape and number of the outputs for the sizes in the reason"
    ),
    Outcome.WRONG_DTYPE: VerdictMeaning(cause=_METADATA, look_at="dtype and device of the outputs"),
    Outcome.INPUT_MUTATED: VerdictMeaning(
        cause="an input changed, or was written and restored",
        look_at="in-place operators and stores through an input's pointer; write to a new tensor",
    ),
    Outcome.INPUT_REUSED: VerdictMeaning(
        cause="the outputs are correct, and an input was overwritten",
        look_at="the output's memory: allocate it instead of using an input's",
    ),
    Outcome.OUT_OF_BOUNDS: VerdictMeaning(
        cause="accessed memory outside of all tensors, also if what was read is dropped",
        look_at="masks of loads and stores, and the last block for sizes that are no multiple of it",
    ),
    Outcome.UNWRITTEN_OUTPUT: VerdictMeaning(
        cause="elements still hold what fresh memory was filled with",
        look_at="the grid and the tail: which elements of the output does no program write?",
    ),
    Outcome.NONDETERMINISTIC: VerdictMeaning(
        cause="a wrong value that changes between equal calls; a data race",
        look_at="two programs or threads that write one element, missing barriers, uninitialized memory",
    ),
    Outcome.WRONG_VALUE: VerdictMeaning(
        cause="an element beyond its bound, or all errors together too large; a result that depends on "
        "earlier calls, or changes with later ones; wrong or missing gradients",
        look_at="the element, what was got and expected, and the condition in the reason: if most elements "
        "are wrong, the formula is; if only some sizes are, the tail; if the error is just beyond its bound, "
        "the accumulation (use float32) or an epsilon",
    ),
    Outcome.DEVICE_UNAVAILABLE: VerdictMeaning(
        cause="it needs the device, refuses all sizes that can be tried here, or does what the interpreter "
        "cannot",
        look_at="what the reason names; judge it on a machine with the device",
    ),
    Outcome.BAD_PROBLEM: VerdictMeaning(
        cause=_UNJUDGED, look_at="nothing in the candidate: problem.py must be repaired"
    ),
    Outcome.NOT_JUDGED: VerdictMeaning(
        cause=_UNJUDGED, look_at="nothing in the candidate: submit it again, or see the reason"
    ),
    Outcome.UNSTABLE_TIMING: VerdictMeaning(
        cause="it passed, and its times scatter too much to be compared",
        look_at="nothing in the candidate: measure it again when less runs on the machine",
    ),
    Outcome.OVER_ROOFLINE: VerdictMeaning(
        cause="it passed, and is faster than the device can be",
        look_at="work that is skipped, cached or done outside of the call",
    ),
}
"""Outcomes that judging and measuring a candidate can have."""
