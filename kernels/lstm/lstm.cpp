// One layer of an LSTM over time: gates = pre_t + h_{t-1} r^T, c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g),
// h_t = sigmoid(o) tanh(c_t). What is fused and why: Pöppel et al. 2024, arXiv:2412.07752.
//
// 1. One pass: gates never reach memory. A tile of UNROLL vectors of hidden units has the sums of its four gates in
//    registers, and ends with the new state of those units.
// 2. The recurrent weights are packed once a call, so that a tile reads them in the order in which it multiplies,
//    and stay in the caches from the first step to the last: they are all that a step reads apart from its inputs.
// 3. ROWS sequences go through a tile together, so that a vector of weights is loaded and widened once for them.
// 4. Threads share the sequences: each walks through time on its own. SPLIT shares the units instead, with a barrier
//    a step: a thread's part of the weights may fit a cache that all of them do not, and one sequence is enough.
//
// Short of a cache that holds the weights, their bandwidth is the limit; else the multiplications, and for few units
// the five exponentials of each.

#include <omp.h>

#include <algorithm>

#include "../vector.hpp"

using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

namespace {

constexpr int kGates = 4;  // input, forget, cell, output
constexpr Index kTile = Index{UNROLL} * LANES;
constexpr Index kAlign = 64 / sizeof(float);
constexpr Index kTerms = 64;  // of one partial sum: long sums round more
constexpr Index kParallelProducts = 1 << 16;  // below, starting the threads takes longer than the work

struct Sizes {
    Index steps, batch, hidden;
    Index tiles;  // of units
    Index row;    // floats between rows of a state

    Index state() const { return batch * row; }
    Index weights() const { return tiles * hidden * kGates * kTile; }
};

// Shared by all threads.
struct Workspace {
    float* h[2];       // [batch, row], of this step and of the next
    float* c;          // [batch, row]
    Element* weights;  // [tiles, hidden, kGates, kTile]
};

// What a thread computes.
struct Part {
    Index first_row, end_row, first_tile, end_tile;
};

inline Sizes sizes_of(Index steps, Index batch, Index hidden) {
    const Index tiles = (hidden + kTile - 1) / kTile;
    return {steps, batch, hidden, tiles, (tiles * kTile + kAlign - 1) / kAlign * kAlign};
}

inline Workspace place(void* memory, const Sizes& sizes) {
    auto* floats = static_cast<float*>(memory);
    Workspace shared{{floats, floats + sizes.state()}, floats + 2 * sizes.state(), nullptr};
    shared.weights = reinterpret_cast<Element*>(floats + 3 * sizes.state());
    return shared;
}

inline std::size_t bytes_of(const Sizes& sizes) {
    return static_cast<std::size_t>(3 * sizes.state()) * sizeof(float) +
           static_cast<std::size_t>(sizes.weights()) * sizeof(Element) + 1;
}

// Rows of r to the columns of their tile; units beyond the last have weights of zero.
inline void pack(const Element* r, const Sizes& sizes, Index tile, const Workspace& shared) {
    Element* to = shared.weights + tile * sizes.hidden * kGates * kTile;
    for (Index gate = 0; gate < kGates; ++gate) {
        const Element* from = r + (gate * sizes.hidden + tile * kTile) * sizes.hidden;
        const Index count = std::min(kTile, sizes.hidden - tile * kTile);
        for (Index k = 0; k < sizes.hidden; ++k) {
            Element* columns = to + (k * kGates + gate) * kTile;
            for (Index unit = 0; unit < count; ++unit) columns[unit] = from[unit * sizes.hidden + k];
            for (Index unit = count; unit < kTile; ++unit) columns[unit] = vec::to_element(0.0f);
        }
    }
}

inline void widen(const Element* from, const Sizes& sizes, Index row, float* to) {
    for (Index unit = 0; unit < sizes.hidden; ++unit) {
        to[row * sizes.row + unit] = vec::to_float(from[row * sizes.hidden + unit]);
    }
}

inline Floats load(const Element* from, Index count) {
    return count >= LANES ? vec::load(from) : vec::load_some(from, std::max<Index>(count, 0), 0.0f);
}

inline void store(Element* to, Index count, Floats values) {
    if (count >= LANES) {
        vec::store(to, values);
    } else if (count > 0) {
        vec::store_some(to, count, values);
    }
}

// The exponential of -|x| cannot overflow.
inline Floats sigmoid(Floats x) {
    const Floats one = vec::splat(1.0f);
    const Floats small = vec::exp(-vec::maximum(x, -x));
    return (x >= Floats{} ? one : small) / (one + small);
}

// Right within a rounding of 1, which is what its product with a gate is rounded to.
inline Floats tanh(Floats x) {
    const Floats one = vec::splat(1.0f);
    const Floats small = vec::exp(-2.0f * vec::maximum(x, -x));
    const Floats size = (one - small) / (one + small);
    return x >= Floats{} ? size : -size;
}

// h[Rows] of the step before times a tile's weights, in partial sums of kTerms each.
template <int Rows>
inline void multiply(const Element* weights, const float* state, const Sizes& sizes,
                     Floats (&totals)[Rows][kGates * UNROLL]) {
    for (Index first = 0; first < sizes.hidden; first += kTerms) {
        const Index last = std::min(sizes.hidden, first + kTerms);
        Floats sums[Rows][kGates * UNROLL] = {};
        for (Index k = first; k < last; ++k, weights += kGates * kTile) {
            Floats factors[Rows];
#pragma GCC unroll 8
            for (int each = 0; each < Rows; ++each) factors[each] = vec::splat(state[each * sizes.row + k]);
#pragma GCC unroll 8
            for (int column = 0; column < kGates * UNROLL; ++column) {
                const Floats weight = vec::load(weights + column * LANES);
#pragma GCC unroll 8
                for (int each = 0; each < Rows; ++each) sums[each][column] += factors[each] * weight;
            }
        }
        for (int each = 0; each < Rows; ++each) {
            for (int column = 0; column < kGates * UNROLL; ++column) totals[each][column] += sums[each][column];
        }
    }
}

// One step of Rows sequences and one tile of units; `before` and `after` are h of this step and the next.
template <int Rows>
inline void advance(const Element* pre, const Sizes& sizes, const Workspace& shared, const float* before, float* after,
                    Index row, Index tile, Element* h) {
    Floats totals[Rows][kGates * UNROLL] = {};
    multiply<Rows>(shared.weights + tile * sizes.hidden * kGates * kTile, before + row * sizes.row, sizes, totals);
#pragma GCC unroll 8
    for (int each = 0; each < Rows; ++each) {
        for (int vector = 0; vector < UNROLL; ++vector) {
            const Index at = tile * kTile + vector * LANES, place = (row + each) * sizes.row + at;
            const auto gate = [&](int number) {
                const Element* from = pre + ((row + each) * kGates + number) * sizes.hidden + at;
                return load(from, sizes.hidden - at) + totals[each][number * UNROLL + vector];
            };
            const Floats kept = sigmoid(gate(1)) * vec::load_raw<Floats>(shared.c + place);
            const Floats c = kept + sigmoid(gate(0)) * tanh(gate(2));
            const Floats out = sigmoid(gate(3)) * tanh(c);
            vec::store_raw(shared.c + place, c);
            vec::store_raw(after + place, out);
            store(h + (row + each) * sizes.hidden + at, sizes.hidden - at, out);
        }
    }
}

// A thread's sequences and units from the first step to the last. A tile's weights serve all its sequences.
void walk(const Element* pre, const Sizes& sizes, const Workspace& shared, const Part& part, Element* h) {
    for (Index step = 0; step < sizes.steps; ++step) {
        const float* before = shared.h[step % 2];
        float* after = shared.h[(step + 1) % 2];
        const Element* inputs = pre + step * sizes.batch * kGates * sizes.hidden;
        Element* outputs = h + step * sizes.batch * sizes.hidden;
        for (Index tile = part.first_tile; tile < part.end_tile; ++tile) {
            Index row = part.first_row;
            for (; row + ROWS <= part.end_row; row += ROWS) {
                advance<ROWS>(inputs, sizes, shared, before, after, row, tile, outputs);
            }
            for (; row + 2 <= part.end_row; row += 2) advance<2>(inputs, sizes, shared, before, after, row, tile, outputs);
            for (; row < part.end_row; ++row) advance<1>(inputs, sizes, shared, before, after, row, tile, outputs);
        }
        if (SPLIT) {
#pragma omp barrier
        }
    }
}

// Sequences of one thread, or its tiles of units.
inline Part part_of(const Sizes& sizes, Index thread, Index threads) {
    const auto begin = [&](Index count) { return count * thread / threads; };
    const auto end = [&](Index count) { return count * (thread + 1) / threads; };
    if (SPLIT) return {0, sizes.batch, begin(sizes.tiles), end(sizes.tiles)};
    return {begin(sizes.batch), end(sizes.batch), 0, sizes.tiles};
}

}  // namespace

// pre[steps, batch, 4 hidden], r[4 hidden, hidden], h0, c0 [batch, hidden] -> h[steps, batch, hidden], c as c0.
// 1: no memory for the packed weights and the states.
extern "C" int lstm(const Element* pre, const Element* r, const Element* h0, const Element* c0, Element* h, Element* c,
                    std::int64_t steps, std::int64_t batch, std::int64_t hidden) {
    static thread_local vec::Scratch scratch;
    const Sizes sizes = sizes_of(steps, batch, hidden);
    void* memory = scratch.reserve(bytes_of(sizes));
    if (memory == nullptr) return 1;
    const Workspace shared = place(memory, sizes);
#pragma omp parallel if (steps * batch * hidden * hidden >= kParallelProducts)
    {
#pragma omp for schedule(static) nowait
        for (Index tile = 0; tile < sizes.tiles; ++tile) pack(r, sizes, tile, shared);
#pragma omp for schedule(static)
        for (Index row = 0; row < sizes.batch; ++row) {
            widen(h0, sizes, row, shared.h[0]);
            widen(c0, sizes, row, shared.c);
        }
        walk(pre, sizes, shared, part_of(sizes, omp_get_thread_num(), omp_get_num_threads()), h);
#pragma omp barrier
#pragma omp for schedule(static)
        for (Index row = 0; row < sizes.batch; ++row) {
            for (Index unit = 0; unit < hidden; ++unit) {
                c[row * hidden + unit] = vec::to_element(shared.c[row * sizes.row + unit]);
            }
        }
    }
    return 0;
}
