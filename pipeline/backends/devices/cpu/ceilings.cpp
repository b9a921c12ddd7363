// Ceilings of a CPU, each the best of several samples:
//   bandwidth  streams over memory, STREAM's way (McCalpin 1995): every thread owns a contiguous part, and the
//              bytes of the arrays are counted, not what a cache fetches before it is overwritten. Where one
//              writes, three ways compete: memcpy, a plain loop, and stores past the caches.
//   vector     fused multiply-adds without dependences between accumulators, as wide as the compiler's vectors.
//   latency    an empty parallel region back to back, and a function of the kernels' ABI that does nothing.
// Compiled like the kernels (-O3 -fopenmp -march=native); where the arrays fit a cache they lie in it.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <omp.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Of one sample, and how many at least: short enough to lie between two disturbances. To be compared with a tool
// that takes the mean of one longer run, there has to be one that is as long.
extern "C" double ceilings_sample_seconds;
extern "C" int64_t ceilings_samples;
double ceilings_sample_seconds = 1e-3;
int64_t ceilings_samples = 2;  // the caller comes back in a later round

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
template <typename Element>
struct Wide {
  typedef Element type __attribute__((vector_size(kVectorBytes)));
};
using Vector = Wide<float>::type;

// A value that is computed although nobody reads it; one whose address is taken would be kept in memory.
#if defined(__AVX512F__)
#define IN_REGISTER "v"
#elif defined(__x86_64__)
#define IN_REGISTER "x"
#else
#define IN_REGISTER "w"
#endif

constexpr int kAccumulators = 12;  // latency 4 x 2 ports = 8 chains at least, 16 registers at most
constexpr int kUnroll = 8;         // vectors in flight of a sum: latency 4 x 2 loads a cycle

// Past the caches where the instruction set has such a store; says so.
#if defined(__AVX512F__)
constexpr bool kStreams = true;
void stream(Vector* to, Vector value) { _mm512_stream_ps(reinterpret_cast<float*>(to), (__m512)value); }
#elif defined(__AVX__)
constexpr bool kStreams = true;
void stream(Vector* to, Vector value) { _mm256_stream_ps(reinterpret_cast<float*>(to), (__m256)value); }
#elif defined(__SSE__)
constexpr bool kStreams = true;
void stream(Vector* to, Vector value) { _mm_stream_ps(reinterpret_cast<float*>(to), (__m128)value); }
#else
constexpr bool kStreams = false;
void stream(Vector* to, Vector value) { *to = value; }
#endif
void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Seconds of `repeats` traversals by all threads, measured between two barriers. `body` gives each thread what it does
// in one traversal, and computes before the clock starts where its part lies: two divisions in each traversal would
// be a tenth of the time that a small cache takes.
template <typename Body>
double timed(int64_t repeats, Body body) {
  double start = 0, end = 0;
#pragma omp parallel
  {
    const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    const auto traverse = body(thread, threads);
#pragma omp barrier
    if (thread == 0) start = omp_get_wtime();
    for (int64_t repeat = 0; repeat < repeats; ++repeat) traverse();
#pragma omp barrier
    if (thread == 0) end = omp_get_wtime();
  }
  return end - start;
}

// Fewest seconds of one traversal: about `seconds` in all, in samples of the wished length or of one traversal.
template <typename Body>
double best(double seconds, Body body) {
  double sample = timed(1, body);
  sample = std::min(sample, timed(1, body));  // the first one may have had to fetch what the others find
  int64_t repeats = 1, samples = 2;
  // By trying: the barriers around one traversal of a small cache take longer than the traversal.
  for (; sample < ceilings_sample_seconds / 2; samples = 1) {
    repeats *= int64_t(std::clamp(ceilings_sample_seconds / std::max(sample, 1e-8), 2.0, 100.0));
    sample = timed(repeats, body);
  }
  double fewest = sample / repeats;
  for (double spent = samples * sample; samples < ceilings_samples || spent < seconds; ++samples) {
    sample = timed(repeats, body);
    spent += sample;
    fewest = std::min(fewest, sample / repeats);
  }
  return fewest;
}

struct Part {
  int64_t offset, bytes;
  Part(int64_t total, int thread, int threads) {
    constexpr int64_t kUnit = kUnroll * kVectorBytes;
    bytes = total / threads / kUnit * kUnit;
    offset = thread * bytes;
  }
};

// Fewest seconds of reading `bytes` from so many places at once.
template <int kPlaces>
double read_from(const char* from, int64_t bytes, double seconds) {
  constexpr int kEach = kUnroll / kPlaces;
  return best(seconds, [&](int thread, int threads) {
    const Part part(bytes, thread, threads);
    const Vector* source = reinterpret_cast<const Vector*>(from + part.offset);
    const int64_t length = part.bytes / kPlaces / int64_t(sizeof(Vector));
    return [=] {
      Vector sum[kUnroll] = {};
      for (int64_t i = 0; i < length; i += kEach)
#pragma GCC unroll 8
        for (int j = 0; j < kUnroll; ++j) sum[j] += source[j / kEach * length + i + j % kEach];
#pragma GCC unroll 8
      for (int j = 0; j < kUnroll; ++j) asm volatile("" ::IN_REGISTER(sum[j]) : "memory");
    };
  });
}

// Operations per second of value = value * factor + step in independent chains.
template <typename Element>
double multiply_adds(double seconds) {
  using Lanes = typename Wide<Element>::type;
  constexpr int64_t kSteps = 4096;
  constexpr int kLanes = sizeof(Lanes) / sizeof(Element);
  int threads_used = 1;
  const double one = best(seconds, [&](int thread, int threads) {
    if (thread == 0) threads_used = threads;
    return [=] {
      Lanes sum[kAccumulators] = {};
      Lanes factor = {}, step = {};
      for (int lane = 0; lane < kLanes; ++lane) factor[lane] = Element(0.5), step[lane] = Element(thread + 1);
      asm volatile("" : "+m"(factor), "+m"(step));
      for (int64_t i = 0; i < kSteps; ++i)
#pragma GCC unroll 16
        for (int j = 0; j < kAccumulators; ++j) sum[j] = sum[j] * factor + step;
#pragma GCC unroll 16
      for (int j = 0; j < kAccumulators; ++j) asm volatile("" ::"m"(sum[j]) : "memory");
    };
  });
  return 2.0 * kSteps * kAccumulators * kLanes * threads_used / one;
}

#if defined(__AVX512BF16__) && defined(__AVX512F__)
// The same of VDPBF16PS, which adds the products of two pairs of bfloat16 to a float: four operations a lane.
double pair_products(double seconds) {
  constexpr int64_t kSteps = 4096;
  int threads_used = 1;
  const double one = best(seconds, [&](int thread, int threads) {
    if (thread == 0) threads_used = threads;
    return [] {
      __m512 sum[kAccumulators];
      for (int j = 0; j < kAccumulators; ++j) sum[j] = _mm512_set1_ps(0.0f);
      __m512bh left = (__m512bh)_mm512_set1_epi16(0x3f00), right = (__m512bh)_mm512_set1_epi16(0x3f80);  // 0.5, 1
      asm volatile("" : "+m"(left), "+m"(right));
      for (int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 16
        for (int j = 0; j < kAccumulators; ++j) sum[j] = _mm512_dpbf16_ps(sum[j], left, right);
      }
#pragma GCC unroll 16
      for (int j = 0; j < kAccumulators; ++j) asm volatile("" ::"m"(sum[j]) : "memory");
    };
  });
  return 4.0 * 16 * kSteps * kAccumulators * threads_used / one;
}
#endif

}  // namespace

extern "C" {

// An array, touched by the threads that will use it; null where there is no memory.
char* ceilings_allocate(int64_t bytes) {
  char* memory = static_cast<char*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  if (memory == nullptr) return nullptr;
  timed(1, [&](int thread, int threads) {
    const Part part(bytes, thread, threads);
    return [=] { std::memset(memory + part.offset, 1, part.bytes); };
  });
  return memory;
}

void ceilings_free(char* memory) { std::free(memory); }

// Bytes per second, read plus written, of copying `bytes` from one array to the other: by memcpy, by a plain loop,
// or past the caches (0 where the instruction set has no such store).
enum Copy { kMemcpy, kPlain, kPast };
double ceilings_copy(const char* from, char* to, int64_t bytes, int way, double seconds) {
  if (way == kPast && !kStreams) return 0;
  const auto loop = [&](auto store, auto fence) {
    return best(seconds, [&](int thread, int threads) {
      const Part part(bytes, thread, threads);
      const Vector* source = reinterpret_cast<const Vector*>(from + part.offset);
      Vector* target = reinterpret_cast<Vector*>(to + part.offset);
      const int64_t length = part.bytes / int64_t(sizeof(Vector));
      return [=] {
        for (int64_t i = 0; i < length; i += kUnroll) {
#pragma GCC unroll 8
          for (int j = 0; j < kUnroll; ++j) store(target + i + j, source[i + j]);
          asm volatile("" ::: "memory");  // keeps the loop from becoming a memcpy
        }
        fence();
      };
    });
  };
  if (way == kPlain) return 2.0 * bytes / loop([](Vector* at, Vector value) { *at = value; }, [] {});
  if (way == kPast) return 2.0 * bytes / loop([](Vector* at, Vector value) { stream(at, value); }, stream_fence);
  return 2.0 * bytes / best(seconds, [&](int thread, int threads) {
    const Part part(bytes, thread, threads);
    const char* source = from + part.offset;
    char* target = to + part.offset;
    const int64_t length = part.bytes;
    return [=] {
      std::memcpy(target, source, length);
      asm volatile("" ::: "memory");
    };
  });
}

// Bytes per second of reading `bytes`, from one place at a time or from 2 or 4, whose prefetchers work side by side.
double ceilings_read(const char* from, int64_t bytes, int places, double seconds) {
  if (places == 4) return bytes / read_from<4>(from, bytes, seconds);
  if (places == 2) return bytes / read_from<2>(from, bytes, seconds);
  return bytes / read_from<1>(from, bytes, seconds);
}

// Bytes per second of a[i] = b[i] + s * c[i], each array of `bytes`: three arrays are counted, as STREAM does.
// `streaming`: stores past the caches, which fetch nothing; 0 where the instruction set has none.
double ceilings_triad(char* a, const char* b, const char* c, int64_t bytes, int streaming, double seconds) {
  if (streaming && !kStreams) return 0;
  const auto triad = [&](auto store, auto fence) {
    return best(seconds, [&](int thread, int threads) {
      const Part part(bytes, thread, threads);
      Vector hidden = {};
      for (int lane = 0; lane < int(sizeof(Vector) / sizeof(float)); ++lane) hidden[lane] = 3.0f;
      asm volatile("" : "+m"(hidden));
      const Vector factor = hidden;  // in a register: reloaded, it would be a third stream of loads
      const Vector* one = reinterpret_cast<const Vector*>(b + part.offset);
      const Vector* other = reinterpret_cast<const Vector*>(c + part.offset);
      Vector* target = reinterpret_cast<Vector*>(a + part.offset);
      const int64_t length = part.bytes / int64_t(sizeof(Vector));
      return [=] {
        for (int64_t i = 0; i < length; i += kUnroll) {
#pragma GCC unroll 8
          for (int j = 0; j < kUnroll; ++j) store(target + i + j, one[i + j] + factor * other[i + j]);
        }
        fence();
        asm volatile("" ::: "memory");
      };
    });
  };
  const double one = streaming ? triad([](Vector* at, Vector value) { stream(at, value); }, stream_fence)
                               : triad([](Vector* at, Vector value) { *at = value; }, [] {});
  return 3.0 * bytes / one;
}

// Operations per second of fused multiply-adds on vectors of one type, or of pairwise dot products; 0 where the
// processor has no such instructions.
double ceilings_vector_float32(double seconds) { return multiply_adds<float>(seconds); }
double ceilings_vector_float64(double seconds) { return multiply_adds<double>(seconds); }
double ceilings_vector_float16(double seconds) {
#if defined(__AVX512FP16__) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
  return multiply_adds<_Float16>(seconds);
#else
  return 0 * seconds;
#endif
}
double ceilings_vector_bfloat16(double seconds) {
#if defined(__AVX512BF16__) && defined(__AVX512F__)
  return pair_products(seconds);
#else
  return 0 * seconds;
#endif
}

// Seconds of a parallel region that does nothing, entered again and again.
double ceilings_region(double seconds) {
  constexpr int64_t kRegions = 20;  // some microseconds: short enough to lie between two disturbances
  double fewest = 1e30;
  const double begin = omp_get_wtime();
  do {
    const double start = omp_get_wtime();
    for (int64_t i = 0; i < kRegions; ++i) {
#pragma omp parallel
      asm volatile("" ::: "memory");
    }
    fewest = std::min(fewest, (omp_get_wtime() - start) / kRegions);
  } while (omp_get_wtime() - begin < seconds);
  return fewest;
}

// A kernel that does nothing: one input, one output, one dimension.
int ceilings_empty(const float* x, float* y, int64_t n) {
  asm volatile("" ::"r"(x), "r"(y), "r"(n) : "memory");
  return 0;
}

}  // extern "C"
