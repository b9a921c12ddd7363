"""The mutate stage: the gate kills what it should, survivors are named, and verdicts are kept."""

from pathlib import Path

import msgspec
import pytest

from pipeline.records.configuration.kernel import Tunable
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import MutateSpec, MutateTask
from pipeline.records.record import read_record, to_json
from pipeline.records.results.mutated import MutantRecord, MutateOutput, Mutation
from pipeline.stages import mutate
from pipeline.verify.mutation import mutant_generation
from pipeline.verify.mutation.cpp_operators import OPERATORS
from tests.verify.harness.build import IMPLEMENTATION, SETTINGS, spec

TUNABLES = {
    "LANES": Tunable(values=(8,), default=8),
    "UNROLL": Tunable(values=(1, 2), default=2),
    "ONLINE": Tunable(values=(False, True), default=False),
    "STREAM": Tunable(values=(False,), default=False),
}
SOFTMAX = msgspec.structs.replace(IMPLEMENTATION, tunables=TUNABLES)
QUICK = msgspec.structs.replace(SETTINGS, distributions=("normal", "large"), edge_shapes=3, time_limit=60.0)
WEAKER = msgspec.structs.replace(QUICK, name="weaker", distributions=("normal", "small"))


@pytest.fixture(autouse=True)
def _three_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is found, one that is not, one that does not apply."""
    chosen = {name: OPERATORS[name] for name in ("drop_maximum", "int32_overflow", "wrong_epsilon")}
    monkeypatch.setattr(mutant_generation, "OPERATORS", {"cpp": chosen})


def mutate_spec(**changes: object) -> MutateSpec:
    """One mutant of each operator of the softmax in C++."""
    verify = spec(implementations={"cpp": SOFTMAX}, settings=QUICK)
    fields: dict = {
        "kernel": "softmax",
        "implementation": "cpp",
        "source_digest": "s",
        "tasks": (MutateTask(space=SOFTMAX, limits={}, verify=verify),),
        "presets": (QUICK, WEAKER),
        "settings": Mutation(
            name="n",
            description="",
            report=False,
            per_operator=1,
            variants_at_most=3,
            presets=("test", "weaker"),
            time_limit=20.0,
        ),
    }
    return MutateSpec(**(fields | changes))


def run(what: MutateSpec, root: Path) -> MutateOutput:
    """Call the stage as its command line does."""
    path = root / "softmax-cpp-1.json"
    path.write_bytes(to_json(what))
    out = root / "out.json"
    assert mutate.main(["--spec", str(path), "--out", str(out), "--root", str(root), "--workers", "2"]) == 0
    return read_record(out, MutateOutput)


def by_operator(output: MutateOutput) -> dict[str, MutantRecord]:
    """The judged mutant of each operator."""
    return {each.mutant.operator: each for each in output.records if each.fate in ("killed", "survived")}


@pytest.mark.slow
def test_killed_survived_and_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Without its maximum softmax overflows; a 32-bit counter is right on all sizes that can be tried."""
    first = run(mutate_spec(), tmp_path)
    assert "mutate softmax cpp: 1/2 killed by test" in capfd.readouterr().err
    assert first.sites["drop_maximum"] == 5
    assert first.sites["wrong_epsilon"] == 0
    assert first.unjudged == ()
    found = by_operator(first)
    killed = found["drop_maximum"].presets["test"]
    assert (found["drop_maximum"].fate, killed.outcome) == ("killed", Outcome.WRONG_VALUE)
    assert killed.tunables is not None
    assert found["int32_overflow"].fate == "survived"
    assert not found["int32_overflow"].presets["weaker"].killed
    again = run(mutate_spec(), tmp_path)
    assert again.records == first.records
    assert "(" in capfd.readouterr().err


@pytest.mark.slow
def test_a_kernel_that_does_not_pass_has_no_score(tmp_path: Path) -> None:
    """Its mutants would be rejected for nothing that they did."""
    task = mutate_spec().tasks[0]
    wrong = msgspec.structs.replace(task.verify, reference="kernels.softmax.reference:magnitude")
    output = run(mutate_spec(tasks=(msgspec.structs.replace(task, verify=wrong),)), tmp_path)
    assert output.records == ()
    assert len(output.unjudged) == 3
    assert all("expected" in text for text in output.unjudged)
