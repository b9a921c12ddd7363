// Attention of a batch of sequences of equal length, whose rows go through tiles (tile.hpp). Tiles are shared among
// threads, the longest first.

#include "tile.hpp"

using namespace heads;

namespace {

int attend_batches(const Element* q, const Element* k, const Element* v, Element* o, std::ptrdiff_t batch,
                   const Sizes& sizes) {
    const std::ptrdiff_t rows = sizes.groups * sizes.queries;
    const std::ptrdiff_t tiles = (rows + BLOCK_Q - 1) / BLOCK_Q;
    const bool parallel = batch * rows * sizes.keys * sizes.depth >= kParallelWork;
    return for_each_task(batch * tiles, sizes, parallel, [&](std::ptrdiff_t task, const Tile& tile) {
        // The last tiles see the most keys if the mask is causal.
        const std::ptrdiff_t number = task % batch, first = (tiles - 1 - task / batch) * BLOCK_Q;
        attend(q + number * rows * sizes.depth, k + number * sizes.keys * sizes.depth,
               v + number * sizes.keys * sizes.values, o + number * rows * sizes.values, sizes, tile, first,
               std::min<std::ptrdiff_t>(BLOCK_Q, rows - first));
    });
}

}  // namespace

// q[batch, groups, queries, depth], k, v [batch, keys, depth] -> o as q. Returns 1 where there is no memory.
extern "C" int attention(const Element* q, const Element* k, const Element* v, Element* o, std::int64_t batch,
                         std::int64_t groups, std::int64_t queries, std::int64_t keys, std::int64_t depth) {
    return attend_batches(q, k, v, o, batch, sizes_of(groups, queries, keys, depth, depth));
}

// The same of queries and keys of another depth than values: q[batch, groups, queries, depth], k[batch, keys, depth],
// v[batch, keys, values] -> o[batch, groups, queries, values].
extern "C" int attention_latent(const Element* q, const Element* k, const Element* v, Element* o, std::int64_t batch,
                                std::int64_t groups, std::int64_t queries, std::int64_t keys, std::int64_t depth,
                                std::int64_t values) {
    return attend_batches(q, k, v, o, batch, sizes_of(groups, queries, keys, depth, values));
}
