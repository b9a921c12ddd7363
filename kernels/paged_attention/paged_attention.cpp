// One step of decoding: o = softmax(q k^T / sqrt(depth)) v for one query a sequence, in float32. Keys and values lie
// in pages that a table names (Kwon et al. 2023, arXiv:2309.06180), and `groups` heads of queries share them.
//
// Bound by the traffic of keys and values, each of which is read once:
//
// 1. ROWS heads of a group share each load of a key and of a value, UNROLL of which are in flight: as many sums
//    in registers hide the latency of the multiply-adds.
// 2. The scores never reach memory: BLOCK keys at a time, each row keeps a running maximum and sum (Milakov and
//    Gimelshein 2018, arXiv:1805.02867).
// 3. SPLIT keys are a task of their own, so that few long sequences occupy all threads, and one that is longer
//    than the others keeps none waiting; what the parts found is combined (Dao et al. 2023, "Flash-Decoding for
//    long-context inference").
// 4. PREFETCH: the pages of a sequence lie anywhere, which hardware prefetchers cannot foresee; the table tells.
//
// Latent attention with absorbed weights (DeepSeek-AI 2024, arXiv:2405.04434) has one head of keys, whose latent part is
// the value as well, and a rotated part of its own. Its group has all heads of queries, so it is bound by arithmetic:
// some rows stay in the L1 cache while they pass all keys of a block.
//
// The order of summation depends on the lengths alone.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>

#include "../vector.hpp"

using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

namespace {

constexpr Index kParallelWork = 32768;  // multiply-adds; below, starting the threads takes longer
constexpr Index kBlock = BLOCK;
constexpr Index kSplit = SPLIT;
constexpr float kHidden = -__builtin_inff();

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }
constexpr Index round_up(Index value, Index step) { return ceil_div(value, step) * step; }

struct Problem {
    const Element *q, *k, *v;
    const std::int32_t *table, *length;
    Element* o;
    Index sequences, heads, groups, depth, columns, page;
    float scale;
    const Element *q_rope = nullptr, *k_rope = nullptr;  // more columns of q and k, which v does not have
    Index rope = 0;

    Index most() const { return columns * page; }  // keys of a sequence
    Index rows() const { return round_up(groups, ROWS); }
    Index width() const { return round_up(depth, LANES); }
    Index q_width() const { return width() + round_up(rope, LANES); }
    Index parts() const { return kSplit ? std::max<Index>(ceil_div(most(), kSplit), 1) : 1; }
    Index length_of(Index sequence) const { return std::min<Index>(length[sequence], most()); }
    Index floats() const { return rows() * (width() + 2); }  // of what a part found

    // Among all keys in the pages.
    Index place(Index sequence, Index head, Index key) const {
        const Index number = table[sequence * columns + key / page];
        return (number * page + key % page) * heads + head;
    }
};

// Of some rows of queries, over some of the keys.
struct Found {
    float* o;        // [rows, width], not yet divided by the sums
    float* largest;  // [rows]
    float* sum;      // [rows]

    Found(float* memory, const Problem& problem)
        : o(memory), largest(o + problem.rows() * problem.width()), sum(largest + problem.rows()) {}

    void clear(const Problem& problem) const {
        std::fill(o, largest, 0.0f);
        std::fill(largest, sum, kHidden);
        std::fill(sum, sum + problem.rows(), 0.0f);
    }
};

struct Workspace {
    float* q;       // [rows, q_width], scaled
    float* scores;  // [rows, kBlock rounded up]
    const Element* keys[kBlock];
    const Element* rope[kBlock];
    const Element* values[kBlock];

    static constexpr Index kScores = round_up(kBlock, LANES);
    static std::size_t bytes(const Problem& problem) {
        return static_cast<std::size_t>(problem.rows() * (problem.q_width() + kScores)) * sizeof(float);
    }
    Workspace(float* memory, const Problem& problem)
        : q(memory), scores(memory + problem.rows() * problem.q_width()) {}
};

inline Floats load_floats(const float* from) { return vec::load_raw<Floats>(from); }

inline Floats load_elements(const Element* from, Index rest) {
    return rest >= LANES ? vec::load(from) : vec::load_some(from, rest, 0.0f);
}

// Rows of elements as floats, `width` apart, times a factor.
inline void widen(const Element* from, Index rows, Index depth, Floats factor, float* to, Index width) {
    for (Index row = 0; row < rows; ++row) {
        for (Index at = 0; at < depth; at += LANES) {
            vec::store_raw(to + row * width + at, load_elements(from + row * depth + at, depth - at) * factor);
        }
    }
}

inline void load_queries(const Problem& problem, Index sequence, Index head, const Workspace& workspace) {
    const Floats scale = vec::splat(problem.scale);
    const Index width = problem.q_width(), first = (sequence * problem.heads + head) * problem.groups;
    widen(problem.q + first * problem.depth, problem.groups, problem.depth, scale, workspace.q, width);
    if (problem.rope > 0) {
        widen(problem.q_rope + first * problem.rope, problem.groups, problem.rope, scale,
              workspace.q + problem.width(), width);
    }
    std::fill(workspace.q + problem.groups * width, workspace.q + problem.rows() * width, 0.0f);
}

// sums += ROWS rows of q, `width` apart, times the keys.
template <Index Keys>
inline void add_products(const float* q, Index width, const Element* const* keys, Index depth,
                         Floats (&sums)[Keys][ROWS]) {
    for (Index at = 0; at < depth; at += LANES) {
        Floats left[ROWS];
        for (Index i = 0; i < ROWS; ++i) left[i] = load_floats(q + i * width + at);
        for (Index j = 0; j < Keys; ++j) {
            const Floats right = load_elements(keys[j] + at, depth - at);
            for (Index i = 0; i < ROWS; ++i) sums[j][i] += left[i] * right;
        }
    }
}

// Scores of ROWS rows and Keys keys.
template <Index Keys>
inline void score(const Problem& problem, const Workspace& workspace, Index row, Index key) {
    const Index width = problem.q_width();
    const float* q = workspace.q + row * width;
    Floats sums[Keys][ROWS] = {};
    add_products<Keys>(q, width, workspace.keys + key, problem.depth, sums);
    if (problem.rope > 0) {
        add_products<Keys>(q + problem.width(), width, workspace.rope + key, problem.rope, sums);
    }
    for (Index j = 0; j < Keys; ++j) {
        for (Index i = 0; i < ROWS; ++i) {
            workspace.scores[(row + i) * Workspace::kScores + key + j] = vec::reduce_sum(sums[j][i]);
        }
    }
}

// Scores of a row become weights; what the row has found so far is scaled to the new maximum.
inline void weigh(const Problem& problem, const Workspace& workspace, Index row, Index count, const Found& found) {
    float* scores = workspace.scores + row * Workspace::kScores;
    const Index padded = round_up(count, LANES);
    std::fill(scores + count, scores + padded, kHidden);
    Floats largest = vec::splat(found.largest[row]);
    for (Index key = 0; key < padded; key += LANES) largest = vec::maximum(load_floats(scores + key), largest);
    const float top = vec::reduce_maximum(largest);
    Floats sum{};
    for (Index key = 0; key < padded; key += LANES) {
        const Floats weights = vec::exp(load_floats(scores + key) - top);
        vec::store_raw(scores + key, weights);
        sum += weights;
    }
    const float shrink = std::exp(found.largest[row] - top);
    found.sum[row] = found.sum[row] * shrink + vec::reduce_sum(sum);
    found.largest[row] = top;
    if (shrink == 1.0f) return;
    float* o = found.o + row * problem.width();
    for (Index at = 0; at < problem.width(); at += LANES) vec::store_raw(o + at, load_floats(o + at) * shrink);
}

// o[ROWS, width] += weights[ROWS, Keys] v[Keys, width].
template <Index Keys>
inline void add_values(const Problem& problem, const Workspace& workspace, Index row, Index key, const Found& found) {
    const Index width = problem.width();
    Floats weights[Keys][ROWS];
    for (Index j = 0; j < Keys; ++j) {
        for (Index i = 0; i < ROWS; ++i) {
            weights[j][i] = vec::splat(workspace.scores[(row + i) * Workspace::kScores + key + j]);
        }
    }
    for (Index at = 0; at < width; at += LANES) {
        Floats sums[ROWS];
        for (Index i = 0; i < ROWS; ++i) sums[i] = load_floats(found.o + (row + i) * width + at);
        for (Index j = 0; j < Keys; ++j) {
            const Floats right = load_elements(workspace.values[key + j] + at, problem.depth - at);
            for (Index i = 0; i < ROWS; ++i) sums[i] += weights[j][i] * right;
        }
        for (Index i = 0; i < ROWS; ++i) vec::store_raw(found.o + (row + i) * width + at, sums[i]);
    }
}

inline void prefetch(const Element* from, Index depth) {
    for (Index at = 0; at < depth; at += 64 / Index{sizeof(Element)}) __builtin_prefetch(from + at);
}

// The next keys and values; those of the plain form lie apart.
inline void prefetch_keys(const Problem& problem, Index sequence, Index head, Index key, Index end) {
    for (Index each = key; each < std::min(key + UNROLL, end); ++each) {
        const Index place = problem.place(sequence, head, each);
        prefetch(problem.k + place * problem.depth, problem.depth);
        if (problem.rope > 0) {
            prefetch(problem.k_rope + place * problem.rope, problem.rope);
        } else {
            prefetch(problem.v + place * problem.depth, problem.depth);
        }
    }
}

// Calls body(keys, key) for the keys of a block, UNROLL at a time.
template <class Body>
inline void for_each_keys(Index count, Body body) {
    Index key = 0;
    for (; key + UNROLL <= count; key += UNROLL) body(std::integral_constant<Index, UNROLL>{}, key);
    for (; key < count; ++key) body(std::integral_constant<Index, 1>{}, key);
}

// Keys [from, end) of a sequence and a head of keys.
void attend(const Problem& problem, Index sequence, Index head, Index from, Index end, Workspace& workspace,
            const Found& found) {
    load_queries(problem, sequence, head, workspace);
    found.clear(problem);
    for (Index start = from; start < end; start += kBlock) {
        const Index count = std::min(kBlock, end - start);
        for (Index key = 0; key < count; ++key) {
            const Index place = problem.place(sequence, head, start + key);
            workspace.keys[key] = problem.k + place * problem.depth;
            workspace.values[key] = problem.v + place * problem.depth;
            workspace.rope[key] = problem.k_rope + place * problem.rope;
        }
        for (Index row = 0; row < problem.rows(); row += ROWS) {
            for_each_keys(count, [&](auto keys, Index key) {
                if (PREFETCH && row == 0) prefetch_keys(problem, sequence, head, start + kBlock + key, end);
                score<decltype(keys)::value>(problem, workspace, row, key);
            });
        }
        for (Index row = 0; row < problem.rows(); ++row) weigh(problem, workspace, row, count, found);
        for (Index row = 0; row < problem.rows(); row += ROWS) {
            for_each_keys(count, [&](auto keys, Index key) {
                add_values<decltype(keys)::value>(problem, workspace, row, key, found);
            });
        }
    }
}

// What the parts of a sequence and a head found -> o.
void combine(const Problem& problem, Index sequence, Index head, float* memory, Index parts) {
    const Index width = problem.width();
    const Found first(memory, problem);
    for (Index row = 0; row < problem.groups; ++row) {
        float top = kHidden;
        for (Index part = 0; part < parts; ++part) {
            top = std::max(top, Found(memory + part * problem.floats(), problem).largest[row]);
        }
        float sum = 0.0f;
        for (Index part = 0; part < parts; ++part) {
            const Found found(memory + part * problem.floats(), problem);
            const float shrink = std::exp(found.largest[row] - top);
            sum += found.sum[row] * shrink;
            for (Index at = 0; at < width; at += LANES) {
                const Floats more = load_floats(found.o + row * width + at) * shrink;
                float* to = first.o + row * width + at;
                vec::store_raw(to, part == 0 ? more : load_floats(to) + more);
            }
        }
        Element* to = problem.o + ((sequence * problem.heads + head) * problem.groups + row) * problem.depth;
        const float inverse = 1.0f / sum;
        for (Index at = 0; at < problem.depth; at += LANES) {
            const Floats values = load_floats(first.o + row * width + at) * inverse;
            if (at + LANES <= problem.depth) {
                vec::store(to + at, values);
            } else {
                vec::store_some(to + at, problem.depth - at, values);
            }
        }
    }
}

int attend_all(const Problem& problem) {
    static thread_local vec::Scratch shared;
    const Index heads = problem.sequences * problem.heads, parts = problem.parts();
    auto* all = static_cast<float*>(
        shared.reserve(static_cast<std::size_t>(heads * parts * problem.floats()) * sizeof(float)));
    if (all == nullptr) return 1;
    const Index part_keys = kSplit ? kSplit : std::max<Index>(problem.most(), 1);
    std::atomic<int> failed{0};
#pragma omp parallel if (heads * problem.groups * problem.most() * problem.depth >= kParallelWork)
    {
        thread_local vec::Scratch scratch;
        auto* memory = static_cast<float*>(scratch.reserve(Workspace::bytes(problem)));
        if (memory == nullptr) failed = 1;
#pragma omp for schedule(dynamic)
        for (Index task = 0; task < heads * parts; ++task) {
            const Index sequence = task / parts / problem.heads, head = task / parts % problem.heads;
            const Index from = task % parts * part_keys;
            const Index end = std::min(from + part_keys, problem.length_of(sequence));
            if (memory == nullptr || from >= end) continue;
            Workspace workspace(memory, problem);
            attend(problem, sequence, head, from, end, workspace, Found(all + task * problem.floats(), problem));
        }
#pragma omp for schedule(static)
        for (Index task = 0; task < heads; ++task) {
            const Index used = ceil_div(problem.length_of(task / problem.heads), part_keys);
            if (memory == nullptr || used == 0) continue;
            combine(problem, task / problem.heads, task % problem.heads, all + task * parts * problem.floats(), used);
        }
    }
    return failed;
}

}  // namespace

// q[sequences, heads, groups, depth], k, v [pages, page, heads, depth], table[sequences, columns],
// length[sequences], from 1 to columns * page each -> o as q. Returns 1 where there is no memory.
extern "C" int paged_attention(const Element* q, const Element* k, const Element* v, const std::int32_t* table,
                               const std::int32_t* length, Element* o, std::int64_t sequences,
                               std::int64_t heads, std::int64_t groups, std::int64_t depth,
                               std::int64_t columns, std::int64_t page, std::int64_t) {
    if (sequences * heads * groups * depth == 0) return 0;
    const float scale = 1.0f / std::sqrt(static_cast<float>(depth));
    return attend_all({q, k, v, table, length, o, sequences, heads, groups, depth, columns, page, scale});
}

// q[sequences, heads, latent], q_rope[sequences, heads, rope], c[pages, page, latent], k_rope[pages, page, rope], table
// and length as above -> o as q.
extern "C" int paged_attention_latent(const Element* q, const Element* q_rope, const Element* c, const Element* k_rope,
                                      const std::int32_t* table, const std::int32_t* length, Element* o,
                                      std::int64_t sequences, std::int64_t heads, std::int64_t latent,
                                      std::int64_t rope, std::int64_t columns, std::int64_t page, std::int64_t,
                                      double scale) {
    if (sequences * heads * latent == 0) return 0;
    return attend_all({q, c, c, table, length, o, sequences, 1, heads, latent, columns, page,
                       static_cast<float>(scale), q_rope, k_rope, rope});
}
