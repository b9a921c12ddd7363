// Intrinsics of the CUDA Math API that round or convert as their names say (`_rn` to nearest, `_rz` to zero, `_rd`
// down, `_ru` up), fast functions, parts of integers, and the asynchronous copies of cuda_pipeline.h.

#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "ptx.hpp"

namespace emulated {

// `nearest` was rounded to nearest; `rest`: the exact value less that, of which the sign counts.
inline float toward_zero(float nearest, double rest) {
    return (nearest > 0 && rest < 0) || (nearest < 0 && rest > 0) ? std::nextafter(nearest, 0.0f) : nearest;
}
inline float down(float nearest, double rest) { return rest < 0 ? std::nextafter(nearest, -HUGE_VALF) : nearest; }
inline float up(float nearest, double rest) { return rest > 0 ? std::nextafter(nearest, HUGE_VALF) : nearest; }

// Products of two float32 are exact in float64, and so is the error of a sum.
inline double rest_of_fma(double x, double y, double z, float nearest) {
    const double product = x * y, sum = product + z, part = sum - product;
    const double error = (product - (sum - part)) + (z - part);
    return sum == nearest ? error : sum - nearest;
}
inline double rest_of_division(double x, double y, float nearest) {
    const double rest = x - nearest * y;
    return y < 0 ? -rest : rest;
}
inline double rest_of_root(double x, double nearest) { return x - nearest * nearest; }
template <class Integer>
inline double rest_of_integer(Integer x, float nearest) {
    return static_cast<double>(static_cast<__int128>(x) - static_cast<__int128>(nearest));
}

// As cvt of PTX: numbers out of range become the nearest that there is, NaN 0, or the highest bit of 64.
template <class To>
inline To integer(double x, bool of_double = false) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(x)) return sizeof(To) == 8 || of_double ? static_cast<To>(1ull << (8 * sizeof(To) - 1)) : To{0};
    if (x <= static_cast<double>(Limits::min())) return Limits::min();
    return x >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<To>(x);
}

inline double in_half_turns(double x, double (*function)(double)) {
    return function(3.14159265358979323846 * std::remainder(x, 2.0));
}

}  // namespace emulated

#define EMULATED_ROUNDED(NAME, PARAMETERS, NEAREST, REST)                                                      \
    inline float NAME##_rn PARAMETERS { return NEAREST; }                                                      \
    inline float NAME##_rz PARAMETERS { const float r = NEAREST; return emulated::toward_zero(r, emulated::REST); } \
    inline float NAME##_rd PARAMETERS { const float r = NEAREST; return emulated::down(r, emulated::REST); }   \
    inline float NAME##_ru PARAMETERS { const float r = NEAREST; return emulated::up(r, emulated::REST); }
EMULATED_ROUNDED(__fadd, (float x, float y), x + y, rest_of_fma(x, 1, y, r))
EMULATED_ROUNDED(__fsub, (float x, float y), x - y, rest_of_fma(x, 1, -y, r))
EMULATED_ROUNDED(__fmul, (float x, float y), x * y, rest_of_fma(x, y, 0, r))
EMULATED_ROUNDED(__fmaf, (float x, float y, float z), std::fma(x, y, z), rest_of_fma(x, y, z, r))
EMULATED_ROUNDED(__fdiv, (float x, float y), x / y, rest_of_division(x, y, r))
EMULATED_ROUNDED(__frcp, (float x), 1.0f / x, rest_of_division(1, x, r))
EMULATED_ROUNDED(__fsqrt, (float x), std::sqrt(x), rest_of_root(x, r))
EMULATED_ROUNDED(__double2float, (double x), static_cast<float>(x), rest_of_fma(x, 1, 0, r))
EMULATED_ROUNDED(__int2float, (int x), static_cast<float>(x), rest_of_integer(x, r))
EMULATED_ROUNDED(__uint2float, (unsigned x), static_cast<float>(x), rest_of_integer(x, r))
EMULATED_ROUNDED(__ll2float, (long long x), static_cast<float>(x), rest_of_integer(x, r))
EMULATED_ROUNDED(__ull2float, (unsigned long long x), static_cast<float>(x), rest_of_integer(x, r))
#undef EMULATED_ROUNDED
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }

#define EMULATED_INTEGER(FROM, NAME, VALUE, TO)                                                                \
    inline TO __##FROM##2##NAME##_rn(VALUE x) {                                                                \
        return emulated::integer<TO>(std::nearbyint(static_cast<double>(x)), std::is_same_v<VALUE, double>);   \
    }                                                                                                          \
    inline TO __##FROM##2##NAME##_rz(VALUE x) {                                                                \
        return emulated::integer<TO>(std::trunc(static_cast<double>(x)), std::is_same_v<VALUE, double>);       \
    }                                                                                                          \
    inline TO __##FROM##2##NAME##_rd(VALUE x) {                                                                \
        return emulated::integer<TO>(std::floor(static_cast<double>(x)), std::is_same_v<VALUE, double>);       \
    }                                                                                                          \
    inline TO __##FROM##2##NAME##_ru(VALUE x) {                                                                \
        return emulated::integer<TO>(std::ceil(static_cast<double>(x)), std::is_same_v<VALUE, double>);        \
    }
#define EMULATED_INTEGERS(FROM, VALUE)                \
    EMULATED_INTEGER(FROM, int, VALUE, int)           \
    EMULATED_INTEGER(FROM, uint, VALUE, unsigned)     \
    EMULATED_INTEGER(FROM, ll, VALUE, long long)      \
    EMULATED_INTEGER(FROM, ull, VALUE, unsigned long long)
EMULATED_INTEGERS(float, float)
EMULATED_INTEGERS(double, double)

// ---- functions

inline float __tanhf(float x) { return std::tanh(x); }
inline void __sincosf(float x, float* sine, float* cosine) {
    *sine = std::sin(x);
    *cosine = std::cos(x);
}
inline double sinpi(double x) { return emulated::in_half_turns(x, std::sin); }
inline double cospi(double x) { return emulated::in_half_turns(x, std::cos); }
inline void sincospi(double x, double* sine, double* cosine) {
    *sine = sinpi(x);
    *cosine = cospi(x);
}
inline float sinpif(float x) { return static_cast<float>(sinpi(x)); }
inline float cospif(float x) { return static_cast<float>(cospi(x)); }
inline void sincospif(float x, float* sine, float* cosine) {
    *sine = sinpif(x);
    *cosine = cospif(x);
}

// ---- parts of integers

inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selectors) {
    const unsigned long long both = static_cast<unsigned long long>(y) << 32 | x;
    unsigned result = 0;
    for (unsigned byte = 0; byte < 4; ++byte) {
        result |= static_cast<unsigned>(both >> 8 * (selectors >> 4 * byte & 7) & 0xFF) << 8 * byte;
    }
    return result;
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned>(both >> (32 - (shift < 32 ? shift : 32)));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return __funnelshift_lc(low, high, shift & 31);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned>(both >> (shift < 32 ? shift : 32));
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return __funnelshift_rc(low, high, shift & 31);
}
inline unsigned long long __brevll(unsigned long long x) {
    unsigned long long reversed = 0;
    for (unsigned bit = 0; bit < 64; ++bit) reversed |= (x >> bit & 1) << (63 - bit);
    return reversed;
}
inline long long __mul64hi(long long x, long long y) {
    return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}

// ---- cuda_pipeline.h

inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t size, std::size_t zeros = 0) {
    const auto place = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to));
    if (size != 4 && size != 8 && size != 16) emulated::fail("__pipeline_memcpy_async of %zu bytes", size);
    if (zeros > size) emulated::fail("__pipeline_memcpy_async with %zu zeros in %zu bytes", zeros, size);
    if (emulated::ptx::from_shared(place) != to) emulated::fail("__pipeline_memcpy_async to what is not shared memory");
    emulated::ptx::copy_async(place, from, static_cast<unsigned>(size), static_cast<unsigned>(size - zeros));
}
inline void __pipeline_commit() { emulated::ptx::cp_async_commit_group(); }
inline void __pipeline_wait_prior(std::size_t newest) {
    emulated::ptx::cp_async_wait_group(newest < 8 ? static_cast<unsigned>(newest) : 8);
}
