// Gradient of softmax over rows: dx = y (dy - sum(y dy)) with y = softmax(x), float32 arithmetic throughout.
//
// 1. y is computed again from x, as where activations are not kept: it costs one exponential per element, and
//    memory sees x and dy once each instead of y as well.
// 2. Three passes over a row: maximum; exponentials e, kept in float32, with sum(e) and sum(e dy) at once; then
//    dx = e / sum(e) (dy - sum(e dy) / sum(e)). The row comes from L1 or L2 after the first pass. The limit is
//    the exponential, as in the forward kernel, until cols outgrows the L2 cache.
// 3. UNROLL independent vectors hide the latency of the two sums and of the polynomial.
//
// Rows are shared among threads, so a single long row uses one core. NaN, +infinity, or nothing but -infinity
// in a row make its gradient NaN; a masked (-infinity) element beside others has the gradient 0.

#include <type_traits>

#include "../vector.hpp"

using vec::Element;
using vec::Floats;

namespace {

constexpr std::ptrdiff_t kStep = std::ptrdiff_t{UNROLL} * LANES;
constexpr std::ptrdiff_t kParallelElements = 16384;  // below, starting the threads takes longer than the work

template <class Whole>
inline Floats load(Whole, const Element* from, std::ptrdiff_t count, float fill) {
    return Whole::value ? vec::load(from) : vec::load_some(from, count, fill);
}

template <class Whole>
inline void store(Whole, Element* to, std::ptrdiff_t count, Floats values) {
    if (Whole::value) {
        vec::store(to, values);
    } else {
        vec::store_some(to, count, values);
    }
}

// Calls body(col, u, whole) for every vector of a row, UNROLL of them at a time as long as they are whole.
template <class Body>
inline void for_each_vector(std::ptrdiff_t cols, Body body) {
    std::ptrdiff_t col = 0;
    for (; col + kStep <= cols; col += kStep) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) body(col + u * LANES, u, std::true_type{});
    }
    for (; col + LANES <= cols; col += LANES) body(col, 0, std::true_type{});
    if (col < cols) body(col, 0, std::false_type{});
}

// The comparison drops NaN; it comes back through the exponentials of its row.
inline float row_maximum(const Element* x, std::ptrdiff_t cols) {
    Floats maxima[UNROLL];
    for (auto& maximum : maxima) maximum = vec::splat(-INFINITY);
    for_each_vector(cols, [&](std::ptrdiff_t col, int u, auto whole) {
        maxima[u] = vec::maximum(load(whole, x + col, cols - col, -INFINITY), maxima[u]);
    });
    for (int u = 1; u < UNROLL; ++u) maxima[0] = vec::maximum(maxima[0], maxima[u]);
    return vec::reduce_maximum(maxima[0]);
}

struct Sums {
    float exponentials;
    float products;  // with dy
};

inline Sums row_sums(const Element* x, const Element* dy, std::ptrdiff_t cols, float* exponentials) {
    const Floats shift = vec::splat(row_maximum(x, cols));
    Floats sums[UNROLL] = {};
    Floats products[UNROLL] = {};
    for_each_vector(cols, [&](std::ptrdiff_t col, int u, auto whole) {
        const Floats exponential = vec::exp(load(whole, x + col, cols - col, -INFINITY) - shift);
        vec::store_raw(exponentials + col, exponential);
        sums[u] += exponential;
        products[u] += exponential * load(whole, dy + col, cols - col, 0.0f);
    });
    for (int u = 1; u < UNROLL; ++u) {
        sums[0] += sums[u];
        products[0] += products[u];
    }
    return {vec::reduce_sum(sums[0]), vec::reduce_sum(products[0])};
}

inline void row_gradient(const Element* x, const Element* dy, Element* dx, std::ptrdiff_t cols,
                         float* exponentials) {
    const Sums sums = row_sums(x, dy, cols, exponentials);
    const Floats factor = vec::splat(1.0f / sums.exponentials);
    const Floats mean = vec::splat(sums.products / sums.exponentials);
    for_each_vector(cols, [&](std::ptrdiff_t col, int, auto whole) {
        const Floats y = vec::load_raw<Floats>(exponentials + col) * factor;
        store(whole, dx + col, cols - col, y * (load(whole, dy + col, cols - col, 0.0f) - mean));
    });
}

}  // namespace

// x, dy [rows, cols] with strides in elements from row to row, dx[rows, cols]. 1: no memory for a row.
extern "C" int softmax_backward(const Element* x, const Element* dy, Element* dx, std::int64_t rows,
                                std::int64_t cols, std::int64_t stride_x, std::int64_t stride_dy) {
    int failed = 0;
#pragma omp parallel if (rows * cols >= kParallelElements) reduction(| : failed)
    {
        static thread_local vec::Scratch scratch;
        auto* exponentials = static_cast<float*>(scratch.reserve((cols + LANES) * sizeof(float)));
        failed = exponentials == nullptr;
#pragma omp for schedule(static)
        for (std::int64_t row = 0; row < rows; ++row) {
            if (failed) continue;
            row_gradient(x + row * stride_x, dy + row * stride_dy, dx + row * cols, cols, exponentials);
        }
    }
    return failed;
}
