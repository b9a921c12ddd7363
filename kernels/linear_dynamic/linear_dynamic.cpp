// Linear layers for quantised training: both operands are quantised on the way, then multiplied (reference.py).
// CODES_INT8 with a scale for each row of x and one for the weights (Wortsman et al. 2023, arXiv:2304.13013).
// CODES_E4M3 and, for gradients, CODES_E5M2 with a scale for each tensor (Micikevicius et al. 2022,
// arXiv:2209.05433), or for each block of both (DeepSeek-AI 2024, arXiv:2412.19437). CODES_E2M1 with powers of
// two for GROUP elements that a Hadamard transform mixes before (Castro et al. 2025, arXiv:2505.14669).
//
// 1. All codes are rounded by one addition: of 1.5 * 2^23 times the distance between the numbers around a value,
//    which follows from its exponent. What was added is subtracted again.
// 2. DOT: int8 goes through dot products of four bytes, exactly; the bytes of x are moved by 128 to lose their
//    sign, and each column's sum of weights takes that back. Numbers of FP8, and of FP4 times their powers of
//    two, are exact in bfloat16, and so are their products in float32: pairs of them have dot products as well.
//    Without it, or on machines without the instructions, codes are floats and products fused multiply-adds.
// 3. FUSE: a strip of weights, BLOCK_K deep, is quantised, packed in the order of the products and multiplied
//    with a tile of rows while it is in L1 or L2. Without it all weights are packed in memory first.
// 4. MICRO_ROWS x MICRO_VECTORS vectors of sums stay in registers. Sums of a group whose scale differs from the
//    next one's are scaled and added to totals in float32.
//
// Many rows of x are bound by the products; with few, quantising the weights takes longer. Tasks are tiles of
// rows and strips of columns: the order of summation is that of the shape.

#include <algorithm>
#include <cfloat>
#include <limits>

#include "../dot_products.hpp"
#include "../store_rows.hpp"

using vec::Element;
using vec::Floats;
using vec::Ints;
using vec::Words;
using Index = std::ptrdiff_t;

namespace {

// Numbers of a code: digits of the mantissa behind the point, exponent of the smallest normal number, the largest.
struct Format {
    int digits, least;
    float largest;
};
#if defined(CODES_INT8)
#define CODES_ARE_INTEGERS 1
constexpr Format kLeft{7, 7, 127.0f}, kRight = kLeft;  // one apart, as from 2^7 to 2^8
#else
#define CODES_ARE_INTEGERS 0
#if defined(CODES_E4M3)
constexpr Format kLeft{3, -6, 448.0f}, kRight = kLeft;
#elif defined(CODES_E5M2)
constexpr Format kLeft{2, -14, 57344.0f}, kRight{3, -6, 448.0f};
#else
constexpr Format kLeft{1, 0, 6.0f}, kRight = kLeft;
#endif
#endif

#if DOT && CODES_ARE_INTEGERS && DOT_QUADS
#define BYTES 1
using Sum = Ints;
constexpr Index kInWord = 4;  // codes
#else
#define BYTES 0
using Sum = Floats;
#if DOT && !CODES_ARE_INTEGERS && DOT_PAIRS
#define PAIRS 1
constexpr Index kInWord = 2;
#else
#define PAIRS 0
constexpr Index kInWord = 1;
#endif
#endif

#if defined(SCALING_BLOCK)
constexpr Index kGroup = GROUP;  // elements of a sum that share both scales
#else
constexpr Index kGroup = BLOCK_K;
#endif
constexpr Index kCols = Index{LANES} * MICRO_VECTORS;
constexpr Index kTileRows = 480 / MICRO_ROWS * MICRO_ROWS;
constexpr Index kWords = BLOCK_K / kInWord;       // of a column of a panel
constexpr Index kPanel = (kWords + 1) * kCols;    // the last row is what sums start with
constexpr Index kParallelProducts = 1 << 17;      // below, starting the threads takes longer than the work
static_assert(BLOCK_K % kGroup == 0 && kGroup % 32 == 0, "groups do not cross blocks, nor words groups");
static_assert(!CODES_ARE_INTEGERS || BLOCK_K <= 1024, "sums of products of codes are exact, in float32 as well");

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }
constexpr Index round_up(Index total, Index part) { return ceil_div(total, part) * part; }

struct Problem {
    const Element* x;
    const Element* weight;
    Element* y;
    Index rows, cols, depth;
    Index stride_x;
    Index weight_rows, stride_weight;  // cols and depth, or the other way round
};

// What all threads read: x as words, and scales.
struct Shared {
    std::uint32_t* x;
    Index stride;        // words of a row of x
    float* x_scales;     // of a row, for each group; a single one of `tensor`
    float* scales;       // of the weights: maxima of rows at first, then one, or one for each group of GROUP rows
    float* x_maxima;     // of rows
    std::uint32_t* panels;  // of all weights, without FUSE
    Index groups, blocks;   // in a row: of GROUP, and of BLOCK_K
};

struct Workspace {
    alignas(64) std::uint32_t codes[LANES * (kWords + LANES)];
    alignas(64) std::uint32_t panel[FUSE ? kPanel : 1];
    alignas(64) float totals[kTileRows * kCols];
};

// ---- codes ------------------------------------------------------------------------------------------------

inline float scale_of(float largest, const Format& format) {
    if (!(largest <= FLT_MAX)) return std::numeric_limits<float>::quiet_NaN();
    return std::max(largest / format.largest, FLT_MIN);
}

// 1.5 * 2^23 times the distance of the numbers around each value.
inline Floats rounder(const Format& format, Floats values) {
    const Words least = Words{} + (static_cast<std::uint32_t>(format.least + 127) << 23);
    const Words exponent = vec::bit_cast<Words>(values) & 0x7f800000u;
    const Words larger = exponent > least ? exponent : least;
    return vec::bit_cast<Floats>((larger + (static_cast<std::uint32_t>(23 - format.digits) << 23)) | 0x400000u);
}

// The nearest numbers of a code, to even; of values that are none beyond the largest one.
inline Floats rounded(const Format& format, Floats values) {
    const Floats added = CODES_ARE_INTEGERS ? vec::splat(0x1.8p23f) : rounder(format, values);
    return (values + added) - added;
}

// Writes the codes of LANES values, which may have been scaled again, as part of the words of a row.
template <bool Left>
inline void store_codes(std::uint32_t* row, Index at, Floats values) {
#if BYTES
    const Words bits = vec::bit_cast<Words>(values + 0x1.8p23f);
    vec::store_bytes(reinterpret_cast<std::uint8_t*>(row) + at, Left ? bits ^ 0x80u : bits);
#elif PAIRS
    vec::store_raw(reinterpret_cast<std::uint16_t*>(row) + at, vec::narrow_words(vec::bit_cast<Words>(values) >> 16));
#else
    vec::store_raw(row + at, values);
#endif
}

inline Floats load_until(const Element* from, Index at, Index count) {
    if (at + LANES <= count) return vec::load(from + at);
    return at < count ? vec::load_some(from + at, count - at, 0.0f) : Floats{};
}

inline float largest_of(const Element* from, Index count) {
    Floats largest[4] = {};
    Index at = 0;
    for (; at + 4 * LANES <= count; at += 4 * LANES) {
#pragma GCC unroll 4
        for (int u = 0; u < 4; ++u) largest[u] = vec::maximum_size(largest[u], vec::load(from + at + u * LANES));
    }
    for (; at < count; at += LANES) largest[0] = vec::maximum_size(largest[0], load_until(from, at, count));
    for (int u = 1; u < 4; ++u) largest[0] = vec::maximum_size(largest[0], largest[u]);
    return vec::reduce(largest[0], vec::maximum_size);
}

#if defined(SCALING_MICRO)
constexpr Index kVectors = GROUP / LANES;

// Each value becomes the sum of two, or their difference, at this distance.
template <int Distance>
inline void mix(Floats (&values)[kVectors]) {
    if constexpr (Distance >= LANES) {
        constexpr Index step = Distance / LANES;
#pragma GCC unroll 32
        for (Index i = 0; i < kVectors; ++i) {
            if (i & step) continue;
            const Floats first = values[i], second = values[i + step];
            values[i] = first + second;
            values[i + step] = first - second;
        }
    } else {
        std::uint32_t upper[LANES];
        for (int lane = 0; lane < LANES; ++lane) upper[lane] = lane & Distance ? 0x80000000u : 0u;
        const auto sign = vec::load_raw<Words>(upper);
        for (auto& each : values) {
            const Floats others = vec::exchange<Distance>(each, std::make_index_sequence<LANES>{});
            each = others + vec::bit_cast<Floats>(vec::bit_cast<Words>(each) ^ sign);
        }
    }
    if constexpr (Distance > 1) mix<Distance / 2>(values);
}

// GROUP elements -> numbers of the code times their power of two, which are exact in bfloat16.
template <bool Left>
inline void quantise_group(const Element* from, Index at, Index count, std::uint32_t* to, Index place) {
    Floats values[kVectors];
#pragma GCC unroll 32
    for (Index i = 0; i < kVectors; ++i) values[i] = load_until(from, at + i * LANES, count);
    mix<GROUP / 2>(values);
    Floats largest = {};
    for (auto& each : values) {
        each = each * 0.17677669529663687f;  // 1 / sqrt(32)
        largest = vec::maximum_size(largest, each);
    }
    const auto exponent = vec::bit_cast<std::uint32_t>(vec::reduce(largest, vec::maximum_size)) >> 23;
    const std::uint32_t biased = exponent == 255 ? 0x7fc00000u : std::max(exponent, 3u) - 2;
    const auto scale = vec::bit_cast<float>(exponent == 255 ? biased : biased << 23);
    const auto inverse = vec::bit_cast<float>(exponent == 255 ? biased : (254u - biased) << 23);
    const Floats most = vec::splat(kLeft.largest);
#pragma GCC unroll 32
    for (Index i = 0; i < kVectors; ++i) {
        Floats share = values[i] * inverse;
        share = share > most ? most : share;
        share = share < -most ? -most : share;
        store_codes<Left>(to, place + i * LANES, rounded(kLeft, share) * scale);
    }
}
#endif

// Elements [begin, end) of a row that has `count` -> words. Scales: of each group, from this one on.
template <bool Left>
inline void quantise_row(const Element* from, Index begin, Index end, Index count, const float* scales,
                         std::uint32_t* to) {
#if defined(SCALING_MICRO)
    (void)scales;
    for (Index at = begin; at < end; at += GROUP) quantise_group<Left>(from, at, count, to, at - begin);
#else
    const Format& format = Left ? kLeft : kRight;
    for (Index start = begin; start < end; start += kGroup) {
        const float inverse = 1.0f / *scales;
        for (Index at = start; at < std::min(end, start + kGroup); at += LANES) {
            const Floats share = load_until(from, at, count) * inverse;
            store_codes<Left>(to, at - begin, BYTES ? share : rounded(format, share));
        }
#if defined(SCALING_BLOCK)
        ++scales;
#endif
    }
#endif
}

// ---- operands ---------------------------------------------------------------------------------------------

inline void quantise_x(const Problem& problem, const Shared& shared, Index row) {
    const Element* from = problem.x + row * problem.stride_x;
    float* scales = shared.x_scales;
#if defined(SCALING_ROW)
    scales += row;
    *scales = scale_of(largest_of(from, problem.depth), kLeft);
#elif defined(SCALING_BLOCK)
    scales += row * shared.groups;
    for (Index group = 0; group < shared.groups; ++group) {
        const Index at = group * kGroup;
        scales[group] = scale_of(largest_of(from + at, std::min(kGroup, problem.depth - at)), kLeft);
    }
#endif
    const Index end = round_up(problem.depth, 32);
    quantise_row<true>(from, 0, end, problem.depth, scales, shared.x + row * shared.stride);
}

// Rows [row, row + GROUP) of the weights.
inline void scale_blocks(const Problem& problem, const Shared& shared, Index block) {
#if defined(SCALING_BLOCK)
    for (Index group = 0; group < shared.groups; ++group) {
        const Index at = group * kGroup;
        const Index count = std::min(kGroup, problem.depth - at);
        Floats largest = {};
        for (Index row = block * kGroup; row < std::min(problem.cols, (block + 1) * kGroup); ++row) {
            const Element* from = problem.weight + row * problem.stride_weight + at;
            for (Index k = 0; k < count; k += LANES) largest = vec::maximum_size(largest, load_until(from, k, count));
        }
        const float found = vec::reduce(largest, vec::maximum_size);
        shared.scales[block * shared.groups + group] = scale_of(found, kRight);
    }
#else
    (void)problem, (void)shared, (void)block;
#endif
}

// Scales of the weights in the columns from `col` on.
inline const float* scales_at(const Shared& shared, Index k, Index col) {
#if defined(SCALING_BLOCK)
    return shared.scales + col / kGroup * shared.groups + k / kGroup;
#else
    (void)k, (void)col;
    return shared.scales;
#endif
}

#if defined(DIRECTION_FORWARD)
// A column's codes lie side by side, in a row of W.
inline void pack_words(const Problem& problem, const Shared& shared, Index k, Index col, Index count, Index words,
                       std::uint32_t* panel, std::uint32_t* codes) {
    constexpr Index stride = kWords + LANES;
    const Index end = std::min(k + words * kInWord, round_up(problem.depth, 32));
    for (Index j = 0; j < kCols; j += LANES) {
        for (Index lane = 0; lane < LANES; ++lane) {
            std::uint32_t* to = codes + lane * stride;
            if (j + lane >= count) {
                std::fill(to, to + words, 0u);
                continue;
            }
            const Element* from = problem.weight + (col + j + lane) * problem.stride_weight;
            quantise_row<false>(from, k, end, problem.depth, scales_at(shared, k, col), to);
        }
        for (Index word = 0; word < words; word += LANES) {
            Words rows[LANES];
#pragma GCC unroll 16
            for (Index lane = 0; lane < LANES; ++lane) rows[lane] = vec::load_raw<Words>(codes + lane * stride + word);
            vec::transpose(rows);
            const Index some = std::min<Index>(LANES, words - word);
            for (Index row = 0; row < some; ++row) vec::store_raw(panel + (word + row) * kCols + j, rows[row]);
        }
    }
}
#else
// Codes of LANES columns lie side by side, in a row of W; a word has those of several rows.
inline void pack_words(const Problem& problem, const Shared& shared, Index k, Index col, Index count, Index words,
                       std::uint32_t* panel, std::uint32_t*) {
    const float inverse = 1.0f / *shared.scales;
    for (Index word = 0; word < words; ++word) {
        for (Index j = 0; j < kCols; j += LANES) {
            Words found = {};
#pragma GCC unroll 4
            for (Index part = 0; part < kInWord; ++part) {
                const Index row = k + word * kInWord + part;
                if (row >= problem.depth || j >= count) continue;
                const Element* from = problem.weight + row * problem.stride_weight + col;
                const Floats share = load_until(from, j, count) * inverse;
#if BYTES
                found |= (vec::bit_cast<Words>(share + 0x1.8p23f) & 0xffu) << static_cast<int>(8 * part);
#elif PAIRS
                found |= vec::bit_cast<Words>(rounded(kRight, share)) >> 16 << static_cast<int>(16 * part);
#else
                found = vec::bit_cast<Words>(rounded(kRight, share));
#endif
            }
            vec::store_raw(panel + word * kCols + j, found);
        }
    }
}
#endif

// The columns [col, col + count), from k on.
inline void pack(const Problem& problem, const Shared& shared, Index k, Index col, std::uint32_t* panel,
                 std::uint32_t* codes) {
    const Index count = std::min(kCols, problem.cols - col);
    const Index words = std::min(kWords, ceil_div(round_up(problem.depth, 32) - k, kInWord));
    pack_words(problem, shared, k, col, count, words, panel, codes);
#if BYTES
    for (Index j = 0; j < kCols; j += LANES) {
        Ints sum = {};
        for (Index word = 0; word < words; ++word) {
            sum = dot::add_quads(sum, 0x01010101u, vec::load_raw<Words>(panel + word * kCols + j));
        }
        vec::store_raw(panel + kWords * kCols + j, sum * -128);
    }
#endif
}

// ---- products ---------------------------------------------------------------------------------------------

inline Sum multiply_add(Sum sum, std::uint32_t left, Words right) {
#if BYTES
    return dot::add_quads(sum, left, right);
#elif PAIRS
    return dot::add_pairs(sum, left, right);
#else
    return sum + vec::bit_cast<float>(left) * vec::bit_cast<Floats>(right);
#endif
}

// totals[Rows][kCols] (+)= x[Rows, words] times the panel, with a factor for each row.
template <Index Rows>
static __attribute__((noinline)) void multiply(const std::uint32_t* x, Index stride, const std::uint32_t* panel,
                                               const std::uint32_t* start, Index words, const float* factors,
                                               bool first, float* totals) {
    Sum sums[Rows][MICRO_VECTORS];
#pragma GCC unroll 16
    for (Index i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) {
            sums[i][j] = BYTES ? vec::load_raw<Sum>(start + j * LANES) : Sum{};
        }
    }
    for (Index word = 0; word < words; ++word) {
        Words right[MICRO_VECTORS];
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) right[j] = vec::load_raw<Words>(panel + word * kCols + j * LANES);
#pragma GCC unroll 16
        for (Index i = 0; i < Rows; ++i) {
            const std::uint32_t left = x[i * stride + word];
#pragma GCC unroll 4
            for (Index j = 0; j < MICRO_VECTORS; ++j) sums[i][j] = multiply_add(sums[i][j], left, right[j]);
        }
    }
#pragma GCC unroll 16
    for (Index i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) {
            float* total = totals + i * kCols + j * LANES;
#if BYTES
            const Floats sum = vec::to_floats(sums[i][j]) * factors[i];
#else
            const Floats sum = sums[i][j] * factors[i];
#endif
            vec::store_raw(total, first ? sum : vec::load_raw<Floats>(total) + sum);
        }
    }
}

// The instance for `rows`, 1 to MICRO_ROWS.
template <Index Rows = MICRO_ROWS, class... Arguments>
inline void dispatch(Index rows, Arguments... arguments) {
    if (rows == Rows) {
        multiply<Rows>(arguments...);
    } else if constexpr (Rows > 1) {
        dispatch<Rows - 1>(rows, arguments...);
    }
}

// Of rows [row, row + some) in the group of depth k: the product of both scales.
inline void set_factors(const Shared& shared, Index k, Index row, Index some, Index col, float* factors) {
    for (Index i = 0; i < some; ++i) {
#if defined(SCALING_ROW)
        factors[i] = shared.x_scales[row + i] * *scales_at(shared, k, col);
#elif defined(SCALING_TENSOR)
        factors[i] = *shared.x_scales * *scales_at(shared, k, col);
#elif defined(SCALING_BLOCK)
        factors[i] = shared.x_scales[(row + i) * shared.groups + k / kGroup] * *scales_at(shared, k, col);
#else
        factors[i] = 1.0f;
#endif
    }
    (void)shared, (void)k, (void)row, (void)col;
}

// One tile of y: at most kTileRows rows, at most kCols columns.
inline void compute_tile(const Problem& problem, const Shared& shared, Index row, Index col, Workspace& workspace) {
    const Index rows = std::min(kTileRows, problem.rows - row);
    const Index depth = round_up(problem.depth, 32);
    if (depth == 0) std::fill_n(workspace.totals, rows * kCols, 0.0f);
    for (Index k = 0; k < depth; k += BLOCK_K) {
        std::uint32_t* panel = FUSE ? workspace.panel : shared.panels + (col / kCols * shared.blocks + k / BLOCK_K) * kPanel;
        if (FUSE) pack(problem, shared, k, col, panel, workspace.codes);
        for (Index i = 0; i < rows; i += MICRO_ROWS) {
            const Index some = std::min<Index>(MICRO_ROWS, rows - i);
            for (Index at = k; at < std::min(depth, k + BLOCK_K); at += kGroup) {
                float factors[MICRO_ROWS];
                set_factors(shared, at, row + i, some, col, factors);
                const Index words = std::min(kGroup, depth - at) / kInWord;
                dispatch(some, shared.x + (row + i) * shared.stride + at / kInWord, shared.stride,
                         panel + (at - k) / kInWord * kCols, panel + kWords * kCols, words, factors, at == 0,
                         workspace.totals + i * kCols);
            }
        }
    }
    const Index count = std::min(kCols, problem.cols - col);
    store_rows(workspace.totals, kCols, rows, count, problem.y + row * problem.cols + col, problem.cols);
}

// Where all that threads share lies in one buffer; its size in words, at least one.
inline Index lay_out(const Problem& problem, std::uint32_t* memory, Shared& shared) {
    const Index depth = round_up(problem.depth, 32), strips = ceil_div(problem.cols, kCols);
    shared.groups = ceil_div(problem.depth, kGroup);
    shared.blocks = ceil_div(depth, BLOCK_K);
    shared.stride = depth / kInWord + 16;  // a cache line more avoids conflicts, and vectors end in it
    shared.x = memory;
    shared.x_scales = reinterpret_cast<float*>(memory + problem.rows * shared.stride);
    shared.x_maxima = shared.x_scales + problem.rows * std::max<Index>(shared.groups, 1);
    shared.scales = shared.x_maxima + problem.rows;
    const Index scales = std::max(problem.weight_rows, ceil_div(problem.weight_rows, kGroup) * shared.groups);
    const Index size = round_up(problem.rows * (shared.stride + shared.groups + 2) + scales + 1, 16);
    shared.panels = memory + size;
    return size + (FUSE ? 0 : strips * shared.blocks * kPanel);
}

// The largest of magnitudes; NaN if there is one.
inline float largest_in(const float* maxima, Index count) {
    std::uint32_t largest = 0;
    for (Index i = 0; i < count; ++i) largest = std::max(largest, vec::bit_cast<std::uint32_t>(maxima[i]));
    return vec::bit_cast<float>(largest);
}

// By all threads of a region: scales of what is quantised as a whole. Each thread has them of its own in `one`.
inline void find_scales(const Problem& problem, Shared& shared, float (&one)[2]) {
#if defined(SCALING_BLOCK)
#pragma omp for schedule(static)
    for (Index block = 0; block < ceil_div(problem.weight_rows, kGroup); ++block) {
        scale_blocks(problem, shared, block);
    }
    (void)one;
#elif !defined(SCALING_MICRO)
#pragma omp for schedule(static)
    for (Index row = 0; row < problem.weight_rows; ++row) {
        shared.scales[row] = largest_of(problem.weight + row * problem.stride_weight, problem.stride_weight);
    }
    one[0] = scale_of(largest_in(shared.scales, problem.weight_rows), kRight);
    shared.scales = &one[0];
#if defined(SCALING_TENSOR)
#pragma omp for schedule(static)
    for (Index row = 0; row < problem.rows; ++row) {
        shared.x_maxima[row] = largest_of(problem.x + row * problem.stride_x, problem.depth);
    }
    one[1] = scale_of(largest_in(shared.x_maxima, problem.rows), kLeft);
    shared.x_scales = &one[1];
#endif
#else
    (void)problem, (void)shared, (void)one;
#endif
}

int multiply_all(const Problem& problem) {
    static thread_local vec::Scratch scratch;
    Shared shared{};
    const auto size = static_cast<std::size_t>(lay_out(problem, nullptr, shared)) * sizeof(std::uint32_t);
    auto* memory = static_cast<std::uint32_t*>(scratch.reserve(size));
    if (memory == nullptr) return 1;
    lay_out(problem, memory, shared);
    const Index row_tiles = ceil_div(problem.rows, kTileRows), strips = ceil_div(problem.cols, kCols);
    const bool parallel = problem.rows * problem.cols * problem.depth >= kParallelProducts;
    int failed = 0;
#pragma omp parallel if (parallel) firstprivate(shared) reduction(| : failed)
    {
        thread_local vec::Scratch own;
        auto* workspace = static_cast<Workspace*>(own.reserve(sizeof(Workspace)));
        failed |= workspace == nullptr;
        float scales[2];
        find_scales(problem, shared, scales);
#pragma omp for schedule(static)
        for (Index row = 0; row < problem.rows; ++row) quantise_x(problem, shared, row);
        if (!FUSE) {
#pragma omp for schedule(static)
            for (Index panel = 0; panel < strips * shared.blocks; ++panel) {
                if (workspace == nullptr) continue;
                const Index k = panel % shared.blocks * BLOCK_K, col = panel / shared.blocks * kCols;
                pack(problem, shared, k, col, shared.panels + panel * kPanel, workspace->codes);
            }
        }
#pragma omp for schedule(dynamic)
        for (Index tile = 0; tile < row_tiles * strips; ++tile) {
            if (workspace == nullptr) continue;
            compute_tile(problem, shared, tile / strips * kTileRows, tile % strips * kCols, *workspace);
        }
    }
    return failed;
}

}  // namespace

// x [M, K], weight [N, K], or [K, N] backward -> y [M, N]; the row stride of x in elements. 1: no memory.
extern "C" int linear_dynamic(const Element* x, const Element* weight, Element* y, std::int64_t M, std::int64_t N,
                              std::int64_t K, std::int64_t stride_x) {
#if defined(DIRECTION_FORWARD)
    const Problem problem{x, weight, y, M, N, K, stride_x, N, K};
#else
    const Problem problem{x, weight, y, M, N, K, stride_x, K, N};
#endif
    return problem.rows == 0 || problem.cols == 0 ? 0 : multiply_all(problem);
}
