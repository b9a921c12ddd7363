// Residual addition and layer normalisation, in float32:
//   h = x + residual,    y = (h - mean(h)) / sqrt(mean((h - mean(h))^2) + eps) weight + bias.
//
// 1. FUSE: each row is added, averaged and normalised while it is in L1, so that memory sees x and residual once
//    and h and y once: the claim of fused kernels (Hsu et al. 2024, arXiv:2410.10989). Without it all rows are
//    added first and h is read again, as by two operators. Bandwidth is the limit.
// 2. Mean and variance are two sweeps over a row in L1: the sum of squares alone would cancel where the mean is
//    large beside the deviation. The second sweep corrects the mean by the mean deviation, which would be zero
//    without the first one's roundings (Chan, Golub and LeVeque 1983, doi:10.1080/00031305.1983.10483115).
// 3. UNROLL independent sums hide the latency of additions and multiply-adds.
// 4. STREAM writes y past the caches, which saves reading the lines that are about to be overwritten; it loses
//    where the consumer would have found y in a cache.
//
// The row is normalised as it is stored: h is rounded to its type first, as the backward pass will read it.

#include "statistics.hpp"

using rows::Index;
using rows::Statistics;
using vec::Element;
using vec::Floats;

namespace {

struct Columns {
    const Element* weight;
    const Element* bias;
    Index count;
    float eps;
};

inline void add_row(const Element* x, const Element* residual, Element* h, Index cols) {
    rows::for_each_vector(0, cols, [&](Index col, int, auto whole) {
        const Index rest = cols - col;
        rows::store(whole, h + col, rest,
                    rows::load(whole, x + col, rest) + rows::load(whole, residual + col, rest));
    });
}

inline Statistics row_statistics(const Element* h, Index cols, float eps) {
    const float count = static_cast<float>(cols);
    const float mean = rows::row_mean(h, cols);
    Floats deviations[UNROLL] = {};
    Floats squares[UNROLL] = {};
    rows::for_each_vector(0, cols, [&](Index col, int u, auto whole) {
        const Index rest = cols - col;
        const Floats deviation = rows::first_lanes(whole, rows::load(whole, h + col, rest) - mean, rest);
        deviations[u] += deviation;
        squares[u] += deviation * deviation;
    });
    const float correction = rows::sum_of(deviations) / count;
    const float variance = rows::sum_of(squares) / count - correction * correction;
    return {mean + correction, 1.0f / std::sqrt(rows::not_negative(variance) + eps)};
}

inline void normalise_row(const Element* h, Element* y, const Columns& columns) {
    const Statistics statistics = row_statistics(h, columns.count, columns.eps);
    const bool past = STREAM && vec::streamable(y);
    rows::for_each_vector(0, columns.count, [&](Index col, int, auto whole) {
        const Index rest = columns.count - col;
        const Floats normal = (rows::load(whole, h + col, rest) - statistics.mean) * statistics.inverse;
        rows::store(whole, y + col, rest,
                    normal * rows::load(whole, columns.weight + col, rest) +
                        rows::load(whole, columns.bias + col, rest),
                    past);
    });
}

}  // namespace

// x, residual [rows, cols] with strides in elements from row to row, weight, bias [cols], y, h [rows, cols].
// Always returns 0.
extern "C" int add_layer_norm(const Element* x, const Element* residual, const Element* weight,
                              const Element* bias, Element* y, Element* h, std::int64_t rows,
                              std::int64_t cols, std::int64_t stride_x, std::int64_t stride_residual,
                              double eps) {
    const Columns columns{weight, bias, cols, static_cast<float>(eps)};
#pragma omp parallel if (rows * cols >= rows::kParallelElements)
    {
        if (!FUSE) {
#pragma omp for schedule(static)
            for (std::int64_t row = 0; row < rows; ++row) {
                add_row(x + row * stride_x, residual + row * stride_residual, h + row * cols, cols);
            }
        }
#pragma omp for schedule(static)
        for (std::int64_t row = 0; row < rows; ++row) {
            if (FUSE) add_row(x + row * stride_x, residual + row * stride_residual, h + row * cols, cols);
            normalise_row(h + row * cols, y + row * cols, columns);
        }
        if (STREAM) vec::stream_fence();
    }
    return 0;
}
