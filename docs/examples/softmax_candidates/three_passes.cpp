// Softmax in three passes over a row, as one would write it first: maximum, sum of exponentials, scale.
// The compiler vectorises the first pass only: std::exp is a call. float32 only.
#ifndef ELEMENT_FLOAT32
#error "three_passes.cpp is for float32"
#endif
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

extern "C" int softmax(const float* x, float* y, std::int64_t rows, std::int64_t cols, std::int64_t x_stride) {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * x_stride;
        float* to = y + row * cols;
        float largest = -std::numeric_limits<float>::infinity();
        for (std::int64_t col = 0; col < cols; ++col) largest = std::max(largest, from[col]);
        float sum = 0.0f;
        for (std::int64_t col = 0; col < cols; ++col) sum += to[col] = std::exp(from[col] - largest);
        for (std::int64_t col = 0; col < cols; ++col) to[col] /= sum;
    }
    return 0;
}
