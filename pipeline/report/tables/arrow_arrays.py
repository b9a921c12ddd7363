"""Arrow arrays from Python's values, without the half second in which `pyarrow.array` imports pandas."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.performance.metrics import ColumnType


def array(values: Sequence[Any], kind: "ColumnType") -> "pa.Array":
    """An array whose absent values are None.

    Raises
    ------
    TypeError, ValueError, OverflowError
        A value is not of this kind.
    """
    import numpy as np
    import pyarrow as pa

    kept = np.array([value is not None for value in values], dtype=bool)
    validity = None if kept.all() else pa.py_buffer(np.packbits(kept, bitorder="little"))
    arrow_type = pa.type_for_alias(kind)
    if kind == "string":
        _require(values, str)
        content = [b"" if value is None else value.encode() for value in values]
        ends = np.cumsum([0, *map(len, content)], dtype=np.int64)
        if ends[-1] >= 1 << 31:
            raise OverflowError("more than 2 GiB of text in one array")
        data = [pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(content))]
    elif kind == "bool":
        _require(values, bool)
        bits = np.array([bool(value) for value in values], dtype=bool)
        data = [pa.py_buffer(np.packbits(bits, bitorder="little"))]
    elif kind == "int64":
        _require(values, int)
        data = [pa.py_buffer(np.array([0 if value is None else value for value in values], dtype=np.int64))]
    else:
        numbers = [0.0 if value is None else value for value in values]
        data = [pa.py_buffer(np.array(numbers, dtype=np.float64))]
    return pa.Array.from_buffers(arrow_type, len(values), [validity, *data])


def repeated(texts: Sequence[str], lengths: Sequence[int]) -> "pa.DictionaryArray":
    """Each text so many times, kept as a number into the distinct ones."""
    import numpy as np
    import pyarrow as pa

    places: dict[str, int] = {}
    codes = [places.setdefault(text, len(places)) for text in texts]
    rows = np.repeat(np.array(codes, dtype=np.int32), lengths)
    indices = pa.Array.from_buffers(pa.int32(), len(rows), [None, pa.py_buffer(rows)])
    return pa.DictionaryArray.from_arrays(indices, array(list(places), "string"))


def _require(values: Sequence[Any], kind: type) -> None:
    """numpy would cut a fraction off without a word."""
    for value in values:
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"got {value!r}, expected {kind.__name__}")
