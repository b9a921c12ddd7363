// Linear layer whose weights are stored in few bits: y = x w, x[M, K], y[M, N], accumulated in float32.
// CODE_INT8: w = code * scale[n]. CODE_INT4: w = (code - zero[k / GROUP, n]) * scale[k / GROUP, n], two codes in
// a byte (Frantar et al. 2022, arXiv:2210.17323). CODE_NF4: w = table[code] * scale[k / GROUP, n], the same
// (Dettmers et al. 2023, arXiv:2305.14314). CODE_MXFP4: w = table[code] * 2^(scale[k / GROUP, n] - 127), the same
// (Rouhani et al. 2023, arXiv:2310.10537). CODE_TERNARY: w = (code - 1) * scale[n], four codes in a byte
// (Ma et al. 2024, arXiv:2402.17764). CODE_TRIT_PLANES: the sum of two such planes, w = sum of (code - 1) *
// scale[plane, k / GROUP, n] (Xiao et al. 2025, arXiv:2509.16989). CODE_SHIFT: w = +-2^(code - 7) * scale[n], a sign
// and 3 bits, two codes in a byte (Li et al. 2022, arXiv:2208.09708).
//
// 1. Few rows of x are bound by the traffic of the weights, which stay small until they are in registers
//    (Frantar et al. 2024, arXiv:2408.11743). MICRO_VECTORS vectors of columns are decoded at a time, and
//    MICRO_ROWS rows of x are multiplied with them, so decoding is shared by as many rows.
// 2. LATE_SCALE multiplies codes less zero points, which are exact, and scales the sums of each group instead
//    of each weight.
// 3. bfloat16 on AVX512_BF16: codes are exact in bfloat16 as well, and the two of a byte are a pair for
//    vdpbf16ps. Only with LATE_SCALE: scaled weights would be rounded.
// 4. TABLE: a register holds the values of all 16 codes, and a permutation looks up a whole vector. A table of
//    32 does the same for pairs of int4, from -16 to 15, after the zero point is subtracted from the code. That
//    of ternary weights repeats four values, so that the other bits of a byte need no mask.
// 5. More rows are bound by arithmetic, and decoding by each block of MICRO_ROWS rows would add to it: with
//    PANEL a block of weights is decoded to L1 once, for all rows of a tile.
// 6. Two planes are two products with the same x, each with its own scales: no weight is put together.
// 7. PREFETCH: a strip of columns reads short pieces of many rows, which hardware prefetchers see too late.
//
// Threads share strips of columns. The order of summation depends on the shape alone.

#include <algorithm>

#include "../dot_products.hpp"
#include "../store_rows.hpp"

using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

namespace {

#if defined(CODE_INT8)
using Code = std::int8_t;
constexpr Index kRowsPerByte = 1;
constexpr Index kBlock = 256;  // rows of weights between two additions to the totals
#elif defined(CODE_TERNARY)
using Code = std::uint8_t;
constexpr Index kRowsPerByte = 4;
constexpr Index kBlock = 256;
#elif defined(CODE_TRIT_PLANES)
using Code = std::uint8_t;
constexpr Index kRowsPerByte = 4;
constexpr Index kBlock = GROUP;
#elif defined(CODE_SHIFT)
using Code = std::uint8_t;
constexpr Index kRowsPerByte = 2;
constexpr Index kBlock = 256;
#else
using Code = std::uint8_t;
constexpr Index kRowsPerByte = 2;
constexpr Index kBlock = GROUP;
#endif
#if defined(CODE_TRIT_PLANES)
constexpr Index kPlanes = 2;
#else
constexpr Index kPlanes = 1;
#endif
#if defined(CODE_NF4) || defined(CODE_MXFP4) || defined(CODE_SHIFT)
#define LOOKED_UP 1
#else
#define LOOKED_UP 0
#endif
#if defined(CODE_TERNARY) || defined(CODE_TRIT_PLANES)
#define TRITS 1
#else
#define TRITS 0
#endif
#if defined(CODE_MXFP4)
using Scale = std::uint8_t;  // the exponent of a power of two
#else
using Scale = Element;
#endif
static_assert(kBlock % std::max<Index>(kRowsPerByte, 2) == 0, "a byte, and a pair, belong to one group");
#if !defined(TABLE)
#define TABLE 0
#endif

#if LATE_SCALE && defined(ELEMENT_BFLOAT16) && DOT_PAIRS
#define PAIRS 1
using Factor = std::uint32_t;  // of x: two bfloat16, k and k + 1
using Weights = vec::Words;
constexpr Index kFactors = 1;  // of a pair of rows of weights
#else
#define PAIRS 0
using Factor = float;
struct Weights {
    Floats first, second;
};
constexpr Index kFactors = 2;
#endif

constexpr Index kCols = Index{LANES} * MICRO_VECTORS;
constexpr Index kTileRows = 120 / MICRO_ROWS * MICRO_ROWS;
constexpr Index kPairs = kBlock / 2;
constexpr Index kParallelProducts = 1 << 17;  // below, starting the threads takes longer than the work

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }

alignas(64) constexpr float kValues[16] = {
#if defined(CODE_NF4)  // arXiv:2305.14314, appendix E
    -1.0f,           -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
    -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
    0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
    0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f,
#elif defined(CODE_MXFP4)  // sign, two bits of exponent, one of mantissa
    0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f,
#elif defined(CODE_SHIFT)  // sign, exponent
    0x1p-7f,  0x1p-6f,  0x1p-5f,  0x1p-4f,  0x1p-3f,  0x1p-2f,  0x1p-1f,  0x1p0f,
    -0x1p-7f, -0x1p-6f, -0x1p-5f, -0x1p-4f, -0x1p-3f, -0x1p-2f, -0x1p-1f, -0x1p0f,
#elif TRITS  // by two bits, whatever the others are
    -1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2,
#else
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
#endif
};

struct Problem {
    const Element* x;
    const Code* weight;
    const Scale* scales;
    const std::uint8_t* zeros;
    Element* y;
    Index rows, cols, depth;
    Index stride_x;
};

#if defined(CODE_MXFP4)
inline float scale_of(Scale exponent) {
    return vec::bit_cast<float>(exponent == 0 ? 0x00400000u : std::uint32_t{exponent} << 23);
}
#else
inline float scale_of(Scale scale) { return vec::to_float(scale); }
#endif

// The codes of one block for kCols columns, and what belongs to the columns.
struct Block {
    const Code* codes;
    Index stride;  // bytes from row to row
    Index depth;
    alignas(64) float scales[kCols];
    alignas(64) std::uint8_t zeros[kCols];
};

// What of a block stays in registers: zero points and, where weights are scaled, scales.
struct Columns {
    Floats scales[MICRO_VECTORS];
    Floats zeros[MICRO_VECTORS];
    vec::Words shifts[MICRO_VECTORS];  // zero points in both halves of each lane
};

#if PAIRS
using Shorts = std::uint16_t __attribute__((vector_size(LANES * 4)));

#if LANES == 16
using Table = __m512i;
inline vec::Words permute(Table table, vec::Words index) {
    return vec::bit_cast<vec::Words>(_mm512_permutexvar_epi16(vec::bit_cast<__m512i>(index), table));
}
#else
struct Table {
    __m256i low, high;
};
inline vec::Words permute(const Table& table, vec::Words index) {
    return vec::bit_cast<vec::Words>(
        _mm256_permutex2var_epi16(table.low, vec::bit_cast<__m256i>(index), table.high));
}
#endif

// By 5 bits: -16 to 15 for int4, whose zero point is already subtracted; the 16 values twice else.
struct PairValues {
    alignas(64) std::uint16_t values[32];
    PairValues() {
        for (int i = 0; i < 32; ++i) {
#if LOOKED_UP || TRITS
            values[i] = vec::float_to_bfloat16(kValues[i % 16]);
#else
            values[i] = vec::float_to_bfloat16(static_cast<float>(i < 16 ? i : i - 32));
#endif
        }
    }
};
const PairValues kPairValues;

inline Table load_table() { return vec::load_raw<Table>(kPairValues.values); }

inline Floats multiply_add(Floats sum, const Factor* x, Weights weights) {
    return dot::add_pairs(sum, *x, weights);
}

// Both are exact in bfloat16, but for the values of NF4.
inline Weights pair_of(Floats first, Floats second) {
#if defined(CODE_NF4)
    const vec::Words high = vec::widen_words(vec::narrow_bfloat16(second)) << 16;
    return vec::widen_words(vec::narrow_bfloat16(first)) | high;
#else
    return vec::bit_cast<vec::Words>(first) >> 16 | (vec::bit_cast<vec::Words>(second) & 0xffff0000u);
#endif
}
#else
struct Table {};
inline Table load_table() { return {}; }

inline Floats multiply_add(Floats sum, const Factor* x, const Weights& weights) {
    return sum + vec::splat(x[0]) * weights.first + vec::splat(x[1]) * weights.second;
}

inline Weights pair_of(Floats first, Floats second) { return {first, second}; }
#endif

inline Floats value_of(vec::Words code) {
#if TABLE
    return vec::look_up(kValues, code);
#elif defined(CODE_SHIFT)
    return vec::bit_cast<Floats>((code & 8u) << 28 | ((code & 7u) + 120u) << 23);
#elif LOOKED_UP
    std::uint32_t codes[LANES];
    float values[LANES];
    vec::store_raw(codes, code);
    for (int lane = 0; lane < LANES; ++lane) values[lane] = kValues[codes[lane] & 15u];
    return vec::load_raw<Floats>(values);
#else
    return vec::to_floats(vec::bit_cast<vec::Ints>(code & 15u));
#endif
}

inline Columns columns_of(const Block& block) {
    Columns columns;
#pragma GCC unroll 4
    for (Index j = 0; j < MICRO_VECTORS; ++j) {
        const vec::Words zeros = vec::load_bytes(block.zeros + j * LANES);
        columns.scales[j] = vec::load_raw<Floats>(block.scales + j * LANES);
        columns.zeros[j] = vec::to_floats(vec::bit_cast<vec::Ints>(zeros));
        columns.shifts[j] = zeros | zeros << 16;
    }
    return columns;
}

// Two rows of weights, one vector of columns. Beyond an odd end the second row is any: its factor is 0.
inline Weights decode(const Block& block, const Columns& columns, const Table& table, Index pair, Index j) {
#if defined(CODE_INT8)
    const Code* row = block.codes + 2 * pair * block.stride + j * LANES;
    const Code* next = 2 * pair + 1 < block.depth ? row + block.stride : row;
    Floats first = vec::to_floats(vec::load_bytes(row));
    Floats second = vec::to_floats(vec::load_bytes(next));
#elif TRITS
    const Code* row = block.codes + pair / 2 * block.stride + j * LANES;
    const vec::Words codes = vec::load_bytes(row) >> (pair % 2 * 4);
#if PAIRS && TABLE
    return permute(table, codes | codes << 14);  // the low half of each lane by its low bits
#endif
#if TABLE
    Floats first = vec::look_up(kValues, codes);
    Floats second = vec::look_up(kValues, codes >> 2);
#else
    Floats first = vec::to_floats(vec::bit_cast<vec::Ints>(codes & 3u)) - vec::splat(1.0f);
    Floats second = vec::to_floats(vec::bit_cast<vec::Ints>(codes >> 2 & 3u)) - vec::splat(1.0f);
#endif
#else
    const vec::Words codes = vec::load_bytes(block.codes + pair * block.stride + j * LANES);
#if PAIRS && TABLE
    const vec::Words both = codes | codes << 12;  // the low half of each lane by its low bits
#if LOOKED_UP
    return permute(table, both & 0x000f000fu);
#else
    const vec::Words less = vec::bit_cast<vec::Words>(
        vec::bit_cast<Shorts>(both & 0x000f000fu) - vec::bit_cast<Shorts>(columns.shifts[j]));
    return permute(table, less);
#endif
#endif
    Floats first = value_of(codes);
    Floats second = value_of(codes >> 4);
#if defined(CODE_INT4)
    first = first - columns.zeros[j];
    second = second - columns.zeros[j];
#endif
#endif
    (void)table;
#if !LATE_SCALE
    first = first * columns.scales[j];
    second = second * columns.scales[j];
#endif
    (void)columns;
    return pair_of(first, second);
}

inline void prefetch(const Block& block, Index pair) {
#if PREFETCH
    __builtin_prefetch(block.codes + 2 * (pair + PREFETCH) / kRowsPerByte * block.stride);
#if defined(CODE_INT8)
    __builtin_prefetch(block.codes + (2 * (pair + PREFETCH) + 1) * block.stride);
#endif
#else
    (void)block;
    (void)pair;
#endif
}

// totals[Rows][kCols] (+)= x[Rows, block] times the block, from its codes or, if it is there, from a panel of
// decoded weights.
template <Index Rows, bool FromPanel>
static __attribute__((noinline)) void multiply(const Block& block, const Weights* panel, const Factor* x,
                                               Index stride_x, bool first, float* totals) {
    const Columns columns = columns_of(block);
    const Table table = load_table();
    const Index pairs = ceil_div(block.depth, 2);
    Floats sums[Rows][MICRO_VECTORS] = {};
    for (Index pair = 0; pair < pairs; ++pair) {
        if constexpr (!FromPanel) prefetch(block, pair);
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) {
            const Weights weights =
                FromPanel ? panel[pair * MICRO_VECTORS + j] : decode(block, columns, table, pair, j);
#pragma GCC unroll 16
            for (Index i = 0; i < Rows; ++i) {
                sums[i][j] = multiply_add(sums[i][j], x + i * stride_x + pair * kFactors, weights);
            }
        }
    }
#pragma GCC unroll 16
    for (Index i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) {
            float* total = totals + i * kCols + j * LANES;
            const Floats sum = LATE_SCALE ? sums[i][j] * columns.scales[j] : sums[i][j];
            vec::store_raw(total, first ? sum : vec::load_raw<Floats>(total) + sum);
        }
    }
}

// The instance for `rows`, 1 to MICRO_ROWS.
template <bool FromPanel, Index Rows = MICRO_ROWS>
inline void dispatch(Index rows, const Block& block, const Weights* panel, const Factor* x, Index stride_x,
                     bool first, float* totals) {
    if (rows == Rows) {
        multiply<Rows, FromPanel>(block, panel, x, stride_x, first, totals);
    } else if constexpr (Rows > 1) {
        dispatch<FromPanel, Rows - 1>(rows, block, panel, x, stride_x, first, totals);
    }
}

inline void decode_panel(const Block& block, Weights* panel) {
    const Columns columns = columns_of(block);
    const Table table = load_table();
    for (Index pair = 0; pair < ceil_div(block.depth, 2); ++pair) {
        prefetch(block, pair);
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) {
            panel[pair * MICRO_VECTORS + j] = decode(block, columns, table, pair, j);
        }
    }
}

// A row of x as factors, zeros behind its end.
inline void pack_row(const Element* x, Index depth, Factor* to) {
#if PAIRS
    to[(depth - 1) / 2] = 0;
    __builtin_memcpy(to, x, static_cast<std::size_t>(depth) * sizeof(Element));
#else
    to[ceil_div(depth, 2) * 2 - 1] = 0.0f;
    Index k = 0;
    for (; k + LANES <= depth; k += LANES) vec::store_raw(to + k, vec::load(x + k));
    for (; k < depth; ++k) to[k] = vec::to_float(x[k]);
#endif
}

// Where a thread works.
struct Workspace {
    alignas(64) Weights panel[kPairs * MICRO_VECTORS];
    alignas(64) float totals[kTileRows * kCols];
    alignas(64) Code edge[kBlock * kCols];
    Block block;
};

// Rows [k, k + depth) of a plane, the columns [col, col + count). Fewer than kCols of them are copied, so that no load
// of a vector ends behind the matrix.
inline void set_block(const Problem& problem, Index plane, Index k, Index col, Index count, Workspace& workspace) {
    Block& block = workspace.block;
    block.depth = std::min(kBlock, problem.depth - k);
    const Index first = plane * ceil_div(problem.depth, kRowsPerByte);  // row of bytes
    block.codes = problem.weight + (first + k / kRowsPerByte) * problem.cols + col;
    block.stride = problem.cols;
    if (count < kCols) {
        for (Index row = 0; row < ceil_div(block.depth, kRowsPerByte); ++row) {
            Code* to = workspace.edge + row * kCols;
            std::fill(to, to + kCols, Code{0});
            std::copy_n(block.codes + row * problem.cols, count, to);
        }
        block.codes = workspace.edge;
        block.stride = kCols;
    }
#if defined(CODE_INT8) || defined(CODE_TERNARY) || defined(CODE_SHIFT)
    const Index at = col;
#else
    const Index at = (plane * ceil_div(problem.depth, GROUP) + k / GROUP) * problem.cols + col;
#endif
    for (Index lane = 0; lane < kCols; ++lane) {
        const bool inside = lane < count && block.depth > 0;
        block.scales[lane] = inside ? scale_of(problem.scales[at + lane]) : 0.0f;
        block.zeros[lane] = inside && problem.zeros != nullptr ? problem.zeros[at + lane] : std::uint8_t{0};
    }
}

// One tile of y: at most kTileRows rows, at most kCols columns.
inline void compute_tile(const Problem& problem, const Factor* x, Index stride_x, Index row, Index col,
                         Workspace& workspace) {
    const Index rows = std::min(kTileRows, problem.rows - row);
    const Index count = std::min(kCols, problem.cols - col);
    const bool decoded_once = PANEL && rows > MICRO_ROWS;
    for (Index step = 0; step == 0 || step / kPlanes * kBlock < problem.depth; ++step) {
        const Index k = step / kPlanes * kBlock;
        set_block(problem, step % kPlanes, k, col, count, workspace);
        if (decoded_once) decode_panel(workspace.block, workspace.panel);
        for (Index i = 0; i < rows; i += MICRO_ROWS) {
            const Index some = std::min<Index>(MICRO_ROWS, rows - i);
            const Factor* factors = x + (row + i) * stride_x + k / 2 * kFactors;
            float* totals = workspace.totals + i * kCols;
            if (decoded_once) {
                dispatch<true>(some, workspace.block, workspace.panel, factors, stride_x, step == 0, totals);
            } else {
                dispatch<false>(some, workspace.block, nullptr, factors, stride_x, step == 0, totals);
            }
        }
    }
    Element* y = problem.y + row * problem.cols + col;
    store_rows(workspace.totals, kCols, rows, count, y, problem.cols);
}

int multiply(const Problem& problem) {
    static thread_local vec::Scratch packed;
    const Index stride_x = ceil_div(problem.depth, 2) * kFactors + 16;  // a cache line more avoids conflicts
    auto* x = static_cast<Factor*>(
        packed.reserve(static_cast<std::size_t>(problem.rows * stride_x + 1) * sizeof(Factor)));
    if (x == nullptr) return 1;
    const Index row_tiles = ceil_div(problem.rows, kTileRows), col_tiles = ceil_div(problem.cols, kCols);
    const bool parallel = problem.rows * problem.cols * problem.depth >= kParallelProducts;
    int failed = 0;
#pragma omp parallel if (parallel) reduction(| : failed)
    {
        thread_local vec::Scratch scratch;
        void* memory = scratch.reserve(sizeof(Workspace));
        failed |= memory == nullptr;
#pragma omp for schedule(static)
        for (Index row = 0; row < problem.rows; ++row) {
            if (problem.depth == 0) continue;
            pack_row(problem.x + row * problem.stride_x, problem.depth, x + row * stride_x);
        }
#pragma omp for schedule(dynamic, 4)
        for (Index tile = 0; tile < row_tiles * col_tiles; ++tile) {
            if (memory == nullptr) continue;
            compute_tile(problem, x, stride_x, tile / col_tiles * kTileRows, tile % col_tiles * kCols,
                         *static_cast<Workspace*>(memory));
        }
    }
    return failed;
}

}  // namespace

// Dimensions M, N, K; the row stride of x in elements. Returns 1 where there is no memory.
#if defined(CODE_INT4)
extern "C" int linear_quantized(const Element* x, const Code* weight, const Scale* scales,
                                const std::uint8_t* zeros, Element* y, std::int64_t M, std::int64_t N,
                                std::int64_t K, std::int64_t stride_x) {
    return M == 0 || N == 0 ? 0 : multiply({x, weight, scales, zeros, y, M, N, K, stride_x});
}
#else
extern "C" int linear_quantized(const Element* x, const Code* weight, const Scale* scales, Element* y,
                                std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t stride_x) {
    return M == 0 || N == 0 ? 0 : multiply({x, weight, scales, nullptr, y, M, N, K, stride_x});
}
#endif
