"""Did the candidate's own kernels do the work? Asked of candidates whose values are right.

In: what was observed during its calls, and the operators that `Model` itself calls. Out: a `Failure` that
names what PyTorch computed instead, or notes on what it computed beside.
"""

from collections.abc import Mapping, Sequence

from pipeline.candidates.messages import Launches, Observed
from pipeline.candidates.oracle import plain_name
from pipeline.records.outcome import Failure, Outcome

_OF_AUTOGRAD = ("_backward", "_backward_data")
_MADE_OF = {
    "aten::addmm": ("aten::mm", "aten::add"),
    "aten::addmv": ("aten::mv", "aten::add"),
    "aten::addbmm": ("aten::bmm", "aten::add"),
    "aten::baddbmm": ("aten::bmm", "aten::add"),
    "aten::linear": ("aten::mm", "aten::add"),
    "aten::mean": ("aten::sum",),
    "aten::silu": ("aten::sigmoid", "aten::mul"),
    "aten::norm": ("aten::linalg_vector_norm",),
    "aten::var_mean": ("aten::var",),
    "aten::std": ("aten::var",),
    "aten::std_mean": ("aten::var",),
    "aten::max": ("aten::amax",),
    "aten::min": ("aten::amin",),
}
"""Operators that are others in one; a scale or a bias more makes no other computation of it."""


def did_the_work(observed: Observed, reference: Mapping[str, int]) -> Failure | None:
    """Judge one call; `reference`: computing operators of `Model` on the same inputs, with their elements."""
    operations = {plain_name(each.name): each.elements for each in observed.operations}
    if not own_launches(observed, reference):
        return _without_launches(observed, operations)
    asked, found = _parts(reference), _parts(operations)
    left = [name for name, elements in asked.items() if found.get(name, -1) < elements]
    # What its native code calls of a library is not known by the names of PyTorch's operators.
    if asked and len(left) <= len(_past_the_dispatcher(operations)):
        return _tampered(f"PyTorch computed all that Model computes: {', '.join(operations)}")
    whole = [
        name for name, elements in operations.items() if 2 * elements >= max(reference.values(), default=0)
    ]
    direct = any(each.reads == "input" for each in own_launches(observed, reference))
    if reference and not direct and len(whole) >= len(reference):
        names = ", ".join(whole)
        return _tampered(f"PyTorch computed on the whole input before a kernel of its own saw it: {names}")
    for operation in observed.operations:
        if operation.is_output and not operation.from_own:
            return _tampered(f"PyTorch computed the output: {operation.name}")
    return None


def _past_the_dispatcher(operations: Mapping[str, int]) -> list[str]:
    """`at::native::softmax_cpu`, `cblas_sgemm`, `libtorch_cpu.so:sgemm_`."""
    return [name for name in operations if "::" not in name or name.startswith("at::")]


def _parts(operations: Mapping[str, int]) -> dict[str, int]:
    """Operators taken apart, so that one way to call PyTorch is like another."""
    found: dict[str, int] = {}
    for name, elements in operations.items():
        for part in _MADE_OF.get(name, (name,)):
            found[part] = max(found.get(part, 0), elements)
    return found


def own_launches(observed: Observed, reference: Mapping[str, int]) -> tuple[Launches, ...]:
    """Its own kernels that computed from the inputs; where `Model` only moves data, those that copy count."""
    # A function of a library that PyTorch brings along is seen as a launch and as an operator.
    borrowed = {each.name.rpartition(":")[2] for each in observed.operations if "::" not in each.name}
    return tuple(
        each
        for each in observed.launches
        if each.count
        and each.reads != "nothing"
        and not (reference and each.copies)
        and each.name not in borrowed
    )


def _without_launches(observed: Observed, operations: Mapping[str, int]) -> Failure | None:
    copies = [each.name for each in observed.launches if each.copies]
    constant = [each.name for each in observed.launches if each.reads == "nothing"]
    only = f"; its own kernels only copy ({', '.join(copies)})" if copies else ""
    only += f"; its own kernels never see an input ({', '.join(constant)})" if constant else ""
    if operations:
        return _tampered(f"no kernel of its own computed, PyTorch did: {', '.join(operations)}{only}")
    if observed.native and not copies:
        return None  # native code that was called in a way that cannot be watched
    return _tampered(f"no kernel of its own was launched{only}")


def differentiated(forward: Sequence[Observed], backward: Observed) -> Failure | None:
    """Whose own kernels are all of forward may not have PyTorch differentiate its own operators instead.

    A backward that is written in operators of PyTorch is a part that is left to PyTorch.
    """
    if any(observed.operations for observed in forward):
        return None
    names = dict.fromkeys(plain_name(each.name) for each in backward.operations)
    found = [name for name in names if name.endswith(_OF_AUTOGRAD)]
    return _tampered(f"PyTorch computed the gradient: {', '.join(found)}") if found else None


def beside(calls: Sequence[Observed]) -> str | None:
    """What PyTorch computed beside the candidate's own kernels."""
    names = dict.fromkeys(plain_name(each.name) for observed in calls for each in observed.operations)
    return f"PyTorch computed a part: {', '.join(names)}" if names else None


def _tampered(reason: str) -> Failure:
    return Failure(outcome=Outcome.TAMPERED, reason=reason)
