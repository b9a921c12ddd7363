"""Cache files of Kernel Tuner: times in seconds, failures with their reason, runs that ended early."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.records.errors import FormatError
from pipeline.records.outcome import Outcome
from tests.interop.formats.files import CACHE, ENTRIES, written

LINES = json.dumps(CACHE, indent="")[:-3]
"""As Kernel Tuner leaves it while it runs: without the last two brackets."""


def changed(**changes: Any) -> dict[str, Any]:
    """The file with other parts; None takes one away."""
    return {key: value for key, value in {**CACHE, **changes}.items() if value is not None}


@pytest.mark.parametrize("name", ["file.json", "file.json.gz", "unnamed.gz"])
def test_all_that_the_file_says(name: str, tmp_path: Path) -> None:
    """Milliseconds become seconds; what failed has a reason and no time; 1 and true are two values."""
    space = read_recorded(written(tmp_path, CACHE, name))
    assert (space.format, space.kernel, space.device) == ("cache", "vector_add", "Some GPU")
    assert (space.problem, space.unit, space.objective) == ((1024, 2), "milliseconds", "time")
    assert space.tunables == {"block": (32, 64), "flag": (1, True, 2), "mode": ("x", "y")}
    assert [repr(value) for value in space.tunables["flag"]] == ["1", "True", "2"]
    first = space.results[0]
    assert first.outcome is Outcome.PASSED
    assert first.samples == pytest.approx((0.003, 0.001, 0.0015))
    assert (first.seconds, first.median_seconds) == (pytest.approx(0.002), pytest.approx(0.0015))
    assert first.compile_seconds == pytest.approx(0.1)
    assert first.cost_seconds == pytest.approx(0.112)
    assert first.joules == 0.25
    assert first.measurements == {"GFLOP/s": 7.5, "nvml_energy": 0.25}
    assert [(each.outcome, each.reason) for each in space.results[1:]] == [
        (Outcome.COMPILE_ERROR, "CompilationFailedConfig"),
        (Outcome.LAUNCH_ERROR, "RuntimeFailedConfig"),
        (Outcome.PRUNED, "InvalidConfig"),
        (Outcome.LAUNCH_ERROR, "1e+20 in place of a value"),
        (Outcome.COMPILE_ERROR, "CompilationFailedConfig"),
    ]
    assert all(each.seconds is None and not each.samples for each in space.results[1:])
    assert space.results[1].compile_seconds == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("text", "count", "note"),
    [
        (LINES, 6, "the file was not closed: its run ended early"),
        (f"{LINES},\n", 6, "the file was not closed: its run ended early"),
        (f'{LINES},\n"64,2,y": {{"block": 64, "fl', 6, "the file ends within an entry, which is left out"),
        (LINES[: LINES.index('"64,1,x"') + 9], 1, "the file ends within an entry, which is left out"),
        (LINES[: LINES.index('"64,True,x"')], 0, "the file was not closed: its run ended early"),
    ],
)
def test_a_run_that_ended_early(text: str, count: int, note: str, tmp_path: Path) -> None:
    """What is whole is taken, and the note says what was amended."""
    space = read_recorded(written(tmp_path, text))
    assert len(space.results) == count
    assert space.notes[0].startswith(note)


def test_other_objectives_and_older_files(tmp_path: Path) -> None:
    """No time at all, no problem size, values that nobody declared."""
    entry = {"block": 16, "score": -1.5, "scores": [-1.5]}
    content = {"tune_params_keys": ["block"], "objective": "score", "cache": {"16": entry}}
    space = read_recorded(written(tmp_path, content))
    assert (space.objective, space.device, space.problem, space.notes) == ("score", None, (), ())
    assert space.tunables == {"block": (16,)}
    assert (space.results[0].seconds, space.results[0].measurements) == (None, {"score": -1.5})
    content = {"tune_params": {"block": [8]}, "cache": {"16": {"block": 16, "time": 1.0}}}
    space = read_recorded(written(tmp_path, content))
    assert space.tunables == {"block": (8, 16)}
    assert space.notes == ("results have values that are not declared: of block",)
    assert space.results[0].median_seconds == space.results[0].seconds == 0.001


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            {"flag": 1, "mode": "x", "time": 1.0},
            "cache['k']: expected the key 'block', got 'flag', 'mode', 'time'",
        ),
        (
            {"block": 64, "flag": 1, "mode": "x"},
            "cache['k']: expected the key 'time', got 'block', 'flag', 'mode'",
        ),
        ({**ENTRIES["64,True,x"], "time": "fast"}, "cache['k'].time: expected a number, got \"fast\""),
        ({**ENTRIES["64,True,x"], "times": [1.0, "x"]}, "cache['k'].times: expected a number, got \"x\""),
        ({**ENTRIES["64,True,x"], "times": [float("nan")]}, "cache['k'].times: expected a number, got NaN"),
        ({**ENTRIES["64,True,x"], "times": [10**400]}, "cache['k'].times: expected a number, got 1000"),
        ({**ENTRIES["64,True,x"], "times": [1.0, -1]}, "cache['k'].times: expected a time above 0, got -1"),
        ({**ENTRIES["64,True,x"], "time": 0}, "cache['k'].time: expected a time above 0, got 0"),
        ({**ENTRIES["64,True,x"], "times": 1.0}, "cache['k'].times: expected a list, got 1.0"),
        (
            {**ENTRIES["64,True,x"], "mode": [1]},
            "cache['k'].mode: expected a number, a string or a truth value",
        ),
        (7, "cache['k']: expected an object, got 7"),
    ],
)
def test_entries_that_are_wrong(entry: Any, text: str, tmp_path: Path) -> None:
    """One line: the file, the entry, what was expected, what is there."""
    file = written(tmp_path, changed(cache={"k": entry}))
    with pytest.raises(FormatError) as caught:
        read_recorded(file)
    assert str(caught.value).startswith(f"{file}: {text}")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"cache": [1]}, "cache: expected an object, got [1]"),
        ({"tune_params_keys": None, "tune_params": None}, "top level: expected the key 'tune_params', got"),
        ({"tune_params_keys": "block"}, 'tune_params_keys: expected a list, got "block"'),
        ({"tune_params": {"block": 3}}, "tune_params.block: expected a list, got 3"),
    ],
)
def test_headers_that_are_wrong(changes: dict[str, Any], text: str, tmp_path: Path) -> None:
    """The same for what stands above the entries."""
    file = written(tmp_path, copy.deepcopy(changed(**changes)))
    with pytest.raises(FormatError) as caught:
        read_recorded(file)
    assert str(caught.value).startswith(f"{file}: {text}")
