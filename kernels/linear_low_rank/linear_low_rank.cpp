// A linear layer whose weights are two factors of low rank: y = (x down) up, x[M, K], down[K, R], up[R, N],
// accumulated in float32; R (K + N) multiply-adds a row where the whole weights take K N.
//
// 1. Both products are those of matmul: packed panels, MICRO_ROWS x MICRO_VECTORS vectors of sums in registers,
//    blocks of BLOCK_K in the caches (tile.hpp); up to four rows stream the factors through once (strip.hpp).
// 2. FUSE: a thread takes a tile of rows through both products. What lies between them, R values a row, never
//    leaves its L2, and no thread waits for another in between; each tile of rows packs both factors for
//    itself. Without it all threads finish the first product before the second begins, and share the packing.
//
// What lies between the products has the type of the elements, as in two calls of a library.

#include <atomic>

#include "../matmul/threads.hpp"

using namespace product;

namespace {

struct Layer {
    const Element *x, *down, *up;
    Element* y;
    Index rows, depth, rank, cols, stride_x;

    Problem first(Index row, Index count, Element* to) const {
        return {x + row * stride_x, down, nullptr, to, count, rank, depth, stride_x, rank};
    }
    Problem second(Index row, Index count, const Element* from) const {
        return {from, up, nullptr, y + row * cols, count, cols, rank, rank, cols};
    }
};

inline std::size_t bytes(Index rows, Index rank) {
    return static_cast<std::size_t>(rows * rank) * sizeof(Element);
}

// One after the other, each by all threads.
int multiply_twice(const Layer& layer) {
    static thread_local vec::Scratch scratch;
    auto* between = static_cast<Element*>(scratch.reserve(bytes(layer.rows, std::max<Index>(layer.rank, 1))));
    if (between == nullptr) return 1;
    const int failed = layer.rank == 0 ? 0 : multiply(layer.first(0, layer.rows, between));
    return failed | multiply(layer.second(0, layer.rows, between));
}

// All columns of a product, by this thread.
inline void multiply_rows(const Problem& problem, const Buffers& buffers) {
    for (Index col = 0; col < problem.cols; col += kTileCols) {
        compute_tile(problem, {0, col, problem.rows, std::min(kTileCols, problem.cols - col)}, buffers);
    }
}

int multiply_tiles(const Layer& layer) {
    const bool parallel = layer.rows * layer.rank * (layer.depth + layer.cols) >= kParallelProducts;
    const Index threads = parallel ? omp_get_max_threads() : 1;
    const Index tile = part_size(layer.rows, kTileRows, MICRO_ROWS, 1, threads);
    std::atomic<int> failed{0};
#pragma omp parallel num_threads(threads)
    {
        thread_local vec::Scratch scratch;
        constexpr std::size_t kBuffers = (Buffers::kWords * sizeof(Packed) + 63) / 64 * 64;
        auto* memory = static_cast<char*>(scratch.reserve(kBuffers + bytes(tile, layer.rank)));
        if (memory == nullptr) failed = 1;
#pragma omp for schedule(dynamic)
        for (Index row = 0; row < layer.rows; row += tile) {
            if (memory == nullptr) continue;
            auto* between = reinterpret_cast<Element*>(memory + kBuffers);
            const Index count = std::min(tile, layer.rows - row);
            multiply_rows(layer.first(row, count, between), Buffers(memory));
            multiply_rows(layer.second(row, count, between), Buffers(memory));
        }
    }
    return failed;
}

}  // namespace

// x[M, K], down[K, R], up[R, N] -> y[M, N]; stride_x in elements. Returns 1 where there is no memory.
extern "C" int linear_low_rank(const Element* x, const Element* down, const Element* up, Element* y,
                               std::int64_t M, std::int64_t K, std::int64_t R, std::int64_t N,
                               std::int64_t stride_x) {
    if (M == 0 || N == 0) return 0;
    const Layer layer{x, down, up, y, M, K, R, N, stride_x};
    return FUSE && M > kFewRows && R > 0 ? multiply_tiles(layer) : multiply_twice(layer);
}
