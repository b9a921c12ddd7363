"""Overrides are read as Hydra reads them, also those that are read by putting a number into another one."""

import itertools

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from pipeline.plan.config import overrides
from pipeline.plan.config.overrides import read_override
from pipeline.records.errors import ConfigError

KEYS = (
    "kernel",
    "a.b",
    "+a.b",
    "++a.b.0",
    "~a.b",
    "a@b",
    "a/b@c.d",
    "a.$b",
    "a b",
    "3",
    "",
    "+",
    "a..b",
    "-a",
)
VALUES = (
    *("0", "7", "-7", "+7", "-0", "007", "1_000", "1__0", "9" * 18, "9" * 19, "9" * 30, "0x10", " 7", "7 "),
    *("1.5", "-1.5", "+0.25", "1.", ".5", "00.5", "1.5e3", "1.5E-3", "1e3", "1.5e", "1.5.2", "1.50", "1_0.5"),
    *(
        "1.5e308",
        "1.5e999",
        "-0.0",
        "1,2",
        "[1]",
        "{a:1}",
        "a",
        "true",
        "null",
        "nan",
        "1=2",
        "'7'",
        "",
        "７",
    ),
)


@pytest.fixture(params=[True, False], ids=["copied", "parsed"])
def _copying(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overrides that are copied, and the fallback for other versions of Hydra."""
    monkeypatch.setattr(overrides, "can_copy_overrides", lambda: request.param)
    read_override.cache_clear()


@pytest.mark.usefixtures("_copying")
@pytest.mark.parametrize("key", KEYS)
def test_as_hydra_reads_it(key: str) -> None:
    """Equal in every field, and of the same types; what Hydra refuses is refused."""
    for value, equal in itertools.product(VALUES, ("=", "")):
        line = f"{key}{equal}{value}"
        try:
            expected = OverridesParser.create().parse_override(line)
        except HydraException:
            with pytest.raises(ConfigError, match="not an override"):
                read_override(line)
        else:
            assert repr(read_override(line)) == repr(expected)


def test_numbers_are_read_by_hydra_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep over a thousand numbers asks Hydra's parser once for its key."""
    asked: list[str] = []
    real = OverridesParser.parse_override

    def counted(parser: OverridesParser, line: str) -> object:
        asked.append(line)
        return real(parser, line)

    monkeypatch.setattr(OverridesParser, "parse_override", counted)
    values = [read_override(f"a.key.of.this.test={number}").value() for number in range(1000)]
    assert values == list(range(1000))
    assert asked == ["a.key.of.this.test=0"]


def test_each_text_is_read_once() -> None:
    """Jobs say the same often."""
    assert read_override("kernel=softmax") is read_override("kernel=softmax")
