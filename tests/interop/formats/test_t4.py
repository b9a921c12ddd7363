"""T4: read with its quirks, written as the published schema says, and the way round."""

import copy
import errno
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.interop.formats.t4 import check_t4, t4_of, write_t4
from pipeline.records.errors import FormatError, StoreError
from pipeline.records.outcome import Outcome
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace
from tests.interop.formats.files import T4, measured, written
from tests.interop.formats.recorded import recorded
from tests.paths import ROOT


def one(**changes: Any) -> dict[str, Any]:
    """A file with one result, changed."""
    return {**T4, "results": [measured(2.0, **changes)]}


def test_all_that_the_file_says(tmp_path: Path) -> None:
    """Milliseconds become seconds; the values are those that occur."""
    space = read_recorded(written(tmp_path, T4))
    assert (space.format, space.unit, space.objective, space.notes) == ("T4", "milliseconds", "time", ())
    assert space.tunables == {"block": (64, 32), "mode": ("x", "y")}
    first = space.results[0]
    assert (first.samples, first.seconds) == ((0.003, 0.001, 0.0015), 0.002)
    assert (first.median_seconds, first.compile_seconds, first.joules) == (0.0015, 0.1, 0.25)
    assert first.measurements == {"GFLOP/s": 7.5, "energy": 0.25}
    assert [(each.outcome, each.reason) for each in space.results[1:]] == [
        (Outcome.LAUNCH_ERROR, "RuntimeFailedConfig"),
        (Outcome.TIMEOUT, "timeout"),
    ]


@pytest.mark.parametrize(
    ("metadata", "seconds"),
    [
        ({"timeunit": "seconds"}, 2.0),
        ({"timeunit": "us"}, 2e-6),
        ({"timeunit": "Nanoseconds"}, 2e-9),
        ({}, 2e-3),
    ],
)
def test_units(metadata: dict[str, str], seconds: float, tmp_path: Path) -> None:
    """Any unit of time; where none is given it is milliseconds, and the note says so."""
    space = read_recorded(written(tmp_path, {**one(), "metadata": metadata}))
    assert space.results[0].seconds == pytest.approx(seconds)
    assert bool(space.notes) == (not metadata)
    own = [{"name": "time", "value": 2.0, "unit": "us"}]
    assert read_recorded(written(tmp_path, one(measurements=own))).results[0].seconds == 2e-6


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"invalidity": "compile"}, Outcome.COMPILE_ERROR),
        ({"invalidity": "correctness"}, Outcome.WRONG_VALUE),
        ({"invalidity": "constraints"}, Outcome.PRUNED),
        ({"correctness": 0}, Outcome.WRONG_VALUE),
        ({"measurements": [{"name": "time", "value": "RuntimeFailedConfig"}]}, Outcome.LAUNCH_ERROR),
        ({"correctness": 0.5}, Outcome.PASSED),
    ],
)
def test_failures(changes: dict[str, Any], outcome: Outcome, tmp_path: Path) -> None:
    """By T4's word, by the marker in place of the time, by what is not correct."""
    result = read_recorded(written(tmp_path, one(**changes))).results[0]
    assert result.outcome is outcome
    assert (result.reason is None) == (outcome is Outcome.PASSED)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (one(invalidity="odd"), "results[0].invalidity: expected one of correct, timeout, compile, runtime"),
        (one(configuration=[]), "results[0].configuration: expected an object, got []"),
        (
            one(configuration={"block": None}),
            "results[0].configuration.block: expected a number, a string or",
        ),
        (one(times={"runtimes": ["x"]}), 'results[0].times.runtimes: expected a number, got "x"'),
        (one(times={"runtimes": [0]}), "results[0].times.runtimes: expected a time above 0, got 0"),
        (
            one(measurements=[{"name": "time", "value": -1}]),
            "results[0].measurements: time: expected a time above 0, got -1",
        ),
        (
            one(configuration={"block": 2**70}),
            "results[0].configuration.block: expected a number of at most 64 bits, got 11805916207",
        ),
        (one(times={"framework": "x"}), 'results[0].times.framework: expected a number, got "x"'),
        (
            one(measurements=[{"value": 1}]),
            "results[0].measurements[0]: expected the key 'name', got 'value'",
        ),
        (
            one(measurements=[{"name": "time", "value": "quick"}]),
            "results[0].measurements: time: expected a num",
        ),
        (one(correctness="yes"), 'results[0].correctness: expected a number, got "yes"'),
        ({**T4, "results": [{}]}, "results[0]: expected the key 'configuration', got nothing"),
        ({**T4, "results": {}}, "results: expected a list, got {}"),
        ({**T4, "schema_version": "2.0.0"}, 'schema_version: expected 1.0.0 or a later 1.x, got "2.0.0"'),
        (
            {**T4, "metadata": {"timeunit": "days"}},
            "metadata.timeunit: expected a unit of time (seconds, millis",
        ),
        (
            {**T4, "results": [measured(1.0), measured(1.0, configuration={"block": 1})]},
            "results[1].configuration: expected 'block', 'mode' as in results[0], got 'block'",
        ),
    ],
)
def test_errors(content: dict[str, Any], text: str, tmp_path: Path) -> None:
    """One line: the file, the place, what was expected, what is there."""
    file = written(tmp_path, content)
    with pytest.raises(FormatError) as caught:
        read_recorded(file)
    assert str(caught.value).startswith(f"{file}: {text}")
    assert "\n" not in str(caught.value)


SPACE = RecordedSpace(
    source="toy",
    format="T4",
    kernel="softmax.cpp",
    device="Some CPU",
    tunables={"block": (1, 2), "mode": ("x", "y"), "flag": (False, True)},
    results=(
        RecordedResult(
            tunables={"block": 1, "mode": "x", "flag": True},
            outcome=Outcome.PASSED,
            samples=(0.001, 0.002),
            seconds=0.0015,
            median_seconds=0.0015,
            compile_seconds=0.25,
            joules=0.5,
            measurements={"GB/s": 3.0},
            timestamp="2026-01-01T00:00:00+00:00",
        ),
        *(
            RecordedResult(
                tunables={"block": 2, "mode": "y", "flag": False},
                outcome=outcome,
                reason=f"why: {outcome}",
                compile_seconds=0.5,
            )
            for outcome in Outcome
            if outcome is not Outcome.PASSED
        ),
    ),
)


def test_written_and_read_again(tmp_path: Path) -> None:
    """Every outcome of ours survives; other tools see T4's own words."""
    path = tmp_path / "deep" / "results_T4.json"
    write_t4(SPACE, path)
    back = read_recorded(path)
    assert (back.kernel, back.device) == ("softmax.cpp", "Some CPU")
    assert [(each.outcome, each.reason) for each in back.results] == [
        (each.outcome, each.reason) for each in SPACE.results
    ]
    first, original = back.results[0], SPACE.results[0]
    assert first.samples == pytest.approx(original.samples)
    assert first.seconds == pytest.approx(original.seconds)
    assert (first.joules, first.tunables, first.timestamp) == (0.5, original.tunables, original.timestamp)
    words = {entry["invalidity"] for entry in json.loads(path.read_text())["results"]}
    assert words == {"correct", "compile", "runtime", "timeout", "correctness", "constraints"}


@pytest.mark.slow
def test_the_public_results_are_written_as_they_were_read(tmp_path: Path) -> None:
    """Thousands of results of a GPU through our records and back."""
    space = read_recorded(recorded("convolution_milo_A100.json.gz"))
    path = tmp_path / "T4.json"
    write_t4(space, path)
    for one_of, other in zip(space.results, read_recorded(path).results, strict=True):
        assert (one_of.tunables, one_of.outcome, one_of.reason) == (
            other.tunables,
            other.outcome,
            other.reason,
        )
        assert one_of.samples == pytest.approx(other.samples, rel=1e-12)
        assert one_of.measurements == other.measurements


def test_the_schema_decides() -> None:
    """What it does not allow is not written; the text names the place."""
    content = t4_of(SPACE)
    check_t4(content, "f")
    for path, value, text in (
        ("invalidity", "odd", "f: $.results[0].invalidity: not T4 1.0.0: 'odd' is not one of"),
        ("correctness", "no", "f: $.results[0].correctness: not T4 1.0.0: 'no' is not of type 'number'"),
    ):
        wrong = copy.deepcopy(content)
        wrong["results"][0][path] = value
        with pytest.raises(FormatError) as caught:
            check_t4(wrong, "f")
        assert str(caught.value).startswith(text)


def test_the_schema_is_the_published_one() -> None:
    """Ours is a copy, unchanged."""
    published = recorded("schema/T4_1.0.0_results-schema.json")
    ours = ROOT / "pipeline" / "interop" / "formats" / "schemas" / "T4-1.0.0-results.json"
    assert json.loads(ours.read_text()) == json.loads(published.read_text())


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """One line with the path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file/T4.json: cannot be written: "):
        write_t4(SPACE, tmp_path / "file" / "T4.json")


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full half-way leaves neither half a file nor a scratch one."""
    path = tmp_path / "T4.json"
    path.write_text("before")

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StoreError, match="No space left on device; free space and run again$"):
        write_t4(SPACE, path)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]


def test_a_failure_has_no_time() -> None:
    """Such a record cannot be made."""
    with pytest.raises(ValueError, match="has a reason and no time"):
        RecordedResult(tunables={}, outcome=Outcome.TIMEOUT, reason="slow", seconds=1.0)
    with pytest.raises(ValueError, match="has a reason and no time"):
        RecordedResult(tunables={}, outcome=Outcome.TIMEOUT)
    with pytest.raises(ValueError, match="passed has no reason"):
        RecordedResult(tunables={}, outcome=Outcome.PASSED, reason="x")
