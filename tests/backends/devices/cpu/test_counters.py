"""Counters of the processor: this kernel's for real, and other kernels' as they answer."""

import errno
import mmap
import os
import threading
import time
from pathlib import Path

import pytest

from pipeline.backends.devices.cpu import counters
from pipeline.backends.devices.cpu.counters import EVENTS, Event, LinuxPerf, Reading, count
from pipeline.records.results.profiled import Counters, Unmeasured

LABELS = [event.label for events in EVENTS for event in events]


class Recorded:
    """A kernel that counts what a test says, or refuses with an error."""

    def __init__(self, answers: dict[str, Reading | int]) -> None:
        self._answers = answers
        self.open_now: dict[int, Event] = {}
        self.running = False
        self.most = 0

    def open(self, event: Event, thread: int) -> int:
        """A number that was not given before, or the error."""
        answer = self._answers.get(event.label, errno.ENOENT)
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        descriptor = 100 + len(self.open_now)
        self.open_now[descriptor] = event
        self.most = max(self.most, len({event.label for event in self.open_now.values()}))
        return descriptor

    def start(self) -> None:
        """From now on."""
        self.running = True

    def stop(self) -> None:
        """Until now."""
        self.running = False

    def read(self, descriptor: int) -> Reading:
        """The answer."""
        assert not self.running
        answer = self._answers[self.open_now[descriptor].label]
        assert isinstance(answer, Reading)
        return answer

    def close(self, descriptor: int) -> None:
        """Not open any more."""
        del self.open_now[descriptor]


def whole(value: int) -> Reading:
    """Counted all the time."""
    return Reading(value=value, enabled=1000, running=1000)


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else runs in the process of the tests."""
    monkeypatch.setattr(counters, "_threads", lambda: [1])


@pytest.mark.usefixtures("one_thread")
def test_counts_per_call():
    """Over the calls of the run that they were counted in; each set has a run of its own."""
    perf = Recorded({"cycles:u": whole(6000), "LLC-load-misses:u": whole(30)})
    runs = []

    def batch() -> int:
        assert perf.running
        runs.append(1)
        return 3

    found = count(batch, perf)
    assert isinstance(found, Counters)
    assert found.values == {"cycles:u": 2000, "LLC-load-misses:u": 10}
    assert found.tool == "perf_event"
    assert len(runs) == 2  # a set of which nothing can be counted needs none
    assert not perf.open_now


@pytest.mark.usefixtures("one_thread")
def test_no_set_is_larger_than_a_processor_can_count():
    """Processors have four counters for any event; the kernel's own events need none."""
    perf = Recorded(dict.fromkeys(LABELS, whole(1)))
    assert isinstance(count(lambda: 1, perf), Counters)
    for events in EVENTS:
        assert sum(event.type != "software" for event in events) <= 4


@pytest.mark.usefixtures("one_thread")
def test_events_that_took_turns_are_scaled():
    """Counted a quarter of the time: four times as many. Never counted: absent, not 0."""
    answers = {
        "cycles:u": Reading(value=500, enabled=1000, running=250),
        "instructions:u": Reading(value=0, enabled=1000, running=0),
    }
    found = count(lambda: 1, Recorded(answers))
    assert isinstance(found, Counters)
    assert found.values == {"cycles:u": 2000}
    assert found.absent["instructions:u"] == "the kernel had no counter free for it"


def test_all_threads_are_counted(monkeypatch: pytest.MonkeyPatch):
    """Their sum; one that slept was enabled for no time."""
    monkeypatch.setattr(counters, "_threads", lambda: [1, 2, 3])
    perf = Recorded({"cycles:u": whole(100)})
    readings = iter([whole(100), Reading(value=0, enabled=0, running=0), whole(50)])
    monkeypatch.setattr(perf, "read", lambda descriptor: next(readings))
    found = count(lambda: 1, perf)
    assert isinstance(found, Counters)
    assert found.values == {"cycles:u": 150}


@pytest.mark.usefixtures("one_thread")
def test_why_a_counter_is_absent(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """What the user can change, what the machine lacks, and what is neither."""
    paranoid = tmp_path / "perf_event_paranoid"
    paranoid.write_text("4\n")
    monkeypatch.setattr(counters, "PARANOID", paranoid)
    answers: dict[str, Reading | int] = {
        "task-clock:u": whole(1),
        "context-switches": errno.EACCES,
        "cycles:u": errno.ENOENT,
        "instructions:u": errno.EMFILE,
    }
    found = count(lambda: 1, Recorded(answers))
    assert isinstance(found, Counters)
    assert found.absent["context-switches"] == (
        f"not allowed: {paranoid} is 4; sudo sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON"
        " (containers: --cap-add PERFMON)"
    )
    assert found.absent["cycles:u"] == (
        "this processor does not count it, or its virtual machine does not let it"
    )
    assert found.absent["instructions:u"] == "perf_event_open: Too many open files"
    assert set(found.values) | set(found.absent) == set(LABELS)


@pytest.mark.usefixtures("one_thread")
def test_nothing_may_be_counted():
    """Then the whole is absent, with the reason of the first; no batch is run."""
    found = count(lambda: pytest.fail("there is nothing to count"), Recorded({}))
    reason = "perf_event: this processor does not count it, or its virtual machine does not let it"
    assert found == Unmeasured(quantity="counters", reason=reason)


@pytest.mark.usefixtures("one_thread")
def test_descriptors_are_given_back_where_a_call_raises():
    """A callable that fails leaves nothing open."""
    perf = Recorded(dict.fromkeys(LABELS, whole(1)))
    with pytest.raises(ZeroDivisionError):
        count(lambda: 1 // 0, perf)
    assert not perf.open_now


def test_elsewhere_than_on_linux(monkeypatch: pytest.MonkeyPatch):
    """Absent with its reason."""
    monkeypatch.setattr(counters.sys, "platform", "darwin")
    reason = "perf_event_open is known here for Linux alone"
    assert count(lambda: 1) == Unmeasured(quantity="counters", reason=reason)


@pytest.fixture
def allowed() -> None:
    """Skips where the kernel lets this process count nothing of its own."""
    if isinstance(found := count(lambda: 1), Unmeasured):
        pytest.skip(found.reason)


@pytest.mark.usefixtures("allowed")
def test_this_kernel_counts_page_faults():
    """Each page of fresh memory that is written faults once, in whichever thread, new ones included."""
    pages = 500
    size = pages * mmap.PAGESIZE

    def touch() -> None:
        with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as fresh:
            fresh.madvise(mmap.MADV_NOHUGEPAGE)
            for place in range(0, size, mmap.PAGESIZE):
                fresh[place] = 1

    def batch() -> int:
        thread = threading.Thread(target=touch)
        thread.start()
        thread.join()
        touch()
        return 2

    found = count(batch)
    assert isinstance(found, Counters)
    assert pages <= found.values["page-faults:u"] < pages + 60  # and those of a thread's stack


@pytest.mark.usefixtures("allowed")
def test_this_kernel_counts_time_on_the_processor():
    """Nanoseconds in which the threads ran: not those that they slept."""

    def batch() -> int:
        time.sleep(0.05)
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return 1

    found = count(batch)
    assert isinstance(found, Counters)
    assert 0.05e9 <= found.values["task-clock:u"] < 0.07e9


@pytest.mark.usefixtures("allowed")
def test_counters_stand_still_before_and_after():
    """What runs before the start and after the stop is not counted."""
    perf = LinuxPerf()
    descriptor = perf.open(EVENTS[0][0], 0)
    sum(range(100_000))
    assert perf.read(descriptor).value == 0
    perf.start()
    sum(range(100_000))
    perf.stop()
    counted = perf.read(descriptor)
    sum(range(100_000))
    assert perf.read(descriptor) == counted
    assert counted.value > 0
    perf.close(descriptor)


@pytest.mark.usefixtures("allowed")
def test_descriptors_are_closed():
    """A measuring child counts for every variant."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    count(lambda: 1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    descriptor = LinuxPerf().open(EVENTS[0][0], 0)
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)
