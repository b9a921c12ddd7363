// A product's micro-kernel: MICRO_ROWS x MICRO_VECTORS vectors of sums stay in registers while `depth` steps are
// added, each one row of b and one element of a per row. Operands are float32 and padded to whole micro-kernels.
#pragma once

#include <cstddef>

#include "vector.hpp"

namespace micro {

using vec::Floats;

constexpr std::ptrdiff_t kColumns = std::ptrdiff_t{LANES} * MICRO_VECTORS;

constexpr std::ptrdiff_t round_up(std::ptrdiff_t value, std::ptrdiff_t step) { return (value + step - 1) / step * step; }

inline Floats load_floats(const float* from) { return vec::load_raw<Floats>(from); }

// A row of elements as floats, times a factor.
inline void widen(const vec::Element* from, float* to, std::ptrdiff_t count, float factor = 1.0f) {
    std::ptrdiff_t at = 0;
    for (; at + LANES <= count; at += LANES) vec::store_raw(to + at, vec::load(from + at) * factor);
    for (; at < count; ++at) to[at] = vec::to_float(from[at]) * factor;
}

// c[MICRO_ROWS, kColumns] = (Add: c +) a[MICRO_ROWS, depth] b[depth, kColumns].
// Transposed: a is [depth, MICRO_ROWS].
template <bool Add, bool Transposed = false>
inline void multiply(const float* a, std::ptrdiff_t a_stride, const float* b, std::ptrdiff_t b_stride, float* c,
                     std::ptrdiff_t c_stride, std::ptrdiff_t depth) {
    Floats sums[MICRO_ROWS][MICRO_VECTORS];
#pragma GCC unroll 16
    for (int row = 0; row < MICRO_ROWS; ++row) {
#pragma GCC unroll 4
        for (int vector = 0; vector < MICRO_VECTORS; ++vector) {
            sums[row][vector] = Add ? load_floats(c + row * c_stride + vector * LANES) : Floats{};
        }
    }
    for (std::ptrdiff_t step = 0; step < depth; ++step) {
        Floats right[MICRO_VECTORS];
#pragma GCC unroll 4
        for (int vector = 0; vector < MICRO_VECTORS; ++vector) {
            right[vector] = load_floats(b + step * b_stride + vector * LANES);
        }
#pragma GCC unroll 16
        for (int row = 0; row < MICRO_ROWS; ++row) {
            const Floats left = vec::splat(a[Transposed ? step * a_stride + row : row * a_stride + step]);
#pragma GCC unroll 4
            for (int vector = 0; vector < MICRO_VECTORS; ++vector) sums[row][vector] += left * right[vector];
        }
    }
#pragma GCC unroll 16
    for (int row = 0; row < MICRO_ROWS; ++row) {
#pragma GCC unroll 4
        for (int vector = 0; vector < MICRO_VECTORS; ++vector) {
            vec::store_raw(c + row * c_stride + vector * LANES, sums[row][vector]);
        }
    }
}

}  // namespace micro
