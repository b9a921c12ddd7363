"""The oracle: functions by name, in float64, with shapes checked."""

from pathlib import Path

import msgspec
import pytest
import torch

from pipeline.records.errors import ConfigError
from pipeline.verify.oracle.random_inputs import make_inputs
from pipeline.verify.oracle.reference import find_function
from tests.verify.harness.build import PROBLEM
from tests.verify.oracle.simulated import oracle


def test_expected_values_are_exact() -> None:
    """float64 throughout, whatever the inputs' type."""
    inputs = make_inputs(PROBLEM, "normal", 1)
    expected = oracle().expected(PROBLEM, inputs)["y"]
    assert expected.reference.dtype == expected.bound.dtype == torch.float64
    assert torch.equal(expected.reference, torch.softmax(inputs["x"].double(), -1))
    assert expected.plain


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no.such.module:reference", "No module named 'no'"),
        ("kernels.softmax.reference:nothing", "no attribute 'nothing'"),
        ("kernels.softmax.reference", "expected module:function"),
        ("kernels.softmax.reference:torch", "expected a function, got module"),
    ],
)
def test_unknown_functions(name: str, text: str) -> None:
    """One line that names what was asked for."""
    with pytest.raises(ConfigError, match=text) as error:
        find_function(name)
    assert name in str(error.value)


def test_a_mistake_names_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Last, where the log of a stage is read."""
    (tmp_path / "mistaken.py").write_text("def reference(x):\n    return x.abbs()\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AttributeError) as raised:
        find_function("mistaken:reference")(torch.zeros(2))
    (note,) = raised.value.__notes__
    assert note.startswith("mistaken:reference: AttributeError: ") and note.endswith(
        "(line 2: return x.abbs())"
    )


def test_wrong_shapes_and_counts() -> None:
    """A reference that does not fit its yaml is the user's error, not the candidate's."""
    inputs = make_inputs(PROBLEM, "normal", 1)
    for function, text in (
        (lambda x: x[:1], "returned \\(1, 256\\)"),
        (lambda x: (x, x), "returned 2 tensors"),
    ):
        wrong = msgspec.structs.replace(oracle(), reference=function)
        with pytest.raises(ConfigError, match=text):
            wrong.expected(PROBLEM, inputs)
