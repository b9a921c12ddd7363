// Matrix product c = a b, a[M, K], b[K, N], c[M, N] row-major, accumulated in float32; with
// EPILOGUE_BIAS_GELU c = gelu(a b + bias).
//
// 1. Registers (tile.hpp). A micro-kernel keeps MICRO_ROWS x (MICRO_VECTORS vectors) of c in registers over
//    a whole block of k: per step it loads one row of b and broadcasts one column of a, so arithmetic, not
//    loads, is the limit once the sums outnumber latency times ports of the multiply-add (Goto and van de
//    Geijn 2008; Van Zee and van de Geijn 2015, BLIS).
// 2. Caches. A tile of c is computed in blocks of BLOCK_K: its block of b is packed into panels as wide as
//    the micro-kernel, its rows of a side by side, both contiguous and free of cache-set conflicts. The
//    panel of a stays in L1 while b's panels stream from L2; sums wait in float32 in L2 between blocks.
// 3. Threads share tiles of c and nothing else: no barriers, at the price of packing a block of b once per
//    row of tiles, about 2 % at kTileRows rows. The order of summation does not depend on the number of
//    threads.
// 4. bfloat16 on AVX512_BF16: pairs of k go through vdpbf16ps, twice the products per instruction. Other
//    16-bit inputs become float32 while they are packed.
// 5. Few rows, as in decoding one token (strip.hpp). Each element of b is used at most kFewRows times, so
//    memory is the limit and packing would only add to it: strips of b stream through once, several rows of
//    b at a time, and the sums of a strip stay in L1.
// 6. PREFETCH asks for rows of b to come: a tile reads short pieces of many rows, which hardware
//    prefetchers, bound to pages, see too late.
// 7. The epilogue takes the sums of a micro-tile while they are in L1, before c is written for the first
//    time.

#include "strip.hpp"
#include "tile.hpp"

#include <omp.h>

using namespace product;

namespace {

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

int multiply(const Problem& problem) {
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

}  // namespace

// Dimensions M, N, K; row strides in elements. Returns 1 where there is no memory.
#if defined(EPILOGUE_BIAS_GELU)
extern "C" int matmul(const Element* a, const Element* b, const Element* bias, Element* c, std::int64_t M,
                      std::int64_t N, std::int64_t K, std::int64_t stride_a, std::int64_t stride_b) {
    return M == 0 || N == 0 ? 0 : multiply({a, b, bias, c, M, N, K, stride_a, stride_b});
}
#else
extern "C" int matmul(const Element* a, const Element* b, Element* c, std::int64_t M, std::int64_t N,
                      std::int64_t K, std::int64_t stride_a, std::int64_t stride_b) {
    return M == 0 || N == 0 ? 0 : multiply({a, b, nullptr, c, M, N, K, stride_a, stride_b});
}
#endif
