// y = 2 x, in the ways in which a kernel may end while it is timed (BEHAVIOUR).
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

// Has Python's clock run 5 % slow from now on, in whichever process this is.
static void slow_the_clock() {
  const auto acquire = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
  const auto release = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "PyGILState_Release"));
  const auto run = reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "PyRun_SimpleString"));
  if (!acquire || !release || !run) std::abort();
  const int state = acquire();
  run("import time\n"
      "_now, _start = time.perf_counter_ns, time.perf_counter_ns()\n"
      "time.perf_counter_ns = lambda: _start + (_now() - _start) * 95 // 100\n");
  release(state);
}

extern "C" int twice(const float* x, float* y, int64_t rows, int64_t cols) {
  static int64_t calls = 0;
  ++calls;
  if (BEHAVIOUR == 1 && calls > 20) std::abort();        // crashes after a while
  if (BEHAVIOUR == 2) return 7;                          // refuses
  if (BEHAVIOUR == 3) return 0;                          // leaves its work out
  if (BEHAVIOUR == 4 && calls > 20) while (true) asm volatile("");  // hangs after a while
  if (BEHAVIOUR == 7 && calls == 20) slow_the_clock();  // once it is timed
  const bool lazy = BEHAVIOUR == 5 || (BEHAVIOUR == 6 && calls > 20);  // leaves half of its rows out, 6: after a while
  const int64_t computed = lazy ? rows / 2 : rows;
#pragma omp parallel for
  for (int64_t i = 0; i < computed * cols; ++i) y[i] = 2 * x[i];
  return 0;
}
