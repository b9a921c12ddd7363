// Doubles its input, or fails in one of many ways.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if FAULT == 1
#error "does not compile"
#endif

extern "C" int faulty(const float* x, float* y, std::int64_t rows, std::int64_t cols) {
    const std::int64_t n = rows * cols;
#if FAULT == 2
    *reinterpret_cast<volatile int*>(8) = 1;
#elif FAULT == 3
    for (volatile int i = 0;; i = 1) {
    }
#elif FAULT == 4
    for (;;) {
        void* block = std::malloc(32 << 20);
        std::memset(block, 1, 32 << 20);
    }
#elif FAULT == 5
    for (;;) std::puts("noise noise noise noise noise noise noise noise noise noise noise noise");
#elif FAULT == 6
    return 0;
#elif FAULT == 7
    y[n] = 1.0f;
#elif FAULT == 8
    const_cast<float*>(x)[0] += 1.0f;
#endif
    for (std::int64_t i = 0; i < n; ++i) y[i] = (FAULT == 9 ? 3.0f : 2.0f) * x[i];
    return 0;
}
