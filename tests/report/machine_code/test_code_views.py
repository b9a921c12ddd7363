"""Which variants a view of machine code shows."""

import msgspec
import pytest

from pipeline.records.errors import ConfigError, StoreError
from pipeline.report.machine_code.code_views import matching, one, stored


@pytest.fixture(scope="module")
def results(code_root):
    """Everything in the store."""
    return stored(code_root)


def test_by_selection(results):
    """Words narrow down; a truth value is written as in a yaml, letters may be small or capital."""
    found = one(results, ["kernel=matmul", "hardware=h200", "default=true"])
    assert (found.task.hardware, found.variant.tunables["num_stages"]) == ("h200", 1)
    assert one(results, ["architecture=SM_100"]).task.hardware == "b200"


def test_by_id_and_by_folder(results):
    """The beginning of the id with a target, or the path that the table `variants` has."""
    expected = one(results, ["hardware=h200", "num_stages=3"])
    assert one(results, [expected.id[:8]]) == expected
    folder = expected.folder("compile")
    assert one(results, [folder]) == one(results, [f"artifacts/{folder}/"]) == expected


def test_all_that_fit(results):
    """A report takes one for each target."""
    found = matching(results, ["implementation=triton", "default=true"])
    assert len(found) == 7


def test_ambiguous_names_what_tells_them_apart(results):
    """One line: how many, and the keys in which they differ with their values."""
    with pytest.raises(
        ConfigError,
        match=r"^hardware=h200: 3 variants; add one of default \(false, true\); num_stages \(1, 3, 9\)$",
    ):
        one(results, ["hardware=h200"])


def test_unknown_value_lists_those_that_are(results):
    """Of what the earlier words left."""
    with pytest.raises(ConfigError, match=r"^num_stages=7: no such variant \(there is 1, 3, 9\)$"):
        one(results, ["hardware=h200", "num_stages=7"])
    with pytest.raises(ConfigError, match=r"^hardware=h20: no such variant \(there is h200, h100, a100"):
        one(results, ["hardware=h20"])


def test_unknown_key_lists_the_known_ones(results):
    """Columns and tunables."""
    with pytest.raises(
        ConfigError,
        match=r"^num_stage=1: unknown key 'num_stage'; did you mean 'num_stages'\? \(known: kernel, .*num_st",
    ):
        one(results, ["num_stage=1"])


def test_unknown_id_lists_ids(results):
    """So that one can be copied."""
    with pytest.raises(ConfigError, match=r"^zzz: no such variant \(by id; there are [0-9a-f]{20}, "):
        one(results, ["zzz"])


def test_failed_variant_says_why(results):
    """There is no machine code to show."""
    with pytest.raises(ConfigError, match=r"launch_error: shared memory: got 2, sm_90 has 1$"):
        one(results, ["hardware=h200", "num_stages=9"])


def test_the_newest_build_counts(results):
    """After an edit of the source, the old build's record is still there."""
    old = one(results, ["hardware=a100"])
    record = old.compile
    newer = msgspec.structs.replace(
        old,
        compile=msgspec.structs.replace(
            record,
            entry="f" * 20,
            provenance=msgspec.structs.replace(record.provenance, created="2027-01-01T00:00:00+00:00"),
        ),
    )
    assert one([newer, *results], ["hardware=a100"]) == newer
    assert one([*results, newer], ["hardware=a100"]) == newer
    assert one([*results, newer], [record.entry]) == old


def test_nothing_compiled(tmp_path):
    """The next command is in the text."""
    with pytest.raises(StoreError, match=r"nothing was compiled yet: kernelmill run does$"):
        stored(tmp_path)
