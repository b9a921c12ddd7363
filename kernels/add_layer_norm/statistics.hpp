// The statistics of a row that layer normalisation and its gradients begin with.
#pragma once

#include "../rows.hpp"

namespace rows {

struct Statistics {
    float mean;
    float inverse;  // of the standard deviation
};

inline float row_mean(const Element* h, Index cols) {
    Floats sums[UNROLL] = {};
    for_each_vector(0, cols, [&](Index col, int u, auto whole) { sums[u] += load(whole, h + col, cols - col); });
    return sum_of(sums) / static_cast<float>(cols);
}

}  // namespace rows
