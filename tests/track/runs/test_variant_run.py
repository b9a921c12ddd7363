"""The layout of a variant's results as a run."""

from pathlib import Path

import msgspec
import pytest

from pipeline.records.outcome import Failure
from pipeline.records.record import digest_bytes, digest_parts
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import Profiled
from pipeline.track.runs.variant_run import VariantRun, is_measured, is_only_compiled, read_task, run_of
from tests.report.costs import with_costs
from tests.track.small_run import compiled, measured, results_of, write_source


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a small run."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def results(folder: Path) -> tuple[Result, ...]:
    """Its results."""
    return results_of(write_source(folder, [measured(), compiled()]))


def _run(result: Result, folder: Path) -> VariantRun:
    return run_of(result, read_task(result.task, folder), folder)


def _first(results: tuple[Result, ...], *, on: str) -> Result:
    return next(result for result in results if result.task.hardware == on)


def test_tunables_are_params_and_where_numeric_metrics(results: tuple[Result, ...], folder: Path) -> None:
    """Params for the compare page, metrics for scatter charts and sorting."""
    run = _run(_first(results, on="cpu"), folder)
    assert run.params == {"unroll": "1", "vectorize": "false"}
    assert {name: run.metrics[f"tunable/{name}"] for name in run.params} == {"unroll": 1.0, "vectorize": 0.0}


def test_times_have_their_unit_and_interval(results: tuple[Result, ...], folder: Path) -> None:
    """Microseconds, as the names say."""
    result = _first(results, on="cpu")
    metrics = _run(result, folder).metrics
    assert result.profiled is not None
    assert metrics["time/median_us"] == pytest.approx(result.profiled.timing.median.value * 1e6)
    assert metrics["time/low_us"] < metrics["time/median_us"] < metrics["time/high_us"]
    assert metrics["speedup/eager_low"] < metrics["speedup/eager"] < metrics["speedup/eager_high"]


def test_the_diagnosis_is_a_tag(results: tuple[Result, ...], folder: Path) -> None:
    """Codes of the findings, to find runs by what limits them; the bound is called an estimate."""
    run = _run(_first(results, on="cpu"), folder)
    assert run.tags["diagnosis"].split()[0] in {"memory_bound", "compute_bound", "far_from_ceilings"}
    result = _first(results, on="cpu")
    assert result.profiled is not None
    assert 0 < run.metrics["estimate/ceiling_us"] <= result.profiled.timing.median.value * 1e6


def test_the_first_metric_is_the_one_to_compare(results: tuple[Result, ...], folder: Path) -> None:
    """The compare page preselects the first metric that was logged."""
    assert next(iter(_run(_first(results, on="cpu"), folder).metrics)) == "speedup/eager"


def test_what_was_only_compiled_has_no_time(results: tuple[Result, ...], folder: Path) -> None:
    """Facts, and an estimate that is called one; nothing that looks like a measurement."""
    run = _run(_first(results, on="h200"), folder)
    prefixes = {name.split("/")[0] for name in run.metrics}
    assert prefixes == {"static", "instructions", "estimate", "tunable", "check", "search", "stage"}
    assert run.tags["status"] == "compiled_only"
    assert run.tags["verified_on"] == "interpreter"


def test_a_wrong_variant_is_no_run(results: tuple[Result, ...]) -> None:
    """Failures are in the tables of the sweep, not among the runs."""
    wrong = [result for result in results if isinstance(result.records[result.stage].result, Failure)]
    failed = [result for result in wrong if result.task.hardware == "cpu"]
    assert len(failed) == 1
    assert not is_measured(failed[0])
    assert not is_only_compiled(failed[0])


def test_a_run_tells_how_to_repeat_it(results: tuple[Result, ...], folder: Path) -> None:
    """Overrides, versions, seeds and the commit stand in the tags."""
    tags = _run(_first(results, on="cpu"), folder).tags
    assert tags["overrides"].startswith("kernel=softmax workload=bert_base hardware=cpu optimization=full")
    assert "torch=2.13.0" in tags["versions"]
    assert tags["seeds"] == "11 12"
    assert tags["mlflow.source.git.commit"] == "2f7c1ab90e11+"


def test_source_and_binary_are_kept(results: tuple[Result, ...], folder: Path) -> None:
    """The binary that was timed and the sources that compile kept with it; no disassembly."""
    result = _first(results, on="cpu")
    assert result.compile is not None
    assert result.compiled is not None
    kept = ("kernel.s", "kernel.so", "sources/kernels/vector.hpp", "sources/kernels/softmax/softmax.cpp")
    compiled = msgspec.structs.replace(result.compiled, files=kept)
    record = msgspec.structs.replace(result.compile, result=compiled)
    files = {
        path.name: target
        for path, target in _run(msgspec.structs.replace(result, compile=record), folder).files
    }
    assert files == {
        "kernel.so": "kernel",
        "vector.hpp": "kernel/sources/kernels",
        "softmax.cpp": "kernel/sources/kernels/softmax",
    }


@pytest.mark.parametrize(("edited", "kept"), [(False, ["softmax.cpp"]), (True, [])])
def test_a_source_that_was_edited_since_is_not_kept(
    results: tuple[Result, ...], folder: Path, tmp_path: Path, edited: bool, kept: list[str]
) -> None:
    """Where compile keeps none, the repository's file stands in if it is still the same one."""
    source = tmp_path / "softmax.cpp"
    source.write_text("// the source\n")
    result = _first(results, on="cpu")
    digests = {source.as_posix(): digest_bytes(source.read_bytes())}
    variant = msgspec.structs.replace(result.variant, source_digest=digest_parts(digests))
    task = read_task(result.task, folder)
    assert task.compile is not None
    implementation = msgspec.structs.replace(task.compile.implementations["cpp"], source=source.as_posix())
    spec = msgspec.structs.replace(task.compile, implementations={"cpp": implementation})
    if edited:
        source.write_text("// another one\n")
    run = run_of(
        msgspec.structs.replace(result, variant=variant), msgspec.structs.replace(task, compile=spec), folder
    )
    assert [path.name for path, _ in run.files if path.suffix == ".cpp"] == kept


def test_costs_are_metrics(results: tuple[Result, ...], folder: Path) -> None:
    """Energy, memory, clock and counters; the first metric stays the one to compare."""
    result = with_costs(_first(results, on="cpu"))
    run = _run(result, folder)
    assert result.profiled is not None
    assert run.metrics["energy_joules"] == 0.25
    assert run.metrics["energy/delay_js"] == pytest.approx(0.25 * result.profiled.timing.median.value)
    assert run.metrics["memory/device_bytes"] == 16 << 20
    assert run.metrics["device/clock_mhz_low"] == 1755.0
    assert run.metrics["counter/dram__bytes_read.sum"] == 96.0
    assert run.tags["throttled"] == "software power cap, sync boost"
    assert next(iter(run.metrics)) == "speedup/eager"


def test_what_was_not_measured_is_no_metric(results: tuple[Result, ...], folder: Path) -> None:
    """A 0 in its place would be compared with real ones."""
    metrics = _run(_first(results, on="cpu"), folder).metrics
    assert not [name for name in metrics if name.startswith(("energy", "memory/", "device/", "counter/"))]


def _faster(result: Result) -> Result:
    profile = result.profile
    assert profile is not None
    assert isinstance(profile.result, Profiled)
    found = msgspec.structs.replace(profile.result, roofline_share=0.99)
    return msgspec.structs.replace(result, profile=msgspec.structs.replace(profile, result=found))


def test_a_new_measurement_of_the_same_is_the_same_slot(results: tuple[Result, ...], folder: Path) -> None:
    """So that it replaces the old one."""
    old = _first(results, on="cpu")
    before, after = _run(old, folder), _run(_faster(old), folder)
    assert before.slot == after.slot
    assert before.result != after.result


def test_a_new_compiler_is_a_new_slot(results: tuple[Result, ...], folder: Path) -> None:
    """Both stay in view, because comparing them is the point of an upgrade."""
    old = _first(results, on="cpu")
    assert old.compile is not None
    provenance = msgspec.structs.replace(old.compile.provenance, toolchain={"g++": "14.1.0"})
    new = msgspec.structs.replace(old, compile=msgspec.structs.replace(old.compile, provenance=provenance))
    assert _run(old, folder).slot != _run(new, folder).slot


def test_seconds_spent_are_no_part_of_the_result(results: tuple[Result, ...], folder: Path) -> None:
    """A cached record and a fresh one with equal content are one run."""
    old = _first(results, on="cpu")
    assert old.compile is not None
    new = msgspec.structs.replace(old, compile=msgspec.structs.replace(old.compile, seconds=99.0))
    assert _run(old, folder).result == _run(new, folder).result
