// Depthwise causal convolution with SiLU: y_t = silu(bias + sum over i of weight_i x_{t - taps + 1 + i}).
//
// 1. Channels lie next to each other, so a vector is LANES channels of one step; x_t meets one vector per tap and
//    no lane another lane. Filters are transposed to [taps, channels] once, in float32.
// 2. TIME steps are computed together: each weight is loaded once for all of them, and their sums are independent
//    chains of multiply-adds.
// 3. UNROLL knows a filter of 4 taps at compile time. The window of TIME + 3 steps then stays in registers, and
//    every x is loaded, and widened from 16 bits, once instead of four times.
// 4. With STREAM, y goes past the caches: it is not read here again.
//
// One pass, bound by memory bandwidth once the exponential is vectorised. What lies before the sequence is zero and
// takes part in the products, so that infinite weights give NaN there as in PyTorch.

#include <algorithm>

#include "filter.hpp"

using vec::Element;
using vec::Floats;

namespace {

constexpr std::ptrdiff_t kParallelElements = 16384;  // below, starting the threads takes longer than the work
constexpr std::ptrdiff_t kPiece = 64;                // steps of a task

inline Floats silu(Floats z) { return z * vec::sigmoid(z); }

// y of Steps steps from `step` on, for the vector of channels at `channel`.
template <int Taps, int Steps, class Whole>
inline void outputs(Whole whole, const Sequence& x, const Filter& filter, Element* y, std::ptrdiff_t step,
                    std::ptrdiff_t channel, bool stream) {
    Floats sums[Steps];
    convolve<Taps, Steps>(whole, x, filter, step, channel, sums);
#pragma GCC unroll 8
    for (int s = 0; s < Steps; ++s) {
        Element* to = y + (step + s) * x.channels + channel;
        if (STREAM && stream) {
            vec::stream(to, silu(sums[s]));
        } else {
            store(whole, to, x.channels - channel, silu(sums[s]));
        }
    }
}

template <int Taps, int Steps>
inline void rows(const Sequence& x, const Filter& filter, Element* y, std::ptrdiff_t step, bool stream) {
    std::ptrdiff_t channel = 0;
    for (; channel + LANES <= x.channels; channel += LANES) {
        outputs<Taps, Steps>(std::true_type{}, x, filter, y, step, channel, stream);
    }
    if (channel < x.channels) outputs<Taps, Steps>(std::false_type{}, x, filter, y, step, channel, false);
}

template <int Taps>
inline void piece(const Sequence& x, const Filter& filter, Element* y, std::ptrdiff_t step, std::ptrdiff_t end,
                  bool stream) {
    // Steps whose window begins before the sequence look at each tap.
    for (; step < std::min(end, filter.taps - 1); ++step) rows<0, 1>(x, filter, y, step, false);
    for (; step + TIME <= end; step += TIME) rows<Taps, TIME>(x, filter, y, step, stream);
    for (; step < end; ++step) rows<Taps, 1>(x, filter, y, step, stream);
}

}  // namespace

// x, y [batch, steps, channels], weight[channels, taps], bias[channels]. 1: no memory for the filters.
extern "C" int causal_conv1d(const Element* x, const Element* weight, const Element* bias, Element* y,
                             std::int64_t batch, std::int64_t steps, std::int64_t channels, std::int64_t taps) {
    static thread_local vec::Scratch scratch;
    auto* memory = static_cast<float*>(scratch.reserve(filter_floats(channels, taps) * sizeof(float)));
    if (memory == nullptr) return 1;
    const Filter filter = widen_filter(weight, bias, channels, taps, memory);
    const std::ptrdiff_t pieces = (steps + kPiece - 1) / kPiece;
    const bool stream = vec::streamable(y) && channels % LANES == 0;
#pragma omp parallel if (batch * steps * channels >= kParallelElements)
    {
#pragma omp for schedule(static)
        for (std::ptrdiff_t task = 0; task < batch * pieces; ++task) {
            const std::ptrdiff_t from = task / pieces * steps * channels, step = task % pieces * kPiece;
            const std::ptrdiff_t end = std::min<std::ptrdiff_t>(steps, step + kPiece);
            const Sequence sequence{x + from, steps, channels};
            if (UNROLL == 4 && taps == 4) {
                piece<UNROLL>(sequence, filter, y + from, step, end, stream);
            } else {
                piece<0>(sequence, filter, y + from, step, end, stream);
            }
        }
        if (STREAM) vec::stream_fence();
    }
    return 0;
}
