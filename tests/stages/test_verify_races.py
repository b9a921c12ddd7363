"""verify finds data races between OpenMP threads, whatever the artifact's own calls gave."""

import re
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.backend import CompileJob
from pipeline.backends.cpp import Cpp, thread_races
from pipeline.records.errors import ToolchainError
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest_bytes
from pipeline.records.results.compiled import CompileRecord
from pipeline.records.results.verified import Verified, VerifyRecord
from tests.stages.test_verify import run
from tests.verify.harness import build

SOURCE = """
#include <cmath>
#include <cstdint>
extern "C" int softmax(const float* x, float* y, std::int64_t rows, std::int64_t cols, std::int64_t stride) {
    OUTSIDE
#pragma omp parallel for if (rows * cols >= 16384)
    for (std::int64_t r = 0; r < rows; ++r) {
        float most = -INFINITY;
        for (std::int64_t c = 0; c < cols; ++c) {
            if (std::isnan(x[r * stride + c])) most = NAN;
            if (x[r * stride + c] > most) most = x[r * stride + c];
        }
        INSIDE total = 0;
        for (std::int64_t c = 0; c < cols; ++c) total += y[r * cols + c] = std::exp(x[r * stride + c] - most);
        for (std::int64_t c = 0; c < cols; ++c) y[r * cols + c] /= total;
    }
    return 0;
}
"""
RIGHT = SOURCE.replace("OUTSIDE", "").replace("INSIDE", "float")
RACY = SOURCE.replace("OUTSIDE", "float total;").replace("INSIDE", "")
SOUGHT = msgspec.structs.replace(build.SETTINGS, memory_limit=2 << 30, thread_counts=(2, 3), time_limit=60.0)


def judged(text: str, root: Path, thread_counts: tuple[int, ...] = SOUGHT.thread_counts) -> VerifyRecord:
    """The verdict on a source with OpenMP."""
    sources = root / "written"
    sources.mkdir(exist_ok=True)
    (sources / "softmax.cpp").write_text(text)
    implementation = msgspec.structs.replace(build.IMPLEMENTATION, source="softmax.cpp")
    variant, entry = build.variant(text), digest_bytes(text.encode())
    problem = msgspec.structs.replace(build.PROBLEM, dimensions={"rows": 200, "cols": 160})
    job = CompileJob(variant=variant, implementation=implementation, problem=problem, target=build.TARGET)
    folder = entry_path(root, "compile", entry)
    folder.mkdir(parents=True)
    result = Cpp().compile(job, sources, folder)
    record = CompileRecord(
        variant=variant, entry=entry, result=result, seconds=0.0, provenance=build.PROVENANCE
    )
    settings = msgspec.structs.replace(SOUGHT, thread_counts=thread_counts)
    spec = build.spec(problem=problem, implementations={"cpp": implementation}, settings=settings)
    (verdict,) = run(spec, [record], root, workers=1)
    return verdict


def sought(verdict: VerifyRecord) -> int:
    """In how many calls."""
    return next(check.cases for check in verdict.checks if check.check == "races")


@pytest.mark.slow
def test_a_race_refuses_the_variant(tmp_path: Path) -> None:
    """The threads share a sum; the reason says where, who and on which inputs."""
    result = judged(RACY, tmp_path).result
    assert isinstance(result, Failure)
    assert result.outcome is Outcome.NONDETERMINISTIC
    assert re.search(r"data race in softmax.cpp:\d+|between equal calls", result.reason), result.reason


@pytest.mark.slow
def test_a_right_variant_passes(tmp_path: Path) -> None:
    """The same kernel with a sum for each thread."""
    verdict = judged(RIGHT, tmp_path)
    assert isinstance(verdict.result, Verified), verdict.result
    assert sought(verdict) >= len(SOUGHT.thread_counts)


@pytest.mark.slow
def test_without_a_detector_the_record_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variant passes, the check has judged no call, and the log has the reason."""

    def absent() -> Path:
        raise ToolchainError("no g++ here")

    monkeypatch.setattr(thread_races, "detector", absent)
    verdict = judged(RIGHT, tmp_path)
    assert isinstance(verdict.result, Verified), verdict.result
    assert sought(verdict) == 0
    assert "no g++ here" in (entry_path(tmp_path, "verify", verdict.entry) / "log.txt").read_text()
