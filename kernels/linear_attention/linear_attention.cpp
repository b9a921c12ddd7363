// Causal linear attention with a decay per head: o_t = q_t S_t with S_t = g S_{t-1} + k_t v_t^T and g = exp(-rate).
//
// 1. In chunks of CHUNK steps (Yang et al. 2024, arXiv:2312.06635; Dao and Gu 2024, arXiv:2405.21060). Within a chunk
//    the scores q k^T are decayed, masked and multiplied by v; what lies before the chunk comes from the state:
//    o = (q k^T g^(i - j)) v + g^(i + 1) q S, then S = g^n S + (g^(n - 1 - j) k)^T v for n steps. With CHUNK = 1 this
//    is the loop over time, which reads and writes the whole state in every step; longer chunks read it once for all
//    their steps, and form more scores. Time is linear in the number of steps.
// 2. All products use one micro-kernel, as in BLIS: MICRO_ROWS rows by MICRO_VECTORS vectors of sums stay in registers.
// 3. SKIP leaves out the scores above the diagonal, in whole groups of rows.
//
// Every exponent is at most 0, so nothing overflows that the loop would not. Heads are shared among threads, and so
// are blocks of COLUMNS columns of v, whose states are independent; blocks of one head form the same scores.

#include <algorithm>
#include <atomic>

#include "../micro_kernel.hpp"

using micro::kColumns;
using micro::load_floats;
using micro::multiply;
using micro::round_up;
using vec::Element;
using vec::Floats;

namespace {

constexpr std::ptrdiff_t kParallelWork = 32768;  // multiply-adds; below, starting the threads takes longer

constexpr std::ptrdiff_t kRows = round_up(CHUNK, MICRO_ROWS);
constexpr std::ptrdiff_t kScores = round_up(CHUNK, kColumns);

struct Sizes {
    std::ptrdiff_t steps, depth;
    std::ptrdiff_t rows;   // depth, padded to whole micro-kernels as rows
    std::ptrdiff_t width;  // columns of v in a block, padded
};

// One head's tensors, [steps, depth].
struct Head {
    const Element *q, *k, *v;
    Element* o;
    float rate;
};

// Of one thread, all in float32.
struct Workspace {
    float* q;         // [kRows, rows]
    float* k;         // [rows, kScores], transposed
    float* decayed;   // the same, each step decayed to the end of the chunk
    float* v;         // [kRows, width]
    float* scores;    // [kRows, kScores]
    float* o;         // [kRows, width]
    float* state;     // [rows, width]
    float* powers;    // [CHUNK + 1]: g^0, g^1, …
};

inline std::size_t workspace_floats(const Sizes& sizes) {
    return static_cast<std::size_t>(kRows * sizes.rows + 2 * sizes.rows * kScores + 2 * kRows * sizes.width +
                                    kRows * kScores + sizes.rows * sizes.width + CHUNK + 1);
}

inline Workspace place(float* memory, const Sizes& sizes) {
    Workspace own{};
    own.q = memory;
    own.k = own.q + kRows * sizes.rows;
    own.decayed = own.k + sizes.rows * kScores;
    own.v = own.decayed + sizes.rows * kScores;
    own.scores = own.v + kRows * sizes.width;
    own.o = own.scores + kRows * kScores;
    own.state = own.o + kRows * sizes.width;
    own.powers = own.state + sizes.rows * sizes.width;
    return own;
}

// A row of elements as floats.
inline void widen(const Element* from, float* to, std::ptrdiff_t count) {
    std::ptrdiff_t at = 0;
    for (; at + LANES <= count; at += LANES) vec::store_raw(to + at, vec::load(from + at));
    for (; at < count; ++at) to[at] = vec::to_float(from[at]);
}

// The chunk's inputs in float32; rows and columns beyond them stay zero, as `attend` left them.
inline void read(const Head& head, const Sizes& sizes, const Workspace& own, std::ptrdiff_t start, std::ptrdiff_t count,
                 std::ptrdiff_t column, std::ptrdiff_t columns) {
    for (std::ptrdiff_t step = 0; step < count; ++step) {
        const std::ptrdiff_t from = (start + step) * sizes.depth;
        widen(head.q + from, own.q + step * sizes.rows, sizes.depth);
        widen(head.v + from + column, own.v + step * sizes.width, columns);
        const float power = own.powers[count - 1 - step];
        for (std::ptrdiff_t at = 0; at < sizes.depth; ++at) {
            const float key = vec::to_float(head.k[from + at]);
            own.k[at * kScores + step] = key;
            own.decayed[at * kScores + step] = key * power;
        }
    }
}

// scores = q k^T g^(i - j) for j <= i, and 0 above the diagonal.
inline void score(const Sizes& sizes, const Workspace& own, std::ptrdiff_t count) {
    std::fill(own.scores, own.scores + kRows * kScores, 0.0f);
    for (std::ptrdiff_t row = 0; row < count; row += MICRO_ROWS) {
        const std::ptrdiff_t end = SKIP ? std::min<std::ptrdiff_t>(count, row + MICRO_ROWS) : count;
        for (std::ptrdiff_t step = 0; step < end; step += kColumns) {
            multiply<true>(own.q + row * sizes.rows, sizes.rows, own.k + step, kScores,
                           own.scores + row * kScores + step, kScores, sizes.depth);
        }
    }
    for (std::ptrdiff_t row = 0; row < count; ++row) {
        float* scores = own.scores + row * kScores;
        for (std::ptrdiff_t step = 0; step <= row; ++step) scores[step] *= own.powers[row - step];
        std::fill(scores + row + 1, scores + kScores, 0.0f);
    }
}

// o = g^(i + 1) q S + scores v.
inline void weigh(const Sizes& sizes, const Workspace& own, std::ptrdiff_t count) {
    std::fill(own.o, own.o + kRows * sizes.width, 0.0f);
    for (std::ptrdiff_t row = 0; row < count; row += MICRO_ROWS) {
        const std::ptrdiff_t end = SKIP ? std::min<std::ptrdiff_t>(count, row + MICRO_ROWS) : count;
        float* o = own.o + row * sizes.width;
        for (std::ptrdiff_t column = 0; column < sizes.width; column += kColumns) {
            multiply<true>(own.q + row * sizes.rows, sizes.rows, own.state + column, sizes.width, o + column,
                           sizes.width, sizes.depth);
        }
        for (std::ptrdiff_t each = 0; each < MICRO_ROWS; ++each) {
            const float power = own.powers[std::min<std::ptrdiff_t>(row + each + 1, CHUNK)];
            for (std::ptrdiff_t at = 0; at < sizes.width; at += LANES) {
                float* to = o + each * sizes.width + at;
                vec::store_raw(to, load_floats(to) * power);
            }
        }
        for (std::ptrdiff_t column = 0; column < sizes.width; column += kColumns) {
            multiply<true>(own.scores + row * kScores, kScores, own.v + column, sizes.width, o + column,
                           sizes.width, end);
        }
    }
}

// S = g^count S + decayed v.
inline void remember(const Sizes& sizes, const Workspace& own, std::ptrdiff_t count) {
    const float power = own.powers[count];
    for (std::ptrdiff_t at = 0; at < sizes.rows * sizes.width; at += LANES) {
        vec::store_raw(own.state + at, load_floats(own.state + at) * power);
    }
    for (std::ptrdiff_t row = 0; row < sizes.rows; row += MICRO_ROWS) {
        for (std::ptrdiff_t column = 0; column < sizes.width; column += kColumns) {
            multiply<true>(own.decayed + row * kScores, kScores, own.v + column, sizes.width,
                           own.state + row * sizes.width + column, sizes.width, count);
        }
    }
}

// All steps of a block of columns.
void attend(const Head& head, const Sizes& sizes, const Workspace& own, std::ptrdiff_t column) {
    const std::ptrdiff_t columns = std::min<std::ptrdiff_t>(COLUMNS, sizes.depth - column);
    std::fill(own.q, own.powers, 0.0f);
    for (std::ptrdiff_t power = 0; power <= CHUNK; ++power) {
        own.powers[power] = std::exp(-head.rate * static_cast<float>(power));
    }
    for (std::ptrdiff_t start = 0; start < sizes.steps; start += CHUNK) {
        const std::ptrdiff_t count = std::min<std::ptrdiff_t>(CHUNK, sizes.steps - start);
        read(head, sizes, own, start, count, column, columns);
        score(sizes, own, count);
        weigh(sizes, own, count);
        remember(sizes, own, count);
        for (std::ptrdiff_t step = 0; step < count; ++step) {
            Element* to = head.o + (start + step) * sizes.depth + column;
            const float* from = own.o + step * sizes.width;
            std::ptrdiff_t at = 0;
            for (; at + LANES <= columns; at += LANES) vec::store(to + at, load_floats(from + at));
            if (at < columns) vec::store_some(to + at, columns - at, load_floats(from + at));
        }
    }
}

}  // namespace

// q, k, v, o [batch, heads, steps, depth], rate[heads]. 1: no memory for a chunk.
extern "C" int linear_attention(const Element* q, const Element* k, const Element* v, const Element* rate, Element* o,
                                std::int64_t batch, std::int64_t heads, std::int64_t steps, std::int64_t depth) {
    const std::ptrdiff_t columns = std::min<std::ptrdiff_t>(COLUMNS, std::max<std::int64_t>(depth, 1));
    const Sizes sizes{steps, depth, round_up(std::max<std::int64_t>(depth, 1), MICRO_ROWS), round_up(columns, kColumns)};
    const std::ptrdiff_t blocks = (depth + COLUMNS - 1) / COLUMNS;
    std::atomic<int> failed{0};
#pragma omp parallel if (batch * heads * steps * depth * depth >= kParallelWork)
    {
        static thread_local vec::Scratch scratch;
        auto* memory = static_cast<float*>(scratch.reserve(workspace_floats(sizes) * sizeof(float)));
        if (memory == nullptr) failed = 1;
#pragma omp for schedule(dynamic)
        for (std::ptrdiff_t task = 0; task < batch * heads * blocks; ++task) {
            if (memory == nullptr) continue;
            const std::ptrdiff_t head = task / blocks, from = head * steps * depth;
            attend({q + from, k + from, v + from, o + from, vec::to_float(rate[head % heads])}, sizes,
                   place(memory, sizes), task % blocks * COLUMNS);
        }
    }
    return failed;
}
