// What kernels find in PyTorch's headers of device code: ATen/cuda/Atomic.cuh, DeviceUtils.cuh and
// detail/KernelUtils.h, for sources that include one of them; others may have functions of these names.

#pragma once

#define EMULATED_ATOMIC(NAME, RESULT)                                                                   \
    template <class Value>                                                                              \
    inline Value gpuAtomic##NAME(Value* address, emulated::Given<Value> value) {                        \
        return emulated::update(address, [value](Value before) -> Value { return RESULT; });            \
    }
EMULATED_ATOMIC(Add, before + value)
EMULATED_ATOMIC(Mul, before * value)
EMULATED_ATOMIC(Max, value != value ? value : std::max(before, value))
EMULATED_ATOMIC(Min, value != value ? value : std::min(before, value))
#undef EMULATED_ATOMIC
template <class Value>
inline void gpuAtomicAdd(c10::complex<Value>* address, emulated::Given<c10::complex<Value>> value) {
    gpuAtomicAdd(&address->real_, value.real_);
    gpuAtomicAdd(&address->imag_, value.imag_);
}
template <class Value>
inline void gpuAtomicAddNoReturn(Value* address, emulated::Given<Value> value) {
    gpuAtomicAdd(address, value);
}

inline unsigned ACTIVE_MASK() { return __activemask(); }
inline void WARP_SYNC(unsigned mask = ~0u) { __syncwarp(mask); }
inline unsigned WARP_BALLOT(int predicate, unsigned mask = ~0u) { return __ballot_sync(mask, predicate); }
template <class Value>
inline Value WARP_SHFL(Value value, int source, int width = warpSize, unsigned mask = ~0u) {
    return __shfl_sync(mask, value, source, width);
}
template <class Value>
inline Value WARP_SHFL_XOR(Value value, int distance, int width = warpSize, unsigned mask = ~0u) {
    return __shfl_xor_sync(mask, value, distance, width);
}
template <class Value>
inline Value WARP_SHFL_UP(Value value, unsigned distance, int width = warpSize, unsigned mask = ~0u) {
    return __shfl_up_sync(mask, value, distance, width);
}
template <class Value>
inline Value WARP_SHFL_DOWN(Value value, unsigned distance, int width = warpSize, unsigned mask = ~0u) {
    return __shfl_down_sync(mask, value, distance, width);
}
template <class Value>
inline Value doLdg(const Value* address) {
    return __ldg(address);
}

#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type)                                        \
    std::int64_t _i_n_d_e_x = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;     \
    for (index_type i = _i_n_d_e_x; _i_n_d_e_x < (n); _i_n_d_e_x += blockDim.x * gridDim.x, i = _i_n_d_e_x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

namespace at::cuda::detail {

constexpr int CUDA_NUM_THREADS = 1024;
inline int GET_BLOCKS(std::int64_t count, std::int64_t threads = CUDA_NUM_THREADS) {
    return static_cast<int>((count - 1) / threads + 1);
}

}  // namespace at::cuda::detail
