// Gradients of root-mean-square normalisation y = x r weight, r = 1 / sqrt(mean(x^2) + eps), in float32:
//   dx = r (g - x r^2 mean(g x)) with g = dy weight,    dweight = sum over rows of dy x r.
//
// 1. Two passes over a row. The first gives sum(x^2) and sum(dy weight x); the second finds the row in L1 or L2
//    and writes dx. Memory sees x and dy once and dx once, and bandwidth is the limit.
// 2. dweight is a sum over rows, the other way round. It is split: rows are cut into at most CHUNKS pieces, each
//    with a float32 sum of its own, to which the second pass adds; afterwards the pieces are added up column by
//    column, in order. Pieces depend on the shape, not on the threads, so equal inputs give equal bits whatever
//    the number of threads; more pieces mean more threads and more traffic to their sums.
// 3. UNROLL independent vectors hide the latency of the multiply-adds of the first pass.
//
// Without rows dweight is 0.

#include <algorithm>
#include <type_traits>

#include "../vector.hpp"

using vec::Element;
using vec::Floats;

namespace {

constexpr std::ptrdiff_t kStep = std::ptrdiff_t{UNROLL} * LANES;
constexpr std::ptrdiff_t kParallelElements = 16384;  // below, starting the threads takes longer than the work

template <class Whole>
inline Floats load(Whole, const Element* from, std::ptrdiff_t count) {
    return Whole::value ? vec::load(from) : vec::load_some(from, count, 0.0f);
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

struct Row {
    const Element* x;
    const Element* dy;
    Element* dx;
};

// Writes dx and adds to `sums`, which has room for whole vectors.
inline void row_gradient(Row row, const Element* weight, std::ptrdiff_t cols, float eps, float* sums) {
    Floats squares[UNROLL] = {};
    Floats products[UNROLL] = {};
    for_each_vector(cols, [&](std::ptrdiff_t col, int u, auto whole) {
        const Floats x = load(whole, row.x + col, cols - col);
        squares[u] += x * x;
        products[u] += load(whole, row.dy + col, cols - col) * load(whole, weight + col, cols - col) * x;
    });
    for (int u = 1; u < UNROLL; ++u) {
        squares[0] += squares[u];
        products[0] += products[u];
    }
    const float count = static_cast<float>(cols);
    const float inverse = 1.0f / std::sqrt(vec::reduce_sum(squares[0]) / count + eps);
    const Floats factor = vec::splat(inverse);
    // mean(g x) r, times the other r where x is: a product of three could overflow before it is small again.
    const Floats slope = vec::splat(vec::reduce_sum(products[0]) / count * inverse);
    for_each_vector(cols, [&](std::ptrdiff_t col, int, auto whole) {
        const Floats normal = load(whole, row.x + col, cols - col) * factor;
        const Floats dy = load(whole, row.dy + col, cols - col);
        const Floats gradient = factor * (dy * load(whole, weight + col, cols - col) - normal * slope);
        vec::store_raw(sums + col, vec::load_raw<Floats>(sums + col) + dy * normal);
        store(whole, row.dx + col, cols - col, gradient);
    });
}

}  // namespace

// x, dy [rows, cols] with strides in elements from row to row, weight[cols], dx[rows, cols], dweight[cols].
// 1: no memory for the sums.
extern "C" int rms_norm_backward(const Element* x, const Element* weight, const Element* dy, Element* dx,
                                 Element* dweight, std::int64_t rows, std::int64_t cols,
                                 std::int64_t stride_x, std::int64_t stride_dy, double eps) {
    static thread_local vec::Scratch scratch;
    const std::int64_t piece = std::max<std::int64_t>((rows + CHUNKS - 1) / CHUNKS, 1);
    const std::int64_t pieces = (rows + piece - 1) / piece;
    const std::int64_t width = (cols + LANES - 1) / LANES * LANES;
    auto* sums = static_cast<float*>(scratch.reserve((pieces * width + 1) * sizeof(float)));
    if (sums == nullptr) return 1;
#pragma omp parallel if (rows * cols >= kParallelElements)
    {
#pragma omp for schedule(static)
        for (std::int64_t index = 0; index < pieces; ++index) {
            float* own = sums + index * width;
            std::fill(own, own + width, 0.0f);
            for (std::int64_t row = index * piece; row < std::min(rows, (index + 1) * piece); ++row) {
                row_gradient({x + row * stride_x, dy + row * stride_dy, dx + row * cols}, weight, cols,
                             static_cast<float>(eps), own);
            }
        }
#pragma omp for schedule(static)
        for (std::int64_t col = 0; col < width; col += LANES) {
            Floats total{};
            for (std::int64_t index = 0; index < pieces; ++index) {
                total += vec::load_raw<Floats>(sums + index * width + col);
            }
            if (col + LANES <= cols) {
                vec::store(dweight + col, total);
            } else {
                vec::store_some(dweight + col, cols - col, total);
            }
        }
    }
    return 0;
}
