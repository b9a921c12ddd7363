"""Small hand-written softmax kernels in C++, right and wrong; each wrong one says what it must be called.

The ABI is that of the backend cpp: tensors, dimensions, row strides of row_strided tensors.
"""

HEAD = """
#include <fenv.h>
#include <math.h>
#include <new>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
static uint32_t chance() { uint32_t bits; getrandom(&bits, 4, 0); return bits; }
static void softmax_row(const float* x, float* y, int64_t cols) {
  float m = -INFINITY; double sum = 0;
  for (int64_t j = 0; j < cols; ++j) m = x[j] > m ? x[j] : m;
  for (int64_t j = 0; j < cols; ++j) if (isnan(x[j])) m = NAN;
  for (int64_t j = 0; j < cols; ++j) { y[j] = expf(x[j] - m); sum += y[j]; }
  for (int64_t j = 0; j < cols; ++j) y[j] /= (float)sum;
}
extern "C" int softmax(const float* x, float* y, int64_t rows, int64_t cols, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) softmax_row(x + i * stride, y + i * cols, cols);
"""


def source(after: str = "", *, before: str = "", instead: str | None = None) -> str:
    """A right kernel with code after or before its loop, or with another body."""
    head, loop = HEAD.rsplit("\n", 2)[0], HEAD.rsplit("\n", 2)[1]
    body = f"{before}\n{loop}\n{after}\nreturn 0;" if instead is None else instead
    threads = "#include <thread>\n" if "std::thread" in body else ""  # a third of the time that GCC takes
    return f"{threads}{head}\n{body}\n}}\n"


RIGHT = {
    "plain": source(),
    "two_pass_in_double": source(
        instead="""
  for (int64_t i = 0; i < rows; ++i) {
    const float* p = x + i * stride; double m = -INFINITY, s = 0;
    for (int64_t j = 0; j < cols; ++j) m = p[j] > m ? p[j] : m;
    for (int64_t j = 0; j < cols; ++j) s += exp((double)p[j] - m);
    for (int64_t j = 0; j < cols; ++j) y[i * cols + j] = (float)(exp((double)p[j] - m) / s);
  }
  return 0;"""
    ),
    "backwards_with_scratch": source(
        instead="""
  float* scratch = (float*)malloc(cols * 4 + 4);
  for (int64_t i = rows - 1; i >= 0; --i) {
    softmax_row(x + i * stride, scratch, cols);
    memcpy(y + i * cols, scratch, cols * sizeof(float));
  }
  return 0;"""
    ),
    "talkative": source('printf("hello from the kernel\\n"); fflush(stdout);'),
}

WRONG = {
    "zeros": ("wrong_value", source("memset(y, 0, rows * cols * sizeof(float));")),
    "no_maximum": (
        "wrong_value",
        source(
            instead="""
  for (int64_t i = 0; i < rows; ++i) {
    double s = 0;
    for (int64_t j = 0; j < cols; ++j) s += expf(x[i * stride + j]);
    for (int64_t j = 0; j < cols; ++j) y[i * cols + j] = expf(x[i * stride + j]) / (float)s;
  }
  return 0;"""
        ),
    ),
    "ignores_stride": (
        "wrong_value",
        source(
            instead="""
  for (int64_t i = 0; i < rows; ++i) softmax_row(x + i * cols, y + i * cols, cols);
  return 0;"""
        ),
    ),
    "drops_tail": (
        "wrong_value",
        source("if (cols % 8 > 1) for (int64_t i = 0; i < rows; ++i) y[i * cols + cols - 1] = 0;"),
    ),
    "reads_past_the_row": (
        "wrong_value",
        source(
            instead="""
  float* scratch = (float*)malloc(cols * 4 + 64);
  int64_t n = (cols + 7) / 8 * 8;
  for (int64_t i = 0; i < rows; ++i) {
    softmax_row(x + i * stride, scratch, n);
    memcpy(y + i * cols, scratch, cols * sizeof(float));
  }
  return 0;"""
        ),
    ),
    "half_precision_sum": (
        "wrong_value",
        source(
            instead="""
  for (int64_t i = 0; i < rows; ++i) {
    const float* p = x + i * stride; float m = -INFINITY; _Float16 s = 0;
    for (int64_t j = 0; j < cols; ++j) m = p[j] > m || isnan(p[j]) ? p[j] : m;
    for (int64_t j = 0; j < cols; ++j) s = s + (_Float16)expf(p[j] - m);
    for (int64_t j = 0; j < cols; ++j) y[i * cols + j] = expf(p[j] - m) / (float)s;
  }
  return 0;"""
        ),
    ),
    "hides_nan": (
        "wrong_value",
        source("for (int64_t i = 0; i < rows * cols; ++i) if (isnan(y[i])) y[i] = 0;"),
    ),
    "input_mutated": ("input_mutated", source("if (rows) const_cast<float*>(x)[0] += 1;")),
    "writes_past_the_end": ("out_of_bounds", source("y[rows * cols] = 0;")),
    "writes_before_the_start": ("out_of_bounds", source("y[-3] = 1;")),
    "writes_into_the_padding": (
        "out_of_bounds",
        source("if (stride > cols && rows > 1) const_cast<float*>(x)[cols] = 0;"),
    ),
    "copies_a_guard": (
        "out_of_bounds",
        source("y[rows * cols + 2] = x[(rows ? (rows - 1) * stride + cols : 0) + 2];"),
    ),
    "unwritten_rows": (
        "unwritten_output",
        source(
            instead="""
  for (int64_t i = 0; i + 1 < rows; ++i) softmax_row(x + i * stride, y + i * cols, cols);
  return 0;"""
        ),
    ),
    "writes_nothing": ("unwritten_output", source(instead="return 0;")),
    "works_only_once": (
        "unwritten_output",
        source(before="static int64_t done = 0; if (done == rows * cols) return 0; done = rows * cols;"),
    ),
    "random_garbage": (
        "nondeterministic",
        source("for (int64_t i = 0; i < rows * cols; ++i) y[i] = chance() * 1e-9f;"),
    ),
    "random_last_bits": (
        "nondeterministic",
        source("for (int64_t i = 0; i < rows * cols; ++i) y[i] *= 1 + 1e-7f * (chance() % 3);"),
    ),
    "kept_by_address": (
        "wrong_value",
        source(
            before="static const float* px = 0; static int64_t n = -1; static float* kept = 0;\n"
            "if (px == x && n == rows * cols) { memcpy(y, kept, 4 * n); return 0; }",
            after="px = x; n = rows * cols; kept = (float*)realloc(kept, 4 * n + 4); memcpy(kept, y, 4 * n);",
        ),
    ),
    "right_at_one_address_only": (
        "nondeterministic",
        source(before="static const float* px = x;", after="if (px != x && rows * cols) y[0] *= 1.001f;"),
    ),
    "segfault": ("crashed", source("*(volatile int*)8 = 1;")),
    "aborts": ("crashed", source("abort();")),
    "exits": ("crashed", source("_exit(0);")),
    "endless": ("timeout", source("for (volatile int i = 0;; ++i) {}")),
    "allocates_without_end": (
        "out_of_memory",
        source(
            "for (;;) { char* p = (char*)malloc(1 << 24); if (!p) throw std::bad_alloc(); memset(p, 1, 1 << 24); }"  # noqa: E501
        ),
    ),
    "prints_without_end": (
        "output_limit",
        source('for (;;) puts("0123456789 0123456789 0123456789 0123456789 0123456789 0123456789");'),
    ),
    "speaks_for_its_harness": (
        "tampered",
        source(
            r"""
  struct stat s;
  for (int fd = 3; fd < 64; ++fd)
    if (fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode) && write(fd, "\0\0\0\1\xc1", 5) < 0) return 1;"""
        ),
    ),
    "writes_an_input_and_restores_it": (
        "input_mutated",
        source(
            "if (rows) { volatile float* p = const_cast<float*>(x); float v = p[0]; p[0] = 1; p[0] = v; }"
        ),
    ),
    "reads_beyond_the_end": (
        "out_of_bounds",
        source(
            "if (rows && cols) { volatile float beyond = x[(rows - 1) * stride + cols + 3]; (void)beyond; }"
        ),
    ),
    "works_after_it_returned": (
        "tampered",
        source("std::thread([=] { usleep(2000); if (rows) y[0] = 0; usleep(100000); }).detach();"),
    ),
    "leaves_a_thread": ("tampered", source("std::thread([] { for (;;) pause(); }).detach();")),
    "leaves_a_process": ("tampered", source("if (fork() == 0) for (;;) pause();")),
    "multiplies": ("tampered", source("for (;;) if (fork() == 0) for (;;) pause();")),
    "sets_the_rounding_mode": ("tampered", source("fesetround(FE_TOWARDZERO);")),
    "opens_a_socket": ("launch_error", source("if (socket(AF_INET, SOCK_STREAM, 0) < 0) return 9;")),
    "writes_a_file": ("launch_error", source('if (!fopen("/var/tmp/kernelmill", "w")) return 8;')),
    "reads_its_judge": (
        "launch_error",
        source(
            """
  char path[64]; snprintf(path, 64, "/proc/%d/mem", getppid()); if (!fopen(path, "r")) return 7;"""
        ),
    ),
    "refuses": ("launch_error", source(instead="return 3;")),
}
