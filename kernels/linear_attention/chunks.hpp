// Causal linear attention in chunks of CHUNK steps: o_t = q_t S_t with S_t = g_t S_{t-1} + k_t v_t^T, for decays g_t of
// one head. Yang et al. 2024, arXiv:2312.06635; Dao and Gu 2024, arXiv:2405.21060.
//
// 1. Within a chunk the scores q k^T are decayed, masked and multiplied by v; what lies before the chunk comes from the
//    state: o = (q k^T W) v + w q S, where W_ij is the product of the decays after step j up to step i and w_i that of
//    all up to step i; then S = w_n S + k^T (W_nj v). With CHUNK = 1 this is the loop over time, which reads and writes
//    the whole state in every step; longer chunks read it once for all their steps, and form more scores. Time is
//    linear in the number of steps.
// 2. All products use one micro-kernel, as in BLIS: MICRO_ROWS rows by MICRO_VECTORS vectors of sums stay in registers.
// 3. SKIP leaves out the scores above the diagonal, in whole groups of rows.
//
// Every decay is at most 1, so nothing overflows that the loop would not.
#pragma once

#include <algorithm>

#include "../micro_kernel.hpp"
#include "../store_rows.hpp"
#include "../tasks.hpp"

namespace chunks {

using micro::kColumns;
using micro::load_floats;
using micro::multiply;
using micro::round_up;
using micro::widen;
using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

constexpr Index kRows = round_up(CHUNK, MICRO_ROWS);
constexpr Index kScores = round_up(CHUNK, kColumns);

struct Sizes {
    Index steps, depth;
    Index rows;   // depth, padded to whole micro-kernels as rows
    Index width;  // columns of v in a block, padded
    Index heads;  // that share q and k, each with a state
};

// Of one thread, all in float32.
struct Workspace {
    float* q;        // [kRows, rows]
    float* k;        // [rows, kScores], transposed
    float* v;        // [kRows, width]
    float* decayed;  // the same, each step decayed to the end of the chunk
    float* products;  // [kRows, kScores]: q k^T
    float* scores;   // [kRows, kScores]; of one head, in the place of the products
    float* o;        // [kRows, width]
    float* state;    // [heads, rows, width]
    float* within;   // [kRows, kScores]: W, with zeros above the diagonal
    float* since;    // [kRows]: w
};

inline Sizes sizes_of(Index steps, Index depth, Index columns, Index heads) {
    const Index width = round_up(std::min<Index>(COLUMNS, std::max<Index>(columns, 1)), kColumns);
    return {steps, depth, round_up(std::max<Index>(depth, 1), MICRO_ROWS), width, heads};
}

inline std::size_t workspace_floats(const Sizes& sizes) {
    const Index scores = (sizes.heads > 1 ? 3 : 2) * kRows * kScores;
    return static_cast<std::size_t>((kRows + kScores + sizes.heads * sizes.width) * sizes.rows +
                                    3 * kRows * sizes.width + scores + kRows);
}

// With zeros: rows and columns beyond a chunk's stay zero, or finite where a zero is their factor.
inline Workspace place(float* memory, const Sizes& sizes) {
    std::fill(memory, memory + workspace_floats(sizes), 0.0f);
    Workspace own{};
    own.q = memory;
    own.k = own.q + kRows * sizes.rows;
    own.v = own.k + sizes.rows * kScores;
    own.decayed = own.v + kRows * sizes.width;
    own.o = own.decayed + kRows * sizes.width;
    own.state = own.o + kRows * sizes.width;
    own.products = own.state + sizes.heads * sizes.rows * sizes.width;
    own.scores = own.products + (sizes.heads > 1 ? kRows * kScores : 0);
    own.within = own.scores + kRows * kScores;
    own.since = own.within + kRows * kScores;
    return own;
}

// A chunk's q and k, [count, depth] each.
inline void read_keys(const Element* q, const Element* k, const Sizes& sizes, const Workspace& own, Index count) {
    for (Index step = 0; step < count; ++step) {
        widen(q + step * sizes.depth, own.q + step * sizes.rows, sizes.depth);
        for (Index at = 0; at < sizes.depth; ++at) {
            own.k[at * kScores + step] = vec::to_float(k[step * sizes.depth + at]);
        }
    }
}

// One step's v, times `factor`, and the same decayed to the end of a chunk of `count` steps.
inline void read_value(const Element* v, Index columns, float factor, const Sizes& sizes, const Workspace& own,
                       Index step, Index count) {
    float* to = own.v + step * sizes.width;
    widen(v, to, columns, factor);
    const float until = own.within[(count - 1) * kScores + step];
    for (Index at = 0; at < sizes.width; at += LANES) {
        vec::store_raw(own.decayed + step * sizes.width + at, load_floats(to + at) * until);
    }
}

// products = q k^T on and below the diagonal.
inline void form_products(const Sizes& sizes, const Workspace& own, Index count) {
    for (Index row = 0; row < count; row += MICRO_ROWS) {
        const Index end = SKIP ? std::min<Index>(count, row + MICRO_ROWS) : count;
        for (Index step = 0; step < end; step += kColumns) {
            multiply<false>(own.q + row * sizes.rows, sizes.rows, own.k + step, kScores,
                            own.products + row * kScores + step, kScores, sizes.depth);
        }
    }
}

// scores = products W.
inline void decay(const Workspace& own, Index count) {
    for (Index row = 0; row < count; ++row) {
        const Index from = row * kScores;
        for (Index step = 0; step <= row; step += LANES) {
            const Floats products = load_floats(own.products + from + step);
            vec::store_raw(own.scores + from + step, products * load_floats(own.within + from + step));
        }
        std::fill(own.scores + from + row + 1, own.scores + from + kScores, 0.0f);
    }
}

// o = w q S + scores v.
inline void weigh(const Sizes& sizes, const Workspace& own, const float* state, Index count) {
    for (Index row = 0; row < count; row += MICRO_ROWS) {
        const Index end = SKIP ? std::min<Index>(count, row + MICRO_ROWS) : count;
        float* o = own.o + row * sizes.width;
        for (Index column = 0; column < sizes.width; column += kColumns) {
            multiply<false>(own.q + row * sizes.rows, sizes.rows, state + column, sizes.width, o + column, sizes.width,
                            sizes.depth);
        }
        for (Index each = 0; each < MICRO_ROWS; ++each) {
            for (Index at = 0; at < sizes.width; at += LANES) {
                float* to = o + each * sizes.width + at;
                vec::store_raw(to, load_floats(to) * own.since[row + each]);
            }
        }
        for (Index column = 0; column < sizes.width; column += kColumns) {
            multiply<true>(own.scores + row * kScores, kScores, own.v + column, sizes.width, o + column, sizes.width,
                           end);
        }
    }
}

// S = w_n S + k^T decayed.
inline void remember(const Sizes& sizes, const Workspace& own, float* state, Index count) {
    const float all = own.since[count - 1];
    for (Index at = 0; at < sizes.rows * sizes.width; at += LANES) {
        vec::store_raw(state + at, load_floats(state + at) * all);
    }
    for (Index row = 0; row < sizes.rows; row += MICRO_ROWS) {
        for (Index column = 0; column < sizes.width; column += kColumns) {
            multiply<true>(own.k + row * kScores, kScores, own.decayed + column, sizes.width,
                           state + row * sizes.width + column, sizes.width, count);
        }
    }
}

// One head's part of a chunk, once W, w and v are there: the first `columns` of o, rows `stride` apart.
inline void attend(const Sizes& sizes, const Workspace& own, Index head, Index count, Element* o, Index stride,
                   Index columns) {
    float* state = own.state + head * sizes.rows * sizes.width;
    decay(own, count);
    weigh(sizes, own, state, count);
    remember(sizes, own, state, count);
    store_rows(own.o, sizes.width, count, columns, o, stride);
}

}  // namespace chunks
