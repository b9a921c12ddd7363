// Gradients of residual addition and layer normalisation, in float32. With n = (h - mean(h)) r, r the inverse of
// the standard deviation, and g = dy weight:
//   dx = dh + r (g - mean(g) - n mean(g n)),    dweight = sum over rows of dy n,    dbias = sum over rows of dy.
//
// 1. h is what the forward pass stored; dh is its own gradient, from the residual path. dx is the gradient of both
//    x and residual. Statistics are computed again, as in the forward pass: two sweeps in L1 or L2.
// 2. dweight and dbias are sums over rows, the other way round. They are split: rows are cut into at most CHUNKS
//    pieces, each with float32 sums of its own; afterwards the pieces are added up column by column, in order.
//    Pieces depend on the shape, not on the threads, so equal inputs give equal bits.
// 3. FUSE adds to those sums in the sweep that writes dx (Hsu et al. 2024, arXiv:2410.10989). Without it, h and
//    dy are read once more, after all of dx.
// 4. UNROLL independent vectors hide the latency of the sums.
//
// No gradient depends on the values of bias.

#include "statistics.hpp"

using rows::Index;
using rows::Statistics;
using vec::Element;
using vec::Floats;

namespace {

struct Row {
    const Element* h;
    const Element* dy;
    const Element* dh;
    Element* dx;
};

struct Sums {
    float* weight;
    float* bias;
};

// `sums` have room for whole vectors.
inline void add_to(const Sums& sums, Index col, Floats dy, Floats normal) {
    vec::store_raw(sums.weight + col, vec::load_raw<Floats>(sums.weight + col) + dy * normal);
    vec::store_raw(sums.bias + col, vec::load_raw<Floats>(sums.bias + col) + dy);
}

// Writes dx and, with FUSE, adds to `sums`.
inline Statistics row_gradient(const Row& row, const Element* weight, Index cols, float eps, const Sums& sums) {
    const float first_mean = rows::row_mean(row.h, cols);
    Floats deviations[UNROLL] = {};
    Floats squares[UNROLL] = {};
    Floats gradients[UNROLL] = {};
    Floats products[UNROLL] = {};
    rows::for_each_vector(0, cols, [&](Index col, int u, auto whole) {
        const Index rest = cols - col;
        const Floats deviation = rows::first_lanes(whole, rows::load(whole, row.h + col, rest) - first_mean, rest);
        const Floats gradient = rows::load(whole, row.dy + col, rest) * rows::load(whole, weight + col, rest);
        deviations[u] += deviation;
        squares[u] += deviation * deviation;
        gradients[u] += gradient;
        products[u] += gradient * deviation;
    });
    const float count = static_cast<float>(cols);
    const float correction = rows::sum_of(deviations) / count;
    const float mean = first_mean + correction;
    const float variance = rows::sum_of(squares) / count - correction * correction;
    const float inverse = 1.0f / std::sqrt(rows::not_negative(variance) + eps);
    const float shift = rows::sum_of(gradients) / count;
    const float slope = (rows::sum_of(products) / count - shift * correction) * inverse;
    rows::for_each_vector(0, cols, [&](Index col, int, auto whole) {
        const Index rest = cols - col;
        const Floats normal = (rows::load(whole, row.h + col, rest) - mean) * inverse;
        const Floats dy = rows::load(whole, row.dy + col, rest);
        const Floats gradient = dy * rows::load(whole, weight + col, rest);
        if (FUSE) add_to(sums, col, dy, normal);
        rows::store(whole, row.dx + col, rest,
                    rows::load(whole, row.dh + col, rest) + inverse * (gradient - shift - normal * slope));
    });
    return {mean, inverse};
}

inline void add_row(const Row& row, const Statistics& statistics, Index cols, const Sums& sums) {
    rows::for_each_vector(0, cols, [&](Index col, int, auto whole) {
        const Floats normal =
            (rows::load(whole, row.h + col, cols - col) - statistics.mean) * statistics.inverse;
        add_to(sums, col, rows::load(whole, row.dy + col, cols - col), normal);
    });
}

// The sums of all pieces, [pieces][2][width], added up in order.
inline void add_pieces(const float* sums, Index pieces, Index width, Index cols, Element* to) {
#pragma omp for schedule(static)
    for (Index col = 0; col < width; col += LANES) {
        Floats total{};
        for (Index index = 0; index < pieces; ++index) {
            total += vec::load_raw<Floats>(sums + index * 2 * width + col);
        }
        if (col + LANES <= cols) {
            vec::store(to + col, total);
        } else {
            vec::store_some(to + col, cols - col, total);
        }
    }
}

}  // namespace

// h, dy, dh [rows, cols] with strides in elements from row to row, weight, bias [cols], dx[rows, cols], dweight,
// dbias [cols]. 1: no memory for the sums.
extern "C" int add_layer_norm_backward(const Element* h, const Element* weight, const Element*,
                                       const Element* dy, const Element* dh, Element* dx, Element* dweight,
                                       Element* dbias, std::int64_t rows, std::int64_t cols,
                                       std::int64_t stride_h, std::int64_t stride_dy, std::int64_t stride_dh,
                                       double eps) {
    static thread_local vec::Scratch scratch;
    const std::int64_t piece = std::max<std::int64_t>((rows + CHUNKS - 1) / CHUNKS, 1);
    const std::int64_t pieces = (rows + piece - 1) / piece;
    const std::int64_t width = (cols + LANES - 1) / LANES * LANES;
    const auto floats = static_cast<std::size_t>(2 * pieces * width + 2 * rows + 1);
    auto* sums = static_cast<float*>(scratch.reserve(floats * sizeof(float)));
    if (sums == nullptr) return 1;
    auto* statistics = reinterpret_cast<Statistics*>(sums + 2 * pieces * width);
#pragma omp parallel if (rows * cols >= rows::kParallelElements)
    {
        const auto row_at = [&](std::int64_t row) {
            return Row{h + row * stride_h, dy + row * stride_dy, dh + row * stride_dh, dx + row * cols};
        };
        const auto sums_of = [&](std::int64_t index) {
            return Sums{sums + index * 2 * width, sums + (index * 2 + 1) * width};
        };
#pragma omp for schedule(static)
        for (std::int64_t index = 0; index < pieces; ++index) {
            const Sums own = sums_of(index);
            std::fill(own.weight, own.weight + 2 * width, 0.0f);
            for (std::int64_t row = index * piece; row < std::min(rows, (index + 1) * piece); ++row) {
                statistics[row] = row_gradient(row_at(row), weight, cols, static_cast<float>(eps), own);
            }
        }
        if (!FUSE) {
#pragma omp for schedule(static)
            for (std::int64_t index = 0; index < pieces; ++index) {
                for (std::int64_t row = index * piece; row < std::min(rows, (index + 1) * piece); ++row) {
                    add_row(row_at(row), statistics[row], cols, sums_of(index));
                }
            }
        }
        add_pieces(sums, pieces, width, cols, dweight);
        add_pieces(sums + width, pieces, width, cols, dbias);
    }
    return 0;
}
