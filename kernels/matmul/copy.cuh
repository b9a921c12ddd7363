// Tiles of a and b on their way to shared memory, past the registers (cp.async) where rows are aligned.
#pragma once

#include "../element.cuh"

__device__ __forceinline__ unsigned shared_address(const void* place) {
    return static_cast<unsigned>(__cvta_generic_to_shared(place));
}

// 16 bytes, of which the first `bytes` are read and the others become 0.
__device__ __forceinline__ void copy_chunk(Element* to, const Element* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared_address(to)), "l"(from), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all but the newest `PENDING` groups of this thread have arrived.
template <int PENDING>
__device__ __forceinline__ void await_copies() {
    asm volatile("cp.async.wait_group %0;" : : "n"(PENDING) : "memory");
}

// A matrix of which one tile after the other is loaded.
struct Matrix {
    const Element* start;
    long long rows;
    long long cols;
    long long stride;  // elements from row to row
    bool aligned;      // every row begins at a multiple of 16 bytes

    __device__ __forceinline__ Matrix(const Element* start, long long rows, long long cols, long long stride)
        : start(start), rows(rows), cols(cols), stride(stride),
          aligned(is_aligned(start) && stride % kChunk == 0) {}
};

// HEIGHT x WIDTH elements from (row, col) on into rows of PITCH elements; 0 beyond the matrix.
template <int HEIGHT, int WIDTH, int PITCH, int THREADS>
__device__ __forceinline__ void load_tile(const Matrix& from, long long row, long long col, Element* to) {
    constexpr int kAcross = WIDTH / kChunk;
#pragma unroll
    for (int first = 0; first < HEIGHT * kAcross; first += THREADS) {
        const int chunk = first + threadIdx.x;
        if (HEIGHT * kAcross % THREADS != 0 && chunk >= HEIGHT * kAcross) break;
        const int down = chunk / kAcross;
        const int across = chunk % kAcross * kChunk;
        const long long left = row + down < from.rows ? from.cols - (col + across) : 0;
        const int count = left <= 0 ? 0 : left >= kChunk ? kChunk : static_cast<int>(left);
        const Element* source = from.start + (count == 0 ? 0 : (row + down) * from.stride + col + across);
        Element* place = to + down * PITCH + across;
        if (from.aligned) {
            copy_chunk(place, source, count * static_cast<int>(sizeof(Element)));
        } else {
            for (int i = 0; i < kChunk; ++i) place[i] = i < count ? source[i] : Element{};
        }
    }
}
