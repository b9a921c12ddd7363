// Selective scan: h_t = exp(-w_t rate) h_{t-1} + w_t x_t b_t with w = softplus(delta), and y_t = (c_t h_t + skip x_t)
// silu(z_t). Gu and Dao 2023, arXiv:2312.00752.
//
// 1. Sequential in time, parallel over channels: a vector is LANES channels, whose states lie in as many vectors and
//    stay in the L1 cache from the first step to the last.
// 2. FUSE: what the states are multiplied by and what is added to them, [batch, steps, channels, states] each, never
//    reach memory; they are `states` times as large as any input. Without it both are written for all steps of a
//    tile, then read by the scan, as a program of separate operators does.
// 3. TILE vectors of channels go through time together: b and c, which all channels share, are loaded and widened once
//    for them, and a row of x fills whole cache lines.
// 4. UNROLL states have a sum of their own towards y, so that its additions are not one chain.
//
// The limit is the exponential, one for each step, channel and state. Channels and sequences are shared among threads.

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "../vector.hpp"

using vec::Element;
using vec::Floats;

namespace {

constexpr std::ptrdiff_t kWidth = std::ptrdiff_t{TILE} * LANES;
constexpr std::ptrdiff_t kParallelWork = 8192;  // exponentials; below, starting the threads takes longer than the work

struct Sizes {
    std::ptrdiff_t steps, channels, states;
};

// Of one sequence.
struct Inputs {
    const Element *x, *delta, *z;  // [steps, channels]
    const Element *b, *c;          // [steps, states]
};

// Of one thread, all in float32; rows of kWidth channels.
struct Workspace {
    float* rate;    // [states, kWidth]
    float* state;   // [states, kWidth]
    float* b;       // [states]
    float* c;       // [states]
    float* decays;  // without FUSE: [steps, states, kWidth]
    float* added;   // likewise
};

inline std::size_t workspace_floats(const Sizes& sizes) {
    const std::ptrdiff_t kept = FUSE ? 0 : 2 * sizes.steps * sizes.states * kWidth;
    return static_cast<std::size_t>(2 * sizes.states * kWidth + 2 * (sizes.states + LANES) + kept + LANES);
}

inline Workspace place(float* memory, const Sizes& sizes) {
    Workspace own{};
    own.rate = memory;
    own.state = own.rate + sizes.states * kWidth;
    own.decays = own.state + sizes.states * kWidth;
    own.added = own.decays + (FUSE ? 0 : sizes.steps * sizes.states * kWidth);
    own.b = own.added + (FUSE ? 0 : sizes.steps * sizes.states * kWidth);
    own.c = own.b + sizes.states;
    return own;
}

template <class Whole>
inline Floats load(Whole, const Element* from, std::ptrdiff_t count) {
    return Whole::value ? vec::load(from) : vec::load_some(from, count, 0.0f);
}

inline Floats load_floats(const float* from) { return vec::load_raw<Floats>(from); }

inline void widen_states(const Element* b, const Element* c, std::ptrdiff_t states, const Workspace& own) {
    for (std::ptrdiff_t state = 0; state < states; ++state) {
        own.b[state] = vec::to_float(b[state]);
        own.c[state] = vec::to_float(c[state]);
    }
}

// One step of a vector of channels, `at` in the rows of the workspace. Returns the inner product of c and the states.
inline Floats advance(const Sizes& sizes, const Workspace& own, std::ptrdiff_t step, std::ptrdiff_t at, Floats width,
                      Floats input) {
    Floats sums[UNROLL] = {};
    const auto update = [&](std::ptrdiff_t state, int u) {
        const std::ptrdiff_t place = state * kWidth + at;
        Floats decay, added;
        if (FUSE) {
            decay = vec::exp(-width * load_floats(own.rate + place));
            added = input * own.b[state];
        } else {
            decay = load_floats(own.decays + step * sizes.states * kWidth + place);
            added = load_floats(own.added + step * sizes.states * kWidth + place);
        }
        const Floats next = decay * load_floats(own.state + place) + added;
        vec::store_raw(own.state + place, next);
        sums[u] += next * own.c[state];
    };
    std::ptrdiff_t state = 0;
    for (; state + UNROLL <= sizes.states; state += UNROLL) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) update(state + u, u);
    }
    for (; state < sizes.states; ++state) update(state, 0);
    for (int u = 1; u < UNROLL; ++u) sums[0] += sums[u];
    return sums[0];
}

// Without FUSE: everything that the scan reads, for all steps of a vector of channels.
template <class Whole>
inline void expand(Whole whole, const Inputs& in, const Sizes& sizes, const Workspace& own, std::ptrdiff_t channel,
                   std::ptrdiff_t at) {
    const std::ptrdiff_t rest = sizes.channels - channel;
    for (std::ptrdiff_t step = 0; step < sizes.steps; ++step) {
        const Floats width = vec::softplus(load(whole, in.delta + step * sizes.channels + channel, rest));
        const Floats input = width * load(whole, in.x + step * sizes.channels + channel, rest);
        for (std::ptrdiff_t state = 0; state < sizes.states; ++state) {
            const std::ptrdiff_t to = (step * sizes.states + state) * kWidth + at;
            vec::store_raw(own.decays + to, vec::exp(-width * load_floats(own.rate + state * kWidth + at)));
            vec::store_raw(own.added + to, input * vec::to_float(in.b[step * sizes.states + state]));
        }
    }
}

template <class Whole>
inline void output(Whole whole, const Inputs& in, const Element* skip, Element* y, const Sizes& sizes,
                   const Workspace& own, std::ptrdiff_t step, std::ptrdiff_t channel, std::ptrdiff_t at) {
    const std::ptrdiff_t rest = sizes.channels - channel, from = step * sizes.channels + channel;
    const Floats x = load(whole, in.x + from, rest);
    const Floats width = FUSE ? vec::softplus(load(whole, in.delta + from, rest)) : Floats{};
    const Floats total = advance(sizes, own, step, at, width, width * x) + load(whole, skip + channel, rest) * x;
    const Floats gate = load(whole, in.z + from, rest);
    const Floats gated = total * (gate * vec::sigmoid(gate));
    if (Whole::value) {
        vec::store(y + from, gated);
    } else {
        vec::store_some(y + from, rest, gated);
    }
}

// A tile of channels from the first step to the last.
void scan(const Inputs& in, const Element* rate, const Element* skip, Element* y, const Sizes& sizes,
          const Workspace& own, std::ptrdiff_t first) {
    const std::ptrdiff_t count = std::min(kWidth, sizes.channels - first);
    for (std::ptrdiff_t state = 0; state < sizes.states; ++state) {
        for (std::ptrdiff_t at = 0; at < kWidth; ++at) {
            const bool inside = at < count;
            own.rate[state * kWidth + at] = inside ? vec::to_float(rate[(first + at) * sizes.states + state]) : 0.0f;
            own.state[state * kWidth + at] = 0.0f;
        }
    }
    const std::ptrdiff_t whole = count / LANES * LANES;
    if (!FUSE) {
        for (std::ptrdiff_t at = 0; at < whole; at += LANES) {
            expand(std::true_type{}, in, sizes, own, first + at, at);
        }
        if (whole < count) expand(std::false_type{}, in, sizes, own, first + whole, whole);
    }
    for (std::ptrdiff_t step = 0; step < sizes.steps; ++step) {
        widen_states(in.b + step * sizes.states, in.c + step * sizes.states, sizes.states, own);
        for (std::ptrdiff_t at = 0; at < whole; at += LANES) {
            output(std::true_type{}, in, skip, y, sizes, own, step, first + at, at);
        }
        if (whole < count) output(std::false_type{}, in, skip, y, sizes, own, step, first + whole, whole);
    }
}

}  // namespace

// x, delta, z, y [batch, steps, channels], b, c [batch, steps, states], rate[channels, states], skip[channels].
// 1: no memory for the states.
extern "C" int selective_scan(const Element* x, const Element* delta, const Element* z, const Element* b,
                              const Element* c, const Element* rate, const Element* skip, Element* y,
                              std::int64_t batch, std::int64_t steps, std::int64_t channels, std::int64_t states) {
    const Sizes sizes{steps, channels, states};
    const std::ptrdiff_t tiles = (channels + kWidth - 1) / kWidth;
    std::atomic<int> failed{0};
#pragma omp parallel if (batch * steps * channels * states >= kParallelWork)
    {
        static thread_local vec::Scratch scratch;
        auto* memory = static_cast<float*>(scratch.reserve(workspace_floats(sizes) * sizeof(float)));
        if (memory == nullptr) failed = 1;
#pragma omp for schedule(dynamic)
        for (std::ptrdiff_t task = 0; task < batch * tiles; ++task) {
            if (memory == nullptr) continue;
            const std::ptrdiff_t number = task / tiles, from = number * steps * channels;
            const std::ptrdiff_t states_from = number * steps * states;
            scan({x + from, delta + from, z + from, b + states_from, c + states_from}, rate, skip, y + from, sizes,
                 place(memory, sizes), task % tiles * kWidth);
        }
    }
    return failed;
}
