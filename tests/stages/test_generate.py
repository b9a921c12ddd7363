"""generate: a spec in, the variants of one round out; by hand as in the workflow."""

from pathlib import Path

import msgspec
import pytest

from pipeline.records.configuration.kernel import Constraint, Implementation, Tensor, Tunable
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.pruning import Prune, Scale
from pipeline.records.configuration.search_settings import Search, Stop
from pipeline.records.errors import StoreError
from pipeline.records.layout import output_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import Build, GenerateSpec
from pipeline.records.provenance import Provenance
from pipeline.records.record import read_record, to_json
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord, StaticFacts
from pipeline.records.results.profiled import ProfileOutput
from pipeline.records.results.variant import Generated
from pipeline.records.results.verified import VerifyOutput, VerifyRecord
from pipeline.records.search.written_source import Author, Proposal, SourceRecord
from pipeline.search.strategy import Strategy, WriterContext
from pipeline.search.trial_history import read_history
from pipeline.stages.generate import generate, main

IMPLEMENTATION = Implementation(
    backend="cpp",
    source="kernels/toy/toy.cpp",
    entry="toy",
    tunables={
        "LANES": Tunable(values=(1, 8), default=8),
        "STREAM": Tunable(values=(False, True), default=False),
    },
    constraints=(Constraint(rule="LANES > 1 or not STREAM", reason="streaming needs vectors"),),
    origin="",
    licence="",
)
SPEC = GenerateSpec(
    kernel="toy",
    implementations={"cpp": IMPLEMENTATION},
    source_digests={"cpp": "0" * 20},
    problem=Problem(
        kernel="toy",
        dimensions={"rows": 4},
        tensors={"x": Tensor(role="input", shape=("rows",), dtype="float32")},
        scalars={},
        attributes={"epilogue": "none"},
        element="float32",
    ),
    limits={},
    optimization=Optimization(name="", description=""),
    search=Search(name="", description="", strategy="grid"),
    build=Build(code="c", toolchain={}),
)
PROVENANCE = Provenance(created="2025-03-04T10:20:30+00:00", host="h", toolchain={}, code="c", git=None)
COMPILED = Compiled(
    artifact="kernel.so",
    artifact_digest="0" * 20,
    functions=("toy",),
    facts=StaticFacts(code_bytes=100),
    files=("kernel.so",),
)


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    """The spec where the plan writes it."""
    path = tmp_path / "plan" / "generate" / "toy-123.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(to_json(SPEC))
    return path


def test_from_files_to_a_file(spec_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Variants, what was pruned and why, the size of the space; one line for the terminal."""
    out = spec_file.parent / "out" / "round0.json"
    assert main(["--spec", str(spec_file), "--history", "--round", "0", "--out", str(out)]) == 0
    generated = read_record(out, Generated)
    assert generated.key == "toy-123"
    assert [variant.tunables for variant in generated.variants] == [
        {"LANES": 1, "STREAM": False},
        {"LANES": 8, "STREAM": False},
        {"LANES": 8, "STREAM": True},
    ]
    assert {variant.attributes["epilogue"] for variant in generated.variants} == {"none"}
    assert [(pruned.reason, pruned.count) for pruned in generated.pruned] == [("streaming needs vectors", 1)]
    assert generated.space == {"cpp": 4}
    assert capsys.readouterr().err.startswith("generate toy: 3 variants of a space of 4 · ")


def test_rounds_read_their_history(spec_file: Path, tmp_path: Path) -> None:
    """A later round takes the outputs of all earlier ones, and proposes something else."""
    search = msgspec.structs.replace(SPEC.search, rounds=2, variants_per_round=2)
    spec_file.write_bytes(to_json(msgspec.structs.replace(SPEC, search=search)))
    generated = tmp_path / "round0.json"
    proposed = []
    for number in range(2):
        out = tmp_path / f"round{number}.json"
        given = round_files(read_record(generated, Generated), tmp_path) if number else []
        arguments = ["--spec", str(spec_file), "--history", *given, "--round", str(number), "--out", str(out)]
        assert main(arguments) == 0
        proposed.append({variant.id for variant in read_record(out, Generated).variants})
    assert [len(each) for each in proposed] == [2, 1]
    assert not proposed[0] & proposed[1]


def round_files(generated: Generated, folder: Path) -> list[str]:
    """What the stages write of a round in which the first variant does not compile, the others are wrong."""
    compiled, verified = [], []
    for number, variant in enumerate(generated.variants):
        common = {"variant": variant, "entry": "e", "seconds": 2.0, "provenance": PROVENANCE}
        failure = Failure(outcome=Outcome.COMPILE_ERROR, reason="no such header")
        compiled.append(CompileRecord(result=COMPILED if number else failure, **common))
        if number:
            wrong = Failure(outcome=Outcome.WRONG_VALUE, reason="got 1, expected 2")
            verified.append(VerifyRecord(result=wrong, where="cpu", checks=(), shapes=(), seeds=(), **common))
    outputs = (
        CompileOutput(key="toy-1", round=0, records=tuple(compiled)),
        VerifyOutput(key="toy-2", round=0, records=tuple(verified)),
        ProfileOutput(key="toy-3", round=0, records=()),
    )
    paths = [folder / f"{type(output).__name__}.json" for output in outputs]
    for path, output in zip(paths, outputs, strict=True):
        path.write_bytes(to_json(output))
    return [str(path) for path in paths]


def test_what_bounds_are_held_against(spec_file: Path, tmp_path: Path) -> None:
    """Told only where the search prunes by the bound; here nothing was measured yet."""
    for prune, scale in ((None, None), (Prune(bound_over_best_at_most=1), Scale())):
        search = msgspec.structs.replace(SPEC.search, rounds=2, variants_per_round=2, prune=prune)
        spec_file.write_bytes(to_json(msgspec.structs.replace(SPEC, search=search)))
        out = tmp_path / "round0.json"
        arguments = ["--spec", str(spec_file), "--history", "--round", "0", "--out", str(out)]
        assert main(arguments) == 0
        assert read_record(out, Generated).scale == scale


def test_failures_are_history(tmp_path: Path) -> None:
    """A trial says at which stage a variant ended, why, and what evaluating it took."""
    made = generate(SPEC, [], key="toy-123", round_number=0, store=tmp_path)
    first, second, _ = read_history([Path(path) for path in round_files(made, tmp_path)])
    assert (first.stage, first.outcome, first.reason) == ("compile", Outcome.COMPILE_ERROR, "no such header")
    assert (second.stage, second.outcome, second.spent) == ("verify", Outcome.WRONG_VALUE, 4.0)
    assert second.facts == COMPILED.facts
    assert (first.seconds, first.screened, first.samples, first.facts) == (None, None, (), None)


def test_a_history_of_two_files(tmp_path: Path) -> None:
    """A round without its verdicts is no history."""
    with pytest.raises(StoreError, match="compile, verify and profile of each earlier round, got 2 files"):
        read_history([tmp_path / "a.json", tmp_path / "b.json"])


def test_a_spent_budget_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], spec_file: Path) -> None:
    """The round proposes nothing, records why, and says so; nothing fails."""
    search = msgspec.structs.replace(SPEC.search, rounds=2, variants_per_round=2, variants=2)
    spec_file.write_bytes(to_json(msgspec.structs.replace(SPEC, search=search)))
    first = generate(
        msgspec.structs.replace(SPEC, search=search), [], key="toy-123", round_number=0, store=tmp_path
    )
    out = tmp_path / "round1.json"
    history = round_files(first, tmp_path)
    arguments = ["--spec", str(spec_file), "--history", *history, "--round", "1", "--out", str(out)]
    assert main([*arguments, "--root", str(tmp_path)]) == 0
    generated = read_record(out, Generated)
    assert generated.variants == ()
    assert generated.stop == Stop(kind="variants", reason="the budget of 2 variants is spent")
    assert capsys.readouterr().err.endswith(
        "generate toy, round 1: nothing: the budget of 2 variants is spent\n"
    )


def test_writers_know_who_wrote_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The authors of all earlier rounds reach a strategy that writes; a round whose file is gone has none."""
    record = SourceRecord(
        entry="e", implementation="cpp", author=Author(writer="mutate", name="unroll=2"), parents=("p",)
    )
    earlier = Generated(key="k", round=1, variants=(), pruned=(), space={}, records=(record,))
    path = output_path(tmp_path, "generate", "k", 1)
    path.parent.mkdir(parents=True)
    path.write_bytes(to_json(earlier))
    seen: list[WriterContext] = []

    def writes(*arguments: object) -> list[Proposal]:
        seen.extend(each for each in arguments if isinstance(each, WriterContext))
        return []

    written = Strategy(description="", write=writes)
    monkeypatch.setattr("pipeline.stages.generate.strategy", lambda _: written)
    search = Search(name="", description="", strategy="mutate", rounds=3, variants_per_round=2)
    generate(msgspec.structs.replace(SPEC, search=search), [], key="k", round_number=2, store=tmp_path)
    (shop,) = seen
    assert (shop.records, shop.attempts) == ((record,), ((), ()))


def test_ids_do_not_depend_on_the_rest_of_the_space() -> None:
    """A variant is itself, whatever else is proposed."""
    more = msgspec.structs.replace(IMPLEMENTATION.tunables["LANES"], values=(1, 8, 16))
    tunables = {**IMPLEMENTATION.tunables, "LANES": more}
    larger = msgspec.structs.replace(
        SPEC, implementations={"cpp": msgspec.structs.replace(IMPLEMENTATION, tunables=tunables)}
    )
    few, many = (
        {variant.id for variant in generate(spec, [], key="k", round_number=0).variants}
        for spec in (SPEC, larger)
    )
    assert few < many


def test_a_spec_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line and exit code 1."""
    path = tmp_path / "broken.json"
    path.write_text("{")
    assert main(["--spec", str(path), "--out", str(tmp_path / "o.json")]) == 1
    assert capsys.readouterr().err.startswith(f"error: {path}: cannot be read as GenerateSpec")
