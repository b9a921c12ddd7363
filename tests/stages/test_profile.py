"""profile: what verified is measured and kept, what fails while timed is that variant's outcome alone."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.backend import CompileJob
from pipeline.backends.cpp import Cpp
from pipeline.measure.ceilings.roofline_share import work_of
from pipeline.measure.measurement_identity import entry_digest
from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import Constraint, Cost, Implementation, Tensor
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import Build, ProfileSpec
from pipeline.records.provenance import Provenance
from pipeline.records.record import digest, read_record, to_json
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord
from pipeline.records.results.profiled import Profiled, ProfileOutput, ProfileRecord
from pipeline.records.results.variant import Variant
from pipeline.records.results.verified import Verified, VerifyOutput, VerifyRecord
from tests.measure.clean import THIS_CPU, call
from tests.measure.problems import settings

pytestmark = pytest.mark.alone

RIGHT, CRASHES, REFUSES, IDLE, HANGS, HALF, LATER_HALF, CLOCK = range(8)
NEAR = 0.6
"""Share of the roofline of whose double nobody doubts that it is too much."""
PROVENANCE = Provenance(created="", host="", toolchain={}, code="")
SHAPE = ("rows", "cols")
TARGET = Target(kind="cpu", architecture="native", limits={})
IMPLEMENTATION = Implementation(
    backend="cpp", source="tests/stages/twice.cpp", entry="twice", origin="test", licence="none"
)
SPEC = ProfileSpec(
    parent="verify-0",
    problem=Problem(
        kernel="twice",
        dimensions={"rows": 2048, "cols": 1024},
        tensors={
            "x": Tensor(role="input", shape=SHAPE, dtype="float32"),
            "y": Tensor(role="output", shape=SHAPE, dtype="float32"),
        },
        scalars={},
        attributes={},
        element="float32",
    ),
    implementations={"cpp": IMPLEMENTATION},
    reference="tests.measure.callables:twice",
    reference_digest="0",
    cost=Cost(flops="rows * cols", bytes="2 * rows * cols * itemsize"),
    target=TARGET,
    device_present=True,
    device=THIS_CPU,
    settings=settings(time_limit=5.0, seconds_per_variant=0.5),
    builds={"cpp": Build(code="0", toolchain={"c++": "1"})},
)


class Desk:
    """The stage's input files, and its command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "artifacts"
        self.compiled: list[CompileRecord] = []
        self.verified: list[VerifyRecord] = []

    def add(self, behaviour: int, result: Verified | Failure | None = None) -> CompileRecord:
        """Compile one variant; it passed verification unless something else is said."""
        variant = Variant(
            kernel="twice", implementation="cpp", backend="cpp", source_digest="0", attributes={},
            tunables={"BEHAVIOUR": behaviour},
        )  # fmt: skip
        entry = digest(["compile", behaviour])
        place = entry_path(self.root, "compile", entry)
        place.mkdir(parents=True)
        job = CompileJob(variant=variant, implementation=IMPLEMENTATION, problem=SPEC.problem, target=TARGET)
        made = Cpp().compile(job, Path.cwd(), place)
        assert isinstance(made, Compiled)
        record = CompileRecord(variant=variant, entry=entry, result=made, seconds=0.1, provenance=PROVENANCE)
        self.compiled.append(record)
        self.verified.append(
            VerifyRecord(
                variant=variant, entry=entry, result=result or Verified(worst_share=0.1, worst_error=0.0),
                where="cpu", checks=(), shapes=(), seeds=(), seconds=0.1, provenance=PROVENANCE,
            )
        )  # fmt: skip
        return record

    def arguments(self, spec: ProfileSpec = SPEC) -> list[str]:
        """Write the files; returns the command line."""
        files = {
            "spec": spec,
            "verified": VerifyOutput(key="v", round=0, records=tuple(self.verified)),
            "compiled": CompileOutput(key="c", round=0, records=tuple(self.compiled)),
        }
        line = ["--root", str(self.root), "--out", str(self.folder / "out.json")]
        for name, record in files.items():
            path = self.folder / f"{name}.json"
            path.write_bytes(to_json(record))
            line += [f"--{name}", str(path)]
        return line

    def run(self, spec: ProfileSpec = SPEC) -> tuple[ProfileRecord, ...]:
        """Run the stage, again if the machine was too busy; its line of result is left in `log.txt`.

        `unstable_timing` is a statement about the machine: the next run measures such a variant again
        and takes the others from the store, as when a user repeats the command.
        """
        for _ in range(4):
            (self.folder / "log.txt").unlink(missing_ok=True)
            assert call("pipeline.stages.profile:main", self.folder / "log.txt", self.arguments(spec)) == 0
            records = read_record(self.folder / "out.json", ProfileOutput).records
            if not any(_unstable(record) for record in records):
                break
        return records

    @property
    def said(self) -> str:
        """What the stage printed."""
        return (self.folder / "log.txt").read_text()


def _unstable(record: ProfileRecord) -> bool:
    """Whether the machine was too busy for this measurement."""
    return isinstance(record.result, Failure) and record.result.outcome is Outcome.UNSTABLE_TIMING


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Nothing compiled yet."""
    return Desk(tmp_path)


def test_bytes_of_the_tensors() -> None:
    """What a formula is compared with: inputs and outputs as declared, integers and booleans as well."""
    assert work_of(SPEC).tensor_bytes == work_of(SPEC).bytes == 2 * 2048 * 1024 * 4
    more = SPEC.problem.tensors | {
        "index": Tensor(role="input", shape=("rows",), dtype="int64"),
        "mask": Tensor(role="input", shape=("rows",), dtype="bool"),
        "half": Tensor(role="output", shape=("cols",), dtype="bfloat16"),
    }
    problem = msgspec.structs.replace(SPEC.problem, tensors=more, order=())
    held = work_of(msgspec.structs.replace(SPEC, problem=problem)).tensor_bytes
    assert held == 2 * 2048 * 1024 * 4 + 2048 * 8 + 2048 + 1024 * 2


def test_type_of_the_products() -> None:
    """Products of 8 bits are faster than those of the workload's type, which is no reason for doubt."""
    assert work_of(SPEC).dtype == SPEC.problem.element
    cost = msgspec.structs.replace(SPEC.cost, products="int8")
    assert work_of(msgspec.structs.replace(SPEC, cost=cost)).dtype == "int8"


def test_measured_once(desk: Desk) -> None:
    """A verified variant is measured against its baseline, placed under the roofline, and kept."""
    desk.add(RIGHT)
    (record,) = desk.run()
    result = record.result
    assert isinstance(result, Profiled)
    assert len(result.timing.samples) >= 5
    assert [comparison.baseline for comparison in result.comparisons] == ["eager"]
    assert result.bytes == 2 * 2048 * 1024 * 4
    assert 0 < result.roofline_share <= 1.1
    assert result.bound == "memory"
    assert result.device["threads"]
    assert (entry_path(desk.root, "profile", record.entry) / "rounds.json").is_file()
    assert "profile twice on native: 1 variant: 1 passed ·" in desk.said
    assert desk.run() == (record,)
    assert "1 passed (1 cached)" in desk.said


@pytest.mark.slow
def test_a_smaller_shape_is_no_result(desk: Desk) -> None:
    """It is measured as the problem that it is, kept under a key of its own, and shown as what it is."""
    desk.add(RIGHT)
    desk.add(IDLE)
    small = {"rows": 128, "cols": 1024}
    rules = (Constraint(rule=f"rows > 128 or BEHAVIOUR == {RIGHT}", reason="long tiles"),)
    declared = {"cpp": msgspec.structs.replace(IMPLEMENTATION, constraints=rules)}
    spec = msgspec.structs.replace(SPEC, screening=(0.2,), shapes=(small,), implementations=declared)
    brief, refused = desk.run(spec)
    assert brief.screening is not None and brief.screening.dimensions == small
    assert isinstance(brief.result, Failure) and brief.result.outcome is Outcome.SCREENED
    assert brief.result.reason.endswith("% of a full measurement) on a smaller shape: rows=128 cols=1024")
    assert refused.result == Failure(
        outcome=Outcome.PRUNED,
        reason="cannot be called on the smaller shape of this round (rows=128 cols=1024): "
        f"`rows > 128 or BEHAVIOUR == {RIGHT}`",
    )
    assert "profile twice on native, smaller shape rows=128 cols=1024: 2 variants" in desk.said
    kept = read_record(entry_path(desk.root, "profile", brief.entry) / "record.json", ProfileRecord)
    assert isinstance(kept.result, Profiled) and kept.result.bytes == 2 * 128 * 1024 * 4
    whole = msgspec.structs.replace(spec, shapes=())
    assert desk.run(whole)[0].entry != brief.entry


@pytest.mark.slow
def test_what_fails_while_timed(desk: Desk) -> None:
    """A crash, a refusal, a hang, work left out: each its own outcome; the variant after them is measured."""
    for behaviour in (CRASHES, REFUSES, IDLE, HANGS, RIGHT):
        desk.add(behaviour)
    crashed, refused, idle, hung, right = (record.result for record in desk.run())
    assert isinstance(crashed, Failure) and crashed.outcome is Outcome.CRASHED
    assert "SIGABRT" in crashed.reason
    assert isinstance(refused, Failure) and refused.outcome is Outcome.LAUNCH_ERROR
    assert "returned 7" in refused.reason
    assert isinstance(idle, Failure) and idle.outcome is Outcome.OVER_ROOFLINE
    assert "GB/s where the device reaches" in idle.reason
    assert isinstance(hung, Failure) and hung.outcome is Outcome.TIMEOUT
    assert isinstance(right, Profiled)


@pytest.mark.slow
def test_half_of_the_work(desk: Desk) -> None:
    """A kernel that computes half of the rows, and that a faulty gate let pass, is above the roofline.

    Only where the whole work comes near the ceiling: half of a slow kernel's time is a time that an honest
    one may have, which is why nothing is timed that did not verify.
    """
    for behaviour in (RIGHT, HALF):
        desk.add(behaviour)
    whole, half = (record.result for record in desk.run())
    assert isinstance(whole, Profiled)
    if whole.roofline_share < NEAR:
        pytest.skip(f"the whole work reached {whole.roofline_share:.0%} of the roofline: the machine is busy")
    assert isinstance(half, Failure) and half.outcome is Outcome.OVER_ROOFLINE, half
    assert "work left out" in half.reason
    assert "data that stay in caches" in half.reason
    assert "`cost.bytes` counts more" in half.reason


@pytest.mark.slow
def test_half_of_the_work_once_it_is_timed(desk: Desk) -> None:
    """A kernel that counts its calls verifies; so it is asked again after the timed ones."""
    for behaviour in (LATER_HALF, RIGHT):
        desk.add(behaviour)
    later, right = (record.result for record in desk.run())
    assert isinstance(later, Failure) and later.outcome is Outcome.NONDETERMINISTIC, later
    assert "1,048,576 of 2,097,152 elements of y otherwise" in later.reason
    assert isinstance(right, Profiled)


@pytest.mark.slow
def test_a_clock_that_is_patched_once_it_is_timed(desk: Desk) -> None:
    """Verified in a process in which nothing is timed; by too little for the account of CPU time to show."""
    for behaviour in (CLOCK, RIGHT):
        desk.add(behaviour)
    patched, right = (record.result for record in desk.run())
    assert isinstance(patched, Failure) and patched.outcome is Outcome.TAMPERED, patched
    assert patched.reason == "time.perf_counter_ns was replaced: it is timed with that"
    assert isinstance(right, Profiled)


def test_only_what_verified(desk: Desk) -> None:
    """No timing exists without a pass."""
    desk.add(RIGHT, Failure(outcome=Outcome.WRONG_VALUE, reason="wrong"))
    assert desk.run() == ()


def test_absent_device(desk: Desk) -> None:
    """Every verified variant says so, nothing is stored, and torch is not even imported."""
    desk.add(RIGHT)
    arguments = desk.arguments(msgspec.structs.replace(SPEC, device_present=False, device="absent"))
    code = (
        "import sys; from pipeline.stages.profile import main; code = main(sys.argv[1:]); "
        "sys.exit(code or 2 * ('torch' in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    (record,) = read_record(desk.folder / "out.json", ProfileOutput).records
    assert isinstance(record.result, Failure)
    assert record.result.outcome is Outcome.DEVICE_UNAVAILABLE
    assert "native" in record.result.reason
    assert not (desk.root / "store" / "profile").exists()


def test_unstable_is_tried_again(desk: Desk) -> None:
    """A measurement that something disturbed beyond use is not taken from the store."""
    compiled = desk.add(RIGHT)
    entry = entry_digest(SPEC, compiled, {})
    place = entry_path(desk.root, "profile", entry)
    place.mkdir(parents=True)
    unstable = Failure(outcome=Outcome.UNSTABLE_TIMING, reason="scatter")
    stored = ProfileRecord(
        variant=compiled.variant, entry=entry, result=unstable, seconds=1.0, provenance=PROVENANCE
    )
    (place / "record.json").write_bytes(to_json(stored))
    (record,) = desk.run()
    assert isinstance(record.result, Profiled)


def test_identity(desk: Desk) -> None:
    """What the figures depend on changes the entry; a preset's name does not."""
    compiled = desk.add(RIGHT)
    first = entry_digest(SPEC, compiled, {})
    renamed = msgspec.structs.replace(
        SPEC, settings=settings(time_limit=5.0, seconds_per_variant=0.5, name="other", description="x")
    )
    assert entry_digest(renamed, compiled, {}) == first
    changed = [
        msgspec.structs.replace(SPEC, **change)
        for change in (
            {"settings": settings(batch_seconds=0.5)},
            {"device": "another"},
            {"reference_digest": "1"},
            {"problem": SPEC.problem.with_dimensions({"rows": 1})},
            {"builds": {"cpp": Build(code="0", toolchain={"c++": "2"})}},
        )
    ]
    assert isinstance(compiled.result, Compiled)
    other = msgspec.structs.replace(compiled.result, artifact_digest="other")
    entries = {entry_digest(spec, compiled, {}) for spec in changed}
    entries.add(entry_digest(SPEC, msgspec.structs.replace(compiled, result=other), {}))
    assert len(entries | {first}) == len(changed) + 2
