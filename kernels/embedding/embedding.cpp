// The vectors of tokens: y[row] = weight[token[row]].
//
// Bound by memory: rows of the matrix lie anywhere, so that each begins with a miss that no hardware
// prefetcher foresees; the tokens tell where the next ones are (PREFETCH). STREAM: the result goes past the
// caches. Elements are moved as they are. Rows are shared among threads.

#include "../rows.hpp"

using vec::Element;
using rows::Index;

namespace {

using Raw = decltype(vec::narrow(vec::Floats{}));

inline void copy(const Element* from, Element* to, Index count, bool past) {
    rows::for_each_vector(0, count, [&](Index at, int, auto whole) {
        if constexpr (!decltype(whole)::value) {
            __builtin_memcpy(to + at, from + at, static_cast<std::size_t>(count - at) * sizeof(Element));
        } else if (past) {
            vec::stream(to + at, vec::load(from + at));
        } else {
            vec::store_raw(to + at, vec::load_raw<Raw>(from + at));
        }
    });
}

inline void prefetch(const Element* row, Index count) {
    constexpr Index kLine = 64 / sizeof(Element);
    for (Index at = 0; at < count; at += kLine) __builtin_prefetch(row + at);
}

}  // namespace

// weight[classes, cols], token[rows] -> y[rows, cols]. Always returns 0.
extern "C" int embedding(const Element* weight, const std::int64_t* token, Element* y, std::int64_t rows,
                         std::int64_t, std::int64_t cols) {
    const bool past = STREAM && vec::streamable(y) && cols % LANES == 0;
#pragma omp parallel if (rows * cols >= rows::kParallelElements)
    {
#pragma omp for schedule(static)
        for (std::int64_t row = 0; row < rows; ++row) {
            if (PREFETCH && row + PREFETCH < rows) prefetch(weight + token[row + PREFETCH] * cols, cols);
            copy(weight + token[row] * cols, y + row * cols, cols, past);
        }
        if (STREAM) vec::stream_fence();
    }
    return 0;
}
