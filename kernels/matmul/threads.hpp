// The whole product: tiles or strips of c, shared among threads.
#pragma once

#include "strip.hpp"
#include "tile.hpp"

#include <omp.h>

namespace product {

constexpr Index kParallelProducts = 1 << 17;  // below, starting the threads takes longer than the work

// Parts of at most `most` and a multiple of `unit`, so many that every thread has equally many where that is
// possible; `others` is the number of parts in the other direction.
inline Index part_size(Index total, Index most, Index unit, Index others, Index threads) {
    Index parts = ceil_div(total, most);
    const Index limit = ceil_div(total, unit);
    while (parts < limit &&
           (parts * others < threads || (parts * others < 4 * threads && parts * others % threads))) {
        ++parts;
    }
    return ceil_div(ceil_div(total, parts), unit) * unit;
}

// c = a b by all threads. Returns 1 where there is no memory.
inline int multiply(const Problem& problem) {
    const bool parallel = problem.rows * problem.cols * problem.depth >= kParallelProducts;
    const Index threads = parallel ? omp_get_max_threads() : 1;
    const bool few = problem.rows <= kFewRows;
    const Index row_tiles = few ? 1 : ceil_div(problem.rows, kTileRows);
    const Index rows = ceil_div(problem.rows, row_tiles);
    const Index cols = part_size(problem.cols, few ? kStripCols : kTileCols, kCols, row_tiles, threads);
    const Index col_tiles = ceil_div(problem.cols, cols);
    int failed = 0;
#pragma omp parallel num_threads(threads) reduction(| : failed)
    {
        thread_local vec::Scratch scratch;
        void* memory = few ? nullptr : scratch.reserve(Buffers::kWords * sizeof(Packed));
        failed |= !few && memory == nullptr;
#pragma omp for schedule(dynamic) collapse(2)
        for (Index i = 0; i < row_tiles; ++i) {
            for (Index j = 0; j < col_tiles; ++j) {
                const Index row = i * rows;
                const Index col = j * cols;
                const Index count = std::min(cols, problem.cols - col);
                if (few) {
                    compute_strip<kFewRows>(problem, col, count);
                } else if (memory != nullptr) {
                    compute_tile(problem, {row, col, std::min(rows, problem.rows - row), count},
                                 Buffers(memory));
                }
            }
        }
    }
    return failed;
}

}  // namespace product
