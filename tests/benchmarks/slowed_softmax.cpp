// The softmax of kernels/softmax/softmax.cpp with extra work: EXTRA_PERCENT of its rows, evenly spread, are computed
// twice by the thread that has them. Same parallel region, same schedule, same row function, so the extra time is
// about that share: the second time the row lies in the nearest cache, but the exponentials take most of the time.

#include "../../kernels/softmax/softmax.cpp"

extern "C" int slowed_softmax(const Element* x, Element* y, std::int64_t rows, std::int64_t cols,
                              std::int64_t stride_x) {
    int failed = 0;
#pragma omp parallel if (rows * cols >= kParallelElements) reduction(| : failed)
    {
        float* exponentials = nullptr;
#if !ONLINE
        thread_local vec::Scratch scratch;
        const auto vectors = static_cast<std::size_t>((cols + LANES - 1) / LANES);
        exponentials = static_cast<float*>(scratch.reserve(vectors * LANES * sizeof(float)));
        failed |= exponentials == nullptr && vectors > 0;
#endif
#pragma omp for schedule(static)
        for (std::int64_t row = 0; row < rows; ++row) {
            const bool again = (row + 1) * EXTRA_PERCENT / 100 > row * EXTRA_PERCENT / 100;
            for (int times = 0; times < (again ? 2 : 1); ++times) {
                if (!failed) row_softmax(x + row * stride_x, y + row * cols, cols, exponentials);
                asm volatile("" ::: "memory");  // or the compiler would see that it need not be done twice
            }
        }
        if (STREAM) vec::stream_fence();
    }
    return failed;
}
