"""A description and measurements of one space become one; of two they do not."""

import copy
from pathlib import Path

import pytest

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.interop.formats.space_merging import combined
from pipeline.records.errors import FormatError
from tests.interop.formats.files import CACHE, written

T1 = {
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
    described = read_recorded(written(tmp_path, T1, "t1.json"))
    measured = read_recorded(written(tmp_path, MEASURED, "a.json"))
    space = combined(described, measured)
    assert (space.source, space.kernel, space.device) == ("t1.json + a.json", "copy", "Some GPU")
    assert list(space.tunables) == ["mode", "block"]
    assert space.tunables["mode"] == ("x", "y", "z")
    assert (space.defaults, len(space.constraints), len(space.results)) == ({"mode": "z"}, 1, 1)


def test_two_spaces(tmp_path: Path) -> None:
    """Other tunables, or a value that is not declared."""
    described = read_recorded(written(tmp_path, T1, "t1.json"))
    other = read_recorded(written(tmp_path, CACHE, "a.json"))
    with pytest.raises(
        FormatError, match="a.json: expected the tunables of t1.json \\('block', 'mode'\\), got"
    ):
        combined(described, other)
    content = copy.deepcopy(MEASURED)
    content["cache"]["32,x"]["block"] = 16
    with pytest.raises(FormatError, match="a.json: block: expected a value of t1.json, got 16"):
        combined(described, read_recorded(written(tmp_path, content, "a.json")))
