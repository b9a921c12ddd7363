// From finished sums to elements of c.
#pragma once

#include "problem.hpp"

namespace product {

#if defined(EPILOGUE_BIAS_GELU)
// x Phi(x). The tail Phi(-|x|) = exp(-x^2 / 2) q(1 / (1 + 0.3 |x|)) is fitted for this project (relative
// error of q 6e-8), so that nothing cancels for negative x, as it does in 1 + erf(x).
inline Floats gelu(Floats x) {
    const Floats size = x < 0.0f ? -x : x;
    const Floats w = 1.0f / (1.0f + 0.3f * size);
    Floats q = vec::splat(0.0383444608f);
    q = q * w - 0.169001583f;
    q = q * w + 0.228319995f;
    q = q * w - 0.0761172683f;
    q = q * w + 0.142266517f;
    q = q * w + 0.0947981907f;
    q = q * w + 0.121890982f;
    q = q * w + 0.119491808f;
    q = q * w + 6.92692047e-06f;
    const Floats tail = vec::exp(-0.5f * size * size) * q;
    return x > 0.0f ? x * (1.0f - tail) : x * tail;
}
#endif

// Finished sums of one row -> c[row, col .. col + count].
inline void finish_row(const Problem& problem, Index row, Index col, Index count, const float* sums) {
    Element* c = problem.c + row * problem.cols + col;
    for (Index j = 0; j < count; j += LANES) {
        const Index rest = count - j;
        Floats values = vec::load_raw<Floats>(sums + j);
#if defined(EPILOGUE_BIAS_GELU)
        const Element* bias = problem.bias + col + j;
        values = gelu(values + (rest >= LANES ? vec::load(bias) : vec::load_some(bias, rest, 0.0f)));
#endif
        if (rest >= LANES) {
            vec::store(c + j, values);
        } else {
            vec::store_some(c + j, rest, values);
        }
    }
}

}  // namespace product
