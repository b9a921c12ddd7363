// Matrix product c = a b, a[M, K], b[K, N], c[M, N] row-major, accumulated in float32; with
// EPILOGUE_BIAS_GELU c = gelu(a b + bias).
//
// 1. Registers (tile.hpp). A micro-kernel keeps MICRO_ROWS x (MICRO_VECTORS vectors) of c in registers over
//    a whole block of k: per step it loads one row of b and broadcasts one column of a, so arithmetic, not
//    loads, is the limit once the sums outnumber latency times ports of the multiply-add (Goto and van de
//    Geijn 2008; Van Zee and van de Geijn 2015, BLIS).
// 2. Caches. A tile of c is computed in blocks of BLOCK_K: its block of b is packed into panels as wide as
//    the micro-kernel, its rows of a side by side, both contiguous and free of cache-set conflicts. The
//    panel of a stays in L1 while b's panels stream from L2; sums wait in float32 in L2 between blocks.
// 3. Threads share tiles of c and nothing else: no barriers, at the price of packing a block of b once per
//    row of tiles, about 2 % at kTileRows rows. The order of summation does not depend on the number of
//    threads.
// 4. bfloat16 on AVX512_BF16: pairs of k go through vdpbf16ps, twice the products per instruction. Other
//    16-bit inputs become float32 while they are packed.
// 5. Few rows, as in decoding one token (strip.hpp). Each element of b is used at most kFewRows times, so
//    memory is the limit and packing would only add to it: strips of b stream through once, several rows of
//    b at a time, and the sums of a strip stay in L1.
// 6. PREFETCH asks for rows of b to come: a tile reads short pieces of many rows, which hardware
//    prefetchers, bound to pages, see too late.
// 7. The epilogue takes the sums of a micro-tile while they are in L1, before c is written for the first
//    time.

#include "threads.hpp"

using namespace product;

// Dimensions M, N, K; row strides in elements. Returns 1 where there is no memory.
#if defined(EPILOGUE_BIAS_GELU)
extern "C" int matmul(const Element* a, const Element* b, const Element* bias, Element* c, std::int64_t M,
                      std::int64_t N, std::int64_t K, std::int64_t stride_a, std::int64_t stride_b) {
    return M == 0 || N == 0 ? 0 : multiply({a, b, bias, c, M, N, K, stride_a, stride_b});
}
#else
extern "C" int matmul(const Element* a, const Element* b, Element* c, std::int64_t M, std::int64_t N,
                      std::int64_t K, std::int64_t stride_a, std::int64_t stride_b) {
    return M == 0 || N == 0 ? 0 : multiply({a, b, nullptr, c, M, N, K, stride_a, stride_b});
}
#endif
