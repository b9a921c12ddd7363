// A linear layer whose weights are bfloat16 with entropy-coded exponents: y = x w, x[M, K], y[M, N], in float32.
//
// 1. Decoding costs more than the product of a few rows, and is done once: a block of STEPS rows and a few columns is
//    decoded to a panel in L1 (exponents.hpp), which all rows of x meet before the next one.
// 2. FUSE: what is decoded never reaches memory. Without it all weights are decompressed first, as DFloat11 does with
//    a block of layers (Zhang et al. 2025, arXiv:2504.11651).
// 3. The product has micro_kernel.hpp's MICRO_ROWS x MICRO_VECTORS vectors of sums in registers; the columns of these
//    vectors are also the streams that are decoded side by side.
//
// Threads share strips of columns. The order of summation depends on the shape alone.

#include "../micro_kernel.hpp"
#include "../store_rows.hpp"
#include "exponents.hpp"

using namespace exponents;
using micro::kColumns;
using vec::Element;
using vec::Floats;

namespace {

constexpr Index kTileRows = 480 / MICRO_ROWS * MICRO_ROWS;  // their sums stay in L2
constexpr Index kParallelProducts = 1 << 14;                // below, starting the threads takes longer than the work

struct Problem {
    const Element* x;
    Stored weights;
    Element* y;
    Index rows, stride_x;

    Index depth() const { return weights.rows; }
    Index cols() const { return weights.cols; }
    Index strips() const { return ceil_div(cols(), kColumns); }
    Index padded_rows() const { return micro::round_up(rows, MICRO_ROWS); }
};

// Where a thread works.
struct Workspace {
    alignas(64) float panel[kSteps * kColumns];
    alignas(64) float totals[kTileRows * kColumns];
};

inline Floats to_floats(Words bits) { return vec::bit_cast<Floats>(bits << 16); }

inline void decode_panel(const Problem& problem, const Table& table, Index block, Index col, float* panel) {
    decode<MICRO_VECTORS>(problem.weights, table, block, col, [&](Index row, int vector, Words bits) {
        vec::store_raw(panel + (row - block * kSteps) * kColumns + vector * LANES, to_floats(bits));
    });
}

// All weights as they are, [depth, strips * kColumns].
void decompress(const Problem& problem, const Table& table, std::uint16_t* weights) {
    const Index blocks = problem.weights.blocks(), stride = problem.strips() * kColumns;
#pragma omp for schedule(static)
    for (Index task = 0; task < blocks * problem.strips(); ++task) {
        const Index col = task % problem.strips() * kColumns;
        decode<MICRO_VECTORS>(problem.weights, table, task / problem.strips(), col,
                              [&](Index row, int vector, Words bits) {
                                  vec::store_raw(weights + row * stride + col + vector * LANES,
                                                 vec::narrow_words(bits));
                              });
    }
}

inline void widen_panel(const Problem& problem, const std::uint16_t* weights, Index block, Index col, float* panel) {
    const Index last = std::min(problem.depth(), (block + 1) * kSteps);
    for (Index row = block * kSteps; row < last; ++row) {
        const std::uint16_t* from = weights + row * problem.strips() * kColumns + col;
        for (Index at = 0; at < kColumns; at += LANES, panel += LANES) {
            vec::store_raw(panel, to_floats(vec::widen_words(vec::load_raw<vec::Halves>(from + at))));
        }
    }
}

// Rows [row, row + kTileRows) of one strip of y; x is [padded_rows, depth].
void compute_strip(const Problem& problem, const Table& table, const float* x, const std::uint16_t* weights,
                   Index row, Index col, Workspace& work) {
    const Index rows = std::min(kTileRows, problem.rows - row), depth = problem.depth();
    for (Index block = 0; block == 0 || block < problem.weights.blocks(); ++block) {
        const Index steps = std::clamp<Index>(depth - block * kSteps, 0, kSteps);
        if (FUSE && steps > 0) decode_panel(problem, table, block, col, work.panel);
        if (!FUSE) widen_panel(problem, weights, block, col, work.panel);
        for (Index i = 0; i < rows; i += MICRO_ROWS) {
            const float* left = x + (row + i) * depth + block * kSteps;
            float* totals = work.totals + i * kColumns;
            if (block == 0) {
                micro::multiply<false>(left, depth, work.panel, kColumns, totals, kColumns, steps);
            } else {
                micro::multiply<true>(left, depth, work.panel, kColumns, totals, kColumns, steps);
            }
        }
    }
    store_rows(work.totals, kColumns, rows, std::min(kColumns, problem.cols() - col),
               problem.y + row * problem.cols() + col, problem.cols());
}

void widen_row(const Problem& problem, Index row, float* to) {
    const Index depth = problem.depth();
    if (row >= problem.rows) return std::fill(to, to + depth, 0.0f);
    const Element* from = problem.x + row * problem.stride_x;
    Index k = 0;
    for (; k + LANES <= depth; k += LANES) vec::store_raw(to + k, vec::load(from + k));
    for (; k < depth; ++k) to[k] = vec::to_float(from[k]);
}

int multiply(const Problem& problem) {
    static thread_local vec::Scratch widened, decoded;
    const Index rows = problem.padded_rows(), depth = problem.depth();
    auto* x = static_cast<float*>(widened.reserve(static_cast<std::size_t>(rows * depth + 1) * sizeof(float)));
    const std::size_t size = FUSE ? 1 : static_cast<std::size_t>(depth * problem.strips() * kColumns + 1);
    auto* weights = static_cast<std::uint16_t*>(decoded.reserve(size * sizeof(std::uint16_t)));
    if (x == nullptr || weights == nullptr) return 1;
    const Table table(problem.weights.table);
    const Index tiles = ceil_div(problem.rows, kTileRows);
    int failed = 0;
#pragma omp parallel if (problem.cols() * depth >= kParallelProducts) reduction(| : failed)
    {
        thread_local vec::Scratch scratch;
        auto* work = static_cast<Workspace*>(scratch.reserve(sizeof(Workspace)));
        failed |= work == nullptr;
#pragma omp for schedule(static)
        for (Index row = 0; row < rows; ++row) widen_row(problem, row, x + row * depth);
        if (!FUSE) decompress(problem, table, weights);
#pragma omp for schedule(dynamic, 4)
        for (Index task = 0; task < tiles * problem.strips(); ++task) {
            if (work == nullptr) continue;
            compute_strip(problem, table, x, weights, task / problem.strips() * kTileRows,
                          task % problem.strips() * kColumns, *work);
        }
    }
    return failed;
}

}  // namespace

// Dimensions M, N, K; the row stride of x in elements. Returns 1 where there is no memory.
extern "C" int linear(const Element* x, const std::uint8_t* plain, const std::int32_t* words,
                      const std::int32_t* starts, const std::int16_t* offsets, const std::int16_t* table, Element* y,
                      std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t stride_x) {
    if (M == 0 || N == 0) return 0;
    return multiply({x, {plain, words, starts, offsets, table, K, N}, y, M, stride_x});
}
