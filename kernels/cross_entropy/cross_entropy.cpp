// Cross entropy of each row with the index of its class: loss = log(sum(exp(x))) - x[target], in float32.
//
// The logits are read and nothing of their size is written: no softmax, no logarithms of it (Hsu et al. 2024,
// arXiv:2410.10989). One read or two (row_sum.hpp); the limit is the exponential, about 20 vector instructions,
// until the rows of all threads outgrow the caches. Rows are shared among threads.

#include "row_sum.hpp"

using vec::Element;

// logits[rows, classes] with stride_logits elements from row to row, target[rows] -> loss[rows]. Always returns 0.
extern "C" int cross_entropy(const Element* logits, const std::int64_t* target, Element* loss,
                             std::int64_t rows, std::int64_t classes, std::int64_t stride_logits) {
#pragma omp parallel for schedule(static) if (rows * classes >= rows::kParallelElements)
    for (std::int64_t row = 0; row < rows; ++row) {
        const Element* x = logits + row * stride_logits;
        const auto [maximum, sum] = rows::exponential_sum(x, classes);
        loss[row] = vec::to_element(std::log(sum) + (maximum - vec::to_float(x[target[row]])));
    }
    return 0;
}
