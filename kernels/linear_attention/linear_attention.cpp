// Causal linear attention with a decay per head: o_t = q_t S_t with S_t = g S_{t-1} + k_t v_t^T and g = exp(-rate), in
// chunks (chunks.hpp). Decays within a chunk are powers of g, the same for all chunks. Heads are shared among threads,
// and so are blocks of COLUMNS columns of v, whose states are independent; blocks of one head form the same scores.

#include "chunks.hpp"

using chunks::Index;
using chunks::Sizes;
using chunks::Workspace;
using vec::Element;

namespace {

constexpr Index kParallelWork = 32768;  // multiply-adds; below, starting the threads takes longer

// One head's tensors, [steps, depth].
struct Head {
    const Element *q, *k, *v;
    Element* o;
    float rate;
};

void powers(float rate, const Workspace& own) {
    for (Index step = 0; step < CHUNK; ++step) {
        own.since[step] = std::exp(-rate * static_cast<float>(step + 1));
        for (Index row = step; row < CHUNK; ++row) {
            own.within[row * chunks::kScores + row - step] = step == 0 ? 1.0f : own.since[step - 1];
        }
    }
}

// All steps of a block of columns.
void attend(const Head& head, const Sizes& sizes, const Workspace& own, Index column) {
    const Index columns = std::min<Index>(COLUMNS, sizes.depth - column);
    powers(head.rate, own);
    for (Index start = 0; start < sizes.steps; start += CHUNK) {
        const Index count = std::min<Index>(CHUNK, sizes.steps - start), from = start * sizes.depth;
        chunks::read_keys(head.q + from, head.k + from, sizes, own, count);
        chunks::form_products(sizes, own, count);
        const Element* values = head.v + from + column;
        for (Index step = 0; step < count; ++step) {
            chunks::read_value(values + step * sizes.depth, columns, 1.0f, sizes, own, step, count);
        }
        chunks::attend(sizes, own, 0, count, head.o + from + column, sizes.depth, columns);
    }
}

}  // namespace

// q, k, v, o [batch, heads, steps, depth], rate[heads]. 1: no memory for a chunk.
extern "C" int linear_attention(const Element* q, const Element* k, const Element* v, const Element* rate, Element* o,
                                std::int64_t batch, std::int64_t heads, std::int64_t steps, std::int64_t depth) {
    const Sizes sizes = chunks::sizes_of(steps, depth, depth, 1);
    const Index blocks = (depth + COLUMNS - 1) / COLUMNS;
    const bool parallel = batch * heads * steps * depth * depth >= kParallelWork;
    const auto run = [&](Index task, float* memory) {
        const Index head = task / blocks, from = head * steps * depth;
        attend({q + from, k + from, v + from, o + from, vec::to_float(rate[head % heads])}, sizes,
               chunks::place(memory, sizes), task % blocks * COLUMNS);
    };
    return tasks::for_each(batch * heads * blocks, chunks::workspace_floats(sizes), parallel, run);
}
