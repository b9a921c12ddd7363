// Root-mean-square normalisation as one would write it first, to see it rewritten: kernelmill run search=mutate.
// The sum of squares is one chain of additions, which the compiler must not reorder. float32 only.
#ifndef ELEMENT_FLOAT32
#error "plain.cpp is for float32"
#endif
#include <cmath>
#include <cstdint>

extern "C" int rms_norm(const float* x, const float* weight, float* y, std::int64_t rows, std::int64_t cols,
                        std::int64_t stride_x, double eps) {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * stride_x;
        float* to = y + row * cols;
        float squares = 0.0f;
        for (std::int64_t col = 0; col < cols; ++col) {
            squares += from[col] * from[col];
        }
        const float factor = 1.0f / std::sqrt(squares / static_cast<float>(cols) + static_cast<float>(eps));
        for (std::int64_t col = 0; col < cols; ++col) {
            to[col] = from[col] * factor * weight[col];
        }
    }
    return 0;
}
