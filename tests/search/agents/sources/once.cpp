// Softmax over rows. Change: each exponential once, in float32, kept in y, which is scaled afterwards.

#include <cmath>
#include <cstdint>

extern "C" int softmax(const float* x, float* y, std::int64_t rows, std::int64_t cols, std::int64_t stride_x) {
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * stride_x;
        float* to = y + row * cols;
        float maximum = -INFINITY;
        for (std::int64_t col = 0; col < cols; ++col) {
            if (from[col] > maximum) maximum = from[col];
        }
        double sum = 0.0;
        for (std::int64_t col = 0; col < cols; ++col) {
            to[col] = std::exp(from[col] - maximum);
            sum += to[col];
        }
        const auto factor = static_cast<float>(1.0 / sum);
        for (std::int64_t col = 0; col < cols; ++col) to[col] *= factor;
    }
    return 0;
}
