// One step of APOLLO (Zhu et al. 2024, arXiv:2412.05270): the moments of r = projection^T g, which has few
// rows, give n as in GaLore (galore_adamw.cpp), of which only the size is used:
//   s = |n| / |r| for each column (SCALING_CHANNEL) or for all of them (SCALING_TENSOR),    u = g diag(s),
//   w = w - lr weight_decay w - lr scale min(1, growth size / rms(u)) u,    size = what rms(u) then is.
//
// 1. A strip of columns becomes squares of n and of r, each summed over its column (projected.hpp): there is
//    no second product, and neither r nor n is ever stored.
// 2. rms(u) is known before u: it needs the squares of g summed over columns. FUSE adds them up while a strip
//    is in L2 for the product; without it, g is read once more.
// 3. A second pass over g changes w; STREAM: w goes past the caches, which need not read first what is
//    overwritten. Threads share strips, then rows; sums over columns have one order.
//
// Bound by arithmetic at high rank, half as much as GaLore, and at low rank by reading g twice.

#include "projected.hpp"

#include <omp.h>

using namespace projected;

namespace {

constexpr Index kTogether = 16;  // squares of one sum: equal ones are rounded to one side in a long one

struct Rates {
    adam::Constants constants;
    double change, decay, growth, eps;  // change, decay: of w: lr scale, lr weight_decay
};

// What all threads share.
struct Shared {
    Packed* transposed;  // the projection's columns: rank rows, as deep as w has rows
    float *n, *r, *g;    // [cols] each, padded: sums of squares
    float* factor;       // [cols], of g

    static Index padded(Index cols) { return ceil_div(cols, LANES) * LANES; }
    static std::size_t bytes(const Layer& layer) {
        return static_cast<std::size_t>(packed_words(layer.rank, layer.rows)) * sizeof(Packed) +
               static_cast<std::size_t>(4 * padded(layer.cols)) * sizeof(float) + 1;
    }
    Shared(void* memory, const Layer& layer)
        : transposed(static_cast<Packed*>(memory)),
          n(reinterpret_cast<float*>(transposed + packed_words(layer.rank, layer.rows))),
          r(n + padded(layer.cols)),
          g(r + padded(layer.cols)),
          factor(g + padded(layer.cols)) {}
};

// What one thread has of a strip.
struct Room {
    float* sums;          // [rank][kSumStride], r
    float *n, *r, *g;     // [kSumStride]: sums of squares
    float *some_n, *some_r;
    Packed* panels;

    static std::size_t bytes(Index rank) {
        return static_cast<std::size_t>((rank + 5) * kSumStride) * sizeof(float) +
               static_cast<std::size_t>(kPanels) * sizeof(Packed);
    }
    Room(void* memory, Index rank)
        : sums(static_cast<float*>(memory)),
          n(sums + rank * kSumStride),
          r(n + kSumStride),
          g(r + kSumStride),
          some_n(g + kSumStride),
          some_r(some_n + kSumStride),
          panels(reinterpret_cast<Packed*>(some_r + kSumStride)) {}
};

inline void add(float* to, Floats values) { vec::store_raw(to, vec::load_raw<Floats>(to) + values); }

// Sums of a few, which are 0 then, are added to those of all.
inline void add_some(float* some, Index count, float* all) {
    for (Index j = 0; j < count; j += LANES) {
        add(all + j, vec::load_raw<Floats>(some + j));
        vec::store_raw(some + j, Floats{});
    }
}

// Squares of g's rows [first, first + count) in a strip.
inline void add_rows(const Layer& layer, const Strip& strip, Index first, Index count, float* to) {
    for (Index j = 0; j < strip.count; j += LANES) {
        for (Index begin = first; begin < first + count; begin += kTogether) {
            Floats sum{};
            for (Index row = begin; row < std::min(first + count, begin + kTogether); ++row) {
                const Floats g = load(layer.g + row * layer.cols + strip.col + j, strip.count - j);
                sum += g * g;
            }
            add(to + j, sum);
        }
    }
}

void reduce(const Layer& layer, const Rates& rates, const Shared& shared, const Strip& strip,
            const Room& room) {
    std::fill(room.n, room.n + 5 * kSumStride, 0.0f);
    const auto visit = [&](Index first, Index count) {
        if (FUSE) add_rows(layer, strip, first, count, room.g);
    };
    project(layer, shared.transposed, strip, room.panels, room.sums, visit);
    for (Index row = 0; row < layer.rank; ++row) {
        const auto take = [&](Index j, Index, Floats r, Floats n) {
            add(room.some_n + j, n * n);
            add(room.some_r + j, r * r);
        };
        update_moments(layer, rates.constants, strip, row, room.sums + row * kSumStride, take);
        if (row % kTogether == kTogether - 1 || row + 1 == layer.rank) {
            add_some(room.some_n, strip.count, room.n);
            add_some(room.some_r, strip.count, room.r);
        }
    }
    std::copy(room.n, room.n + strip.count, shared.n + strip.col);
    std::copy(room.r, room.r + strip.count, shared.r + strip.col);
    if (FUSE) std::copy(room.g, room.g + strip.count, shared.g + strip.col);
}

// Of all columns: what g is multiplied with to change w, and the size of the change.
float find_factors(const Layer& layer, const Rates& rates, float size, const Shared& shared) {
    double n = 0.0, r = 0.0, squares = 0.0;
#if defined(SCALING_TENSOR)
    for (Index col = 0; col < layer.cols; ++col) {
        n += shared.n[col];
        r += shared.r[col];
    }
#endif
    for (Index col = 0; col < layer.cols; ++col) {
#if defined(SCALING_CHANNEL)
        n = shared.n[col];
        r = shared.r[col];
#endif
        const double factor = std::sqrt(n) / (std::sqrt(r) + rates.eps);
        shared.factor[col] = static_cast<float>(factor);
        squares += factor * factor * shared.g[col];
    }
    const double found = std::sqrt(squares / static_cast<double>(layer.rows * layer.cols));
    const double most = rates.growth * static_cast<double>(size);
    const double limit = found > most ? most / found : 1.0;
    for (Index col = 0; col < layer.cols; ++col) {
        shared.factor[col] = static_cast<float>(shared.factor[col] * limit * rates.change);
    }
    return static_cast<float>(limit * found);
}

void change_weights(const Layer& layer, const Rates& rates, const Shared& shared, Index row) {
    const float decay = static_cast<float>(rates.decay);
    const bool past = STREAM && vec::streamable(layer.w_out) && layer.cols % LANES == 0;
    for (Index col = 0; col < layer.cols; col += LANES) {
        const Index at = row * layer.cols + col, rest = layer.cols - col;
        const Floats w = load(layer.w + at, rest), g = load(layer.g + at, rest);
        const Floats result = w - decay * w - vec::load_raw<Floats>(shared.factor + col) * g;
        if (past) {
            vec::stream(layer.w_out + at, result);
        } else {
            store(layer.w_out + at, rest, result);
        }
    }
}

int compute(const Layer& layer, const Rates& rates, float size, float* size_out) {
    static thread_local vec::Scratch all;
    void* memory = all.reserve(Shared::bytes(layer));
    if (memory == nullptr) return 1;
    const Shared shared(memory, layer);
    const bool parallel = layer.rows * layer.cols * layer.rank >= kParallelProducts;
    const Index cols = strip_cols(std::max<Index>(layer.cols, 1), parallel ? omp_get_max_threads() : 1);
    int failed = 0;
#pragma omp parallel if (parallel) reduction(| : failed)
    {
        thread_local vec::Scratch scratch;
        void* own = scratch.reserve(Room::bytes(layer.rank));
        failed |= own == nullptr;
        pack_transposed(layer, shared.transposed);
#pragma omp for schedule(dynamic)
        for (Index col = 0; col < layer.cols; col += cols) {
            if (own == nullptr) continue;
            reduce(layer, rates, shared, {col, std::min(cols, layer.cols - col)}, Room(own, layer.rank));
        }
        if (!FUSE) {
#pragma omp for schedule(static)
            for (Index col = 0; col < layer.cols; col += STRIP) {
                const Strip strip{col, std::min<Index>(STRIP, layer.cols - col)};
                if (own == nullptr) continue;
                const Room room(own, layer.rank);
                std::fill(room.g, room.g + kSumStride, 0.0f);
                add_rows(layer, strip, 0, layer.rows, room.g);
                std::copy(room.g, room.g + strip.count, shared.g + strip.col);
            }
        }
#pragma omp single
        *size_out = find_factors(layer, rates, size, shared);
#pragma omp for schedule(static)
        for (Index row = 0; row < layer.rows; ++row) change_weights(layer, rates, shared, row);
        if (STREAM) vec::stream_fence();
    }
    return failed;
}

}  // namespace

// w, g [rows, cols], projection[rows, rank], m, v [rank, cols] and size[1] in float32 -> w_out, m_out, v_out,
// size_out. 1: no memory.
extern "C" int apollo_adamw(const Element* w, const Element* projection, const Element* g, const float* m,
                            const float* v, const float* size, Element* w_out, float* m_out, float* v_out,
                            float* size_out, std::int64_t rows, std::int64_t cols, std::int64_t rank,
                            double lr, double beta1, double beta2, double eps, double weight_decay,
                            double scale, double growth, double step) {
    const Layer layer{w, projection, g, m, v, w_out, m_out, v_out, rows, cols, rank};
    const Rates rates{adam::Constants(1.0, beta1, beta2, eps, 0.0, step), lr * scale, lr * weight_decay,
                      growth, eps};
    return compute(layer, rates, *size, size_out);
}
