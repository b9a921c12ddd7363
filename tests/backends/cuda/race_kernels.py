"""Kernels for the emulator's race detector: wrong ones of every customary kind, and right ones that look odd.

Each is `kernel(const float* x, float* y, long long n)` on n = 256 elements, four blocks of 64 threads unless
it is among `ONE_BLOCK`; `i` is the thread's number in the grid, `t` the one in its block.
"""

ONE_BLOCK = {
    "reduction without a barrier",
    "read in the phase of the write",
    "warp-synchronous tail",
    "shuffle in place of __syncwarp",
    "scan in place",
    "tile with one barrier",
    "flag without a fence",
    "lock without fences",
    "counter read without a barrier",
    "transpose through __syncwarp",
    "plain flag between warps",
    "buffer reused by the next round",
    "double buffer with one barrier",
    "warps hand over by a volatile flag",
    "private shared slots",
    "scan with two barriers",
}

WRONG = {
    "block carry": """
        __shared__ float total;
        if (t == 0) {
            total = blockIdx.x == 0 ? 0.0f : y[blockIdx.x * 64 - 1];
            for (int k = 0; k < 64; ++k) {
                total += x[blockIdx.x * 64 + k];
                y[blockIdx.x * 64 + k] = total;
            }
        }
    """,
    "histogram by load, add, store": """
        const int bin = int(x[i]) % 4;
        y[bin] = y[bin] + 1.0f;
    """,
    "overlapping rows": """
        y[i] = 2.0f * x[i];
        if (t == 0 && i > 0) y[i - 1] = 3.0f * x[i];
    """,
    "neighbours across blocks": """
        y[i] = x[i];
        __syncthreads();
        const float left = i > 0 ? y[i - 1] : 0.0f;
        __syncthreads();
        y[i] += left;
    """,
    "last block without a fence": """
        __shared__ bool last;
        y[i] = 2.0f * x[i];
        __syncthreads();
        if (t == 0) last = atomicAdd(&ticket, 1u) == gridDim.x - 1;
        __syncthreads();
        if (last && t == 0) {
            float sum = 0;
            for (int k = 1; k < n; ++k) sum += y[k];
            y[0] = sum;
            ticket = 0;
        }
    """,
    "last block before all have written": """
        __shared__ bool last;
        y[i] = 2.0f * x[i];
        __threadfence();
        if (t == 0) last = atomicAdd(&ticket, 1u) == gridDim.x - 1;
        __syncthreads();
        if (last && t == 0) {
            float sum = 0;
            for (int k = 1; k < n; ++k) sum += y[k];
            y[0] = sum;
            ticket = 0;
        }
    """,
    "global sum by plain stores": """
        atomicAdd(&y[0], x[i]);
        if (t == 1) y[0] += 1.0f;
    """,
    "reduction without a barrier": """
        __shared__ float s[256];
        for (int k = t; k < 256; k += 64) s[k] = x[k];
        __syncthreads();
        for (int width = 128; width > 0; width /= 2) {
            for (int k = t; k < width; k += 64) s[k] += s[k + width];
        }
        if (t == 0) y[0] = s[0];
    """,
    "read in the phase of the write": """
        __shared__ float s[64];
        s[t] = x[t];
        y[t] = s[(t + 1) % 64];
    """,
    "warp-synchronous tail": """
        __shared__ float s[64];
        s[t] = x[t] + x[t + 64] + x[t + 128] + x[t + 192];
        __syncthreads();
        if (t < 32) {
            s[t] += s[t + 32];
            if (t < 16) s[t] += s[t + 16];
            if (t < 8) s[t] += s[t + 8];
            if (t < 4) s[t] += s[t + 4];
            if (t < 2) s[t] += s[t + 2];
            if (t < 1) y[0] = s[0] + s[1];
        }
    """,
    "shuffle in place of __syncwarp": """
        __shared__ float s[64];
        s[t] = x[t];
        const float other = __shfl_xor_sync(0xFFFFFFFFu, x[t], 1);
        y[t] = s[t ^ 1] - other;
    """,
    "scan in place": """
        __shared__ float s[64];
        s[t] = x[t];
        __syncthreads();
        for (int step = 1; step < 64; step *= 2) {
            if (t >= step) s[t] += s[t - step];
            __syncthreads();
        }
        y[t] = s[t];
    """,
    "tile with one barrier": """
        __shared__ float tile[64];
        float sum = 0;
        for (int k = 0; k < n; k += 64) {
            tile[t] = x[k + t];
            __syncthreads();
            for (int j = 0; j < 64; ++j) sum += tile[j];
        }
        y[t] = sum;
    """,
    "flag without a fence": """
        __shared__ float value;
        __shared__ unsigned ready;
        if (t == 0) ready = 0;
        __syncthreads();
        if (t == 0) { value = x[0]; atomicExch(&ready, 1u); }
        if (t == 32) { while (atomicAdd(&ready, 0u) == 0) {} y[0] = value; }
    """,
    "lock without fences": """
        __shared__ int lock;
        __shared__ float sum;
        if (t == 0) { lock = 0; sum = 0; }
        __syncthreads();
        if (t % 32 == 0) {
            while (atomicCAS(&lock, 0, 1) != 0) {}
            sum += x[t];
            atomicExch(&lock, 0);
        }
        __syncthreads();
        if (t == 0) y[0] = sum;
    """,
    "counter read without a barrier": """
        __shared__ unsigned count;
        if (t == 0) count = 0;
        __syncthreads();
        if (x[t] > 0) atomicAdd(&count, 1u);
        y[t] = count > 0;
    """,
    "transpose through __syncwarp": """
        __shared__ float s[64];
        s[t] = x[t];
        __syncwarp();
        y[t] = s[63 - t];
    """,
    "plain flag between warps": """
        __shared__ float value;
        __shared__ int ready;
        if (t == 0) { ready = 0; }
        __syncthreads();
        if (t == 0) { value = x[0]; __threadfence_block(); ready = 1; }
        if (t == 32 && ready) y[0] = value;
    """,
    "buffer reused by the next round": """
        __shared__ float s[2][64];
        float sum = 0;
        s[0][t] = x[t];
        for (int k = 0; k < 4; ++k) {
            __syncthreads();
            if (k < 3) s[k % 2][t] = x[64 * (k + 1) + t];
            sum += s[k % 2][63 - t];
        }
        y[t] = sum;
    """,
    "load beyond the end": """
        const float beyond = x[i + 1];
        y[i] = i + 1 < n ? beyond : x[i];
    """,
    "load before the start": """
        float sum = 0;
        for (int k = -2; k <= 0; ++k) { const float value = x[i + k]; if (i + k >= 0) sum += value; }
        y[i] = sum;
    """,
    "load far away": """
        const float value = x[i + 100000];
        y[i] = value == 7.0f ? x[i] : 2.0f * x[i];
    """,
}

RIGHT = {
    "sum by compare-and-swap": """
        unsigned* address = reinterpret_cast<unsigned*>(&y[0]);
        unsigned seen = *address, expected;
        do {
            expected = seen;
            seen = atomicCAS(address, expected, __float_as_uint(x[i] + __uint_as_float(expected)));
        } while (expected != seen);
    """,
    "histogram by atomics": "atomicAdd(&y[int(x[i]) % 4], 1.0f);",
    "last block with a fence": """
        __shared__ bool last;
        y[i] = 2.0f * x[i];
        __threadfence();
        __syncthreads();
        if (t == 0) last = atomicAdd(&ticket, 1u) == gridDim.x - 1;
        __syncthreads();
        if (last && t == 0) {
            float sum = 0;
            for (int k = 1; k < n; ++k) sum += y[k];
            y[0] = sum;
            ticket = 0;
        }
    """,
    "last block, its first thread fences": """
        __shared__ bool last;
        y[i] = 2.0f * x[i];
        __syncthreads();
        if (t == 0) {
            __threadfence();
            last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
            __threadfence();
        }
        __syncthreads();
        if (last && t == 0) {
            float sum = 0;
            for (int k = 1; k < n; ++k) sum += y[k];
            y[0] = sum;
        }
    """,
    "one flag that all set": """
        if (x[i] > 3.0f) y[0] = 1.0f;
    """,
    "grid-stride loop": """
        for (long long k = i; k < n; k += 2 * 64) if (blockIdx.x < 2) y[k] = x[k] + 1.0f;
    """,
    "halo by shared memory": """
        __shared__ float s[66];
        s[t + 1] = x[i];
        if (t == 0) s[0] = i > 0 ? x[i - 1] : 0.0f;
        if (t == 63) s[65] = i + 1 < n ? x[i + 1] : 0.0f;
        __syncthreads();
        y[i] = s[t] + s[t + 1] + s[t + 2];
    """,
    "private arrays": """
        float mine[9];
        for (int k = 0; k < 9; ++k) mine[(k * int(x[i])) % 9] = k;
        for (int k = 1; k < 9; ++k) if (mine[k] < mine[k - 1]) {
            const float smaller = mine[k];
            mine[k] = mine[k - 1];
            mine[k - 1] = smaller;
        }
        y[i] = mine[int(x[i]) % 9];
    """,
    "lock between blocks": """
        if (t == 0) {
            while (atomicCAS(&lock, 0, 1) != 0) {}
            __threadfence();
            y[0] += x[i];
            y[1] = y[0];
            __threadfence();
            atomicExch(&lock, 0);
        }
    """,
    "blocks wait for earlier ones": """
        volatile float* carry = y;
        __shared__ float before;
        if (t == 0) {
            float sum = 0;
            for (int k = 0; k < 64; ++k) sum += x[blockIdx.x * 64 + k];
            while (atomicAdd(&ticket, 0u) != blockIdx.x) {}
            __threadfence();
            before = blockIdx.x == 0 ? 0.0f : carry[blockIdx.x - 1];
            carry[blockIdx.x] = before + sum;
            __threadfence();
            atomicExch(&ticket, blockIdx.x + 1 == gridDim.x ? 0u : blockIdx.x + 1);
        }
        __syncthreads();
        if (t > 63) y[t] = before;
    """,
    "warp sums by shuffles": """
        __shared__ float s[2];
        float sum = x[i];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
        if (t % 32 == 0) s[t / 32] = sum;
        __syncthreads();
        y[i] = s[0] + s[1];
    """,
    "warp transpose with __syncwarp": """
        __shared__ float s[2][32];
        for (int round = 0; round < 3; ++round) {
            s[t / 32][t % 32] = x[i] + round;
            __syncwarp();
            y[i] = s[t / 32][31 - t % 32];
            __syncwarp();
        }
    """,
    "partial masks": """
        __shared__ float s[64];
        const unsigned mask = t % 32 < 16 ? 0x0000FFFFu : 0xFFFF0000u;
        s[t] = x[i];
        __syncwarp(mask);
        y[i] = s[t ^ 15];
    """,
    "vote at a barrier": """
        __shared__ float s[64];
        s[t] = x[i];
        const int above = __syncthreads_count(x[i] > 100.0f);
        y[i] = s[63 - t] + above;
    """,
    "half words of one word": """
        unsigned short* halves = reinterpret_cast<unsigned short*>(y + 64 * blockIdx.x);
        halves[t] = t; halves[t + 64] = 64 + t;
    """,
    "wide and narrow accesses": """
        __shared__ __align__(16) float s[64];
        const float* from = x + 64 * blockIdx.x;
        if (t < 16) *reinterpret_cast<float4*>(s + 4 * t) = *reinterpret_cast<const float4*>(from + 4 * t);
        __syncthreads();
        y[i] = s[63 - t];
    """,
    "shared counter": """
        __shared__ unsigned count;
        if (t == 0) count = 0;
        __syncthreads();
        if (x[i] > 100.0f) atomicAdd(&count, 1u);
        __syncthreads();
        y[i] = count;
    """,
    "early exit": """
        __shared__ float s[64];
        if (t >= 48) { y[i] = 0; return; }
        s[t] = x[i];
        __syncthreads();
        y[i] = s[47 - t];
    """,
    "double buffer with one barrier": """
        __shared__ float s[2][64];
        float sum = 0;
        s[0][t] = x[t];
        __syncthreads();
        for (int k = 0; k < 4; ++k) {
            if (k < 3) s[(k + 1) % 2][t] = x[64 * (k + 1) + t];
            sum += s[k % 2][63 - t];
            __syncthreads();
        }
        y[t] = sum;
    """,
    "warps hand over by a volatile flag": """
        __shared__ float value;
        __shared__ volatile int ready;
        if (t == 0) ready = 0;
        __syncthreads();
        if (t == 0) { value = x[0]; __threadfence_block(); ready = 1; }
        if (t == 32) { while (ready == 0) {} __threadfence_block(); y[0] = value; }
    """,
    "private shared slots": """
        __shared__ float s[64];
        s[t] = x[t];
        for (int k = 1; k < 4; ++k) s[t] += x[t + 64 * k];
        y[t] = s[t];
    """,
    "scan with two barriers": """
        __shared__ float s[64];
        s[t] = x[t];
        __syncthreads();
        for (int step = 1; step < 64; step *= 2) {
            const float left = t >= step ? s[t - step] : 0.0f;
            __syncthreads();
            s[t] += left;
            __syncthreads();
        }
        y[t] = s[t];
    """,
}
