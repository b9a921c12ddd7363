// Scores of a block of keys for a block of queries, with a lane for each query: k q^T in place of q k^T.
//
// A block of 16 queries has too few rows to pay for the transposition of keys that nobody else sees. So the queries
// are transposed, once for all their keys: keys are broadcast as they lie, and what is done with the scores of a query
// - a maximum, a sum, a selection - goes from key to key within its lane, without reductions across lanes.
//
// The micro-kernel (micro_kernel.hpp) multiplies MICRO_ROWS keys with kColumns queries at a time.
#pragma once

#include <algorithm>

#include "micro_kernel.hpp"

namespace query_lanes {

using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

constexpr Index kBlock = BLOCK;  // queries, and keys, of a block
constexpr Index kParallelWork = 32768;  // multiply-adds; below, starting the threads takes longer

static_assert(BLOCK % (LANES * MICRO_VECTORS) == 0, "lanes of whole micro-kernels are queries");
static_assert(BLOCK % MICRO_ROWS == 0, "a micro-kernel has the keys of one block");

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }

// A block's rows[rows, depth], times a factor -> to[depth, kBlock]; lanes beyond the rows are zero.
inline void transpose_rows(const Element* from, Index rows, Index depth, float factor, float* to) {
    for (Index row = 0; row < kBlock; ++row) {
        for (Index at = 0; at < depth; ++at) {
            to[at * kBlock + row] = row < rows ? vec::to_float(from[row * depth + at]) * factor : 0.0f;
        }
    }
}

// Rows of a block as floats: where they lie, if they are floats already, all of them there and `width` wide, else in
// `copy`[kBlock, width], with zeros for what is missing.
inline const float* block_rows(const Element* from, Index rows, Index depth, Index width, float* copy) {
#if defined(ELEMENT_FLOAT32)
    if (rows == kBlock && width == depth) return from;
#endif
    for (Index row = 0; row < rows; ++row) {
        micro::widen(from + row * depth, copy + row * width, depth);
        std::fill(copy + row * width + depth, copy + (row + 1) * width, 0.0f);
    }
    std::fill(copy + rows * width, copy + kBlock * width, 0.0f);
    return copy;
}

// k[kBlock, depth] times q[depth, kBlock] -> scores[kBlock, kBlock], a row for each key. For gradients of keys it is
// the other way around: lanes are keys, and queries have rows.
inline void score(const float* k, Index k_stride, const float* q, Index depth, float* scores) {
    for (Index column = 0; column < kBlock; column += micro::kColumns) {
        for (Index key = 0; key < kBlock; key += MICRO_ROWS) {
            micro::multiply<false>(k + key * k_stride, k_stride, q + column, kBlock, scores + key * kBlock + column,
                                   kBlock, depth);
        }
    }
}

// sums[kBlock, width] += weights[kBlock, kBlock], transposed, times rows[kBlock, width].
inline void add_weighted(const float* weights, const float* rows, Index width, float* sums) {
    for (Index column = 0; column < width; column += micro::kColumns) {
        for (Index lane = 0; lane < kBlock; lane += MICRO_ROWS) {
            micro::multiply<true, true>(weights + lane, kBlock, rows + column, width, sums + lane * width + column,
                                        width, kBlock);
        }
    }
}

}  // namespace query_lanes
