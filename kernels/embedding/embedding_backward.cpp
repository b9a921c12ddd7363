// Gradient of the matrix that the vectors of tokens are rows of: dweight[token] is the sum of dy over the
// rows with that token, and 0 if there are none.
//
// Bound by writing dweight, which is much larger than dy:
//
// 1. FUSE: tokens are sorted first, so that each row of dweight is written once, with zeros or with its sum.
//    Without it all of it is zeroed, and what has gradients is written again.
// 2. STREAM: rows go past the caches, which need not read first what is overwritten.
// 3. Sums stay in registers, UNROLL vectors at a time, in float32 and in the order of the rows: repeated
//    tokens need no atomics, whose order would vary, and are rounded once.
//
// A thread has kRows rows of dweight at a time; one token that all rows have is one thread's work.

#include <algorithm>

#include "../rows.hpp"

using vec::Element;
using vec::Floats;
using rows::Index;

namespace {

constexpr Index kRows = 32;

struct Use {
    std::int64_t token, row;
    bool operator<(const Use& other) const {
        return token < other.token || (token == other.token && row < other.row);
    }
};

struct Problem {
    const Element* dy;
    Element* dweight;
    Index cols;
    bool past;
};

// dweight[token] = the sum over uses [begin, end), all of this token.
inline void add_up(const Problem& problem, std::int64_t token, const Use* begin, const Use* end) {
    const Index cols = problem.cols;
    const auto sum = [&](Index col, auto whole) {
        Floats result{};
        for (const Use* use = begin; use < end; ++use) {
            result += rows::load(whole, problem.dy + use->row * cols + col, cols - col);
        }
        rows::store(whole, problem.dweight + token * cols + col, cols - col, result, problem.past);
    };
    Index col = 0;
    for (; col + rows::kStep <= cols; col += rows::kStep) {
        Floats sums[UNROLL] = {};
        for (const Use* use = begin; use < end; ++use) {
            const Element* from = problem.dy + use->row * cols + col;
#pragma GCC unroll 8
            for (int u = 0; u < UNROLL; ++u) sums[u] += vec::load(from + u * LANES);
        }
        Element* to = problem.dweight + token * cols + col;
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            rows::store(std::true_type{}, to + u * LANES, LANES, sums[u], problem.past);
        }
    }
    for (; col + LANES <= cols; col += LANES) sum(col, std::true_type{});
    if (col < cols) sum(col, std::false_type{});
}

inline void clear(const Problem& problem, Index begin, Index end) {
    rows::for_each_vector(begin, end, [&](Index at, int, auto whole) {
        rows::store(whole, problem.dweight + at, end - at, Floats{}, problem.past);
    });
}

}  // namespace

// weight[classes, cols] is not read; token[rows], dy[rows, cols] -> dweight[classes, cols]. 1: no memory.
extern "C" int embedding_backward(const Element*, const std::int64_t* token, const Element* dy,
                                  Element* dweight, std::int64_t rows, std::int64_t classes,
                                  std::int64_t cols) {
    const Problem problem{dy, dweight, cols, STREAM && vec::streamable(dweight) && cols % LANES == 0};
    static thread_local vec::Scratch scratch;
    auto* uses = static_cast<Use*>(scratch.reserve(static_cast<std::size_t>(rows) * sizeof(Use) + 1));
    if (uses == nullptr) return 1;
    for (Index row = 0; row < rows; ++row) uses[row] = {token[row], row};
    std::sort(uses, uses + rows);
#pragma omp parallel if (classes * cols >= rows::kParallelElements)
    {
        if (!FUSE) {
#pragma omp for schedule(static)
            for (Index row = 0; row < classes; ++row) clear(problem, row * cols, (row + 1) * cols);
        }
#pragma omp for schedule(dynamic)
        for (Index first = 0; first < classes; first += kRows) {
            const Use* use = std::lower_bound(uses, uses + rows, Use{first, 0});
            for (Index row = first; row < std::min(classes, first + kRows); ++row) {
                const Use* end = use;
                while (end < uses + rows && end->token == row) ++end;
                if (use < end) {
                    add_up(problem, row, use, end);
                } else if (FUSE) {
                    clear(problem, row * cols, (row + 1) * cols);
                }
                use = end;
            }
        }
        if (STREAM) vec::stream_fence();
    }
    return 0;
}
