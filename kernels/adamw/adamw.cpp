// One step of AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101), in float32:
//   m = beta1 m + (1 - beta1) g,    v = beta2 v + (1 - beta2) g^2,
//   p = p - lr weight_decay p - lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps).
//
// 1. FUSE: the three results of an element are computed while its gradient and moments are in registers, so that
//    memory sees each of the four inputs and three outputs once; composed operators pass over them a dozen times.
//    Without it there is a sweep for each result, and m and v are read again. Bandwidth is the limit.
// 2. STREAM writes the results past the caches: nothing reads them before the next step.
// 3. UNROLL independent vectors hide the latency of square root and division.
//
// Moments are float32 whatever the parameters are.

#include <omp.h>

#include "../rows.hpp"
#include "step.hpp"

using adam::Constants;
using rows::Index;
using vec::Element;
using vec::Floats;

namespace {

struct State {
    const Element* p;
    const Element* g;
    const float* m;
    const float* v;
    Element* p_out;
    float* m_out;
    float* v_out;
};

inline void stream_floats(float* to, Floats values) {
#if defined(__AVX512F__) && LANES == 16
    _mm512_stream_ps(to, values);
#elif defined(__AVX__) && LANES == 8
    _mm256_stream_ps(to, values);
#else
    vec::store_raw(to, values);
#endif
}

template <class Whole>
inline void store_moment(Whole whole, float* to, Index rest, Floats values, bool past) {
    if (Whole::value && past) {
        stream_floats(to, values);
    } else {
        rows::store_floats(whole, to, rest, values);
    }
}

inline bool streamable(const float* to) {
    return reinterpret_cast<std::uintptr_t>(to) % (LANES * sizeof(float)) == 0;
}

// Elements [begin, end); begin is a multiple of LANES.
inline void update(const State& state, const Constants& constants, Index begin, Index end) {
    const bool past = STREAM && vec::streamable(state.p_out) && streamable(state.m_out) && streamable(state.v_out);
    const auto first = [&](Index at, auto whole) {
        const Floats g = rows::load(whole, state.g + at, end - at);
        const Floats m = rows::load_floats(whole, state.m + at, end - at);
        const Floats result = adam::first_moment(constants, m, g);
        store_moment(whole, state.m_out + at, end - at, result, past);
        return result;
    };
    const auto second = [&](Index at, auto whole) {
        const Floats g = rows::load(whole, state.g + at, end - at);
        const Floats v = rows::load_floats(whole, state.v + at, end - at);
        const Floats result = adam::second_moment(constants, v, g);
        store_moment(whole, state.v_out + at, end - at, result, past);
        return result;
    };
    const auto parameter = [&](Index at, auto whole, Floats m, Floats v) {
        const Floats p = rows::load(whole, state.p + at, end - at);
        const Floats result = p - constants.decay * p - adam::change(constants, m, v);
        rows::store(whole, state.p_out + at, end - at, result, past);
    };
#if FUSE
    rows::for_each_vector(begin, end, [&](Index at, int, auto whole) {
        parameter(at, whole, first(at, whole), second(at, whole));
    });
#else
    rows::for_each_vector(begin, end, [&](Index at, int, auto whole) { first(at, whole); });
    rows::for_each_vector(begin, end, [&](Index at, int, auto whole) { second(at, whole); });
    rows::for_each_vector(begin, end, [&](Index at, int, auto whole) {
        const Floats m = rows::load_floats(whole, state.m_out + at, end - at);
        const Floats v = rows::load_floats(whole, state.v_out + at, end - at);
        parameter(at, whole, m, v);
    });
#endif
}

}  // namespace

// p, g [rows, cols], m, v [rows, cols] in float32 -> p_out, m_out, v_out. Always returns 0.
extern "C" int adamw(const Element* p, const Element* g, const float* m, const float* v, Element* p_out,
                     float* m_out, float* v_out, std::int64_t rows, std::int64_t cols, double lr, double beta1,
                     double beta2, double eps, double weight_decay, double step) {
    const State state{p, g, m, v, p_out, m_out, v_out};
    const Constants constants(lr, beta1, beta2, eps, weight_decay, step);
    const Index total = rows * cols;
    // One part for each thread: elements are independent, so results do not depend on their number.
#pragma omp parallel if (total >= rows::kParallelElements)
    {
        const Index threads = omp_get_num_threads();
        const Index part = ((total + threads - 1) / threads + LANES - 1) / LANES * LANES;
        const Index begin = std::min(total, omp_get_thread_num() * part);
        update(state, constants, begin, std::min(total, begin + part));
        if (STREAM) vec::stream_fence();
    }
    return 0;
}
