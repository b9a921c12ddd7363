// A strip of columns of c where there are few rows: b streams through once and is not packed.
#pragma once

#include "epilogue.hpp"

namespace product {

constexpr Index kFewRows = 4;
constexpr Index kStripCols = 1024;

// sums[Rows][count] += a[Rows, k .. k + Steps] b[k .. k + Steps, count]
template <Index Rows, Index Steps>
inline void add_steps(const Problem& problem, Index k, Index col, Index count, float* sums) {
    Floats factors[Rows][Steps];
    for (Index i = 0; i < Rows; ++i) {
        for (Index s = 0; s < Steps; ++s) {
            factors[i][s] = vec::splat(vec::to_float(problem.a[i * problem.stride_a + k + s]));
        }
    }
    const Element* b = problem.b + k * problem.stride_b + col;
    for (Index j = 0; j < count; j += LANES) {
        Floats row_sums[Rows];
        for (Index i = 0; i < Rows; ++i) row_sums[i] = vec::load_raw<Floats>(sums + i * kStripCols + j);
        for (Index s = 0; s < Steps; ++s) {
            const Element* at = b + s * problem.stride_b + j;
#if PREFETCH
            __builtin_prefetch(at + PREFETCH * problem.stride_b);
#endif
            const Floats values = j + LANES <= count ? vec::load(at) : vec::load_some(at, count - j, 0.0f);
            for (Index i = 0; i < Rows; ++i) row_sums[i] += factors[i][s] * values;
        }
        for (Index i = 0; i < Rows; ++i) vec::store_raw(sums + i * kStripCols + j, row_sums[i]);
    }
}

template <Index Rows>
inline void compute_strip(const Problem& problem, Index col, Index count) {
    if constexpr (Rows > 1) {
        if (problem.rows < Rows) return compute_strip<Rows - 1>(problem, col, count);
    }
    constexpr Index kStepsAtOnce = Rows <= 2 ? 8 : 4;  // factors of a stay in registers
    alignas(64) float sums[Rows * kStripCols];
    std::fill(sums, sums + Rows * kStripCols, 0.0f);
    Index k = 0;
    for (; k + kStepsAtOnce <= problem.depth; k += kStepsAtOnce) {
        add_steps<Rows, kStepsAtOnce>(problem, k, col, count, sums);
    }
    for (; k < problem.depth; ++k) add_steps<Rows, 1>(problem, k, col, count, sums);
    for (Index i = 0; i < Rows; ++i) finish_row(problem, i, col, count, sums + i * kStripCols);
}

}  // namespace product
