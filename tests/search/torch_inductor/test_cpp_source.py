"""What Inductor generated becomes one C++ source, or is refused with what it is."""

import pytest

from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from pipeline.search.torch_inductor.cpp_source import wrap_cpp
from pipeline.search.torch_inductor.generated_code import CannotWrap, GeneratedCode

PROBLEM = Problem(
    kernel="double",
    dimensions={"rows": 4, "cols": 6},
    tensors={
        "x": Tensor(role="input", shape=("rows", "cols"), dtype="float32", layout="row_strided"),
        "w": Tensor(role="input", shape=("cols",), dtype="float32"),
        "y": Tensor(role="output", shape=("rows", "cols"), dtype="float32"),
    },
    scalars={"eps": 1e-5},
    attributes={},
    element="float32",
)
MODULE = """
cpp_fused_0 = async_compile.cpp_pybinding(['const float*', 'float*', 'const int64_t'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0, const int64_t ks0)
{
    out_ptr0[0] = in_ptr0[0];
}
''')

class Runner:
    def call(self, args):
        arg0_1, arg1_1, arg2_1, arg3_1, arg4_1 = args
        args.clear()
        s0 = arg1_1
        s1 = arg2_1
        s2 = arg3_1
        assert_size_stride(arg0_1, (s1, ), (1, ), 'input')
        assert_size_stride(arg4_1, (s0, s1), (s2, 1), 'input')
        buf0 = empty_strided_cpu((s0, 1), (1, s0), torch.float32)
        cpp_fused_0(arg4_1, buf0, s0*s1)
        del arg4_1
        buf1 = empty_strided_cpu((s0, s1), (s1, 1), torch.float32)
        cpp_fused_0(buf0, buf1, s2)
        buf2 = buf1; del buf1  # reuse
        return (buf2, )

def get_args():
    arg0_1 = rand_strided((6, ), (1, ), device='cpu', dtype=torch.float32)
    arg1_1 = 4
    arg4_1 = rand_strided((4, 6), (14, 1), device='cpu', dtype=torch.float32)
    return [arg0_1]
"""


def generated(module: str) -> GeneratedCode:
    """The code of one graph."""
    return GeneratedCode(modules=(module,), capability="CPU_CAPABILITY_AVX2", version="2.0")


def test_the_wrapper_becomes_the_entry() -> None:
    """Arguments in the order of our ABI, symbols by their tensors, the result in the output's memory."""
    text = wrap_cpp(generated(MODULE), PROBLEM, "double_it")
    head = (
        'extern "C" int double_it(const float* x, const float* w, float* y, std::int64_t rows,'
        " std::int64_t cols, std::int64_t stride_of_x, double eps) {"
    )
    assert head in text
    for line in (
        "#define CPU_CAPABILITY_AVX2",
        "static void cpp_fused_0(const float* in_ptr0",
        "auto* arg0_1 = w;",
        "auto* arg4_1 = x;",
        "const std::int64_t s0 = rows;",
        "const std::int64_t s1 = cols;",
        "const std::int64_t s2 = stride_of_x;",
        "if (!memory_of_buf0) return 1;",
        "cpp_fused_0(reinterpret_cast<const float*>(arg4_1), reinterpret_cast<float*>(buf0), (s0 * s1));",
        "auto* buf1 = y;",
        "auto* buf2 = buf1;",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (
            "cpp_fused_0(buf0, buf1, s2)",
            "extern_kernels.mm(arg4_1, buf0, out=buf1)",
            "turns a part of it into a call of a library: extern_kernels.mm",
        ),
        ("buf2 = buf1; del", "buf2 = reinterpret_tensor(buf1, (s0,), (1,), 0); del", "no kernel: buf2"),
        ("(s0, s1), (s1, 1), torch.float32", "(s0, s1), (1, s0), torch.float32", "lays its result buf1 out"),
        ("(s1, 1), torch.float32", "(s1, 1), torch.float64", "result is float64, y is another type"),
        ("return (buf2, )", "return (buf2, buf0, )", "returns 2 values, expected 1"),
        ("rand_strided((6, )", "rand_strided((5, )", "argument arg0_1 is none of the problem's inputs"),
        ("def call(", "def called(", "generated no function `call`"),
        ("s0*s1)", "s0**s1)", "a size that is s0 ** s1"),
    ],
)
def test_what_is_no_kernel_is_told(before: str, after: str, reason: str) -> None:
    """A library call, a view, another layout: each with its reason."""
    assert before in MODULE
    with pytest.raises(CannotWrap) as caught:
        wrap_cpp(generated(MODULE.replace(before, after)), PROBLEM, "double_it")
    assert reason in str(caught.value)
