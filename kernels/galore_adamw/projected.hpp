// Moments of a projected gradient, r = projection^T g: what optimizers share that keep these in place of a
// matrix's own.
//
// A strip of columns goes through the product and becomes moments in the L2 cache: r is never stored.
// Products are those of matmul (../matmul/tile.hpp): MICRO_ROWS x MICRO_VECTORS vectors of sums in registers,
// blocks of BLOCK_K packed; pairs of bfloat16 on AVX512_BF16. The projection is packed once in each call and
// read by all threads.
#pragma once

#include "../adamw/step.hpp"
#include "../matmul/tile.hpp"

namespace projected {

using namespace product;

constexpr Index kParallelProducts = 1 << 17;  // below, starting the threads takes longer than the work
static_assert(STRIP <= kTileCols, "sums of a strip have the rows of a tile");

constexpr Index kPanels = kSteps * (STRIP + kCols);  // words of a strip's packed rows

struct Layer {
    const Element* w;
    const Element* projection;
    const Element* g;
    const float* m;
    const float* v;
    Element* w_out;
    float* m_out;
    float* v_out;
    Index rows, cols, rank;
};

// Words of a matrix whose `rows` rows are packed in blocks of `depth`: [blocks][rows][kStride].
constexpr Index packed_words(Index rows, Index depth) { return ceil_div(depth, BLOCK_K) * rows * kStride; }

struct Strip {
    Index col, count;
};

// Columns [begin, end) of a block of the projection's rows, each packed as a row.
inline void pack_transposed(const Layer& layer, Index k, Index begin, Index end, Packed* to) {
    constexpr Index kTogether = 16;  // a cache line or half of one
    alignas(64) Element columns[kTogether][BLOCK_K];
    const Index depth = std::min<Index>(BLOCK_K, layer.rows - k);
    for (Index col = begin; col < end; col += kTogether) {
        const Index count = std::min(kTogether, end - col);
        for (Index step = 0; step < depth; ++step) {
            const Element* from = layer.projection + (k + step) * layer.rank + col;
            for (Index i = 0; i < count; ++i) columns[i][step] = from[i];
        }
        for (Index i = 0; i < count; ++i) pack_a_row(columns[i], depth, to + (col + i) * kStride);
    }
}

// All of the projection's columns, by all threads of a region.
inline void pack_transposed(const Layer& layer, Packed* to) {
    const Index parts = ceil_div(layer.rank, 64);
#pragma omp for schedule(static) collapse(2)
    for (Index k = 0; k < layer.rows; k += BLOCK_K) {
        for (Index part = 0; part < parts; ++part) {
            pack_transposed(layer, k, part * 64, std::min(layer.rank, part * 64 + 64),
                            to + k / BLOCK_K * layer.rank * kStride);
        }
    }
}

// sums[rows][kSumStride] (+)= a block of a packed matrix times packed columns.
inline void multiply(const Packed* a, Index rows, const Packed* b, Index cols, Index depth, bool first,
                     float* sums) {
    const Index panel_rows = ceil_div(rows, ceil_div(rows, MICRO_ROWS));
    for (Index i = 0; i < rows; i += panel_rows) {
        for (Index j = 0; j < cols; j += kCols) {
            dispatch(std::min(panel_rows, rows - i), first, ceil_div(depth, kDepth), a + i * kStride,
                     b + j * kSteps, sums + i * kSumStride + j);
        }
    }
}

inline Floats load(const Element* from, Index rest) {
    return rest >= LANES ? vec::load(from) : vec::load_some(from, rest, 0.0f);
}

inline void store(Element* to, Index rest, Floats values) {
    if (rest >= LANES) return vec::store(to, values);
    vec::store_some(to, rest, values);
}

inline Floats load_floats(const float* from, Index rest) {
    if (rest >= LANES) return vec::load_raw<Floats>(from);
    float lanes[LANES] = {};
    __builtin_memcpy(lanes, from, static_cast<std::size_t>(rest) * sizeof(float));
    return vec::load_raw<Floats>(lanes);
}

inline void store_floats(float* to, Index rest, Floats values) {
    if (rest >= LANES) return vec::store_raw(to, values);
    float lanes[LANES];
    vec::store_raw(lanes, values);
    __builtin_memcpy(to, lanes, static_cast<std::size_t>(rest) * sizeof(float));
}

// A row of r -> the moments after the step; take(j, rest, r, n) gets n, what Adam changes by at the rate of
// 1.
template <class Take>
inline void update_moments(const Layer& layer, const adam::Constants& constants, const Strip& strip,
                           Index row, const float* sums, Take take) {
    const Index start = row * layer.cols + strip.col;
    for (Index j = 0; j < strip.count; j += LANES) {
        const Index at = start + j, rest = strip.count - j;
        const Floats r = vec::load_raw<Floats>(sums + j);
        const Floats m = adam::first_moment(constants, load_floats(layer.m + at, rest), r);
        const Floats v = adam::second_moment(constants, load_floats(layer.v + at, rest), r);
        store_floats(layer.m_out + at, rest, m);
        store_floats(layer.v_out + at, rest, v);
        take(j, rest, r, adam::change(constants, m, v));
    }
}

// sums[rank][kSumStride] = a strip's columns of r; visit(first row, rows) sees each block of g that was
// packed.
template <class Visit>
inline void project(const Layer& layer, const Packed* transposed, const Strip& strip, Packed* g, float* sums,
                    Visit visit) {
    for (Index k = 0; k == 0 || k < layer.rows; k += BLOCK_K) {
        const Index depth = std::min<Index>(BLOCK_K, layer.rows - k);
        pack_b(layer.g + k * layer.cols + strip.col, layer.cols, depth, strip.count, g);
        visit(k, depth);
        multiply(transposed + k / BLOCK_K * layer.rank * kStride, layer.rank, g, strip.count, depth, k == 0,
                 sums);
    }
}

// Columns of a strip: so many strips that every thread has equally many where that is possible.
inline Index strip_cols(Index cols, Index threads) {
    const Index strips = ceil_div(ceil_div(cols, STRIP), threads) * threads;
    return std::min<Index>(STRIP, ceil_div(ceil_div(cols, strips), kCols) * kCols);
}

}  // namespace projected
