// Linear layer with sparse weights: y = x W^T, x[M, K], y[M, N], accumulated in float32.
// FORM_UNSTRUCTURED: one weight, anywhere, in each `segment` columns of a row of W, as a value and a position
// in a byte. FORM_2TO4: two weights in each 4 columns (Mishra et al. 2021, arXiv:2104.08378), positions of 2
// bits.
//
// 1. Both are read in units: the columns of x whose weights' positions share a byte. A vector holds one
//    weight for each of LANES columns of y. Few rows of x are bound by the traffic of the weights, which stay
//    compressed until they are in registers.
// 2. Sparse products: the elements of x that a vector of weights meets are selected, then multiplied. With
//    TABLE a register holds a unit of x, of up to 32 columns, and a permutation selects; else they are
//    gathered from memory.
// 3. DENSE: load as sparse, compute as dense (Xia et al. 2023, arXiv:2309.10285). A block of weights becomes
//    a dense panel in L1, once for all rows of a tile: more multiplications, but without selections.
// 4. COLUMNS: with strips of a few vectors alone, each row of values is read in short pieces, one a page, which
//    no hardware prefetcher foresees. So strips that lie side by side take turns after every few rows.
//
// Threads share blocks of columns. The order of summation depends on the shape alone.

#include <algorithm>

#include "../micro_kernel.hpp"
#include "../store_rows.hpp"

using vec::Element;
using vec::Floats;
using vec::Words;
using Index = std::ptrdiff_t;

namespace {

#if defined(FORM_2TO4)
constexpr Index kGroups = 2;  // of columns, in a unit
constexpr Index kKept = 2;    // weights in a group
#else
constexpr Index kGroups = 1;
constexpr Index kKept = 1;
#endif
constexpr Index kUnitRows = kGroups * kKept;  // rows of values in a unit

constexpr Index kCols = micro::kColumns;
constexpr Index kTileRows = 120 / MICRO_ROWS * MICRO_ROWS;
constexpr Index kPanelRows = 256;  // of a dense panel
constexpr Index kFewRows = 8;      // of x
constexpr Index kValueRows = 16;   // of values that a task reads at a time; with few rows of x, half of them
constexpr Index kTaskCols = std::max<Index>(COLUMNS, kCols);
constexpr Index kPadding = 48;     // floats behind a row of x: a table, and a line more avoids conflicts
constexpr Index kParallelProducts = 1 << 17;  // below, starting the threads takes longer than the work

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }

struct Problem {
    const Element* x;
    const Element* values;
    const std::uint8_t* positions;
    Element* y;
    Index rows, cols, depth;
    Index value_rows;
    Index width;  // columns of x in a unit, at most 256
    Index stride_x;
};

// Some units of the weights, kCols columns of y.
struct Block {
    const Element* values;
    const std::uint8_t* positions;
    Index stride;  // of both, from row to row
    Index units;
};

// Where a thread works.
struct Workspace {
    alignas(64) float panel[kPanelRows * kCols];
    alignas(64) float totals[kTileRows * kTaskCols];
    alignas(64) Element values[std::max(kPanelRows, kValueRows) * kCols];
    alignas(64) std::uint8_t positions[std::max(kPanelRows, kValueRows) * kCols];
    Block block;
};

// Of one row of values, within its unit.
inline Words position_of(Words byte, Index row) {
#if defined(FORM_2TO4)
    const Words position = byte >> static_cast<int>(2 * row) & 3u;
    return row < kKept ? position : position | 4u;
#else
    (void)row;
    return byte;
#endif
}

// Each lane's element of a unit of x. Entries: columns of the unit at most, 0 for any number.
template <int Entries>
inline Floats select(const float* unit, Words position) {
    if constexpr (Entries == 0) {
        return vec::gather(unit, position);
    } else if constexpr (Entries == 8) {
#if defined(__AVX2__) && LANES == 8
        return _mm256_permutevar8x32_ps(vec::load_raw<__m256>(unit), vec::bit_cast<__m256i>(position));
#endif
    } else if constexpr (Entries == 32) {
#if defined(__AVX512F__) && LANES == 16
        const auto low = vec::load_raw<__m512>(unit), high = vec::load_raw<__m512>(unit + 16);
        return _mm512_permutex2var_ps(low, vec::bit_cast<__m512i>(position), high);
#else
        return position < 16u ? vec::look_up(unit, position) : vec::look_up(unit + 16, position);
#endif
    }
    return vec::look_up(unit, position);
}

// totals[Rows][kCols] (+)= x[Rows, block] times the block, kept weights only.
template <int Entries, Index Rows>
static __attribute__((noinline)) void multiply_kept(const Block& block, Index width, const float* x,
                                                    Index stride_x, bool first, float* totals) {
    Floats sums[Rows][MICRO_VECTORS] = {};
    for (Index unit = 0; unit < block.units; ++unit) {
        const float* columns = x + unit * width;
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) {
            const Words byte = vec::load_bytes(block.positions + unit * block.stride + j * LANES);
            const Element* values = block.values + unit * kUnitRows * block.stride + j * LANES;
#pragma GCC unroll 4
            for (Index row = 0; row < kUnitRows; ++row) {
                const Words position = position_of(byte, row);
                const Floats value = vec::load(values + row * block.stride);
#pragma GCC unroll 16
                for (Index i = 0; i < Rows; ++i) {
                    sums[i][j] += value * select<Entries>(columns + i * stride_x, position);
                }
            }
        }
    }
#pragma GCC unroll 16
    for (Index i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) {
            float* total = totals + i * kCols + j * LANES;
            vec::store_raw(total, first ? sums[i][j] : vec::load_raw<Floats>(total) + sums[i][j]);
        }
    }
}

// The instance for `rows`, 1 to MICRO_ROWS.
template <int Entries, Index Rows = MICRO_ROWS>
inline void dispatch_rows(Index rows, const Block& block, Index width, const float* x, Index stride_x,
                          bool first, float* totals) {
    if (rows == Rows) {
        multiply_kept<Entries, Rows>(block, width, x, stride_x, first, totals);
    } else if constexpr (Rows > 1) {
        dispatch_rows<Entries, Rows - 1>(rows, block, width, x, stride_x, first, totals);
    }
}

inline void dispatch(Index rows, const Block& block, Index width, const float* x, Index stride_x, bool first,
                     float* totals) {
#if !TABLE
    dispatch_rows<0>(rows, block, width, x, stride_x, first, totals);
#elif defined(FORM_2TO4)
    dispatch_rows<8>(rows, block, width, x, stride_x, first, totals);
#else
    if (width <= 8 && LANES == 8) {
        dispatch_rows<8>(rows, block, width, x, stride_x, first, totals);
    } else if (width <= 16) {
        dispatch_rows<16>(rows, block, width, x, stride_x, first, totals);
    } else if (width <= 32) {
        dispatch_rows<32>(rows, block, width, x, stride_x, first, totals);
    } else {
        dispatch_rows<0>(rows, block, width, x, stride_x, first, totals);
    }
#endif
}

// panel[units * width][kCols] = the block, zeros included.
inline void decode_panel(const Block& block, Index width, float* panel) {
    for (Index unit = 0; unit < block.units; ++unit) {
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) {
            const Words byte = vec::load_bytes(block.positions + unit * block.stride + j * LANES);
            const Element* values = block.values + unit * kUnitRows * block.stride + j * LANES;
            float* to = panel + unit * width * kCols + j * LANES;
#pragma GCC unroll 2
            for (Index group = 0; group < kGroups; ++group) {
                Floats value[kKept];
                Words position[kKept];
#pragma GCC unroll 2
                for (Index kept = 0; kept < kKept; ++kept) {
                    const Index row = group * kKept + kept;
                    value[kept] = vec::load(values + row * block.stride);
                    position[kept] = position_of(byte, row);
                }
                const Index end = (group + 1) * width / kGroups;
                for (Index column = group * width / kGroups; column < end; ++column) {
                    Floats weight = {};
#pragma GCC unroll 2
                    for (Index kept = 0; kept < kKept; ++kept) {
                        const auto here = position[kept] == static_cast<std::uint32_t>(column);
                        weight += here ? value[kept] : Floats{};
                    }
                    vec::store_raw(to + column * kCols, weight);
                }
            }
        }
    }
}

// totals[rows][kCols] (+)= x[rows, block] times the block, which becomes dense before.
inline void multiply_dense(const Block& block, Index width, Index rows, const float* x, Index stride_x,
                           bool first, float* totals, float* panel) {
    decode_panel(block, width, panel);
    const auto multiply = first ? micro::multiply<false> : micro::multiply<true>;
    for (Index i = 0; i < rows; i += MICRO_ROWS) {
        multiply(x + i * stride_x, stride_x, panel, kCols, totals + i * kCols, kCols, block.units * width);
    }
}

// The same by its weights alone.
inline void multiply_sparse(const Block& block, Index width, Index rows, const float* x, Index stride_x,
                            bool first, float* totals) {
    for (Index i = 0; i < rows; i += MICRO_ROWS) {
        const Index some = std::min<Index>(MICRO_ROWS, rows - i);
        dispatch(some, block, width, x + i * stride_x, stride_x, first, totals + i * kCols);
    }
}

// A row of x in float32, zeros behind its end.
inline void pack_row(const Element* x, Index depth, float* to, Index length) {
    Index k = 0;
    for (; k + LANES <= depth; k += LANES) vec::store_raw(to + k, vec::load(x + k));
    for (; k < depth; ++k) to[k] = vec::to_float(x[k]);
    std::fill(to + depth, to + length, 0.0f);
}

// The units from `unit` on, at most `units`, for the columns [col, col + count). If there are fewer than
// kCols of them, or rows of values are missing in the last unit, the block is copied, so that no load ends
// behind the matrix.
inline void set_block(const Problem& problem, Index unit, Index units, Index col, Index count,
                      Workspace& workspace) {
    Block& block = workspace.block;
    const Index first_row = unit * kUnitRows;
    const Index all_units = ceil_div(problem.value_rows, kUnitRows);
    block.units = std::min(units, all_units - unit);
    const Index rows = std::min(block.units * kUnitRows, problem.value_rows - first_row);
    block.values = problem.values + first_row * problem.cols + col;
    block.positions = problem.positions + unit * problem.cols + col;
    block.stride = problem.cols;
    if (count == kCols && rows == block.units * kUnitRows) return;
    std::fill_n(workspace.values, block.units * kUnitRows * kCols, Element{0});
    std::fill_n(workspace.positions, block.units * kCols, std::uint8_t{0});
    for (Index row = 0; row < rows; ++row) {
        std::copy_n(block.values + row * block.stride, count, workspace.values + row * kCols);
    }
    for (Index row = 0; row < block.units; ++row) {
        std::copy_n(block.positions + row * block.stride, count, workspace.positions + row * kCols);
    }
    block.values = workspace.values;
    block.positions = workspace.positions;
    block.stride = kCols;
}

// One tile of y: at most kTileRows rows, at most kTaskCols columns, in strips of kCols.
inline void compute_tile(const Problem& problem, const float* x, Index stride_x, Index row, Index col,
                         Workspace& workspace) {
    const Index rows = std::min(kTileRows, problem.rows - row);
    const Index count = std::min(kTaskCols, problem.cols - col);
    const bool dense = DENSE && rows > MICRO_ROWS;
    const Index value_rows = rows > kFewRows ? kValueRows : kValueRows / 2;
    const Index step = dense ? std::max<Index>(kPanelRows / problem.width, 1) : value_rows / kUnitRows;
    const Block& block = workspace.block;
    for (Index unit = 0; unit == 0 || unit * kUnitRows < problem.value_rows; unit += step) {
        for (Index strip = 0; strip < count; strip += kCols) {
            set_block(problem, unit, step, col + strip, std::min(kCols, count - strip), workspace);
            const float* from = x + row * stride_x + unit * problem.width;
            float* totals = workspace.totals + strip * kTileRows;
            if (dense) {
                multiply_dense(block, problem.width, rows, from, stride_x, unit == 0, totals, workspace.panel);
            } else {
                multiply_sparse(block, problem.width, rows, from, stride_x, unit == 0, totals);
            }
        }
    }
    for (Index strip = 0; strip < count; strip += kCols) {
        const float* totals = workspace.totals + strip * kTileRows;
        Element* y = problem.y + row * problem.cols + col + strip;
        store_rows(totals, kCols, rows, std::min(kCols, count - strip), y, problem.cols);
    }
}

int multiply(const Problem& problem) {
    static thread_local vec::Scratch packed;
    const Index stride_x = ceil_div(problem.value_rows, kUnitRows) * problem.width + kPadding;
    const Index packed_rows = micro::round_up(problem.rows, MICRO_ROWS);
    auto* x = static_cast<float*>(
        packed.reserve(static_cast<std::size_t>(packed_rows * stride_x) * sizeof(float)));
    if (x == nullptr) return 1;
    const Index row_tiles = ceil_div(problem.rows, kTileRows), col_tiles = ceil_div(problem.cols, kTaskCols);
    const bool parallel = problem.rows * problem.cols * problem.value_rows >= kParallelProducts;
    int failed = 0;
#pragma omp parallel if (parallel) reduction(| : failed)
    {
        thread_local vec::Scratch scratch;
        void* memory = scratch.reserve(sizeof(Workspace));
        failed |= memory == nullptr;
#pragma omp for schedule(static)
        for (Index row = 0; row < packed_rows; ++row) {
            const Index depth = row < problem.rows ? problem.depth : 0;
            const Element* from = problem.x + (depth > 0 ? row * problem.stride_x : 0);
            pack_row(from, depth, x + row * stride_x, stride_x);
        }
#pragma omp for schedule(dynamic)
        for (Index tile = 0; tile < row_tiles * col_tiles; ++tile) {
            if (memory == nullptr) continue;
            compute_tile(problem, x, stride_x, tile / col_tiles * kTileRows, tile % col_tiles * kTaskCols,
                         *static_cast<Workspace*>(memory));
        }
    }
    return failed;
}

}  // namespace

// K: columns of x, or weights of a row that are kept; the row stride of x in elements. Returns 1 where there is no memory.
#if defined(FORM_2TO4)
extern "C" int linear_sparse(const Element* x, const Element* values, const std::uint8_t* positions,
                             Element* y, std::int64_t M, std::int64_t N, std::int64_t K,
                             std::int64_t stride_x) {
    if (M == 0 || N == 0) return 0;
    return multiply({x, values, positions, y, M, N, K, 2 * ceil_div(K, 4), 8, stride_x});
}
#else
extern "C" int linear_sparse(const Element* x, const Element* values, const std::uint8_t* positions,
                             Element* y, std::int64_t M, std::int64_t N, std::int64_t K,
                             std::int64_t segment) {
    if (M == 0 || N == 0) return 0;
    return multiply({x, values, positions, y, M, N, K * segment, K, segment, K * segment});
}
#endif
