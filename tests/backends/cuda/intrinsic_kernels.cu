// Kernels that use intrinsics and device functions of PyTorch; `test_emulated_extension.py` calls them.
#include <torch/extension.h>
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/DeviceUtils.cuh>
#include <ATen/cuda/detail/KernelUtils.h>
#include <cub/block/block_reduce.cuh>
#include <cuda/functional>
#include <cuda/std/functional>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include <vector>

#define ROUNDED(NAME, ...) \
    *out = NAME##_rn(__VA_ARGS__), out += n, *out = NAME##_rz(__VA_ARGS__), out += n; \
    *out = NAME##_rd(__VA_ARGS__), out += n, *out = NAME##_ru(__VA_ARGS__), out += n
#define NEXT(VALUE) *out = VALUE, out += n

__global__ void C10_LAUNCH_BOUNDS_2(128, 4) rounded(const float* x, const float* y, float* results, int n) {
    CUDA_KERNEL_LOOP(i, n) {
        float* out = results + i;
        ROUNDED(__fadd, x[i], y[i]);
        ROUNDED(__fmul, x[i], y[i]);
        ROUNDED(__fdiv, x[i], y[i]);
        ROUNDED(__fsqrt, fabsf(x[i]));
        ROUNDED(__int2float, __float_as_int(x[i]));
        ROUNDED(__float2int, 100 * x[i]);
        ROUNDED(__float2uint, 100 * x[i]);
        ROUNDED(__float2ll, 1e30f * x[i]);
    }
}

__global__ void C10_LAUNCH_BOUNDS_1(128) functions(const float* x, float* results, int n) {
    CUDA_KERNEL_LOOP_TYPE(i, n, int64_t) {
        float *out = results + i, sine, cosine;
        __sincosf(x[i], &sine, &cosine);
        NEXT(sine), NEXT(cosine);
        sincosf(x[i], &sine, &cosine);
        NEXT(sine + cosine);
        sincospif(x[i], &sine, &cosine);
        NEXT(sine), NEXT(cosine), NEXT(__tanhf(x[i])), NEXT(__exp10f(x[i])), NEXT(__frsqrt_rn(fabsf(x[i])));
    }
}

// The same names for both types, and those of one.
template <class Pair, class Number>
__device__ void of_16_bits(float x, float y, float*& out, int n, Pair (*pair)(Number, Number)) {
    const Number a = x, b = y;
    const Pair both = pair(a, b);
    NEXT(hexp2(a)), NEXT(hlog(__habs(a))), NEXT(hrcp(a)), NEXT(htanh(b)), NEXT(__hmax(a, b)), NEXT(__hfma(a, b, a));
    NEXT(__low2float(h2exp2(both))), NEXT(__high2float(h2log(__habs2(both)))), NEXT(__high2float(h2rcp(both)));
    NEXT(__low2float(__hgt2(both, pair(b, a)))), NEXT(__hbge2(both, both)), NEXT(__hneu(a, b));
    NEXT(__low2float(__lowhigh2highlow(both)));
}
__global__ void C10_LAUNCH_BOUNDS_0 numbers_of_16_bits(const float* x, const float* y, float* results, int n) {
    CUDA_KERNEL_LOOP(i, n) {
        float* out = results + i;
        of_16_bits<half2, half>(x[i], y[i], out, n, __halves2half2);
        of_16_bits<nv_bfloat162, nv_bfloat16>(x[i], y[i], out, n, make_bfloat162);
        NEXT(__high2float(__low2half2(__floats2half2_rn(x[i], y[i]))));
        NEXT(__low2float(__lows2half2(__floats2half2_rn(x[i], y[i]), __floats2half2_rn(y[i], x[i]))));
        NEXT(__ushort_as_bfloat16(__bfloat16_as_ushort(__float2bfloat16(x[i])) ^ 0x8000));
    }
}

__global__ void integers(unsigned* out) {
    const unsigned x = 0x80C0FF01u, y = 0x12345678u;
    int all;
    unsigned matched = __match_all_sync(~0u, 7, &all);
    if (threadIdx.x != 0) return;
    *out++ = __byte_perm(x, y, 0x7610);
    *out++ = __funnelshift_l(x, y, 36), *out++ = __funnelshift_r(x, y, 4), *out++ = __funnelshift_rc(x, y, 40);
    *out++ = __dp4a(x, y, 1u), *out++ = __dp4a((int)x, (int)y, 1), *out++ = __brev(x), *out++ = matched + all;
    *out++ = __float_as_uint(__fadd_ru(1.f, 1e-30f)), *out++ = __float_as_uint(__fmul_rz(3e38f, 2.f));
    *out++ = __float2int_rz(__int_as_float(0x7FC00000)), *out++ = __float2uint_rz(1e10f), *out++ = C10_WARP_SIZE;
}

template <typename scalar_t>
__global__ void atomics(const scalar_t* x, scalar_t* y, int n) {
    CUDA_KERNEL_LOOP(i, n) {
        gpuAtomicAdd(y, x[i]);
        gpuAtomicAddNoReturn(y + 1, x[i]);
        gpuAtomicMax(y + 2, x[i]);
        gpuAtomicMin(y + 3, x[i]);
    }
}

__global__ void of_lanes(const float* x, float* y) {
    __shared__ cub::BlockReduce<float, 64>::TempStorage temp;
    const float value = x[threadIdx.x];
    const float most = cub::BlockReduce<float, 64>(temp).Reduce(value, cuda::maximum<>{});
    __syncthreads();
    const float least = cub::BlockReduce<float, 64>(temp).Reduce(value, cuda::minimum<float>{});
    float sum = value;
    for (int o = C10_WARP_SIZE / 2; o > 0; o /= 2) sum = cuda::std::plus<>{}(sum, WARP_SHFL_XOR(sum, o));
    const float first = WARP_SHFL(value, 0), next = WARP_SHFL_DOWN(value, 1), previous = WARP_SHFL_UP(value, 1);
    const unsigned positive = WARP_BALLOT(value > 0);
    if (threadIdx.x == 0) y[0] = most, y[1] = least, y[2] = sum, y[3] = first, y[4] = next, y[5] = __popc(positive);
    if (threadIdx.x == 1) y[6] = previous;
}

// Two tiles at once; the last one is half of zeros.
__global__ void pipelined(const float4* x, float4* y, int tiles) {
    __shared__ float4 s[2][32];
    __pipeline_memcpy_async(&s[0][threadIdx.x], x + threadIdx.x, sizeof(float4));
    __pipeline_commit();
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) {
            const int next = (tile + 1) * 32 + threadIdx.x;
            __pipeline_memcpy_async(&s[(tile + 1) % 2][threadIdx.x], x + next, 16, tile + 2 == tiles ? 8 : 0);
        }
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        y[tile * 32 + threadIdx.x] = s[tile % 2][31 - threadIdx.x];
        __syncthreads();
    }
}

// Waits too late.
__global__ void hasty(const float* x, float* y) {
    __shared__ float s[32];
    __pipeline_memcpy_async(s + threadIdx.x, x + threadIdx.x, 4);
    __pipeline_commit();
    __syncthreads();
    y[threadIdx.x] = s[31 - threadIdx.x];
    __pipeline_wait_prior(0);
}

std::vector<torch::Tensor> of_numbers(torch::Tensor x, torch::Tensor y) {
    const int n = x.numel(), blocks = at::cuda::detail::GET_BLOCKS(n, 128);
    auto first = torch::empty({32, n}, x.options()), second = torch::empty({8, n}, x.options());
    auto third = torch::empty({29, n}, x.options()), fourth = torch::empty({13}, x.options().dtype(torch::kInt32));
    const float *a = x.data_ptr<float>(), *b = y.data_ptr<float>();
    rounded<<<blocks, 128>>>(a, b, first.data_ptr<float>(), n);
    functions<<<blocks, 128>>>(a, second.data_ptr<float>(), n);
    numbers_of_16_bits<<<blocks, 128>>>(a, b, third.data_ptr<float>(), n);
    integers<<<1, 32>>>(reinterpret_cast<unsigned*>(fourth.data_ptr<int>()));
    return {first, second, third, fourth};
}

torch::Tensor updated(torch::Tensor x) {
    auto y = torch::zeros({4}, x.options());
    AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "atomics", [&] {
        atomics<scalar_t><<<2, 32>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), (int)x.numel());
    });
    return y;
}

std::vector<torch::Tensor> of_threads(torch::Tensor x) {
    auto y = torch::empty({7}, x.options()), copied = torch::empty_like(x);
    of_lanes<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>());
    pipelined<<<1, 32>>>(reinterpret_cast<float4*>(x.data_ptr<float>()),
                         reinterpret_cast<float4*>(copied.data_ptr<float>()), (int)x.numel() / 128);
    return {y, copied};
}

torch::Tensor too_early(torch::Tensor x) {
    auto y = torch::empty({32}, x.options());
    hasty<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>());
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("of_numbers", &of_numbers);
    m.def("updated", &updated);
    m.def("of_threads", &of_threads);
    m.def("too_early", &too_early);
}
