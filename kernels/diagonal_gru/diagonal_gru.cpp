// GRU with diagonal recurrent weights: r, z = sigmoid(pre + weight h), n = tanh(pre + weight (r h)), and
// h_t = f_t(h_{t-1}) = n + z (h_{t-1} - n).
//
// 1. The loop over time, a vector of LANES units per step and UNROLL of them together: one step waits for the last one.
// 2. NEWTON solves h_t = f_t(h_{t-1}) for all steps of a window at once (DEER, Lim et al. 2023, arXiv:2309.12252).
//    Given a guess of all h, each iteration evaluates all f_t and their slopes, LANES steps in a vector, and then solves
//    the linear recurrence d_t = r_t + slope_t d_{t-1} of the corrections, r_t = f_t(h_{t-1}) - h_t, which is all
//    that is left in order of time: a multiply-add a step. As the weights are diagonal, so is the Jacobian (ParaRNN,
//    Danieli et al. 2025, arXiv:2510.21450), and each unit is on its own.
//
// Convergence: h_0 is known, so that after k iterations the first k steps are those of the loop bit for bit, whatever
// was guessed (d = 0 leaves h_t = f_t). A window of P steps needs P + 1 evaluations at most; a few, where f_t is nearly
// linear over the corrections. It ends once all |r_t| are a few roundings: then h is a loop in which each step was
// rounded a bit more coarsely. |h| <= max(1, |h_0|), for h_t lies between n and h_{t-1}: iterates are cut off there, and
// slopes at 1, so that nothing overflows on the way.
//
// Newton evaluates each step several times and reads each unit's inputs across rows: it pays if there are too few
// units and sequences to fill vectors. Sequences and units are shared among threads.

#include <algorithm>
#include <atomic>

#include "../vector.hpp"

using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

namespace {

constexpr Index kParallelWork = 8192;  // steps of units; below, starting the threads takes longer than the work
constexpr float kResidual = 0x1p-22f;  // of h, or of 1 if it is smaller
constexpr Index kUnits = NEWTON ? UNROLL : Index{UNROLL} * LANES;  // of a task
constexpr Index kRow = (WINDOW + LANES) / 16 * 16 + 16;  // of a buffer: a window and what is before it

static_assert(WINDOW % LANES == 0);

struct Sizes {
    Index steps, hidden;
};

// Of one sequence.
struct Sequence {
    const Element* pre;  // [steps, 3, hidden]
    const Element* h0;   // [hidden]
    Element* h;          // [steps, hidden]
};

struct Weights {
    Floats reset, update, next;
};

// f(h), and its derivative if `slope` is not null.
inline Floats evaluate(Floats reset, Floats update, Floats next, const Weights& weights, Floats h, Floats* slope) {
    reset = vec::sigmoid(reset + weights.reset * h);
    update = vec::sigmoid(update + weights.update * h);
    next = vec::tanh(next + weights.next * (reset * h));
    if (slope != nullptr) {
        const Floats through_update = (h - next) * update * (1.0f - update) * weights.update;
        const Floats inner = reset * (1.0f + h * (1.0f - reset) * weights.reset) * weights.next;
        *slope = update + through_update + (1.0f - update) * (1.0f - next * next) * inner;
    }
    return next + update * (h - next);
}

// Within [-limit, limit]; NaN stays NaN.
inline Floats cut_off(Floats values, Floats limit) {
    values = vec::maximum(-limit, values);
    return limit < values ? limit : values;
}

// The loop over time, for a task's units.
void loop(const Sequence& sequence, const Element* weight, const Sizes& sizes, Index first) {
    Weights weights[UNROLL];
    Floats h[UNROLL];
    Index counts[UNROLL];
    for (int u = 0; u < UNROLL; ++u) {
        const Index unit = first + u * LANES;
        counts[u] = std::clamp<Index>(sizes.hidden - unit, 0, LANES);
        float of_unit[4][LANES] = {};
        for (Index lane = 0; lane < counts[u]; ++lane) {
            for (Index gate = 0; gate < 3; ++gate) {
                of_unit[gate][lane] = vec::to_float(weight[(unit + lane) * 3 + gate]);
            }
            of_unit[3][lane] = vec::to_float(sequence.h0[unit + lane]);
        }
        const auto vector = [&](int number) { return vec::load_raw<Floats>(of_unit[number]); };
        weights[u] = {vector(0), vector(1), vector(2)};
        h[u] = vector(3);
    }
    const auto advance = [&](Index step, auto read, auto write) {
        const Element* pre = sequence.pre + step * 3 * sizes.hidden + first;
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; ++u) {
            const auto gate = [&](Index number) { return read(pre + number * sizes.hidden + u * LANES, counts[u]); };
            h[u] = evaluate(gate(0), gate(1), gate(2), weights[u], h[u], nullptr);
            write(sequence.h + step * sizes.hidden + first + u * LANES, counts[u], h[u]);
        }
    };
    if (first + kUnits <= sizes.hidden) {
        const auto read = [](const Element* from, Index) { return vec::load(from); };
        const auto write = [](Element* to, Index, Floats values) { vec::store(to, values); };
        for (Index step = 0; step < sizes.steps; ++step) advance(step, read, write);
    } else {
        const auto read = [](const Element* from, Index count) { return vec::load_some(from, count, 0.0f); };
        for (Index step = 0; step < sizes.steps; ++step) advance(step, read, vec::store_some);
    }
}

// A unit's window, one step after the other.
struct Unit {
    float gates[3][kRow];
    float h[kRow];  // h[0] is known; h[t + 1] is the guess after step t
    float value[kRow];
    float slope[kRow];
    float residual[kRow];
    float correction[kRow];  // [t + 1] of step t; [0] is 0
};

// All f and slopes; whether some step is off by more than roundings.
inline bool evaluate_all(Unit& unit, const Weights& weights, Index steps) {
    Floats worst = vec::splat(-1.0f);
    const Floats one = vec::splat(1.0f);
    for (Index at = 0; at < steps; at += LANES) {
        const auto read = [&](const float* from) { return vec::load_raw<Floats>(from + at); };
        const Floats before = read(unit.h);
        Floats slope;
        const Floats value = evaluate(read(unit.gates[0]), read(unit.gates[1]), read(unit.gates[2]), weights, before,
                                      &slope);
        const Floats residual = value - read(unit.h + 1);
        vec::store_raw(unit.value + at, value);
        vec::store_raw(unit.slope + at, cut_off(slope, one));
        vec::store_raw(unit.residual + at, residual);
        const Floats allowed = kResidual * vec::maximum(one, vec::maximum(before, -before));
        worst = vec::maximum(vec::maximum(residual, -residual) - allowed, worst);  // ignores NaN
    }
    return vec::reduce_maximum(worst) > 0.0f;
}

// The corrections of all units, in the order of time.
inline void correct(Unit* units, Index steps) {
    float corrections[UNROLL] = {};
    for (Index step = 0; step < steps; ++step) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) {
            corrections[u] = units[u].residual[step] + units[u].slope[step] * corrections[u];
            units[u].correction[step + 1] = corrections[u];
        }
    }
}

inline void update(Unit& unit, Floats limit, Index steps) {
    for (Index at = 0; at < steps; at += LANES) {
        const auto read = [&](const float* from) { return vec::load_raw<Floats>(from + at); };
        const Floats h = read(unit.value) + read(unit.slope) * read(unit.correction);
        vec::store_raw(unit.h + 1 + at, cut_off(h, limit));
    }
}

// A window of all units of a task, from h[0] on. Steps beyond its end have inputs of zero.
void solve(Unit* units, const Weights* weights, Index steps) {
    Floats limits[UNROLL];
    for (int u = 0; u < UNROLL; ++u) {
        const float first = units[u].h[0];
        limits[u] = vec::splat((std::max(std::fabs(first), 1.0f)) * (1.0f + 0x1p-20f));
        std::fill(units[u].h + 1, units[u].h + steps + 1, first);
        units[u].correction[0] = 0.0f;
    }
    for (Index iteration = 0; iteration <= steps; ++iteration) {
        bool off = false;
        for (int u = 0; u < UNROLL; ++u) off |= evaluate_all(units[u], weights[u], steps);
        if (!off) return;
        correct(units, steps);
        for (int u = 0; u < UNROLL; ++u) update(units[u], limits[u], steps);
    }
}

// The same as `loop`, window after window.
void newton(const Sequence& sequence, const Element* weight, const Sizes& sizes, Index first, Unit* units) {
    const Index count = std::min<Index>(UNROLL, sizes.hidden - first);
    Weights weights[UNROLL] = {};
    for (int u = 0; u < UNROLL; ++u) {
        units[u].h[0] = 0.0f;
        if (u >= count) continue;
        const auto vector = [&](Index gate) { return vec::splat(vec::to_float(weight[(first + u) * 3 + gate])); };
        weights[u] = {vector(0), vector(1), vector(2)};
        units[u].h[0] = vec::to_float(sequence.h0[first + u]);
    }
    for (Index start = 0; start < sizes.steps; start += WINDOW) {
        const Index steps = std::min<Index>(WINDOW, sizes.steps - start);
        const Index padded = (steps + LANES - 1) / LANES * LANES;
        for (Index step = 0; step < padded; ++step) {
            for (Index gate = 0; gate < 3; ++gate) {
                const Element* from = sequence.pre + ((start + step) * 3 + gate) * sizes.hidden + first;
                for (Index u = 0; u < UNROLL; ++u) {
                    units[u].gates[gate][step] = step < steps && u < count ? vec::to_float(from[u]) : 0.0f;
                }
            }
        }
        solve(units, weights, padded);
        for (Index step = 0; step < steps; ++step) {
            Element* to = sequence.h + (start + step) * sizes.hidden + first;
            for (Index u = 0; u < count; ++u) to[u] = vec::to_element(units[u].value[step]);
        }
        for (int u = 0; u < UNROLL; ++u) units[u].h[0] = units[u].value[steps - 1];
    }
}

}  // namespace

// pre[batch, steps, 3 hidden], weight[hidden, 3], h0[batch, hidden] -> h[batch, steps, hidden]. 1: no memory.
extern "C" int diagonal_gru(const Element* pre, const Element* weight, const Element* h0, Element* h,
                            std::int64_t batch, std::int64_t steps, std::int64_t hidden) {
    const Sizes sizes{steps, hidden};
    const Index groups = (hidden + kUnits - 1) / kUnits;
    std::atomic<int> failed{0};
#pragma omp parallel if (batch * steps * hidden >= kParallelWork)
    {
        static thread_local vec::Scratch scratch;
        auto* units = static_cast<Unit*>(scratch.reserve(NEWTON ? UNROLL * sizeof(Unit) : 1));
        if (units == nullptr) failed = 1;
#pragma omp for schedule(dynamic)
        for (Index task = 0; task < batch * groups; ++task) {
            if (units == nullptr) continue;
            const Index number = task / groups, first = task % groups * kUnits;
            const Sequence sequence{pre + number * steps * 3 * hidden, h0 + number * hidden,
                                    h + number * steps * hidden};
            if (NEWTON) {
                newton(sequence, weight, sizes, first, units);
            } else {
                loop(sequence, weight, sizes, first);
            }
        }
    }
    return failed;
}
