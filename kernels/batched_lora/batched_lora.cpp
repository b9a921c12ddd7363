// Low-rank adapters in a batch: y[t] = x[t] down[a] up[a] with a = adapter[t], accumulated in float32. In a
// mixture (Li et al. 2024, arXiv:2404.15159), y[t] is the sum over several adapters of each token, with a
// weight each.
//
// 1. Each token has factors of its own, so no single product covers the batch. Gathering them first, as
//    composed operators do, copies the factors of every token; here they are read where they lie.
// 2. GROUP tokens of one adapter go through its factors together (Chen et al. 2023, arXiv:2310.18547), so
//    that a vector of weights is loaded and widened once for all of them. It pays where adapters are fewer
//    than tokens.
// 3. The product with `down` has few columns: its sums are kept for UNROLL rows of weights in turn, so that
//    additions are not one chain. That with `up` has UNROLL vectors of columns in registers.
// 4. In a mixture, tokens of kTokens at a time are grouped, and each tile of their columns is one task, which
//    adds up what all groups contribute to it in its cache: tokens are in several groups, and need no
//    atomics.
//
// Few tokens are bound by the bandwidth of the factors. Groups are shared among threads, and tiles of their
// columns.

#include <algorithm>
#include <atomic>

#include "../store_rows.hpp"
#include "../vector.hpp"

using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

namespace {

constexpr Index kTile = 256;                   // columns of y; a multiple of UNROLL vectors
constexpr Index kTokens = 64;                  // of a mixture, whose tile of y stays in the L2 cache
constexpr Index kParallelProducts = 1 << 15;  // below, starting the threads takes longer than the work

struct Sizes {
    Index depth, rank, cols;
    Index padded;  // the rank in whole vectors
};

// Tokens of one adapter.
struct Group {
    Index adapter, first, count;  // `first` in the order of adapters
};

inline Floats load(const Element* from, Index count) {
    return count >= LANES ? vec::load(from) : vec::load_some(from, count, 0.0f);
}

// x[Rows][depth] down[depth, rank] -> hidden[Rows, padded].
template <int Rows>
inline void shrink(const Element* const (&x)[Rows], const Element* down, const Sizes& sizes, float* hidden) {
    for (Index at = 0; at < sizes.rank; at += LANES) {
        const Index rest = sizes.rank - at;
        Floats sums[Rows][UNROLL] = {};
        Index k = 0;
        for (; k + UNROLL <= sizes.depth; k += UNROLL) {
#pragma GCC unroll 4
            for (int u = 0; u < UNROLL; ++u) {
                const Floats weights = load(down + (k + u) * sizes.rank + at, rest);
#pragma GCC unroll 4
                for (int row = 0; row < Rows; ++row) sums[row][u] += vec::splat(vec::to_float(x[row][k + u])) * weights;
            }
        }
        for (; k < sizes.depth; ++k) {
            const Floats weights = load(down + k * sizes.rank + at, rest);
            for (int row = 0; row < Rows; ++row) sums[row][0] += vec::splat(vec::to_float(x[row][k])) * weights;
        }
        for (int row = 0; row < Rows; ++row) {
            for (int u = 1; u < UNROLL; ++u) sums[row][0] += sums[row][u];
            vec::store_raw(hidden + row * sizes.padded + at, sums[row][0]);
        }
    }
}

// hidden[Rows, rank] up[rank, cols], Vectors vectors of columns, or the last `count` of them: put(row, col,
// count, sums).
template <int Rows, int Vectors, bool Whole, class Put>
inline void expand_columns(const float* hidden, const Element* up, const Sizes& sizes, Index col, Index count, Put put) {
    Floats sums[Rows][Vectors] = {};
    for (Index r = 0; r < sizes.rank; ++r) {
        Floats weights[Vectors];
#pragma GCC unroll 4
        for (int vector = 0; vector < Vectors; ++vector) {
            const Element* from = up + r * sizes.cols + col + vector * LANES;
            weights[vector] = Whole ? vec::load(from) : vec::load_some(from, count, 0.0f);
        }
#pragma GCC unroll 4
        for (int row = 0; row < Rows; ++row) {
            const Floats factor = vec::splat(hidden[row * sizes.padded + r]);
#pragma GCC unroll 4
            for (int vector = 0; vector < Vectors; ++vector) sums[row][vector] += factor * weights[vector];
        }
    }
    for (int row = 0; row < Rows; ++row) {
        for (int vector = 0; vector < Vectors; ++vector) {
            put(row, col + vector * LANES, Whole ? LANES : count, sums[row][vector]);
        }
    }
}

template <int Rows, class Put>
inline void expand(const float* hidden, const Element* up, const Sizes& sizes, Index begin, Index end, Put put) {
    Index col = begin;
    for (; col + UNROLL * LANES <= end; col += UNROLL * LANES) {
        expand_columns<Rows, UNROLL, true>(hidden, up, sizes, col, 0, put);
    }
    for (; col + LANES <= end; col += LANES) expand_columns<Rows, 1, true>(hidden, up, sizes, col, 0, put);
    if (col < end) expand_columns<Rows, 1, false>(hidden, up, sizes, col, end - col, put);
}

// Calls body(std::integral_constant<int, rows>, row in the group) until all tokens of a group had their turn.
template <class Body>
inline void by_rows(Index count, Body body) {
    Index row = 0;
    for (; row + GROUP <= count; row += GROUP) body(std::integral_constant<int, GROUP>{}, row);
    for (; row < count; ++row) body(std::integral_constant<int, 1>{}, row);
}

// Orders the tokens by adapter and cuts them into groups; the number of groups. Without GROUP each token is
// one.
inline Index group_tokens(const std::int64_t* adapter, Index tokens, Index adapters, Index* order, Index* place,
                          Group* groups) {
    if (GROUP == 1) {
        for (Index token = 0; token < tokens; ++token) {
            order[token] = token;
            groups[token] = {static_cast<Index>(adapter[token]), token, 1};
        }
        return tokens;
    }
    std::fill(place, place + adapters + 1, Index{0});
    for (Index token = 0; token < tokens; ++token) ++place[adapter[token] + 1];
    Index count = 0;
    for (Index each = 0; each < adapters; ++each) {
        for (Index done = 0; done < place[each + 1]; done += GROUP) {
            groups[count++] = {each, place[each] + done, std::min<Index>(GROUP, place[each + 1] - done)};
        }
        place[each + 1] += place[each];
    }
    for (Index token = 0; token < tokens; ++token) order[place[adapter[token]]++] = token;
    return count;
}

}  // namespace

// x[tokens, depth] with rows stride_x elements apart, down[adapters, depth, rank], up[adapters, rank, cols],
// adapter[tokens] -> y[tokens, cols]. 1: no memory.
extern "C" int batched_lora(const Element* x, const Element* down, const Element* up, const std::int64_t* adapter,
                            Element* y, std::int64_t tokens, std::int64_t depth, std::int64_t rank, std::int64_t cols,
                            std::int64_t adapters, std::int64_t stride_x) {
    static thread_local vec::Scratch scratch;
    const Sizes sizes{depth, rank, cols, (rank + LANES - 1) / LANES * LANES};
    const auto words = static_cast<std::size_t>(tokens + adapters + 1);
    const auto floats = static_cast<std::size_t>(tokens * sizes.padded + 1);
    auto* memory = static_cast<char*>(scratch.reserve(
        words * sizeof(Index) + static_cast<std::size_t>(tokens) * sizeof(Group) + floats * sizeof(float)));
    if (memory == nullptr) return 1;
    auto* order = reinterpret_cast<Index*>(memory);
    auto* place = order + tokens;
    auto* groups = reinterpret_cast<Group*>(place + adapters + 1);
    auto* hidden = reinterpret_cast<float*>(groups + tokens);  // [tokens, padded], in the order of adapters
    const Index count = group_tokens(adapter, tokens, adapters, order, place, groups);
    const Index tiles = (cols + kTile - 1) / kTile;
#pragma omp parallel if (tokens * rank * (depth + cols) >= kParallelProducts)
    {
#pragma omp for schedule(dynamic)
        for (Index i = 0; i < count; ++i) {
            const Group group = groups[i];
            by_rows(group.count, [&](auto rows, Index row) {
                const Element* from[rows.value];
                for (int each = 0; each < rows.value; ++each) from[each] = x + order[group.first + row + each] * stride_x;
                shrink<rows.value>(from, down + group.adapter * depth * rank, sizes,
                                   hidden + (group.first + row) * sizes.padded);
            });
        }
#pragma omp for schedule(dynamic) collapse(2)
        for (Index i = 0; i < count; ++i) {
            for (Index tile = 0; tile < tiles; ++tile) {
                const Group group = groups[i];
                by_rows(group.count, [&](auto rows, Index row) {
                    Element* to[rows.value];
                    for (int each = 0; each < rows.value; ++each) to[each] = y + order[group.first + row + each] * cols;
                    const auto put = [&](int each, Index col, Index places, Floats sums) {
                        if (places == LANES) return vec::store(to[each] + col, sums);
                        vec::store_some(to[each] + col, places, sums);
                    };
                    expand<rows.value>(hidden + (group.first + row) * sizes.padded, up + group.adapter * rank * cols,
                                       sizes, tile * kTile, std::min(cols, (tile + 1) * kTile), put);
                });
            }
        }
    }
    return 0;
}

// x[tokens, depth] with rows stride_x elements apart, down[adapters, depth, rank], up[adapters, rank, cols],
// adapter and weight [tokens, top_k] -> y[tokens, cols]. 1: no memory.
extern "C" int mixture_lora(const Element* x, const Element* down, const Element* up, const std::int64_t* adapter,
                            const Element* weight, Element* y, std::int64_t tokens, std::int64_t depth,
                            std::int64_t rank, std::int64_t cols, std::int64_t adapters, std::int64_t top_k,
                            std::int64_t stride_x) {
    static thread_local vec::Scratch scratch;
    const Sizes sizes{depth, rank, cols, (rank + LANES - 1) / LANES * LANES};
    const Index uses = tokens * top_k, blocks = (tokens + kTokens - 1) / kTokens;
    const auto words = static_cast<std::size_t>(uses + adapters + 1 + blocks + 1);
    const auto floats = static_cast<std::size_t>(uses * sizes.padded + 1);
    auto* memory = static_cast<char*>(scratch.reserve(
        words * sizeof(Index) + static_cast<std::size_t>(uses) * sizeof(Group) + floats * sizeof(float)));
    if (memory == nullptr) return 1;
    auto* order = reinterpret_cast<Index*>(memory);
    auto* place = order + uses;
    auto* first = place + adapters + 1;  // [blocks + 1], groups of each block of tokens
    auto* groups = reinterpret_cast<Group*>(first + blocks + 1);
    auto* hidden = reinterpret_cast<float*>(groups + uses);  // [uses, padded], in the order of blocks and adapters
    first[0] = 0;
    for (Index block = 0; block < blocks; ++block) {
        const Index begin = block * kTokens * top_k, count = std::min(uses - begin, kTokens * top_k);
        first[block + 1] = first[block] + group_tokens(adapter + begin, count, adapters, order + begin, place,
                                                       groups + first[block]);
        for (Index i = first[block]; i < first[block + 1]; ++i) groups[i].first += begin;
        for (Index use = begin; use < begin + count; ++use) order[use] += begin;
    }
    const Index tiles = (cols + kTile - 1) / kTile, width = std::min(kTile, (cols + LANES - 1) / LANES * LANES);
    std::atomic<int> failed{0};
#pragma omp parallel if (uses * rank * (depth + cols) >= kParallelProducts)
    {
        static thread_local vec::Scratch own;
        auto* sums = static_cast<float*>(own.reserve(static_cast<std::size_t>(kTokens * kTile) * sizeof(float)));
        if (sums == nullptr) failed = 1;
#pragma omp for schedule(dynamic)
        for (Index i = 0; i < first[blocks]; ++i) {
            const Group group = groups[i];
            by_rows(group.count, [&](auto rows, Index row) {
                const Element* from[rows.value];
                const Index* use = order + group.first + row;
                float* to = hidden + (group.first + row) * sizes.padded;
                for (int each = 0; each < rows.value; ++each) from[each] = x + use[each] / top_k * stride_x;
                shrink<rows.value>(from, down + group.adapter * depth * rank, sizes, to);
            });
        }
#pragma omp for schedule(dynamic) collapse(2)
        for (Index block = 0; block < blocks; ++block) {
            for (Index tile = 0; tile < tiles; ++tile) {
                if (sums == nullptr) continue;
                const Index token = block * kTokens, count = std::min(kTokens, tokens - token);
                const Index begin = tile * kTile, end = std::min(cols, begin + kTile);
                std::fill(sums, sums + count * width, 0.0f);
                for (Index i = first[block]; i < first[block + 1]; ++i) {
                    const Group group = groups[i];
                    by_rows(group.count, [&](auto rows, Index row) {
                        const Index* use = order + group.first + row;
                        const auto put = [&](int each, Index col, Index, Floats found) {
                            float* to = sums + (use[each] / top_k - token) * width + col - begin;
                            const Floats factor = vec::splat(vec::to_float(weight[use[each]]));
                            vec::store_raw(to, vec::load_raw<Floats>(to) + factor * found);
                        };
                        expand<rows.value>(hidden + (group.first + row) * sizes.padded,
                                           up + group.adapter * rank * cols, sizes, begin, end, put);
                    });
                }
                store_rows(sums, width, count, end - begin, y + token * cols + begin, cols);
            }
        }
    }
    return failed;
}
