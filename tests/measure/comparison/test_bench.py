"""The bench: whose process is started when, where its log goes, and that none is left over."""

from pathlib import Path
from typing import Self

import msgspec
import pytest

from pipeline.backends.backend import CompileJob
from pipeline.backends.devices.device_ceilings import DeviceCeilings
from pipeline.measure.ceilings import ceiling_measurement
from pipeline.measure.ceilings.roofline_share import WorkPerCall
from pipeline.measure.comparison import bench as module
from pipeline.measure.comparison.bench import Bench, uncounted
from pipeline.measure.comparison.bench_task import kernel_task
from pipeline.measure.hosting.measuring_messages import Candidate, HostedModel, SetUp
from pipeline.measure.hosting.process_handle import MemberGone, Place
from pipeline.records.configuration.hardware import Target
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import Compiled, StaticFacts
from pipeline.records.results.variant import Variant
from tests.measure.stand_ins import DEVICE
from tests.stages.test_profile import IMPLEMENTATION, SPEC, TARGET

WORK = WorkPerCall(flops=1.0, read=1.0, written=1.0, unit="flop", dtype="float32", tensor_bytes=1)


class Server:
    """No process."""

    def __init__(self, preload: tuple[str, ...]) -> None: ...

    def close(self) -> None:
        """Nothing is there."""


class Process:
    """A member without a process: when it started and stopped is written down."""

    events: list[str]

    def __init__(self, name: str, server: Server, set_up: SetUp, place: Place) -> None:
        assert isinstance(set_up.hosted, Candidate)
        self.name = Path(set_up.hosted.folder).name
        self.log = place.log
        self.events.append(f"start {self.name}")

    def stop(self) -> None:
        """Written down."""
        self.events.append(f"stop {self.name}")


class Script:
    """In place of the timing: every candidate says its name, is timed, and refuses."""

    def __init__(self, events: list[str]) -> None:
        self.events = events

    @classmethod
    def installed(cls, monkeypatch: pytest.MonkeyPatch) -> Self:
        """It, in the bench's hands."""
        script = cls([])
        monkeypatch.setattr(Process, "events", script.events, raising=False)
        monkeypatch.setattr(module, "ForkServer", Server)
        monkeypatch.setattr(module, "Member", Process)
        monkeypatch.setattr(module.candidate_runner, "measure", script.measure)
        return script

    def measure(self, start, baselines, settings, kind, timed):
        """Start, time, say so, stop."""
        process = start()
        self.events.append(f"time {process.name}")
        process.log.write_text(f"I am {process.name}")
        timed()
        process.stop()
        raise MemberGone("candidate", Outcome.LAUNCH_ERROR, "refused")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """What the bench did."""
    return Script.installed(monkeypatch)


def candidate(name: str) -> Candidate:
    """One variant."""
    variant = Variant(
        kernel="twice", implementation="cpp", backend="cpp", source_digest="0", attributes={}, tunables={}
    )
    facts = StaticFacts(code_bytes=1)
    return Candidate(
        job=CompileJob(variant=variant, implementation=IMPLEMENTATION, problem=SPEC.problem, target=TARGET),
        compiled=Compiled(artifact="a", artifact_digest="0", functions=("f",), facts=facts, files=("a",)),
        root="",
        folder=f"/store/{name}",
    )


def profile(bench: Bench, name: str, folder: Path, upcoming: str | None = None) -> str:
    """Measure one into a folder of its own; its log."""
    place = folder / name
    place.mkdir()
    result = bench.profile(candidate(name), place, None if upcoming is None else candidate(upcoming))
    assert isinstance(result, Failure)
    assert result.log is not None
    return (place / result.log).read_text()


def test_the_next_starts_while_the_last_ends(script: Script, tmp_path: Path) -> None:
    """Nothing starts before all is timed; each has its own log; the process that waits is used."""
    with Bench(kernel_task(SPEC, WORK, {}), tmp_path, tmp_path) as bench:
        logs = [profile(bench, *turn) for turn in (("a", tmp_path, "b"), ("b", tmp_path))]
    assert script.events == ["start a", "time a", "start b", "stop a", "time b", "stop b"]
    assert logs == ["I am a", "I am b"]


def test_no_process_is_left_over(script: Script, tmp_path: Path) -> None:
    """One that waits is ended where another candidate comes, and where none comes any more."""
    with Bench(kernel_task(SPEC, WORK, {}), tmp_path, tmp_path) as bench:
        profile(bench, "a", tmp_path, "b")
        profile(bench, "c", tmp_path, "d")
    expected = ["start a", "time a", "start b", "stop a", "stop b", "start c", "time c", "start d", "stop c"]
    assert script.events == [*expected, "stop d"]


def test_one_that_waited_long_is_replaced(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run may hold the device for minutes; the time limit of a process that waits is running."""
    monkeypatch.setattr(module, "AHEAD_SECONDS", -1.0)
    with Bench(kernel_task(SPEC, WORK, {}), tmp_path, tmp_path) as bench:
        profile(bench, "a", tmp_path, "b")
        profile(bench, "b", tmp_path)
    assert script.events[2:] == ["start b", "stop a", "stop b", "start b", "time b", "stop b"]


def test_nothing_is_started_ahead_on_a_gpu(script: Script, tmp_path: Path) -> None:
    """Two processes would hold their tensors at once, and profilers want the device alone."""
    target = Target(kind="cuda", architecture="sm_90", limits={})
    with Bench(
        kernel_task(msgspec.structs.replace(SPEC, target=target), WORK, {}), tmp_path, tmp_path
    ) as bench:
        profile(bench, "a", tmp_path, "b")
    assert script.events == ["start a", "time a", "stop a"]


def test_only_ceilings_that_count(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the matrix products the one of the task's dtype: the others may take longer than all variants."""
    asked: list[tuple[str, ...]] = []

    def measured(
        server: Server, device: ceiling_measurement.CeilingsDevice, products: tuple[str, ...]
    ) -> DeviceCeilings:
        asked.append((device.kind, device.cache.name, *products))
        return DEVICE

    monkeypatch.setattr(ceiling_measurement, "measured", measured)
    settings = msgspec.structs.replace(SPEC.settings, baselines=())
    spec = msgspec.structs.replace(SPEC, settings=settings)
    work = msgspec.structs.replace(WORK, dtype="float16")
    with Bench(kernel_task(spec, work, {}), tmp_path, tmp_path) as bench:
        bench.prepare()
    assert asked == [("cpu", "ceilings", "float16")]


@pytest.mark.parametrize(
    ("sizes", "outcome", "expected"),
    [
        ({}, Outcome.LAUNCH_ERROR, "no estimated bound, as the operators of Model are not counted: why"),
        (
            {"channels": 33, "width": 65},
            Outcome.LAUNCH_ERROR,
            "sizes that the problem does not declare, channels=33 width=65, are not tried, "
            "as Model refuses them: why",
        ),
        (
            {"channels": 33},
            Outcome.TIMEOUT,
            "sizes that the problem does not declare, channels=33, are not tried, "
            "as Model cannot be called on them: why",
        ),
    ],
)
def test_what_it_means_that_model_cannot_be_called(
    sizes: dict[str, int], outcome: Outcome, expected: str
) -> None:
    """On other sizes it is no error: they are left out."""
    gone = MemberGone("operators", outcome, "ProblemError: why")
    assert uncounted(HostedModel(problem="problem.py", sizes=sizes, seed=0), gone) == expected
