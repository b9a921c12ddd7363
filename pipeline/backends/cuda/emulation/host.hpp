// What host code of an extension asks of CUDA's runtime and of PyTorch's, where tensors are the host's: streams
// that have done everything, memory that is the host's, one device. It is included after PyTorch's headers, whose
// names for the device become names for the host.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
};
using cudaError = cudaError_t;
struct CUstream_st;
using cudaStream_t = CUstream_st*;
using CUstream = CUstream_st*;
struct CUevent_st;
using cudaEvent_t = CUevent_st*;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault,
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributePreferredSharedMemoryCarveout };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxSharedMemoryPerBlock,
    cudaDevAttrMaxSharedMemoryPerBlockOptin,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor,
    cudaDevAttrMaxThreadsPerBlock,
    cudaDevAttrWarpSize,
    cudaDevAttrComputeCapabilityMajor,
    cudaDevAttrComputeCapabilityMinor,
};
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2 };

namespace emulated {

constexpr int kProcessors = 132, kThreadsOfBlock = 1024;
constexpr std::size_t kStaticShared = 48 << 10, kMostShared = 227 << 10;

// The error that the next cudaGetLastError returns.
inline cudaError_t last_error = cudaSuccess;

}  // namespace emulated

struct cudaDeviceProp {
    char name[256] = "emulated";
    int multiProcessorCount = emulated::kProcessors, warpSize = 32, major = 8, minor = 0;
    int maxThreadsPerBlock = emulated::kThreadsOfBlock, maxThreadsPerMultiProcessor = 2048;
    int maxBlocksPerMultiProcessor = 32;
    int regsPerBlock = 65536, regsPerMultiprocessor = 65536;
    int maxThreadsDim[3] = {1024, 1024, 64}, maxGridSize[3] = {2147483647, 65535, 65535};
    std::size_t sharedMemPerBlock = emulated::kStaticShared, sharedMemPerBlockOptin = emulated::kMostShared;
    std::size_t sharedMemPerMultiprocessor = 228 << 10, totalGlobalMem = std::size_t{80} << 30;
    std::size_t totalConstMem = 64 << 10;
    int l2CacheSize = 50 << 20, clockRate = 1980000, memoryClockRate = 2600000, memoryBusWidth = 5120;
};

inline const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess: return "no error";
        case cudaErrorInvalidValue: return "invalid argument";
        case cudaErrorMemoryAllocation: return "out of memory";
        case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    }
    return "unrecognized error code";
}
inline const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
        case cudaSuccess: return "cudaSuccess";
        case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
        case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
        case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    }
    return "cudaErrorUnknown";
}
inline cudaError_t cudaPeekAtLastError() { return emulated::last_error; }
inline cudaError_t cudaGetLastError() {
    const cudaError_t error = emulated::last_error;
    emulated::last_error = cudaSuccess;
    return error;
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
    *properties = {};
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
        case cudaDevAttrMultiProcessorCount: *value = emulated::kProcessors; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: *value = emulated::kStaticShared; break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = emulated::kMostShared; break;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 228 << 10; break;
        case cudaDevAttrMaxThreadsPerBlock: *value = emulated::kThreadsOfBlock; break;
        case cudaDevAttrWarpSize: *value = 32; break;
        case cudaDevAttrComputeCapabilityMajor: *value = 8; break;
        case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    }
    return cudaSuccess;
}

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    *stream = nullptr;
    return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = nullptr;
    return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
    *milliseconds = 0.0f;
    return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }

template <class Pointer>
inline cudaError_t cudaMalloc(Pointer** address, std::size_t size) {
    void* made = std::malloc(size == 0 ? 1 : size);
    if (made == nullptr) return cudaErrorMemoryAllocation;
    std::memset(made, 0xFF, size);
    *address = static_cast<Pointer*>(made);
    return cudaSuccess;
}
template <class Pointer>
inline cudaError_t cudaMallocAsync(Pointer** address, std::size_t size, cudaStream_t) {
    return cudaMalloc(address, size);
}
inline cudaError_t cudaFree(void* address) {
    std::free(address);
    return cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* address, cudaStream_t) { return cudaFree(address); }
template <class Pointer>
inline cudaError_t cudaMallocHost(Pointer** address, std::size_t size) {
    return cudaMalloc(address, size);
}
inline cudaError_t cudaFreeHost(void* address) { return cudaFree(address); }
inline cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* whole) {
    *left = *whole = std::size_t{80} << 30;
    return cudaSuccess;
}
inline cudaError_t cudaMemset(void* address, int value, std::size_t size) {
    std::memset(address, value, size);
    return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* address, int value, std::size_t size, cudaStream_t = nullptr) {
    return cudaMemset(address, value, size);
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind) {
    std::memmove(to, from, size);
    return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind, cudaStream_t = nullptr) {
    return cudaMemcpy(to, from, size, cudaMemcpyDefault);
}
template <class Symbol>
inline cudaError_t cudaMemcpyToSymbol(Symbol& symbol, const void* from, std::size_t size, std::size_t offset = 0,
                                      cudaMemcpyKind = cudaMemcpyHostToDevice) {
    if (offset + size > sizeof symbol) return emulated::last_error = cudaErrorInvalidValue;
    std::memcpy(const_cast<char*>(reinterpret_cast<const volatile char*>(&symbol)) + offset, from, size);
    return cudaSuccess;
}
template <class Symbol>
inline cudaError_t cudaMemcpyToSymbolAsync(Symbol& symbol, const void* from, std::size_t size, std::size_t offset = 0,
                                           cudaMemcpyKind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
    return cudaMemcpyToSymbol(symbol, from, size, offset);
}
template <class Symbol>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const Symbol& symbol, std::size_t size, std::size_t offset = 0,
                                        cudaMemcpyKind = cudaMemcpyDeviceToHost) {
    std::memcpy(to, reinterpret_cast<const char*>(&symbol) + offset, size);
    return cudaSuccess;
}
template <class Symbol>
inline cudaError_t cudaGetSymbolAddress(void** address, Symbol& symbol) {
    *address = &symbol;
    return cudaSuccess;
}

namespace emulated {

// Kernels that asked for more dynamic shared memory than a block has by default.
inline std::size_t allowed_shared = kStaticShared;

}  // namespace emulated

template <class Function>
inline cudaError_t cudaFuncSetAttribute(Function, cudaFuncAttribute attribute, int value) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || static_cast<std::size_t>(value) > emulated::kMostShared) {
        return emulated::last_error = cudaErrorInvalidValue;
    }
    if (static_cast<std::size_t>(value) > emulated::allowed_shared) emulated::allowed_shared = value;
    return cudaSuccess;
}
template <class Function>
inline cudaError_t cudaFuncSetCacheConfig(Function, cudaFuncCache) {
    return cudaSuccess;
}
template <class Function>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function, int threads, std::size_t) {
    *blocks = threads > 0 && threads <= 1024 ? 2048 / threads : 0;
    return cudaSuccess;
}
template <class Function>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Function, std::size_t = 0, int = 0) {
    *grid = emulated::kProcessors;
    *block = 256;
    return cudaSuccess;
}

namespace at {

template <class Value>
struct RestrictPtrTraits {  // which PyTorch has for compilers of devices only
    using PtrType = Value* __restrict__;
};

}  // namespace at

#include "torch_cuda.hpp"

#define TORCH_DSA_KERNEL_LAUNCH(KERNEL, BLOCKS, THREADS, SHARED, STREAM, ...) \
    static_assert(false, "not emulated: TORCH_DSA_KERNEL_LAUNCH")
// PyTorch's, which its Macros.h has only where __CUDACC__ is defined before it.
#define C10_LAUNCH_BOUNDS_0
#define C10_LAUNCH_BOUNDS_1(...)
#define C10_LAUNCH_BOUNDS_2(...)
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_PI_F 3.141592654f

#define is_cuda is_cpu
#define kCUDA kCPU
