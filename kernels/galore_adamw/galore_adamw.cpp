// One step of GaLore (Zhao et al. 2024, arXiv:2403.03507): with r = projection^T g, which has few rows,
//   m, v: the moments of r as in AdamW,    n = (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps),
//   w = w - lr weight_decay w - lr scale projection n.
//
// 1. A strip of columns goes through all of it: its columns of r are summed in the L2 cache, become n there,
//    and are packed for the second product. Neither r nor n, nor the change of w, is ever stored. Strips need
//    nothing of each other, so threads share them without a barrier.
// 2. FUSE: a micro-tile of the second product is taken from L1 to change w. Without it all changes are stored
//    in float32, as many as w has elements, and applied afterwards.
// 3. Products are those of matmul (../matmul/tile.hpp): MICRO_ROWS x MICRO_VECTORS vectors of sums in
//    registers, blocks of BLOCK_K packed; pairs of bfloat16 on AVX512_BF16. The projection is packed once in
//    each call, for either product, and read by all threads.
//
// Bound by arithmetic: 2 rank multiply-adds for each element of w. n is rounded to the type of w before it is
// multiplied.

#include "../adamw/step.hpp"
#include "../matmul/tile.hpp"

#include <omp.h>

using namespace product;

namespace {

constexpr Index kParallelProducts = 1 << 17;  // below, starting the threads takes longer than the work
static_assert(STRIP <= kTileCols, "sums of a strip have the rows of a tile");

struct Layer {
    const Element* w;
    const Element* projection;
    const Element* g;
    const float* m;
    const float* v;
    Element* w_out;
    float* m_out;
    float* v_out;
    Index rows, cols, rank;
};

struct Rates {
    adam::Constants constants;
    float change, decay;  // of w: lr scale, lr weight_decay
};

// Words of a matrix whose `rows` rows are packed in blocks of `depth`: [blocks][rows][kStride].
constexpr Index packed_words(Index rows, Index depth) { return ceil_div(depth, BLOCK_K) * rows * kStride; }

// What all threads share.
struct Shared {
    Packed* transposed;  // the projection's columns: rank rows, as deep as w has rows
    Packed* straight;    // its rows, as deep as the rank
    float* change;       // [rows][cols], if it is stored

    static std::size_t bytes(const Layer& layer) {
        const Index words = packed_words(layer.rank, layer.rows) + packed_words(layer.rows, layer.rank);
        const Index floats = FUSE ? 0 : layer.rows * layer.cols;
        return static_cast<std::size_t>(words) * sizeof(Packed) +
               static_cast<std::size_t>(floats) * sizeof(float) + 1;
    }
    Shared(void* memory, const Layer& layer)
        : transposed(static_cast<Packed*>(memory)),
          straight(transposed + packed_words(layer.rank, layer.rows)),
          change(reinterpret_cast<float*>(straight + packed_words(layer.rows, layer.rank))) {}
};

// What one thread has of a strip.
struct Room {
    float* sums;      // [rank][kSumStride], r
    Packed* g;        // [STRIP / kCols][kSteps][kCols]
    Packed* n;        // the same, a block of the rank after the other
    float* products;  // [MICRO_ROWS][kSumStride]
    Element* rounded;  // [rank][STRIP], n

    static constexpr Index kPanels = kSteps * (STRIP + kCols);
    static std::size_t bytes(Index rank) {
        const Index words = (1 + ceil_div(rank, BLOCK_K)) * kPanels;
        const Index floats = (rank + MICRO_ROWS) * kSumStride;
        return static_cast<std::size_t>(words) * sizeof(Packed) +
               static_cast<std::size_t>(floats) * sizeof(float) +
               static_cast<std::size_t>(rank * STRIP) * sizeof(Element) + 1;
    }
    Room(void* memory, Index rank)
        : sums(static_cast<float*>(memory)),
          g(reinterpret_cast<Packed*>(sums + rank * kSumStride)),
          n(g + kPanels),
          products(reinterpret_cast<float*>(n + ceil_div(rank, BLOCK_K) * kPanels)),
          rounded(reinterpret_cast<Element*>(products + MICRO_ROWS * kSumStride)) {}
};

struct Strip {
    Index col, count;
};

// Columns [begin, end) of a block of the projection's rows, each packed as a row.
inline void pack_transposed(const Layer& layer, Index k, Index begin, Index end, Packed* to) {
    constexpr Index kTogether = 16;  // a cache line or half of one
    alignas(64) Element columns[kTogether][BLOCK_K];
    const Index depth = std::min<Index>(BLOCK_K, layer.rows - k);
    for (Index col = begin; col < end; col += kTogether) {
        const Index count = std::min(kTogether, end - col);
        for (Index step = 0; step < depth; ++step) {
            const Element* from = layer.projection + (k + step) * layer.rank + col;
            for (Index i = 0; i < count; ++i) columns[i][step] = from[i];
        }
        for (Index i = 0; i < count; ++i) pack_a_row(columns[i], depth, to + (col + i) * kStride);
    }
}

// sums[rows][kSumStride] (+)= a block of a packed matrix times packed columns.
inline void multiply(const Packed* a, Index rows, const Packed* b, Index cols, Index depth, bool first,
                     float* sums) {
    const Index panel_rows = ceil_div(rows, ceil_div(rows, MICRO_ROWS));
    for (Index i = 0; i < rows; i += panel_rows) {
        for (Index j = 0; j < cols; j += kCols) {
            dispatch(std::min(panel_rows, rows - i), first, ceil_div(depth, kDepth), a + i * kStride,
                     b + j * kSteps, sums + i * kSumStride + j);
        }
    }
}

inline Floats load(const Element* from, Index rest) {
    return rest >= LANES ? vec::load(from) : vec::load_some(from, rest, 0.0f);
}

inline void store(Element* to, Index rest, Floats values) {
    if (rest >= LANES) return vec::store(to, values);
    vec::store_some(to, rest, values);
}

inline Floats load_floats(const float* from, Index rest) {
    if (rest >= LANES) return vec::load_raw<Floats>(from);
    float lanes[LANES] = {};
    __builtin_memcpy(lanes, from, static_cast<std::size_t>(rest) * sizeof(float));
    return vec::load_raw<Floats>(lanes);
}

inline void store_floats(float* to, Index rest, Floats values) {
    if (rest >= LANES) return vec::store_raw(to, values);
    float lanes[LANES];
    vec::store_raw(lanes, values);
    __builtin_memcpy(to, lanes, static_cast<std::size_t>(rest) * sizeof(float));
}

// A row of r -> the moments after the step, and n.
inline void update_moments(const Layer& layer, const adam::Constants& constants, const Strip& strip,
                           Index row, const float* sums, Element* n) {
    const Index start = row * layer.cols + strip.col;
    for (Index j = 0; j < strip.count; j += LANES) {
        const Index at = start + j, rest = strip.count - j;
        const Floats r = vec::load_raw<Floats>(sums + j);
        const Floats m = adam::first_moment(constants, load_floats(layer.m + at, rest), r);
        const Floats v = adam::second_moment(constants, load_floats(layer.v + at, rest), r);
        store_floats(layer.m_out + at, rest, m);
        store_floats(layer.v_out + at, rest, v);
        store(n + j, rest, adam::change(constants, m, v));
    }
}

inline void change_weights(const Layer& layer, const Rates& rates, Index row, Index col, Index count,
                           const float* products) {
    const Index start = row * layer.cols + col;
    for (Index j = 0; j < count; j += LANES) {
        const Index at = start + j, rest = count - j;
        const Floats w = load(layer.w + at, rest);
        store(layer.w_out + at, rest, w - rates.decay * w - rates.change * load_floats(products + j, rest));
    }
}

inline void project(const Layer& layer, const Shared& shared, const Strip& strip, const Room& room) {
    for (Index k = 0; k == 0 || k < layer.rows; k += BLOCK_K) {
        const Index depth = std::min<Index>(BLOCK_K, layer.rows - k);
        pack_b(layer.g + k * layer.cols + strip.col, layer.cols, depth, strip.count, room.g);
        multiply(shared.transposed + k / BLOCK_K * layer.rank * kStride, layer.rank, room.g, strip.count,
                 depth, k == 0, room.sums);
    }
}

inline void apply(const Layer& layer, const Rates& rates, const Shared& shared, const Strip& strip,
                  const Room& room) {
    for (Index k = 0; k < layer.rank; k += BLOCK_K) {
        const Index depth = std::min<Index>(BLOCK_K, layer.rank - k);
        pack_b(room.rounded + k * STRIP, STRIP, depth, strip.count, room.n + k / BLOCK_K * Room::kPanels);
    }
    const Index together = layer.rows > 0 ? ceil_div(layer.rows, ceil_div(layer.rows, MICRO_ROWS)) : 1;
    for (Index row = 0; row < layer.rows; row += together) {
        const Index count = std::min(together, layer.rows - row);
        for (Index k = 0; k == 0 || k < layer.rank; k += BLOCK_K) {
            const Index block = k / BLOCK_K;
            multiply(shared.straight + (block * layer.rows + row) * kStride, count,
                     room.n + block * Room::kPanels, strip.count, std::min<Index>(BLOCK_K, layer.rank - k),
                     k == 0, room.products);
        }
        for (Index i = 0; i < count; ++i) {
            const float* products = room.products + i * kSumStride;
            if (FUSE) {
                change_weights(layer, rates, row + i, strip.col, strip.count, products);
            } else {
                float* change = shared.change + (row + i) * layer.cols + strip.col;
                std::copy(products, products + strip.count, change);
            }
        }
    }
}

// Columns of a strip: so many strips that every thread has equally many where that is possible.
inline Index strip_cols(Index cols, Index threads) {
    const Index strips = ceil_div(ceil_div(cols, STRIP), threads) * threads;
    return std::min<Index>(STRIP, ceil_div(ceil_div(cols, strips), kCols) * kCols);
}

int compute(const Layer& layer, const Rates& rates) {
    static thread_local vec::Scratch all;
    void* memory = all.reserve(Shared::bytes(layer));
    if (memory == nullptr) return 1;
    const Shared shared(memory, layer);
    const bool parallel = layer.rows * layer.cols * layer.rank >= kParallelProducts;
    const Index cols = strip_cols(layer.cols, parallel ? omp_get_max_threads() : 1);
    const Index parts = ceil_div(layer.rank, 64);
    int failed = 0;
#pragma omp parallel if (parallel) reduction(| : failed)
    {
        thread_local vec::Scratch scratch;
        void* own = scratch.reserve(Room::bytes(layer.rank));
        failed |= own == nullptr;
#pragma omp for schedule(static) collapse(2)
        for (Index k = 0; k < layer.rows; k += BLOCK_K) {
            for (Index part = 0; part < parts; ++part) {
                pack_transposed(layer, k, part * 64, std::min(layer.rank, part * 64 + 64),
                                shared.transposed + k / BLOCK_K * layer.rank * kStride);
            }
        }
#pragma omp for schedule(static)
        for (Index row = 0; row < layer.rows; ++row) {
            for (Index k = 0; k < layer.rank; k += BLOCK_K) {
                pack_a_row(layer.projection + row * layer.rank + k, std::min<Index>(BLOCK_K, layer.rank - k),
                           shared.straight + (k / BLOCK_K * layer.rows + row) * kStride);
            }
        }
#pragma omp for schedule(dynamic)
        for (Index col = 0; col < layer.cols; col += cols) {
            if (own == nullptr) continue;
            const Room room(own, layer.rank);
            const Strip strip{col, std::min(cols, layer.cols - col)};
            project(layer, shared, strip, room);
            for (Index row = 0; row < layer.rank; ++row) {
                update_moments(layer, rates.constants, strip, row, room.sums + row * kSumStride,
                               room.rounded + row * STRIP);
            }
            apply(layer, rates, shared, strip, room);
        }
        if (!FUSE) {
#pragma omp for schedule(static)
            for (Index row = 0; row < layer.rows; ++row) {
                change_weights(layer, rates, row, 0, layer.cols, shared.change + row * layer.cols);
            }
        }
    }
    return failed;
}

}  // namespace

// w, g [rows, cols], projection [rows, rank], m, v [rank, cols] in float32 -> w_out, m_out, v_out. 1: no
// memory.
extern "C" int galore_adamw(const Element* w, const Element* projection, const Element* g, const float* m,
                            const float* v, Element* w_out, float* m_out, float* v_out, std::int64_t rows,
                            std::int64_t cols, std::int64_t rank, double lr, double beta1, double beta2,
                            double eps, double weight_decay, double scale, double step) {
    const Layer layer{w, projection, g, m, v, w_out, m_out, v_out, rows, cols, rank};
    if (rank == 0 || cols == 0) return 0;
    const Rates rates{adam::Constants(1.0, beta1, beta2, eps, 0.0, step), static_cast<float>(lr * scale),
                      static_cast<float>(lr * weight_decay)};
    return compute(layer, rates);
}
