"""KTT's output: one duration each, its statuses as outcomes."""

import copy
from pathlib import Path
from typing import Any

import pytest

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.interop.formats.ktt import STATUSES
from pipeline.records.errors import FormatError
from pipeline.records.outcome import Outcome
from tests.interop.formats.files import written


def entry(status: str, block: int) -> dict[str, Any]:
    """One configuration."""
    return {
        "Configuration": [
            {"Name": "BLOCK", "Value": block, "ValueType": "UnsignedInt"},
            {"Name": "MODE", "Value": "x", "ValueType": "String"},
        ],
        "KernelName": "copy",
        "Status": status,
        "TotalDuration": 1500.0,
        "TotalOverhead": 2e6,
    }


KTT: dict[str, Any] = {
    "Metadata": {"Device": "Some GPU", "TimeUnit": "Microseconds", "KttVersion": "2.1.0"},
    "Results": [entry(status, 2**number) for number, status in enumerate(STATUSES)],
}


def test_all_that_the_file_says(tmp_path: Path) -> None:
    """Microseconds become seconds; what failed has a reason and no time."""
    space = read_recorded(written(tmp_path, KTT))
    assert (space.format, space.kernel, space.device) == ("KTT", "copy", "Some GPU")
    assert space.tunables == {"BLOCK": (1, 2, 4, 8, 16), "MODE": ("x",)}
    assert [each.outcome for each in space.results] == list(STATUSES.values())
    first, *failed = space.results
    assert (first.samples, first.seconds, first.cost_seconds) == ((0.0015,), 0.0015, 2.0)
    assert [(each.reason, each.seconds) for each in failed] == [(each, None) for each in list(STATUSES)[1:]]
    assert failed[0].outcome is Outcome.LAUNCH_ERROR


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("Results", 1, "Status"), "Odd", "Results[1].Status: expected one of Ok, ComputationFailed"),
        (("Results", 0, "TotalDuration"), "x", 'Results[0].TotalDuration: expected a number, got "x"'),
        (
            ("Results", 0, "Configuration", 0),
            {},
            "Results[0].Configuration[0]: expected the key 'Name', got not",
        ),
        (
            ("Results", 1, "Configuration"),
            [],
            "Results[1].Configuration: expected 'BLOCK', 'MODE' as in Results[0]",
        ),
        (("Metadata", "TimeUnit"), "days", "Metadata.TimeUnit: expected a unit of time"),
        (("Metadata",), 1, "Metadata: expected an object, got 1"),
    ],
)
def test_errors(path: tuple[Any, ...], value: Any, text: str, tmp_path: Path) -> None:
    """One line: the file, the place, what was expected, what is there."""
    content = copy.deepcopy(KTT)
    part: Any = content
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    file = written(tmp_path, content)
    with pytest.raises(FormatError) as caught:
        read_recorded(file)
    assert str(caught.value).startswith(f"{file}: {text}")
