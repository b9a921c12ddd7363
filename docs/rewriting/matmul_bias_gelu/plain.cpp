// Matrix product, then bias and GELU in loops of their own, as one would write it first, to see it rewritten:
// kernelmill run search=mutate. Without a product (K = 0) the sums are 0. float32 only.
#ifndef ELEMENT_FLOAT32
#error "plain.cpp is for float32"
#endif
#include <cmath>
#include <cstdint>

extern "C" int matmul(const float* a, const float* b, const float* bias, float* c, std::int64_t M, std::int64_t N,
                      std::int64_t K, std::int64_t stride_a, std::int64_t stride_b) {
#pragma omp parallel for
    for (std::int64_t i = 0; i < M; ++i) {
        for (std::int64_t j = 0; j < N; ++j) {
            float sum = 0.0f;
            for (std::int64_t k = 0; k < K; ++k) {
                sum += a[i * stride_a + k] * b[k * stride_b + j];
            }
            c[i * N + j] = sum;
        }
    }
#pragma omp parallel for
    for (std::int64_t i = 0; i < M; ++i) {
        for (std::int64_t j = 0; j < N; ++j) {
            const float value = c[i * N + j] + bias[j];
            c[i * N + j] = 0.5f * value * (1.0f + std::erf(value * 0.70710678f));
        }
    }
    return 0;
}
