// One step of AdamW whose moments are 8-bit codes, with one scale for each block (Dettmers et al. 2021,
// arXiv:2110.02861). A block is a row; its moments are the values of their codes times its scale.
//
// 1. FUSE: the moments of a block, 256 in practice, wait in L1 until its largest ones are known, and leave as
//    codes. Memory sees a byte for each where float32 has four. Without it, all moments are stored in float32
//    between the step and the search for codes.
// 2. ARITHMETIC: codes are computed in both directions (code_book.hpp). What limits the kernel on a CPU is
//    this arithmetic, more than that of the step itself, no longer bandwidth: a GPU has more of it for each
//    byte.
// 3. UNROLL independent vectors hide the latency of square root and division.
//
// Largest moments are compared as integers, in whose order NaN is above infinity, so neither gets lost.

#include <cfloat>

#include "../rows.hpp"
#include "code_book.hpp"
#include "step.hpp"

using code_book::Book;
using rows::Index;
using vec::Element;
using vec::Floats;
using vec::Ints;
using vec::Words;
using Code = std::uint8_t;

namespace {


struct Moments {
    const Code* code;
    const float* scale;
    Code* code_out;
    float* scale_out;
};

struct State {
    const Element* p;
    const Element* g;
    Element* p_out;
    Moments first, second;
    Index block;
};

// Floats of a block's moments.
constexpr Index padded(Index block) { return (block + LANES - 1) / LANES * LANES; }

template <class Whole>
inline Words load_codes(Whole, const Code* from, Index count) {
    if (Whole::value) return vec::load_bytes(from);
    Code lanes[LANES] = {};
    __builtin_memcpy(lanes, from, static_cast<std::size_t>(count));
    return vec::load_bytes(lanes);
}

template <class Whole>
inline void store_codes(Whole, Code* to, Index count, Ints codes) {
    const auto words = vec::bit_cast<Words>(codes);
    if (Whole::value) return vec::store_bytes(to, words);
    Code lanes[LANES];
    vec::store_bytes(lanes, words);
    __builtin_memcpy(to, lanes, static_cast<std::size_t>(count));
}

// The largest of moments, as a float's bits.
class Largest {
  public:
    void add(Floats values, int u) {
        const Words size = code_book::bits_of_size(values);
        sizes_[u] = size > sizes_[u] ? size : sizes_[u];
    }
    float value() const {
        std::uint32_t largest = 0;
        for (const Words& each : sizes_) {
            std::uint32_t lanes[LANES];
            vec::store_raw(lanes, each);
            for (const std::uint32_t lane : lanes) largest = std::max(largest, lane);
        }
        return vec::bit_cast<float>(largest);
    }

  private:
    Words sizes_[UNROLL] = {};
};

template <bool Signed>
inline void store_moments(const Book<Signed>& book, const float* values, const Moments& to, Index row,
                          Index block) {
    const float scale = to.scale_out[row];
    const float inverse = 1.0f / (scale < FLT_MIN ? FLT_MIN : scale);
    Code* codes = to.code_out + row * block;
    const auto store = [&](auto encode) {
        rows::for_each_vector(0, block, [&](Index at, int, auto whole) {
            store_codes(whole, codes + at, block - at, encode(vec::load_raw<Floats>(values + at) * inverse));
        });
    };
    if (scale <= FLT_MAX) {
        store([&](Floats share) { return book.encode(share); });
    } else {
        store([&](Floats share) { return book.bisect(share); });
    }
}

// The step of one block; its moments, in float32, and their scales.
inline void update(const State& state, const adam::Constants& constants, const Book<true>& signed_book,
                   const Book<false>& book, Index row, float* m, float* v) {
    const Index block = state.block, start = row * block;
    const float first_scale = state.first.scale[row], second_scale = state.second.scale[row];
    Largest first, second;
    rows::for_each_vector(0, block, [&](Index at, int u, auto whole) {
        const Index rest = block - at, place = start + at;
        const Floats g = rows::load(whole, state.g + place, rest);
        const Floats p = rows::load(whole, state.p + place, rest);
        const Words first_code = load_codes(whole, state.first.code + place, rest);
        const Words second_code = load_codes(whole, state.second.code + place, rest);
        const Floats before = signed_book.decode(first_code) * first_scale;
        const Floats square = book.decode(second_code) * second_scale;
        const Floats m_new = rows::first_lanes(whole, adam::first_moment(constants, before, g), rest);
        const Floats v_new = rows::first_lanes(whole, adam::second_moment(constants, square, g), rest);
        vec::store_raw(m + at, m_new);
        vec::store_raw(v + at, v_new);
        first.add(m_new, u);
        second.add(v_new, u);
        const Floats result = p - constants.decay * p - adam::change(constants, m_new, v_new);
        rows::store(whole, state.p_out + place, rest, result);
    });
    state.first.scale_out[row] = first.value();
    state.second.scale_out[row] = second.value();
}

}  // namespace

// p, g [blocks, block], m_code, v_code [blocks, block], m_scale, v_scale [blocks] -> the same after the step.
// 1: no memory.
extern "C" int adamw_8bit(const Element* p, const Element* g, const Code* m_code, const float* m_scale,
                          const Code* v_code, const float* v_scale, Element* p_out, Code* m_code_out,
                          float* m_scale_out, Code* v_code_out, float* v_scale_out, std::int64_t blocks,
                          std::int64_t block, double lr, double beta1, double beta2, double eps,
                          double weight_decay, double step) {
    static const Book<true> signed_book;
    static const Book<false> book;
    static thread_local vec::Scratch shared;
    const State state{p,
                      g,
                      p_out,
                      {m_code, m_scale, m_code_out, m_scale_out},
                      {v_code, v_scale, v_code_out, v_scale_out},
                      block};
    const adam::Constants constants(lr, beta1, beta2, eps, weight_decay, step);
    const Index size = padded(block);
    const auto stored = static_cast<std::size_t>(FUSE ? 0 : 2 * blocks * size);
    auto* all = static_cast<float*>(shared.reserve(stored * sizeof(float) + 1));
    if (all == nullptr) return 1;
    int failed = 0;
#pragma omp parallel if (blocks * block >= rows::kParallelElements) reduction(| : failed)
    {
        thread_local vec::Scratch scratch;
        const std::size_t bytes = static_cast<std::size_t>(2 * size) * sizeof(float) + 1;
        auto* own = static_cast<float*>(scratch.reserve(bytes));
        failed |= own == nullptr;
#pragma omp for schedule(static)
        for (Index row = 0; row < blocks; ++row) {
            if (own == nullptr) continue;
            float* moments = FUSE ? own : all + 2 * row * size;
            update(state, constants, signed_book, book, row, moments, moments + size);
            if (!FUSE) continue;
            store_moments(signed_book, moments, state.first, row, block);
            store_moments(book, moments + size, state.second, row, block);
        }
        if (!FUSE) {
#pragma omp for schedule(static)
            for (Index row = 0; row < blocks; ++row) {
                const float* moments = all + 2 * row * size;
                store_moments(signed_book, moments, state.first, row, block);
                store_moments(book, moments + size, state.second, row, block);
            }
        }
    }
    return failed;
}
