// Softmax over rows: y[r, c] = exp(x[r, c] - max) / sum, float32 arithmetic for every element type.
//
// 1. Three passes (ONLINE=0). Maximum; exponentials, kept in float32, and their sum; product with 1 / sum.
//    One exponential per element; the row is read from memory once and from L1 or L2 after that. Limit: the
//    exponential, about 20 vector instructions, until cols outgrows the L2 cache.
// 2. Online (ONLINE=1; Milakov and Gimelshein 2018, arXiv:1805.02867). Maximum and sum in one traversal,
//    each lane rescaling its own sum when its maximum grows, at one more exponential per UNROLL vectors; a
//    second traversal computes the exponentials again. Two exponentials per element and no buffer: for rows
//    beyond L2.
// 3. UNROLL independent vectors hide the latency of compare, add and the polynomial's chain of
//    multiply-adds.
// 4. STREAM writes y past the caches, which saves reading the lines that are about to be overwritten; it
//    loses where the consumer would have found y in a cache.
//
// Rows are shared among threads, so a single long row uses one core.
//
// NaN and infinities come out as in torch.softmax: a NaN or +infinity in a row, or nothing but -infinity,
// makes the row NaN; a masked (-infinity) element beside others is exactly 0.

#include "../vector.hpp"

#include <cfloat>

using vec::Element;
using vec::Floats;

namespace {

constexpr std::ptrdiff_t kStep = std::ptrdiff_t{UNROLL} * LANES;
constexpr std::ptrdiff_t kParallelElements = 16384;  // below, starting the threads takes longer than the work

// The maximum so far and the sum of exponentials relative to it.
struct Statistics {
    float maximum;
    float sum;
};

// Calls body(index, vectors) for UNROLL vectors at a time, then for single ones; -infinity fills the last.
template <class Body>
inline void for_each_block(const Element* x, std::ptrdiff_t cols, Body body) {
    std::ptrdiff_t col = 0;
    for (; col + kStep <= cols; col += kStep) {
        Floats block[UNROLL];
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) block[u] = vec::load(x + col + u * LANES);
        body(col, block);
    }
    for (; col < cols; col += LANES) {
        const bool whole = col + LANES <= cols;
        Floats block[1] = {whole ? vec::load(x + col) : vec::load_some(x + col, cols - col, -INFINITY)};
        body(col, block);
    }
}

// The comparison drops NaN; it comes back through the exponentials of its row.
inline float row_maximum(const Element* x, std::ptrdiff_t cols) {
    Floats maxima[UNROLL];
    for (auto& maximum : maxima) maximum = vec::splat(-INFINITY);
    for_each_block(x, cols, [&](std::ptrdiff_t, const auto& block) {
        int u = 0;
        for (const auto& values : block) {
            maxima[u] = vec::maximum(values, maxima[u]);
            ++u;
        }
    });
    for (int u = 1; u < UNROLL; ++u) maxima[0] = vec::maximum(maxima[0], maxima[u]);
    return vec::reduce_maximum(maxima[0]);
}

inline float row_exponentials(const Element* x, std::ptrdiff_t cols, float maximum, float* exponentials) {
    Floats sums[UNROLL] = {};
    const Floats shift = vec::splat(maximum);
    for_each_block(x, cols, [&](std::ptrdiff_t col, const auto& block) {
        int u = 0;
        for (const auto& values : block) {
            const Floats exponential = vec::exp(values - shift);
            vec::store_raw(exponentials + col + u * LANES, exponential);
            sums[u] += exponential;
            ++u;
        }
    });
    for (int u = 1; u < UNROLL; ++u) sums[0] += sums[u];
    return vec::reduce_sum(sums[0]);
}

inline Statistics row_online(const Element* x, std::ptrdiff_t cols) {
    // Finite, so that a lane that has seen nothing but -infinity rescales by exp(0), not by exp(NaN).
    Floats maximum = vec::splat(-FLT_MAX);
    Floats sum{};
    for_each_block(x, cols, [&](std::ptrdiff_t, const auto& block) {
        Floats larger = maximum;
        for (const auto& values : block) larger = vec::maximum(values, larger);
        Floats block_sum{};
        for (const auto& values : block) block_sum += vec::exp(values - larger);
        sum = sum * vec::exp(maximum - larger) + block_sum;
        maximum = larger;
    });
    const float row = vec::reduce_maximum(maximum);
    return {row, vec::reduce_sum(sum * vec::exp(maximum - vec::splat(row)))};
}

// y = scaled(col), whole vectors past the caches where that is asked for and the row is aligned.
template <class Scaled>
inline void write_row(Element* y, std::ptrdiff_t cols, Scaled scaled) {
    const bool past = STREAM && vec::streamable(y);
    std::ptrdiff_t col = 0;
    for (; col + kStep <= cols; col += kStep) {
        Floats block[UNROLL];
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) block[u] = scaled(col + u * LANES);
        for (int u = 0; u < UNROLL; ++u) {
            if (past) {
                vec::stream(y + col + u * LANES, block[u]);
            } else {
                vec::store(y + col + u * LANES, block[u]);
            }
        }
    }
    for (; col + LANES <= cols; col += LANES) vec::store(y + col, scaled(col));
    if (col < cols) vec::store_some(y + col, cols - col, scaled(col));
}

inline void row_softmax(const Element* x, Element* y, std::ptrdiff_t cols, float* exponentials) {
#if ONLINE
    (void)exponentials;
    const auto [maximum, sum] = row_online(x, cols);
    const Floats shift = vec::splat(maximum);
    const Floats factor = vec::splat(1.0f / sum);
    write_row(y, cols, [&](std::ptrdiff_t col) {
        const bool whole = col + LANES <= cols;
        const Floats values = whole ? vec::load(x + col) : vec::load_some(x + col, cols - col, -INFINITY);
        return vec::exp(values - shift) * factor;
    });
#else
    const float sum = row_exponentials(x, cols, row_maximum(x, cols), exponentials);
    const Floats factor = vec::splat(1.0f / sum);
    write_row(y, cols,
              [&](std::ptrdiff_t col) { return vec::load_raw<Floats>(exponentials + col) * factor; });
#endif
}

}  // namespace

// x[rows, cols] with stride_x elements from row to row, y[rows, cols]. Returns 1 where there is no memory.
extern "C" int softmax(const Element* x, Element* y, std::int64_t rows, std::int64_t cols,
                       std::int64_t stride_x) {
    int failed = 0;
#pragma omp parallel if (rows * cols >= kParallelElements) reduction(| : failed)
    {
        float* exponentials = nullptr;
#if !ONLINE
        thread_local vec::Scratch scratch;
        const auto vectors = static_cast<std::size_t>((cols + LANES - 1) / LANES);
        exponentials = static_cast<float*>(scratch.reserve(vectors * LANES * sizeof(float)));
        failed |= exponentials == nullptr && vectors > 0;
#endif
#pragma omp for schedule(static)
        for (std::int64_t row = 0; row < rows; ++row) {
            if (!failed) row_softmax(x + row * stride_x, y + row * cols, cols, exponentials);
        }
        if (STREAM) vec::stream_fence();
    }
    return failed;
}
