// A tile of rows of attention: o = softmax(q k^T / sqrt(depth)) v, in float32, for queries that share keys and values
// in groups.
//
// 1. The scores never reach memory (Dao et al. 2022, arXiv:2205.14135): BLOCK_K keys at a time, each row keeps
//    a running maximum and sum, and what it has accumulated is scaled when the maximum grows (Milakov and
//    Gimelshein 2018, arXiv:1805.02867). Memory is linear in the number of keys.
// 2. All heads of a group read the same keys, so their queries are rows of one tile: BLOCK_Q rows share each
//    block of keys and values while it is in L2.
// 3. Both products use one micro-kernel, as in BLIS: MICRO_ROWS rows by MICRO_VECTORS vectors of sums stay in
//    registers, so that one load serves several multiply-adds. It needs the keys transposed: PACK copies a
//    block of them. Without it each score is an inner product along depth, which reads keys as they lie: less
//    work for the few rows of a decoding step.
// 4. SKIP leaves out the blocks of keys that the mask hides from all rows of a tile: half of the work of a
//    whole prompt if it is causal, and with a sliding window (Jiang et al. 2023, arXiv:2310.06825) all but the
//    window's keys, so that time is linear in the number of queries.

#pragma once

#include <atomic>

#include "heads.hpp"

namespace heads {

// Where a tile's data lie, all in float32.
struct Tile {
    float* q;        // [BLOCK_Q, width], scaled
    float* o;        // [BLOCK_Q, value_width]
    float* scores;   // [BLOCK_Q, columns]
    float* k;        // PACK: [depth, columns], transposed; else [columns, width]
    float* v;        // [BLOCK_K, value_width]
    float* largest;  // [BLOCK_Q]
    float* sum;      // [BLOCK_Q]
};

constexpr std::ptrdiff_t kRows = (std::ptrdiff_t{BLOCK_Q} + MICRO_ROWS - 1) / MICRO_ROWS * MICRO_ROWS;
constexpr std::ptrdiff_t kScores = (std::ptrdiff_t{BLOCK_K} + kColumns - 1) / kColumns * kColumns;

inline std::ptrdiff_t key_floats(const Sizes& sizes) { return kScores * (PACK ? sizes.depth : sizes.width); }

inline std::size_t tile_floats(const Sizes& sizes) {
    return static_cast<std::size_t>(kRows * (sizes.width + sizes.value_width + kScores + 2) + key_floats(sizes) +
                                    BLOCK_K * sizes.value_width);
}

inline Tile place(float* memory, const Sizes& sizes) {
    Tile tile{};
    tile.q = memory;
    tile.o = tile.q + kRows * sizes.width;
    tile.scores = tile.o + kRows * sizes.value_width;
    tile.k = tile.scores + kRows * kScores;
    tile.v = tile.k + key_floats(sizes);
    tile.largest = tile.v + BLOCK_K * sizes.value_width;
    tile.sum = tile.largest + kRows;
    return tile;
}

inline void pack_keys(const Element* k, std::ptrdiff_t count, const Sizes& sizes, const Tile& tile) {
#if PACK
    alignas(64) float lane[LANES];
    for (std::ptrdiff_t key = 0; key < count; ++key) {
        const Element* from = k + key * sizes.key_step * sizes.depth;
        std::ptrdiff_t at = 0;
        for (; at + LANES <= sizes.depth; at += LANES) {
            vec::store_raw(lane, vec::load(from + at));
            for (int i = 0; i < LANES; ++i) tile.k[(at + i) * kScores + key] = lane[i];
        }
        for (; at < sizes.depth; ++at) tile.k[at * kScores + key] = vec::to_float(from[at]);
    }
    for (std::ptrdiff_t at = 0; at < sizes.depth; ++at) {
        for (std::ptrdiff_t key = count; key < round_up(count, kColumns); ++key) tile.k[at * kScores + key] = 0.0f;
    }
#else
    for (std::ptrdiff_t key = 0; key < count; ++key) {
        widen(k + key * sizes.key_step * sizes.depth, tile.k + key * sizes.width, sizes.depth, sizes.width, 1.0f);
    }
#endif
}

inline void score(const Sizes& sizes, const Tile& tile, std::ptrdiff_t rows, std::ptrdiff_t count) {
#if PACK
    for (std::ptrdiff_t column = 0; column < count; column += kColumns) {
        for (std::ptrdiff_t row = 0; row < rows; row += MICRO_ROWS) {
            multiply<false>(tile.q + row * sizes.width, sizes.width, tile.k + column, kScores,
                            tile.scores + row * kScores + column, kScores, sizes.depth);
        }
    }
#else
    for (std::ptrdiff_t key = 0; key < count; ++key) {
        const float* k = tile.k + key * sizes.width;
        for (std::ptrdiff_t row = 0; row < rows; ++row) {
            const float* q = tile.q + row * sizes.width;
            Floats sums[MICRO_VECTORS] = {};
            for (std::ptrdiff_t at = 0; at < sizes.width; at += kColumns) {
#pragma GCC unroll 4
                for (int vector = 0; vector < MICRO_VECTORS; ++vector) {
                    sums[vector] += load_floats(q + at + vector * LANES) * load_floats(k + at + vector * LANES);
                }
            }
            for (int vector = 1; vector < MICRO_VECTORS; ++vector) sums[0] += sums[vector];
            tile.scores[row * kScores + key] = vec::reduce_sum(sums[0]);
        }
    }
#endif
}

// Scores of a row, which sees the keys from `begin` to `visible`, become weights; what the row has accumulated
// is scaled to the new maximum.
inline void weigh(const Sizes& sizes, const Tile& tile, std::ptrdiff_t row, std::ptrdiff_t begin,
                  std::ptrdiff_t visible) {
    float* scores = tile.scores + row * kScores;
    const std::ptrdiff_t padded = round_up(visible, LANES);
    std::fill(scores, scores + begin, kHidden);
    std::fill(scores + visible, scores + padded, kHidden);
    Floats largest = vec::splat(tile.largest[row]);
    for (std::ptrdiff_t key = 0; key < padded; key += LANES) largest = vec::maximum(load_floats(scores + key), largest);
    const float top = vec::reduce_maximum(largest);
    Floats sum{};
    for (std::ptrdiff_t key = 0; key < padded; key += LANES) {
        const Floats weights = vec::exp(load_floats(scores + key) - top);
        vec::store_raw(scores + key, weights);
        sum += weights;
    }
    const float shrink = std::exp(tile.largest[row] - top);
    tile.sum[row] = tile.sum[row] * shrink + vec::reduce_sum(sum);
    tile.largest[row] = top;
    if (shrink != 1.0f) {
        float* o = tile.o + row * sizes.value_width;
        for (std::ptrdiff_t at = 0; at < sizes.value_width; at += LANES) {
            vec::store_raw(o + at, load_floats(o + at) * shrink);
        }
    }
}

struct HidesNothing {
    bool operator()(std::ptrdiff_t) const { return false; }
};

// `hides` says of the first key of a step whether its rows leave out the step.
template <class Hides = HidesNothing>
void attend(const Element* q, const Element* k, const Element* v, Element* o, const Sizes& sizes, const Tile& tile,
            std::ptrdiff_t first, std::ptrdiff_t rows, Hides hides = {}) {
    const std::ptrdiff_t padded = round_up(rows, MICRO_ROWS);
    const float factor = scale_of(sizes);
    for (std::ptrdiff_t row = 0; row < rows; ++row) {
        widen(q + place_of(sizes, first + row) * sizes.depth, tile.q + row * sizes.width, sizes.depth, sizes.width,
              factor);
    }
    std::fill(tile.q + rows * sizes.width, tile.q + padded * sizes.width, 0.0f);
    std::fill(tile.o, tile.o + padded * sizes.value_width, 0.0f);
    std::fill(tile.largest, tile.largest + padded, kHidden);
    std::fill(tile.sum, tile.sum + padded, 0.0f);
    const std::ptrdiff_t end = SKIP ? visible_to(sizes, first + rows - 1) : sizes.keys;
    for (std::ptrdiff_t start = SKIP ? first_seen_by(sizes, first) : 0; start < end; start += BLOCK_K) {
        const std::ptrdiff_t count = std::min<std::ptrdiff_t>(BLOCK_K, end - start);
        const bool hidden = hides(start);
        if (SKIP && hidden) continue;
        pack_keys(k + start * sizes.key_step * sizes.depth, count, sizes, tile);
        score(sizes, tile, rows, count);
        for (std::ptrdiff_t row = 0; row < rows; ++row) {
            const std::ptrdiff_t begin =
                std::max<std::ptrdiff_t>(first_seen_by(sizes, first + row) - start, 0);
            std::ptrdiff_t visible =
                std::clamp<std::ptrdiff_t>(visible_to(sizes, first + row) - start, 0, count);
            if (begin >= visible || hidden) visible = 0;
            if (visible > 0) weigh(sizes, tile, row, begin, visible);
            std::fill(tile.scores + row * kScores + visible, tile.scores + row * kScores + count, 0.0f);
        }
        for (std::ptrdiff_t key = 0; key < count; ++key) {
            widen(v + (start + key) * sizes.key_step * sizes.values, tile.v + key * sizes.value_width, sizes.values,
                  sizes.value_width, 1.0f);
        }
        for (std::ptrdiff_t row = rows; row < padded; ++row) {
            std::fill(tile.scores + row * kScores, tile.scores + row * kScores + count, 0.0f);
        }
        for (std::ptrdiff_t column = 0; column < sizes.value_width; column += kColumns) {
            for (std::ptrdiff_t row = 0; row < padded; row += MICRO_ROWS) {
                multiply<true>(tile.scores + row * kScores, kScores, tile.v + column, sizes.value_width,
                               tile.o + row * sizes.value_width + column, sizes.value_width, count);
            }
        }
    }
    for (std::ptrdiff_t row = 0; row < rows; ++row) {
        const float inverse = sizes.keys > 0 ? 1.0f / tile.sum[row] : 0.0f;
        narrow(tile.o + row * sizes.value_width, o + place_of(sizes, first + row) * sizes.values, sizes.values,
               inverse);
    }
}

// Calls body(task, tile) for the tasks, on all threads if there is enough work. Returns 1 where there is no memory.
template <class Body>
int for_each_task(std::ptrdiff_t tasks, const Sizes& sizes, bool parallel, Body body) {
    std::atomic<int> failed{0};
#pragma omp parallel if (parallel)
    {
        thread_local vec::Scratch scratch;
        auto* memory = static_cast<float*>(scratch.reserve(tile_floats(sizes) * sizeof(float)));
        if (memory == nullptr) failed = 1;
#pragma omp for schedule(dynamic)
        for (std::ptrdiff_t task = 0; task < tasks; ++task) {
            if (memory != nullptr) body(task, place(memory, sizes));
        }
    }
    return failed;
}

}  // namespace heads
