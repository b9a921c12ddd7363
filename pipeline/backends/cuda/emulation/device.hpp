// What CUDA C++ sources find without an include, for the host's compiler: qualifiers, built-in variables and
// functions. It is included before the source; sources see the architecture that it provides, sm_80.

#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "fibres.hpp"
#include "intrinsics.hpp"
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

#define EMULATED_VECTORS(NAME, VALUE, OF_TWO, OF_FOUR)                                                     \
    struct NAME##1 {                                                                                        \
        VALUE x;                                                                                            \
    };                                                                                                      \
    struct alignas(OF_TWO) NAME##2 {                                                                        \
        VALUE x, y;                                                                                         \
    };                                                                                                      \
    EMULATED_THREE(NAME, VALUE)                                                                             \
    struct alignas(OF_FOUR) NAME##4 {                                                                       \
        VALUE x, y, z, w;                                                                                   \
    };                                                                                                      \
    inline NAME##1 make_##NAME##1(VALUE x) { return {x}; }                                                  \
    inline NAME##2 make_##NAME##2(VALUE x, VALUE y) { return {x, y}; }                                      \
    inline NAME##3 make_##NAME##3(VALUE x, VALUE y, VALUE z) { return {x, y, z}; }                          \
    inline NAME##4 make_##NAME##4(VALUE x, VALUE y, VALUE z, VALUE w) { return {x, y, z, w}; }
#define EMULATED_THREE(NAME, VALUE) \
    struct NAME##3 {                \
        VALUE x, y, z;              \
    };
EMULATED_VECTORS(char, signed char, 2, 4)
EMULATED_VECTORS(uchar, unsigned char, 2, 4)
EMULATED_VECTORS(short, short, 4, 8)
EMULATED_VECTORS(ushort, unsigned short, 4, 8)
EMULATED_VECTORS(int, int, 8, 16)
EMULATED_VECTORS(long, long, 16, 16)
EMULATED_VECTORS(ulong, unsigned long, 16, 16)
EMULATED_VECTORS(longlong, long long, 16, 16)
EMULATED_VECTORS(ulonglong, unsigned long long, 16, 16)
EMULATED_VECTORS(float, float, 8, 16)
EMULATED_VECTORS(double, double, 16, 16)
#undef EMULATED_THREE
#define EMULATED_THREE(NAME, VALUE)  // uint3 is that of the built-in variables
EMULATED_VECTORS(uint, unsigned, 8, 16)
#undef EMULATED_THREE
#undef EMULATED_VECTORS

using std::max;
using std::min;
// CUDA has them for two different numbers, too.
template <class First, class Second, class = std::enable_if_t<!std::is_same_v<First, Second>>>
constexpr std::common_type_t<First, Second> max(First first, Second second) {
    return first < second ? second : first;
}
template <class First, class Second, class = std::enable_if_t<!std::is_same_v<First, Second>>>
constexpr std::common_type_t<First, Second> min(First first, Second second) {
    return second < first ? second : first;
}

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
        if ((meeting.mask & 1u << mine.source) == 0) {  // undefined: a lane that has ended, or takes no part
            std::memset(static_cast<void*>(&mine.got), 0xFF, sizeof mine.got);
        } else {
            mine.got = static_cast<Exchange<Value>*>(meeting.operands[mine.source])->given;
        }
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
template <class Value>
inline Value reduce_lanes(unsigned mask, Value value, Value (*function)(Value, Value)) {
    Value result = value;
    for (unsigned source = 0; source < 32; ++source) {
        if ((mask & 1u << source) == 0) continue;
        const Value other = __shfl_sync(mask, value, static_cast<int>(source));
        if (source != emulated::lane()) result = function(result, other);
    }
    return result;
}
inline int __reduce_add_sync(unsigned mask, int value) {
    return reduce_lanes<int>(mask, value, [](int a, int b) { return a + b; });
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
    return reduce_lanes<unsigned>(mask, value, [](unsigned a, unsigned b) { return a + b; });
}
inline int __reduce_max_sync(unsigned mask, int value) {
    return reduce_lanes<int>(mask, value, [](int a, int b) { return a < b ? b : a; });
}
inline int __reduce_min_sync(unsigned mask, int value) {
    return reduce_lanes<int>(mask, value, [](int a, int b) { return b < a ? b : a; });
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
    return reduce_lanes<unsigned>(mask, value, [](unsigned a, unsigned b) { return a < b ? b : a; });
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
    return reduce_lanes<unsigned>(mask, value, [](unsigned a, unsigned b) { return b < a ? b : a; });
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value) {
    return reduce_lanes<unsigned>(mask, value, [](unsigned a, unsigned b) { return a & b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
    return reduce_lanes<unsigned>(mask, value, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
    return reduce_lanes<unsigned>(mask, value, [](unsigned a, unsigned b) { return a ^ b; });
}
template <class Value>
inline unsigned __match_any_sync(unsigned mask, Value value) {
    unsigned equal = 0;
    for (unsigned source = 0; source < 32; ++source) {
        if ((mask & 1u << source) == 0) continue;
        if (__shfl_sync(mask, value, static_cast<int>(source)) == value) equal |= 1u << source;
    }
    return equal;
}
template <class Value>
inline unsigned __match_all_sync(unsigned mask, Value value, int* all) {
    *all = __match_any_sync(mask, value) == mask;
    return *all ? mask : 0;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

namespace emulated {

// A value that does not take part in the deduction of the type.
template <class Value>
using Given = std::common_type_t<Value>;

}  // namespace emulated

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

template <class Value>
inline Value __ldcs(const Value* address) {
    return *address;
}
template <class Value>
inline Value __ldcg(const Value* address) {
    return *address;
}
template <class Value>
inline Value __ldca(const Value* address) {
    return *address;
}
template <class Value>
inline Value __ldlu(const Value* address) {
    return *address;
}
template <class Value>
inline void __stwt(Value* address, emulated::Given<Value> value) {
    *address = value;
}
template <class Value>
inline void __stcs(Value* address, emulated::Given<Value> value) {
    *address = value;
}
template <class Value>
inline void __stcg(Value* address, emulated::Given<Value> value) {
    *address = value;
}
inline double __longlong_as_double(long long bits) { return emulated_bits<double>(bits); }
inline long long __double_as_longlong(double value) { return emulated_bits<long long>(value); }

inline float __expf(float x) { return std::exp(x); }
inline float __exp2f(float x) { return std::exp2(x); }
inline float __exp10f(float x) { return std::pow(10.0f, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
// exp2f(y * __log2f(x)), by the CUDA C++ Programming Guide: no number for a negative x, whatever y is.
inline float __powf(float x, float y) { return x < 0 ? NAN : std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float __saturatef(float x) { return x > 0.0f ? std::fmin(x, 1.0f) : 0.0f; }
inline float __fdividef(float x, float y) { return x / y; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float exp10f(float x) { return std::pow(10.0f, x); }
inline float normcdff(float x) { return 0.5f * std::erfc(-x * 0.70710678f); }
inline float fdividef(float x, float y) { return x / y; }
inline float rcbrtf(float x) { return 1.0f / std::cbrt(x); }
inline float norm3df(float x, float y, float z) { return std::sqrt(x * x + y * y + z * z); }
inline void __trap() { emulated::fail("__trap()"); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (unsigned bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
    return reversed;
}
inline int __mul24(int x, int y) { return x * y; }
inline unsigned __umul24(unsigned x, unsigned y) { return x * y; }
inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<long long>(x) * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(1ull * x * y >> 32); }
inline int __dp4a(int x, int y, int sum) {
    for (unsigned byte = 0; byte < 4; ++byte) {
        sum += static_cast<signed char>(x >> 8 * byte) * static_cast<signed char>(y >> 8 * byte);
    }
    return sum;
}
inline unsigned __dp4a(unsigned x, unsigned y, unsigned sum) {
    for (unsigned byte = 0; byte < 4; ++byte) sum += (x >> 8 * byte & 0xFF) * (y >> 8 * byte & 0xFF);
    return sum;
}
inline long long clock64() { return 0; }
UNWATCHED __attribute__((noinline)) inline unsigned __activemask() {
    return emulated::converged(__builtin_return_address(0));
}
inline void __nanosleep(unsigned) {}

namespace emulated {

// No two threads run at once.
template <class Value, class Function>
UNWATCHED inline Value update(Value* address, Function function, shadow::Access access = shadow::Access::update) {
    shadow::strong(reinterpret_cast<std::uintptr_t>(address), sizeof *address, access);
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
EMULATED_ATOMIC(atomicAdd_block, before + value)
EMULATED_ATOMIC(atomicAdd_system, before + value)
EMULATED_ATOMIC(atomicAnd, before& value)
EMULATED_ATOMIC(atomicOr, before | value)
EMULATED_ATOMIC(atomicXor, before ^ value)
EMULATED_ATOMIC(atomicExch, (void(before), value))
EMULATED_ATOMIC(atomicInc, before >= value ? 0 : before + 1)
EMULATED_ATOMIC(atomicDec, before == 0 || before > value ? value : before - 1)
#undef EMULATED_ATOMIC

template <class Value>
inline Value atomicCAS(Value* address, emulated::Given<Value> expected, emulated::Given<Value> value) {
    return emulated::update(address, [=](Value before) { return before == expected ? value : before; },
                            emulated::shadow::Access::compare);
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
