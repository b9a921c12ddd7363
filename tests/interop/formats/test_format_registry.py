"""Any file: known by its content, and refused in one line where it is none of the kinds."""

import copy
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pipeline.interop.formats import format_registry
from pipeline.interop.formats.format_registry import FileFormat, combined, read_recorded
from pipeline.records import entry_points
from pipeline.records.errors import ConfigError, FormatError
from pipeline.records.search.recorded_space import RecordedSpace
from tests.interop.formats.files import CACHE, T1, T4, written
from tests.interop.formats.recorded import recorded
from tests.selection import slow_unless

RECORDED = {
    "convolution_milo_A100": (4362, {"launch_error": 155, "compile_error": 6}, 0.5536e-3),
    "convolution_milo_MI250X": (4362, {}, 0.65879e-3),
    "dedispersion_milo_A100": (11130, {}, 68.1166e-3),
}


@pytest.mark.parametrize("suffix", [".json.gz", "_T4.json.gz"])
@pytest.mark.parametrize("name", slow_unless("convolution_milo_A100".__eq__, RECORDED))
def test_the_public_results(name: str, suffix: str) -> None:
    """Number of results, failures by kind, best time: as their README says, from either format."""
    space = read_recorded(recorded(f"{name}{suffix}"))
    count, failures, best = RECORDED[name]
    assert len(space.results) == count
    outcomes = [result.outcome.value for result in space.results]
    assert {each: outcomes.count(each) for each in set(outcomes) - {"passed"}} == failures
    seconds = [result.seconds for result in space.results if result.seconds is not None]
    assert min(seconds) == pytest.approx(best, rel=1e-5)
    assert len(seconds) == count - sum(failures.values())


def test_t4_and_cache_file_say_the_same() -> None:
    """Both formats of one measurement become the same results, what T4 lacks apart."""
    cache = read_recorded(recorded("convolution_milo_A100.json.gz"))
    t4 = read_recorded(recorded("convolution_milo_A100_T4.json.gz"))
    for one, other in zip(cache.results, t4.results, strict=True):
        assert (one.tunables, one.outcome, one.samples) == (other.tunables, other.outcome, other.samples)
        assert (one.seconds, one.compile_seconds) == (other.seconds, other.compile_seconds)


def test_the_content_tells_the_kind(tmp_path: Path) -> None:
    """Not the name of the file."""
    for content, kind in ((T1, "T1"), (T4, "T4"), (CACHE, "cache")):
        assert read_recorded(written(tmp_path, content, "whatever")).format == kind


@pytest.mark.parametrize(
    ("content", "name", "text"),
    [
        (
            {"a": 1},
            "f",
            "top level: expected one of the formats T1 (a search space), T4 (results of a tuner), ",
        ),
        ([1], "f", "top level: expected an object, got [1]"),
        ("", "f", "line 1 column 1: expected JSON, got an error: Expecting value"),
        ('{"a": 1,\n "b" 2}', "f", "line 2 column 6: expected JSON, got an error: Expecting ':' delimiter"),
        ("[" * 100_000, "f", "expected JSON, got "),
        (
            '{"results": [], "a": "\\ud83d\\ude00 \\ud800"}',
            "f",
            "expected text, got half a character: \\ud800",
        ),
        (f'{{"a": {"1" * 5_000}}}', "f", "expected JSON, got a number of more than 4,300 digits"),
        ('{"cache": tru', "f", "line 1 column 11: expected JSON, got an error"),
    ],
)
def test_other_files(content: object, name: str, text: str, tmp_path: Path) -> None:
    """One line that names the file and what is there."""
    file = written(tmp_path, content, name)
    with pytest.raises(FormatError) as caught:
        read_recorded(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Missing, a folder, a gzip file cut off or damaged, bytes that are no text."""
    whole = written(tmp_path, T4, "whole.gz").read_bytes()
    (tmp_path / "cut.gz").write_bytes(whole[:-20])
    (tmp_path / "damaged.gz").write_bytes(whole[:30] + b"\0\0\0\0" + whole[34:])
    (tmp_path / "bytes").write_bytes(b'{"a": "\xff"}')
    for name, text in (
        ("missing", "No such file or directory"),
        (".", "Is a directory"),
        ("cut.gz", "damaged gzip file"),
        ("damaged.gz", "damaged gzip file"),
        ("bytes", "expected UTF-8 text, got 0xff at byte 7"),
    ):
        with pytest.raises(FormatError, match=text):
            read_recorded(tmp_path / name)


WORDS = FileFormat(
    name="words",
    description="a line of words",
    recognizes=lambda file: file.text.startswith("words"),
    read=lambda file: RecordedSpace(source=file.path.name, format="words", tunables={}),
)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch):
    """Register an entry point of another package beside our own."""
    ours = entry_points.entry_points(format_registry.GROUP)

    def register(value: str) -> None:
        other = EntryPoint(name="other", value=value, group=format_registry.GROUP)
        monkeypatch.setattr(entry_points, "entry_points", lambda group: {**ours, "other": other})
        format_registry.formats.cache_clear()

    yield register
    format_registry.formats.cache_clear()


def test_our_formats_are_registered() -> None:
    """Each module of the folder that declares one has its entry point."""
    folder = Path(format_registry.__file__).parent
    declared = {path.stem for path in folder.glob("*.py") if "\nFORMAT = FileFormat(" in path.read_text()}
    entries = entry_points.entry_points(format_registry.GROUP).values()
    assert declared == {entry.module.rpartition(".")[2] for entry in entries}
    assert [each.name for each in format_registry.formats()] == ["T1", "T4", "cache", "KTT"]


def test_a_format_of_another_package(registered, tmp_path: Path) -> None:
    """It is found like our own, and named where a file is of none."""
    registered(f"{__name__}:WORDS")
    assert read_recorded(written(tmp_path, "words and more", "f")).format == "words"
    with pytest.raises(FormatError, match=r"words \(a line of words\)"):
        read_recorded(written(tmp_path, {"a": 1}, "g"))


def test_an_entry_point_that_is_no_format(registered) -> None:
    """One line that names it."""
    registered("math:pi")
    with pytest.raises(ConfigError, match="entry point other of kernelmill.formats: got 3.14"):
        format_registry.formats()


DESCRIBED = {
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "mode", "Type": "string", "Values": "['x', 'y', 'z']", "Default": "z"},
            {"Name": "block", "Type": "int", "Values": "[32, 64]"},
        ],
        "Conditions": [{"Expression": "block > 32 or mode != 'z'", "Parameters": ["block", "mode"]}],
    },
    "KernelSpecification": {"KernelName": "copy"},
}
MEASURED = {
    **CACHE,
    "tune_params_keys": ["block", "mode"],
    "tune_params": {"block": [32, 64], "mode": ["x"]},
    "cache": {"32,x": {"block": 32, "mode": "x", "time": 1.0}},
}


def test_one_space(tmp_path: Path) -> None:
    """Tunables, defaults and conditions of T1; results and device of the cache file."""
    described = read_recorded(written(tmp_path, DESCRIBED, "t1.json"))
    measured = read_recorded(written(tmp_path, MEASURED, "a.json"))
    space = combined(described, measured)
    assert (space.source, space.kernel, space.device) == ("t1.json + a.json", "copy", "Some GPU")
    assert list(space.tunables) == ["mode", "block"]
    assert space.tunables["mode"] == ("x", "y", "z")
    assert (space.defaults, len(space.constraints), len(space.results)) == ({"mode": "z"}, 1, 1)


def test_two_spaces(tmp_path: Path) -> None:
    """Other tunables, or a value that is not declared."""
    described = read_recorded(written(tmp_path, DESCRIBED, "t1.json"))
    other = read_recorded(written(tmp_path, CACHE, "a.json"))
    with pytest.raises(
        FormatError, match="a.json: expected the tunables of t1.json \\('block', 'mode'\\), got"
    ):
        combined(described, other)
    content = copy.deepcopy(MEASURED)
    content["cache"]["32,x"]["block"] = 16
    with pytest.raises(FormatError, match="a.json: block: expected a value of t1.json, got 16"):
        combined(described, read_recorded(written(tmp_path, content, "a.json")))
