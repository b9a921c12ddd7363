"""The verify stage: right kernels pass, each wrong one ends as its outcome, and verdicts are kept."""

import ctypes
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.backends.backend import LaunchError
from pipeline.records.compiled import CompileOutput, CompileRecord
from pipeline.records.outcome import Failure
from pipeline.records.record import read_record, to_json
from pipeline.records.specs import VerifySpec
from pipeline.records.verified import Verified, VerifyOutput, VerifyRecord
from pipeline.stages import verify
from tests.checks.build import compile_source, spec
from tests.checks.softmax_sources import RIGHT, WRONG


def run(spec: VerifySpec, compiled: list[CompileRecord], root: Path) -> tuple[VerifyRecord, ...]:
    """Call the stage as its command line does."""
    (root / "spec.json").write_bytes(to_json(spec))
    (root / "compiled.json").write_bytes(to_json(CompileOutput(key="c", round=0, records=tuple(compiled))))
    arguments = ["--spec", "spec.json", "--compiled", "compiled.json", "--out", "out.json"]
    code = verify.main(
        [part if part.startswith("--") else str(root / part) for part in arguments] + ["--root", str(root)]
    )
    assert code == 0
    return read_record(root / "out.json", VerifyOutput).records


class PlainC:
    """The least backend: loads a shared library and passes pointers, sizes and the stride of x."""

    preload = ()

    def load(self, job, compiled, root, folder):
        """Launch through ctypes."""
        function = getattr(ctypes.CDLL(str(folder / compiled.artifact)), job.implementation.entry)

        def launch(tensors) -> None:
            x, y = tensors["x"], tensors["y"]
            sizes = [ctypes.c_int64(n) for n in (*x.shape, x.stride(0))]
            code = function(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), *sizes)
            if code:
                raise LaunchError(f"returned {code}")

        return launch


@pytest.fixture(autouse=True, scope="module")
def plain_c() -> Iterator[None]:
    """Until the backend exists."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.checks.candidate.backend", lambda name: PlainC())
        patch.setattr("pipeline.stages.verify.backend", lambda name: PlainC())
        yield


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, VerifyRecord]:
    """All sources judged in one job."""
    root = tmp_path_factory.mktemp("verify")
    sources = RIGHT | {name: source for name, (_, source) in WRONG.items()}
    with ThreadPoolExecutor(2) as pool:
        compiled = list(pool.map(lambda source: compile_source(source, root), sources.values()))
    return dict(zip(sources, run(spec(), compiled, root), strict=True))


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_pass(verdicts: dict[str, VerifyRecord], name: str) -> None:
    """A right kernel passes every check within its bound."""
    record = verdicts[name]
    assert isinstance(record.result, Verified), record.result
    assert 0 < record.result.worst_share <= 1
    assert record.result.weak == ()
    assert all(check.cases > 0 for check in record.checks)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_end_as_their_outcome(verdicts: dict[str, VerifyRecord], name: str) -> None:
    """Each way to be wrong has its own outcome and a reason that names inputs."""
    result = verdicts[name].result
    assert isinstance(result, Failure), f"{name} passed"
    assert result.outcome == WRONG[name][0], result.reason
    assert "rows=" in result.reason
