// The tile of c that one warp accumulates: on tensor cores for 16-bit elements, by float32 multiply-adds else.
#pragma once

#include "copy.cuh"

constexpr int kWarpRows = BLOCK_M >= 32 ? 2 : 1;  // warps below one another
constexpr int kWarpCols = WARPS / kWarpRows;
constexpr int kTileM = BLOCK_M / kWarpRows;
constexpr int kTileN = BLOCK_N / kWarpCols;
constexpr int kPitchA = BLOCK_K + kChunk;  // 16 bytes more than the tile: rows start in different banks
constexpr int kPitchB = BLOCK_N + kChunk;

#if ELEMENT_FLOAT32

// Lanes lie 4 x 8 over the tile; a lane has every fourth row, and NEIGHBOURS columns in every 8 x NEIGHBOURS.
struct WarpTile {
    static constexpr int kNeighbours = kTileN >= 32 ? 4 : 2;
    static constexpr int kRows = kTileM / 4;
    static constexpr int kCols = kTileN / 8;
    float sums[kRows][kCols] = {};

    __device__ static int row_of(int i) { return static_cast<int>(threadIdx.x) % 32 / 8 + 4 * i; }
    __device__ static int col_of(int j) {
        const int group = j / kNeighbours;
        return (static_cast<int>(threadIdx.x) % 8 + 8 * group) * kNeighbours + j % kNeighbours;
    }

    // a: kTileM rows of kPitchA, b: BLOCK_K rows of kPitchB; a is read four columns at a time.
    // Unrolled in full the compiler moves loads so far ahead that sums spill.
    __device__ __forceinline__ void multiply(const Element* a, const Element* b) {
#pragma unroll 2
        for (int k = 0; k < BLOCK_K; k += 4) {
            Pack<4> left[kRows];
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                left[i] = *reinterpret_cast<const Pack<4>*>(a + row_of(i) * kPitchA + k);
            }
#pragma unroll
            for (int depth = 0; depth < 4; ++depth) {
                float right[kCols];
#pragma unroll
                for (int j = 0; j < kCols; j += kNeighbours) {
                    const Element* place = b + (k + depth) * kPitchB + col_of(j);
                    const auto pack = *reinterpret_cast<const Pack<kNeighbours>*>(place);
#pragma unroll
                    for (int n = 0; n < kNeighbours; ++n) right[j + n] = pack.values[n];
                }
#pragma unroll
                for (int i = 0; i < kRows; ++i) {
#pragma unroll
                    for (int j = 0; j < kCols; ++j) {
                        sums[i][j] = fmaf(left[i].values[depth], right[j], sums[i][j]);
                    }
                }
            }
        }
    }

    // Calls body(row, column, sum, sum of the next column) for all that this lane holds.
    template <class Body>
    __device__ __forceinline__ void for_each_pair(Body body) const {
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
            for (int j = 0; j < kCols; j += 2) body(row_of(i), col_of(j), sums[i][j], sums[i][j + 1]);
        }
    }
};

#else

#if ELEMENT_BFLOAT16
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#endif

// Fragments as in the PTX ISA 9.0, section 9.7.15.5.8 (mma.m16n8k16) and 9.7.15.5.15 (ldmatrix).
struct WarpTile {
    static constexpr int kRows = kTileM / 16;
    static constexpr int kCols = kTileN / 8;
    static_assert(kTileM % 16 == 0 && kTileN % 16 == 0 && BLOCK_K % 16 == 0, "fragments must be whole");
    float sums[kRows][kCols][4] = {};

    // Four 8 x 8 matrices; each lane gives the address of one of their 32 rows.
    __device__ static void load_fragment(unsigned (&to)[4], const Element* row) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(shared_address(row)));
    }
    __device__ static void load_transposed(unsigned (&to)[4], const Element* row) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(shared_address(row)));
    }
    __device__ static void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
        asm volatile(MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }

    // a: kTileM rows of kPitchA, b: BLOCK_K rows of kPitchB.
    __device__ __forceinline__ void multiply(const Element* a, const Element* b) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int k = 0; k < BLOCK_K; k += 16) {
            unsigned left[kRows][4];
            unsigned right[kCols / 2][4];
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                load_fragment(left[i], a + (16 * i + lane % 16) * kPitchA + k + lane / 16 * 8);
            }
#pragma unroll
            for (int j = 0; j < kCols / 2; ++j) {
                load_transposed(right[j], b + (k + lane % 16) * kPitchB + 16 * j + lane / 16 * 8);
            }
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
#pragma unroll
                for (int j = 0; j < kCols; ++j) {
                    multiply_add(sums[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
                }
            }
        }
    }

    // Calls body(row, column, sum, sum of the next column) for all that this lane holds.
    template <class Body>
    __device__ __forceinline__ void for_each_pair(Body body) const {
        const int group = threadIdx.x % 32 / 4;
        const int pair = threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
            for (int j = 0; j < kCols; ++j) {
                body(16 * i + group, 8 * j + pair, sums[i][j][0], sums[i][j][1]);
                body(16 * i + group + 8, 8 * j + pair, sums[i][j][2], sums[i][j][3]);
            }
        }
    }
};

#endif
