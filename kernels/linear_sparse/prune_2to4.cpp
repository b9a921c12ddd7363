// 2:4 pruning of weights by a soft threshold (Hu et al. 2024, arXiv:2409.09099), in the form that linear_2to4 reads:
// values and positions lie in rows along the outputs of the layer, the weights in rows along its inputs.
//
// 1. A square of LANES x LANES weights is transposed in registers. Then a vector has one weight of each of LANES
//    rows, and the four of a group are four vectors: all decisions are comparisons and selections of whole vectors.
// 2. Magnitudes are compared as integers, in whose order NaN is above infinity. A weight's rank is how many of its
//    group come before it: larger ones, and equal ones on its left.
// 3. COLUMNS: vectors of results are shorter than a cache line, and the next row is far away. So that lines are
//    whole when they leave the cache, this many rows of W take turns.
//
// Bound by memory bandwidth: each weight is read once, and half of them are written.

#include <algorithm>

#include "../vector.hpp"

using vec::Element;
using vec::Floats;
using vec::Ints;
using vec::Words;
using Index = std::ptrdiff_t;

namespace {

constexpr Index kSide = std::max<Index>(LANES, 8);  // columns of W that are read together: whole bytes of positions
constexpr Index kStep = 64;                         // columns of W that a block of rows goes through in turn
constexpr Index kParallelElements = 1 << 14;        // below, starting the threads takes longer than the work

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }

struct Problem {
    const Element* weight;
    Element* values;
    std::uint8_t* positions;
    Index rows, cols;  // of W
    float scale;
};

// Two weights of each group, and their positions in two times 2 bits.
struct Kept {
    Floats first, second;
    Words positions;
};

inline Ints number(int value) { return Ints{} + value; }

inline Kept prune(const Floats (&weights)[4], float scale) {
    Ints size[4], rank[4];
    for (int i = 0; i < 4; ++i) size[i] = vec::bit_cast<Ints>(vec::bit_cast<Words>(weights[i]) & 0x7fffffffu);
    for (int i = 0; i < 4; ++i) rank[i] = Ints{};
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
        for (int j = i + 1; j < 4; ++j) {
            const Ints before = size[i] >= size[j] ? number(1) : Ints{};
            rank[j] += before;
            rank[i] += number(1) - before;
        }
    }
    Ints third = size[3];
    for (int i = 0; i < 3; ++i) third = rank[i] == 2 ? size[i] : third;
    const Floats threshold = vec::bit_cast<Floats>(third);
    const auto shrunk = [&](Floats weight) {
        const Words sign = vec::bit_cast<Words>(weight) & 0x80000000u;
        const Floats rest = vec::bit_cast<Floats>(vec::bit_cast<Words>(weight) ^ sign) - threshold;
        return vec::bit_cast<Floats>(vec::bit_cast<Words>(rest * scale) ^ sign);
    };
    Floats first = weights[2], second = weights[1];
    Ints place = number(2), next = number(1);
    first = rank[1] < 2 ? weights[1] : first;
    place = rank[1] < 2 ? number(1) : place;
    first = rank[0] < 2 ? weights[0] : first;
    place = rank[0] < 2 ? Ints{} : place;
    second = rank[2] < 2 ? weights[2] : second;
    next = rank[2] < 2 ? number(2) : next;
    second = rank[3] < 2 ? weights[3] : second;
    next = rank[3] < 2 ? number(3) : next;
    return {shrunk(first), shrunk(second), vec::bit_cast<Words>(place | next << 2)};
}

// columns[c] has column `col + c` of LANES rows of W; what is not in W is 0.
inline void load_columns(const Problem& problem, Index row, Index rows, Index col, Floats (&columns)[kSide]) {
    const Index cols = std::min(kSide, problem.cols - col);
#if LANES == 1
    (void)rows;
    for (Index c = 0; c < kSide; ++c) {
        columns[c] = c < cols ? vec::to_float(problem.weight[row * problem.cols + col + c]) : 0.0f;
    }
#else
    Words square[LANES];
#pragma GCC unroll 16
    for (Index lane = 0; lane < LANES; ++lane) {
        const Element* from = problem.weight + (row + std::min(lane, rows - 1)) * problem.cols + col;
        square[lane] = vec::bit_cast<Words>(cols == LANES ? vec::load(from) : vec::load_some(from, cols, 0.0f));
    }
    vec::transpose(square);
#pragma GCC unroll 16
    for (Index c = 0; c < LANES; ++c) columns[c] = vec::bit_cast<Floats>(square[c]);
#endif
}

inline void store_values(const Problem& problem, Index at, Index row, Index rows, Floats values) {
    Element* to = problem.values + at * problem.rows + row;
    if (rows == LANES) {
        vec::store(to, values);
    } else {
        vec::store_some(to, rows, values);
    }
}

inline void store_positions(const Problem& problem, Index at, Index row, Index rows, Words bytes) {
    std::uint8_t* to = problem.positions + at * problem.rows + row;
    if (rows == LANES) return vec::store_bytes(to, bytes);
    std::uint8_t lanes[LANES];
    vec::store_bytes(lanes, bytes);
    std::copy_n(lanes, rows, to);
}

// kSide columns of LANES rows of W.
inline void prune_square(const Problem& problem, Index row, Index rows, Index col) {
    Floats columns[kSide];
    load_columns(problem, row, rows, col, columns);
#pragma GCC unroll 2
    for (Index byte = 0; byte < kSide / 8; ++byte) {
        if (col + 8 * byte >= problem.cols) break;
        Words positions = {};
#pragma GCC unroll 2
        for (Index group = 0; group < 2; ++group) {
            const Index at = 8 * byte + 4 * group;
            const Floats weights[4] = {columns[at], columns[at + 1], columns[at + 2], columns[at + 3]};
            const Kept kept = prune(weights, problem.scale);
            positions |= kept.positions << static_cast<int>(4 * group);
            if (col + at >= problem.cols) continue;
            store_values(problem, (col + at) / 2, row, rows, kept.first);
            store_values(problem, (col + at) / 2 + 1, row, rows, kept.second);
        }
        store_positions(problem, col / 8 + byte, row, rows, positions);
    }
}

}  // namespace

// weight [N, K] -> values [2 ceil(K / 4), N], positions [ceil(K / 8), N]. Always returns 0.
extern "C" int prune_2to4(const Element* weight, Element* values, std::uint8_t* positions, std::int64_t N,
                          std::int64_t K, double scale) {
    const Problem problem{weight, values, positions, N, K, static_cast<float>(scale)};
    const Index blocks = ceil_div(N, COLUMNS), steps = ceil_div(K, kStep);
#pragma omp parallel for schedule(static) if (N * K >= kParallelElements)
    for (Index task = 0; task < blocks * steps; ++task) {
        const Index first = task / steps * COLUMNS, start = task % steps * kStep;
        const Index last = std::min<Index>(N, first + COLUMNS), end = std::min<Index>(K, start + kStep);
        for (Index col = start; col < end; col += kSide) {
            for (Index row = first; row < last; row += LANES) {
                prune_square(problem, row, std::min<Index>(LANES, last - row), col);
            }
        }
    }
    return 0;
}
