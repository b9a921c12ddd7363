// Instructions that multiply short vectors in each lane of 32 bits and add the products to the lane's sum.
//
// DOT_PAIRS: two bfloat16 in a lane (AVX512_BF16). DOT_QUADS: four bytes in a lane, without a sign on the left
// and with one on the right (AVX512_VNNI, AVX_VNNI); the sum is an integer and exact. 0 where the machine has none.
#pragma once

#include "vector.hpp"

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && (LANES == 16 || (LANES == 8 && defined(__AVX512VL__)))
#define DOT_PAIRS 1
#else
#define DOT_PAIRS 0
#endif
#if (defined(__AVX512VNNI__) && LANES == 16) || \
    (((defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__AVXVNNI__)) && LANES == 8)
#define DOT_QUADS 1
#else
#define DOT_QUADS 0
#endif

namespace dot {

#if DOT_PAIRS
// `left` is the same pair for all lanes.
inline vec::Floats add_pairs(vec::Floats sum, std::uint32_t left, vec::Words right) {
#if LANES == 16
    const auto factor = vec::bit_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(left)));
    return _mm512_dpbf16_ps(sum, factor, vec::bit_cast<__m512bh>(right));
#else
    const auto factor = vec::bit_cast<__m256bh>(_mm256_set1_epi32(static_cast<int>(left)));
    return _mm256_dpbf16_ps(sum, factor, vec::bit_cast<__m256bh>(right));
#endif
}
#endif

#if DOT_QUADS
inline vec::Ints add_quads(vec::Ints sum, std::uint32_t left, vec::Words right) {
#if LANES == 16
    const __m512i factor = _mm512_set1_epi32(static_cast<int>(left));
    const __m512i added =
        _mm512_dpbusd_epi32(vec::bit_cast<__m512i>(sum), factor, vec::bit_cast<__m512i>(right));
#else
    const __m256i factor = _mm256_set1_epi32(static_cast<int>(left));
    const auto before = vec::bit_cast<__m256i>(sum), weights = vec::bit_cast<__m256i>(right);
#if defined(__AVX512VNNI__)
    const __m256i added = _mm256_dpbusd_epi32(before, factor, weights);
#else
    const __m256i added = _mm256_dpbusd_avx_epi32(before, factor, weights);
#endif
#endif
    return vec::bit_cast<vec::Ints>(added);
}
#endif

}  // namespace dot
