"""compile: parallel, cached per variant, and nobody else's problem when one variant takes its worker down."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch  # noqa: F401  (a stage process has it before it forks)
import yaml

from pipeline.backends.backend import CompileJob
from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import Implementation, Tensor
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import Build, CompileSpec
from pipeline.records.record import digest_bytes, read_record, to_json
from pipeline.records.results.compiled import Compiled, CompileOutput, StaticFacts
from pipeline.records.results.variant import Generated, Variant
from pipeline.sandbox.processes import machine_resources
from pipeline.stages import compile as stage
from tests.paths import ROOT

PROBLEM = Problem(
    kernel="double",
    dimensions={"rows": 4},
    tensors={"x": Tensor(role="input", shape=("rows",)), "y": Tensor(role="output", shape=("rows",))},
    scalars={},
    attributes={},
    element="float32",
)
SPEC = CompileSpec(
    parent="generate-0",
    problem=PROBLEM,
    implementations={
        "fake": Implementation(backend="fake", source="x", entry="x", origin="test", licence="none")
    },
    target=Target(kind="cpu", architecture="native", limits={}),
    builds={"fake": Build(code="0", toolchain={"fake": "1"})},
)


class Fake:
    """A backend whose tunable decides how the compiler ends."""

    kinds = frozenset({"cpu"})
    shape_matters = False
    preload = ()

    def opens_driver(self) -> bool:
        """It has none."""
        return False

    def share(self, job: CompileJob, root: Path) -> None:
        """Say that it was asked, where there is something to share."""
        if job.shared is not None:
            Path(job.shared).mkdir(exist_ok=True)
            (Path(job.shared) / "asked").touch()

    def compile(self, job: CompileJob, root: Path, folder: Path) -> Compiled | Failure:
        """Compile, refuse, crash or raise."""
        match job.variant.tunables["END"]:
            case "refuse":
                return Failure(outcome=Outcome.COMPILE_ERROR, reason="refused")
            case "crash":
                os.abort()
            case "raise":
                raise KeyError("a bug")
        (folder / "kernel.so").write_text(f"binary {os.getpid()}")
        (folder / "shared.txt").write_text(str(job.shared and (Path(job.shared) / "asked").exists()))
        facts = StaticFacts(code_bytes=6)
        artifact = digest_bytes(b"binary")
        return Compiled(
            artifact="kernel.so",
            artifact_digest=artifact,
            functions=("x",),
            facts=facts,
            files=("kernel.so",),
        )


@pytest.fixture(autouse=True)
def _fake_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "backend", lambda _: Fake())


def variant(end: str) -> Variant:
    """A variant that ends so."""
    return Variant(
        kernel="double",
        implementation="fake",
        backend="fake",
        source_digest="0",
        attributes={},
        tunables={"END": end},
    )


def run(folder: Path, *ends: str, spec: CompileSpec = SPEC) -> tuple[int, CompileOutput | None]:
    """Run the stage on variants with these ends."""
    variants = tuple(variant(end) for end in ends)
    generated = Generated(key="generate-0", round=0, variants=variants, pruned=(), space={})
    (folder / "spec.json").write_bytes(to_json(spec))
    (folder / "variants.json").write_bytes(to_json(generated))
    out = folder / "out.json"
    arguments = {
        "--spec": "spec.json",
        "--variants": "variants.json",
        "--out": "out.json",
        "--root": "artifacts",
    }
    code = stage.main([part for key, value in arguments.items() for part in (key, str(folder / value))])
    return code, read_record(out, CompileOutput) if out.exists() else None


def outcomes(output: CompileOutput | None) -> dict[str, str]:
    """How each variant ended."""
    assert output is not None
    return {
        str(record.variant.tunables["END"]): record.result.outcome.value
        if isinstance(record.result, Failure)
        else "passed"
        for record in output.records
    }


def test_each_variant_has_its_own_end(tmp_path: Path) -> None:
    """A refusal and a crash are data; the others compile all the same."""
    code, output = run(tmp_path, "a", "crash", "refuse", "b", "c")
    assert code == 0
    assert outcomes(output) == {
        "a": "passed",
        "crash": "crashed",
        "refuse": "compile_error",
        "b": "passed",
        "c": "passed",
    }


def test_a_crash_keeps_its_log(tmp_path: Path) -> None:
    """What took the worker down can be read beside the record."""
    _, output = run(tmp_path, "crash")
    assert output is not None
    (record,) = output.records
    assert isinstance(record.result, Failure)
    assert "SIGABRT" in record.result.reason
    assert record.result.log is not None
    assert (entry_path(tmp_path / "artifacts", "compile", record.entry) / record.result.log).is_file()


def test_finished_variants_are_not_compiled_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second run takes what the first one made, and says so."""
    _, first = run(tmp_path, "a", "b")
    _, second = run(tmp_path, "a", "b", "c")
    assert first is not None and second is not None
    assert second.records[:2] == first.records
    assert "(2 cached)" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    "changed",
    [
        {"target": Target(kind="cpu", architecture="other", limits={})},
        {"builds": {"fake": Build(code="1", toolchain={"fake": "1"})}},
        {"builds": {"fake": Build(code="0", toolchain={"fake": "2"})}},
        {
            "implementations": {
                "fake": Implementation(backend="fake", source="x", entry="y", origin="", licence="")
            }
        },
    ],
    ids=["target", "code", "toolchain", "entry"],
)
def test_what_the_compiler_sees_is_the_identity(changed: dict) -> None:
    """Each part that decides the artifact decides the entry."""
    import msgspec

    other = msgspec.structs.replace(SPEC, **changed)
    assert stage.entry_digest(other, variant("a")) != stage.entry_digest(SPEC, variant("a"))


def test_dimensions_matter_where_the_backend_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ahead-of-time compiler shares one artifact among workloads, a just-in-time one does not."""
    import msgspec

    other = msgspec.structs.replace(SPEC, problem=PROBLEM.with_dimensions({"rows": 5}))
    assert stage.entry_digest(other, variant("a")) == stage.entry_digest(SPEC, variant("a"))
    monkeypatch.setattr(Fake, "shape_matters", True)
    assert stage.entry_digest(other, variant("a")) != stage.entry_digest(SPEC, variant("a"))


def test_a_bug_stops_the_job(tmp_path: Path) -> None:
    """An exception in a backend is not recorded as this variant's outcome."""
    with pytest.raises(stage.WorkerBug, match="a bug"):
        run(tmp_path, "a", "raise")


def test_missing_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that is not there is named."""
    arguments = ["--spec", str(tmp_path / "no.json"), "--variants", "x", "--out", "y"]
    assert stage.main(arguments) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'no.json'}: cannot be read as CompileSpec")


@pytest.mark.slow
def test_settings_of_the_shell_do_not_matter(tmp_path: Path) -> None:
    """Who has TRITON_INTERPRET set, as one does while debugging, compiles all the same."""
    source = "kernels/softmax/softmax_triton.py"
    implementation = Implementation(
        backend="triton", source=source, entry="launch", origin="this project", licence="Apache-2.0"
    )
    tensors = {name: Tensor(role=role, shape=("rows", "cols"), dtype="float32")
               for name, role in (("x", "input"), ("y", "output"))}  # fmt: skip
    problem = msgspec.structs.replace(
        PROBLEM, kernel="softmax", dimensions={"rows": 64, "cols": 256}, tensors=tensors
    )
    tunables = {"algorithm": "single", "ROWS": 1, "BLOCK": 1024, "num_warps": 4, "num_stages": 1}
    chosen = msgspec.structs.replace(
        variant("x"), kernel="softmax", implementation="triton", backend="triton", tunables=tunables
    )
    declared = yaml.safe_load((ROOT / "conf/hardware/h200.yaml").read_text())
    limits = {name: int(limit["value"]) for name, limit in declared["limits"].items()}
    spec = CompileSpec(
        parent="generate-0",
        problem=problem,
        implementations={"triton": implementation},
        target=Target(kind="cuda", architecture="sm_90", limits=limits),
        builds={"triton": Build(code="0", toolchain={})},
    )
    (tmp_path / "spec.json").write_bytes(to_json(spec))
    generated = Generated(key="g", round=0, variants=(chosen,), pruned=(), space={})
    (tmp_path / "variants.json").write_bytes(to_json(generated))
    paths = [f"--{name}={tmp_path / name}.json" for name in ("spec", "variants", "out")]
    command = [sys.executable, "-m", "pipeline.stages.compile", *paths, f"--root={tmp_path}"]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "TRITON_ALWAYS_COMPILE": "1"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    (record,) = read_record(tmp_path / "out.json", CompileOutput).records
    assert isinstance(record.result, Compiled), record.result


def test_a_kill_from_outside_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was killed once is not the variant's fault; one that is killed each time is recorded."""
    ends = iter(["SIGKILL", "fine"])
    compile_once = stage.WorkerDriver.compile

    def killed_first(driver: stage.WorkerDriver, job: object, sources: Path, folder: Path) -> stage._Done:
        if next(ends) == "fine":
            return compile_once(driver, job, sources, folder)
        (folder / "log.txt").write_text("half a file")
        failure = Failure(
            outcome=Outcome.CRASHED, reason="the compiler did not finish: SIGKILL", log="log.txt"
        )
        return stage._Done(result=failure, seconds=0.1)

    monkeypatch.setattr(stage.WorkerDriver, "compile", killed_first)
    _, output = run(tmp_path, "a")
    assert outcomes(output) == {"a": "passed"}
    ends = iter(["SIGKILL", "SIGKILL"])
    _, output = run(tmp_path, "b")
    assert outcomes(output) == {"b": "crashed"}


def test_a_full_disk_is_no_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job stops with a line that says what to do, and nothing is stored."""
    failure = Failure(
        outcome=Outcome.COMPILE_ERROR, reason="error writing to /tmp/x.s: No space left on device"
    )
    monkeypatch.setattr(stage.WorkerDriver, "compile", lambda *_: stage._Done(result=failure, seconds=0.1))
    monkeypatch.setattr(machine_resources, "ROOM", 1 << 62)
    code, output = run(tmp_path, "a")
    assert (code, output) == (1, None)
    assert "free space and run again" in capsys.readouterr().err
    assert not list((tmp_path / "artifacts").glob("store/compile/*/*"))


@pytest.mark.parametrize(("count", "said"), [(stage.SHARED_FROM - 1, "None"), (stage.SHARED_FROM, "True")])
def test_many_variants_share(tmp_path: Path, count: int, said: str) -> None:
    """Where there are many, the backend is asked to make what they share, before each of them."""
    _, output = run(tmp_path, *map(str, range(count)))
    assert output is not None
    entries = [tmp_path / "artifacts" / "store" / "compile" / each.entry[:2] for each in output.records]
    found = [path.read_text() for folder in set(entries) for path in folder.rglob("shared.txt")]
    assert found == [said] * count
