"""kernelmill space show: files, our own spaces, and our results as T4."""

import re
import time
from pathlib import Path

import msgspec
import pytest

from pipeline.cli.main import main
from pipeline.execution import space_summary
from pipeline.interop.formats import kernelmill_results
from pipeline.interop.formats.format_registry import read_recorded
from pipeline.interop.formats.kernelmill_results import own_results
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import to_json
from pipeline.records.results.collection import Result, collect
from tests.interop.formats.files import CACHE, T1, written
from tests.interop.formats.recorded import recorded
from tests.paths import ROOT
from tests.report.sample_run import write_run


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints; it ends well."""
    assert main(["space", *(() if arguments[0] == "export" else ("show",)), *arguments]) == 0
    return capsys.readouterr().out


def test_a_t1_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its name, the product, the valid count, what each condition excludes."""
    text = shown(capsys, str(written(tmp_path, T1, "toy.json")))
    assert text.startswith("toy.json · T1 · vector_add · A100\n  problem      1,024 x 2\n")
    assert re.search(r"product +72\n +valid +48 ", text)
    assert re.search(r"rules +with .*\n +8  block \* unroll <= MAX_THREADS\n +16  lambda p: not p", text)
    assert "note         the default of algorithm" in text


@pytest.mark.parametrize(
    ("name", "product", "valid"),
    [
        ("convolution", "10,240", "4,362"),
        ("dedispersion", "22,272", "11,130"),
        ("gemm", "663,552", "116,928"),
        ("hotspot", "4,440,000", "82,984"),
    ],
)
def test_the_public_spaces(name: str, product: str, valid: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As published, each in well under ten seconds."""
    started = time.process_time()
    text = shown(capsys, str(recorded(f"{name}_milo.T1.json")))
    assert re.search(rf"product +{product}\n +valid +{valid} ", text)
    assert time.process_time() - started < 5


def test_results_and_what_they_cover(capsys: pytest.CaptureFixture[str]) -> None:
    """Device, failures by kind, best; with the T1 file beside it, how much of the space was measured."""
    files = "convolution_milo.T1.json", "convolution_milo_A100.json.gz"
    text = shown(capsys, *(str(recorded(name)) for name in files))
    assert "· cache · convolution_kernel · NVIDIA A100-PCIE-40GB\n" in text
    assert "results      4,362: 4,201 passed, 155 launch_error, 6 compile_error\n" in text
    assert "best         0.55360 ms, median of its samples 0.54989 ms: block_size_x=32 " in text
    assert text.rstrip().endswith("4,362 of 4,362 valid points have a result")


def test_another_objective(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether more is better is not known: both ends are shown."""
    entries = {str(block): {"block": block, "score": block / 4} for block in (1, 2)}
    content = {
        **CACHE,
        "tune_params_keys": ["block"],
        "tune_params": {},
        "objective": "score",
        "cache": entries,
    }
    text = shown(capsys, str(written(tmp_path, content)))
    assert "lowest       score 0.25: block=1\n  highest      score 0.5: block=2\n" in text


def test_our_own_spaces(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Overrides as for python -m pipeline; the reasons of the yaml stand beside the rules."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(space_summary, "ROOT", tmp_path)
    text = shown(capsys, "kernel=matmul", "workload=bert_base", "hardware=h100")
    assert "matmul.triton · bert_base · h100 · " in text
    assert "<= shared_memory_per_block  (the tiles in flight must fit shared memory)" in text


def test_a_condition_that_cannot_be_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the file, the place and the condition."""
    parameters = [{"Name": "a", "Type": "int", "Values": "[1, 2]"}]
    conditions = [{"Expression": "a % (a - 1) == 0", "Parameters": ["a"]}]
    content = {"ConfigurationSpace": {"TuningParameters": parameters, "Conditions": conditions}}
    file = written(tmp_path, content)
    assert main(["space", "show", str(file)]) == 1
    text = (
        f"error: {file}: ConfigurationSpace.Conditions: `a % (a - 1) == 0`: cannot be evaluated: division by"
    )
    assert capsys.readouterr().err.startswith(text)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["show", "missing.json"], 1, "error: missing.json: No such file or directory\n"),
        (
            ["show", "a.json", "kernel=a"],
            2,
            "error: expected files or overrides, got both: a.json kernel=a\n",
        ),
        (["export", "--root", "nowhere", "--out", "x"], 2, "error: nowhere: no results of an experiment"),
        (
            ["export", "--root", "nowhere", "--out", "x", "--experiment", "e"],
            2,
            "error: nowhere: no finished exp",
        ),
    ],
)
def test_errors(arguments: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line and the exit code."""
    assert main(["space", *arguments]) == code
    assert capsys.readouterr().err.startswith(text)


def test_our_results_as_t4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file for each task and implementation; what was not measured is left out, and said."""
    root, out = tmp_path / "artifacts", tmp_path / "t4"
    spec = write_run(root)
    (root / "plan" / "aggregate").mkdir(parents=True, exist_ok=True)
    (root / "plan" / "aggregate" / "made_up-123.json").write_bytes(to_json(spec))
    (root / "aggregate" / "made_up-123").mkdir(parents=True)
    (root / "aggregate" / "made_up-123" / "summary.json").write_text("{}")
    text = shown(capsys, "export", "--root", str(root), "--out", str(out), "--experiment", "made_up")
    spaces = [read_recorded(path) for path in sorted(out.glob("made_up-123/*_T4.json"))]
    empty = [line for line in text.splitlines() if line.startswith("no file: made_up-123/")]
    assert len(spaces) + len(empty) == len(text.splitlines()) > 10
    assert all(each.results for each in spaces)
    assert empty and all("left out: " in line for line in empty)
    assert "; left out: " in text
    outcomes = {result.outcome for each in spaces for result in each.results}
    assert {Outcome.PASSED, Outcome.CRASHED} <= outcomes
    assert Outcome.DEVICE_UNAVAILABLE not in outcomes
    measured = [result for each in spaces for result in each.results if result.outcome is Outcome.PASSED]
    assert all(result.samples and result.seconds and "GFLOP/s" in result.measurements for result in measured)
    assert main(["space", "export", "--root", str(root), "--out", str(out), "--experiment", "other"]) == 2
    assert "no finished experiment 'other' (known: made_up-123)" in capsys.readouterr().err
    (task, *_) = spec.tasks
    (root / "verify" / task.verify / "round0.json").unlink()
    assert main(["space", "export", "--root", str(root), "--out", str(out)]) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("left out: made_up-123: ")
    assert "no results of an experiment that ran to its end" in printed.err


def test_what_is_no_result_of_the_declared_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources that a search wrote would pass for the declared one, brief measurements for failures."""
    spec = write_run(tmp_path)
    found = collect(spec, tmp_path)
    number, first = next(
        (at, each) for at, each in enumerate(found.results) if each.profile and each.profiled
    )
    assert first.profile is not None
    written = msgspec.structs.replace(first, variant=msgspec.structs.replace(first.variant, written=True))
    brief = Failure(outcome=Outcome.SCREENED, reason="measured briefly")
    screened = Result(
        **{name: getattr(first, name) for name in ("task", "round", "variant", "id", "default")},
        **{name: getattr(first, name) for name in ("architecture", "features", "compile", "verify")},
        profile=msgspec.structs.replace(first.profile, result=brief),
    )
    before = {each.source: len(each.results) for each in own_results(spec, tmp_path)}
    for other, note in (
        (written, "1 variant with a source that a search wrote"),
        (screened, "not measured"),
    ):
        results = (*found.results[:number], other, *found.results[number + 1 :])
        changed = msgspec.structs.replace(found, results=results)
        monkeypatch.setattr(kernelmill_results, "collect", lambda *_, changed=changed: changed)
        spaces = list(own_results(spec, tmp_path))
        assert sum(len(each.results) for each in spaces) == sum(before.values()) - 1
        assert any(note in line for each in spaces for line in each.notes)


def test_tasks_with_equal_names_have_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep over tunables makes a task of each value."""
    spec = write_run(tmp_path)
    found = collect(spec, tmp_path)
    again = tuple(
        msgspec.structs.replace(each, task=msgspec.structs.replace(each.task, task=f"again{each.task.task}"))
        for each in found.results
    )
    twice = msgspec.structs.replace(found, results=(*found.results, *again))
    names = {each.source for each in own_results(spec, tmp_path)}
    monkeypatch.setattr(kernelmill_results, "collect", lambda *_: twice)
    sources = [each.source for each in own_results(spec, tmp_path)]
    assert len(set(sources)) == len(sources) == 2 * len(names)
