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

// Where one chunk of a tile comes from and how many of its elements there are.
struct Chunk {
    const Element* from;
    Element* to;
    int count;
};

template <int WIDTH, int PITCH>
__device__ __forceinline__ Chunk chunk_of(const Matrix& from, long long row, long long col, Element* to,
                                          int number) {
    constexpr int kAcross = WIDTH / kChunk;
    const int down = number / kAcross;
    const int across = number % kAcross * kChunk;
    const long long left = row + down < from.rows ? from.cols - (col + across) : 0;
    const int count = left <= 0 ? 0 : left >= kChunk ? kChunk : static_cast<int>(left);
    const Element* source = from.start + (count == 0 ? 0 : (row + down) * from.stride + col + across);
    return {source, to + down * PITCH + across, count};
}

// HEIGHT x WIDTH elements from (row, col) on into rows of PITCH elements; 0 beyond the matrix.
template <int HEIGHT, int WIDTH, int PITCH, int THREADS>
__device__ __forceinline__ void load_tile(const Matrix& from, long long row, long long col, Element* to) {
    constexpr int kChunks = HEIGHT * WIDTH / kChunk;
    const int thread = threadIdx.x;
    if (from.aligned) {
#pragma unroll
        for (int first = 0; first < kChunks; first += THREADS) {
            if (kChunks % THREADS != 0 && first + thread >= kChunks) break;
            const Chunk chunk = chunk_of<WIDTH, PITCH>(from, row, col, to, first + thread);
            copy_chunk(chunk.to, chunk.from, chunk.count * static_cast<int>(sizeof(Element)));
        }
        return;
    }
#pragma unroll 1
    for (int number = thread; number < kChunks; number += THREADS) {
        const Chunk chunk = chunk_of<WIDTH, PITCH>(from, row, col, to, number);
#pragma unroll
        for (int i = 0; i < kChunk; ++i) chunk.to[i] = i < chunk.count ? chunk.from[i] : Element{};
    }
}
