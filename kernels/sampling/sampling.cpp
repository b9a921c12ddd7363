// A token from the logits of a language model: top-k, then top-p, then a draw, without sorting the vocabulary
// (after "Sorting-Free GPU Kernels for LLM Sampling", flashinfer.ai/2025/03/10/sampling.html; Qrita, Park et
// al. 2026, arXiv:2602.01518).
//
// 1. BLOCK: of each block of so many logits the largest is found. The k-th largest of these is no larger than
//    the k-th largest of the row, so only blocks that reach it are looked at again: about k of them, whatever
//    the size of the vocabulary. 0: all logits are candidates.
// 2. The thresholds of top-k and of top-p are one search, which counts weights of 1 or of e^x: it partitions
//    by a pivot and goes on in one part, so that candidates are never sorted as a whole.
// 3. What stays is in the order of the vocabulary, in which the draw is looked up.
//
// Bound by reading the logits once. Parts of rows, then rows, are shared among threads; sums are those of one
// row in double precision, whose order does not depend on the threads.

#include <algorithm>
#include <atomic>
#include <limits>

#include "../rows.hpp"

using vec::Element;
using vec::Floats;
using rows::Index;

namespace {

constexpr Index kBlock = BLOCK ? BLOCK : 1;
constexpr Index kPart = 64 * kBlock;  // logits of one task
constexpr float kNone = -std::numeric_limits<float>::infinity();

constexpr Index ceil_div(Index total, Index part) { return (total + part - 1) / part; }

struct Entry {
    float value, weight;
};

// The largest value that, with all that are larger, has at least the weight `goal`; -infinity if all have
// less.
inline float search(Entry* begin, Entry* end, double goal) {
    while (begin < end) {
        const float first = begin->value, middle = begin[(end - begin) / 2].value, last = end[-1].value;
        const float pivot = std::max(std::min(first, middle), std::min(std::max(first, middle), last));
        Entry *larger = begin, *smaller = end;  // equal ones are between them
        double above = 0.0, equal = 0.0;
        for (Entry* at = begin; at < smaller;) {
            if (at->value > pivot) {
                above += at->weight;
                std::swap(*larger++, *at++);
            } else if (at->value < pivot) {
                std::swap(*at, *--smaller);
            } else {
                equal += at++->weight;
            }
        }
        if (above >= goal) {
            end = larger;
        } else if (above + equal >= goal) {
            return pivot;
        } else {
            goal -= above + equal;
            begin = smaller;
        }
    }
    return kNone;
}

inline float largest_of(const Element* x, Index count) {
    Floats largest[UNROLL];
    for (auto& each : largest) each = vec::splat(kNone);
    rows::for_each_vector(0, count, [&](Index at, int u, auto whole) {
        largest[u] = vec::maximum(rows::load(whole, x + at, count - at, kNone), largest[u]);
    });
    for (int u = 1; u < UNROLL; ++u) largest[0] = vec::maximum(largest[0], largest[u]);
    return vec::reduce_maximum(largest[0]);
}

// What may be drawn of a row, in the order of the vocabulary.
struct Candidates {
    Entry* entries;  // searched: in any order
    float* value;
    float* weight;
    std::int32_t* token;
    Index count = 0;

    static Index floats(Index classes) { return 5 * (classes + LANES); }
    Candidates(float* memory, Index classes)
        : entries(reinterpret_cast<Entry*>(memory)),
          value(memory + 2 * (classes + LANES)),
          weight(value + classes + LANES),
          token(reinterpret_cast<std::int32_t*>(weight + classes + LANES)) {}

    void add(const Element* x, Index begin, Index end, float least) {
        for (Index at = begin; at < end; ++at) {
            value[count] = vec::to_float(x[at]);
            token[count] = static_cast<std::int32_t>(at);
            count += value[count] >= least;
        }
    }

    // What has, with all that is larger, the weight `goal`, and no more: the others go.
    void keep(double goal) {
        for (Index at = 0; at < count; ++at) entries[at] = {value[at], weight[at]};
        const float least = search(entries, entries + count, goal);
        Index kept = 0;
        for (Index at = 0; at < count; ++at) {
            const Entry entry{value[at], weight[at]};
            token[kept] = token[at];
            value[kept] = entry.value;
            weight[kept] = entry.weight;
            kept += entry.value >= least;
        }
        count = kept;
    }

    void weigh(float inverse_temperature) {
        const Floats largest = vec::splat(*std::max_element(value, value + count));
        for (Index at = 0; at < count; at += LANES) {
            const Floats x = vec::load_raw<Floats>(value + at);
            vec::store_raw(weight + at, vec::exp((x - largest) * inverse_temperature));
        }
    }

    double total() const {
        double sum = 0.0;
        for (Index at = 0; at < count; ++at) sum += weight[at];
        return sum;
    }
};

struct Problem {
    const Element* logits;
    Index classes, stride;
    float inverse_temperature;
    double p;

    Index blocks() const { return BLOCK ? ceil_div(classes, kBlock) : 0; }
};

struct Choice {
    std::int32_t token;
    float probability;
};

inline Choice choose(const Problem& problem, Index row, Index k, Index draw, const float* maxima,
                     float* memory) {
    const Element* x = problem.logits + row * problem.stride;
    const Index classes = problem.classes, blocks = problem.blocks();
    Candidates candidates(memory, classes);
    float least = kNone;
    if (k <= blocks) {
        for (Index block = 0; block < blocks; ++block) candidates.entries[block] = {maxima[block], 1.0f};
        least = search(candidates.entries, candidates.entries + blocks, static_cast<double>(k));
        for (Index block = 0; block < blocks; ++block) {
            if (maxima[block] < least) continue;
            candidates.add(x, block * kBlock, std::min(classes, (block + 1) * kBlock), least);
        }
    } else {
        candidates.add(x, 0, classes, least);
    }
    if (k < candidates.count) {
        std::fill(candidates.weight, candidates.weight + candidates.count, 1.0f);
        candidates.keep(static_cast<double>(k));
    }
    candidates.weigh(problem.inverse_temperature);
    candidates.keep(problem.p * candidates.total());
    const double total = candidates.total(), goal = (static_cast<double>(draw) + 0.5) * 0x1p-23 * total;
    Index at = 0;
    for (double sum = candidates.weight[0]; sum < goal && at + 1 < candidates.count;) {
        sum += candidates.weight[++at];
    }
    return {candidates.token[at], static_cast<float>(candidates.weight[at] / total)};
}

}  // namespace

// logits[rows, classes] with stride elements from row to row, k, draw [rows] -> token[rows] in int32 and
// probability[rows] in float32. 1: no memory.
extern "C" int top_k_top_p_sampling(const Element* logits, const std::int32_t* k, const std::int32_t* draw,
                                    std::int32_t* token, float* probability, std::int64_t rows,
                                    std::int64_t classes, std::int64_t stride, double temperature, double p) {
    const Problem problem{logits, classes, stride, static_cast<float>(1.0 / temperature), p};
    const Index blocks = problem.blocks(), parts = ceil_div(blocks * kBlock, kPart);
    static thread_local vec::Scratch shared;
    auto* maxima = static_cast<float*>(
        shared.reserve(static_cast<std::size_t>(std::max<Index>(rows * blocks, 1)) * sizeof(float)));
    if (maxima == nullptr) return 1;
    std::atomic<int> failed{0};
#pragma omp parallel if (rows * classes >= rows::kParallelElements)
    {
        static thread_local vec::Scratch scratch;
        auto* memory = static_cast<float*>(
            scratch.reserve(static_cast<std::size_t>(Candidates::floats(classes)) * sizeof(float)));
        if (memory == nullptr) failed = 1;
#pragma omp for schedule(static) collapse(2)
        for (Index row = 0; row < rows; ++row) {
            for (Index part = 0; part < parts; ++part) {
                const Index end = std::min(classes, (part + 1) * kPart);
                for (Index at = part * kPart; at < end; at += kBlock) {
                    maxima[row * blocks + at / kBlock] =
                        largest_of(logits + row * stride + at, std::min(kBlock, end - at));
                }
            }
        }
#pragma omp for schedule(dynamic)
        for (Index row = 0; row < rows; ++row) {
            if (memory == nullptr) continue;
            const Choice choice = choose(problem, row, k[row], draw[row], maxima + row * blocks, memory);
            token[row] = choice.token;
            probability[row] = choice.probability;
        }
    }
    return failed;
}
