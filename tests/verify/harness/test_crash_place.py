"""Where a C++ kernel crashes is part of the reason: the call is repeated, and a library writes the stack."""

import sys
from pathlib import Path

import pytest

from pipeline.backends.devices.cpu import Cpu
from pipeline.backends.devices.cpu.crash_report import innermost
from pipeline.backends.registry import backend
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import Compiled
from pipeline.verify.harness.kernel_trial import try_variant
from pipeline.verify.harness.planning.preparation import (
    case_set_of,
    cases_of,
    job_of,
    shapes_of,
    subject_of,
)
from tests.verify.harness import build
from tests.verify.harness.candidate_process import SERVER

SOURCE = """#include <cmath>
#include <cstdint>
#include <cstdlib>
static void __attribute__((noinline)) spoil(const float* x, float* y, int64_t place) {
    SPOILED;
}
extern "C" int softmax(const float* x, float* y, int64_t rows, int64_t cols, int64_t stride) {
    #pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * stride;
        double most = -INFINITY, sum = 0;
        spoil(x, y, int64_t{1} << 40);
        for (int64_t col = 0; col < cols; ++col) most = in[col] > most || in[col] != in[col] ? in[col] : most;
        for (int64_t col = 0; col < cols; ++col) sum += std::exp(in[col] - most);
        for (int64_t col = 0; col < cols; ++col) y[row * cols + col] = std::exp(in[col] - most) / sum;
    }
    return 0;
}
"""


@pytest.mark.parametrize(
    ("spoiled", "outcome", "reason"),
    [
        ("y[place] = 1.0f", Outcome.CRASHED, "SIGSEGV"),
        ("std::abort()", Outcome.CRASHED, "SIGABRT"),
        ("static volatile float lost; lost = x[-1]", Outcome.OUT_OF_BOUNDS, "beyond a tensor"),
    ],
)
def test_of_a_kernel(tmp_path: Path, spoiled: str, outcome: Outcome, reason: str) -> None:
    """The function, inlined or not, and its line, in any of its threads."""
    failure = failure_of(tmp_path, SOURCE.replace("SPOILED", spoiled))
    assert failure.outcome is outcome
    assert reason in failure.reason
    assert failure.reason.endswith(": at softmax.cpp:5")


@pytest.mark.parametrize("kind", ["inline __attribute__((always_inline))", "__attribute__((noinline))"])
def test_in_a_shared_header(tmp_path: Path, kind: str) -> None:
    """The line of the kernel that called it, inlined or not, and the header's in addition."""
    header = tmp_path / "kernels" / "shared.hpp"
    header.parent.mkdir()
    header.write_text(f"static {kind} void put(float* y, long place) {{\n    y[place] = 1.0f;\n}}\n")
    text = SOURCE.replace("SPOILED", "put(y, place); y[0] = 2.0f")  # no tail call, which leaves no frame
    failure = failure_of(tmp_path, f'#include "../shared.hpp"\n{text}')
    assert failure.outcome is Outcome.CRASHED
    assert failure.reason.endswith(": at softmax.cpp:6, in shared.hpp:2")


def failure_of(tmp_path: Path, text: str) -> Failure:
    """What trying a kernel with this source comes to."""
    source = tmp_path / build.IMPLEMENTATION.source
    source.parent.mkdir(parents=True)
    source.write_text(text)
    spec, variant = build.spec(), build.variant(text)
    job, folder = job_of(spec, variant), tmp_path / "compiled"
    folder.mkdir()
    compiled = backend("cpp").compile(job, tmp_path, folder)
    assert isinstance(compiled, Compiled), compiled
    subject = subject_of(spec, job, compiled, root=tmp_path, folder=folder)
    case_set = case_set_of(spec, (1,))
    cases = cases_of(spec, case_set, shapes_of(spec, variant)[:1])
    failure = try_variant(SERVER, subject, case_set, cases, tmp_path).result
    assert isinstance(failure, Failure)
    return failure


def test_what_is_not_the_candidates_own(tmp_path: Path) -> None:
    """Libraries, and what is gone, say nothing; a library without lines is named by its function."""
    for name in ("own.so", "gone.so"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "gone.so").unlink()
    system = f"/lib/libc.so\t0x10\tmemcpy\n{sys.prefix}/lib/torch.so\t0x10\tat\n{tmp_path}/gone.so\t0x10\tf\n"
    assert innermost(system) is None
    assert innermost(f"{system}{tmp_path}/own.so\t0x10\tg\n") == "in g"


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to run under."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pipeline.records.environment.user_cache", lambda: None)
    assert Cpu().memory_checker(tmp_path / "log") is None
