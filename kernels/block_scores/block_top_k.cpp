// The blocks of keys that each block of queries keeps, of the children of those that its parent kept: one level of a
// selection from coarse to fine (LLSA: Zhou et al. 2025, arXiv:2512.16615).
//
// 1. Only children of listed parents are scored: time is linear in the number of blocks, where scores of all pairs are
//    quadratic. The 16 children of a parent among the queries share its list, and their keys.
// 2. Lanes are queries (query_lanes.hpp): keys lie as they are, and each lane selects for itself.
// 3. The KEPT best of each lane stay in registers, in order. A key that is better than the last one in some lane moves
//    down to its place in all of them at once; with EARLY one that is better in none is passed over.
//
// Of equal scores the first one stays. Threads share the parents among the queries.

#include "../query_lanes.hpp"
#include "../tasks.hpp"

using namespace query_lanes;
using vec::Ints;

namespace {

struct Problem {
    const Element *q, *k;
    const std::int32_t* parents;
    std::int32_t* index;
    Index queries, keys, depth, listed;  // listed: parents of a list

    Index groups() const { return ceil_div(queries, kBlock); }
    // All but one of the parents have all their children.
    Index kept() const {
        const Index parents_of_keys = std::min(listed, ceil_div(keys, kBlock));
        return std::max<Index>(std::min({Index{KEPT}, keys, (parents_of_keys - 1) * kBlock + 1}), 0);
    }
};

// What a thread has of its queries.
struct Work {
    float* q;       // [depth, kBlock]
    float* k;       // [kBlock, depth]: keys that are not used where they lie
    float* scores;  // [kBlock, kBlock]
    float* best;    // [KEPT, kBlock], in order
    std::int32_t* place;  // the same: their keys
};

Index floats_of(const Problem& problem) { return 2 * kBlock * problem.depth + kBlock * (kBlock + 2 * KEPT); }

Work place(float* memory, const Problem& problem) {
    Work work{};
    work.scores = memory;
    work.best = work.scores + kBlock * kBlock;
    work.place = reinterpret_cast<std::int32_t*>(work.best + kBlock * KEPT);
    work.q = work.best + 2 * kBlock * KEPT;
    work.k = work.q + kBlock * problem.depth;
    return work;
}

// The scores of keys from `first` on, for LANES queries, take their places among the best ones.
void insert(const float* scores, Index rows, Index first, float* kept_scores, std::int32_t* kept_keys) {
    Floats best[KEPT];
    Ints place[KEPT];
#pragma GCC unroll 32
    for (int i = 0; i < KEPT; ++i) {
        best[i] = vec::load_raw<Floats>(kept_scores + i * kBlock);
        place[i] = vec::load_raw<Ints>(kept_keys + i * kBlock);
    }
    for (Index row = 0; row < rows; ++row) {
        auto score = vec::load_raw<Floats>(scores + row * kBlock);
        if (EARLY && !vec::any(score > best[KEPT - 1])) continue;
        Ints key = Ints{} + static_cast<std::int32_t>(first + row);
#pragma GCC unroll 32
        for (int i = 0; i < KEPT; ++i) {
            const auto better = score > best[i];
            const Floats next_score = better ? best[i] : score;
            const Ints next_key = better ? place[i] : key;
            best[i] = better ? score : best[i];
            place[i] = better ? key : place[i];
            score = next_score;
            key = next_key;
        }
    }
#pragma GCC unroll 32
    for (int i = 0; i < KEPT; ++i) {
        vec::store_raw(kept_scores + i * kBlock, best[i]);
        vec::store_raw(kept_keys + i * kBlock, place[i]);
    }
}

void select(const Problem& problem, const Work& work, Index batch, Index group) {
    const Index first = group * kBlock, queries = std::min(kBlock, problem.queries - first);
    transpose_rows(problem.q + (batch * problem.queries + first) * problem.depth, queries, problem.depth, 1.0f, work.q);
    std::fill_n(work.best, KEPT * kBlock, -__builtin_inff());
    std::fill_n(work.place, KEPT * kBlock, 0);
    const std::int32_t* list = problem.parents + (batch * problem.groups() + group) * problem.listed;
    for (Index parent = 0; parent < problem.listed; ++parent) {
        const Index key = Index{list[parent]} * kBlock, rows = std::min(kBlock, problem.keys - key);
        if (rows <= 0) continue;
        const Element* from = problem.k + (batch * problem.keys + key) * problem.depth;
        const float* children = block_rows(from, rows, problem.depth, problem.depth, work.k);
        score(children, problem.depth, work.q, problem.depth, work.scores);
        for (Index lane = 0; lane < kBlock; lane += LANES) {
            insert(work.scores + lane, rows, key, work.best + lane, work.place + lane);
        }
    }
    const Index kept = problem.kept();
    std::int32_t* to = problem.index + (batch * problem.queries + first) * kept;
    for (Index query = 0; query < queries; ++query) {
        for (Index i = 0; i < kept; ++i) to[query * kept + i] = work.place[i * kBlock + query];
    }
}

}  // namespace

// q[batch, queries, depth], k[batch, keys, depth], parents[batch, parents of queries, listed] -> index[batch, queries,
// kept]. Returns 1 where there is no memory.
extern "C" int block_top_k(const Element* q, const Element* k, const std::int32_t* parents, std::int32_t* index,
                           std::int64_t batch, std::int64_t queries, std::int64_t keys, std::int64_t depth,
                           std::int64_t listed) {
    const Problem problem{q, k, parents, index, queries, keys, depth, listed};
    const bool parallel = batch * queries * listed * kBlock * depth >= kParallelWork;
    return tasks::for_each(batch * problem.groups(), floats_of(problem), parallel, [&](Index task, float* memory) {
        select(problem, place(memory, problem), task / problem.groups(), task % problem.groups());
    });
}
