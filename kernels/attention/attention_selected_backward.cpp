// Gradients of attention of blocks of queries to listed blocks of keys (LLSA: Zhou et al. 2025, arXiv:2512.16615), from
// the lists alone: there is no mask of all blocks.
//
// With p the weights, dp = dout v^T and ds = p (dp - sum over keys of p dp): dq = ds k / sqrt(depth),
// dk = ds^T q / sqrt(depth), dv = p^T dout.
//
// 1. Of each block of queries: its weights, which stay in L2 until all of its list is known, the mean of dp, and dq.
//    What the second walk needs of a query - maximum, sum and mean - is kept.
// 2. The lists are turned around: which blocks of queries name a block of keys, in ascending order.
// 3. Of each block of keys: dk and dv, from the weights of those blocks, which are computed again.
//
// Lanes are queries in the first walk and keys in the second (query_lanes.hpp), so that nothing is packed for a pair of
// blocks. Products are scaled after they were summed up, in the same order in both walks: of large scores, the rounding
// of another order would be much of a weight.
//
// Each gradient is added up by one task, in the order of a list: results do not depend on the number of threads. Blocks
// that all lists name, the coarsest averages, come last in k and first in the second walk.

#include <algorithm>

#include "../query_lanes.hpp"
#include "../store_rows.hpp"
#include "../tasks.hpp"

using namespace query_lanes;

namespace {

constexpr float kHidden = -__builtin_inff();
constexpr Index kPair = kBlock * kBlock;

struct Problem {
    const Element *q, *k, *v;
    const std::int32_t *blocks, *count;
    const Element* dout;
    Element *dq, *dk, *dv;
    Index batch, queries, keys, depth, listed;  // listed: blocks of a list

    Index query_blocks() const { return ceil_div(queries, kBlock); }
    Index key_blocks() const { return ceil_div(keys, kBlock); }
    Index width() const { return micro::round_up(depth, micro::kColumns); }
    float scale() const { return 1.0f / std::sqrt(static_cast<float>(depth)); }
};

// Of each query, [batch, blocks of queries, kBlock]: the largest score, one over the sum of weights, the dp of the key
// with that score, and how far the mean of dp is from it. If the dp that count are nearly equal, their differences keep
// digits that a difference of sums would lose.
struct Statistics {
    float *largest, *inverse, *base, *mean;

    Statistics from(Index at) const { return {largest + at, inverse + at, base + at, mean + at}; }
};
constexpr Index kStatistics = 4;

// Which blocks of queries name a block of keys: members[begin[block]] up to members[begin[block + 1]].
struct Members {
    std::int32_t* begin;    // [batch, key_blocks + 1]
    std::int32_t* members;  // [batch, blocks of queries * listed]
};

// Rows of a block as floats, where they lie or in a copy, and how many there are.
struct Rows {
    const float* rows;
    Index count;
};

Rows rows_of(const Element* from, Index batch, Index block, Index all, Index depth, Index width, float* copy) {
    const Index first = block * kBlock, count = std::min(kBlock, all - first);
    return {block_rows(from + (batch * all + first) * depth, count, depth, width, copy), count};
}

void transpose_block(const Element* from, Index batch, Index block, Index all, Index depth, float* to) {
    const Index first = block * kBlock;
    transpose_rows(from + (batch * all + first) * depth, std::min(kBlock, all - first), depth, 1.0f, to);
}

// ---- gradients of queries -----------------------------------------------------------------------------------

struct QueryWork {
    float *q, *dout;           // [depth, kBlock]
    float* dq;                 // [kBlock, width]
    float *weights, *slopes;   // [listed, kBlock, kBlock]: exponentials, then ds; dp
    float* copy;               // [kBlock, width]
};

Index query_floats(const Problem& problem) {
    return kBlock * (2 * problem.depth + 2 * problem.width()) + 2 * problem.listed * kPair;
}

QueryWork place_queries(float* memory, const Problem& problem) {
    QueryWork work{};
    work.weights = memory;
    work.slopes = work.weights + problem.listed * kPair;
    work.dq = work.slopes + problem.listed * kPair;
    work.copy = work.dq + kBlock * problem.width();
    work.q = work.copy + kBlock * problem.width();
    work.dout = work.q + kBlock * problem.depth;
    return work;
}

// Scores and dp of one block of the list, the former hidden where there is no key.
void multiply_block(const Problem& problem, const QueryWork& work, Index batch, Index block, Index at) {
    float* scores = work.weights + at * kPair;
    const Rows keys = rows_of(problem.k, batch, block, problem.keys, problem.depth, problem.depth, work.copy);
    score(keys.rows, problem.depth, work.q, problem.depth, scores);
    std::fill(scores + keys.count * kBlock, scores + kPair, kHidden);
    const Rows values = rows_of(problem.v, batch, block, problem.keys, problem.depth, problem.depth, work.copy);
    score(values.rows, problem.depth, work.dout, problem.depth, work.slopes + at * kPair);
}

// Scores become ds, of LANES queries from `lane` on.
void differentiate(const Problem& problem, const QueryWork& work, const std::int32_t* list, Index lane,
                   const Statistics& statistics) {
    const float scale = problem.scale();
    Floats top = vec::splat(kHidden), sum{}, mean{}, base{};
    const auto for_each_block = [&](auto body) {
        for (Index each = 0; each < problem.listed; ++each) {
            const Index at = each * kPair + lane;
            if (list[each] >= problem.key_blocks()) continue;
            body(work.weights + at, work.slopes + at, Index{list[each]} * kBlock);
        }
    };
    for_each_block([&](float* weight, float* slope, Index) {
        for (Index at = 0; at < kPair; at += kBlock) {
            const Floats found = micro::load_floats(weight + at);
            base = found > top ? micro::load_floats(slope + at) : base;
            top = vec::maximum(found, top);
        }
    });
    for_each_block([&](float* weight, float* slope, Index first) {
        Floats own_sum{}, own_mean{};  // of one block: a chain through all of them would lose digits
        for (Index key = 0; key < kBlock; ++key) {
            const Index at = key * kBlock;
            const auto times = first + key < problem.keys ? static_cast<float>(problem.count[first + key]) : 0.0f;
            const Floats found = vec::exp((micro::load_floats(weight + at) - top) * scale) * times;
            vec::store_raw(weight + at, found);
            own_sum += found;
            own_mean += found * (micro::load_floats(slope + at) - base);
        }
        sum += own_sum;
        mean += own_mean;
    });
    const Floats inverse = 1.0f / sum;
    mean *= inverse;
    // What ds does not add up to 0 by is what the mean was rounded by, which all keys of a query have in common.
    Floats rest{};
    for_each_block([&](float* weight, float* slope, Index) {
        Floats own{};
        for (Index at = 0; at < kPair; at += kBlock) {
            own += micro::load_floats(weight + at) * (micro::load_floats(slope + at) - base - mean);
        }
        rest += own;
    });
    mean += rest * inverse;
    for_each_block([&](float* weight, float* slope, Index) {
        for (Index at = 0; at < kPair; at += kBlock) {
            const Floats more = micro::load_floats(slope + at) - base - mean;
            vec::store_raw(weight + at, micro::load_floats(weight + at) * inverse * more);
        }
    });
    vec::store_raw(statistics.largest + lane, top);
    vec::store_raw(statistics.inverse + lane, inverse);
    vec::store_raw(statistics.base + lane, base);
    vec::store_raw(statistics.mean + lane, mean);
}

void store_scaled(float* sums, Index width, Index rows, Index depth, float factor, Element* to) {
    for (Index at = 0; at < rows * width; at += LANES) {
        vec::store_raw(sums + at, micro::load_floats(sums + at) * factor);
    }
    store_rows(sums, width, rows, depth, to, depth);
}

void gradient_of_queries(const Problem& problem, const QueryWork& work, Index batch, Index block,
                         const Statistics& statistics) {
    const Index first = block * kBlock, width = problem.width();
    const std::int32_t* list = problem.blocks + (batch * problem.query_blocks() + block) * problem.listed;
    transpose_block(problem.q, batch, block, problem.queries, problem.depth, work.q);
    transpose_block(problem.dout, batch, block, problem.queries, problem.depth, work.dout);
    for (Index each = 0; each < problem.listed; ++each) {
        if (list[each] < problem.key_blocks()) multiply_block(problem, work, batch, list[each], each);
    }
    for (Index lane = 0; lane < kBlock; lane += LANES) differentiate(problem, work, list, lane, statistics);
    std::fill_n(work.dq, kBlock * width, 0.0f);
    for (Index each = 0; each < problem.listed; ++each) {
        if (list[each] >= problem.key_blocks()) continue;
        const Rows keys = rows_of(problem.k, batch, list[each], problem.keys, problem.depth, width, work.copy);
        add_weighted(work.weights + each * kPair, keys.rows, width, work.dq);
    }
    store_scaled(work.dq, width, std::min(kBlock, problem.queries - first), problem.depth, problem.scale(),
                 problem.dq + (batch * problem.queries + first) * problem.depth);
}

// ---- gradients of keys and values ---------------------------------------------------------------------------

// Of one batch: counted, then each list in turn.
void turn_around(const Problem& problem, Index batch, const Members& members) {
    const Index blocks = problem.key_blocks(), names = problem.query_blocks() * problem.listed;
    const std::int32_t* list = problem.blocks + batch * names;
    std::int32_t* begin = members.begin + batch * (blocks + 1);
    std::int32_t* to = members.members + batch * names;
    std::fill_n(begin, blocks + 1, 0);
    for (Index at = 0; at < names; ++at) {
        if (list[at] < blocks) ++begin[list[at] + 1];
    }
    for (Index block = 0; block < blocks; ++block) begin[block + 1] += begin[block];
    for (Index at = 0; at < names; ++at) {
        if (list[at] < blocks) to[begin[list[at]]++] = static_cast<std::int32_t>(at / problem.listed);
    }
    // Each has moved to where the next one began.
    for (Index block = blocks; block > 0; --block) begin[block] = begin[block - 1];
    begin[0] = 0;
}

struct KeyWork {
    float *k, *v;             // [depth, kBlock]
    float *dk, *dv;           // [kBlock, width]
    float *weights, *slopes;  // [kBlock, kBlock], a row for each query
    float *q, *dout;          // [kBlock, width]: copies of rows
};

Index key_floats(const Problem& problem) {
    return kBlock * (2 * problem.depth + 4 * problem.width()) + 2 * kPair;
}

KeyWork place_keys(float* memory, const Problem& problem) {
    KeyWork work{};
    const auto take = [&memory](Index floats) {
        float* taken = memory;
        memory += floats;
        return taken;
    };
    for (float** each : {&work.weights, &work.slopes}) *each = take(kPair);
    for (float** each : {&work.dk, &work.dv, &work.q, &work.dout}) *each = take(kBlock * problem.width());
    for (float** each : {&work.k, &work.v}) *each = take(kBlock * problem.depth);
    return work;
}

// As `add_weighted`, but each pair of blocks is summed up for itself: of a block of keys that thousands of queries
// name, one chain of additions would lose digits.
void add_pair(const float* weights, const float* rows, Index width, float* sums) {
    float own[MICRO_ROWS * micro::kColumns];
    for (Index column = 0; column < width; column += micro::kColumns) {
        for (Index lane = 0; lane < kBlock; lane += MICRO_ROWS) {
            micro::multiply<false, true>(weights + lane, kBlock, rows + column, width, own, micro::kColumns, kBlock);
            for (Index row = 0; row < MICRO_ROWS; ++row) {
                for (Index at = 0; at < micro::kColumns; at += LANES) {
                    float* to = sums + (lane + row) * width + column + at;
                    vec::store_raw(to, micro::load_floats(to) + micro::load_floats(own + row * micro::kColumns + at));
                }
            }
        }
    }
}

// What one block of queries adds to dk, but for the scale, and to dv.
void add_queries(const Problem& problem, const KeyWork& work, Index batch, Index block, const float* times,
                 const Statistics& statistics) {
    const Index width = problem.width();
    const Rows q = rows_of(problem.q, batch, block, problem.queries, problem.depth, width, work.q);
    const Rows dout = rows_of(problem.dout, batch, block, problem.queries, problem.depth, width, work.dout);
    score(q.rows, width, work.k, problem.depth, work.weights);
    score(dout.rows, width, work.v, problem.depth, work.slopes);
    const float scale = problem.scale();
    for (Index query = 0; query < kBlock; ++query) {
        for (Index lane = 0; lane < kBlock; lane += LANES) {
            float *weight = work.weights + query * kBlock + lane, *slope = work.slopes + query * kBlock + lane;
            const Floats less = (micro::load_floats(weight) - statistics.largest[query]) * scale;
            const Floats p = vec::exp(less) * micro::load_floats(times + lane) * statistics.inverse[query];
            const bool there = query < q.count;
            vec::store_raw(weight, there ? p : Floats{});
            const Floats more = micro::load_floats(slope) - statistics.base[query] - statistics.mean[query];
            vec::store_raw(slope, there ? p * more : Floats{});
        }
    }
    add_pair(work.weights, dout.rows, width, work.dv);
    add_pair(work.slopes, q.rows, width, work.dk);
}

void gradient_of_keys(const Problem& problem, const KeyWork& work, Index batch, Index block, const Members& members,
                      const Statistics& statistics) {
    const Index first = block * kBlock, rows = std::min(kBlock, problem.keys - first), width = problem.width();
    float times[kBlock] = {};
    for (Index key = 0; key < rows; ++key) times[key] = static_cast<float>(problem.count[first + key]);
    transpose_block(problem.k, batch, block, problem.keys, problem.depth, work.k);
    transpose_block(problem.v, batch, block, problem.keys, problem.depth, work.v);
    std::fill_n(work.dk, 2 * kBlock * width, 0.0f);
    const std::int32_t* begin = members.begin + batch * (problem.key_blocks() + 1) + block;
    const std::int32_t* list = members.members + batch * problem.query_blocks() * problem.listed;
    for (Index at = begin[0]; at < begin[1]; ++at) {
        const Statistics own = statistics.from((batch * problem.query_blocks() + list[at]) * kBlock);
        add_queries(problem, work, batch, list[at], times, own);
    }
    const Index to = (batch * problem.keys + first) * problem.depth;
    store_scaled(work.dk, width, rows, problem.depth, problem.scale(), problem.dk + to);
    store_rows(work.dv, width, rows, problem.depth, problem.dv + to, problem.depth);
}

}  // namespace

// q, dout [batch, queries, depth], k, v [batch, keys, depth], blocks[batch, blocks of queries, listed], count[keys]
// -> dq as q, dk and dv as k. Returns 1 where there is no memory.
extern "C" int attention_selected_backward(const Element* q, const Element* k, const Element* v,
                                           const std::int32_t* blocks, const std::int32_t* count, const Element* dout,
                                           Element* dq, Element* dk, Element* dv, std::int64_t batch,
                                           std::int64_t queries, std::int64_t keys, std::int64_t depth,
                                           std::int64_t listed) {
    const Problem problem{q, k, v, blocks, count, dout, dq, dk, dv, batch, queries, keys, depth, listed};
    const Index query_blocks = problem.query_blocks(), key_blocks = problem.key_blocks();
    const Index rows = batch * query_blocks * kBlock;
    static thread_local vec::Scratch kept;
    const Index words = kStatistics * rows + batch * (key_blocks + 1 + query_blocks * listed);
    auto* memory = static_cast<float*>(kept.reserve(static_cast<std::size_t>(words + 1) * sizeof(float)));
    if (memory == nullptr) return 1;
    const Statistics statistics{memory, memory + rows, memory + 2 * rows, memory + 3 * rows};
    auto* begin = reinterpret_cast<std::int32_t*>(memory + kStatistics * rows);
    const Members members{begin, begin + batch * (key_blocks + 1)};

    const bool parallel = batch * queries * listed * kBlock * depth >= kParallelWork;
    int failed = tasks::for_each(batch * query_blocks, query_floats(problem), parallel, [&](Index task, float* memory) {
        gradient_of_queries(problem, place_queries(memory, problem), task / query_blocks, task % query_blocks,
                            statistics.from(task * kBlock));
    });
    for (Index each = 0; each < batch; ++each) turn_around(problem, each, members);
    failed |= tasks::for_each(batch * key_blocks, key_floats(problem), parallel, [&](Index task, float* memory) {
        gradient_of_keys(problem, place_keys(memory, problem), task % batch, key_blocks - 1 - task / batch, members,
                         statistics);
    });
    return failed;
}
