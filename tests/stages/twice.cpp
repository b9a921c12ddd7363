// y = 2 x, in the ways in which a kernel may end while it is timed (BEHAVIOUR).
#include <cstdint>
#include <cstdlib>

extern "C" int twice(const float* x, float* y, int64_t rows, int64_t cols) {
  static int64_t calls = 0;
  ++calls;
  if (BEHAVIOUR == 1 && calls > 20) std::abort();        // crashes after a while
  if (BEHAVIOUR == 2) return 7;                          // refuses
  if (BEHAVIOUR == 3) return 0;                          // leaves its work out
  if (BEHAVIOUR == 4 && calls > 20) while (true) asm volatile("");  // hangs after a while
  const bool lazy = BEHAVIOUR == 5 || (BEHAVIOUR == 6 && calls > 20);  // leaves half of its rows out, 6: after a while
  const int64_t computed = lazy ? rows / 2 : rows;
#pragma omp parallel for
  for (int64_t i = 0; i < computed * cols; ++i) y[i] = 2 * x[i];
  return 0;
}
