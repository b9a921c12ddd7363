// Attention of blocks of queries to the blocks of keys that a list names for each (LLSA: Zhou et al. 2025,
// arXiv:2512.16615). A key may stand for several tokens: its weight is multiplied by their number.
//
// 1. Only what a list names is read: time is linear in the number of queries and in the length of the lists. There is
//    no mask of all blocks.
// 2. Lanes are queries (query_lanes.hpp): neither keys nor values are packed, and maxima, exponentials and sums need
//    no reduction across lanes.
// 3. Scores never reach memory (Dao et al. 2022, arXiv:2205.14135): STEP blocks at a time, each query keeps a running
//    maximum and sum (Milakov and Gimelshein 2018, arXiv:1805.02867).
// 4. PREFETCH asks for the next block while this one is multiplied: the hardware cannot guess where it lies.
//
// Threads share blocks of queries. The order of summation is that of the list.

#include "../query_lanes.hpp"
#include "../store_rows.hpp"
#include "../tasks.hpp"

using namespace query_lanes;

namespace {

constexpr Index kLine = 64;  // bytes
constexpr Index kKeys = kBlock * STEP;  // of a step
constexpr float kHidden = -__builtin_inff();

struct Problem {
    const Element *q, *k, *v;
    const std::int32_t *blocks, *count;
    Element* o;
    Index queries, keys, depth, listed;  // listed: blocks of a list

    Index query_blocks() const { return ceil_div(queries, kBlock); }
    Index width() const { return micro::round_up(depth, micro::kColumns); }
};

// What a thread has of its block of queries, in float32.
struct Work {
    float* q;       // [depth, kBlock], scaled
    float* o;       // [kBlock, width]
    float* scores;  // [kKeys, kBlock]
    float* k;       // [kBlock, depth]: a block of keys that is not used where it lies
    float* v;       // [STEP, kBlock, width]: the same of values
    float* times;   // [kKeys]: how many tokens a key stands for
    float* largest;  // [kBlock]
    float* sum;      // [kBlock]
};

Index floats_of(const Problem& problem) {
    return kBlock * (2 * problem.depth + (1 + STEP) * problem.width() + kKeys + 2) + kKeys;
}

Work place(float* memory, const Problem& problem) {
    Work work{};
    const auto take = [&memory](Index floats) {
        float* taken = memory;
        memory += floats;
        return taken;
    };
    work.o = take(kBlock * problem.width());
    work.v = take(STEP * kBlock * problem.width());
    work.scores = take(kKeys * kBlock);
    work.times = take(kKeys);
    for (float** each : {&work.largest, &work.sum}) *each = take(kBlock);
    for (float** each : {&work.q, &work.k}) *each = take(kBlock * problem.depth);
    return work;
}

void prefetch(const Element* from, Index elements) {
    const char* bytes = reinterpret_cast<const char*>(from);
    for (Index at = 0; at < elements * static_cast<Index>(sizeof(Element)); at += kLine) {
        __builtin_prefetch(bytes + at);
    }
}

// One block of a step: its scores, how many tokens its keys stand for, and where its values lie as floats.
const float* score_block(const Problem& problem, const Work& work, Index batch, const std::int32_t* list, Index left,
                         Index place_in_step) {
    const Index first = Index{list[0]} * kBlock, rows = std::min(kBlock, problem.keys - first);
    const Index at = (batch * problem.keys + first) * problem.depth;
    if (PREFETCH && left > 1 && (Index{list[1]} + 1) * kBlock <= problem.keys) {
        const Index next = (batch * problem.keys + Index{list[1]} * kBlock) * problem.depth;
        prefetch(problem.k + next, kBlock * problem.depth);
        prefetch(problem.v + next, kBlock * problem.depth);
    }
    float* scores = work.scores + place_in_step * kBlock * kBlock;
    float* times = work.times + place_in_step * kBlock;
    const float* keys = block_rows(problem.k + at, rows, problem.depth, problem.depth, work.k);
    score(keys, problem.depth, work.q, problem.depth, scores);
    std::fill(scores + rows * kBlock, scores + kBlock * kBlock, kHidden);
    for (Index key = 0; key < kBlock; ++key) {
        times[key] = key < rows ? static_cast<float>(problem.count[first + key]) : 0.0f;
    }
    return block_rows(problem.v + at, rows, problem.depth, problem.width(),
                      work.v + place_in_step * kBlock * problem.width());
}

// Scores become weights; what the queries have accumulated is scaled to their new maxima.
void weigh(const Work& work, Index keys, Index width) {
    float shrink[kBlock];
    for (Index lane = 0; lane < kBlock; lane += LANES) {
        float* scores = work.scores + lane;
        const Floats before = micro::load_floats(work.largest + lane);
        Floats top = before, sum{};
        for (Index key = 0; key < keys; ++key) top = vec::maximum(top, micro::load_floats(scores + key * kBlock));
        for (Index key = 0; key < keys; ++key) {
            const Floats weight = vec::exp(micro::load_floats(scores + key * kBlock) - top) * work.times[key];
            vec::store_raw(scores + key * kBlock, weight);
            sum += weight;
        }
        const Floats less = vec::exp(before - top);
        vec::store_raw(shrink + lane, less);
        vec::store_raw(work.sum + lane, micro::load_floats(work.sum + lane) * less + sum);
        vec::store_raw(work.largest + lane, top);
    }
    for (Index query = 0; query < kBlock; ++query) {
        float* o = work.o + query * width;
        for (Index at = 0; at < width; at += LANES) {
            vec::store_raw(o + at, micro::load_floats(o + at) * shrink[query]);
        }
    }
}

void attend(const Problem& problem, const Work& work, Index batch, Index block) {
    const Index first = block * kBlock, rows = std::min(kBlock, problem.queries - first), width = problem.width();
    const Index at = (batch * problem.queries + first) * problem.depth;
    transpose_rows(problem.q + at, rows, problem.depth, 1.0f / std::sqrt(static_cast<float>(problem.depth)), work.q);
    std::fill_n(work.o, kBlock * width, 0.0f);
    std::fill_n(work.largest, kBlock, kHidden);
    std::fill_n(work.sum, kBlock, 0.0f);
    const Index key_blocks = ceil_div(problem.keys, kBlock);
    const std::int32_t* list = problem.blocks + (batch * problem.query_blocks() + block) * problem.listed;
    const float* values[STEP];
    Index blocks = 0;  // of this step
    for (Index each = 0; each <= problem.listed; ++each) {
        if (each < problem.listed && list[each] < key_blocks) {
            values[blocks] = score_block(problem, work, batch, list + each, problem.listed - each, blocks);
            ++blocks;
        }
        if (blocks == 0 || (blocks < STEP && each < problem.listed)) continue;
        weigh(work, blocks * kBlock, width);
        for (Index added = 0; added < blocks; ++added) {
            add_weighted(work.scores + added * kBlock * kBlock, values[added], width, work.o);
        }
        blocks = 0;
    }
    for (Index query = 0; query < rows; ++query) {
        const float inverse = work.sum[query] > 0.0f ? 1.0f / work.sum[query] : 0.0f;
        float* o = work.o + query * width;
        for (Index each = 0; each < width; each += LANES) {
            vec::store_raw(o + each, micro::load_floats(o + each) * inverse);
        }
    }
    store_rows(work.o, width, rows, problem.depth, problem.o + at, problem.depth);
}

}  // namespace

// q[batch, queries, depth], k, v [batch, keys, depth], blocks[batch, blocks of queries, listed], count[keys] -> o as q.
// Returns 1 where there is no memory.
extern "C" int attention_selected(const Element* q, const Element* k, const Element* v, const std::int32_t* blocks,
                                  const std::int32_t* count, Element* o, std::int64_t batch, std::int64_t queries,
                                  std::int64_t keys, std::int64_t depth, std::int64_t listed) {
    const Problem problem{q, k, v, blocks, count, o, queries, keys, depth, listed};
    const bool parallel = batch * queries * listed * kBlock * depth >= kParallelWork;
    const Index query_blocks = problem.query_blocks();
    return tasks::for_each(batch * query_blocks, floats_of(problem), parallel, [&](Index task, float* memory) {
        attend(problem, place(memory, problem), task / query_blocks, task % query_blocks);
    });
}
