// Scores of blocks of keys for blocks of queries, from 4-bit codes: the largest q k / sqrt(depth) of two blocks, for
// attention that leaves out blocks of small ones (SALE: Ji et al. 2025, arXiv:2505.24179).
//
// 1. The codes of a block of keys are spread once into a panel of kLanes keys side by side, four numbers of each, for
//    all queries that see it: 8 KB for a depth of 128, in L1.
// 2. INTEGER: with AVX512_VNNI one instruction multiplies four codes in each lane and adds them up. Keys are 0 to 15,
//    queries -8 to 7; what the keys' zero point adds is 8 times the sum of a query's codes. Without it codes are
//    floats: their products and sums are exact, so that both give equal bits.
// 3. MICRO_ROWS queries by MICRO_VECTORS vectors of keys stay in registers.
// 4. Only the diagonal blocks look at single keys, whether they come after the query.
//
// Scales of keys multiply sums before the maximum, that of the query multiplies the maximum: scales have no sign.
// Threads share blocks of queries.

#include <algorithm>
#include <atomic>
#include <cmath>

#include "../vector.hpp"

using vec::Element;
using vec::Floats;
using vec::Ints;
using vec::Words;
using Index = std::ptrdiff_t;

namespace {

#if INTEGER && defined(__AVX512VNNI__) && (LANES == 16 || (LANES == 8 && defined(__AVX512VL__)))
#define VNNI 1
using Sum = Ints;
using Left = std::uint32_t;  // four codes of a query
constexpr Index kFour = 1;   // values of Left, or vectors of a key, that hold four numbers
using Right = Words;
#else
#define VNNI 0
using Sum = Floats;
using Left = float;
constexpr Index kFour = 4;
using Right = Floats;
#endif

constexpr Index kLanes = Index{LANES} * MICRO_VECTORS;
constexpr float kHidden = -__builtin_inff();
constexpr Index kParallelWork = 32768;  // products; below, starting the threads takes longer

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }

struct Problem {
    const std::uint8_t *q, *k;
    const Element *q_scale, *k_scale;
    Element* score;
    Index batch, groups, query_blocks, key_blocks, block, bytes;

    Index fours() const { return ceil_div(bytes, 2); }
    Index past() const { return std::max<Index>(key_blocks - query_blocks, 0); }  // blocks
    Index rows() const { return groups * block; }                                // of a block of queries
    Index padded_rows() const { return ceil_div(rows(), MICRO_ROWS) * MICRO_ROWS; }
    Index panels() const { return ceil_div(block, kLanes); }
};

// What a thread has of its blocks. Rows are queries and, within one, the heads of the group.
struct Work {
    Right* panel;    // [panels, fours, kFour, MICRO_VECTORS]
    Left* left;      // [padded_rows, fours * kFour]
    float* zero;     // [padded_rows]: what the zero point of keys adds to their sums
    float* scale;    // [padded_rows]
    float* k_scale;  // [panels * kLanes]
};

inline Sum multiply_add(Sum sum, Left left, Right right) {
#if VNNI && LANES == 16
    return vec::bit_cast<Ints>(_mm512_dpbusd_epi32(vec::bit_cast<__m512i>(sum), vec::bit_cast<__m512i>(right),
                                                   _mm512_set1_epi32(static_cast<int>(left))));
#elif VNNI
    return vec::bit_cast<Ints>(_mm256_dpbusd_epi32(vec::bit_cast<__m256i>(sum), vec::bit_cast<__m256i>(right),
                                                   _mm256_set1_epi32(static_cast<int>(left))));
#else
    return sum + vec::splat(left) * right;
#endif
}

inline Floats to_floats(Sum sum) {
#if VNNI
    return vec::to_floats(sum);
#else
    return sum;
#endif
}

// The four codes of bytes 2 * four and 2 * four + 1 of a row; what is behind its end is the code of 0, and of no use
// to keys, whose factors there are 0.
inline std::uint32_t four_codes(const std::uint8_t* row, Index bytes, Index four) {
    const std::uint32_t low = row[2 * four], high = 2 * four + 1 < bytes ? row[2 * four + 1] : 0x88u;
    return (low & 15u) | (low >> 4) << 8 | (high & 15u) << 16 | (high >> 4) << 24;
}

void spread_queries(const Problem& problem, Index batch, Index block, Work& work) {
    const Index fours = problem.fours();
    for (Index row = 0; row < problem.padded_rows(); ++row) {
        const Index there = std::min(row, problem.rows() - 1);
        const Index head = batch * problem.groups + there % problem.groups;
        const Index at = (head * problem.query_blocks + block) * problem.block + there / problem.groups;
        const std::uint8_t* from = problem.q + at * problem.bytes;
        work.scale[row] = vec::to_float(problem.q_scale[at]);
        std::int32_t sum = 0;
        for (Index four = 0; four < fours; ++four) {
            const std::uint32_t codes = four_codes(from, problem.bytes, four);
            std::uint32_t packed = 0;
            for (int i = 0; i < 4; ++i) {
                const std::int32_t value = static_cast<std::int32_t>(codes >> 8 * i & 15u) - 8;
                sum += value;
                packed |= (static_cast<std::uint32_t>(value) & 255u) << 8 * i;
#if !VNNI
                work.left[(row * fours + four) * kFour + i] = static_cast<float>(value);
#endif
            }
#if VNNI
            work.left[row * fours + four] = packed;
#else
            (void)packed;
#endif
        }
        work.zero[row] = 8.0f * static_cast<float>(sum);
    }
}

void spread_keys(const Problem& problem, Index batch, Index block, Work& work) {
    const Index fours = problem.fours();
    std::fill_n(work.k_scale, problem.panels() * kLanes, 0.0f);
    for (Index key = 0; key < problem.block; ++key) {
        const Index at = (batch * problem.key_blocks + block) * problem.block + key;
        work.k_scale[key] = vec::to_float(problem.k_scale[at]);
        const std::uint8_t* from = problem.k + at * problem.bytes;
        Right* panel = work.panel + key / kLanes * fours * kFour * MICRO_VECTORS;
        const Index lane = key % kLanes;
        for (Index four = 0; four < fours; ++four) {
            const std::uint32_t codes = four_codes(from, problem.bytes, four);
#if VNNI
            reinterpret_cast<std::uint32_t*>(panel + four * MICRO_VECTORS)[lane] = codes;
#else
            for (int i = 0; i < 4; ++i) {
                reinterpret_cast<float*>(panel + (four * kFour + i) * MICRO_VECTORS)[lane] =
                    static_cast<float>(codes >> 8 * i & 15u);
            }
#endif
        }
    }
}

// The largest score of MICRO_ROWS rows and one panel; on the diagonal a row sees the keys up to its own.
float largest_score(const Problem& problem, const Work& work, Index row, Index panel, bool diagonal) {
    const Index steps = problem.fours() * kFour;
    const Right* right = work.panel + panel * steps * MICRO_VECTORS;
    const Left* left = work.left + row * steps;
    Sum sums[MICRO_ROWS][MICRO_VECTORS] = {};
    for (Index step = 0; step < steps; ++step, right += MICRO_VECTORS) {
#pragma GCC unroll 8
        for (int i = 0; i < MICRO_ROWS; ++i) {
#pragma GCC unroll 4
            for (int j = 0; j < MICRO_VECTORS; ++j) {
                sums[i][j] = multiply_add(sums[i][j], left[i * steps + step], right[j]);
            }
        }
    }
    float best = kHidden;
#pragma GCC unroll 8
    for (int i = 0; i < MICRO_ROWS; ++i) {
        const Index query = std::min(row + i, problem.rows() - 1) / problem.groups;
        const Index seen = (diagonal ? query + 1 : problem.block) - panel * kLanes;
        Floats top = vec::splat(kHidden);
#pragma GCC unroll 4
        for (int j = 0; j < MICRO_VECTORS; ++j) {
            const Floats scale = vec::load_raw<Floats>(work.k_scale + panel * kLanes + j * LANES);
            Floats score = (to_floats(sums[i][j]) - vec::splat(work.zero[row + i])) * scale;
            const Index there = seen - j * LANES;
            if (there < LANES) {
                float lanes[LANES];
                vec::store_raw(lanes, score);
                std::fill(lanes + std::max<Index>(there, 0), lanes + LANES, kHidden);
                score = vec::load_raw<Floats>(lanes);
            }
            top = vec::maximum(top, score);
        }
        const float largest = vec::reduce_maximum(top);
        if (largest > kHidden) best = std::max(best, largest * work.scale[row + i]);
    }
    return best;
}

float largest_of_block(const Problem& problem, const Work& work, bool diagonal) {
    float best = kHidden;
    for (Index panel = 0; panel < problem.panels(); ++panel) {
        for (Index row = 0; row < problem.rows(); row += MICRO_ROWS) {
            best = std::max(best, largest_score(problem, work, row, panel, diagonal));
        }
    }
    return best;
}

void score_block(const Problem& problem, Index batch, Index block, Work& work) {
    spread_queries(problem, batch, block, work);
    const float factor = 1.0f / std::sqrt(static_cast<float>(2 * problem.bytes));
    Element* to = problem.score + (batch * problem.query_blocks + block) * problem.key_blocks;
    for (Index keys = 0; keys < problem.key_blocks; ++keys) {
        const Index own = block + problem.past();
        if (keys <= own) spread_keys(problem, batch, keys, work);
        const float score = keys <= own ? largest_of_block(problem, work, keys == own) * factor : kHidden;
        to[keys] = vec::to_element(score);
    }
}

struct Sizes {
    std::size_t panel, left, rows;

    explicit Sizes(const Problem& problem)
        : panel(static_cast<std::size_t>(problem.panels() * problem.fours() * kFour * MICRO_VECTORS) * sizeof(Right)),
          left(static_cast<std::size_t>(problem.padded_rows() * problem.fours() * kFour) * sizeof(Left)),
          rows(static_cast<std::size_t>(problem.padded_rows())) {}
    std::size_t bytes(const Problem& problem) const {
        return panel + left + (2 * rows + static_cast<std::size_t>(problem.panels() * kLanes)) * sizeof(float);
    }
};

Work place(char* memory, const Sizes& sizes) {
    Work work{};
    work.panel = reinterpret_cast<Right*>(memory);
    work.left = reinterpret_cast<Left*>(memory + sizes.panel);
    work.zero = reinterpret_cast<float*>(memory + sizes.panel + sizes.left);
    work.scale = work.zero + sizes.rows;
    work.k_scale = work.scale + sizes.rows;
    return work;
}

}  // namespace

// q[batch, groups, query_blocks, block, bytes], k[batch, key_blocks, block, bytes] and a scale for each of their rows
// -> score[batch, query_blocks, key_blocks]. Returns 1 where there is no memory.
extern "C" int block_scores(const std::uint8_t* q, const std::uint8_t* k, const Element* q_scale,
                            const Element* k_scale, Element* score, std::int64_t batch, std::int64_t groups,
                            std::int64_t query_blocks, std::int64_t key_blocks, std::int64_t block,
                            std::int64_t bytes) {
    const Problem problem{q, k, q_scale, k_scale, score, batch, groups, query_blocks, key_blocks, block, bytes};
    if (batch * query_blocks * key_blocks == 0) return 0;
    const Sizes sizes(problem);
    std::atomic<int> failed{0};
#pragma omp parallel if (batch * query_blocks * problem.rows() * key_blocks * block * bytes >= kParallelWork)
    {
        thread_local vec::Scratch scratch;
        auto* memory = static_cast<char*>(scratch.reserve(sizes.bytes(problem)));
        if (memory == nullptr) failed = 1;
#pragma omp for schedule(dynamic)
        for (Index task = 0; task < batch * query_blocks; ++task) {
            if (memory == nullptr) continue;
            Work work = place(memory, sizes);
            // The last blocks see the most keys.
            score_block(problem, task % batch, query_blocks - 1 - task / batch, work);
        }
    }
    return failed;
}
