// Numbers of 16 bits, as PyTorch has them, and pairs of them: what cuda_fp16.h and cuda_bf16.h declare.

#pragma once

#include <cmath>

#include "device.hpp"

using __half = c10::Half;
using half = c10::Half;
using __nv_bfloat16 = c10::BFloat16;
using nv_bfloat16 = c10::BFloat16;

#define EMULATED_PAIRS(PAIR, NUMBER)                                                                         \
    struct alignas(4) PAIR {                                                                                 \
        NUMBER x, y;                                                                                         \
    };                                                                                                       \
    inline PAIR operator+(PAIR a, PAIR b) { return {NUMBER(a.x + b.x), NUMBER(a.y + b.y)}; }                 \
    inline PAIR operator-(PAIR a, PAIR b) { return {NUMBER(a.x - b.x), NUMBER(a.y - b.y)}; }                 \
    inline PAIR operator*(PAIR a, PAIR b) { return {NUMBER(a.x * b.x), NUMBER(a.y * b.y)}; }                 \
    inline PAIR operator/(PAIR a, PAIR b) { return {NUMBER(a.x / b.x), NUMBER(a.y / b.y)}; }                 \
    inline PAIR operator-(PAIR a) { return {NUMBER(-float(a.x)), NUMBER(-float(a.y))}; }                     \
    inline PAIR& operator+=(PAIR& a, PAIR b) { return a = a + b; }                                           \
    inline PAIR& operator-=(PAIR& a, PAIR b) { return a = a - b; }                                           \
    inline PAIR& operator*=(PAIR& a, PAIR b) { return a = a * b; }                                           \
    inline PAIR __hadd2(PAIR a, PAIR b) { return a + b; }                                                    \
    inline PAIR __hsub2(PAIR a, PAIR b) { return a - b; }                                                    \
    inline PAIR __hmul2(PAIR a, PAIR b) { return a * b; }                                                    \
    inline PAIR __h2div(PAIR a, PAIR b) { return a / b; }                                                    \
    inline PAIR __hfma2(PAIR a, PAIR b, PAIR c) {                                                            \
        return {NUMBER(std::fma(float(a.x), float(b.x), float(c.x))),                                        \
                NUMBER(std::fma(float(a.y), float(b.y), float(c.y)))};                                       \
    }                                                                                                        \
    inline PAIR __hneg2(PAIR a) { return {NUMBER(-float(a.x)), NUMBER(-float(a.y))}; }                       \
    inline NUMBER __hadd(NUMBER a, NUMBER b) { return a + b; }                                               \
    inline NUMBER __hsub(NUMBER a, NUMBER b) { return a - b; }                                               \
    inline NUMBER __hmul(NUMBER a, NUMBER b) { return a * b; }                                               \
    inline NUMBER __hdiv(NUMBER a, NUMBER b) { return a / b; }                                               \
    inline NUMBER __hfma(NUMBER a, NUMBER b, NUMBER c) { return NUMBER(std::fma(float(a), float(b), float(c))); } \
    inline NUMBER __hneg(NUMBER a) { return NUMBER(-float(a)); }                                             \
    inline NUMBER __habs(NUMBER a) { return NUMBER(std::fabs(float(a))); }                                   \
    inline bool __hisnan(NUMBER a) { return std::isnan(float(a)); }                                          \
    inline NUMBER __low2half(PAIR a) { return a.x; }                                                         \
    inline NUMBER __high2half(PAIR a) { return a.y; }                                                        \
    inline float __low2float(PAIR a) { return a.x; }                                                         \
    inline float __high2float(PAIR a) { return a.y; }                                                        \
    inline PAIR __halves2##PAIR(NUMBER a, NUMBER b) { return {a, b}; }                                       \
    inline float2 emulated_floats(PAIR a) { return {float(a.x), float(a.y)}; }
using __half2 = struct half2;
using __nv_bfloat162 = struct nv_bfloat162;
EMULATED_PAIRS(half2, c10::Half)
EMULATED_PAIRS(nv_bfloat162, c10::BFloat16)
#undef EMULATED_PAIRS

// The one that is a number where the other is not.
#define EMULATED_CHOICE(PAIR, NUMBER, NAME, OPERATOR)                                                        \
    inline NUMBER __h##NAME(NUMBER a, NUMBER b) {                                                            \
        const float x = a, y = b;                                                                            \
        return x OPERATOR y || y != y ? a : b;                                                               \
    }                                                                                                        \
    inline NUMBER __h##NAME##_nan(NUMBER a, NUMBER b) {                                                      \
        return std::isnan(float(a)) ? a : (std::isnan(float(b)) ? b : __h##NAME(a, b));                      \
    }                                                                                                        \
    inline PAIR __h##NAME##2(PAIR a, PAIR b) { return {__h##NAME(a.x, b.x), __h##NAME(a.y, b.y)}; }          \
    inline PAIR __h##NAME##2_nan(PAIR a, PAIR b) { return {__h##NAME##_nan(a.x, b.x), __h##NAME##_nan(a.y, b.y)}; }

// What is not a number compares as false, with a `u` as true.
#define EMULATED_COMPARISON(PAIR, NUMBER, NAME, OPERATOR)                                                    \
    inline bool __h##NAME(NUMBER a, NUMBER b) {                                                              \
        const float x = a, y = b;                                                                            \
        return !std::isunordered(x, y) && x OPERATOR y;                                                      \
    }                                                                                                        \
    inline bool __h##NAME##u(NUMBER a, NUMBER b) {                                                           \
        const float x = a, y = b;                                                                            \
        return std::isunordered(x, y) || x OPERATOR y;                                                       \
    }                                                                                                        \
    EMULATED_COMPARED_PAIRS(PAIR, NUMBER, NAME)                                                              \
    EMULATED_COMPARED_PAIRS(PAIR, NUMBER, NAME##u)
#define EMULATED_COMPARED_PAIRS(PAIR, NUMBER, NAME) EMULATED_COMPARED(PAIR, NUMBER, __h##NAME, __hb##NAME##2)
#define EMULATED_COMPARED(PAIR, NUMBER, NAME, BOTH)                                                          \
    inline PAIR NAME##2(PAIR a, PAIR b) { return {NUMBER(NAME(a.x, b.x)), NUMBER(NAME(a.y, b.y))}; }         \
    inline unsigned NAME##2_mask(PAIR a, PAIR b) { return NAME(a.x, b.x) * 0xFFFFu + NAME(a.y, b.y) * 0xFFFF0000u; } \
    inline bool BOTH(PAIR a, PAIR b) { return NAME(a.x, b.x) && NAME(a.y, b.y); }

#define EMULATED_FUNCTION(PAIR, NUMBER, NAME, RESULT)                                                        \
    inline NUMBER h##NAME(NUMBER a) {                                                                        \
        const float x = a;                                                                                   \
        return NUMBER(RESULT);                                                                               \
    }                                                                                                        \
    inline PAIR h2##NAME(PAIR a) { return {h##NAME(a.x), h##NAME(a.y)}; }

#define EMULATED_FUNCTIONS(PAIR, NUMBER)                          \
    EMULATED_CHOICE(PAIR, NUMBER, max, >)                         \
    EMULATED_CHOICE(PAIR, NUMBER, min, <)                         \
    EMULATED_COMPARISON(PAIR, NUMBER, eq, ==)                     \
    EMULATED_COMPARISON(PAIR, NUMBER, ne, !=)                     \
    EMULATED_COMPARISON(PAIR, NUMBER, lt, <)                      \
    EMULATED_COMPARISON(PAIR, NUMBER, le, <=)                     \
    EMULATED_COMPARISON(PAIR, NUMBER, gt, >)                      \
    EMULATED_COMPARISON(PAIR, NUMBER, ge, >=)                     \
    EMULATED_FUNCTION(PAIR, NUMBER, exp, std::exp(x))             \
    EMULATED_FUNCTION(PAIR, NUMBER, exp2, std::exp2(x))           \
    EMULATED_FUNCTION(PAIR, NUMBER, exp10, std::pow(10.0f, x))    \
    EMULATED_FUNCTION(PAIR, NUMBER, log, std::log(x))             \
    EMULATED_FUNCTION(PAIR, NUMBER, log2, std::log2(x))           \
    EMULATED_FUNCTION(PAIR, NUMBER, log10, std::log10(x))         \
    EMULATED_FUNCTION(PAIR, NUMBER, sqrt, std::sqrt(x))           \
    EMULATED_FUNCTION(PAIR, NUMBER, rsqrt, 1.0f / std::sqrt(x))   \
    EMULATED_FUNCTION(PAIR, NUMBER, rcp, 1.0f / x)                \
    EMULATED_FUNCTION(PAIR, NUMBER, sin, std::sin(x))             \
    EMULATED_FUNCTION(PAIR, NUMBER, cos, std::cos(x))             \
    EMULATED_FUNCTION(PAIR, NUMBER, tanh, std::tanh(x))           \
    EMULATED_FUNCTION(PAIR, NUMBER, tanh_approx, std::tanh(x))    \
    EMULATED_FUNCTION(PAIR, NUMBER, floor, std::floor(x))         \
    EMULATED_FUNCTION(PAIR, NUMBER, ceil, std::ceil(x))           \
    EMULATED_FUNCTION(PAIR, NUMBER, trunc, std::trunc(x))         \
    EMULATED_FUNCTION(PAIR, NUMBER, rint, std::nearbyint(x))      \
    inline NUMBER __hadd_rn(NUMBER a, NUMBER b) { return a + b; } \
    inline NUMBER __hsub_rn(NUMBER a, NUMBER b) { return a - b; } \
    inline NUMBER __hmul_rn(NUMBER a, NUMBER b) { return a * b; } \
    inline PAIR __hadd2_rn(PAIR a, PAIR b) { return a + b; }      \
    inline PAIR __hsub2_rn(PAIR a, PAIR b) { return a - b; }      \
    inline PAIR __hmul2_rn(PAIR a, PAIR b) { return a * b; }      \
    inline NUMBER __hfma_relu(NUMBER a, NUMBER b, NUMBER c) { return __hmax_nan(__hfma(a, b, c), NUMBER(0.0f)); } \
    inline PAIR __hfma2_relu(PAIR a, PAIR b, PAIR c) { return __hmax2_nan(__hfma2(a, b, c), {0.0f, 0.0f}); } \
    inline PAIR __habs2(PAIR a) { return {__habs(a.x), __habs(a.y)}; }                                       \
    inline PAIR __hisnan2(PAIR a) { return {NUMBER(__hisnan(a.x)), NUMBER(__hisnan(a.y))}; }                 \
    inline int __hisinf(NUMBER a) { return std::isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0; }             \
    inline PAIR __lowhigh2highlow(PAIR a) { return {a.y, a.x}; }
EMULATED_FUNCTIONS(half2, c10::Half)
EMULATED_FUNCTIONS(nv_bfloat162, c10::BFloat16)
#undef EMULATED_FUNCTIONS
#undef EMULATED_FUNCTION
#undef EMULATED_COMPARED
#undef EMULATED_COMPARED_PAIRS
#undef EMULATED_COMPARISON
#undef EMULATED_CHOICE

EMULATED_INTEGERS(half, half)
EMULATED_INTEGER(half, short, half, short)
EMULATED_INTEGER(half, ushort, half, unsigned short)
EMULATED_INTEGERS(bfloat16, nv_bfloat16)
EMULATED_INTEGER(bfloat16, short, nv_bfloat16, short)
EMULATED_INTEGER(bfloat16, ushort, nv_bfloat16, unsigned short)
#undef EMULATED_INTEGERS
#undef EMULATED_INTEGER

inline nv_bfloat16 __low2bfloat16(nv_bfloat162 a) { return a.x; }
inline nv_bfloat16 __high2bfloat16(nv_bfloat162 a) { return a.y; }
inline nv_bfloat162 __bfloat162bfloat162(nv_bfloat16 x) { return {x, x}; }
inline float __half2float(half x) { return x; }
inline half __float2half(float x) { return x; }
inline half __float2half_rn(float x) { return x; }
inline half __int2half_rn(int x) { return static_cast<float>(x); }
inline half __double2half(double x) { return static_cast<float>(x); }
inline half2 __float2half2_rn(float x) { return {x, x}; }
inline half2 __half2half2(half x) { return {x, x}; }
inline half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline half2 __float22half2_rn(float2 a) { return {a.x, a.y}; }
inline half2 make_half2(half x, half y) { return {x, y}; }
inline float2 __half22float2(half2 a) { return emulated_floats(a); }
inline unsigned short __half_as_ushort(half x) { return x.x; }
inline half __ushort_as_half(unsigned short bits) { return half(bits, half::from_bits()); }
inline float __bfloat162float(nv_bfloat16 x) { return x; }
inline nv_bfloat16 __float2bfloat16(float x) { return x; }
inline nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline nv_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
inline nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline nv_bfloat162 __float22bfloat162_rn(float2 a) { return {a.x, a.y}; }
inline nv_bfloat162 __halves2bfloat162(nv_bfloat16 x, nv_bfloat16 y) { return {x, y}; }
inline float2 __bfloat1622float2(nv_bfloat162 a) { return emulated_floats(a); }
inline half2 __low2half2(half2 a) { return {a.x, a.x}; }
inline half2 __high2half2(half2 a) { return {a.y, a.y}; }
inline half2 __lows2half2(half2 a, half2 b) { return {a.x, b.x}; }
inline half2 __highs2half2(half2 a, half2 b) { return {a.y, b.y}; }
inline nv_bfloat162 __low2bfloat162(nv_bfloat162 a) { return {a.x, a.x}; }
inline nv_bfloat162 __high2bfloat162(nv_bfloat162 a) { return {a.y, a.y}; }
inline nv_bfloat162 __lows2bfloat162(nv_bfloat162 a, nv_bfloat162 b) { return {a.x, b.x}; }
inline nv_bfloat162 __highs2bfloat162(nv_bfloat162 a, nv_bfloat162 b) { return {a.y, b.y}; }
inline nv_bfloat162 make_bfloat162(nv_bfloat16 x, nv_bfloat16 y) { return {x, y}; }
inline short __half_as_short(half x) { return static_cast<short>(x.x); }
inline half __short_as_half(short bits) { return __ushort_as_half(static_cast<unsigned short>(bits)); }
inline unsigned short __bfloat16_as_ushort(nv_bfloat16 x) { return x.x; }
inline nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return nv_bfloat16(bits, nv_bfloat16::from_bits()); }
inline short __bfloat16_as_short(nv_bfloat16 x) { return static_cast<short>(x.x); }
inline nv_bfloat16 __short_as_bfloat16(short bits) { return __ushort_as_bfloat16(static_cast<unsigned short>(bits)); }
inline half __uint2half_rn(unsigned x) { return static_cast<float>(x); }
inline half __short2half_rn(short x) { return static_cast<float>(x); }
inline half __ushort2half_rn(unsigned short x) { return static_cast<float>(x); }
inline nv_bfloat16 __int2bfloat16_rn(int x) { return static_cast<float>(x); }
inline nv_bfloat16 __uint2bfloat16_rn(unsigned x) { return static_cast<float>(x); }
inline nv_bfloat16 __double2bfloat16(double x) { return static_cast<float>(x); }
inline half __float2half_rz(float x) {
    const half nearest = x;
    return std::fabs(float(nearest)) > std::fabs(x) ? __ushort_as_half(nearest.x - 1) : nearest;
}
inline nv_bfloat16 __float2bfloat16_rz(float x) {
    return std::isnan(x) ? nv_bfloat16(x) : __ushort_as_bfloat16(__float_as_uint(x) >> 16);
}
