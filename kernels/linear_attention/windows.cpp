// Linear attention within windows of any sizes: o_t = (q_t S) / (q_t s + eps) with S = sum of k_i^T v_i and s
// = sum of k_i over the tokens of a window, q and k cut off at 0. He et al. 2024, arXiv:2401.00912.
//
// 1. Tokens are one flat list. A window is read where it lies: nothing is sorted, padded or gathered.
// 2. q (k^T v) in place of (q k^T) v: time is linear in the tokens of a window. Its state stays in L1.
// 3. CHUNK tokens at a time are widened, and multiplied with MICRO_ROWS x MICRO_VECTORS vectors of sums in
//    registers.
//
// Windows and heads are shared among threads, each of them one task.

#include <algorithm>

#include "../micro_kernel.hpp"
#include "../store_rows.hpp"
#include "../tasks.hpp"

using micro::kColumns;
using micro::round_up;
using vec::Element;
using vec::Floats;
using Index = std::ptrdiff_t;

namespace {

constexpr Index kParallelWork = 32768;  // multiply-adds; below, starting the threads takes longer
constexpr Index kTokens = round_up(CHUNK, MICRO_ROWS);

struct Sizes {
    Index heads, depth;
    Index rows;    // depth in whole micro-kernels as rows of the state
    Index stride;  // and in whole vectors: from token to token of q and k
    Index width;   // depth in whole micro-kernels as columns

    Sizes(Index heads, Index depth)
        : heads(heads),
          depth(depth),
          rows(round_up(depth, MICRO_ROWS)),
          stride(round_up(rows, LANES)),
          width(round_up(depth, kColumns)) {}
    Index floats() const { return rows * width + stride + kTokens * (stride + 2 * width); }
};

// Of one thread, in float32. What lies beyond a row is read, and goes into results that are not used.
struct Workspace {
    float* state;  // [rows, width], S
    float* sum;    // [stride], s
    float* rows;   // [kTokens, stride], of q or k
    float* v;      // [kTokens, width]
    float* o;      // the same

    Workspace(float* memory, const Sizes& sizes)
        : state(memory),
          sum(state + sizes.rows * sizes.width),
          rows(sum + sizes.stride),
          v(rows + kTokens * sizes.stride),
          o(v + kTokens * sizes.width) {}
};

inline Floats load(const Element* from, Index count) {
    return count >= LANES ? vec::load(from) : vec::load_some(from, count, 0.0f);
}

// A token's q or k, cut off at 0; zeros fill the last vector.
inline void read_positive(const Element* from, Index depth, float* to) {
    for (Index at = 0; at < depth; at += LANES) {
        vec::store_raw(to + at, vec::maximum(Floats{}, load(from + at, depth - at)));
    }
}

// S and s of tokens [begin, end).
void remember(const Element* k, const Element* v, const Sizes& sizes, const Workspace& own, Index begin, Index end) {
    const Index step = sizes.heads * sizes.depth;
    std::fill(own.state, own.rows, 0.0f);
    for (Index first = begin; first < end; first += CHUNK) {
        const Index count = std::min<Index>(CHUNK, end - first);
        for (Index token = 0; token < count; ++token) {
            float* keys = own.rows + token * sizes.stride;
            read_positive(k + (first + token) * step, sizes.depth, keys);
            micro::widen(v + (first + token) * step, own.v + token * sizes.width, sizes.depth);
            for (Index at = 0; at < sizes.depth; at += LANES) {
                vec::store_raw(own.sum + at, micro::load_floats(own.sum + at) + micro::load_floats(keys + at));
            }
        }
        for (Index row = 0; row < sizes.rows; row += MICRO_ROWS) {
            for (Index column = 0; column < sizes.width; column += kColumns) {
                micro::multiply<true, true>(own.rows + row, sizes.stride, own.v + column, sizes.width,
                                            own.state + row * sizes.width + column, sizes.width, count);
            }
        }
    }
}

// o of tokens [begin, end).
void look_up(const Element* q, Element* o, float eps, const Sizes& sizes, const Workspace& own, Index begin, Index end) {
    const Index step = sizes.heads * sizes.depth;
    for (Index first = begin; first < end; first += CHUNK) {
        const Index count = std::min<Index>(CHUNK, end - first);
        for (Index token = 0; token < count; ++token) {
            read_positive(q + (first + token) * step, sizes.depth, own.rows + token * sizes.stride);
        }
        for (Index token = 0; token < count; token += MICRO_ROWS) {
            for (Index column = 0; column < sizes.width; column += kColumns) {
                micro::multiply<false>(own.rows + token * sizes.stride, sizes.stride, own.state + column, sizes.width,
                                       own.o + token * sizes.width + column, sizes.width, sizes.depth);
            }
        }
        for (Index token = 0; token < count; ++token) {
            const float* queries = own.rows + token * sizes.stride;
            Floats products{};
            for (Index at = 0; at < sizes.depth; at += LANES) {
                products += micro::load_floats(queries + at) * micro::load_floats(own.sum + at);
            }
            const float share = 1.0f / (vec::reduce_sum(products) + eps);
            float* row = own.o + token * sizes.width;
            for (Index at = 0; at < sizes.width; at += LANES) {
                vec::store_raw(row + at, micro::load_floats(row + at) * share);
            }
        }
        store_rows(own.o, sizes.width, count, sizes.depth, o + first * step, step);
    }
}

}  // namespace

// q, k, v, o [tokens, heads, depth], ends[windows]. 1: no memory.
extern "C" int linear_attention_windows(const Element* q, const Element* k, const Element* v, const std::int32_t* ends,
                                        Element* o, std::int64_t tokens, std::int64_t windows, std::int64_t heads,
                                        std::int64_t depth, double eps) {
    const Sizes sizes(heads, depth);
    const bool parallel = tokens * heads * depth * depth >= kParallelWork;
    const auto run = [&](Index task, float* memory) {
        const Index window = task / heads, at = task % heads * depth;
        const Index begin = window > 0 ? ends[window - 1] : 0, end = ends[window];
        if (begin == end) return;
        const Workspace own(memory, sizes);
        remember(k + at, v + at, sizes, own, begin, end);
        look_up(q + at, o + at, static_cast<float>(eps), sizes, own, begin, end);
    };
    return tasks::for_each(windows * heads, sizes.floats() + 1, parallel, run);
}
