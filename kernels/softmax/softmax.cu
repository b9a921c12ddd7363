// Softmax over rows: y[r, c] = exp(x[r, c] - max) / sum, float32 arithmetic for every element type.
//
// WARPS warps share a row, and ROWS rows share a block.
//
// 1. Three passes (ONLINE=0). The row goes to shared memory as float32 while its maximum is taken; the
//    exponentials replace it there while they are summed; the product with 1 / sum goes out. Memory is read
//    once and written once, one exponential per element. Limited by shared memory: long rows leave room for
//    few blocks on a multiprocessor, and the longest do not fit at all.
// 2. Online (ONLINE=1; Milakov and Gimelshein 2018, arXiv:1805.02867). Each thread carries its own maximum and
//    sum and rescales the sum when the maximum grows; the row is read a second time, out of L2 where it
//    fits, and the exponentials are computed twice. No shared memory beyond one pair per warp: for long rows.
// 3. VECTORIZE: a thread loads and stores 16 bytes at once where the rows of x and y begin at a multiple of
//    16 bytes; other rows, and the end of a row, go element by element.
// 4. WARPS=1 needs no barrier: maximum and sum travel by shuffles alone. ROWS > 1 fills blocks of short rows.
//
// NaN and infinities come out as in torch.softmax: a NaN or +infinity in a row, or nothing but -infinity,
// makes the row NaN; a masked (-infinity) element beside others is exactly 0.

#include "../element.cuh"

namespace {

constexpr int kThreads = 32 * WARPS;  // of a row
constexpr int kVector = VECTORIZE ? kChunk : 1;
constexpr float kLowest = -3.402823466e38f;  // finite: of a row of nothing but -infinity, 0 / 0 remains
constexpr float kLog2E = 1.4426950408889634f;

__device__ __forceinline__ float exponential(float distance) { return exp2f(distance * kLog2E); }

// A row as its threads share it: kVector elements each in every round, neighbours where the row is aligned.
struct Row {
    const Element* x;
    Element* y;
    long long cols;
    bool aligned;

    __device__ __forceinline__ long long rounds() const {
        return (cols + kThreads * kVector - 1) / (kThreads * kVector);
    }

    __device__ __forceinline__ long long column(long long round, int i) const {
        const int thread = threadIdx.x % kThreads;
        if (aligned) return (round * kThreads + thread) * kVector + i;
        return (round * kVector + i) * kThreads + thread;
    }

    __device__ __forceinline__ bool is_whole(long long round) const {
        return aligned && column(round, kVector - 1) < cols;
    }

    // -infinity beyond the row: the exponential is 0.
    __device__ __forceinline__ void load(long long round, float (&values)[kVector]) const {
        if (is_whole(round)) {
            const auto pack = *reinterpret_cast<const Pack<kVector>*>(x + column(round, 0));
#pragma unroll
            for (int i = 0; i < kVector; ++i) values[i] = to_float(pack.values[i]);
            return;
        }
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
            const long long col = column(round, i);
            values[i] = col < cols ? to_float(x[col]) : __int_as_float(0xFF800000);
        }
    }

    __device__ __forceinline__ void store(long long round, const float (&values)[kVector]) const {
        if (is_whole(round)) {
            Pack<kVector> pack;
#pragma unroll
            for (int i = 0; i < kVector; ++i) pack.values[i] = from_float(values[i]);
            *reinterpret_cast<Pack<kVector>*>(y + column(round, 0)) = pack;
            return;
        }
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
            const long long col = column(round, i);
            if (col < cols) y[col] = from_float(values[i]);
        }
    }
};

__device__ __forceinline__ float from_lane(float value, int distance) {
    return __shfl_xor_sync(0xFFFFFFFFu, value, distance);
}

#if ONLINE
// The maximum so far and the sum of exponentials relative to it.
struct Statistics {
    float maximum;
    float sum;
};

__device__ __forceinline__ Statistics from_lane(Statistics value, int distance) {
    return {from_lane(value.maximum, distance), from_lane(value.sum, distance)};
}
#endif

// What all threads of the row have found, combined; every thread of the block calls it.
template <class Value, class Combine>
__device__ __forceinline__ Value across_row(Value value, Value (&parts)[ROWS * WARPS], Combine combine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value = combine(value, from_lane(value, distance));
    if (WARPS == 1) return value;
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    const int first = threadIdx.x / kThreads * WARPS;
    value = parts[first];
#pragma unroll
    for (int warp = 1; warp < WARPS; ++warp) value = combine(value, parts[first + warp]);
    return value;
}

#if ONLINE

__device__ __forceinline__ void row_softmax(const Row& row) {
    __shared__ Statistics parts[ROWS * WARPS];
    Statistics found{kLowest, 0.0f};
    for (long long round = 0; round < row.rounds(); ++round) {
        float values[kVector];
        row.load(round, values);
        float larger = found.maximum;
#pragma unroll
        for (int i = 0; i < kVector; ++i) larger = fmaxf(values[i], larger);
        found.sum *= exponential(found.maximum - larger);
#pragma unroll
        for (int i = 0; i < kVector; ++i) found.sum += exponential(values[i] - larger);
        found.maximum = larger;
    }
    found = across_row(found, parts, [](Statistics a, Statistics b) {
        const float maximum = fmaxf(a.maximum, b.maximum);
        const float sum = a.sum * exponential(a.maximum - maximum) + b.sum * exponential(b.maximum - maximum);
        return Statistics{maximum, sum};
    });
    const float factor = 1.0f / found.sum;
    for (long long round = 0; round < row.rounds(); ++round) {
        float values[kVector];
        row.load(round, values);
#pragma unroll
        for (int i = 0; i < kVector; ++i) values[i] = exponential(values[i] - found.maximum) * factor;
        row.store(round, values);
    }
}

#else

// A thread reads from shared memory only what it wrote there itself, its share kThreads floats apart: lanes of
// a warp touch neighbouring banks, however many neighbours in the row each of them loads.
__device__ __forceinline__ void row_softmax(const Row& row, float* kept) {
    __shared__ float maxima[ROWS * WARPS];
    __shared__ float sums[ROWS * WARPS];
    float maximum = kLowest;
    for (long long round = 0; round < row.rounds(); ++round) {
        float values[kVector];
        row.load(round, values);
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
            kept[(round * kVector + i) * kThreads] = values[i];
            maximum = fmaxf(values[i], maximum);
        }
    }
    maximum = across_row(maximum, maxima, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0.0f;
    for (long long place = 0; place < row.rounds() * kVector; ++place) {
        const float value = exponential(kept[place * kThreads] - maximum);
        kept[place * kThreads] = value;
        sum += value;
    }
    sum = across_row(sum, sums, [](float a, float b) { return a + b; });
    const float factor = 1.0f / sum;
    for (long long round = 0; round < row.rounds(); ++round) {
        float values[kVector];
#pragma unroll
        for (int i = 0; i < kVector; ++i) values[i] = kept[(round * kVector + i) * kThreads] * factor;
        row.store(round, values);
    }
}

#endif

}  // namespace

// x[rows, cols] with x_stride elements from row to row, y[rows, cols]; ROWS rows per block.
extern "C" __global__ void __launch_bounds__(kThreads * ROWS)
    softmax(const Element* x, Element* y, long long rows, long long cols, long long x_stride) {
    const int slot = threadIdx.x / kThreads;
    const long long number = static_cast<long long>(blockIdx.x) * ROWS + slot;
    const Element* from = x + number * x_stride;
    Element* to = y + number * cols;
    // Threads beyond the last row have no columns, but take part in the barriers.
    const Row row{from, to, number < rows ? cols : 0, is_aligned(from) && is_aligned(to)};
#if ONLINE
    row_softmax(row);
#else
    extern __shared__ float rows_kept[];
    const long long share = (cols + kThreads * kVector - 1) / (kThreads * kVector) * kVector;
    row_softmax(row, rows_kept + slot * kThreads * share + threadIdx.x % kThreads);
#endif
}
