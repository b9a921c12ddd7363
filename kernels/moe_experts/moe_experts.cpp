// Experts of a mixture: y[t] = sum over j of weight[t, j] (silu(x[t] w_gate[e]) * (x[t] w_up[e])) w_down[e]
// with e = expert[t, j], accumulated in float32.
//
// 1. A token that names top_k experts has as many rows in the products. The rows are sorted by expert inside
//    the call, so that GROUP rows of one expert share each load of its weights (Gale et al. 2022,
//    arXiv:2211.15841). Alone, each row would read all weights of its expert.
// 2. A block of weights, 64 rows of 128 columns, is widened to a panel in L2, from which all rows of a tile
//    read it. Strips of fewer columns would read short pieces of many rows, which hardware prefetchers see
//    too late.
// 3. MICRO_ROWS x MICRO_VECTORS vectors of sums stay in registers.
// 4. FUSE: gate and up of a strip meet while both are in L2. Without it both are stored and read again.
// 5. PREFETCH: memory would idle while a block is multiplied, so the next one is asked for meanwhile.
//
// Few tokens are bound by the bandwidth of the weights, many by arithmetic. Threads share strips of columns
// of all experts, so an expert that most tokens name keeps no thread waiting. Results of the experts of one
// token are added in the order in which it names them, so they do not depend on the threads.

#include <algorithm>

#include "../vector.hpp"

using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

namespace {

constexpr Index kCols = Index{LANES} * MICRO_VECTORS;
constexpr Index kTileCols = 128;  // of a strip; whole multiples of kCols
constexpr Index kBlock = 64;      // rows of weights in a panel
static_assert(kTileCols % kCols == 0, "micro-kernels must be whole");
constexpr Index kParallelProducts = 1 << 16;  // below, starting the threads takes longer than the work

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }

// Floats from row to row: whole vectors, and a cache line more, which avoids conflicts.
constexpr Index stride_of(Index cols) { return ceil_div(cols, LANES) * LANES + 16; }

struct Problem {
    const Element* x;
    const std::int64_t* expert;
    const Element* weight;
    const Element* w_gate;
    const Element* w_up;
    const Element* w_down;
    Element* y;
    Index tokens, depth, hidden, experts, top_k;
    Index stride_x;

    Index rows() const { return tokens * top_k; }
};

// Rows of one expert; `first` in the order of experts.
struct Tile {
    Index expert, first, count;
};

// What all threads share; rows are in the order of experts, those of `parts` in the order of tokens.
struct Buffers {
    Index* order;  // [rows], the row that a token's expert has in the order of tokens
    Index* ends;   // [experts + 1]
    Tile* tiles;   // [rows]
    float* x;      // [rows][stride_of(depth)]
    float* gate;   // [rows][stride_of(hidden)], in the end what `down` is multiplied with
    float* up;     // the same, if nothing is fused
    float* parts;  // [rows][stride_of(depth)]

    static std::size_t bytes(const Problem& problem) {
        const Index words = problem.rows() + problem.experts + 1;
        const Index floats = 2 * stride_of(problem.depth) + (FUSE ? 1 : 2) * stride_of(problem.hidden);
        const std::size_t row = sizeof(Tile) + static_cast<std::size_t>(floats) * sizeof(float);
        const std::size_t rows = static_cast<std::size_t>(problem.rows());
        return rows * row + static_cast<std::size_t>(words) * sizeof(Index);
    }
    Buffers(void* memory, const Problem& problem)
        : order(static_cast<Index*>(memory)),
          ends(order + problem.rows()),
          tiles(reinterpret_cast<Tile*>(ends + problem.experts + 1)),
          x(reinterpret_cast<float*>(tiles + problem.rows())),
          gate(x + problem.rows() * stride_of(problem.depth)),
          up(gate + (FUSE ? 0 : problem.rows() * stride_of(problem.hidden))),
          parts(up + problem.rows() * stride_of(problem.hidden)) {}
};

// What one thread works with.
struct Workspace {
    alignas(64) float panel[kBlock * kTileCols];
    alignas(64) float gate[GROUP * kTileCols];
    alignas(64) float up[GROUP * kTileCols];
};

inline Floats load_floats(const float* from) { return vec::load_raw<Floats>(from); }

// totals[Rows][kCols] (+)= x[Rows][depth] panel[depth][kCols], while rows of `next` come nearer. Sums of
// blocks are added up, which rounds less than one sum of all (Higham 2002, section 4.2).
template <Index Rows>
static __attribute__((noinline)) void multiply(const float* panel, Index depth, const float* x, Index stride,
                                               bool first, float* to, const Element* next,
                                               Index next_stride) {
    Floats sums[Rows][MICRO_VECTORS] = {};
    for (Index k = 0; k < depth; ++k) {
        if (PREFETCH) __builtin_prefetch(next + k * next_stride, 0, 2);
        Floats right[MICRO_VECTORS];
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) right[j] = load_floats(panel + k * kCols + j * LANES);
#pragma GCC unroll 16
        for (Index i = 0; i < Rows; ++i) {
            const Floats left = vec::splat(x[i * stride + k]);
#pragma GCC unroll 4
            for (Index j = 0; j < MICRO_VECTORS; ++j) sums[i][j] += left * right[j];
        }
    }
#pragma GCC unroll 16
    for (Index i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
        for (Index j = 0; j < MICRO_VECTORS; ++j) {
            float* total = to + i * kTileCols + j * LANES;
            vec::store_raw(total, first ? sums[i][j] : load_floats(total) + sums[i][j]);
        }
    }
}

// The instance for `rows`, 1 to MICRO_ROWS.
template <Index Rows = MICRO_ROWS, class... Rest>
inline void dispatch(Index rows, Rest... rest) {
    if (rows == Rows) {
        multiply<Rows>(rest...);
    } else if constexpr (Rows > 1) {
        dispatch<Rows - 1>(rows, rest...);
    }
}

// Columns of one expert's weights[depth, cols], from `col` on.
struct Strip {
    const Element* weights;
    Index depth, cols, col;

    Index count() const { return std::min(kTileCols, cols - col); }
    const Element* row(Index k) const { return weights + k * cols + col; }
};

// Rows [k, k + depth) of a strip -> panel[count / kCols][kBlock][kCols], zeros beyond the last column. Row by
// row, because the weights are read in the order in which they lie in memory.
inline void fill_panel(const Strip& strip, Index k, Index depth, float* panel) {
    const Index count = strip.count();
    for (Index step = 0; step < depth; ++step) {
        const Element* row = strip.row(k + step);
        for (Index at = 0; at < count; at += kCols) {
            float* to = panel + at * kBlock + step * kCols;
#pragma GCC unroll 4
            for (Index j = 0; j < kCols; j += LANES) {
                const Index rest = std::clamp<Index>(count - at - j, 0, LANES);
                const Element* from = row + at + j;
                vec::store_raw(to + j, rest == LANES ? vec::load(from) : vec::load_some(from, rest, 0.0f));
            }
        }
    }
}

// x[rows][stride] times the strip -> sums[rows][kTileCols]. `next`: what is multiplied afterwards.
inline void multiply_strip(const Strip& strip, const float* x, Index stride, Index rows, const Element* next,
                           float* panel, float* sums) {
    const Index together = ceil_div(rows, ceil_div(rows, MICRO_ROWS));
    for (Index k = 0; k == 0 || k < strip.depth; k += kBlock) {
        const Index depth = std::min(kBlock, strip.depth - k);
        const Element* ahead = k + kBlock < strip.depth ? strip.row(k + kBlock) : next;
        fill_panel(strip, k, depth, panel);
        for (Index col = 0; col < strip.count(); col += kCols) {
            for (Index row = 0; row < rows; row += together) {
                const float* left = x + row * stride + k;
                dispatch(std::min(together, rows - row), panel + col * kBlock, depth, left, stride, k == 0,
                         sums + row * kTileCols + col, ahead + col, row == 0 ? strip.cols : 0);
            }
        }
    }
}

// silu(gate) * up.
inline Floats activate(Floats gate, Floats up) { return gate * vec::sigmoid(gate) * up; }

// Both products of a tile's rows with columns of w_gate and w_up.
inline void expand(const Problem& problem, const Buffers& buffers, const Tile& tile, Index col,
                   Workspace& workspace) {
    const Index matrix = tile.expert * problem.depth * problem.hidden;
    const Index from = stride_of(problem.depth), to = stride_of(problem.hidden);
    const Strip gate{problem.w_gate + matrix, problem.depth, problem.hidden, col};
    const Strip up{problem.w_up + matrix, problem.depth, problem.hidden, col};
    const float* x = buffers.x + tile.first * from;
    multiply_strip(gate, x, from, tile.count, up.row(0), workspace.panel, workspace.gate);
    multiply_strip(up, x, from, tile.count, up.row(0), workspace.panel, workspace.up);
    for (Index row = 0; row < tile.count; ++row) {
        const Index at = (tile.first + row) * to + col;
        for (Index j = 0; j < gate.count(); j += LANES) {
            const Floats first = load_floats(workspace.gate + row * kTileCols + j);
            const Floats second = load_floats(workspace.up + row * kTileCols + j);
            if (FUSE) {
                vec::store_raw(buffers.gate + at + j, activate(first, second));
            } else {
                vec::store_raw(buffers.gate + at + j, first);
                vec::store_raw(buffers.up + at + j, second);
            }
        }
    }
}

// The product of a tile's rows with columns of w_down, each row to where its token has it.
inline void contract(const Problem& problem, const Buffers& buffers, const Tile& tile, Index col,
                     Workspace& workspace) {
    const Element* weights = problem.w_down + tile.expert * problem.hidden * problem.depth;
    const Strip strip{weights, problem.hidden, problem.depth, col};
    const Index from = stride_of(problem.hidden), to = stride_of(problem.depth);
    multiply_strip(strip, buffers.gate + tile.first * from, from, tile.count, strip.row(0), workspace.panel,
                   workspace.gate);
    for (Index row = 0; row < tile.count; ++row) {
        float* part = buffers.parts + buffers.order[tile.first + row] * to + col;
        for (Index j = 0; j < strip.count(); j += LANES) {
            vec::store_raw(part + j, load_floats(workspace.gate + row * kTileCols + j));
        }
    }
}

// Results of a token's experts, weighted and added.
inline void combine(const Problem& problem, const float* parts, Index token) {
    const Index stride = stride_of(problem.depth);
    const Element* weight = problem.weight + token * problem.top_k;
    Element* y = problem.y + token * problem.depth;
    for (Index col = 0; col < problem.depth; col += LANES) {
        Floats sum{};
        for (Index j = 0; j < problem.top_k; ++j) {
            const float* part = parts + (token * problem.top_k + j) * stride;
            sum += vec::splat(vec::to_float(weight[j])) * load_floats(part + col);
        }
        const Index count = problem.depth - col;
        if (count >= LANES) {
            vec::store(y + col, sum);
        } else {
            vec::store_some(y + col, count, sum);
        }
    }
}

inline void widen_row(const Element* from, Index count, float* to) {
    Index col = 0;
    for (; col + LANES <= count; col += LANES) vec::store_raw(to + col, vec::load(from + col));
    for (; col < count; ++col) to[col] = vec::to_float(from[col]);
}

// Sorts the rows by expert, in the order of tokens within one, and cuts them into tiles; the number of tiles.
inline Index sort_rows(const Problem& problem, const Buffers& buffers) {
    Index* const ends = buffers.ends;
    std::fill(ends, ends + problem.experts + 1, Index{0});
    for (Index row = 0; row < problem.rows(); ++row) ++ends[problem.expert[row] + 1];
    Index count = 0;
    for (Index each = 0; each < problem.experts; ++each) {
        const Index mine = ends[each + 1];
        const Index together = ceil_div(mine, std::max<Index>(ceil_div(mine, GROUP), 1));
        for (Index done = 0; done < mine; done += together) {
            buffers.tiles[count++] = {each, ends[each] + done, std::min(together, mine - done)};
        }
        ends[each + 1] += ends[each];
    }
    for (Index row = 0; row < problem.rows(); ++row) buffers.order[ends[problem.expert[row]]++] = row;
    return count;
}

int compute(const Problem& problem) {
    static thread_local vec::Scratch shared;
    void* memory = shared.reserve(Buffers::bytes(problem));
    if (memory == nullptr) return 1;
    const Buffers buffers(memory, problem);
    const Index tiles = sort_rows(problem, buffers);
    const Index wide = ceil_div(problem.hidden, kTileCols), narrow = ceil_div(problem.depth, kTileCols);
    const Index stride_x = stride_of(problem.depth), stride = stride_of(problem.hidden);
    const Index rows = problem.rows();
    int failed = 0;
#pragma omp parallel if (rows * problem.depth * problem.hidden >= kParallelProducts) reduction(| : failed)
    {
        thread_local vec::Scratch scratch;
        auto* workspace = static_cast<Workspace*>(scratch.reserve(sizeof(Workspace)));
        failed |= workspace == nullptr;
#pragma omp for schedule(static)
        for (Index row = 0; row < rows; ++row) {
            const Index token = buffers.order[row] / problem.top_k;
            widen_row(problem.x + token * problem.stride_x, problem.depth, buffers.x + row * stride_x);
        }
#pragma omp for schedule(dynamic)
        for (Index item = 0; item < tiles * wide; ++item) {
            if (workspace == nullptr) continue;
            expand(problem, buffers, buffers.tiles[item / wide], item % wide * kTileCols, *workspace);
        }
        if (!FUSE) {
#pragma omp for schedule(static)
            for (Index row = 0; row < rows; ++row) {
                for (Index at = row * stride; at < row * stride + problem.hidden; at += LANES) {
                    const Floats gate = load_floats(buffers.gate + at), up = load_floats(buffers.up + at);
                    vec::store_raw(buffers.gate + at, activate(gate, up));
                }
            }
        }
#pragma omp for schedule(dynamic)
        for (Index item = 0; item < tiles * narrow; ++item) {
            if (workspace == nullptr) continue;
            contract(problem, buffers, buffers.tiles[item / narrow], item % narrow * kTileCols, *workspace);
        }
#pragma omp for schedule(static)
        for (Index token = 0; token < problem.tokens; ++token) combine(problem, buffers.parts, token);
    }
    return failed;
}

}  // namespace

// x[tokens, depth] with rows stride_x elements apart, expert and weight[tokens, top_k], w_gate and
// w_up[experts, depth, hidden], w_down[experts, hidden, depth] -> y[tokens, depth]. 1: no memory.
extern "C" int moe_experts(const Element* x, const std::int64_t* expert, const Element* weight,
                           const Element* w_gate, const Element* w_up, const Element* w_down, Element* y,
                           std::int64_t tokens, std::int64_t depth, std::int64_t hidden,
                           std::int64_t experts, std::int64_t top_k, std::int64_t stride_x) {
    return compute({x, expert, weight, w_gate, w_up, w_down, y, tokens, depth, hidden, experts, top_k,
                    stride_x});
}
