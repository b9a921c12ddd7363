// Rows of attention are queries and, within a query, the heads that share keys and values: which ones they
// are, and which keys they see.
#pragma once

#include <algorithm>

#include "../micro_kernel.hpp"

namespace heads {

using micro::kColumns;
using micro::load_floats;
using micro::multiply;
using micro::round_up;
using vec::Element;
using vec::Floats;

#if defined(MASK_CAUSAL)
constexpr bool kCausal = true;
#else
constexpr bool kCausal = false;
#endif
#if defined(MASK_WINDOW)
constexpr bool kWindow = true;
#else
constexpr bool kWindow = false;
#endif

constexpr std::ptrdiff_t kParallelWork = 32768;  // multiply-adds; below, starting the threads takes longer
constexpr float kHidden = -__builtin_inff();

struct Sizes {
    std::ptrdiff_t groups, queries, keys;
    std::ptrdiff_t depth, values;         // of a query and a key; of a value and a result
    std::ptrdiff_t width, value_width;    // the same as floats, padded
    std::ptrdiff_t past;                  // keys before the first query's own
    std::ptrdiff_t group_step, query_step, key_step;  // from one to the next in memory, in rows
};

inline std::ptrdiff_t width_of(std::ptrdiff_t depth) { return round_up(std::max<std::ptrdiff_t>(depth, 1), kColumns); }

// Of one batch of q[groups, queries, depth], k[keys, depth], v[keys, values].
inline Sizes sizes_of(std::ptrdiff_t groups, std::ptrdiff_t queries, std::ptrdiff_t keys, std::ptrdiff_t depth,
                      std::ptrdiff_t values) {
    return {groups, queries, keys, depth, values, width_of(depth), width_of(values),
            std::max<std::ptrdiff_t>(keys - queries, 0), queries, 1, 1};
}

// Of the products of queries and keys.
inline float scale_of(const Sizes& sizes) { return 1.0f / std::sqrt(static_cast<float>(sizes.depth)); }

// The number of a row among those of q, which are also those of o.
inline std::ptrdiff_t place_of(const Sizes& sizes, std::ptrdiff_t row) {
    return row % sizes.groups * sizes.group_step + row / sizes.groups * sizes.query_step;
}

// A row sees the keys from `first_seen_by` up to, but without, `visible_to`. In a window each sees as many as
// the first one does.
inline std::ptrdiff_t first_seen_by(const Sizes& sizes, std::ptrdiff_t row) {
    return kWindow ? row / sizes.groups : 0;
}

inline std::ptrdiff_t visible_to(const Sizes& sizes, std::ptrdiff_t row) {
    return kCausal || kWindow ? std::min(sizes.keys, row / sizes.groups + sizes.past + 1) : sizes.keys;
}

// A row of elements as floats, the rest of `width` zero.
inline void widen(const Element* from, float* to, std::ptrdiff_t count, std::ptrdiff_t width, float factor) {
    const Floats factors = vec::splat(factor);
    std::ptrdiff_t at = 0;
    for (; at + LANES <= count; at += LANES) vec::store_raw(to + at, vec::load(from + at) * factors);
    for (; at < width; at += LANES) {
        const std::ptrdiff_t rest = std::max<std::ptrdiff_t>(count - at, 0);
        vec::store_raw(to + at, rest > 0 ? vec::load_some(from + at, rest, 0.0f) * factors : Floats{});
    }
}

// A row of floats, times a factor, as elements.
inline void narrow(const float* from, Element* to, std::ptrdiff_t count, float factor) {
    const Floats factors = vec::splat(factor);
    std::ptrdiff_t at = 0;
    for (; at + LANES <= count; at += LANES) vec::store(to + at, load_floats(from + at) * factors);
    if (at < count) vec::store_some(to + at, count - at, load_floats(from + at) * factors);
}

}  // namespace heads
