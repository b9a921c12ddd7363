// Decodes exponents of bfloat16 weights, the format of reference.py: each lane of a vector has a stream of codes of its
// own, so that all lanes decode the same row of as many columns at once.
//
// A load gives each lane at least 25 bits, which hold SYMBOLS codes of at most 8. TABLE: the 256 exponents and their
// lengths stay in registers, where byte permutations look them up (AVX512_VBMI); else they are gathered from L1.
#pragma once

#include <algorithm>

#include "../vector.hpp"

namespace exponents {

using vec::Words;
using Index = std::ptrdiff_t;

#if TABLE && defined(__AVX512VBMI__) && LANES >= 8
#define IN_REGISTERS 1
#else
#define IN_REGISTERS 0
#endif

constexpr Index kSteps = STEPS;      // rows of a block
constexpr Index kStreams = STREAMS;  // columns that share a start
static_assert(SYMBOLS <= 3, "codes of a window have 25 bits");

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }

inline Words splat(std::uint32_t value) { return value + Words{}; }

#if IN_REGISTERS
inline __m512i widest(Words words) {
#if LANES == 16
    return vec::bit_cast<__m512i>(words);
#else
    return _mm512_castsi256_si512(vec::bit_cast<__m256i>(words));
#endif
}
inline Words narrowest(__m512i bytes) {
#if LANES == 16
    return vec::bit_cast<Words>(bytes);
#else
    return vec::bit_cast<Words>(_mm512_castsi512_si256(bytes));
#endif
}
#endif

struct Code {
    Words exponent, length;
};

class Table {
  public:
    explicit Table(const std::int16_t* entries) {
        alignas(64) std::uint8_t exponents[256], lengths[256];
        for (int i = 0; i < 256; ++i) {
            entries_[i] = vec::bit_cast<float>(static_cast<std::int32_t>(entries[i]));
            exponents[i] = static_cast<std::uint8_t>(entries[i] >> 3);
            lengths[i] = static_cast<std::uint8_t>((entries[i] & 7) + 1);
        }
#if IN_REGISTERS
        for (int part = 0; part < 4; ++part) {
            exponents_[part] = vec::load_raw<__m512i>(exponents + 64 * part);
            lengths_[part] = vec::load_raw<__m512i>(lengths + 64 * part);
        }
#endif
    }

    // By the low 8 bits of each lane.
    Code look_up(Words window) const {
#if IN_REGISTERS
        const __m512i index = widest(window);
        const __mmask64 high = _mm512_movepi8_mask(index);
        return {narrowest(of(exponents_, index, high)) & 255u, narrowest(of(lengths_, index, high)) & 255u};
#else
        const Words entry = vec::bit_cast<Words>(vec::gather(entries_, window & 255u));
        return {entry >> 3, (entry & 7u) + 1u};
#endif
    }

  private:
#if IN_REGISTERS
    static __m512i of(const __m512i (&parts)[4], __m512i index, __mmask64 high) {
        const __m512i low = _mm512_permutex2var_epi8(parts[0], index, parts[1]);
        return _mm512_mask_blend_epi8(high, low, _mm512_permutex2var_epi8(parts[2], index, parts[3]));
    }
    __m512i exponents_[4], lengths_[4];
#endif
    alignas(64) float entries_[256];
};

struct Stored {
    const std::uint8_t* plain;
    const std::int32_t *words, *starts;
    const std::int16_t *offsets, *table;
    Index rows, cols;

    Index blocks() const { return ceil_div(rows, kSteps); }
};

// The bits of weights (as bfloat16, in the low half of each lane) of rows [block * kSteps, ...) and of
// Vectors * LANES columns from `col`: calls emit(row, vector, bits). Only the first `count` columns are there.
template <int Vectors, bool Whole, class Emit>
inline void decode_columns(const Stored& stored, const Table& table, Index block, Index col, Index count, Emit emit) {
    const Index first = block * kSteps, steps = std::min(kSteps, stored.rows - first);
    const Index group = block * ceil_div(stored.cols, kStreams) + col / kStreams;
    const auto* from = reinterpret_cast<const std::uint8_t*>(stored.words + stored.starts[group]);
    Words at[Vectors];
    for (int v = 0; v < Vectors; ++v) {
        std::uint32_t lanes[LANES];
        for (Index lane = 0; lane < LANES; ++lane) {
            const Index stream = std::min(v * LANES + lane, count - 1);
            lanes[lane] = 8u * static_cast<std::uint32_t>(stored.offsets[block * stored.cols + col + stream]);
        }
        at[v] = vec::load_raw<Words>(lanes);
    }
    const std::uint8_t* plain = stored.plain + first * stored.cols + col;
    const auto decode_some = [&](Index step, auto symbols) {
        Words window[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) window[v] = vec::gather_words(from, at[v] >> 3) >> (at[v] & 7u);
#pragma GCC unroll 4
        for (int symbol = 0; symbol < symbols; ++symbol) {
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; ++v) {
                const Code code = table.look_up(window[v]);
                window[v] = window[v] >> code.length;
                at[v] += code.length;
                Words byte;
                const std::uint8_t* place = plain + (step + symbol) * stored.cols + v * LANES;
                if (Whole) {
                    byte = vec::load_bytes(place);
                } else {
                    std::uint8_t lanes[LANES] = {};
                    const Index some = std::clamp<Index>(count - v * LANES, 0, LANES);
                    __builtin_memcpy(lanes, place, static_cast<std::size_t>(some));
                    byte = vec::load_bytes(lanes);
                }
                emit(first + step + symbol, v, (byte & 128u) << 8 | code.exponent << 7 | (byte & 127u));
            }
        }
    };
    Index step = 0;
    for (; step + SYMBOLS <= steps; step += SYMBOLS) decode_some(step, std::integral_constant<int, SYMBOLS>{});
    for (; step < steps; ++step) decode_some(step, std::integral_constant<int, 1>{});
}

template <int Vectors, class Emit>
inline void decode(const Stored& stored, const Table& table, Index block, Index col, Emit emit) {
    static_assert(kStreams % (Vectors * LANES) == 0, "these columns share a start");
    const Index count = std::min<Index>(Vectors * LANES, stored.cols - col);
    if (count == Vectors * LANES) {
        decode_columns<Vectors, true>(stored, table, block, col, count, emit);
    } else {
        decode_columns<Vectors, false>(stored, table, block, col, count, emit);
    }
}

}  // namespace exponents
