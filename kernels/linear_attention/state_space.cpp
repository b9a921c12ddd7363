// State space with a scalar decay per head: y_t = S_t c_t with S_t = exp(-w_t rate) S_{t-1} + w_t x_t b_t^T, in its dual
// form, linear attention with decays that depend on the step. Dao and Gu 2024, arXiv:2405.21060.
//
// 1. In chunks (chunks.hpp) with c as queries, b as keys and w x as values: matrix products in place of a loop over
//    time. Decays within a chunk are products, row by row: W_i = g_i W_{i-1}. No exponent is a difference of sums,
//    whose rounding would grow with what cancels, and there is one exponential a step.
// 2. All heads have the same b and c. HEADS of them go through time together, and form c b^T once.
//
// Groups of heads, and blocks of COLUMNS columns of x, are shared among threads.

#include "chunks.hpp"

using chunks::Index;
using chunks::Sizes;
using chunks::Workspace;
using vec::Element;

namespace {

constexpr Index kParallelWork = 32768;  // multiply-adds; below, starting the threads takes longer

// Of one sequence, from the first head of a group and the first column of a block on.
struct Part {
    const Element* x;      // [steps, heads, depth]
    const Element* width;  // [steps, heads]
    const Element *b, *c;  // [steps, states]
    const Element* rate;   // [heads]
    Element* y;            // as x
    Index heads, columns;  // of this part
    Index step;            // from a step to the next in x and y
    Index depth;           // from a head to the next
    Index all_heads;
};

// W and w of one head, `width` at its first step in the chunk.
void form_decays(const Part& part, const Element* width, float rate, const Workspace& own, Index count) {
    float since = 1.0f;
    for (Index row = 0; row < count; ++row) {
        const float decay = std::exp(-vec::to_float(width[row * part.all_heads]) * rate);
        float* to = own.within + row * chunks::kScores;
        for (Index step = 0; step < row; step += LANES) {
            vec::store_raw(to + step, chunks::load_floats(to - chunks::kScores + step) * decay);
        }
        std::fill(to + row, to + chunks::kScores, 0.0f);
        to[row] = 1.0f;
        own.since[row] = since *= decay;
    }
}

// All steps of a group of heads and a block of columns.
void scan(const Part& part, const Sizes& sizes, const Workspace& own) {
    for (Index start = 0; start < sizes.steps; start += CHUNK) {
        const Index count = std::min<Index>(CHUNK, sizes.steps - start);
        chunks::read_keys(part.c + start * sizes.depth, part.b + start * sizes.depth, sizes, own, count);
        chunks::form_products(sizes, own, count);
        for (Index head = 0; head < part.heads; ++head) {
            const Element* width = part.width + start * part.all_heads + head;
            form_decays(part, width, vec::to_float(part.rate[head]), own, count);
            const Index from = start * part.step + head * part.depth;
            for (Index step = 0; step < count; ++step) {
                chunks::read_value(part.x + from + step * part.step, part.columns,
                                   vec::to_float(width[step * part.all_heads]), sizes, own, step, count);
            }
            chunks::attend(sizes, own, head, count, part.y + from, part.step, part.columns);
        }
    }
}

}  // namespace

// x[batch, steps, heads, depth], width[batch, steps, heads], b, c [batch, steps, states], rate[heads] -> y as x.
// 1: no memory for a chunk.
extern "C" int state_space(const Element* x, const Element* width, const Element* b, const Element* c,
                           const Element* rate, Element* y, std::int64_t batch, std::int64_t steps, std::int64_t heads,
                           std::int64_t depth, std::int64_t states) {
    const Sizes sizes = chunks::sizes_of(steps, states, depth, HEADS);
    const Index groups = (heads + HEADS - 1) / HEADS, blocks = (depth + COLUMNS - 1) / COLUMNS;
    const bool parallel = batch * heads * steps * depth * states >= kParallelWork;
    const auto run = [&](Index task, float* memory) {
        const Index sequence = task / (groups * blocks) * steps, column = task % blocks * COLUMNS;
        const Index head = task / blocks % groups * HEADS, at = (sequence * heads + head) * depth + column;
        scan({x + at, width + sequence * heads + head, b + sequence * states, c + sequence * states, rate + head,
              y + at, std::min<Index>(HEADS, heads - head), std::min<Index>(COLUMNS, depth - column),
              heads * depth, depth, heads},
             sizes, chunks::place(memory, sizes));
    };
    return tasks::for_each(batch * groups * blocks, chunks::workspace_floats(sizes), parallel, run);
}
