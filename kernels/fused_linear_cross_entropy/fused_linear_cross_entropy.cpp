// Cross entropy of a linear layer: logits = hidden weight^T, loss = log(sum(exp(logits))) - logits[target], in float32.
//
// 1. FUSE: the logits never reach memory. A chunk of CHUNK rows meets a tile of classes, and of its logits only
//    the maximum and the sum of exponentials of each row remain (Hsu et al. 2024, arXiv:2410.10989, in chunks of
//    rows; Wijmans et al. 2024, arXiv:2411.09009, in tiles). What is kept takes two floats where a row of a tile
//    has 256 logits or so. Without it all logits are stored in float32 and read again.
// 2. CHUNK rows share a tile of the weight that has been packed, and their logits wait in L2: more rows mean less
//    packing and more cache. Chunks of the rows and tiles of the classes are shared among threads.
// 3. The product is that of matmul (../matmul/tile.hpp): MICRO_ROWS x MICRO_VECTORS vectors of sums in registers,
//    blocks of BLOCK_K packed; pairs of bfloat16 on AVX512_BF16. The weight lies with its columns in order, as in
//    PyTorch, so packing transposes it.
//
// The maxima and sums of the tiles of a row are merged in order, so results do not depend on the threads.

#include "../matmul/tile.hpp"

#include <cfloat>

using namespace product;

namespace {

constexpr Index kParallelProducts = 1 << 17;  // below, starting the threads takes longer than the work

struct Layer {
    const Element* hidden;
    const Element* weight;
    const std::int64_t* target;
    Index rows, classes, width;
    Index stride_hidden, stride_weight;
};

// Of the logits of one row in one tile of classes.
struct Part {
    float maximum;
    float sum;
};

// Where a thread's tile lies.
struct Room {
    Packed* a;    // [CHUNK][kStride]
    Packed* b;    // [kTileCols / kCols][kSteps][kCols]
    float* sums;  // [CHUNK][kSumStride]

    static constexpr Index kWords = CHUNK * kStride + kSteps * kTileCols + CHUNK * kSumStride;
    explicit Room(void* memory)
        : a(static_cast<Packed*>(memory)),
          b(a + CHUNK * kStride),
          sums(reinterpret_cast<float*>(b + kSteps * kTileCols)) {}
};

// weight[cols, depth] -> panels[cols / kCols][kSteps][kCols], transposed, zeros beyond the last column. Four columns
// at a time, so that a store writes four words of a line.
inline void pack_transposed(const Element* weight, Index stride, Index depth, Index cols, Packed* to) {
    constexpr Index kTogether = kCols % 4 == 0 ? 4 : 1;
    const Index steps = ceil_div(depth, kDepth);
    alignas(64) Packed words[kTogether][kStride];
    const Index whole = ceil_div(cols, kCols) * kCols;
    for (Index col = 0; col < whole; col += kTogether) {
        for (Index i = 0; i < kTogether; ++i) {
            if (col + i < cols) {
                pack_a_row(weight + (col + i) * stride, depth, words[i]);
            } else {
                std::fill(words[i], words[i] + steps, Packed{});
            }
        }
        Packed* panel = to + col / kCols * kCols * kSteps + col % kCols;
        for (Index step = 0; step < steps; ++step) {
            Packed row[kTogether];
            for (Index i = 0; i < kTogether; ++i) row[i] = words[i][step];
            __builtin_memcpy(panel + step * kCols, row, sizeof(row));
        }
    }
}

// The logits of a tile, in `room.sums`.
inline void multiply_tile(const Layer& layer, const Tile& tile, const Room& room) {
    const Index panel_rows = ceil_div(tile.rows, ceil_div(tile.rows, MICRO_ROWS));
    for (Index k = 0; k == 0 || k < layer.width; k += BLOCK_K) {
        const Index depth = std::min<Index>(BLOCK_K, layer.width - k);
        pack_transposed(layer.weight + tile.col * layer.stride_weight + k, layer.stride_weight, depth, tile.cols,
                        room.b);
        for (Index i = 0; i < tile.rows && depth > 0; ++i) {
            pack_a_row(layer.hidden + (tile.row + i) * layer.stride_hidden + k, depth, room.a + i * kStride);
        }
        for (Index j = 0; j < tile.cols; j += kCols) {
            for (Index i = 0; i < tile.rows; i += panel_rows) {
                dispatch(std::min(panel_rows, tile.rows - i), k == 0, ceil_div(depth, kDepth),
                         room.a + i * kStride, room.b + j * kSteps, room.sums + i * kSumStride + j);
            }
        }
    }
}

inline Floats logits_at(const float* logits, Index col, Index cols) {
    if (col + LANES <= cols) return vec::load_raw<Floats>(logits + col);
    float lanes[LANES];
    for (int lane = 0; lane < LANES; ++lane) lanes[lane] = col + lane < cols ? logits[col + lane] : -INFINITY;
    return vec::load_raw<Floats>(lanes);
}

// The comparison drops NaN; it comes back through the exponentials.
inline Part part_of(const float* logits, Index cols) {
    // Finite: a part that holds nothing but -infinity has the sum 0, and others decide.
    Floats maximum = vec::splat(-FLT_MAX);
    for (Index col = 0; col < cols; col += LANES) maximum = vec::maximum(logits_at(logits, col, cols), maximum);
    const float largest = vec::reduce_maximum(maximum);
    Floats sum{};
    for (Index col = 0; col < cols; col += LANES) sum += vec::exp(logits_at(logits, col, cols) - largest);
    return {largest, vec::reduce_sum(sum)};
}

// The part that a row's parts make together, `stride` apart.
inline Part merged(const Part* parts, Index count, Index stride) {
    float maximum = -FLT_MAX;
    for (Index i = 0; i < count; ++i) maximum = std::max(maximum, parts[i * stride].maximum);
    float sum = 0.0f;
    for (Index i = 0; i < count; ++i) {
        sum += parts[i * stride].sum * std::exp(parts[i * stride].maximum - maximum);
    }
    return {maximum, sum};
}

inline bool holds(const Tile& tile, std::int64_t target) {
    return target >= tile.col && target < tile.col + tile.cols;
}

}  // namespace

// hidden[rows, width], weight[classes, width] with strides in elements from row to row, target[rows] -> loss[rows].
// 1: no memory.
extern "C" int fused_linear_cross_entropy(const Element* hidden, const Element* weight,
                                          const std::int64_t* target, Element* loss, std::int64_t rows,
                                          std::int64_t classes, std::int64_t width, std::int64_t stride_hidden,
                                          std::int64_t stride_weight) {
    static thread_local vec::Scratch shared;
    const Layer layer{hidden, weight, target, rows, classes, width, stride_hidden, stride_weight};
    const Index chunks = ceil_div(rows, CHUNK);
    const Index chunk = chunks > 0 ? ceil_div(rows, chunks) : 0;
    const Index tiles = ceil_div(classes, kTileCols);
    const Index stored = FUSE ? 0 : rows * classes;
    const auto floats = static_cast<std::size_t>(2 * tiles * rows + rows + stored + 1);
    auto* memory = static_cast<float*>(shared.reserve(floats * sizeof(float)));
    if (memory == nullptr) return 1;
    auto* parts = reinterpret_cast<Part*>(memory);  // [tiles][rows]
    float* scores = memory + 2 * tiles * rows;      // [rows], of the targets
    float* logits = scores + rows;                  // [rows][classes]
    int failed = 0;
#pragma omp parallel if (rows * classes * width >= kParallelProducts) reduction(| : failed)
    {
        thread_local vec::Scratch scratch;
        void* own = scratch.reserve(Room::kWords * sizeof(Packed));
        failed |= own == nullptr;
#pragma omp for schedule(dynamic) collapse(2)
        for (Index i = 0; i < chunks; ++i) {
            for (Index j = 0; j < tiles; ++j) {
                if (own == nullptr) continue;
                const Room room(own);
                const Tile tile{i * chunk, j * kTileCols, std::min(chunk, rows - i * chunk),
                                std::min(kTileCols, classes - j * kTileCols)};
                multiply_tile(layer, tile, room);
                for (Index row = 0; row < tile.rows; ++row) {
                    const Index at = tile.row + row;
                    const float* values = room.sums + row * kSumStride;
                    if (holds(tile, target[at])) scores[at] = values[target[at] - tile.col];
                    if (FUSE) {
                        parts[j * rows + at] = part_of(values, tile.cols);
                    } else {
                        std::copy(values, values + tile.cols, logits + at * classes + tile.col);
                    }
                }
            }
        }
#pragma omp for schedule(static)
        for (Index row = 0; row < rows; ++row) {
            if (!FUSE) parts[row] = part_of(logits + row * classes, classes);
            const auto [maximum, sum] = merged(parts + row, FUSE ? tiles : 1, rows);
            loss[row] = vec::to_element(std::log(sum) + (maximum - scores[row]));
        }
    }
    return failed;
}
