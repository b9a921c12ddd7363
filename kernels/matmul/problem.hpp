// What all parts of the matrix product share.
#pragma once

#include "../vector.hpp"

#include <algorithm>

namespace product {

using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

constexpr Index kCols = Index{LANES} * MICRO_VECTORS;  // of one micro-tile

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }

struct Problem {
    const Element* a;
    const Element* b;
    const Element* bias;
    Element* c;
    Index rows, cols, depth;
    Index stride_a, stride_b;
};

}  // namespace product
