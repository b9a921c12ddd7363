"""Read any file of the known kinds. In: a path; its content tells the kind. Out: a RecordedSpace."""

from pathlib import Path

from pipeline.interop.formats import json_files
from pipeline.interop.formats.kernel_tuner_cache import mended, recorded_cache
from pipeline.interop.formats.ktt import recorded_ktt
from pipeline.interop.formats.t1 import recorded_t1
from pipeline.interop.formats.t4 import recorded_t4
from pipeline.records.errors import FormatError
from pipeline.records.recorded import RecordedSpace

KINDS = {
    "ConfigurationSpace": "T1, a search space",
    "results": "T4, results",
    "cache": "a cache file of Kernel Tuner",
    "Results": "output of KTT",
}
"""The key of the top level that tells it."""


def read_recorded(path: Path) -> RecordedSpace:
    """A T1, T4, Kernel Tuner cache or KTT output file, plain or gzip.

    Raises
    ------
    FormatError
        It cannot be read, or is none of these; one line: file, place, expected, got.
    """
    text = json_files.read_text(path)
    content, notes = mended(text, path)
    json_files.whole_characters(text, content, path)
    if "ConfigurationSpace" in content:
        return recorded_t1(content, path)
    if "results" in content:
        return recorded_t4(content, path)
    if "cache" in content:
        return recorded_cache(content, path, notes)
    if "Results" in content:
        return recorded_ktt(content, path)
    known = "; ".join(f"'{key}' ({kind})" for key, kind in KINDS.items())
    raise FormatError(
        f"{path}: top level: expected one of the keys {known}, got {json_files.listed(content)}"
    )
