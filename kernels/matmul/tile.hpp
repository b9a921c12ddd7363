// One tile of c, by one thread: packed blocks of a and b, micro-kernel, epilogue.
#pragma once

#include "epilogue.hpp"

namespace product {

#if defined(ELEMENT_BFLOAT16) && defined(__AVX512BF16__) && \
    (LANES == 16 || (LANES == 8 && defined(__AVX512VL__)))
#define PAIRS 1
using Packed = std::uint32_t;  // two bfloat16, k and k + 1
#else
#define PAIRS 0
using Packed = float;
#endif

constexpr Index kDepth = PAIRS ? 2 : 1;  // steps of k in one packed word
constexpr Index kSteps = BLOCK_K / kDepth;
constexpr Index kStride =
    kSteps + 16;  // words from row to row of packed a; a cache line more avoids conflicts
constexpr Index kLine = 64 / sizeof(Element);  // elements of a cache line
constexpr Index kTileRows = 120 / MICRO_ROWS * MICRO_ROWS;
constexpr Index kTileCols = (256 + kCols - 1) / kCols * kCols;
constexpr Index kSumStride = kTileCols + 16;  // as for a

inline void prefetch_row(const Element* row, Index stride) {
#if PREFETCH
    for (Index col = 0; col < kCols; col += kLine) __builtin_prefetch(row + PREFETCH * stride + col);
#else
    (void)row;
    (void)stride;
#endif
}

inline void pack_a_row(const Element* a, Index depth, Packed* to) {
#if PAIRS
    to[(depth - 1) / 2] = 0;  // a zero behind an odd end
    __builtin_memcpy(to, a, static_cast<std::size_t>(depth) * sizeof(Element));
#else
    Index k = 0;
    for (; k + LANES <= depth; k += LANES) vec::store_raw(to + k, vec::load(a + k));
    for (; k < depth; ++k) to[k] = vec::to_float(a[k]);
#endif
}

// One vector of b as the micro-kernel reads it, zeros beyond `count` columns and, with pairs, beyond the last
// row.
#if PAIRS
inline vec::Halves load_halves(const Element* from, Index count) {
    if (count == LANES) return vec::load_raw<vec::Halves>(from);
    vec::Halves halves{};
    __builtin_memcpy(&halves, from, static_cast<std::size_t>(count) * sizeof(Element));
    return halves;
}

inline vec::Words pack_b_vector(const Element* b, Index stride, Index rows, Index count) {
    const vec::Words first = vec::widen_words(load_halves(b, count));
    return rows == 1 ? first : first | vec::widen_words(load_halves(b + stride, count)) << 16;
}
#else
inline Floats pack_b_vector(const Element* b, Index, Index, Index count) {
    return count == LANES ? vec::load(b) : vec::load_some(b, count, 0.0f);
}
#endif

// b[depth, cols] -> panels[cols / kCols][kSteps][kCols], zeros beyond the last column. Row by row, because b
// is read in the order in which it lies in memory.
inline void pack_b(const Element* b, Index stride, Index depth, Index cols, Packed* to) {
    for (Index k = 0; k < depth; k += kDepth) {
        const Element* row = b + k * stride;
        for (Index col = 0; col < cols; col += kCols) {
            Packed* panel = to + col * kSteps + k / kDepth * kCols;
            prefetch_row(row + col, stride);
            for (Index lane = 0; lane < kCols; lane += LANES) {
                const Index count = std::clamp<Index>(cols - col - lane, 0, LANES);
                vec::store_raw(panel + lane, pack_b_vector(row + col + lane, stride, depth - k, count));
            }
        }
    }
}

inline Floats multiply_add(Floats sum, Packed a, const Packed* b) {
#if PAIRS && LANES == 16
    const auto broadcast = vec::bit_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a)));
    return _mm512_dpbf16_ps(sum, broadcast, vec::load_raw<__m512bh>(b));
#elif PAIRS
    const auto broadcast = vec::bit_cast<__m256bh>(_mm256_set1_epi32(static_cast<int>(a)));
    return _mm256_dpbf16_ps(sum, broadcast, vec::load_raw<__m256bh>(b));
#else
    return sum + vec::splat(a) * vec::load_raw<Floats>(b);
#endif
}

// sums[Rows][kCols] (+)= a[Rows, steps] b[steps, kCols]; the first block of k starts from zero.
template <Index Rows>
static __attribute__((noinline)) void micro_kernel(bool first, Index steps, const Packed* a, const Packed* b,
                                                   float* to) {
    Floats sums[Rows][MICRO_VECTORS];
#pragma GCC unroll 16
    for (Index i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
        for (Index j = 0; j < MICRO_VECTORS; ++j) {
            sums[i][j] = first ? Floats{} : vec::load_raw<Floats>(to + i * kSumStride + j * LANES);
        }
    }
    for (Index step = 0; step < steps; ++step) {
#pragma GCC unroll 16
        for (Index i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
            for (Index j = 0; j < MICRO_VECTORS; ++j) {
                sums[i][j] = multiply_add(sums[i][j], a[i * kStride + step], b + step * kCols + j * LANES);
            }
        }
    }
#pragma GCC unroll 16
    for (Index i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
        for (Index j = 0; j < MICRO_VECTORS; ++j) vec::store_raw(to + i * kSumStride + j * LANES, sums[i][j]);
    }
}

// The instance for `rows`, 1 to MICRO_ROWS: a smaller one beats a full one that computes rows of zeros.
template <Index Rows = MICRO_ROWS>
inline void dispatch(Index rows, bool first, Index steps, const Packed* a, const Packed* b, float* sums) {
    if (rows == Rows) {
        micro_kernel<Rows>(first, steps, a, b, sums);
    } else if constexpr (Rows > 1) {
        dispatch<Rows - 1>(rows, first, steps, a, b, sums);
    }
}

struct Tile {
    Index row, col, rows, cols;
};

struct Buffers {
    Packed* a;
    Packed* b;
    float* sums;

    static constexpr Index kWords = kTileRows * kStride + kSteps * kTileCols + kTileRows * kSumStride;
    explicit Buffers(void* memory)
        : a(static_cast<Packed*>(memory)),
          b(a + kTileRows * kStride),
          sums(reinterpret_cast<float*>(b + kSteps * kTileCols)) {}
};

inline void compute_tile(const Problem& problem, const Tile& tile, const Buffers& buffers) {
    const Index panel_rows = ceil_div(tile.rows, ceil_div(tile.rows, MICRO_ROWS));
    for (Index k = 0; k == 0 || k < problem.depth; k += BLOCK_K) {
        const Index depth = std::min<Index>(BLOCK_K, problem.depth - k);
        const bool last = k + depth >= problem.depth;
        pack_b(problem.b + k * problem.stride_b + tile.col, problem.stride_b, depth, tile.cols, buffers.b);
        for (Index i = 0; i < tile.rows && depth > 0; ++i) {
            pack_a_row(problem.a + (tile.row + i) * problem.stride_a + k, depth, buffers.a + i * kStride);
        }
        for (Index i = 0; i < tile.rows; i += panel_rows) {
            const Index rows = std::min(panel_rows, tile.rows - i);
            for (Index j = 0; j < tile.cols; j += kCols) {
                float* sums = buffers.sums + i * kSumStride + j;
                dispatch(rows, k == 0, ceil_div(depth, kDepth), buffers.a + i * kStride,
                         buffers.b + j * kSteps, sums);
                for (Index row = 0; row < rows && last; ++row) {
                    finish_row(problem, tile.row + i + row, tile.col + j, std::min(kCols, tile.cols - j),
                               sums + row * kSumStride);
                }
            }
        }
    }
}

}  // namespace product
