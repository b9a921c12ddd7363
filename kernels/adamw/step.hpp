// One step of AdamW on vectors: what kernels share that store moments otherwise, or apply the step to
// something else.
#pragma once

#include "../vector.hpp"

namespace adam {

using vec::Floats;

// Corrections of the bias are computed once, in double.
struct Constants {
    float beta1, beta2, one_minus_beta1, one_minus_beta2;
    float step_size;    // lr / (1 - beta1^step)
    float root_factor;  // 1 / sqrt(1 - beta2^step)
    float eps, decay;   // decay: lr weight_decay

    Constants(double lr, double first, double second, double epsilon, double weight_decay, double step)
        : beta1(static_cast<float>(first)),
          beta2(static_cast<float>(second)),
          one_minus_beta1(static_cast<float>(1.0 - first)),
          one_minus_beta2(static_cast<float>(1.0 - second)),
          step_size(static_cast<float>(lr / (1.0 - std::pow(first, step)))),
          root_factor(static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(second, step)))),
          eps(static_cast<float>(epsilon)),
          decay(static_cast<float>(lr * weight_decay)) {}
};

// GCC has no square root of its vectors; of a loop over lanes it makes one instruction.
inline Floats square_root(Floats values) {
    float lanes[LANES];
    vec::store_raw(lanes, values);
    for (float& lane : lanes) lane = std::sqrt(lane);
    return vec::load_raw<Floats>(lanes);
}

inline Floats first_moment(const Constants& constants, Floats m, Floats g) {
    return constants.beta1 * m + constants.one_minus_beta1 * g;
}

inline Floats second_moment(const Constants& constants, Floats v, Floats g) {
    return constants.beta2 * v + constants.one_minus_beta2 * g * g;
}

// What the moments after the step change a parameter by, the sign aside.
inline Floats change(const Constants& constants, Floats m, Floats v) {
    return constants.step_size * m / (square_root(v) * constants.root_factor + constants.eps);
}

}  // namespace adam
