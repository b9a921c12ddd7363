"""What Inductor generated for a GPU becomes one Triton source, or is refused with what it is."""

import ast

import msgspec
import pytest

from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from pipeline.search.torch_inductor.generated_code import CannotWrap, GeneratedCode, TritonKernel
from pipeline.search.torch_inductor.triton_source import wrap_triton

PROBLEM = Problem(
    kernel="double",
    dimensions={"rows": 4, "cols": 6},
    tensors={
        "x": Tensor(role="input", shape=("rows", "cols"), dtype="float16", layout="row_strided"),
        "w": Tensor(role="input", shape=("cols",), dtype="float16"),
        "y": Tensor(role="output", shape=("rows", "cols"), dtype="float16"),
    },
    scalars={"eps": 1e-5},
    attributes={},
    element="float16",
)
KERNEL = TritonKernel(
    name="triton_poi_0",
    text="@triton.jit\ndef triton_poi_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):\n    pass",
    parameters=("in_ptr0", "out_ptr0", "xnumel"),
    options={"XBLOCK": 128, "num_warps": 4, "num_stages": 1},
    configurations=2,
    before=("blocks = -(xnumel // -128)",),
    grid=("blocks", "1", "1"),
)
MODULE = """
triton_poi_0 = async_compile.triton('triton_poi_0', '''text''', device_str='cuda')

class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        arg0_1_size = arg0_1.size()
        s0 = arg0_1_size[0]
        s1 = arg0_1_size[1]
        assert_size_stride(arg0_1, (s0, s1), (s1, 1), 'input')
        with torch.cuda._DeviceGuard(0):
            torch.cuda.set_device(0)
            arg0_1 = copy_if_misaligned(arg0_1)
            ps0 = s0*s1
            buf0 = empty_strided_cuda((s0, 1), (1, s0), torch.float32)
            raw_stream0 = get_raw_stream(0)
            triton_poi_0.run(arg0_1, buf0, ps0, stream=raw_stream0)
            del arg0_1
            buf1 = empty_strided_cuda((s0, s1), (s1, 1), torch.float16)
            triton_poi_0.run(buf0, buf1, s0*s1, stream=raw_stream0)
            buf2 = buf1; del buf1  # reuse
        return (buf2, )
"""
FOUND = GeneratedCode(modules=(MODULE,), kernels=(KERNEL,), version="2.0")


def test_the_wrapper_becomes_the_entry() -> None:
    """Inputs in order, the result in the output's memory, every kernel with its grid and options."""
    text = wrap_triton(FOUND, PROBLEM, "launch")
    ast.parse(text)
    for line in (
        '"""What torch.compile (torch 2.0) generates for the reference, with symbolic sizes.',
        "(triton_poi_0: 2)",
        "def _run_triton_poi_0(in_ptr0, out_ptr0, xnumel):",
        "    blocks = -(xnumel // -128)",
        "    grid = (blocks, 1, 1)",
        "        triton_poi_0[grid](in_ptr0, out_ptr0, xnumel, XBLOCK=128, num_warps=4, num_stages=1)",
        "def launch(*, x, w, y, **unused):",
        "    arg1_1 = w",
        "    s1 = arg0_1_size[1]",
        "    ps0 = s0 * s1",
        "    buf0 = torch.empty_strided((s0, 1), (1, s0), dtype=torch.float32, device=x.device)",
        "    _run_triton_poi_0(arg0_1, buf0, ps0)",
        "    buf1 = y",
        "    buf2 = buf1",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "triton_poi_0.run(buf0, ",
            "extern_kernels.mm(buf0, ",
            "into a call of a library: extern_kernels.mm",
        ),
        ("triton_poi_0.run(buf0, ", "other.run(buf0, ", "calls other, which is none of its kernels"),
        (
            "(buf0, buf1,",
            "(reinterpret_tensor(buf0, (1,), (1,), 0), buf1,",
            "a kernel is called on reinterpret",
        ),
        ("(s1, 1), torch.float16", "(1, s0), torch.float16", "lays its result buf1 out as"),
        ("torch.float16)", "torch.float32)", "result is float32, y is another type"),
        ("arg0_1, arg1_1 = args", "arg0_1, arg1_1, arg2_1 = args", "takes 3 arguments, expected 2"),
        ("ps0 = s0*s1", "ps0 = float(s0)", "a step that is no kernel: ps0 = float(s0)"),
        ("def call(", "def other(", "generated no function `call`"),
    ],
)
def test_what_cannot_be_taken_is_told(old: str, new: str, words: str) -> None:
    """A library, a view, another layout, another type: each by its name."""
    found = msgspec.structs.replace(FOUND, modules=(MODULE.replace(old, new),))
    with pytest.raises(CannotWrap) as caught:
        wrap_triton(found, PROBLEM, "launch")
    assert words in str(caught.value)


def test_nothing_generated() -> None:
    """A reference that needs no kernel gives none."""
    with pytest.raises(CannotWrap, match="generated no Triton kernel"):
        wrap_triton(msgspec.structs.replace(FOUND, kernels=()), PROBLEM, "launch")


def test_results_with_rows_apart() -> None:
    """Inductor's are contiguous: an output that may have padded rows is refused."""
    padded = msgspec.structs.replace(PROBLEM.tensors["y"], layout="row_strided")
    problem = msgspec.structs.replace(PROBLEM, tensors=PROBLEM.tensors | {"y": padded})
    with pytest.raises(CannotWrap, match="results are contiguous"):
        wrap_triton(FOUND, problem, "launch")
