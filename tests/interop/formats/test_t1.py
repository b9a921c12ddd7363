"""T1: values, defaults, conditions, the problem; what is wrong is told with file and place."""

import copy
from pathlib import Path
from typing import Any

import pytest

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.interop.formats.t1 import listed_values
from pipeline.records.errors import FormatError, FormulaError
from pipeline.records.search.recorded_space import RecordedArgument
from pipeline.search.spaces.search_space import recorded_space
from tests.interop.formats.files import T1, written

PLACE = "ConfigurationSpace.TuningParameters"


def changed(path: str, value: Any) -> dict[str, Any]:
    """The file with another value at a path; None takes it away."""
    content = copy.deepcopy(T1)
    *parents, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    part: Any = content
    for key in parents:
        part = part[key]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return content


def test_all_that_the_file_says(tmp_path: Path) -> None:
    """Values in order and of their kind, defaults among them, conditions with what they name, the problem."""
    space = read_recorded(written(tmp_path, T1))
    assert (space.format, space.kernel, space.device, space.language) == ("T1", "vector_add", "A100", "CUDA")
    assert space.problem == (1024, 2)
    assert space.tunables == {
        "block": (32, 64, 128),
        "unroll": (1, 2, 4),
        "algorithm": ("a", "b"),
        "ratio": (0.5, 1),
        "padded": (True, False),
    }
    assert space.defaults == {"block": 64, "unroll": 2, "padded": False}
    assert space.notes == ('the default of algorithm, "c", is not among its values: left out',)
    assert space.constants == {"MAX_THREADS": 256}
    assert space.arguments == (
        RecordedArgument(name="a", type="float", memory="Vector", access="ReadOnly", size=10),
        RecordedArgument(name="n", type="int32", memory="Scalar", size="max(block)"),
    )
    searched = recorded_space(space)
    assert (searched.size, searched.count) == (72, 48)
    assert searched.default == {"block": 64, "unroll": 2, "algorithm": "a", "ratio": 0.5, "padded": False}


def test_what_the_hub_has_and_the_schema_has_not(tmp_path: Path) -> None:
    """Values as a list, a tunable declared twice, fractions among whole numbers: taken, and noted."""
    content = changed("ConfigurationSpace/TuningParameters/0/Values", [0.5, 64])
    content["ConfigurationSpace"]["TuningParameters"].append(
        {"Name": "ratio", "Type": "float", "Values": "[2.0]", "Default": 2.0}
    )
    del content["ConfigurationSpace"]["Conditions"], content["KernelSpecification"], content["General"]
    space = read_recorded(written(tmp_path, content))
    assert (space.tunables["block"], space.tunables["ratio"]) == ((0.5, 64), (2.0,))
    assert "block is declared int and has values with a fraction" in space.notes
    assert "ratio is declared twice: the last declaration counts" in space.notes
    assert (space.kernel, space.constraints) == (None, ())


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (f"{PLACE}".replace(".", "/"), None, "ConfigurationSpace: expected the key 'TuningParameters', got"),
        (f"{PLACE}/0/Values".replace(".", "/"), "[1, 2", f"{PLACE}[0].Values: `[1, 2`: not an expression"),
        (
            f"{PLACE}/0/Values".replace(".", "/"),
            "[open('x')]",
            f"{PLACE}[0].Values: `[open('x')]`: unknown func",
        ),
        (
            f"{PLACE}/0/Values".replace(".", "/"),
            "[x]",
            f"{PLACE}[0].Values: `[x]`: expected values, got the unk",
        ),
        (
            f"{PLACE}/0/Values".replace(".", "/"),
            "[]",
            f"{PLACE}[0].Values: expected at least one value, got none",
        ),
        (
            f"{PLACE}/0/Values".replace(".", "/"),
            "['a']",
            f'{PLACE}[0].Values: expected values of type int, got "a"',
        ),
        (
            f"{PLACE}/0/Values".replace(".", "/"),
            "[1, 1]",
            f"{PLACE}[0].Values: expected each value once, got [1, 1]",
        ),
        (
            f"{PLACE}/1/Values".replace(".", "/"),
            "[-1]",
            f"{PLACE}[1].Values: expected values of type uint, got -1",
        ),
        (
            f"{PLACE}/0/Values".replace(".", "/"),
            [float("inf")],
            f"{PLACE}[0].Values: expected a number of at most 64 bits, got Infinity",
        ),
        (
            f"{PLACE}/0/Type".replace(".", "/"),
            "real",
            f"{PLACE}[0].Type: expected one of int, uint, float, bool",
        ),
        (f"{PLACE}/0/Name".replace(".", "/"), 3, f"{PLACE}[0].Name: expected a string, got 3"),
        (
            "ConfigurationSpace/Conditions/0/Expression",
            "blok > 1",
            "Conditions[0].Expression: expected names of tun",
        ),
        (
            "ConfigurationSpace/Conditions/0/Expression",
            "1 +",
            "Conditions[0].Expression: `1 +`: not an expression",
        ),
        ("ConfigurationSpace/Conditions", "x", 'Conditions: expected a list, got "x"'),
        ("ConfigurationSpace", [], "ConfigurationSpace: expected an object, got []"),
        ("KernelSpecification/Arguments/0", 1, "KernelSpecification.Arguments[0]: expected an object, got 1"),
    ],
)
def test_errors(path: str, value: Any, text: str, tmp_path: Path) -> None:
    """One line: the file, the place, what was expected, what is there."""
    file = written(tmp_path, changed(path, value))
    with pytest.raises(FormatError) as caught:
        read_recorded(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("[1, 2, 4]", [1, 2, 4]),
        ("[1, 2] + list(range(32, 97, 32))", [1, 2, 32, 64, 96]),
        ("[2**i for i in range(0, 6)]", [1, 2, 4, 8, 16, 32]),
        ("[16*i for i in range(1,9) if i % 2 == 0]", [32, 64, 96, 128]),
        ("range(3)", [0, 1, 2]),
        ("1, 2", [1, 2]),
        ("['a', \"b\"]", ["a", "b"]),
        ("[True, False]", [True, False]),
        ("[-1, 0.5]", [-1, 0.5]),
        ("sorted([3, 1])", [1, 3]),
    ],
)
def test_values(expression: str, values: list[object]) -> None:
    """What the hub's files write, and a little more."""
    assert listed_values(expression) == values


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("[i for i in range(10**9)]", "cannot be evaluated: range of more than 10000 steps"),
        ("[10**30]", "a value does not fit 64 bits"),
        ("[9**9**9]", "cannot be evaluated"),
        ("[1] * 10**9", "cannot be evaluated"),
        ("().__class__", "cannot be evaluated"),
        ("[x.y for x in [1]]", "cannot be evaluated"),
        ("__import__('os').system('true')", "unknown function '__import__'"),
        ("__import__('os')", "unknown function '__import__' (known: abs, bool,"),
        ("open('/etc/passwd')", "unknown function 'open'"),
        ("3", "expected a list of values, got 3"),
        ("{1: 2}", "expected a list of values, got {1: 2}"),
        ("[1, 2", "not an expression"),
        ("", "cannot be evaluated"),
        ("n", "expected values, got the unknown name 'n'"),
        ("[1, 2][5]", "cannot be evaluated: list index out of range"),
        ("{1: 2}[3]", "cannot be evaluated: "),
    ],
)
def test_errors_of_t1_values(expression: str, text: str) -> None:
    """Nothing but values comes out, in bounded time; the text names the expression."""
    with pytest.raises(FormulaError) as caught:
        listed_values(expression)
    assert str(caught.value).startswith(f"`{expression}`: {text}")
