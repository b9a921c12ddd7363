// Walks along a row, or a flat array, of any length: UNROLL vectors at a time, then one, then a part of one.
//
// The body of the loop is written once. It gets a type that says at compile time whether its vector is whole, so
// that whole ones are plain loads and stores.
#pragma once

#include <algorithm>
#include <type_traits>

#include "vector.hpp"

namespace rows {

using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

constexpr Index kStep = Index{UNROLL} * LANES;
constexpr Index kParallelElements = 16384;  // below, starting the threads takes longer than the work

// Calls body(at, u, whole) for the vectors of [begin, end); u is below UNROLL.
template <class Body>
inline void for_each_vector(Index begin, Index end, Body body) {
    Index at = begin;
    for (; at + kStep <= end; at += kStep) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; ++u) body(at + u * LANES, u, std::true_type{});
    }
    for (; at + LANES <= end; at += LANES) body(at, 0, std::true_type{});
    if (at < end) body(at, 0, std::false_type{});
}

template <class Whole>
inline Floats load(Whole, const Element* from, Index count, float fill = 0.0f) {
    return Whole::value ? vec::load(from) : vec::load_some(from, count, fill);
}

template <class Whole>
inline void store(Whole, Element* to, Index count, Floats values) {
    if (Whole::value) {
        vec::store(to, values);
    } else {
        vec::store_some(to, count, values);
    }
}

// Past the caches where `past`; `to` is then streamable.
template <class Whole>
inline void store(Whole whole, Element* to, Index count, Floats values, bool past) {
    if (Whole::value && past) {
        vec::stream(to, values);
    } else {
        store(whole, to, count, values);
    }
}

// float32, whatever the element is.
template <class Whole>
inline Floats load_floats(Whole, const float* from, Index count) {
    if (Whole::value) return vec::load_raw<Floats>(from);
    float lanes[LANES] = {};
    __builtin_memcpy(lanes, from, static_cast<std::size_t>(count) * sizeof(float));
    return vec::load_raw<Floats>(lanes);
}

template <class Whole>
inline void store_floats(Whole, float* to, Index count, Floats values) {
    if (Whole::value) return vec::store_raw(to, values);
    float lanes[LANES];
    vec::store_raw(lanes, values);
    __builtin_memcpy(to, lanes, static_cast<std::size_t>(count) * sizeof(float));
}

// Zero in the lanes beyond `count`.
template <class Whole>
inline Floats first_lanes(Whole whole, Floats values, Index count) {
    if (Whole::value) return values;
    float lanes[LANES];
    vec::store_raw(lanes, values);
    return load_floats(whole, lanes, count);
}

inline float sum_of(Floats (&sums)[UNROLL]) {
    for (int u = 1; u < UNROLL; ++u) sums[0] += sums[u];
    return vec::reduce_sum(sums[0]);
}

// Zero where rounding made a variance negative; NaN stays NaN.
inline float not_negative(float variance) { return variance < 0.0f ? 0.0f : variance; }

}  // namespace rows
