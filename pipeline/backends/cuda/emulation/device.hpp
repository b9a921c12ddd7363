// What CUDA C++ sources find without an include, for the host's compiler: qualifiers, built-in variables and
// functions. It is included before the source; sources see the architecture that it provides, sm_80.

#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "fibres.hpp"
#include "ptx.hpp"

#define __CUDA_ARCH__ 800
#define __CUDACC__ 1
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

using std::max;
using std::min;

constexpr int warpSize = emulated::kWarp;

inline void __syncthreads() { emulated::wait(emulated::State::at_barrier); }
UNWATCHED inline int __syncthreads_count(int predicate) {
    emulated::machine.votes += predicate != 0;
    emulated::wait(emulated::State::at_barrier);
    return static_cast<int>(emulated::machine.votes_before);
}
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return __syncthreads_count(predicate == 0) == 0; }
inline void __threadfence() { emulated::shadow::fence(true); }
inline void __threadfence_system() { emulated::shadow::fence(true); }
inline void __threadfence_block() { emulated::shadow::fence(false); }

namespace emulated {

UNWATCHED inline void synchronize(Meeting& meeting) {
    shadow::warp_barrier(machine.running->number / kWarp, meeting.mask);
}

// Each lane gives a value and names the lane whose value it gets.
template <class Value>
struct Exchange {
    Value given;
    unsigned source;
    Value got;
};

template <class Value>
inline void exchange(Meeting& meeting) {
    for (unsigned lane = 0; lane < kWarp; ++lane) {
        if ((meeting.mask & 1u << lane) == 0) continue;
        auto& mine = *static_cast<Exchange<Value>*>(meeting.operands[lane]);
        if ((meeting.mask & 1u << mine.source) == 0) fail("a shuffle reads lane %u, which takes no part", mine.source);
        mine.got = static_cast<Exchange<Value>*>(meeting.operands[mine.source])->given;
    }
}

// `inside`: whether the source lies in the lane's segment of `width`; else the lane keeps its own value.
template <class Value>
inline Value shuffle(unsigned mask, Value value, unsigned source, bool inside) {
    Exchange<Value> operands{value, inside ? source : lane(), value};
    meet(reinterpret_cast<const void*>(exchange<Value>), mask, &operands, exchange<Value>);
    return operands.got;
}

struct Ballot {
    bool vote;
    unsigned votes;
};

inline void vote(Meeting& meeting) {
    unsigned votes = 0;
    for (unsigned lane = 0; lane < kWarp; ++lane) {
        if (meeting.mask & 1u << lane) votes |= unsigned{static_cast<Ballot*>(meeting.operands[lane])->vote} << lane;
    }
    for (unsigned lane = 0; lane < kWarp; ++lane) {
        if (meeting.mask & 1u << lane) static_cast<Ballot*>(meeting.operands[lane])->votes = votes;
    }
}

}  // namespace emulated

inline void __syncwarp(unsigned mask = ~0u) {
    emulated::meet(reinterpret_cast<const void*>(emulated::synchronize), mask, nullptr, emulated::synchronize);
}

template <class Value>
inline Value __shfl_sync(unsigned mask, Value value, int source, int width = 32) {
    const unsigned first = emulated::lane() / width * width;
    return emulated::shuffle(mask, value, first + source % width, true);
}
template <class Value>
inline Value __shfl_xor_sync(unsigned mask, Value value, int distance, int width = 32) {
    const unsigned source = emulated::lane() ^ distance;
    return emulated::shuffle(mask, value, source, source / width <= emulated::lane() / width);
}
template <class Value>
inline Value __shfl_down_sync(unsigned mask, Value value, unsigned distance, int width = 32) {
    const unsigned lane = emulated::lane();
    return emulated::shuffle(mask, value, lane + distance, lane % width + distance < static_cast<unsigned>(width));
}
template <class Value>
inline Value __shfl_up_sync(unsigned mask, Value value, unsigned distance, int width = 32) {
    const unsigned lane = emulated::lane();
    return emulated::shuffle(mask, value, lane - distance, lane % width >= distance);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
    emulated::Ballot operands{predicate != 0, 0};
    emulated::meet(reinterpret_cast<const void*>(emulated::vote), mask, &operands, emulated::vote);
    return operands.votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

template <class To, class From>
inline To emulated_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
inline float __uint_as_float(unsigned bits) { return emulated_bits<float>(bits); }
inline float __int_as_float(int bits) { return emulated_bits<float>(bits); }
inline unsigned __float_as_uint(float value) { return emulated_bits<unsigned>(value); }
inline int __float_as_int(float value) { return emulated_bits<int>(value); }

template <class Value>
inline Value __ldg(const Value* address) {
    return *address;
}
inline std::size_t __cvta_generic_to_shared(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) & 0xFFFFFFFFu;
}

inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

namespace emulated {

// A value that does not take part in the deduction of the type.
template <class Value>
using Given = std::common_type_t<Value>;

// No two threads run at once.
template <class Value, class Function>
UNWATCHED inline Value update(Value* address, Function function) {
    shadow::strong(reinterpret_cast<std::uintptr_t>(address), sizeof *address, shadow::Access::update);
    const Value before = *address;
    *address = function(before);
    return before;
}

}  // namespace emulated

#define EMULATED_ATOMIC(NAME, RESULT)                                                                          \
    template <class Value>                                                                                     \
    inline Value NAME(Value* address, emulated::Given<Value> value) {                                          \
        return emulated::update(address, [value](Value before) -> Value { return RESULT; });                   \
    }
EMULATED_ATOMIC(atomicAdd, before + value)
EMULATED_ATOMIC(atomicSub, before - value)
EMULATED_ATOMIC(atomicMax, std::max(before, value))
EMULATED_ATOMIC(atomicMin, std::min(before, value))
EMULATED_ATOMIC(atomicAnd, before& value)
EMULATED_ATOMIC(atomicOr, before | value)
EMULATED_ATOMIC(atomicXor, before ^ value)
EMULATED_ATOMIC(atomicExch, (void(before), value))
EMULATED_ATOMIC(atomicInc, before >= value ? 0 : before + 1)
EMULATED_ATOMIC(atomicDec, before == 0 || before > value ? value : before - 1)
#undef EMULATED_ATOMIC

template <class Value>
inline Value atomicCAS(Value* address, emulated::Given<Value> expected, emulated::Given<Value> value) {
    return emulated::update(address, [=](Value before) { return before == expected ? value : before; });
}

namespace emulated {

template <class... Parameters, std::size_t... Places>
inline const char* run_with(void (*kernel)(Parameters...), const Geometry& geometry, void** arguments,
                            std::index_sequence<Places...>) {
    struct Call {
        void (*kernel)(Parameters...);
        void** arguments;
    } call{kernel, arguments};
    body = {[](void* given) UNWATCHED {
                auto& [function, values] = *static_cast<Call*>(given);
                function(*static_cast<std::remove_reference_t<Parameters>*>(values[Places])...);
            },
            &call};
    return run_grid(geometry);
}

// `arguments` point at the values, as in cuLaunchKernel.
template <class... Parameters>
inline const char* run(void (*kernel)(Parameters...), const Geometry& geometry, void** arguments) {
    return run_with(kernel, geometry, arguments, std::index_sequence_for<Parameters...>{});
}

}  // namespace emulated
