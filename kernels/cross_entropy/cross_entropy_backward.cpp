// Gradient of cross entropy: dlogits = (softmax(logits) - [class is the target]) dloss, in float32.
//
// 1. The forward pass is computed again: the row's maximum and sum (row_sum.hpp), then dlogits in one more sweep.
//    Memory sees the logits once where a row fits L2, and dlogits once; the softmax is never stored (Hsu et al.
//    2024, arXiv:2410.10989).
// 2. The target's element is written last, so that the sweep compares no indices.
// 3. STREAM writes dlogits past the caches: nobody reads gradients of a vocabulary while they are there.
//
// The limit is the exponential. Rows are shared among threads.

#include "row_sum.hpp"

using rows::Index;
using vec::Element;
using vec::Floats;

namespace {

inline void row_gradient(const Element* x, Element* dx, Index classes, Index target, float dloss) {
    const auto [maximum, sum] = rows::exponential_sum(x, classes);
    const float shift = maximum;
    const float factor = 1.0f / sum;
    const auto gradient = [&](Floats values) { return vec::exp(values - shift) * factor * dloss; };
    const bool past = STREAM && vec::streamable(dx);
    rows::for_each_vector(0, classes, [&](Index col, int, auto whole) {
        const Index rest = classes - col;
        rows::store(whole, dx + col, rest, gradient(rows::load(whole, x + col, rest)), past);
    });
    const Floats of_target = gradient(vec::splat(vec::to_float(x[target]))) - dloss;
    vec::store_some(dx + target, 1, of_target);
}

}  // namespace

// logits[rows, classes] with stride_logits elements from row to row, target, dloss [rows] -> dlogits[rows, classes].
// Always returns 0.
extern "C" int cross_entropy_backward(const Element* logits, const std::int64_t* target, const Element* dloss,
                                      Element* dlogits, std::int64_t rows, std::int64_t classes,
                                      std::int64_t stride_logits) {
#pragma omp parallel if (rows * classes >= rows::kParallelElements)
    {
#pragma omp for schedule(static)
        for (std::int64_t row = 0; row < rows; ++row) {
            row_gradient(logits + row * stride_logits, dlogits + row * classes, classes, target[row],
                         vec::to_float(dloss[row]));
        }
        if (STREAM) vec::stream_fence();
    }
    return 0;
}
