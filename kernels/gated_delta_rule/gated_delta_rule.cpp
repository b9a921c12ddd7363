// The gated delta rule (Yang et al. 2024, arXiv:2412.06464): S_t = a_t S_{t-1} + k_t u_t^T, o_t = S_t^T q_t, where
// u_t = b_t (v_t - a_t S_{t-1}^T k_t), a_t = exp(-rate_t), b_t = sigmoid(write_t).
//
// 1. In chunks of CHUNK steps (Yang et al. 2024, arXiv:2406.06484). With d_ij the product of the decays after step j up
//    to step i and S the state before the chunk, its updates solve a triangular system:
//    u_i + b_i sum_{j<i} d_ij (k_i k_j) u_j = b_i (v_i - d_i0 S^T k_i). Then o_i = d_i0 S^T q_i + sum_{j<=i} d_ij (q_i
//    k_j) u_j, and the state takes all updates in one product. With CHUNK = 1 this is the loop over time, which
//    reads and writes the whole state in every step. Time is linear in the number of steps.
// 2. All products use one micro-kernel, as in BLIS: MICRO_ROWS rows by MICRO_VECTORS vectors of sums stay in registers.
//    The system is solved by forward substitution, MICRO_ROWS rows at a time, so that most of it is products too.
//
// Decays are products of what each step leaves, never quotients or differences of sums, so that a step that forgets
// everything costs later ones no digits. Heads are shared among threads, and so are blocks of COLUMNS columns of v,
// whose states are independent; blocks of one head form the same scores.

#include <algorithm>

#include "../micro_kernel.hpp"
#include "../store_rows.hpp"
#include "../tasks.hpp"

using micro::kColumns;
using micro::load_floats;
using micro::multiply;
using micro::round_up;
using micro::widen;
using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

namespace {

constexpr Index kParallelWork = 32768;  // multiply-adds; below, starting the threads takes longer
constexpr Index kChunk = CHUNK;
constexpr Index kRows = round_up(kChunk, MICRO_ROWS);
constexpr Index kScores = round_up(kChunk, kColumns);

struct Sizes {
    Index steps, depth, values;
    Index rows;   // depth, padded to whole micro-kernels as rows
    Index width;  // columns of v in a block, padded
};

// One head's tensors: q, k [steps, depth], v, o [steps, values], rate, write [steps].
struct Head {
    const Element *q, *k, *v, *rate, *write;
    Element* o;
};

// Of one thread, all in float32; rows of steps beyond the chunk are zero.
struct Workspace {
    float* q;       // [kRows, rows]
    float* k;       // [kRows, rows]
    float* keys;    // [rows, kScores]: k transposed
    float* decays;  // [kRows, kScores]: d_ij for j <= i, 0 above
    float* system;  // [kRows, kScores]: what is below the diagonal, negated
    float* scores;  // [kRows, kScores]
    float* u;       // [kRows, width]
    float* o;       // [kRows, width]
    float* state;   // [rows, width]
    float* since;   // [kRows]: d_i0, with the decay of the first step
    float* share;   // [kRows]: b_i
};

inline std::size_t workspace_floats(const Sizes& sizes) {
    return static_cast<std::size_t>(2 * kRows * sizes.rows + sizes.rows * kScores + 3 * kRows * kScores +
                                    2 * kRows * sizes.width + sizes.rows * sizes.width + 2 * kRows);
}

inline Workspace place(float* memory, const Sizes& sizes) {
    Workspace own{};
    own.q = memory;
    own.k = own.q + kRows * sizes.rows;
    own.keys = own.k + kRows * sizes.rows;
    own.decays = own.keys + sizes.rows * kScores;
    own.system = own.decays + kRows * kScores;
    own.scores = own.system + kRows * kScores;
    own.u = own.scores + kRows * kScores;
    own.o = own.u + kRows * sizes.width;
    own.state = own.o + kRows * sizes.width;
    own.since = own.state + sizes.rows * sizes.width;
    own.share = own.since + kRows;
    return own;
}

inline void scale(float* row, Index width, float factor) {
    for (Index at = 0; at < width; at += LANES) vec::store_raw(row + at, load_floats(row + at) * factor);
}

// The chunk's inputs in float32, v as u. Columns beyond the depth stay zero, as `attend` left them.
inline void read(const Head& head, const Sizes& sizes, const Workspace& own, Index start, Index count, Index column,
                 Index columns) {
    if (count < kChunk) std::fill(own.q, own.decays, 0.0f);
    for (Index step = 0; step < count; ++step) {
        const Index from = start + step;
        widen(head.q + from * sizes.depth, own.q + step * sizes.rows, sizes.depth);
        widen(head.k + from * sizes.depth, own.k + step * sizes.rows, sizes.depth);
        widen(head.v + from * sizes.values + column, own.u + step * sizes.width, columns);
        for (Index at = 0; at < sizes.depth; ++at) {
            own.keys[at * kScores + step] = own.k[step * sizes.rows + at];
        }
    }
}

inline void find_decays(const Head& head, const Workspace& own, Index start, Index count) {
    std::fill(own.decays, own.decays + kRows * kScores, 0.0f);
    std::fill(own.since, own.share + kRows, 0.0f);
    for (Index step = 0; step < count; ++step) {
        const float decay = std::exp(-vec::to_float(head.rate[start + step]));
        float* row = own.decays + step * kScores;
        for (Index at = 0; step > 0 && at < kScores; at += LANES) {
            vec::store_raw(row + at, load_floats(row - kScores + at) * decay);
        }
        row[step] = 1.0f;
        own.since[step] = decay * (step > 0 ? own.since[step - 1] : 1.0f);
        own.share[step] = 1.0f / (1.0f + std::exp(-vec::to_float(head.write[start + step])));
    }
}

// to = rows of q or k times k^T, decayed; MICRO_ROWS rows need the keys up to their own.
inline void score(const Sizes& sizes, const Workspace& own, Index count, const float* rows, float* to) {
    for (Index row = 0; row < count; row += MICRO_ROWS) {
        for (Index step = 0; step < std::min(count, row + MICRO_ROWS); step += kColumns) {
            multiply<false>(rows + row * sizes.rows, sizes.rows, own.keys + step, kScores, to + row * kScores + step,
                            kScores, sizes.depth);
        }
        for (Index each = row * kScores; each < (row + MICRO_ROWS) * kScores; each += LANES) {
            const Floats decays = load_floats(own.decays + each);
            // What is above the diagonal was not computed.
            vec::store_raw(to + each, decays != Floats{} ? load_floats(to + each) * decays : Floats{});
        }
    }
}

// to[rows] = rows of q or k times the state before the chunk, decayed.
inline void look_up(const Sizes& sizes, const Workspace& own, Index count, const float* rows, float* to) {
    for (Index row = 0; row < count; row += MICRO_ROWS) {
        for (Index column = 0; column < sizes.width; column += kColumns) {
            multiply<false>(rows + row * sizes.rows, sizes.rows, own.state + column, sizes.width,
                            to + row * sizes.width + column, sizes.width, sizes.depth);
        }
    }
    for (Index row = 0; row < count; ++row) scale(to + row * sizes.width, sizes.width, own.since[row]);
}

// v, in u, becomes the updates: the right side, then forward substitution.
inline void solve(const Sizes& sizes, const Workspace& own, Index count) {
    for (Index row = 0; row < count; ++row) {
        scale(own.system + row * kScores, kScores, -own.share[row]);
        const Floats share = vec::splat(own.share[row]);
        float* u = own.u + row * sizes.width;
        const float* known = own.o + row * sizes.width;
        for (Index at = 0; at < sizes.width; at += LANES) {
            vec::store_raw(u + at, (load_floats(u + at) - load_floats(known + at)) * share);
        }
    }
    for (Index first = 0; first < count; first += MICRO_ROWS) {
        for (Index column = 0; first > 0 && column < sizes.width; column += kColumns) {
            multiply<true>(own.system + first * kScores, kScores, own.u + column, sizes.width,
                           own.u + first * sizes.width + column, sizes.width, first);
        }
        for (Index row = first + 1; row < std::min(count, first + MICRO_ROWS); ++row) {
            for (Index other = first; other < row; ++other) {
                const Floats factor = vec::splat(own.system[row * kScores + other]);
                for (Index at = 0; at < sizes.width; at += LANES) {
                    float* to = own.u + row * sizes.width + at;
                    vec::store_raw(to, load_floats(to) + factor * load_floats(own.u + other * sizes.width + at));
                }
            }
        }
    }
}

// o += scores u.
inline void add_updates(const Sizes& sizes, const Workspace& own, Index count) {
    for (Index row = 0; row < count; row += MICRO_ROWS) {
        for (Index column = 0; column < sizes.width; column += kColumns) {
            multiply<true>(own.scores + row * kScores, kScores, own.u + column, sizes.width,
                           own.o + row * sizes.width + column, sizes.width, std::min(count, row + MICRO_ROWS));
        }
    }
}

// The state decays to the end of the chunk and takes its updates, which decay too.
inline void remember(const Sizes& sizes, const Workspace& own, Index count) {
    for (Index step = 0; step < count; ++step) {
        const float decay = own.decays[(count - 1) * kScores + step];
        for (Index at = 0; at < sizes.depth; ++at) own.k[step * sizes.rows + at] *= decay;
    }
    for (Index row = 0; row < sizes.rows; ++row) scale(own.state + row * sizes.width, sizes.width, own.since[count - 1]);
    for (Index row = 0; row < sizes.rows; row += MICRO_ROWS) {
        for (Index column = 0; column < sizes.width; column += kColumns) {
            multiply<true, true>(own.k + row, sizes.rows, own.u + column, sizes.width,
                                 own.state + row * sizes.width + column, sizes.width, count);
        }
    }
}

// All steps of a block of columns.
void attend(const Head& head, const Sizes& sizes, const Workspace& own, Index column) {
    const Index columns = std::min<Index>(COLUMNS, sizes.values - column);
    std::fill(own.q, own.since, 0.0f);
    for (Index start = 0; start < sizes.steps; start += kChunk) {
        const Index count = std::min(kChunk, sizes.steps - start);
        read(head, sizes, own, start, count, column, columns);
        find_decays(head, own, start, count);
        score(sizes, own, count, own.k, own.system);
        score(sizes, own, count, own.q, own.scores);
        look_up(sizes, own, count, own.k, own.o);
        solve(sizes, own, count);
        look_up(sizes, own, count, own.q, own.o);
        add_updates(sizes, own, count);
        remember(sizes, own, count);
        store_rows(own.o, sizes.width, count, columns, head.o + start * sizes.values + column, sizes.values);
    }
}

}  // namespace

// q, k [batch, heads, steps, depth], v, o [batch, heads, steps, values], rate, write [batch, heads, steps]. 1: no memory.
extern "C" int gated_delta_rule(const Element* q, const Element* k, const Element* v, const Element* rate,
                                const Element* write, Element* o, std::int64_t batch, std::int64_t heads,
                                std::int64_t steps, std::int64_t depth, std::int64_t values) {
    const Index columns = std::min<Index>(COLUMNS, std::max<std::int64_t>(values, 1));
    const Sizes sizes{steps, depth, values, round_up(std::max<std::int64_t>(depth, 1), MICRO_ROWS),
                      round_up(columns, kColumns)};
    const Index blocks = (values + COLUMNS - 1) / COLUMNS;
    const bool parallel = batch * heads * steps * depth * values >= kParallelWork;
    const auto run = [&](Index task, float* memory) {
        const Index number = task / blocks, step = number * steps;
        const Head head{q + step * depth, k + step * depth, v + step * values, rate + step, write + step,
                        o + step * values};
        attend(head, sizes, place(memory, sizes), task % blocks * COLUMNS);
    };
    return tasks::for_each(batch * heads * blocks, workspace_floats(sizes), parallel, run);
}
