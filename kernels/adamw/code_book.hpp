// The dynamic tree of 8 bits (Dettmers et al. 2021, arXiv:2110.02861): 256 numbers up to 1, dense near 0.
//
// A number has a place in the tree, 2^L + k with k < 2^L, and the value 10^(L - top) (0.1 + 0.9 (k + 0.5) /
// 2^L). One place below the first of them stands for 0, one above the last for 1. Codes count all numbers in
// order: without a sign they are places less 1; with one 127 more than the place, or less for negative
// numbers, among which there is no -1.
//
// 1. ARITHMETIC: both ways are computed. The digits of the float 2 place + 1 are L and k; the place of a
//    value follows from its power of ten and a product. Tables have 16 entries and stay in registers. Without
//    it, values are gathered from a table of all codes, and places are found by bisection, which gathers
//    eight times.
// 2. Bisection also has the codes of what is not finite: NaN is above all.
#pragma once

#include "../vector.hpp"

namespace code_book {

using vec::Floats;
using vec::Ints;
using vec::Words;

constexpr int kPowers = 6;        // 10^-6 to 10^-1, where the numbers change their distance
constexpr float kBetween = 0.2f;  // of a distance: below, the last number before the power is nearer

inline Ints to_ints(Floats values) {
#if LANES > 1
    return __builtin_convertvector(values, Ints);
#else
    return static_cast<Ints>(values);
#endif
}

inline Words bits_of_size(Floats values) { return vec::bit_cast<Words>(values) & 0x7fffffffu; }

template <bool Signed>
class Book {
  public:
    static constexpr int kShift = Signed ? 0 : 1;  // of L: without a sign, each power has twice the numbers
    static constexpr int kOne = Signed ? 128 : 256;  // the place of 1; half as many are between 0.1 and 1

    Book() {
        double positive[256];
        int count = 0;
        for (int place = 1 << kShift; place < kOne; ++place) positive[count++] = value_of(place);
        positive[count++] = 1.0;
        double sorted[256];
        int code = 0;
        for (int i = count - 2; Signed && i >= 0; --i) sorted[code++] = -positive[i];
        sorted[code++] = 0.0;
        for (int i = 0; i < count; ++i) sorted[code++] = positive[i];
        for (int i = 0; i < 256; ++i) values_[i] = static_cast<float>(sorted[i]);
        for (int i = 0; i < 255; ++i) edges_[i] = static_cast<float>((sorted[i] + sorted[i + 1]) / 2.0);
        for (int i = 0; i <= kPowers; ++i) {
            const int level = i + kShift;
            const double start = std::pow(10.0, i - kPowers - 1);
            powers_[level + 1] = static_cast<float>(10.0 * start);
            low_[i] = static_cast<float>(start);
            next_[i] = i < kPowers ? static_cast<float>(10.0 * start) : INFINITY;
            inverse_[i] = static_cast<float>((1 << level) / (9.0 * start));
        }
        // The lowest numbers have 0 below them, at another distance: the line through both of their edges.
        const double zero = positive[0] / 2.0;
        const double next = Signed ? 2e-6 : (positive[0] + positive[1]) / 2.0;
        const double slope = (1.0 - kBetween) / (next - zero);
        low_[0] = static_cast<float>(next - 1.0 / slope);
        inverse_[0] = static_cast<float>(slope);
        powers_[kPowers + 2 + kShift] = static_cast<float>(1.0 / (0.1 + 0.45 / kOne));
        const double distance = 0.9 / (kOne / 2);
        above_ = static_cast<float>(1.0 - distance / 4.0);
        largest_ = static_cast<float>(1.0 - distance / 8.0);
    }

    // Codes -> values.
    Floats decode(Words code) const {
#if ARITHMETIC
        const Ints place = place_of(vec::bit_cast<Ints>(code));
        const auto digits = vec::bit_cast<Words>(vec::to_floats(place + place + 1));
        const Floats fraction = vec::bit_cast<Floats>((digits & 0x7fffffu) | 0x3f800000u) - 1.0f;
        const Floats size = (fraction * 0.9f + 0.1f) * vec::look_up(powers_, (digits >> 23) - 127u);
        if (!Signed) return size;
        const Words sign = (code - 127u) & 0x80000000u;
        return vec::bit_cast<Floats>(vec::bit_cast<Words>(size) | sign);
#else
        return vec::gather(values_, code);
#endif
    }

    // The nearest codes of values in [-1, 1], all finite.
    Ints encode(Floats values) const {
#if ARITHMETIC
        const Floats size = vec::bit_cast<Floats>(bits_of_size(values));
        const Floats inside = size < largest_ ? size : vec::splat(largest_);
        const Words level = level_of(inside);
        const Floats steps = (inside - vec::look_up(low_, level)) * vec::look_up(inverse_, level);
        Ints place = power_of_two(vec::bit_cast<Ints>(level) + kShift) + to_ints(steps);
        place = steps < kBetween ? place - 1 : place;
        place = size >= above_ ? place + 1 : place;
        if (!Signed) return place - 1;
        const Ints code = values < 0.0f ? 127 - place : 127 + place;
        return code < 0 ? Ints{} : code;  // there is no -1
#else
        return bisect(values);
#endif
    }

    Ints bisect(Floats values) const {
        Ints code{};
        for (int step = 128; step > 0; step /= 2) {
            const Ints next = code + step;
            code = values <= vec::gather(edges_, vec::bit_cast<Words>(next - 1)) ? code : next;
        }
        return code;
    }

  private:
    static double value_of(int place) {
        int level = 0;
        while (place >> (level + 1)) ++level;
        const double share = (place + 0.5) / (1 << level) - 1.0;
        return std::pow(10.0, level - kShift - kPowers) * (0.1 + 0.9 * share);
    }

    static Ints place_of(Ints code) {
        if (!Signed) return code + 1;
        const Ints offset = code - 127;
        return offset < 0 ? -offset : offset;
    }

    // Powers of ten from 10^-6 on that a size below 1 reaches. A float's bits, as a number, are 2^23 times
    // its logarithm to the base 2, or up to 0.09 too little: then the next power is reached as well.
    Words level_of(Floats size) const {
        constexpr float kDigits = 0.301029996f / 8388608.0f;      // of ten, per unit of the bits
        constexpr float kFirst = 7.0f - 127.0f * 0.301029996f;    // from 10^-7 on
        const Floats digits = vec::to_floats(vec::bit_cast<Ints>(size)) * kDigits + kFirst;
        const Ints level = to_ints(vec::maximum(digits, Floats{}));
        const Floats next = vec::look_up(next_, vec::bit_cast<Words>(level));
        return vec::bit_cast<Words>(size >= next ? level + 1 : level);
    }

    static Ints power_of_two(Ints exponent) {
        const Ints one = Ints{} + 1;
        return one << exponent;
    }

    alignas(64) float values_[256];
    alignas(64) float edges_[256] = {};
    alignas(64) float powers_[16] = {};   // of ten, by L + 1; 0 for 0
    alignas(64) float low_[16] = {};      // where the numbers of a power begin, by the power
    alignas(64) float inverse_[16] = {};  // of their distances
    alignas(64) float next_[16] = {};     // where the next power begins
    float above_;                         // from here on, 1 is nearest
    float largest_;                       // of the values that are multiplied
};

}  // namespace code_book
