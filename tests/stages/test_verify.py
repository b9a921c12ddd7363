"""The verify stage: right kernels pass, each wrong one ends as its outcome, and verdicts are kept."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import Constraint, Implementation
from pipeline.records.configuration.pruning import Bounded, Prune, Reach, Scale
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import Build, VerifySpec
from pipeline.records.record import from_plain, read_record, to_json
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord, StaticFacts
from pipeline.records.results.verified import Verified, VerifyOutput, VerifyRecord
from pipeline.stages import verify
from tests.selection import selected, slow_unless
from tests.verify.harness.build import (
    IMPLEMENTATION,
    PROBLEM,
    PROVENANCE,
    SETTINGS,
    TOLERANCE,
    compile_source,
    spec,
    variant,
)
from tests.verify.harness.softmax_sources import RIGHT, WRONG, source

QUICK = msgspec.structs.replace(SETTINGS, distributions=("normal", "large"), edge_shapes=2)
IMPATIENT = msgspec.structs.replace(SETTINGS, time_limit=2.0)
H200 = Target(kind="cuda", architecture="sm_90", limits={"warp_size": 32})
TRITON = Implementation(
    backend="triton",
    source="kernels/softmax/softmax_triton.py",
    entry="launch",
    origin="this project",
    licence="Apache-2.0",
)


def main_in_new_process(arguments: list[str]) -> int:
    """The stage in a process that has not imported Triton, to compile with it, as another test may have."""
    command = [sys.executable, "-m", "pipeline.stages.verify", *arguments]
    return subprocess.run(command, check=False, timeout=120).returncode


def run(
    spec: VerifySpec,
    compiled: list[CompileRecord],
    root: Path,
    *,
    workers: int = 2,
    main: Callable[[list[str]], int] = verify.main,
) -> tuple[VerifyRecord, ...]:
    """Call the stage as its command line does; its records."""
    return round_of(spec, compiled, root, workers=workers, main=main).records


def round_of(
    spec: VerifySpec,
    compiled: list[CompileRecord],
    root: Path,
    *,
    workers: int = 2,
    main: Callable[[list[str]], int] = verify.main,
    scale: Scale | None = None,
) -> VerifyOutput:
    """The same; all that it wrote."""
    files = {"--spec": root / "spec.json", "--compiled": root / "compiled.json", "--out": root / "out.json"}
    files["--spec"].write_bytes(to_json(spec))
    files["--compiled"].write_bytes(
        to_json(CompileOutput(key="c", round=3, records=tuple(compiled), scale=scale))
    )
    arguments = [str(part) for pair in files.items() for part in pair]
    assert main([*arguments, "--root", str(root), "--workers", str(workers)]) == 0
    output = read_record(files["--out"], VerifyOutput)
    assert (output.key, output.round) == ("spec", 3)
    return output


FEW = {
    *("drops_tail", "hides_nan", "input_mutated", "writes_past_the_end", "works_only_once"),
    *("random_last_bits", "segfault", "endless", "allocates_without_end", "prints_without_end"),
    *("leaves_a_thread", "writes_a_file"),
}
"""One at least for each outcome."""


@pytest.fixture(scope="module")
def verdicts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[VerifyRecord, Path]]:
    """The sources of the selected tests judged in one job, but for the one that has to be waited for.

    Each with its folder.
    """
    root, wanted = tmp_path_factory.mktemp("verify"), selected(request, "name") | {"endless"}
    every = RIGHT | {name: text for name, (_, text) in WRONG.items()}
    sources = {name: text for name, text in every.items() if name in wanted}
    with ThreadPoolExecutor(2) as pool:
        compiled = dict(
            zip(sources, pool.map(lambda text: compile_source(text, root), sources.values()), strict=True)
        )
    endless = run(spec(settings=IMPATIENT), [compiled.pop("endless")], root)
    records = zip([*compiled, "endless"], run(spec(), list(compiled.values()), root) + endless, strict=True)
    return {name: (record, entry_path(root, "verify", record.entry)) for name, record in records}


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_pass(verdicts: dict[str, tuple[VerifyRecord, Path]], name: str) -> None:
    """A right kernel passes every check within its bound, on all shapes."""
    record, folder = verdicts[name]
    assert isinstance(record.result, Verified), record.result
    assert 0 < record.result.worst_share <= 1
    assert record.result.weak == ()
    assert any(case.startswith("ones: rows=1 cols=1") for case in record.result.weak_cases)
    # Races are sought in kernels that use OpenMP, which these do not; nobody watches native code's memory.
    assert {check.check for check in record.checks if check.cases == 0} <= {"memory", "races"}
    assert record.where == "cpu"
    assert len(record.shapes) == 9
    assert len(record.seeds) == 1
    assert {"no new privileges", "undumpable"} <= set(record.isolation) or sys.platform != "linux"
    assert record.result.differing == 0 < record.result.compared
    assert read_record(folder / "record.json", VerifyRecord) == record
    assert (folder / "log.txt").is_file() == (name == "talkative")


@pytest.mark.parametrize("name", slow_unless(FEW.__contains__, WRONG))
def test_wrong_kernels_end_as_their_outcome(
    verdicts: dict[str, tuple[VerifyRecord, Path]], name: str
) -> None:
    """Each way to be wrong has its own outcome, and a reason in one line that names the inputs."""
    record, folder = verdicts[name]
    assert isinstance(record.result, Failure), f"{name} passed"
    assert record.result.outcome == WRONG[name][0], record.result.reason
    assert "rows=" in record.result.reason
    assert "\n" not in record.result.reason
    log = folder / str(record.result.log)
    assert log.stat().st_size <= SETTINGS.output_limit + 1000  # and the last line, which is the judge's
    last = log.read_text(errors="replace").splitlines()[-1]
    assert last == f"verify: {record.result.outcome}: {record.result.reason}"


@pytest.mark.parametrize("name", ["prints_without_end"])
def test_log_of_a_crash(verdicts: dict[str, tuple[VerifyRecord, Path]], name: str) -> None:
    """What a candidate printed before it was stopped is kept."""
    record, folder = verdicts[name]
    assert isinstance(record.result, Failure)
    assert (folder / str(record.result.log)).read_text().startswith("0123456789")


def test_pruned_by_the_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be faster than what an earlier round measured is not judged, and the output says why."""
    reach = Reach(bandwidth=1e9, vector_flops=1e9, matrix_flops=1e9)
    work = Bounded(flops=1e6, bytes=1e6, read=5e5, unit="vector", dtype="float32", peaks={})
    prune = Prune(bound_over_best_at_most=1, measured_anyway=0)
    one = compile_source(source(), tmp_path)
    output = round_of(
        spec(settings=QUICK, prune=prune, bounded=work),
        [one],
        tmp_path,
        scale=Scale(seconds=1e-4, reach=reach),
    )
    reason = "least time estimated at 1 ms, 10 times the best measured so far, search.prune allows 1"
    (record,) = output.records
    assert record.result == Failure(outcome=Outcome.PRUNED, reason=reason)
    assert output.unwanted == {one.variant.id: reason}
    output = round_of(spec(settings=QUICK, prune=prune, bounded=work), [one], tmp_path, scale=Scale())
    (record,) = output.records
    assert isinstance(record.result, Verified)
    assert list(output.undecided) == [one.variant.id]
    assert "verify softmax: 1 not pruned by the bound: the target declares no peak" in capsys.readouterr().err


def test_verdicts_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second run judges nothing; one more variant is judged alone; the line says so."""
    one = compile_source(source(), tmp_path)
    first = run(spec(settings=QUICK), [one], tmp_path)
    assert run(spec(settings=QUICK), [one], tmp_path) == first
    other = compile_source(source("y[0] += 0;"), tmp_path)
    assert run(spec(settings=QUICK), [one, other], tmp_path)[0] == first[0]
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" · ")[0] for line in lines] == [
        "verify softmax for x86_64 on cpu: 1 variant: 1 passed",
        "verify softmax for x86_64 on cpu: 1 variant: 1 passed (1 cached)",
        "verify softmax for x86_64 on cpu: 2 variants: 2 passed (1 cached)",
    ]


def test_what_makes_a_verdict_new(tmp_path: Path) -> None:
    """All that it depends on, and not the preset's name or the parent."""
    compiled = compile_source(source(), tmp_path)

    def entry(spec: VerifySpec, compiled: CompileRecord = compiled) -> str:
        return verify.plan_of(spec, compiled).entry

    def changed(**fields: object) -> Verify:
        return msgspec.structs.replace(SETTINGS, **fields)

    same = [spec(parent="other"), spec(settings=changed(name="n", description="d"))]
    assert {entry(one) for one in same} == {entry(spec())}
    rebuilt = msgspec.structs.replace(
        compiled, result=msgspec.structs.replace(compiled.result, artifact_digest="other")
    )
    others = [
        entry(spec(), rebuilt),
        entry(spec(settings=changed(seeds=2))),
        entry(spec(reference_digest="other")),
        entry(spec(tolerance=msgspec.structs.replace(TOLERANCE, factor=2.0))),
        entry(spec(deterministic=False)),
        entry(spec(special_values=False)),
        entry(spec(problem=PROBLEM.with_dimensions({"rows": 63}))),
        entry(spec(builds={"cpp": Build(code="other", toolchain={})})),
        entry(spec(target=H200, device_present=False)),
    ]
    assert len({entry(spec()), *others}) == len(others) + 1


def test_failures_of_compile_are_left_out(tmp_path: Path) -> None:
    """What did not compile is not judged; nothing to judge is fine."""
    broken = CompileRecord(
        variant=variant("x"),
        entry="e",
        result=Failure(outcome=Outcome.COMPILE_ERROR, reason="no"),
        seconds=0.0,
        provenance=PROVENANCE,
    )
    assert run(spec(), [broken], tmp_path) == ()


@pytest.mark.slow
def test_legitimate_nondeterminism(tmp_path: Path) -> None:
    """Last bits may change where the kernel does not claim otherwise; garbage may not."""
    last_bits, garbage = (
        compile_source(WRONG[name][1], tmp_path) for name in ("random_last_bits", "random_garbage")
    )
    records = run(spec(deterministic=False, settings=QUICK), [last_bits, garbage], tmp_path)
    assert isinstance(records[0].result, Verified)
    assert 0 < records[0].result.differing < records[0].result.compared
    assert isinstance(records[1].result, Failure)


@pytest.mark.slow
def test_weak_tasks_say_so(tmp_path: Path) -> None:
    """Where the bound is so wide that zeros would pass, the verdict names them."""
    wide = spec(settings=QUICK, tolerance=msgspec.structs.replace(TOLERANCE, factor=1e12))
    (record,) = run(wide, [compile_source(source(), tmp_path)], tmp_path)
    assert isinstance(record.result, Verified)
    assert "zeros" in record.result.weak


@pytest.mark.slow
def test_special_values_that_are_not_claimed(tmp_path: Path) -> None:
    """A kernel that does not promise NaN is not tried on it."""
    hides_nan = compile_source(WRONG["hides_nan"][1], tmp_path)
    (record,) = run(spec(special_values=False), [hides_nan], tmp_path)
    assert isinstance(record.result, Verified), record.result


def test_shapes_outside_of_the_constraints_are_not_tried(tmp_path: Path) -> None:
    """A variant is judged on what it promises."""
    constrained = msgspec.structs.replace(
        IMPLEMENTATION, constraints=(Constraint(rule="cols % 8 == 0", reason="vectors"),)
    )
    compiled = compile_source(WRONG["drops_tail"][1], tmp_path)
    (record,) = run(spec(implementations={"cpp": constrained}), [compiled], tmp_path)
    assert isinstance(record.result, Verified), record.result
    assert all(shape["cols"] % 8 == 0 for shape in record.shapes)


def triton_record() -> CompileRecord:
    """As compile leaves it; the interpreter needs the source only."""
    compiled = Compiled(
        artifact="kernel.cubin",
        artifact_digest="digest",
        functions=("softmax_single",),
        facts=StaticFacts(code_bytes=1),
        files=(),
    )
    tunables = {"algorithm": "online", "ROWS": 4, "BLOCK": 64, "num_warps": 4, "num_stages": 1}
    return CompileRecord(
        variant=variant("triton", implementation="triton", backend="triton", tunables=tunables),
        entry="entry",
        result=compiled,
        seconds=0.0,
        provenance=PROVENANCE,
    )


def test_absent_device_means_interpreter(tmp_path: Path) -> None:
    """Triton for an absent GPU is interpreted on reduced shapes, and the record says so; targets share it."""
    implementations = {"triton": TRITON}
    there = spec(target=H200, device_present=False, settings=QUICK, implementations=implementations)
    (record,) = run(there, [triton_record()], tmp_path, main=main_in_new_process)
    assert isinstance(record.result, Verified), record.result
    assert record.where == "interpreter"
    assert record.shapes[0] == {"rows": 32, "cols": 64}
    other = msgspec.structs.replace(there, target=Target(kind="hip", architecture="gfx942", limits={}))
    assert run(other, [triton_record()], tmp_path, main=main_in_new_process) == (record,)


def test_backend_without_interpreter(tmp_path: Path) -> None:
    """Nothing is faked: without device and interpreter there is no verdict."""
    compiled = compile_source(source(), tmp_path)
    (record,) = run(spec(target=H200, device_present=False), [compiled], tmp_path)
    assert isinstance(record.result, Failure)
    assert record.result.outcome == "device_unavailable"
    assert record.result.reason == "no cuda device here, and the backend cpp has no interpreter"
    assert record.checks == ()


def test_broken_files_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A spec that cannot be read ends with exit code 1 and a line that names it."""
    (tmp_path / "spec.json").write_text("{}")
    paths = [f"--{name}={tmp_path / name}.json" for name in ("spec", "compiled", "out")]
    assert verify.main(paths) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/spec.json: cannot be read as VerifySpec")


@pytest.mark.slow
def test_runs_alone(tmp_path: Path) -> None:
    """`python -m pipeline.stages.verify` needs files only."""
    (tmp_path / "spec.json").write_bytes(to_json(spec(settings=QUICK)))
    compiled = CompileOutput(key="c", round=0, records=(compile_source(source(), tmp_path),))
    (tmp_path / "compiled.json").write_bytes(to_json(compiled))
    paths = [f"--{name}={tmp_path / name}.json" for name in ("spec", "compiled", "out")]
    command = [sys.executable, "-m", "pipeline.stages.verify", *paths, f"--root={tmp_path}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("verify softmax for x86_64 on cpu: 1 variant: 1 passed · ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": 0},
        {"distributions": []},
        {"distributions": ["special"]},
        {"distributions": ["normal", "special"]},
        {"distributions": ["integers", "normal"]},
        {"distributions": ["ties", "small"]},
        {"distributions": ["normal", "anything"]},
        {"edge_shapes": 0},
        {"inputs_per_shape": 0},
        {"elements_at_most": 1},
        {"interpreter_elements_at_most": 0},
        {"repetitions": 1},
        {"elsewhere": "never"},
        {"protect": "never"},
        {"settle_seconds": 0.0},
        {"settle_seconds": float("nan")},
        {"time_limit": 0.0},
        {"memory_limit": 0},
        {"output_limit": 0},
        {"declared_seconds": 0.0},
        {"mixed_precision": "perhaps"},
        {"tf32_products": "perhaps"},
        {"strict_strides": "perhaps"},
        {"strict_inputs": "perhaps"},
        {"own_work": "perhaps"},
        {"editing_only": "perhaps"},
        {"thread_counts": [1]},
    ],
    ids=str,
)
def test_no_preset_passes_everything(change: dict[str, object]) -> None:
    """Settings that would judge nothing cannot be written down; the line names the field."""
    plain = json.loads(to_json(SETTINGS))
    from_plain(plain, Verify)
    with pytest.raises(msgspec.ValidationError) as refused:
        from_plain(plain | change, Verify)
    (field,) = change
    assert field in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_setting_is_guarded() -> None:
    """Who adds a setting also says below which value it would judge nothing."""
    mark = next(m for m in test_no_preset_passes_everything.pytestmark if m.name == "parametrize")
    tried = {field for change in mark.args[1] for field in change}
    assert tried == set(Verify.__struct_fields__) - {"name", "description"}


@pytest.mark.parametrize(
    ("change", "name"),
    slow_unless(
        lambda case: (case[1] == "zeros") != ("edge_shapes" in case[0]),
        [
            (change, name)
            for change in ({"edge_shapes": 1}, {"distributions": ("normal", "small")})
            for name in ("zeros", "works_only_once", "writes_an_input_and_restores_it")
        ],
    ),
)
def test_the_weakest_preset_still_finds(tmp_path: Path, name: str, change: dict) -> None:
    """At the lowest values that can be written down, wrong kernels are found all the same."""
    weakest = msgspec.structs.replace(
        SETTINGS,
        **(
            {
                "distributions": ("normal", "ties"),
                "inputs_per_shape": 1,
                "elements_at_most": 64,
                "repetitions": 2,
            }
            | {"interpreter_elements_at_most": 64, "settle_seconds": 0.001, "edge_shapes": 1}
            | change
        ),
    )
    (record,) = run(spec(settings=weakest), [compile_source(WRONG[name][1], tmp_path)], tmp_path)
    assert isinstance(record.result, Failure)
    assert record.result.outcome == WRONG[name][0]
