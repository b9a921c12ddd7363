// A recurrent layer over time: products of h_{t-1} with the recurrent weights, then what its cell makes of them and of
// pre_t. What is fused and why: Pöppel et al. 2024, arXiv:2412.07752.
//
// 1. One pass: gates never reach memory. A tile of UNROLL vectors of hidden units has the sums of its gates in
//    registers, and ends with the new state of those units.
// 2. The recurrent weights are packed once a call, so that a tile reads them in the order in which it multiplies,
//    and stay in the caches from the first step to the last: they are all that a step reads apart from its inputs.
// 3. ROWS sequences go through a tile together, so that a vector of weights is loaded and widened once for them.
// 4. Threads share the sequences: each walks through time on its own. SPLIT shares the units instead, with a barrier
//    a step: a thread's part of the weights may fit a cache that all of them do not, and one sequence is enough.
//
// Short of a cache that holds the weights, their bandwidth is the limit; else the multiplications, and for few units
// the exponentials of each.
//
// A cell is a type with `kStates`, the number of states of a unit besides h, and a call
// (const Units&, Floats before, Floats* states) -> h, which updates the states; `before` is h of the step before.
#pragma once

#include <omp.h>

#include <algorithm>

#include "../vector.hpp"

namespace recurrence {

using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

constexpr Index kTile = Index{UNROLL} * LANES;
constexpr Index kAlign = 64 / sizeof(float);
constexpr Index kTerms = 64;  // of one partial sum: long sums round more
constexpr Index kParallelProducts = 1 << 16;  // below, starting the threads takes longer than the work

struct Sizes {
    Index steps, batch, hidden;
    Index tiles;   // of units
    Index row;     // floats between rows of a state
    Index states;  // of a unit, besides h

    Index state() const { return batch * row; }
    Index weights() const { return tiles * hidden * GATES * kTile; }
};

// Shared by all threads.
struct Workspace {
    float* h[2];       // [batch, row], of this step and of the next
    float* states;     // [states, batch, row]
    Element* weights;  // [tiles, hidden, GATES, kTile]
};

// What a thread computes.
struct Part {
    Index first_row, end_row, first_tile, end_tile;
};

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

// A vector of units of one sequence, for its cell.
struct Units {
    const Element* pre;      // the sequence's, of this step: [GATES, hidden]
    const Floats* products;  // of the first gate; UNROLL further on, that of the next one
    Index hidden, at;

    Floats input(int gate) const { return load(pre + gate * hidden + at, hidden - at); }
    Floats product(int gate) const { return products[gate * UNROLL]; }
    Floats sum(int gate) const { return input(gate) + product(gate); }
};

inline Sizes sizes_of(Index steps, Index batch, Index hidden, Index states) {
    const Index tiles = (hidden + kTile - 1) / kTile;
    return {steps, batch, hidden, tiles, (tiles * kTile + kAlign - 1) / kAlign * kAlign, states};
}

inline Workspace place(void* memory, const Sizes& sizes) {
    auto* floats = static_cast<float*>(memory);
    Workspace shared{{floats, floats + sizes.state()}, floats + 2 * sizes.state(), nullptr};
    shared.weights = reinterpret_cast<Element*>(shared.states + sizes.states * sizes.state());
    return shared;
}

inline std::size_t bytes_of(const Sizes& sizes) {
    return static_cast<std::size_t>((2 + sizes.states) * sizes.state()) * sizeof(float) +
           static_cast<std::size_t>(sizes.weights()) * sizeof(Element) + 1;
}

// Rows of r to the columns of their tile; units beyond the last have weights of zero.
inline void pack(const Element* r, const Sizes& sizes, Index tile, const Workspace& shared) {
    Element* to = shared.weights + tile * sizes.hidden * GATES * kTile;
    for (Index gate = 0; gate < GATES; ++gate) {
        const Element* from = r + (gate * sizes.hidden + tile * kTile) * sizes.hidden;
        const Index count = std::min(kTile, sizes.hidden - tile * kTile);
        for (Index k = 0; k < sizes.hidden; ++k) {
            Element* columns = to + (k * GATES + gate) * kTile;
            for (Index unit = 0; unit < count; ++unit) columns[unit] = from[unit * sizes.hidden + k];
            for (Index unit = count; unit < kTile; ++unit) columns[unit] = vec::to_element(0.0f);
        }
    }
}

// h[Rows] of the step before times a tile's weights, in partial sums of kTerms each.
template <int Rows>
inline void multiply(const Element* weights, const float* state, const Sizes& sizes,
                     Floats (&totals)[Rows][GATES * UNROLL]) {
    for (Index first = 0; first < sizes.hidden; first += kTerms) {
        const Index last = std::min(sizes.hidden, first + kTerms);
        Floats sums[Rows][GATES * UNROLL] = {};
        for (Index k = first; k < last; ++k, weights += GATES * kTile) {
            Floats factors[Rows];
#pragma GCC unroll 8
            for (int each = 0; each < Rows; ++each) factors[each] = vec::splat(state[each * sizes.row + k]);
#pragma GCC unroll 8
            for (int column = 0; column < GATES * UNROLL; ++column) {
                const Floats weight = vec::load(weights + column * LANES);
#pragma GCC unroll 8
                for (int each = 0; each < Rows; ++each) sums[each][column] += factors[each] * weight;
            }
        }
        for (int each = 0; each < Rows; ++each) {
            for (int column = 0; column < GATES * UNROLL; ++column) totals[each][column] += sums[each][column];
        }
    }
}

// One step of Rows sequences and one tile of units; `before` and `after` are h of this step and the next.
template <int Rows, class Cell>
inline void advance(const Cell& cell, const Element* pre, const Sizes& sizes, const Workspace& shared,
                    const float* before, float* after, Index row, Index tile, Element* h) {
    Floats totals[Rows][GATES * UNROLL] = {};
    multiply<Rows>(shared.weights + tile * sizes.hidden * GATES * kTile, before + row * sizes.row, sizes, totals);
#pragma GCC unroll 8
    for (int each = 0; each < Rows; ++each) {
        for (int vector = 0; vector < UNROLL; ++vector) {
            const Index at = tile * kTile + vector * LANES, place = (row + each) * sizes.row + at;
            const Element* inputs = pre + (row + each) * GATES * sizes.hidden;
            Floats states[Cell::kStates + 1];
            for (int state = 0; state < Cell::kStates; ++state) {
                states[state] = vec::load_raw<Floats>(shared.states + state * sizes.state() + place);
            }
            const Floats old = vec::load_raw<Floats>(before + place);
            const Floats out = cell(Units{inputs, totals[each] + vector, sizes.hidden, at}, old, states);
            for (int state = 0; state < Cell::kStates; ++state) {
                vec::store_raw(shared.states + state * sizes.state() + place, states[state]);
            }
            vec::store_raw(after + place, out);
            store(h + (row + each) * sizes.hidden + at, sizes.hidden - at, out);
        }
    }
}

// A thread's sequences and units from the first step to the last. A tile's weights serve all its sequences.
template <class Cell>
void walk(const Cell& cell, const Element* pre, const Sizes& sizes, const Workspace& shared, const Part& part, Element* h) {
    for (Index step = 0; step < sizes.steps; ++step) {
        const float* before = shared.h[step % 2];
        float* after = shared.h[(step + 1) % 2];
        const Element* inputs = pre + step * sizes.batch * GATES * sizes.hidden;
        Element* outputs = h + step * sizes.batch * sizes.hidden;
        for (Index tile = part.first_tile; tile < part.end_tile; ++tile) {
            Index row = part.first_row;
            for (; row + ROWS <= part.end_row; row += ROWS) {
                advance<ROWS>(cell, inputs, sizes, shared, before, after, row, tile, outputs);
            }
            for (; row + 2 <= part.end_row; row += 2) {
                advance<2>(cell, inputs, sizes, shared, before, after, row, tile, outputs);
            }
            for (; row < part.end_row; ++row) {
                advance<1>(cell, inputs, sizes, shared, before, after, row, tile, outputs);
            }
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

// A state's row of floats from the elements of [batch, hidden], and back.
inline void widen(const Element* from, const Sizes& sizes, Index row, float* to) {
    for (Index unit = 0; unit < sizes.hidden; ++unit) {
        to[row * sizes.row + unit] = vec::to_float(from[row * sizes.hidden + unit]);
    }
}

inline void narrow(const float* from, const Sizes& sizes, Index row, Element* to) {
    for (Index unit = 0; unit < sizes.hidden; ++unit) {
        to[row * sizes.hidden + unit] = vec::to_element(from[row * sizes.row + unit]);
    }
}

// pre[steps, batch, GATES hidden], r[GATES hidden, hidden] -> h[steps, batch, hidden]. begin(sizes, shared, row)
// writes the row's first h and states, end(sizes, shared, row) reads its last states. 1: no memory.
template <class Cell, class Begin, class End>
int run(const Cell& cell, const Element* pre, const Element* r, Element* h, Index steps, Index batch, Index hidden,
        Begin begin, End end) {
    static thread_local vec::Scratch scratch;
    const Sizes sizes = sizes_of(steps, batch, hidden, Cell::kStates);
    void* memory = scratch.reserve(bytes_of(sizes));
    if (memory == nullptr) return 1;
    const Workspace shared = place(memory, sizes);
#pragma omp parallel if (steps * batch * hidden * hidden >= kParallelProducts)
    {
#pragma omp for schedule(static) nowait
        for (Index tile = 0; tile < sizes.tiles; ++tile) pack(r, sizes, tile, shared);
#pragma omp for schedule(static)
        for (Index row = 0; row < sizes.batch; ++row) begin(sizes, shared, row);
        walk(cell, pre, sizes, shared, part_of(sizes, omp_get_thread_num(), omp_get_num_threads()), h);
#pragma omp barrier
#pragma omp for schedule(static)
        for (Index row = 0; row < sizes.batch; ++row) end(sizes, shared, row);
    }
    return 0;
}

}  // namespace recurrence
