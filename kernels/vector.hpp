// Vectors of LANES floats that load and store the element type of the kernel, on any CPU.
//
// GCC and Clang split a vector that is wider than the machine's registers, so the same source is right on
// SSE2, AVX2, AVX-512 and NEON; intrinsics appear only where the language cannot say what the machine can do
// (float16 conversion, scaling by a power of two, non-temporal stores). Arithmetic is always float32.
//
// Macros from the command line: LANES; one of ELEMENT_FLOAT32, ELEMENT_FLOAT16, ELEMENT_BFLOAT16.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// After the headers, so that these can be compiled ahead of all variants.
#if LANES == 1 && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")  // the scalar form is the baseline: it must stay scalar
#endif

namespace vec {

#if LANES == 1
using Floats = float;
using Ints = std::int32_t;
using Words = std::uint32_t;
using Halves = std::uint16_t;
#else
using Floats = float __attribute__((vector_size(LANES * 4)));
using Ints = std::int32_t __attribute__((vector_size(LANES * 4)));
using Words = std::uint32_t __attribute__((vector_size(LANES * 4)));
using Halves = std::uint16_t __attribute__((vector_size(LANES * 2)));
#endif

#if defined(ELEMENT_FLOAT32)
using Element = float;
#else
using Element = std::uint16_t;  // the bits: C++17 has no 16-bit floating-point types
#endif

template <class To, class From>
inline To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &from, sizeof(to));
    return to;
}

template <class Vector, class Scalar>
inline Vector load_raw(const Scalar* from) {
    Vector vector;
    __builtin_memcpy(&vector, from, sizeof(vector));
    return vector;
}

template <class Vector, class Scalar>
inline void store_raw(Scalar* to, Vector vector) {
    __builtin_memcpy(to, &vector, sizeof(vector));
}

inline Floats splat(float value) { return value - Floats{}; }  // minus keeps the sign of zero

// ---- one element ------------------------------------------------------------------------------------------

inline float bfloat16_to_float(std::uint16_t bits) { return bit_cast<float>(std::uint32_t{bits} << 16); }

inline std::uint16_t float_to_bfloat16(float value) {
    const auto bits = bit_cast<std::uint32_t>(value);
    if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40);  // stay NaN, become quiet
    const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);  // to nearest, ties to even
    return static_cast<std::uint16_t>(rounded >> 16);
}

#if defined(__F16C__)
inline float float16_to_float(std::uint16_t bits) { return _cvtsh_ss(bits); }
inline std::uint16_t float_to_float16(float value) { return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT); }
#elif defined(__aarch64__)
inline float float16_to_float(std::uint16_t bits) { return static_cast<float>(bit_cast<__fp16>(bits)); }
inline std::uint16_t float_to_float16(float value) {
    return bit_cast<std::uint16_t>(static_cast<__fp16>(value));
}
#else
// Without branches, so that loops over them vectorise: exponents are moved by an exact multiplication, which
// makes subnormals right as well.
inline float float16_to_float(std::uint16_t bits) {
    const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
    const float scaled = bit_cast<float>(std::uint32_t{bits & 0x7fffu} << 13) * 0x1p112f;
    const std::uint32_t special = scaled >= 0x1p16f ? 0x7f800000u : 0u;
    return bit_cast<float>(bit_cast<std::uint32_t>(scaled) | special | sign);
}
inline std::uint16_t float_to_float16(float value) {
    const auto bits = bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t size = bits & 0x7fffffffu;
    const float absolute = bit_cast<float>(size);
    // Below the smallest normal number an addition rounds to the grid of the subnormals (2^-24).
    const std::uint32_t small = bit_cast<std::uint32_t>(absolute + 0.5f) - bit_cast<std::uint32_t>(0.5f);
    const std::uint32_t normal = (size - 0x38000000u + 0x0fffu + ((size >> 13) & 1)) >> 13;
    const std::uint32_t finite = absolute < 0x1p-14f ? small : normal;
    const std::uint32_t large = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return static_cast<std::uint16_t>(sign | (absolute < 65520.0f ? finite : large));
}
#endif

inline float to_float(Element element) {
#if defined(ELEMENT_FLOAT32)
    return element;
#elif defined(ELEMENT_FLOAT16)
    return float16_to_float(element);
#else
    return bfloat16_to_float(element);
#endif
}

inline Element to_element(float value) {
#if defined(ELEMENT_FLOAT32)
    return value;
#elif defined(ELEMENT_FLOAT16)
    return float_to_float16(value);
#else
    return float_to_bfloat16(value);
#endif
}

// ---- LANES elements ---------------------------------------------------------------------------------------

inline Floats widen_float16(const std::uint16_t* from) {
#if defined(__AVX512F__) && LANES == 16
    return _mm512_cvtph_ps(load_raw<__m256i>(from));
#elif defined(__F16C__) && LANES % 8 == 0
    float to[LANES];
    for (int lane = 0; lane < LANES; lane += 8) {
        store_raw(to + lane, _mm256_cvtph_ps(load_raw<__m128i>(from + lane)));
    }
    return load_raw<Floats>(to);
#else
    float to[LANES];
    for (int lane = 0; lane < LANES; ++lane) to[lane] = float16_to_float(from[lane]);
    return load_raw<Floats>(to);
#endif
}

inline Halves narrow_float16(Floats values) {
#if defined(__AVX512F__) && LANES == 16
    return bit_cast<Halves>(_mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__) && LANES % 8 == 0
    float from[LANES];
    std::uint16_t to[LANES];
    store_raw(from, values);
    for (int lane = 0; lane < LANES; lane += 8) {
        store_raw(to + lane, _mm256_cvtps_ph(load_raw<__m256>(from + lane), _MM_FROUND_TO_NEAREST_INT));
    }
    return load_raw<Halves>(to);
#else
    float from[LANES];
    std::uint16_t to[LANES];
    store_raw(from, values);
    for (int lane = 0; lane < LANES; ++lane) to[lane] = float_to_float16(from[lane]);
    return load_raw<Halves>(to);
#endif
}

// GCC 12 splits these conversions in two where the machine has one instruction.
inline Words widen_words(Halves halves) {
#if defined(__AVX512F__) && LANES == 16
    return bit_cast<Words>(_mm512_cvtepu16_epi32(bit_cast<__m256i>(halves)));
#elif defined(__AVX2__) && LANES == 8
    return bit_cast<Words>(_mm256_cvtepu16_epi32(bit_cast<__m128i>(halves)));
#elif LANES > 1
    return __builtin_convertvector(halves, Words);
#else
    return halves;
#endif
}

inline Halves narrow_words(Words words) {
#if defined(__AVX512F__) && LANES == 16
    return bit_cast<Halves>(_mm512_cvtepi32_epi16(bit_cast<__m512i>(words)));
#elif defined(__AVX512VL__) && LANES == 8
    return bit_cast<Halves>(_mm256_cvtepi32_epi16(bit_cast<__m256i>(words)));
#elif LANES > 1
    return __builtin_convertvector(words, Halves);
#else
    return static_cast<Halves>(words);
#endif
}

inline Halves narrow_bfloat16(Floats values) {
#if LANES > 1
    const auto bits = bit_cast<Words>(values);
    const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const Words quiet = (bits >> 16) | 0x40u;
    return narrow_words(values != values ? quiet : rounded);
#else
    return float_to_bfloat16(values);
#endif
}

inline Floats load(const Element* from) {
#if defined(ELEMENT_FLOAT32)
    return load_raw<Floats>(from);
#elif defined(ELEMENT_FLOAT16)
    return widen_float16(from);
#else
    return bit_cast<Floats>(widen_words(load_raw<Halves>(from)) << 16);
#endif
}

inline auto narrow(Floats values) {
#if defined(ELEMENT_FLOAT32)
    return values;
#elif defined(ELEMENT_FLOAT16)
    return narrow_float16(values);
#else
    return narrow_bfloat16(values);
#endif
}

inline void store(Element* to, Floats values) { store_raw(to, narrow(values)); }

// The first `count` elements; the other lanes are `fill`.
inline Floats load_some(const Element* from, std::ptrdiff_t count, float fill) {
    Element lanes[LANES];
    for (auto& lane : lanes) lane = to_element(fill);
    __builtin_memcpy(lanes, from, static_cast<std::size_t>(count) * sizeof(Element));
    return load(lanes);
}

inline void store_some(Element* to, std::ptrdiff_t count, Floats values) {
    Element lanes[LANES];
    store(lanes, values);
    __builtin_memcpy(to, lanes, static_cast<std::size_t>(count) * sizeof(Element));
}

// Past the caches; `to` is a multiple of the vector's size (see `streamable`).
inline void stream(Element* to, Floats values) {
    const auto narrowed = narrow(values);
#if defined(__AVX512F__)
    if constexpr (sizeof(narrowed) == 64) {
        return _mm512_stream_si512(reinterpret_cast<__m512i*>(to), bit_cast<__m512i>(narrowed));
    }
#endif
#if defined(__AVX__)
    if constexpr (sizeof(narrowed) == 32) {
        return _mm256_stream_si256(reinterpret_cast<__m256i*>(to), bit_cast<__m256i>(narrowed));
    }
#endif
#if defined(__SSE2__)
    if constexpr (sizeof(narrowed) == 16) {
        return _mm_stream_si128(reinterpret_cast<__m128i*>(to), bit_cast<__m128i>(narrowed));
    }
#endif
    store_raw(to, narrowed);
}

inline bool streamable(const Element* to) {
    return LANES > 1 && reinterpret_cast<std::uintptr_t>(to) % (LANES * sizeof(Element)) == 0;
}

// Streaming stores are weakly ordered: a thread must fence before others may read what it wrote.
inline void stream_fence() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

// ---- small integers --------------------------------------------------------------------------------------

inline Words load_bytes(const std::uint8_t* from) {
#if defined(__AVX512F__) && LANES == 16
    return bit_cast<Words>(_mm512_cvtepu8_epi32(load_raw<__m128i>(from)));
#elif defined(__AVX2__) && LANES == 8
    return bit_cast<Words>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
    std::uint32_t to[LANES];
    for (int lane = 0; lane < LANES; ++lane) to[lane] = from[lane];
    return load_raw<Words>(to);
#endif
}

inline Ints load_bytes(const std::int8_t* from) {
#if defined(__AVX512F__) && LANES == 16
    return bit_cast<Ints>(_mm512_cvtepi8_epi32(load_raw<__m128i>(from)));
#elif defined(__AVX2__) && LANES == 8
    return bit_cast<Ints>(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
    std::int32_t to[LANES];
    for (int lane = 0; lane < LANES; ++lane) to[lane] = from[lane];
    return load_raw<Ints>(to);
#endif
}

// The low 8 bits of each lane.
inline void store_bytes(std::uint8_t* to, Words words) {
#if defined(__AVX512F__) && LANES == 16
    store_raw(to, _mm512_cvtepi32_epi8(bit_cast<__m512i>(words)));
#elif defined(__AVX512VL__) && LANES == 8
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm256_cvtepi32_epi8(bit_cast<__m256i>(words)));
#else
    std::uint32_t from[LANES];
    store_raw(from, words);
    for (int lane = 0; lane < LANES; ++lane) to[lane] = static_cast<std::uint8_t>(from[lane]);
#endif
}

inline Floats to_floats(Ints values) {
#if LANES > 1
    return __builtin_convertvector(values, Floats);
#else
    return static_cast<float>(values);
#endif
}

// Each lane's entry of a table of 16 floats: by the low 4 bits of the index, whatever the others are.
inline Floats look_up(const float* table, Words index) {
#if defined(__AVX512F__) && LANES == 16
    return _mm512_permutexvar_ps(bit_cast<__m512i>(index), load_raw<__m512>(table));
#elif defined(__AVX512VL__) && LANES == 8
    const auto low = load_raw<__m256>(table), high = load_raw<__m256>(table + 8);
    return _mm256_permutex2var_ps(low, bit_cast<__m256i>(index), high);
#elif defined(__AVX2__) && LANES == 8
    const __m256 low = _mm256_permutevar8x32_ps(load_raw<__m256>(table), bit_cast<__m256i>(index));
    const __m256 high = _mm256_permutevar8x32_ps(load_raw<__m256>(table + 8), bit_cast<__m256i>(index));
    return _mm256_blendv_ps(low, high, bit_cast<__m256>(index << 28));  // by bit 3, moved to the sign
#else
    std::uint32_t from[LANES];
    float to[LANES];
    store_raw(from, index);
    for (int lane = 0; lane < LANES; ++lane) to[lane] = table[from[lane] & 15u];
    return load_raw<Floats>(to);
#endif
}

// Each lane's element of an array.
inline Floats gather(const float* from, Words index) {
#if defined(__AVX512F__) && LANES == 16
    return _mm512_i32gather_ps(bit_cast<__m512i>(index), from, 4);
#elif defined(__AVX2__) && LANES == 8
    return _mm256_i32gather_ps(from, bit_cast<__m256i>(index), 4);
#else
    std::uint32_t at[LANES];
    float to[LANES];
    store_raw(at, index);
    for (int lane = 0; lane < LANES; ++lane) to[lane] = from[at[lane]];
    return load_raw<Floats>(to);
#endif
}

// Four bytes from where each lane's offset says, little-endian as the machine; they need no alignment.
inline Words gather_words(const std::uint8_t* from, Words offset) {
#if defined(__AVX512F__) && LANES == 16
    return bit_cast<Words>(_mm512_i32gather_epi32(bit_cast<__m512i>(offset), from, 1));
#elif defined(__AVX2__) && LANES == 8
    return bit_cast<Words>(_mm256_i32gather_epi32(reinterpret_cast<const int*>(from), bit_cast<__m256i>(offset), 1));
#else
    std::uint32_t at[LANES], to[LANES];
    store_raw(at, offset);
    for (int lane = 0; lane < LANES; ++lane) __builtin_memcpy(to + lane, from + at[lane], sizeof(*to));
    return load_raw<Words>(to);
#endif
}

// Whether a comparison holds in any lane.
inline bool any(bool holds) { return holds; }
#if LANES > 1
inline bool any(Ints holds) {
#if defined(__AVX512F__) && LANES == 16
    const auto bits = bit_cast<__m512i>(holds);
    return _mm512_test_epi32_mask(bits, bits) != 0;
#elif defined(__AVX__) && LANES == 8
    const auto bits = bit_cast<__m256i>(holds);
    return _mm256_testz_si256(bits, bits) == 0;
#else
    std::int32_t found = 0;
    for (int lane = 0; lane < LANES; ++lane) found |= holds[lane];
    return found != 0;
#endif
}
#endif

// The right one where either is NaN, as the machine's instruction does.
inline Floats maximum(Floats left, Floats right) { return left > right ? left : right; }

// Lane i of the result is lane i ^ Distance.
template <int Distance, std::size_t... Lane>
inline Floats exchange(Floats values, std::index_sequence<Lane...>) {
#if LANES == 1
    return values;
#elif defined(__clang__)
    return __builtin_shufflevector(values, values, (Lane ^ Distance)...);
#else
    return __builtin_shuffle(values, Ints{(Lane ^ Distance)...});
#endif
}

template <int Distance = LANES / 2, class Operation>
inline float reduce(Floats values, Operation operation) {
#if LANES == 1
    (void)operation;
    return values;
#else
    if constexpr (Distance == 0) {
        return values[0];
    } else {
        const Floats others = exchange<Distance>(values, std::make_index_sequence<LANES>{});
        return reduce<Distance / 2>(operation(values, others), operation);
    }
#endif
}

inline float reduce_sum(Floats values) {
    return reduce(values, [](Floats left, Floats right) { return left + right; });
}

inline float reduce_maximum(Floats values) { return reduce(values, maximum); }

// The larger magnitude of each lane; NaN is above infinity, so that it does not get lost.
inline Floats maximum_size(Floats left, Floats right) {
    const Words one = bit_cast<Words>(left) & 0x7fffffffu, other = bit_cast<Words>(right) & 0x7fffffffu;
    return bit_cast<Floats>(one > other ? one : other);
}

// Lanes of `first` and `second`: those of the index, which counts on from `first` to `second`.
template <int Distance, bool Upper, std::size_t... Lane>
inline Words exchange_halves(Words first, Words second, std::index_sequence<Lane...>) {
    constexpr auto index = [](std::size_t lane) {
        const std::size_t moved = Upper ? lane | Distance : lane & ~std::size_t{Distance};
        return static_cast<int>(lane & Distance ? LANES + moved : moved);
    };
#if LANES == 1
    return Upper ? second : first;
#elif defined(__clang__)
    return __builtin_shufflevector(first, second, index(Lane)...);
#else
    return __builtin_shuffle(first, second, Ints{index(Lane)...});
#endif
}

// Lane j of row i becomes lane i of row j.
template <int Distance = LANES / 2>
inline void transpose(Words (&rows)[LANES]) {
    if constexpr (Distance > 0) {
#pragma GCC unroll 16
        for (int row = 0; row < LANES; ++row) {
            if (row & Distance) continue;
            constexpr auto lanes = std::make_index_sequence<LANES>{};
            const Words first = rows[row], second = rows[row + Distance];
            rows[row] = exchange_halves<Distance, false>(first, second, lanes);
            rows[row + Distance] = exchange_halves<Distance, true>(first, second, lanes);
        }
        transpose<Distance / 2>(rows);
    }
}

// fraction * 2^exponent, exponent in [-252, 127]: in two factors, so that subnormal results are right.
inline Floats scale(Floats fraction, Floats exponent, Ints integer) {
#if defined(__AVX512F__) && LANES == 16
    (void)integer;
    return _mm512_scalef_ps(fraction, exponent);
#elif defined(__AVX512VL__) && LANES == 8
    (void)integer;
    return _mm256_scalef_ps(fraction, exponent);
#else
    (void)exponent;
    const Ints half = integer >> 1;
    const auto first = bit_cast<Floats>((bit_cast<Words>(half) + 127u) << 23);
    const auto second = bit_cast<Floats>((bit_cast<Words>(integer) - bit_cast<Words>(half) + 127u) << 23);
    return fraction * first * second;
#endif
}

// e^x for x <= 88, within 1.1 units in the last place; NaN stays NaN, -infinity gives 0.
// Range reduction after Cody and Waite, polynomial of Cephes (S. Moshier, expf.c).
inline Floats exp(Floats x) {
    constexpr float round = 0x1.8p23f;  // adding it rounds to an integer, which is then in the low bits
    x = maximum(splat(-150.0f), x);
    const Floats shifted = x * 1.44269504088896341f + round;
    const Floats exponent = shifted - round;
    const auto integer = bit_cast<Ints>(bit_cast<Words>(shifted) - bit_cast<std::uint32_t>(round));
    const Floats rest = (x - exponent * 0.693359375f) - exponent * -2.12194440e-4f;
    Floats polynomial = splat(1.9875691500e-4f);
    polynomial = polynomial * rest + 1.3981999507e-3f;
    polynomial = polynomial * rest + 8.3334519073e-3f;
    polynomial = polynomial * rest + 4.1665795894e-2f;
    polynomial = polynomial * rest + 1.6666665459e-1f;
    polynomial = polynomial * rest + 5.0000001201e-1f;
    polynomial = polynomial * (rest * rest) + rest + 1.0f;
    return scale(polynomial, exponent, integer);
}

// 1 / (1 + e^-x). The exponential of -|x| cannot overflow.
inline Floats sigmoid(Floats x) {
    const Floats one = splat(1.0f);
    const Floats small = exp(-maximum(x, -x));
    return (x >= Floats{} ? one : small) / (one + small);
}

// Within a rounding of 1: not relative to small results.
inline Floats tanh(Floats x) {
    const Floats one = splat(1.0f);
    const Floats small = exp(-2.0f * maximum(x, -x));
    const Floats size = (one - small) / (one + small);
    return x >= Floats{} ? size : -size;
}

// log(1 + e^x) = max(x, 0) + log(1 + s) with s = e^-|x| in (0, 1], and log(1 + s) = 2 artanh(s / (2 + s)), a series
// in powers of at most 1/3: eight terms leave less than one rounding, relative to the result however small s is.
inline Floats softplus(Floats x) {
    const Floats small = exp(-maximum(x, -x));
    const Floats ratio = small / (small + 2.0f);
    const Floats square = ratio * ratio;
    Floats series = splat(1.0f / 15.0f);
    series = series * square + 1.0f / 13.0f;
    series = series * square + 1.0f / 11.0f;
    series = series * square + 1.0f / 9.0f;
    series = series * square + 1.0f / 7.0f;
    series = series * square + 1.0f / 5.0f;
    series = series * square + 1.0f / 3.0f;
    series = series * square + 1.0f;
    return maximum(Floats{}, x) + 2.0f * ratio * series;
}

// ---- memory -----------------------------------------------------------------------------------------------

// A buffer that a thread keeps between calls: fresh pages cost more than the work of a small kernel.
class Scratch {
  public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { std::free(memory_); }

    // Aligned to a cache line; nullptr where there is no memory.
    void* reserve(std::size_t bytes) {
        if (bytes > size_) {
            std::free(memory_);
            size_ = (bytes + 4095) / 4096 * 4096;
            memory_ = std::aligned_alloc(4096, size_);
            if (memory_ == nullptr) size_ = 0;
        }
        return memory_;
    }

  private:
    void* memory_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace vec
