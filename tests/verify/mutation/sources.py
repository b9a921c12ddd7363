"""Small right kernels, in which every operator finds something."""

TRITON = '''"""A kernel – with a dash in its docstring, which is three bytes."""

import triton
import triton.language as tl


@triton.jit
def kernel(x, y, rows, cols, x_stride, y_stride, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Doc."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < cols)[None, :]
        values = tl.load(x + row[:, None] * x_stride + col[None, :], mask=mask, other=0.0).to(tl.float32)
        total += tl.exp(values - tl.max(values, axis=1)[:, None])
    tl.debug_barrier()
    tl.store(y + row * y_stride, tl.sum(total, axis=1) + eps, mask=row < rows)


def launch(*, x, y):
    kernel[(triton.cdiv(x.shape[0], 4),)](x, y, *x.shape, x.stride(0), y.stride(0), 1e-6, ROWS=4, BLOCK=64)
'''

CPP = """// A kernel: comments = code that is no code; for (;;) x < 1.0f;
#include "vector.hpp"
using Index = std::ptrdiff_t;
constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }
extern "C" int kernel(const Element* x, Element* y, Index rows, Index cols, Index stride_x, double eps) {
#pragma omp parallel for reduction(| : failed)
    for (Index row = 0; row < rows; ++row) {
        thread_local Scratch scratch;
        Floats sums[UNROLL] = {};
        Index col = 0;
        for (; col < cols; col += LANES) {
            const Floats values = vec::load_some(x + row * stride_x + col, cols - col, 0.0f);
            sums[0] += vec::exp(values - maximum);
        }
        write(y, std::min(ceil_div(cols, LANES), rows));
        y[row] = static_cast<float>(eps) + vec::reduce(sums[0]);
    }
    return 0;
}
"""
