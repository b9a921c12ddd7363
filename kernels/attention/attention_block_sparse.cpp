// Causal attention that leaves out blocks of keys, which a mask names for each block of queries, for example because
// estimates of their scores are small (SALE: Ji et al. 2025, arXiv:2505.24179): neither they nor their values are read.
//
// Rows go through the tiles of attention (tile.hpp), in steps of a block of keys. No tile crosses a block of queries,
// so that a block is there for all of its rows or for none. Without SKIP all blocks are computed, and hidden.
//
// The order of summation depends on the mask alone.

#include "tile.hpp"

using namespace heads;

namespace {

constexpr std::ptrdiff_t kBlock = BLOCK;  // queries, and keys, of a block
static_assert(BLOCK_K == BLOCK, "a step has the keys of one block");

constexpr std::ptrdiff_t ceil_div(std::ptrdiff_t total, std::ptrdiff_t part) { return (total + part - 1) / part; }

// The blocks of keys that one block of queries leaves out.
struct Skipped {
    const std::uint8_t* names;
    std::ptrdiff_t own;  // the block of the first query's own key: it and later ones are there

    bool operator()(std::ptrdiff_t key) const { return key / kBlock < own && names[key / kBlock] != 0; }
};

}  // namespace

// q[batch, groups, queries, depth], k, v [batch, keys, depth], skipped[batch, blocks of queries, blocks of keys] -> o as
// q. Returns 1 where there is no memory.
extern "C" int attention_block_sparse(const Element* q, const Element* k, const Element* v,
                                      const std::uint8_t* skipped, Element* o, std::int64_t batch,
                                      std::int64_t groups, std::int64_t queries, std::int64_t keys,
                                      std::int64_t depth, std::int64_t) {
    const Sizes sizes = sizes_of(groups, queries, keys, depth, depth);
    const std::ptrdiff_t rows = groups * queries, span = groups * kBlock;  // of a batch, of a block of queries
    const std::ptrdiff_t blocks = ceil_div(queries, kBlock), key_blocks = ceil_div(keys, kBlock);
    const std::ptrdiff_t tiles = ceil_div(span, BLOCK_Q);  // of a block of queries
    const bool parallel = batch * rows * keys * depth >= kParallelWork;
    return for_each_task(batch * blocks * tiles, sizes, parallel, [&](std::ptrdiff_t task, const Tile& tile) {
        // The last blocks see the most keys.
        const std::ptrdiff_t number = task % batch, at = blocks * tiles - 1 - task / batch, block = at / tiles;
        const std::ptrdiff_t first = block * span + at % tiles * BLOCK_Q;
        const std::ptrdiff_t last = std::min({first + BLOCK_Q, (block + 1) * span, rows});
        if (first >= last) return;
        const Skipped hides{skipped + (number * blocks + block) * key_blocks,
                            std::min((block * kBlock + sizes.past) / kBlock, key_blocks - 1)};
        attend(q + number * rows * depth, k + number * keys * depth, v + number * keys * depth,
               o + number * rows * depth, sizes, tile, first, last - first, hides);
    });
}
