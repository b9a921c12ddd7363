"""Arrow arrays that are built by hand are those that Arrow builds."""

import subprocess
import sys

import pyarrow as pa
import pytest

from pipeline.report.tables.arrow_arrays import array, repeated

VALUES = {
    "string": ["", "one", None, "zwölf ✓", None, "x" * 300],
    "int64": [0, None, -1, 1 << 62, None],
    "double": [0.0, None, -1.5, float("inf"), 1e-300, 3],
    "bool": [True, None, False, *[True, False, None] * 9],
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("absent", ["some", "none", "all", "empty"])
def test_equals_what_arrow_makes(kind, absent):
    """Values and absent values, of every kind that tables have."""
    values = {
        "some": VALUES[kind],
        "none": [value for value in VALUES[kind] if value is not None],
        "all": [None] * 11,
        "empty": [],
    }[absent]
    made = array(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.type_for_alias(kind)))


@pytest.mark.parametrize(("kind", "value"), [("int64", 1.5), ("bool", 1), ("int64", "1"), ("double", "x")])
def test_another_kind_is_refused(kind, value):
    """Nothing is cut off or taken for something else."""
    with pytest.raises((TypeError, ValueError)):
        array([value], kind)


def test_repeated_texts_are_numbers():
    """Each text as often as asked, the distinct ones once, in the order in which they come."""
    made = repeated(["b", "a", "b"], [2, 1, 0])
    made.validate(full=True)
    assert made.to_pylist() == ["b", "b", "a"]
    assert made.dictionary.to_pylist() == ["b", "a"]


def test_pandas_stays_out():
    """The point of it: half a second in every job that makes tables."""
    code = "import sys; from pipeline.report.tables.arrow_arrays import array; array(['a', None], 'string');"
    code += "array([1.0], 'double'); sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
