// Rotary position embedding: element i of the first half of a head and element i of the second are turned by the
// angle of token and i, in float32. With DIRECTION_BACKWARD by the negative angle, which is the gradient.
//
// 1. Both products and both results of a pair are computed from one load of each half, where composed operators
//    pass over the halves several times. Bandwidth is the limit.
// 2. FUSE turns queries and keys of a token together (Hsu et al. 2024, arXiv:2410.10989), so that its cos and sin
//    are read from memory once and stay in L1 for all heads. Without it all queries come before all keys.
// 3. STREAM writes the results past the caches, which saves reading the lines that are about to be overwritten;
//    it loses where attention would have found them in a cache.
//
// Tokens are shared among threads.

#include "../rows.hpp"

using rows::Index;
using vec::Element;
using vec::Floats;

namespace {

#if defined(DIRECTION_BACKWARD)
constexpr float kSign = -1.0f;
#else
constexpr float kSign = 1.0f;
#endif

// cos and sin of one token.
struct Angles {
    const Element* cos;
    const Element* sin;
};

inline void rotate_heads(const Element* from, Element* to, const Angles& angles, Index heads, Index half) {
    for (Index head = 0; head < heads; ++head) {
        const Element* first = from + head * 2 * half;
        Element* out = to + head * 2 * half;
        const bool past = STREAM && vec::streamable(out) && vec::streamable(out + half);
        rows::for_each_vector(0, half, [&](Index i, int, auto whole) {
            const Index rest = half - i;
            const Floats cos = rows::load(whole, angles.cos + i, rest);
            const Floats sin = kSign * rows::load(whole, angles.sin + i, rest);
            const Floats x = rows::load(whole, first + i, rest);
            const Floats y = rows::load(whole, first + half + i, rest);
            rows::store(whole, out + i, rest, x * cos - y * sin, past);
            rows::store(whole, out + half + i, rest, y * cos + x * sin, past);
        });
    }
}

}  // namespace

// q[tokens, heads, 2, half], k[tokens, kv_heads, 2, half], cos, sin [tokens, half] -> q_out, k_out as q, k.
// 1: halves that are not two.
extern "C" int rotary_embedding(const Element* q, const Element* k, const Element* cos, const Element* sin,
                                Element* q_out, Element* k_out, std::int64_t tokens, std::int64_t heads,
                                std::int64_t kv_heads, std::int64_t pair, std::int64_t half) {
    if (pair != 2) return 1;
    const Index q_size = heads * 2 * half;
    const Index k_size = kv_heads * 2 * half;
#pragma omp parallel if (tokens * (q_size + k_size) >= rows::kParallelElements)
    {
        if (!FUSE) {
#pragma omp for schedule(static)
            for (std::int64_t token = 0; token < tokens; ++token) {
                const Angles angles{cos + token * half, sin + token * half};
                rotate_heads(q + token * q_size, q_out + token * q_size, angles, heads, half);
            }
        }
#pragma omp for schedule(static)
        for (std::int64_t token = 0; token < tokens; ++token) {
            const Angles angles{cos + token * half, sin + token * half};
            if (FUSE) rotate_heads(q + token * q_size, q_out + token * q_size, angles, heads, half);
            rotate_heads(k + token * k_size, k_out + token * k_size, angles, kv_heads, half);
        }
        if (STREAM) vec::stream_fence();
    }
    return 0;
}
