"""Which operators of PyTorch compute something: a candidate that calls them lets PyTorch do its work.

In: the name of an operator. Out: whether it makes new values. Views, allocation, filling with constants or
random numbers, copies and casts do not; joining, padding and gathering count, because they are all that some
kernels do.
"""

_VIEWS = """
    _conj _neg_view _reshape_alias _unsafe_view alias as_strided atleast_1d atleast_2d atleast_3d
    broadcast_to chunk detach diagonal expand expand_as flatten imag lift lift_fresh movedim
    moveaxis mT narrow numpy_T permute real reshape reshape_as resolve_conj resolve_neg select slice
    split split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind unflatten
    unfold unsafe_chunk unsafe_split unsqueeze view view_as view_as_complex view_as_real
"""
_ALLOCATION = """
    arange empty empty_like empty_permuted empty_strided eye fill full full_like new_empty
    new_empty_strided new_full new_ones new_zeros ones ones_like resize resize_as scalar_tensor set
    zero zeros zeros_like bernoulli exponential normal rand rand_like randint randint_like randn
    randn_like randperm random uniform
"""
_COPIES = """
    _copy_from _copy_from_and_resize _pin_memory _to_copy alias_copy clone contiguous copy
    detach_copy expand_copy item lift_fresh_copy permute_copy pin_memory to transpose_copy t_copy
    type_as view_copy _local_scalar_dense bfloat16 double float half int long bool type
"""
_QUESTIONS = """
    _has_compatible_shallow_copy_type _is_zerotensor _nested_tensor_size _version data_ptr dense_dim
    device dim element_size equal is_complex is_conj is_contiguous is_floating_point is_inference
    is_leaf is_neg is_nonzero is_non_overlapping_and_dense is_pinned is_same_size is_set_to layout
    numel requires_grad result_type retain_grad retains_grad size storage_offset stride
    sym_is_contiguous sym_numel sym_size sym_storage_offset sym_stride
"""

JOINING = frozenset(
    f"aten::{name}"
    for name in (
        *("cat", "constant_pad_nd", "stack", "im2col", "flip", "roll", "repeat", "repeat_interleave"),
        "index_select",
    )
)
"""Computing where a kernel is for that alone; else they only bring inputs into another form."""

NOT_COMPUTING = frozenset(f"{_VIEWS} {_ALLOCATION} {_COPIES} {_QUESTIONS}".split())
_OWN = ("aten", "prims", "torchvision", "quantized", "mkldnn", "_quantized", "c10d", "inductor", "mkl")


def is_computing(name: str) -> bool:
    """Whether an operator computes: `aten::softmax`, `aten::add.Tensor`, `aten::add_` do, `aten::view` not.

    Operators of other libraries (a candidate's own) are not PyTorch's and count as not computing, markers of
    the profiler and of autograd neither.
    """
    library, separator, operator = name.partition("::")
    if not separator:
        library, operator = "aten", name
    if library not in _OWN:
        return False
    plain = operator.partition(".")[0]
    return plain not in NOT_COMPUTING and plain.removesuffix("_") not in NOT_COMPUTING
