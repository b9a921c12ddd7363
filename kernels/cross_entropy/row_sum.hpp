// The maximum of a row and the sum of exponentials relative to it: what cross entropy and its gradient begin with.
//
// 1. Two sweeps (ONLINE=0): maximum, then exponentials; the second one finds the row in L2 where it fits.
// 2. One sweep (ONLINE=1; Milakov and Gimelshein 2018, arXiv:1805.02867): each lane scales its own sum when its
//    maximum grows, at one more exponential per UNROLL vectors. The logits of a large vocabulary are read from
//    memory once.
//
// A NaN or +infinity in a row, or nothing but -infinity, gives NaN.
#pragma once

#include <cfloat>

#include "../rows.hpp"

namespace rows {

struct ExponentialSum {
    float maximum;
    float sum;
};

// The comparison drops NaN; it comes back through the exponentials of its row.
inline ExponentialSum exponential_sum_of_two_sweeps(const Element* x, Index cols) {
    Floats maxima[UNROLL];
    for (auto& maximum : maxima) maximum = vec::splat(-INFINITY);
    for_each_vector(0, cols, [&](Index col, int u, auto whole) {
        maxima[u] = vec::maximum(load(whole, x + col, cols - col, -INFINITY), maxima[u]);
    });
    for (int u = 1; u < UNROLL; ++u) maxima[0] = vec::maximum(maxima[0], maxima[u]);
    const float maximum = vec::reduce_maximum(maxima[0]);
    Floats sums[UNROLL] = {};
    for_each_vector(0, cols, [&](Index col, int u, auto whole) {
        sums[u] += vec::exp(load(whole, x + col, cols - col, -INFINITY) - maximum);
    });
    return {maximum, sum_of(sums)};
}

inline ExponentialSum exponential_sum_online(const Element* x, Index cols) {
    // Finite, so that a lane that has seen nothing but -infinity scales by exp(0), not by exp(NaN).
    Floats maximum = vec::splat(-FLT_MAX);
    Floats sum{};
    const auto add = [&](const auto& block) {
        Floats larger = maximum;
        for (const auto& values : block) larger = vec::maximum(values, larger);
        Floats block_sum{};
        for (const auto& values : block) block_sum += vec::exp(values - larger);
        sum = sum * vec::exp(maximum - larger) + block_sum;
        maximum = larger;
    };
    Index col = 0;
    for (; col + kStep <= cols; col += kStep) {
        Floats block[UNROLL];
        for (int u = 0; u < UNROLL; ++u) block[u] = vec::load(x + col + u * LANES);
        add(block);
    }
    for_each_vector(col, cols, [&](Index at, int, auto whole) {
        const Floats block[1] = {load(whole, x + at, cols - at, -INFINITY)};
        add(block);
    });
    const float largest = vec::reduce_maximum(maximum);
    return {largest, vec::reduce_sum(sum * vec::exp(maximum - largest))};
}

inline ExponentialSum exponential_sum(const Element* x, Index cols) {
    return ONLINE ? exponential_sum_online(x, cols) : exponential_sum_of_two_sweeps(x, cols);
}

}  // namespace rows
