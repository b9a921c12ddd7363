// Sums of a tile -> rows of the result.
#pragma once

#include "vector.hpp"

// sums[rows, width] -> the first `count` columns of y[rows, stride]; width is a multiple of LANES.
inline void store_rows(const float* sums, std::ptrdiff_t width, std::ptrdiff_t rows, std::ptrdiff_t count,
                       vec::Element* y, std::ptrdiff_t stride) {
    for (std::ptrdiff_t row = 0; row < rows; ++row) {
        vec::Element* to = y + row * stride;
        for (std::ptrdiff_t col = 0; col < count; col += LANES) {
            const auto values = vec::load_raw<vec::Floats>(sums + row * width + col);
            if (col + LANES <= count) {
                vec::store(to + col, values);
            } else {
                vec::store_some(to + col, count - col, values);
            }
        }
    }
}
