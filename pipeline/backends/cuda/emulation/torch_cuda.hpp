// What ATen/cuda and c10/cuda declare that sources of extensions use, after CUDA's runtime or its emulation. A PyTorch
// for CPUs has these headers, but not those of the libraries that they include.

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace c10::cuda {

struct CUDAStream {
    cudaStream_t stream() const { return nullptr; }
    operator cudaStream_t() const { return nullptr; }
    void synchronize() const {}
    int device_index() const { return 0; }
    std::int64_t id() const { return 0; }
};
inline CUDAStream getCurrentCUDAStream(int = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(int = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool = false, int = -1) { return {}; }
inline void setCurrentCUDAStream(CUDAStream) {}
inline int current_device() { return 0; }
inline int device_count() { return 1; }
inline void device_synchronize() {}
inline void stream_synchronize(cudaStream_t) {}
struct CUDAGuard {
    template <class Device>
    explicit CUDAGuard(const Device&) {}
};
struct OptionalCUDAGuard {
    OptionalCUDAGuard() = default;
    template <class Device>
    explicit OptionalCUDAGuard(const Device&) {}
};
struct CUDAStreamGuard {
    explicit CUDAStreamGuard(CUDAStream) {}
};

}  // namespace c10::cuda

namespace at::cuda {

using c10::cuda::CUDAStream;
using c10::cuda::current_device;
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::device_count;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromPool;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::setCurrentCUDAStream;
using c10::cuda::stream_synchronize;
inline cudaDeviceProp* getCurrentDeviceProperties() {
    static cudaDeviceProp properties;
    return &properties;
}
inline cudaDeviceProp* getDeviceProperties(int) { return getCurrentDeviceProperties(); }
inline int warp_size() { return 32; }

}  // namespace at::cuda

#define C10_CUDA_CHECK(EXPRESSION)                                                                  \
    do {                                                                                            \
        const cudaError_t cuda_error = EXPRESSION;                                                  \
        if (cuda_error != cudaSuccess) {                                                            \
            throw std::runtime_error(std::string("CUDA error: ") + cudaGetErrorString(cuda_error)); \
        }                                                                                           \
    } while (false)
#define AT_CUDA_CHECK(EXPRESSION) C10_CUDA_CHECK(EXPRESSION)
#define TORCH_CUDA_CHECK(EXPRESSION) C10_CUDA_CHECK(EXPRESSION)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
