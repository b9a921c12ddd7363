// The softmax of kernels/softmax/softmax.cpp with extra work: EXTRA_PERCENT of its rows are computed twice.
// Same parallel region, same schedule, same row function, so the extra time is that share of the rows' time.

#include "../../kernels/softmax/softmax.cpp"

extern "C" int slowed_softmax(const Element* x, Element* y, std::int64_t rows, std::int64_t cols,
                              std::int64_t stride_x) {
    int failed = 0;
    const std::int64_t all = rows + rows * EXTRA_PERCENT / 100;
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
        for (std::int64_t row = 0; row < all; ++row) {
            const std::int64_t again = row % rows;
            if (!failed) row_softmax(x + again * stride_x, y + again * cols, cols, exponentials);
        }
        if (STREAM) vec::stream_fence();
    }
    return failed;
}
