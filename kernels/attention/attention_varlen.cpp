// Causal attention of sequences of any lengths, which lie one after the other (the interface of FlashAttention for
// packed sequences, Dao 2023, arXiv:2307.08691): no padding is stored, and none is computed.
//
// 1. Rows of a sequence go through the tiles of attention (tile.hpp), which read keys in steps of a token. Scores of
//    different sequences are never formed.
// 2. LONGEST_FIRST: a tile at the end of a long sequence has many times the work of others. With the longest tiles
//    first, the short ones fill the gaps at the end (Graham 1969, "Bounds on multiprocessing timing anomalies").
//
// The order of summation depends on the lengths alone.

#include <vector>

#include "../vector.hpp"  // ahead of the macro: its headers are precompiled

#define MASK_CAUSAL  // the mask of each sequence; attributes of the other kernels of this folder choose it
#include "tile.hpp"

using namespace heads;

namespace {

struct Task {
    std::ptrdiff_t begin, length;  // of the sequence, in tokens
    std::ptrdiff_t head, first;    // head of keys and values, row of the sequence and the head

    std::ptrdiff_t keys(std::ptrdiff_t groups) const { return std::min(length, (first + BLOCK_Q - 1) / groups + 1); }
};

std::vector<Task> tasks_of(const std::int32_t* ends, std::ptrdiff_t sequences, std::ptrdiff_t heads,
                           std::ptrdiff_t groups) {
    std::vector<Task> tasks;
    for (std::ptrdiff_t sequence = 0; sequence < sequences; ++sequence) {
        const std::ptrdiff_t begin = sequence == 0 ? 0 : ends[sequence - 1], length = ends[sequence] - begin;
        for (std::ptrdiff_t first = 0; first < length * groups; first += BLOCK_Q) {
            for (std::ptrdiff_t head = 0; head < heads; ++head) tasks.push_back({begin, length, head, first});
        }
    }
#if LONGEST_FIRST
    std::sort(tasks.begin(), tasks.end(),
              [groups](const Task& left, const Task& right) { return left.keys(groups) > right.keys(groups); });
#endif
    return tasks;
}

}  // namespace

// q[tokens, heads, groups, depth], k, v [tokens, heads, depth], ends[sequences], the last one `tokens` -> o as q.
// Returns 1 where there is no memory.
extern "C" int attention_varlen(const Element* q, const Element* k, const Element* v, const std::int32_t* ends,
                                Element* o, std::int64_t tokens, std::int64_t sequences, std::int64_t heads,
                                std::int64_t groups, std::int64_t depth) {
    if (tokens * heads * groups * depth == 0) return 0;
    const std::vector<Task> tasks = tasks_of(ends, sequences, heads, groups);
    Sizes common = sizes_of(groups, tokens, tokens, depth, depth);
    common.group_step = 1;
    common.query_step = heads * groups;
    common.key_step = heads;
    const auto attend_task = [&](std::ptrdiff_t number, const Tile& tile) {
        const Task& task = tasks[static_cast<std::size_t>(number)];
        Sizes sizes = common;
        sizes.queries = sizes.keys = task.length;
        const std::ptrdiff_t from = (task.begin * heads + task.head) * depth;
        attend(q + from * groups, k + from, v + from, o + from * groups, sizes, tile, task.first,
               std::min<std::ptrdiff_t>(BLOCK_Q, task.length * groups - task.first));
    };
    const bool parallel = tokens * heads * groups * (tokens / sequences) * depth >= kParallelWork;
    return for_each_task(static_cast<std::ptrdiff_t>(tasks.size()), common, parallel, attend_task);
}
