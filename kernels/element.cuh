// The workload's element type on a GPU, converted by PTX so that no header of the CUDA toolkit is needed.
#pragma once

#if ELEMENT_FLOAT32
using Element = float;
__device__ __forceinline__ float to_float(Element value) { return value; }
__device__ __forceinline__ Element from_float(float value) { return value; }
#else
struct Element {
    unsigned short bits;
};
#if ELEMENT_BFLOAT16
// bfloat16 is the upper half of a float32.
__device__ __forceinline__ float to_float(Element value) {
    return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
__device__ __forceinline__ Element from_float(float value) {
    Element result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}
#elif ELEMENT_FLOAT16
__device__ __forceinline__ float to_float(Element value) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}
__device__ __forceinline__ Element from_float(float value) {
    Element result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}
#else
#error "no such element type: expected ELEMENT_FLOAT32, ELEMENT_FLOAT16 or ELEMENT_BFLOAT16"
#endif
#endif

// N elements that are loaded or stored by one instruction; their address is a multiple of their size.
template <int N>
struct alignas(N * sizeof(Element)) Pack {
    Element values[N];
};

constexpr int kChunkBytes = 16;  // the widest load of a thread
constexpr int kChunk = kChunkBytes / sizeof(Element);

__device__ __forceinline__ bool is_aligned(const void* address) {
    return reinterpret_cast<unsigned long long>(address) % kChunkBytes == 0;
}
