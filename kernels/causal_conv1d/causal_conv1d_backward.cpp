// Gradients of the causal convolution y = silu(z), z_t = bias + sum over i of weight_i x_{t - taps + 1 + i}:
// dz = dy s (1 + z (1 - s)) with s the logistic function of z, then dx_t = sum over i of weight_i dz_{t + taps - 1 - i},
// dweight_i = sum over t of dz_t x_{t - taps + 1 + i}, and dbias = sum over t of dz_t.
//
// 1. z is computed again from x: a few multiply-adds instead of a tensor to keep and read.
// 2. A task has PIECE steps of BLOCK channels. It computes dz of its steps and of the taps - 1 after them, which dx
//    needs, and keeps them in float32 in the L1 cache; the next task computes these few again.
// 3. Sums over the steps run in registers and are split by PIECE: every task writes its own, which are then added up
//    in the order of the sequence. No atomics, so every bit depends on the shape alone.
// 4. UNROLL knows a filter of 4 taps at compile time: window, weights and sums stay in registers.
//
// Bound by memory bandwidth once the exponential is vectorised; without steps dweight and dbias are 0.

#include <algorithm>
#include <atomic>

#include "filter.hpp"

using vec::Element;
using vec::Floats;

namespace {

constexpr std::ptrdiff_t kParallelElements = 16384;  // below, starting the threads takes longer than the work
static_assert(BLOCK % LANES == 0);

struct Upstream {
    const Element* dy;  // [steps, channels]
    Element* dx;        // likewise
};

struct Steps {
    std::ptrdiff_t first, end;
};

// dz and what it adds to the sums, for one step of a vector of channels.
template <int Taps, class Whole>
inline Floats gradient(Whole whole, const Sequence& x, const Filter& filter, const Element* dy, std::ptrdiff_t step,
                       std::ptrdiff_t channel) {
    Floats z[1];
    convolve<Taps, 1>(whole, x, filter, step, channel, z);
    const Floats share = vec::sigmoid(z[0]);
    const Floats upstream = load(whole, dy + step * x.channels + channel, x.channels - channel);
    return upstream * share * (1.0f + z[0] * (1.0f - share));
}

// The steps of a task for one vector of channels. dz [steps, BLOCK], sums [taps + 1, width]: from this vector on.
template <int Taps, class Whole>
inline void walk(Whole whole, const Sequence& x, const Filter& filter, const Upstream& own, Steps task, float* dz,
                 float* sums, std::ptrdiff_t channel) {
    const std::ptrdiff_t taps = filter.taps;
    const std::ptrdiff_t end = std::min(x.steps, task.end + taps - 1);
    const auto remember = [&](std::ptrdiff_t step, Floats value) {
        vec::store_raw(dz + (step - task.first) * BLOCK, value);
    };
    const auto add = [&](std::ptrdiff_t row, Floats value) {
        float* sum = sums + row * filter.width;
        vec::store_raw(sum, vec::load_raw<Floats>(sum) + value);
    };
    std::ptrdiff_t step = task.first;
    const std::ptrdiff_t beginning = Taps > 0 ? std::min(task.end, std::max<std::ptrdiff_t>(taps - 1, step)) : task.end;
    for (; step < beginning; ++step) {
        const Floats value = gradient<0>(whole, x, filter, own.dy, step, channel);
        remember(step, value);
        for (std::ptrdiff_t tap = 0; tap < taps; ++tap) {
            add(tap, value * tapped(whole, x, filter, step, tap, channel));
        }
        add(taps, value);
    }
    if constexpr (Taps > 0) {
        Floats totals[Taps + 1] = {};
        for (; step < task.end; ++step) {
            const Floats value = gradient<Taps>(whole, x, filter, own.dy, step, channel);
            remember(step, value);
            const Element* window = x.values + (step - Taps + 1) * x.channels + channel;
#pragma GCC unroll 8
            for (int tap = 0; tap < Taps; ++tap) {
                totals[tap] += value * load(whole, window + tap * x.channels, x.channels - channel);
            }
            totals[Taps] += value;
        }
        for (int row = 0; row <= Taps; ++row) add(row, totals[row]);
    }
    for (; step < end; ++step) remember(step, gradient<0>(whole, x, filter, own.dy, step, channel));
    for (step = task.first; step < task.end; ++step) {
        Floats total{};
        for (std::ptrdiff_t tap = 0; tap < taps; ++tap) {
            const std::ptrdiff_t from = step + taps - 1 - tap;
            if (from < end) {
                total += vec::load_raw<Floats>(filter.weight + tap * filter.width + channel) *
                         vec::load_raw<Floats>(dz + (from - task.first) * BLOCK);
            }
        }
        store(whole, own.dx + step * x.channels + channel, x.channels - channel, total);
    }
}

template <int Taps>
inline void block(const Sequence& x, const Filter& filter, const Upstream& own, Steps task, float* dz, float* sums,
                  std::ptrdiff_t first) {
    for (std::ptrdiff_t channel = first; channel < std::min<std::ptrdiff_t>(first + BLOCK, x.channels);
         channel += LANES) {
        float* from = dz + (channel - first);
        if (channel + LANES <= x.channels) {
            walk<Taps>(std::true_type{}, x, filter, own, task, from, sums + channel, channel);
        } else {
            walk<Taps>(std::false_type{}, x, filter, own, task, from, sums + channel, channel);
        }
    }
}

// The sums of all tasks, in the order of the sequence.
inline Floats total_of(const float* sums, std::ptrdiff_t tasks, std::ptrdiff_t stride) {
    Floats total{};
    for (std::ptrdiff_t task = 0; task < tasks; ++task) total += vec::load_raw<Floats>(sums + task * stride);
    return total;
}

}  // namespace

// x, dy, dx [batch, steps, channels], weight, dweight [channels, taps], bias, dbias [channels]. 1: no memory.
extern "C" int causal_conv1d_backward(const Element* x, const Element* weight, const Element* bias, const Element* dy,
                                      Element* dx, Element* dweight, Element* dbias, std::int64_t batch,
                                      std::int64_t steps, std::int64_t channels, std::int64_t taps) {
    static thread_local vec::Scratch scratch;
    const std::ptrdiff_t pieces = (steps + PIECE - 1) / PIECE, blocks = (channels + BLOCK - 1) / BLOCK;
    const std::ptrdiff_t width = whole_vectors(channels), stride = (taps + 1) * width;
    const std::size_t filter_size = filter_floats(channels, taps);
    auto* memory = static_cast<float*>(scratch.reserve((filter_size + batch * pieces * stride) * sizeof(float)));
    if (memory == nullptr) return 1;
    const Filter filter = widen_filter(weight, bias, channels, taps, memory);
    float* sums = memory + filter_size;
    std::atomic<int> failed{0};
#pragma omp parallel if (batch * steps * channels >= kParallelElements)
    {
        static thread_local vec::Scratch own;
        auto* dz = static_cast<float*>(own.reserve((PIECE + taps) * BLOCK * sizeof(float)));
        if (dz == nullptr) failed = 1;
#pragma omp for schedule(static)
        for (std::ptrdiff_t task = 0; task < batch * pieces * blocks; ++task) {
            if (dz == nullptr) continue;
            const std::ptrdiff_t piece = task / blocks, channel = task % blocks * BLOCK;
            const std::ptrdiff_t from = piece / pieces * steps * channels, first = piece % pieces * PIECE;
            const Sequence sequence{x + from, steps, channels};
            const Steps range{first, std::min<std::ptrdiff_t>(steps, first + PIECE)};
            float* mine = sums + piece * stride;
            for (std::ptrdiff_t row = 0; row <= taps; ++row) {
                std::fill(mine + row * width + channel,
                          mine + row * width + std::min<std::ptrdiff_t>(channel + BLOCK, width), 0.0f);
            }
            if (UNROLL == 4 && taps == 4) {
                block<UNROLL>(sequence, filter, {dy + from, dx + from}, range, dz, mine, channel);
            } else {
                block<0>(sequence, filter, {dy + from, dx + from}, range, dz, mine, channel);
            }
        }
#pragma omp for schedule(static)
        for (std::ptrdiff_t channel = 0; channel < channels; channel += LANES) {
            const std::ptrdiff_t count = std::min<std::ptrdiff_t>(LANES, channels - channel);
            for (std::ptrdiff_t tap = 0; tap < taps; ++tap) {
                float lanes[LANES];
                vec::store_raw(lanes, total_of(sums + tap * width + channel, batch * pieces, stride));
                for (std::ptrdiff_t lane = 0; lane < count; ++lane) {
                    dweight[(channel + lane) * taps + tap] = vec::to_element(lanes[lane]);
                }
            }
            vec::store_some(dbias + channel, count, total_of(sums + taps * width + channel, batch * pieces, stride));
        }
    }
    return failed;
}
