// A causal filter of each channel, applied to the channels of a vector at once: what forward and backward share.
//
// Macros from the command line: those of vector.hpp.
#pragma once

#include <type_traits>

#include "../vector.hpp"

struct Sequence {
    const vec::Element* values;  // [steps, channels]
    std::ptrdiff_t steps, channels;
};

struct Filter {
    const float* weight;  // [taps, width]
    const float* bias;    // [width]
    std::ptrdiff_t taps;
    std::ptrdiff_t width;  // channels, rounded up to whole vectors
};

template <class Whole>
inline vec::Floats load(Whole, const vec::Element* from, std::ptrdiff_t count) {
    return Whole::value ? vec::load(from) : vec::load_some(from, count, 0.0f);
}

template <class Whole>
inline void store(Whole, vec::Element* to, std::ptrdiff_t count, vec::Floats values) {
    if (Whole::value) {
        vec::store(to, values);
    } else {
        vec::store_some(to, count, values);
    }
}

inline std::ptrdiff_t whole_vectors(std::ptrdiff_t channels) { return (channels + LANES - 1) / LANES * LANES; }

inline std::size_t filter_floats(std::ptrdiff_t channels, std::ptrdiff_t taps) {
    return static_cast<std::size_t>((taps + 1) * whole_vectors(channels) + 1);
}

// Transposes weight[channels, taps] into memory for `filter_floats`, so that a tap of a vector's channels is a vector.
inline Filter widen_filter(const vec::Element* weight, const vec::Element* bias, std::ptrdiff_t channels,
                           std::ptrdiff_t taps, float* memory) {
    const std::ptrdiff_t width = whole_vectors(channels);
    for (std::ptrdiff_t channel = 0; channel < width; ++channel) {
        const bool inside = channel < channels;
        for (std::ptrdiff_t tap = 0; tap < taps; ++tap) {
            memory[tap * width + channel] = inside ? vec::to_float(weight[channel * taps + tap]) : 0.0f;
        }
        memory[taps * width + channel] = inside ? vec::to_float(bias[channel]) : 0.0f;
    }
    return {memory, memory + taps * width, taps, width};
}

// What tap `tap` of the filter meets at `step`; zero before the sequence.
template <class Whole>
inline vec::Floats tapped(Whole whole, const Sequence& x, const Filter& filter, std::ptrdiff_t step,
                          std::ptrdiff_t tap, std::ptrdiff_t channel) {
    const std::ptrdiff_t from = step - filter.taps + 1 + tap;
    return from < 0 ? vec::Floats{} : load(whole, x.values + from * x.channels + channel, x.channels - channel);
}

// sums of Steps steps before the activation. Taps: the number of taps, and the window is within the sequence; or 0.
template <int Taps, int Steps, class Whole>
inline void convolve(Whole whole, const Sequence& x, const Filter& filter, std::ptrdiff_t step, std::ptrdiff_t channel,
                     vec::Floats* sums) {
    const vec::Floats bias = vec::load_raw<vec::Floats>(filter.bias + channel);
#pragma GCC unroll 8
    for (int s = 0; s < Steps; ++s) sums[s] = bias;
    if constexpr (Taps > 0) {
        vec::Floats window[Steps + Taps - 1];
        const vec::Element* from = x.values + (step - Taps + 1) * x.channels + channel;
#pragma GCC unroll 16
        for (int at = 0; at < Steps + Taps - 1; ++at) window[at] = load(whole, from + at * x.channels, x.channels - channel);
#pragma GCC unroll 8
        for (int tap = 0; tap < Taps; ++tap) {
            const vec::Floats weight = vec::load_raw<vec::Floats>(filter.weight + tap * filter.width + channel);
#pragma GCC unroll 8
            for (int s = 0; s < Steps; ++s) sums[s] += weight * window[s + tap];
        }
    } else {
        for (std::ptrdiff_t tap = 0; tap < filter.taps; ++tap) {
            const vec::Floats weight = vec::load_raw<vec::Floats>(filter.weight + tap * filter.width + channel);
#pragma GCC unroll 8
            for (int s = 0; s < Steps; ++s) sums[s] += weight * tapped(whole, x, filter, step + s, tap, channel);
        }
    }
}
