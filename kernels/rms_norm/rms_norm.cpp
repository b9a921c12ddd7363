// Root-mean-square normalisation: y[r, c] = x[r, c] weight[c] / sqrt(mean(x[r, :]^2) + eps), in float32.
//
// 1. Two passes over a row: the sum of squares, then the scaled row. The second pass finds the row in L1 or
//    L2, so memory sees x once and y once, and bandwidth is the limit; the arithmetic is two multiply-adds
//    per element.
// 2. UNROLL independent sums hide the latency of the multiply-add (4 cycles, two per cycle): a single chain
//    would be slower than the L1 cache.
// 3. PREFETCH asks for the next row while this one is scaled. Hardware prefetchers follow a row but stop at
//    a page's end, and rows of a padded tensor do not continue each other.
// 4. STREAM writes y past the caches, which saves reading the lines that are about to be overwritten; it
//    loses where the consumer would have found y in a cache.
//
// Rows are shared among threads, so a single row uses one core. Squares are float32: beyond 1.8e19 they are
// infinite and the row becomes 0, as in PyTorch.

#include "../vector.hpp"

using vec::Element;
using vec::Floats;

namespace {

constexpr std::ptrdiff_t kStep = std::ptrdiff_t{UNROLL} * LANES;
constexpr std::ptrdiff_t kParallelElements = 16384;  // below, starting the threads takes longer than the work
constexpr std::size_t kLine = 64;                    // bytes of a cache line

inline float row_squares(const Element* x, std::ptrdiff_t cols) {
    Floats sums[UNROLL] = {};
    std::ptrdiff_t col = 0;
    for (; col + kStep <= cols; col += kStep) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            const Floats values = vec::load(x + col + u * LANES);
            sums[u] += values * values;
        }
    }
    for (; col < cols; col += LANES) {
        const bool whole = col + LANES <= cols;
        const Floats values = whole ? vec::load(x + col) : vec::load_some(x + col, cols - col, 0.0f);
        sums[0] += values * values;
    }
    for (int u = 1; u < UNROLL; ++u) sums[0] += sums[u];
    return vec::reduce_sum(sums[0]);
}

inline void prefetch_at(const Element* next, std::ptrdiff_t col) {
#if PREFETCH
    if (col * sizeof(Element) % kLine != 0) return;  // a step smaller than a line: once per line
    for (std::size_t byte = 0; byte < kStep * sizeof(Element); byte += kLine) {
        __builtin_prefetch(reinterpret_cast<const char*>(next + col) + byte);
    }
#else
    (void)next;
    (void)col;
#endif
}

struct Row {
    const Element* x;
    const Element* next;  // the row after it, or itself at the end
    Element* y;
};

inline void scale_row(Row row, const Element* weight, std::ptrdiff_t cols, float factor) {
    const Floats factors = vec::splat(factor);
    const bool past = STREAM && vec::streamable(row.y);
    std::ptrdiff_t col = 0;
    for (; col + kStep <= cols; col += kStep) {
        prefetch_at(row.next, col);
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            const std::ptrdiff_t at = col + u * LANES;
            const Floats values = vec::load(row.x + at) * factors * vec::load(weight + at);
            if (past) {
                vec::stream(row.y + at, values);
            } else {
                vec::store(row.y + at, values);
            }
        }
    }
    for (; col + LANES <= cols; col += LANES) {
        vec::store(row.y + col, vec::load(row.x + col) * factors * vec::load(weight + col));
    }
    if (col < cols) {
        const std::ptrdiff_t rest = cols - col;
        const Floats values = vec::load_some(row.x + col, rest, 0.0f);
        vec::store_some(row.y + col, rest, values * factors * vec::load_some(weight + col, rest, 0.0f));
    }
}

}  // namespace

// x[rows, cols] with stride_x elements from row to row, weight[cols], y[rows, cols]. Always returns 0.
extern "C" int rms_norm(const Element* x, const Element* weight, Element* y, std::int64_t rows,
                        std::int64_t cols, std::int64_t stride_x, double eps) {
#pragma omp parallel if (rows * cols >= kParallelElements)
    {
#pragma omp for schedule(static)
        for (std::int64_t index = 0; index < rows; ++index) {
            const Element* row = x + index * stride_x;
            const float mean = row_squares(row, cols) / static_cast<float>(cols);
            const float factor = 1.0f / std::sqrt(mean + static_cast<float>(eps));
            scale_row({row, index + 1 < rows ? row + stride_x : row, y + index * cols}, weight, cols, factor);
        }
        if (STREAM) vec::stream_fence();
    }
    return 0;
}
