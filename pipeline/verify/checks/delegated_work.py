"""Checks whether the candidate's own kernels did the work, once its values are right.

In: what was observed during its calls, and the operators that `Model` itself calls. Out: a `Failure` that
names what PyTorch computed instead, or a note on the part that PyTorch computed.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.harness.messages import Launches, Observed
from pipeline.verify.harness.model_cases import plain_name
from pipeline.verify.oracle.computing_operators import JOINING

_OF_AUTOGRAD = ("_backward", "_backward_data")
_DIFFERENTIATED = {
    "threshold": ("relu", "clamp_min"),
    "native_batch_norm": ("native_batch_norm_legit", "batch_norm"),
    "elu": ("celu", "selu"),
    "embedding_dense": ("embedding",),
    "max_pool2d_with_indices": ("max_pool2d",),
    "prelu_kernel": ("prelu",),
}
"""Operators whose gradients have an operator by another name."""
_PRODUCT, _SUM, _SIGMOID, _ORDER = "aten::mm", "aten::sum", "aten::sigmoid", "aten::sort"
_CONVOLUTIONS = (
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    *("convolution", "_convolution", "convolution_overrideable", "mkldnn_convolution", "thnn_conv2d"),
    *("_slow_conv2d_forward", "slow_conv3d", "slow_conv3d_forward"),
    *("slow_conv_dilated2d", "slow_conv_dilated3d"),
    *("slow_conv_transpose2d", "slow_conv_transpose3d", "_conv_depthwise2d", "conv_depthwise3d"),
    *("cudnn_convolution", "cudnn_convolution_transpose", "miopen_convolution"),
)
_SAME = {
    "native_batch_norm": (
        *("batch_norm", "instance_norm", "_batch_norm_impl_index", "_native_batch_norm_legit"),
        *("_native_batch_norm_legit_no_training", "_batch_norm_with_update", "_batch_norm_no_update"),
        *("cudnn_batch_norm", "miopen_batch_norm"),
    ),
    "native_layer_norm": ("layer_norm",),
    "native_group_norm": ("group_norm",),
    "_fused_rms_norm": ("rms_norm",),
    "max_pool2d_with_indices": ("max_pool2d", "mkldnn_max_pool2d"),
    "max_pool3d_with_indices": ("max_pool3d",),
    "_adaptive_avg_pool2d": ("adaptive_avg_pool2d",),
    "_adaptive_avg_pool3d": ("adaptive_avg_pool3d",),
    "scaled_dot_product_attention": (
        *("_scaled_dot_product_attention_math", "_scaled_dot_product_flash_attention_for_cpu"),
        *("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention"),
        *("_scaled_dot_product_cudnn_attention", "_scaled_dot_product_fused_attention_overrideable"),
    ),
}
"""Operators, and others that call them or that they call: one computation is seen under all these names."""
_MADE_OF = {
    **{f"aten::{name}": (f"aten::{one}",) for one, names in _SAME.items() for name in names},
    **{f"aten::{name}": (_PRODUCT,) for name in _CONVOLUTIONS},
    "aten::matmul": (_PRODUCT,),
    "aten::addmm": (_PRODUCT, "aten::add"),
    "aten::addmv": (_PRODUCT, "aten::add"),
    "aten::addbmm": (_PRODUCT, "aten::add"),
    "aten::baddbmm": (_PRODUCT, "aten::add"),
    "aten::linear": (_PRODUCT, "aten::add"),
    "aten::bmm": (_PRODUCT,),
    "aten::mv": (_PRODUCT,),
    "aten::dot": (_PRODUCT,),
    "aten::addcmul": ("aten::mul", "aten::add"),
    "aten::addcdiv": ("aten::div", "aten::add"),
    "aten::sub": ("aten::add",),
    "aten::rsub": ("aten::add",),
    "aten::lerp": ("aten::mul", "aten::add"),
    "aten::relu": ("aten::clamp",),
    "aten::clamp_min": ("aten::clamp",),
    "aten::clamp_max": ("aten::clamp",),
    "aten::threshold": ("aten::clamp",),
    "aten::hardtanh": ("aten::clamp",),
    **dict.fromkeys(("aten::gt", "aten::ge", "aten::lt", "aten::le"), ("aten::clamp",)),
    "aten::maximum": ("aten::clamp",),
    "aten::minimum": ("aten::clamp",),
    "aten::mean": (_SUM,),
    "aten::nansum": (_SUM,),
    "aten::silu": (_SIGMOID, "aten::mul"),
    "aten::tanh": (_SIGMOID,),
    "aten::norm": (_SUM,),
    "aten::linalg_vector_norm": (_SUM,),
    "aten::var_mean": ("aten::var",),
    "aten::std": ("aten::var",),
    "aten::std_mean": ("aten::var",),
    "aten::max": (_ORDER,),
    "aten::min": (_ORDER,),
    "aten::amax": (_ORDER,),
    "aten::amin": (_ORDER,),
    "aten::aminmax": (_ORDER,),
    "aten::argmax": (_ORDER,),
    "aten::argmin": (_ORDER,),
    "aten::argsort": (_ORDER,),
    "aten::kthvalue": (_ORDER,),
    "aten::topk": (_ORDER,),
    "aten::log_softmax": ("aten::softmax",),
    "aten::_log_softmax": ("aten::softmax",),
    "aten::_softmax": ("aten::softmax",),
}
"""Operators that are others in one, or others by another name: a scale, a bias or a sign more makes no other
computation of it."""

_LAYERS = {
    **{f"aten::{name}": "convolution" for name in _CONVOLUTIONS},
    **{f"aten::{name}": f"aten::{name}" for names in _SAME.values() for name in names},
    **dict.fromkeys(("aten::linear", "aten::matmul", "aten::softmax", "aten::log_softmax"), "composite"),
}
"""Operators that call others of the same part, so that their calls are not added to those of the others."""
_DEAR = frozenset((_PRODUCT, "aten::softmax", *(f"aten::{name}" for name in _SAME)))


_ON_HOST = ("numpy:", "python:")
_Kernels = frozenset[tuple[str, str]]


def computing_kernels(calls: Iterable[Observed]) -> _Kernels:
    """Kind and name of those that computed in any call."""
    return frozenset(
        (each.kind, each.name)
        for observed in calls
        for each in observed.launches
        if each.count and not each.copies
    )


def with_computing_kernels(observed: Observed, computing: _Kernels) -> Observed:
    """The same, of kernels that are known to compute: on some values a rectifier changes nothing."""
    launches = (
        msgspec.structs.replace(each, copies=each.copies and (each.kind, each.name) not in computing)
        for each in observed.launches
    )
    return msgspec.structs.replace(observed, launches=tuple(launches))


ORDERING = frozenset(
    f"aten::{name}"
    for name in (
        *("sort", "argsort", "topk", "kthvalue", "median", "mode"),
        *("nonzero", "unique", "_unique2", "unique2"),
    )
)
"""Operators that libraries compute from what PyTorch sorted, counted or summed up before."""


_SELECTING = frozenset(f"aten::{name}" for name in ("index", "index_select", "masked_select", "gather"))


def did_the_work(
    observed: Observed,
    reference: Mapping[str, int],
    *,
    called: Mapping[str, int] | None = None,
    small: bool = False,
    identity: bool = False,
) -> Failure | None:
    """Judge one call; `reference`: computing operators of `Model` on the same inputs, with their elements.

    `called`: how often it calls each; of two products, one may be left to PyTorch. `small`: so few elements
    in the output that an operator's result equals it by chance. `identity`: parameters are all 1 or 0 here,
    with which a scale or a bias by an own kernel changes nothing, and other calls have others.
    """
    operations = {plain_name(each.name): each.elements for each in observed.operations}
    if not own_launches(observed, reference):
        return _without_launches(observed, operations)
    wanted, found = _main_parts(reference), _parts(operations)
    some = _less_often(observed, called or {})
    left = [
        name
        for name, elements in wanted.items()
        if found.get(name, -1) < elements or (name in some and found[name] == elements)
    ]
    # What its native code calls of a library is not known by the names of PyTorch's operators.
    least = max(wanted.values(), default=0) / 2
    # How much native code had a library compute is not known.
    past = [
        name
        for name, elements in operations.items()
        if _is_past(name) and (elements >= least or not name.startswith(_ON_HOST))
    ]
    if wanted and len(left) <= len(past):
        return _tampered(f"PyTorch computed all that Model computes: {', '.join(operations)}")
    most = max(reference.values(), default=0)
    whole = {
        name: elements
        for name, elements in operations.items()
        if 2 * elements >= most and (name in reference or name not in JOINING)
    }
    read = {each.reads for each in own_launches(observed, reference)}
    ordering = all(name in ORDERING for name in reference)
    # Who only prepares weights has to compute something of what is large.
    large = _main_parts(
        {
            name: elements
            for name, elements in reference.items()
            if read != {"weights"} or 2 * elements >= most
        }
    )
    is_all = len(_main_parts(whole)) >= len(large) or large.keys() <= _parts(whole).keys()
    if reference and "input" not in read and not ordering and is_all:
        names = ", ".join(whole)
        return _tampered(f"PyTorch computed on the whole input before a kernel of its own saw it: {names}")
    mixed = not ordering and any(name in ORDERING for name in reference)
    moved = any(name not in JOINING for name in reference)
    for operation in observed.operations:
        if mixed and plain_name(operation.name) in ORDERING | _SELECTING:
            continue  # what selects among sorted elements returns them all where none drops out
        if moved and plain_name(operation.name) in JOINING:
            continue  # one of several outputs, as the state of a convolution; what is computed is another one
        if operation.beside_own and 2 * sum(operations.values()) <= sum(reference.values()):
            continue  # a state or a statistic next to what its own kernels computed
        if operation.with_own and len(left) > len(past) and any(wanted[name] == most for name in left):
            continue  # one of several outputs, of which its own kernels computed another from all of an input
        if operation.is_output and not operation.from_own and not (small or identity):
            return _tampered(f"PyTorch computed the output: {operation.name}")
    return None


def _is_past(name: str) -> bool:
    """Past PyTorch's dispatcher: `at::native::softmax_cpu`, `libtorch_cpu.so:sgemm_`, `numpy:add`."""
    return "::" not in name or name.startswith("at::")


def _main_parts(operations: Mapping[str, int]) -> dict[str, int]:
    """What makes up each operator without its scale or bias."""
    found: dict[str, int] = {}
    for name, elements in operations.items():
        part = _MADE_OF.get(name, (name,))[0]
        found[part] = max(found.get(part, 0), elements)
    return found


def _parts(operations: Mapping[str, int]) -> dict[str, int]:
    """Operators taken apart, so that one way to call PyTorch is like another."""
    found: dict[str, int] = {}
    for name, elements in operations.items():
        for part in _MADE_OF.get(name, (name,)):
            found[part] = max(found.get(part, 0), elements)
    return found


def _less_often(observed: Observed, called: Mapping[str, int]) -> frozenset[str]:
    """Parts that PyTorch computed for the candidate, but not as often as `Model` has it compute them."""
    operations = collections.Counter[str]()
    for each in observed.operations:
        operations[plain_name(each.name)] += each.count
    found = _times(operations)
    return frozenset(name for name, times in _times(called).items() if found.get(name, 0) < times)


def _times(called: Mapping[str, int]) -> dict[str, int]:
    """Part -> how often it is computed: an operator that calls others is seen by all their names.

    Of what is dear alone: sums and functions of elements are merged, split and written in other ways.
    """
    layers: dict[str, dict[str, int]] = {}
    for name, times in called.items():
        part = _MADE_OF.get(name, (name,))[0]
        if part in _DEAR:
            layer = _LAYERS.get(name, "")
            found = layers.setdefault(part, {})
            found[layer] = found.get(layer, 0) + times if not layer else max(found.get(layer, 0), times)
    return {
        part: found.pop("convolution", 0) + max(found.values(), default=0) for part, found in layers.items()
    }


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
        who = "PyTorch" if any("::" in name for name in operations) else "the host"
        return _tampered(f"no kernel of its own computed, {who} did: {', '.join(operations)}{only}")
    if observed.native and not copies:
        return None  # native code that was called in a way that cannot be watched
    return _tampered(f"none of its kernels computed{only}" if only else "no kernel of its own was launched")


def differentiated(forward: Sequence[Observed], backward: Observed) -> Failure | None:
    """Whose own kernels are all of forward may not have PyTorch differentiate its own operators instead.

    A backward that is written in operators of PyTorch is a part that is left to PyTorch, and so is one that
    calls an operator for gradients on what its own forward kept.
    """
    if any(observed.operations for observed in forward):
        return None
    names = dict.fromkeys(plain_name(each.name) for each in backward.operations)
    computed = {_stem(name) for name in names if not name.endswith(_OF_AUTOGRAD)}
    found = [name for name in names if name.endswith(_OF_AUTOGRAD) and _forward_of(name) & computed]
    return _tampered(f"PyTorch computed the gradient: {', '.join(found)}") if found else None


def _forward_of(name: str) -> frozenset[str]:
    """The operators that one for gradients belongs to."""
    for ending in reversed(_OF_AUTOGRAD):
        name = name.removesuffix(ending)
    stem = _stem(name)
    return frozenset((stem, *_DIFFERENTIATED.get(stem, ())))


def _stem(name: str) -> str:
    """`aten::_softmax` and `aten::nll_loss_forward` as `softmax` and `nll_loss`."""
    return name.removeprefix("aten::").strip("_").removesuffix("_forward")


def computed_by_torch(calls: Sequence[Observed]) -> str | None:
    """What PyTorch computed in addition to the candidate's own kernels, or without any."""
    names = dict.fromkeys(plain_name(each.name) for observed in calls for each in observed.operations)
    if not names:
        return None
    own = any(observed.launches or observed.native for observed in calls)
    part = "a part" if own else "all, no kernel of its own was launched"
    return f"PyTorch computed {part}: {', '.join(names)}"


def _tampered(reason: str) -> Failure:
    return Failure(outcome=Outcome.TAMPERED, reason=reason)
