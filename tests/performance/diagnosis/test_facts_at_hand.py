"""Nothing is found where nothing is known; real compilers' output is read right."""

import itertools
import typing

import msgspec
import pytest

from pipeline.performance.diagnosis import DIAGNOSES, diagnose
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import StaticFacts
from pipeline.records.results.diagnosed import Evidence, FindingCode, Suggestion
from pipeline.report.tables.facts_table import diagnoses_table
from tests.performance.bound_results import cpu_task, facts, profiled, result, task
from tests.performance.diagnosis.findings import declared

OPTIONAL = [
    name for name, kind in typing.get_type_hints(StaticFacts).items() if type(None) in typing.get_args(kind)
]


def test_no_facts_no_findings() -> None:
    """A binary of which only the size is known, on a target without peaks and limits."""
    bare = task(peaks={}, limits={}, read=None)
    for kind in ("cuda", "hip", "cpu"):
        row = msgspec.structs.replace(bare, kind=kind)
        assert diagnose(result(row, StaticFacts(code_bytes=1), grid=None), declared()) == ()
        assert diagnose(result(row, StaticFacts(code_bytes=1)), None) == ()


@pytest.mark.parametrize(
    "missing", [*itertools.combinations(OPTIONAL, 1), *itertools.combinations(OPTIONAL, 2)]
)
def test_a_missing_fact_adds_no_finding(missing: tuple[str, ...]) -> None:
    """Whatever is absent can only silence what rests on it."""
    bad = facts(
        spills=96, local_memory=96, occupancy_bound=0.05, occupancy_limiter="registers", resident_blocks=1,
        instructions={"fma": 9, "barrier": 9, "load_global_16": 9, "store_global_8": 9, "special": 9},
    )  # fmt: skip
    whole = {finding.code for finding in diagnose(result(found=bad, grid=(133,)), declared())}
    assert len(whole) >= 7
    less = msgspec.structs.replace(bad, **dict.fromkeys(missing))
    codes = {finding.code for finding in diagnose(result(found=less, grid=(133,)), declared())}
    assert codes <= whole


def test_what_did_not_compile_is_not_diagnosed() -> None:
    """Its failure says what is wrong."""
    good = result()
    assert good.compile is not None
    failure = Failure(outcome=Outcome.COMPILE_ERROR, reason="no")
    failed = msgspec.structs.replace(good, compile=msgspec.structs.replace(good.compile, result=failure))
    assert diagnose(failed, declared()) == ()


def test_the_table_is_what_the_findings_say() -> None:
    """Evidence and suggestions are JSON that reads back; a gain that is not known is null."""
    row = cpu_task()
    variant = result(row, facts(spills=8), measured=profiled(row, 0.04))
    rows = diagnoses_table([variant], {"g": declared()}).to_pylist()
    findings = diagnose(variant, declared())
    assert [each["code"] for each in rows] == [str(finding.code) for finding in findings]
    for each, finding in zip(rows, findings, strict=True):
        assert msgspec.json.decode(each["evidence"], type=tuple[Evidence, ...]) == finding.evidence
        assert msgspec.json.decode(each["suggestions"], type=tuple[Suggestion, ...]) == finding.suggestions
        assert each["estimate_gain_at_most"] == finding.gain_at_most
    assert any(each["estimate_gain_at_most"] is None for each in rows)


def test_every_code_has_a_diagnosis() -> None:
    """Each is made somewhere: a code that no module yields would be a promise."""
    import inspect

    sources = "".join(inspect.getsource(inspect.getmodule(each)) for each in DIAGNOSES.values())
    assert [code for code in FindingCode if f"FindingCode.{code.name}" not in sources] == []
