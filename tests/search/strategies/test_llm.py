"""The strategy llm: where it starts, what it proposes, and what its prompts learn from the earlier rounds."""

import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from pipeline.records.errors import AgentError, ConfigError, installation
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record, to_json
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord, StaticFacts
from pipeline.records.results.profiled import ProfileOutput
from pipeline.records.results.verified import VerifyOutput
from pipeline.records.search.written_source import Proposal, Unfit
from pipeline.search.proposed_variants import variants_of
from pipeline.search.spaces.search_space import space_of
from pipeline.search.strategies.llm import propose
from pipeline.search.strategy import Budget, WriterContext
from pipeline.search.trial_diagnosis import diagnosed
from tests.paths import ROOT
from tests.search.agents.making import agent, spec, text_of, trial, variant
from tests.search.agents.server import Reply, Script, code, serving

PLAIN = "tests/search/agents/sources/plain.cpp"


def workshop(made: GenerateSpec, store: Path) -> WriterContext:
    """In this repository."""
    return WriterContext(spec=made, repository=str(ROOT), store=str(store))


@pytest.fixture(autouse=True)
def package(request: pytest.FixtureRequest) -> None:
    """The extra `llm`; one test says what happens without it."""
    if "in_vain" not in request.node.name:
        pytest.importorskip("openai", reason="needs the extra llm: pip install 'kernelmill[llm]'")


def budget(number: int, made: GenerateSpec) -> Budget:
    """Two variants a round."""
    return Budget(round=number, rounds=3, variants=2, variants_per_round=2, seed=0, search=made.search)


def test_it_starts_from_the_declared_source(tmp_path: Path) -> None:
    """Its default, measured like any other variant."""
    made = spec(agent())
    (start,) = propose(space_of(made), [], budget(0, made), workshop(made, tmp_path))
    assert start == Proposal(implementation="cpp", tunables={"LANES": 8})


def test_it_starts_from_a_given_source(tmp_path: Path) -> None:
    """In the place of the declared one; the record says where it came from."""
    made = spec(agent(start=PLAIN))
    (start,) = propose(space_of(made), [], budget(0, made), workshop(made, tmp_path))
    assert isinstance(start, Proposal) and start.source is not None
    assert start.source.text == text_of("plain.cpp")
    assert start.source.author.name == PLAIN


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("key", r"^\$OPENAI_API_KEY is not set: export it, or say search.llm.key_variable=null where http"),
        ("package", f"^{re.escape('search=llm needs the package openai: ' + installation('llm'))}$"),
    ],
)
def test_nothing_is_measured_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, expected: str
) -> None:
    """What round 1 cannot do without is asked for in round 0; a search of one round asks nobody."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    installed = ModuleType("openai")
    installed.__spec__ = ModuleSpec("openai", None)
    monkeypatch.setitem(sys.modules, "openai", installed if missing == "key" else None)
    made = spec(agent(key_variable="OPENAI_API_KEY"))
    with pytest.raises(AgentError, match=expected):
        propose(space_of(made), [], budget(0, made), workshop(made, tmp_path))
    alone = msgspec.structs.replace(budget(0, made), rounds=1)
    assert len(propose(space_of(made), [], alone, workshop(made, tmp_path))) == 1


def test_attempts_with_and_without_a_source(tmp_path: Path) -> None:
    """A refusal is no variant, but told, with its attempt; a source is one, and knows its parent."""
    script = Script(coder=[code("once.cpp"), Reply(text="I'm sorry, but no.")])
    first = trial("declared", 300.0)
    first = msgspec.structs.replace(first, variant=msgspec.structs.replace(first.variant, written=False))
    with serving(script) as url:
        made = spec(agent(url))
        proposals = propose(space_of(made), [first], budget(1, made), workshop(made, tmp_path))
    written, refused = proposals
    assert isinstance(written, Proposal) and written.source is not None
    assert written.source.parents == (first.variant.id,)
    assert written.source.author.name == "scripted-scripted"
    assert isinstance(refused, Unfit)
    assert (refused.failure.outcome, refused.failure.reason) == (Outcome.NOT_WRITTEN, "refused: it refused")
    kept = variants_of(made, proposals, repository=ROOT, store=tmp_path)
    assert [attempt.variant for attempt in kept.attempts] == [kept.variants[0].id, None]
    assert kept.variants[0].written


def test_a_spec_of_another_strategy(tmp_path: Path) -> None:
    """One line that says where the settings stand."""
    made = msgspec.structs.replace(spec(agent()), brief=None)
    with pytest.raises(ConfigError, match="the plan was made for another strategy than llm"):
        propose(space_of(made), [], budget(0, made), workshop(made, tmp_path))


def test_the_history_is_diagnosed(tmp_path: Path) -> None:
    """A source without vector code on a device with vectors: the finding of the report, in the trial."""
    facts = StaticFacts(code_bytes=600, instructions={"all": 100, "scalar_float": 60, "load": 20})
    compiled = Compiled(
        artifact="kernel.so", artifact_digest="a", functions=("softmax",), facts=facts, files=("kernel.so",)
    )
    record = CompileRecord(
        variant=variant("plain"),
        entry="e",
        result=compiled,
        seconds=1.0,
        provenance=Provenance(created="2026-01-01T00:00:00+00:00", host="h", toolchain={}, code="c"),
    )
    outputs: list[Record] = [
        CompileOutput(key="k", round=0, records=(record,)),
        VerifyOutput(key="k", round=0, records=()),
        ProfileOutput(key="k", round=0, records=()),
    ]
    paths = [tmp_path / f"{number}.json" for number in range(3)]
    for path, output in zip(paths, outputs, strict=True):
        path.write_bytes(to_json(output))
    (found,) = diagnosed([trial("plain", 300.0)], paths, spec(agent()))
    assert "no_vectors" in {str(finding.code) for finding in found.diagnosis}
