"""Short calls are launched as a graph; others, and what cannot be recorded, call by call."""

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace

import msgspec
import pytest

from pipeline.backends.devices.device import CannotRecord, RecordedCall
from pipeline.backends.devices.device_registry import device
from pipeline.measure.hosting import measuring_process
from pipeline.measure.hosting.hosted_callable import Hosted
from pipeline.measure.hosting.input_content import Content
from pipeline.measure.hosting.measuring_messages import (
    Answer,
    Calibrate,
    Calibrated,
    CallAgain,
    Load,
    Loaded,
    Refused,
    Unchanged,
)
from pipeline.records.configuration.stage_settings import GraphUse
from pipeline.records.results.profiled import Peak
from tests.measure.problems import set_up

LAUNCH = 10e-6  # seconds of the host


@dataclasses.dataclass
class Gpu:
    """A device on which each call takes so many seconds, and its clock."""

    seconds: float
    recordable: bool = True
    several: Callable[[], object] | None = None
    """What a graph of seven does in place of that."""
    is_host = False
    has_graphs = True
    torch_device = "cpu"

    def measurement(self) -> SimpleNamespace:
        """Itself."""
        return SimpleNamespace(timer=lambda **_: self, peak_memory=self._once)

    def batch(self, call: Callable[[], object], calls: int) -> float:
        """As a GPU: calls that are shorter than their launches wait for these."""
        call()
        launched = LAUNCH
        if isinstance(call, RecordedCall):
            assert calls % call.calls == 0 or calls == 1
            launched = 0.0
        return calls * max(self.seconds, launched)

    straight = batch

    def recorded(self, call: Callable[[], object]) -> Callable[[], object]:
        """The graph, and one of seven calls."""
        if not self.recordable:
            raise CannotRecord("no")
        return RecordedCall(call, self.several or call, 7)

    def host_seconds(self, call: Callable[[], object], calls: int) -> float:
        """Of a launch."""
        return LAUNCH

    def settle(self, call: Callable[[], object], seconds: float) -> None:
        """Nothing drifts."""

    def prepare(self) -> None:
        """Nothing to do."""

    def facts(self) -> dict[str, str]:
        """None."""
        return {}

    def allocate(self, *arguments: object) -> object:
        """The host's memory."""
        return device("cpu").allocate(*arguments)  # type: ignore[arg-type]

    def _once(self, call: Callable[[], object]) -> Peak:
        call()
        return Peak()


def calibrated(gpu: Gpu, use: GraphUse, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """What the measuring process finds."""
    return hosted(gpu, use, monkeypatch)[1]


def hosted(gpu: Gpu, use: GraphUse, monkeypatch: pytest.MonkeyPatch) -> tuple[measuring_process.Host, Answer]:
    """The measuring process, and what it answered."""
    monkeypatch.setattr(measuring_process, "device", lambda _: gpu)
    host = measuring_process.Host(msgspec.structs.replace(set_up("plain"), cuda_graph=use))
    assert isinstance(host.obey(Load(seed=1)), Loaded)
    command = Calibrate(warmup_seconds=0.0, warmup_seconds_at_most=0.1, batch_seconds=0.001, straight=False)
    return host, host.obey(command)


@pytest.mark.parametrize(
    ("seconds", "use", "launch", "found"),
    [
        (3e-6, "short_calls", "graph", 3e-6),
        (3e-6, "never", "stream", LAUNCH),
        (300e-6, "short_calls", "stream", 300e-6),
        (300e-6, "always", "graph", 300e-6),
    ],
)
def test_how_calls_are_launched(
    seconds: float, use: GraphUse, launch: str, found: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a short call is its own, and the cost of its launch is reported with it."""
    answer = calibrated(Gpu(seconds), use, monkeypatch)
    assert isinstance(answer, Calibrated)
    assert answer.launch == launch
    assert answer.call_seconds == pytest.approx(found)
    assert launch == "stream" or answer.calls % 7 == 0
    assert answer.host_seconds == LAUNCH


def test_what_cannot_be_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is launched call by call, unless a graph was asked for."""
    answer = calibrated(Gpu(3e-6, recordable=False), "short_calls", monkeypatch)
    assert isinstance(answer, Calibrated)
    assert answer.launch == "stream"
    assert isinstance(calibrated(Gpu(3e-6, recordable=False), "always", monkeypatch), Refused)


@pytest.mark.parametrize("several", [None, lambda: None])
def test_what_a_graph_computes_is_compared(
    several: Callable[[], object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call may do less while it is recorded."""

    def load(_: object, content: Content, __: object) -> Hosted:
        def call() -> None:
            for output in content.outputs().values():
                output.fill_(1.0)

        return Hosted(bind=lambda: call, host=None, checked=lambda: call)

    monkeypatch.setattr(measuring_process, "load", load)
    host, answer = hosted(Gpu(3e-6, several=several), "always", monkeypatch)
    assert isinstance(answer, Calibrated)
    last = host.obey(CallAgain())
    assert isinstance(last, Unchanged if several is None else Refused), last
