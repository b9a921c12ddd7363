// Lossless decompression of bfloat16 weights whose exponents are entropy-coded (Zhang et al. 2025, arXiv:2504.11651).
//
// 1. Codes of different lengths must be read one after the other. UNROLL vectors of lanes decode a column each
//    (exponents.hpp), so that as many codes are in flight: the interleaving of streams of Giesen 2014
//    (arXiv:1402.3392) with a place for each stream, so that no lane waits for where another one ends.
// 2. Neighbouring columns are neighbouring streams: signs and mantissas are read, and weights written, as vectors.
// 3. SYMBOLS codes are taken from each load of bits; TABLE keeps the code in registers.
//
// Bound by the latency of the look-ups, then by their number; far from the bandwidth of memory.

#include "exponents.hpp"

using namespace exponents;

// plain[rows, cols], the exponents -> w[rows, cols].
extern "C" int decompress(const std::uint8_t* plain, const std::int32_t* words, const std::int32_t* starts,
                          const std::int16_t* offsets, const std::int16_t* table, std::int16_t* w,
                          std::int64_t rows, std::int64_t cols) {
    constexpr Index kCols = Index{LANES} * UNROLL;
    const Stored stored{plain, words, starts, offsets, table, rows, cols};
    const Table decoder(table);
    const Index parts = ceil_div(cols, kStreams);
#pragma omp parallel for schedule(static) if (rows * cols >= 16384)
    for (Index task = 0; task < stored.blocks() * parts; ++task) {
        const Index first = task % parts * kStreams;
        for (Index col = first; col < std::min<Index>(first + kStreams, cols); col += kCols) {
            const auto write = [&](Index row, int vector, Words bits) {
                const vec::Halves halves = vec::narrow_words(bits);
                const Index at = col + vector * LANES;
                std::int16_t* to = w + row * cols + at;
                if (at + LANES <= cols) {
                    vec::store_raw(to, halves);
                } else if (at < cols) {
                    __builtin_memcpy(to, &halves, static_cast<std::size_t>(cols - at) * sizeof(*to));
                }
            };
            decode<UNROLL>(stored, decoder, task / parts, col, write);
        }
    }
    return 0;
}
