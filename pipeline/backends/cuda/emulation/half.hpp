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
    inline PAIR __hmax2(PAIR a, PAIR b) { return {a.x < b.x ? b.x : a.x, a.y < b.y ? b.y : a.y}; }           \
    inline PAIR __hmin2(PAIR a, PAIR b) { return {b.x < a.x ? b.x : a.x, b.y < a.y ? b.y : a.y}; }           \
    inline PAIR __hneg2(PAIR a) { return {NUMBER(-float(a.x)), NUMBER(-float(a.y))}; }                       \
    inline NUMBER __hadd(NUMBER a, NUMBER b) { return a + b; }                                               \
    inline NUMBER __hsub(NUMBER a, NUMBER b) { return a - b; }                                               \
    inline NUMBER __hmul(NUMBER a, NUMBER b) { return a * b; }                                               \
    inline NUMBER __hdiv(NUMBER a, NUMBER b) { return a / b; }                                               \
    inline NUMBER __hfma(NUMBER a, NUMBER b, NUMBER c) { return NUMBER(std::fma(float(a), float(b), float(c))); } \
    inline NUMBER __hmax(NUMBER a, NUMBER b) { return a < b ? b : a; }                                       \
    inline NUMBER __hmin(NUMBER a, NUMBER b) { return b < a ? b : a; }                                       \
    inline NUMBER __hneg(NUMBER a) { return NUMBER(-float(a)); }                                             \
    inline NUMBER __habs(NUMBER a) { return NUMBER(std::fabs(float(a))); }                                   \
    inline bool __hgt(NUMBER a, NUMBER b) { return float(a) > float(b); }                                    \
    inline bool __hge(NUMBER a, NUMBER b) { return float(a) >= float(b); }                                   \
    inline bool __hlt(NUMBER a, NUMBER b) { return float(a) < float(b); }                                    \
    inline bool __hle(NUMBER a, NUMBER b) { return float(a) <= float(b); }                                   \
    inline bool __heq(NUMBER a, NUMBER b) { return float(a) == float(b); }                                   \
    inline bool __hne(NUMBER a, NUMBER b) { return float(a) != float(b); }                                   \
    inline NUMBER htanh(NUMBER a) { return NUMBER(std::tanh(float(a))); }                                    \
    inline bool __hisnan(NUMBER a) { return std::isnan(float(a)); }                                          \
    inline NUMBER hexp(NUMBER a) { return NUMBER(std::exp(float(a))); }                                      \
    inline NUMBER hlog(NUMBER a) { return NUMBER(std::log(float(a))); }                                      \
    inline NUMBER hsqrt(NUMBER a) { return NUMBER(std::sqrt(float(a))); }                                    \
    inline NUMBER hrsqrt(NUMBER a) { return NUMBER(1.0f / std::sqrt(float(a))); }                            \
    inline NUMBER hrcp(NUMBER a) { return NUMBER(1.0f / float(a)); }                                         \
    inline PAIR h2exp(PAIR a) { return {hexp(a.x), hexp(a.y)}; }                                             \
    inline PAIR h2sqrt(PAIR a) { return {hsqrt(a.x), hsqrt(a.y)}; }                                          \
    inline PAIR h2rsqrt(PAIR a) { return {hrsqrt(a.x), hrsqrt(a.y)}; }                                       \
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

inline int __half2int_rn(half x) { return static_cast<int>(std::nearbyint(float(x))); }
inline int __half2int_rz(half x) { return static_cast<int>(float(x)); }
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
