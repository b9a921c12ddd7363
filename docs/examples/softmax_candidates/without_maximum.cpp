// A wrong one, to see it rejected: without the maximum large inputs overflow.
#include <cmath>
#include <cstdint>

extern "C" int softmax(const float* x, float* y, std::int64_t rows, std::int64_t cols, std::int64_t x_stride) {
    for (std::int64_t row = 0; row < rows; ++row) {
        float sum = 0.0f;
        for (std::int64_t col = 0; col < cols; ++col) sum += y[row * cols + col] = std::exp(x[row * x_stride + col]);
        for (std::int64_t col = 0; col < cols; ++col) y[row * cols + col] /= sum;
    }
    return 0;
}
