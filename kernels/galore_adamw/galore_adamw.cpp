// One step of GaLore (Zhao et al. 2024, arXiv:2403.03507): with r = projection^T g, which has few rows,
//   m, v: the moments of r as in AdamW,    n = (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps),
//   w = w - lr weight_decay w - lr scale projection n.
//
// 1. A strip of columns goes through all of it (projected.hpp): its columns of r are summed in the L2 cache,
//    become n there, and are packed for the second product. Neither r nor n, nor the change of w, is ever
//    stored. Strips need nothing of each other, so threads share them without a barrier.
// 2. FUSE: a micro-tile of the second product is taken from L1 to change w. Without it all changes are stored
//    in float32, as many as w has elements, and applied afterwards.
// 3. The projection is packed once in each call, for either product, and read by all threads.
//
// Bound by arithmetic: 2 rank multiply-adds for each element of w. n is rounded to the type of w before it is
// multiplied.

#include "projected.hpp"

#include <omp.h>

using namespace projected;

namespace {

struct Rates {
    adam::Constants constants;
    float change, decay;  // of w: lr scale, lr weight_decay
};

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

inline void change_weights(const Layer& layer, const Rates& rates, Index row, Index col, Index count,
                           const float* products) {
    const Index start = row * layer.cols + col;
    for (Index j = 0; j < count; j += LANES) {
        const Index at = start + j, rest = count - j;
        const Floats w = load(layer.w + at, rest);
        store(layer.w_out + at, rest, w - rates.decay * w - rates.change * load_floats(products + j, rest));
    }
}

inline void apply(const Layer& layer, const Rates& rates, const Shared& shared, const Strip& strip,
                  const Room& room) {
    for (Index k = 0; k < layer.rank; k += BLOCK_K) {
        const Index depth = std::min<Index>(BLOCK_K, layer.rank - k);
        pack_b(room.rounded + k * STRIP, STRIP, depth, strip.count, room.n + k / BLOCK_K * kPanels);
    }
    const Index together = layer.rows > 0 ? ceil_div(layer.rows, ceil_div(layer.rows, MICRO_ROWS)) : 1;
    for (Index row = 0; row < layer.rows; row += together) {
        const Index count = std::min(together, layer.rows - row);
        for (Index k = 0; k == 0 || k < layer.rank; k += BLOCK_K) {
            const Index block = k / BLOCK_K;
            multiply(shared.straight + (block * layer.rows + row) * kStride, count,
                     room.n + block * kPanels, strip.count, std::min<Index>(BLOCK_K, layer.rank - k),
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

int compute(const Layer& layer, const Rates& rates) {
    static thread_local vec::Scratch all;
    void* memory = all.reserve(Shared::bytes(layer));
    if (memory == nullptr) return 1;
    const Shared shared(memory, layer);
    const bool parallel = layer.rows * layer.cols * layer.rank >= kParallelProducts;
    const Index cols = strip_cols(layer.cols, parallel ? omp_get_max_threads() : 1);
    int failed = 0;
#pragma omp parallel if (parallel) reduction(| : failed)
    {
        thread_local vec::Scratch scratch;
        void* own = scratch.reserve(Room::bytes(layer.rank));
        failed |= own == nullptr;
        pack_transposed(layer, shared.transposed);
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
            project(layer, shared.transposed, strip, room.g, room.sums, [](Index, Index) {});
            for (Index row = 0; row < layer.rank; ++row) {
                const auto keep = [&](Index j, Index rest, Floats, Floats n) {
                    store(room.rounded + row * STRIP + j, rest, n);
                };
                update_moments(layer, rates.constants, strip, row, room.sums + row * kSumStride, keep);
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
