// Ceilings of a CPU, each the best of several samples:
//   bandwidth  streams over memory, STREAM's way (McCalpin 1995): every thread owns a contiguous part.
//              Copy uses memcpy, which writes past the caches where that pays, and a plain loop; the faster counts.
//   vector     fused multiply-adds without dependences between accumulators, as wide as the compiler's vectors.
// Compiled like the kernels (-O3 -fopenmp -march=native); where the arrays fit a cache they lie in it.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <omp.h>

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
typedef float Vector __attribute__((vector_size(kVectorBytes)));

constexpr int kAccumulators = 12;  // latency 4 x 2 ports = 8 chains at least, 16 registers at most
constexpr int kSamples = 5;        // at least: one may meet a moment in which others hold the cores

// Seconds of `repeats` traversals by all threads, measured between two barriers.
template <typename Body>
double timed(int64_t repeats, Body body) {
  double start = 0, end = 0;
#pragma omp parallel
  {
    const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
#pragma omp barrier
    if (thread == 0) start = omp_get_wtime();
    for (int64_t repeat = 0; repeat < repeats; ++repeat) body(thread, threads);
#pragma omp barrier
    if (thread == 0) end = omp_get_wtime();
  }
  return end - start;
}

// Fewest seconds of one traversal: about `seconds` in all, samples of about a millisecond or one traversal.
template <typename Body>
double best(double seconds, Body body) {
  double one = timed(1, body);
  for (int i = 0; i < 2; ++i) one = std::min(one, timed(1, body));
  const int64_t repeats = std::max<int64_t>(1, int64_t(1e-3 / std::max(one, 1e-8)));
  double fewest = 1e30;
  double spent = 0;
  for (int samples = 0; samples < kSamples || spent < seconds; ++samples) {
    const double sample = timed(repeats, body);
    spent += sample;
    fewest = std::min(fewest, sample / repeats);
  }
  return fewest;
}

struct Part {
  int64_t offset, bytes;
  Part(int64_t total, int thread, int threads) {
    bytes = total / threads / 256 * 256;
    offset = thread * bytes;
  }
};

}  // namespace

extern "C" {

// An array, touched by the threads that will use it; null where there is no memory.
char* ceilings_allocate(int64_t bytes) {
  char* memory = static_cast<char*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  if (memory == nullptr) return nullptr;
  timed(1, [&](int thread, int threads) {
    const Part part(bytes, thread, threads);
    std::memset(memory + part.offset, 1, part.bytes);
  });
  return memory;
}

void ceilings_free(char* memory) { std::free(memory); }

// Bytes per second, read plus written, of copying `bytes` from one array to the other.
double ceilings_copy(const char* from, char* to, int64_t bytes, double seconds) {
  const double copied = best(seconds / 2, [&](int thread, int threads) {
    const Part part(bytes, thread, threads);
    std::memcpy(to + part.offset, from + part.offset, part.bytes);
    asm volatile("" ::: "memory");
  });
  const double looped = best(seconds / 2, [&](int thread, int threads) {
    const Part part(bytes, thread, threads);
    const Vector* source = reinterpret_cast<const Vector*>(from + part.offset);
    Vector* target = reinterpret_cast<Vector*>(to + part.offset);
    for (int64_t i = 0; i < part.bytes / int64_t(sizeof(Vector)); ++i) {
      target[i] = source[i];
      asm volatile("" ::: "memory");  // keeps the loop from becoming the memcpy above
    }
  });
  return 2.0 * bytes / std::min(copied, looped);
}

// Bytes per second of reading `bytes`.
double ceilings_read(const char* from, int64_t bytes, double seconds) {
  const double read = best(seconds, [&](int thread, int threads) {
    const Part part(bytes, thread, threads);
    const Vector* source = reinterpret_cast<const Vector*>(from + part.offset);
    Vector sum[4] = {};
    for (int64_t i = 0; i < part.bytes / int64_t(sizeof(Vector)); i += 4)
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) sum[j] += source[i + j];
    const Vector all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    asm volatile("" ::"m"(all) : "memory");
  });
  return bytes / read;
}

// Floating-point operations per second, float32.
double ceilings_vector(double seconds) {
  constexpr int64_t kSteps = 4096;
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
  int threads_used = 1;
  const double one = best(seconds, [&](int thread, int threads) {
    Vector sum[kAccumulators] = {};
    Vector factor = {}, step = {};
    for (int lane = 0; lane < kLanes; ++lane) factor[lane] = 0.5f, step[lane] = float(thread + 1);
    asm volatile("" : "+m"(factor), "+m"(step));
    for (int64_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 16
      for (int j = 0; j < kAccumulators; ++j) sum[j] = sum[j] * factor + step;
#pragma GCC unroll 16
    for (int j = 0; j < kAccumulators; ++j) asm volatile("" ::"m"(sum[j]) : "memory");
    if (thread == 0) threads_used = threads;
  });
  return 2.0 * kSteps * kAccumulators * kLanes * threads_used / one;
}

}  // extern "C"
