// Matrix product c = a b, alone or with bias and exact GELU in the epilogue.
//
// One block computes one BLOCK_M x BLOCK_N tile of c with WARPS warps, BLOCK_K columns of a at a time.
//
// 1. The tiles of a and b lie in shared memory; ldmatrix brings them into the fragments of mma.sync
//    (m16n8k16), which the tensor cores multiply and accumulate in float32. Rows are padded by 16 bytes, so
//    that the eight rows of a fragment lie in different banks. Limited at first by the latency of the loads.
// 2. STAGES > 1: cp.async copies the tiles of later steps past the registers while this one multiplies.
//    Limited by shared memory, and by the fragments' loads where a warp's tile is small.
// 3. GROUP_M > 1: blocks walk down GROUP_M rows of tiles before they go to the next column, so those that run
//    together share tiles in L2.
// 4. The epilogue adds the bias and applies GELU while the tile is still in registers.
//
// float32 is multiplied in full by fused multiply-adds, not as tf32, so without tensor cores. On Hopper and
// Blackwell mma.sync does not reach the rate of wgmma and tcgen05, which need other fragments. Rows of a or b
// that do not begin at a multiple of 16 bytes are copied element by element, without overlap.

#include "warp_tile.cuh"

namespace {

constexpr int kThreads = 32 * WARPS;
constexpr int kStageA = BLOCK_M * kPitchA;
constexpr int kStage = kStageA + BLOCK_K * kPitchB;

struct Place {
    long long row;
    long long col;
};

// The block's tile, GROUP_M rows of tiles at a time.
__device__ __forceinline__ Place place_of(long long block, long long rows, long long cols) {
    const long long down = (rows + BLOCK_M - 1) / BLOCK_M;
    const long long across = (cols + BLOCK_N - 1) / BLOCK_N;
    const long long group = block / (GROUP_M * across);
    const long long inside = block % (GROUP_M * across);
    const long long left = down - group * GROUP_M;
    const long long height = left < GROUP_M ? left : GROUP_M;
    return {(group * GROUP_M + inside % height) * BLOCK_M, inside / height * BLOCK_N};
}

__device__ __forceinline__ void load_step(const Matrix& a, const Matrix& b, Place tile, long long step,
                                          Element* stages) {
    Element* stage = stages + step % STAGES * kStage;
    load_tile<BLOCK_M, BLOCK_K, kPitchA, kThreads>(a, tile.row, step * BLOCK_K, stage);
    load_tile<BLOCK_K, BLOCK_N, kPitchB, kThreads>(b, step * BLOCK_K, tile.col, stage + kStageA);
}

// The step's tiles are there for every thread, and every thread has left the step before.
__device__ __forceinline__ void arrive() {
    await_copies<(STAGES > 2 ? STAGES - 2 : 0)>();
    __syncthreads();
}

#if EPILOGUE_BIAS_GELU
// x (1 + erf(x / sqrt 2)) / 2
__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }
#endif

}  // namespace

// a[M, K] and b[K, N] with any row stride, bias[N] with the epilogue bias_gelu, c[M, N].
extern "C" __global__ void __launch_bounds__(kThreads)
    matmul(const Element* a, const Element* b,
#if EPILOGUE_BIAS_GELU
           const Element* bias,
#endif
           Element* c, long long M, long long N, long long K, long long a_stride, long long b_stride) {
    extern __shared__ __align__(16) unsigned char shared[];
    Element* stages = reinterpret_cast<Element*>(shared);
    const Matrix left(a, M, K, a_stride);
    const Matrix right(b, K, N, b_stride);
    const Place tile = place_of(blockIdx.x, M, N);
    const long long steps = (K + BLOCK_K - 1) / BLOCK_K;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / kWarpCols * kTileM;
    const int warp_col = warp % kWarpCols * kTileN;
    WarpTile sums;
    for (long long step = 0; step < STAGES - 1; ++step) {
        if (step < steps) load_step(left, right, tile, step, stages);
        close_copies();
    }
    for (long long step = 0; step < steps; ++step) {
        const long long later = step + STAGES - 1;
        if (STAGES == 1) {
            __syncthreads();
            load_step(left, right, tile, later, stages);
            close_copies();
        }
        arrive();
        // Into the stage that the step before has read.
        if (STAGES > 1) {
            if (later < steps) load_step(left, right, tile, later, stages);
            close_copies();
        }
        const Element* stage = stages + step % STAGES * kStage;
        sums.multiply(stage + warp_row * kPitchA, stage + kStageA + warp_col);
    }
    const bool pairs = N % 2 == 0 && reinterpret_cast<unsigned long long>(c) % (2 * sizeof(Element)) == 0;
    sums.for_each_pair([&](int row, int col, float first, float second) {
        const long long m = tile.row + warp_row + row;
        const long long n = tile.col + warp_col + col;
        if (m >= M || n >= N) return;
        const bool both = n + 1 < N;
#if EPILOGUE_BIAS_GELU
        first = gelu(first + to_float(bias[n]));
        if (both) second = gelu(second + to_float(bias[n + 1]));
#endif
        Element* place = c + m * N + n;
        if (pairs) {
            *reinterpret_cast<Pack<2>*>(place) = Pack<2>{from_float(first), from_float(second)};
        } else {
            place[0] = from_float(first);
            if (both) place[1] = from_float(second);
        }
    });
}
