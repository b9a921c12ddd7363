// Gradients of attention o = softmax(q k^T / sqrt(depth)) v, in float32, for queries that share keys and
// values in groups. With p the weights, dp = dout v^T and ds = p (dp - sum over keys of p dp): dq = ds k /
// sqrt(depth), dk = ds^T q / sqrt(depth), dv = p^T dout.
//
// 1. Neither p nor dp reaches memory (Dao 2023, arXiv:2307.08691): a tile of BLOCK_Q rows walks over BLOCK_K
//    keys at a time, twice. The first walk finds each row's maximum, its sum, and its sum of p dp, which
//    needs no o; the second one multiplies. Memory is linear in the number of keys.
// 2. KEEP holds the weights and dp of one tile of rows from the first walk to the second: five products, and
//    a cache that has room for BLOCK_Q rows of all keys. Without it the second walk computes them again, as
//    the paper does on GPUs, whose cores have less room: seven products.
// 3. All products use one micro-kernel, as in BLIS. Scores are formed transposed, keys by rows: keys and
//    values are read as they lie, and sums over keys are sums of vectors.
// 4. dk and dv are sums over all rows. Tiles of a head are dealt to pieces, each with sums of its own, that
//    are added up in order. There are at least TASKS pieces of all heads; their number depends on the shape,
//    not on the threads, so equal inputs give equal bits.
// 5. SKIP leaves out blocks of keys that a causal mask hides from all rows of a tile.

#include <atomic>

#include "heads.hpp"

using namespace heads;

namespace {

constexpr std::ptrdiff_t kRows = round_up(round_up(BLOCK_Q, MICRO_ROWS), kColumns);
constexpr int kSums = 4;
constexpr std::ptrdiff_t kKeys = round_up(BLOCK_K, MICRO_ROWS);

// One head of keys and values, with the queries that share it.
struct Head {
    const Element *q, *k, *v, *dout;
    Element* dq;
};

// Sums of a piece, [keys and some more, width].
struct Sums {
    float *dk, *dv;
};

// Where a tile's data lie, all in float32.
struct Tile {
    float* q;             // [BLOCK_Q, width]
    float* dout;          // [BLOCK_Q, width]
    float* q_columns;     // [depth, kRows]
    float* dout_columns;  // [depth, kRows]
    float* dq;            // [kRows, width]
    float* k;             // [kKeys, width]
    float* v;             // [kKeys, width]
    float* weights;       // [blocks, kKeys, kRows]: scores, then weights
    float* slopes;        // [blocks, kKeys, kRows]: dp, then ds
    float* bases;         // [blocks, kRows]: what the weights of a block are relative to
    float* limit;         // [kRows]: the first key that a row does not see
    float* largest;       // [kRows]
    float* sum;           // [kRows]
    float* mean;          // [kRows]: of dp, once it is divided by the sum
    std::ptrdiff_t floats;
};

inline std::ptrdiff_t blocks_of(const Sizes& sizes) { return (sizes.keys + BLOCK_K - 1) / BLOCK_K; }

// Without memory: how much is needed.
inline Tile place(float* memory, const Sizes& sizes) {
    const std::ptrdiff_t blocks = KEEP ? blocks_of(sizes) : 1;
    Tile tile{};
    const auto take = [&](std::ptrdiff_t floats) {
        float* taken = memory == nullptr ? nullptr : memory + tile.floats;
        tile.floats += round_up(floats, 16);
        return taken;
    };
    for (float** each : {&tile.q, &tile.dout, &tile.dq}) *each = take(kRows * sizes.width);
    for (float** each : {&tile.q_columns, &tile.dout_columns}) *each = take(sizes.depth * kRows);
    for (float** each : {&tile.k, &tile.v}) *each = take(kKeys * sizes.width);
    for (float** each : {&tile.weights, &tile.slopes}) *each = take(blocks * kKeys * kRows);
    tile.bases = take(blocks * kRows);
    for (float** each : {&tile.limit, &tile.largest, &tile.sum, &tile.mean}) *each = take(kRows);
    return tile;
}

// A block's keys or values, its padding zero.
inline void widen_block(const Element* from, const Sizes& sizes, std::ptrdiff_t count, float* to) {
    for (std::ptrdiff_t key = 0; key < count; ++key) {
        widen(from + key * sizes.depth, to + key * sizes.width, sizes.depth, sizes.width, 1.0f);
    }
    std::fill(to + count * sizes.width, to + round_up(count, MICRO_ROWS) * sizes.width, 0.0f);
}

inline void transpose(const float* from, const Sizes& sizes, std::ptrdiff_t rows, float* to) {
    for (std::ptrdiff_t at = 0; at < sizes.depth; ++at) {
        for (std::ptrdiff_t row = 0; row < rows; ++row) to[at * kRows + row] = from[row * sizes.width + at];
        std::fill(to + at * kRows + rows, to + (at + 1) * kRows, 0.0f);
    }
}

void begin(const Head& head, const Sizes& sizes, const Tile& tile, std::ptrdiff_t first,
           std::ptrdiff_t rows) {
    for (std::ptrdiff_t row = 0; row < rows; ++row) {
        const std::ptrdiff_t from = place_of(sizes, first + row) * sizes.depth;
        widen(head.q + from, tile.q + row * sizes.width, sizes.depth, sizes.width, 1.0f);
        widen(head.dout + from, tile.dout + row * sizes.width, sizes.depth, sizes.width, 1.0f);
        tile.limit[row] = static_cast<float>(visible_to(sizes, first + row));
    }
    std::fill(tile.limit + rows, tile.limit + kRows, static_cast<float>(sizes.keys));
    transpose(tile.q, sizes, rows, tile.q_columns);
    transpose(tile.dout, sizes, rows, tile.dout_columns);
    std::fill(tile.dq, tile.dq + kRows * sizes.width, 0.0f);
    std::fill(tile.largest, tile.largest + kRows, kHidden);
    std::fill(tile.sum, tile.sum + kRows, 0.0f);
    std::fill(tile.mean, tile.mean + kRows, 0.0f);
}

// to[keys, rows] = a block[keys, depth] times columns[depth, rows].
inline void multiply_columns(const float* block, const float* columns, const Sizes& sizes,
                             std::ptrdiff_t count, std::ptrdiff_t rows, float* to) {
    for (std::ptrdiff_t row = 0; row < rows; row += kColumns) {
        for (std::ptrdiff_t key = 0; key < count; key += MICRO_ROWS) {
            multiply<false>(block + key * sizes.width, sizes.width, columns + row, kRows,
                            to + key * kRows + row, kRows, sizes.depth);
        }
    }
}

// sums[keys, width] += weights[keys, rows] times rows[rows, width].
inline void add_to_keys(const float* weights, const float* each, const Sizes& sizes, std::ptrdiff_t count,
                        std::ptrdiff_t rows, float* sums) {
    for (std::ptrdiff_t column = 0; column < sizes.width; column += kColumns) {
        for (std::ptrdiff_t key = 0; key < count; key += MICRO_ROWS) {
            multiply<true>(weights + key * kRows, kRows, each + column, sizes.width,
                           sums + key * sizes.width + column, sizes.width, rows);
        }
    }
}

// Of the block that starts at `start`: q k^T and do v^T, keys by rows.
inline void multiply_block(const Head& head, const Sizes& sizes, const Tile& tile, std::ptrdiff_t start,
                           std::ptrdiff_t count, std::ptrdiff_t rows, float* weights, float* slopes) {
    widen_block(head.k + start * sizes.depth, sizes, count, tile.k);
    multiply_columns(tile.k, tile.q_columns, sizes, count, rows, weights);
    widen_block(head.v + start * sizes.depth, sizes, count, tile.v);
    multiply_columns(tile.v, tile.dout_columns, sizes, count, rows, slopes);
}

// What is left of products of q and k: the mask hides keys from `limit` on.
inline Floats score(Floats product, float scale, std::ptrdiff_t key, Floats limit) {
    return vec::splat(static_cast<float>(key)) < limit ? product * scale : vec::splat(kHidden);
}

// Scores become weights relative to `bases`, the largest ones so far. Every row sees the first key.
void observe(const Tile& tile, float scale, std::ptrdiff_t start, std::ptrdiff_t count, std::ptrdiff_t rows,
             float* weights, const float* slopes, float* bases) {
    for (std::ptrdiff_t row = 0; row < rows; row += LANES) {
        const Floats limit = load_floats(tile.limit + row), before = load_floats(tile.largest + row);
        const auto score_of = [&](std::ptrdiff_t key) {
            return score(load_floats(weights + key * kRows + row), scale, start + key, limit);
        };
        Floats top = before;
        for (std::ptrdiff_t key = 0; key < count; ++key) top = vec::maximum(score_of(key), top);
        // Several sums, which is faster, and rounds less.
        Floats sums[kSums] = {}, means[kSums] = {};
        const auto add = [&](std::ptrdiff_t key, int to) {
            const Floats each = vec::exp(score_of(key) - top);
            if (KEEP) vec::store_raw(weights + key * kRows + row, each);
            sums[to] += each;
            means[to] += each * load_floats(slopes + key * kRows + row);
        };
        std::ptrdiff_t key = 0;
        for (; key + kSums <= count; key += kSums) {
#pragma GCC unroll 8
            for (int each = 0; each < kSums; ++each) add(key + each, each);
        }
        for (; key < count; ++key) add(key, 0);
        for (int each = 1; each < kSums; ++each) {
            sums[0] += sums[each];
            means[0] += means[each];
        }
        const Floats shrink = vec::exp(before - top);
        vec::store_raw(tile.sum + row, load_floats(tile.sum + row) * shrink + sums[0]);
        vec::store_raw(tile.mean + row, load_floats(tile.mean + row) * shrink + means[0]);
        vec::store_raw(tile.largest + row, top);
        vec::store_raw(bases + row, top);
    }
}

// Weights that add up to 1, and ds; both are zero in the padding.
void differentiate(const Tile& tile, float scale, std::ptrdiff_t start, std::ptrdiff_t count,
                   std::ptrdiff_t rows, float* weights, float* slopes, const float* bases) {
    for (std::ptrdiff_t row = 0; row < rows; row += LANES) {
        const Floats limit = load_floats(tile.limit + row), largest = load_floats(tile.largest + row);
        const Floats inverse = 1.0f / load_floats(tile.sum + row);
        const Floats mean = load_floats(tile.mean + row) * inverse;
        const Floats factor = KEEP ? vec::exp(load_floats(bases + row) - largest) * inverse : inverse;
        for (std::ptrdiff_t key = 0; key < count; ++key) {
            float *weight = weights + key * kRows + row, *slope = slopes + key * kRows + row;
            const Floats known = load_floats(weight);
            const Floats each =
                factor * (KEEP ? known : vec::exp(score(known, scale, start + key, limit) - largest));
            vec::store_raw(weight, each);
            vec::store_raw(slope, each * (load_floats(slope) - mean));
        }
    }
    const std::ptrdiff_t padding = round_up(count, MICRO_ROWS) - count;
    std::fill_n(weights + count * kRows, padding * kRows, 0.0f);
    std::fill_n(slopes + count * kRows, padding * kRows, 0.0f);
}

// dq of a tile's rows, and what they add to dk and dv.
void propagate(const Head& head, const Sizes& sizes, const Tile& tile, const Sums& sums, std::ptrdiff_t first,
               std::ptrdiff_t rows) {
    const float scale = scale_of(sizes);
    begin(head, sizes, tile, first, rows);
    const std::ptrdiff_t end = SKIP ? visible_to(sizes, first + rows - 1) : sizes.keys;
    for (std::ptrdiff_t start = 0; start < end; start += BLOCK_K) {
        const std::ptrdiff_t count = std::min<std::ptrdiff_t>(BLOCK_K, end - start);
        const std::ptrdiff_t block = KEEP ? start / BLOCK_K : 0;
        float *weights = tile.weights + block * kKeys * kRows, *slopes = tile.slopes + block * kKeys * kRows;
        multiply_block(head, sizes, tile, start, count, rows, weights, slopes);
        observe(tile, scale, start, count, rows, weights, slopes, tile.bases + block * kRows);
    }
    for (std::ptrdiff_t start = 0; start < end; start += BLOCK_K) {
        const std::ptrdiff_t count = std::min<std::ptrdiff_t>(BLOCK_K, end - start);
        const std::ptrdiff_t block = KEEP ? start / BLOCK_K : 0;
        float *weights = tile.weights + block * kKeys * kRows, *slopes = tile.slopes + block * kKeys * kRows;
        if (KEEP) {
            widen_block(head.k + start * sizes.depth, sizes, count, tile.k);
        } else {
            multiply_block(head, sizes, tile, start, count, rows, weights, slopes);
        }
        differentiate(tile, scale, start, count, rows, weights, slopes, tile.bases + block * kRows);
        add_to_keys(weights, tile.dout, sizes, count, rows, sums.dv + start * sizes.width);
        add_to_keys(slopes, tile.q, sizes, count, rows, sums.dk + start * sizes.width);
        for (std::ptrdiff_t column = 0; column < sizes.width; column += kColumns) {
            for (std::ptrdiff_t row = 0; row < rows; row += MICRO_ROWS) {
                multiply<true, true>(slopes + row, kRows, tile.k + column, sizes.width,
                                     tile.dq + row * sizes.width + column, sizes.width, count);
            }
        }
    }
    for (std::ptrdiff_t row = 0; row < rows; ++row) {
        Element* to = head.dq + place_of(sizes, first + row) * sizes.depth;
        narrow(tile.dq + row * sizes.width, to, sizes.depth, scale);
    }
}

// The pieces' sums of one key, times a factor.
inline void add_up(const float* from, std::ptrdiff_t pieces, std::ptrdiff_t stride, const Sizes& sizes,
                   float factor, Element* to) {
    for (std::ptrdiff_t at = 0; at < sizes.depth; at += LANES) {
        Floats total{};
        for (std::ptrdiff_t piece = 0; piece < pieces; ++piece) {
            total += load_floats(from + piece * stride + at);
        }
        total *= vec::splat(factor);
        if (at + LANES <= sizes.depth) {
            vec::store(to + at, total);
        } else {
            vec::store_some(to + at, sizes.depth - at, total);
        }
    }
}

}  // namespace

// q, dout, dq [batch, groups, queries, depth], k, v, dk, dv [batch, keys, depth]. 1: no memory.
extern "C" int attention_backward(const Element* q, const Element* k, const Element* v, const Element* dout,
                                  Element* dq, Element* dk, Element* dv, std::int64_t batch,
                                  std::int64_t groups, std::int64_t queries, std::int64_t keys,
                                  std::int64_t depth) {
    static thread_local vec::Scratch shared;
    const Sizes sizes = sizes_of(groups, queries, keys, depth, depth);
    const std::ptrdiff_t rows = groups * queries;
    const std::ptrdiff_t tiles = (rows + BLOCK_Q - 1) / BLOCK_Q;
    const std::ptrdiff_t wanted = (TASKS + batch - 1) / std::max<std::int64_t>(batch, 1);
    const std::ptrdiff_t pieces = std::clamp<std::ptrdiff_t>(wanted, 1, std::max<std::ptrdiff_t>(tiles, 1));
    const std::ptrdiff_t part = (keys + MICRO_ROWS) * sizes.width, piece_floats = 2 * part;
    const auto bytes = static_cast<std::size_t>(batch * pieces * piece_floats + 1) * sizeof(float);
    auto* sums = static_cast<float*>(shared.reserve(bytes));
    if (sums == nullptr) return 1;
    std::atomic<int> failed{0};
#pragma omp parallel if (batch * rows * keys * depth >= kParallelWork)
    {
        static thread_local vec::Scratch scratch;
        const auto needed = static_cast<std::size_t>(place(nullptr, sizes).floats) * sizeof(float);
        auto* memory = static_cast<float*>(scratch.reserve(needed));
        if (memory == nullptr) failed = 1;
#pragma omp for schedule(dynamic)
        for (std::ptrdiff_t task = 0; task < batch * pieces; ++task) {
            if (memory == nullptr) continue;
            const std::ptrdiff_t number = task / pieces;
            const std::ptrdiff_t from = number * rows * depth, keys_from = number * keys * depth;
            const Head head{q + from, k + keys_from, v + keys_from, dout + from, dq + from};
            float* own = sums + task * piece_floats;
            std::fill_n(own, piece_floats, 0.0f);
            // Dealt in turn: with a causal mask later tiles have more to do.
            for (std::ptrdiff_t tile = task % pieces; tile < tiles; tile += pieces) {
                propagate(head, sizes, place(memory, sizes), {own, own + part}, tile * BLOCK_Q,
                          std::min<std::ptrdiff_t>(BLOCK_Q, rows - tile * BLOCK_Q));
            }
        }
#pragma omp for schedule(static)
        for (std::ptrdiff_t key = 0; key < batch * keys; ++key) {
            const float* from = sums + key / keys * pieces * piece_floats + key % keys * sizes.width;
            add_up(from, pieces, piece_floats, sizes, scale_of(sizes), dk + key * depth);
            add_up(from + part, pieces, piece_floats, sizes, 1.0f, dv + key * depth);
        }
    }
    return failed;
}
