"""Texts of YAML that are put together of parts are what PyYAML makes of the whole."""

from typing import Any

import pytest

from pipeline.execution.sweep import job_folders
from pipeline.execution.sweep.job_folders import YamlTexts, list_text
from pipeline.plan.config import plain_yaml

STRINGS = (
    *("softmax", "a b", "", " ", "yes", "No", "y", "NULL", "null", "~", "true", "off", "inf", "+inf", "-inf"),
    *(
        "NaN",
        "+nan",
        "infinity",
        "Infinity",
        "1",
        "007",
        "1_000",
        "+1",
        "-1",
        "0x1f",
        "1e3",
        "1.5",
        ".5",
        "1:30",
    ),
    *(
        "2020-01-01",
        "=",
        "<<",
        "a=1",
        "+a.b=1",
        "++a.b=1",
        "+++a=1",
        "~a",
        "a=[1,2]",
        "a=${b}",
        "a:b",
        "a: b",
    ),
    *(
        "a #b",
        "#a",
        "/abs/path",
        "./rel",
        "a,b",
        ",a",
        "a-",
        "-a",
        "- a",
        "?",
        "? a",
        "!a",
        "&a",
        "*a",
        "|",
        "%a",
    ),
    *("@a", "`a", "'a'", '"a"', "a'b", "é", "日本", "a\nb", "a\n", "\ta", "a\t", "e1", "_1", "_", "x" * 300),
    *(
        "word " * 60,
        "x" * 1500,
        "a=" + "b" * 200,
        "a" * 127,
        "a" * 129,
        "９",
        "²",
        "1" * 18,
        "1" * 30,
        "__",
        "...",
    ),
    *(
        "---",
        "a...",
        "a/b.c-d_e",
        "e+5",
        "1e",
        "0b1",
        "0o7",
        "12e03",
        "_1e5",
        "y=",
        "on.off",
        "/",
        "//",
        "+",
        "++",
    ),
)
VALUES: tuple[Any, ...] = (
    *STRINGS,
    *(None, True, False, 0, 1, -1, 10**20, 0.0, 1.5, 1e300, 1e-7, float("inf"), float("nan"), [], {}),
    *([1, 2], ["a", "1"], [[1], [2]], [{"a": 1}], {"a": {}}, {"a": []}, {"a": {"b": [1, {"c": "off"}]}}),
)


def whole_text(value: Any) -> str:
    """What PyYAML makes of all at once, with OmegaConf's rule for quotes."""
    return plain_yaml.dump(value)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_as_of_the_whole(value: Any) -> None:
    """As a value at every depth, twice by the same maker; as a key where it can be one."""
    maker = YamlTexts()
    for whole in ({"k": value}, {"outer": {"k": value, "last": 1}}, {"a": {"b": {"c": value}}}, {"k": value}):
        assert maker.mapping(whole.items()) == whole_text(whole)
    if isinstance(value, str | bool):
        for whole in ({value: "v"}, {"outer": {value: {"inner": 1}}}):
            assert maker.mapping(whole.items()) == whole_text(whole)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_lists(depth: int) -> None:
    """Below keys as at the top, each string alone and all together."""
    for values in (*([each] for each in STRINGS), list(STRINGS), ["a=1", "b=2"]):
        whole: Any = values
        for _ in range(depth + 1 if depth else 0):
            whole = {"k": whole}
        expected = "".join(whole_text(whole).splitlines(keepends=True)[depth + 1 if depth else 0 :])
        assert list_text(values, depth) == expected


def test_what_jobs_share_is_dumped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand configurations that differ in a number cost the dumps of what they share."""
    dumped: list[Any] = []
    real = plain_yaml.dump
    monkeypatch.setattr(job_folders, "dump", lambda value: dumped.append(value) or real(value))
    shared, text = {"sizes": [1, 2, 4], "off": 1}, "more than one word"
    maker = YamlTexts()
    for number in range(1000):
        plain = {"kernel": {"shared": shared, "text": text, "number": number}, "name": f"job{number}"}
        made = maker.mapping(plain.items())
    assert len(dumped) == 3
    assert made == real(plain)
