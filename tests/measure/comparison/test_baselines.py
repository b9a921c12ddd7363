"""Baselines of a task: started once, restarted once, absent with their reason."""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from pipeline.measure.comparison.candidate_runner import measure
from pipeline.measure.hosting.process_handle import MemberGone
from tests.measure.problems import SETTINGS, baselines, member, settings, steady

pytestmark = pytest.mark.alone


def test_started_once(tmp_path: Path) -> None:
    """Every variant of the task meets the same process."""
    base = baselines("plain", tmp_path)
    try:
        assert base.of(0).members() == base.of(0).members()
        assert [each.name for each in base.of(0).members()] == ["eager"]
        assert base.of(0).absent() == ()
    finally:
        base.stop()


def test_a_set_for_each_process(tmp_path: Path) -> None:
    """The candidate's second process meets others than its first, and the next candidate meets both again."""
    base = baselines("plain", tmp_path)
    try:
        first, second = base.of(0).members(), base.of(1).members()
        assert {each.name for each in first} == {each.name for each in second} == {"eager"}
        assert not set(first) & set(second)
        assert (base.of(0).members(), base.of(1).members()) == (first, second)
    finally:
        base.stop()


def test_on_a_gpu_one_set_serves_all(tmp_path: Path) -> None:
    """More of them would fill its memory."""
    base = baselines("plain", tmp_path)
    base._context = msgspec.structs.replace(
        base._context, set_up=msgspec.structs.replace(base._context.set_up, kind="cuda")
    )
    assert base.of(0) is base.of(1) is base.of(2)


def test_short_memory_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that there are serve again, in turn."""
    base = baselines("plain", tmp_path)
    first, second = base.of(0), base.of(1)
    monkeypatch.setattr("pipeline.measure.comparison.baselines.room", lambda: False)
    assert (base.of(2), base.of(3)) == (first, second)


def test_what_the_first_set_lacks_is_never_started(tmp_path: Path) -> None:
    """Nothing is waited for, and nothing timed, that cannot be compared with."""
    base = baselines("refusing", tmp_path)
    try:
        assert base.of(0).members() == ()
        assert base.of(1).members() == ()
        assert not (tmp_path / "eager-1.txt").exists()
    finally:
        base.stop()


def test_absent_with_its_reason(tmp_path: Path) -> None:
    """A reference that cannot be called leaves the candidate without a comparison, and says why."""
    base = baselines("refusing", tmp_path)
    try:
        found = steady(lambda: measure(lambda: member("plain", tmp_path), base, SETTINGS, "cpu"))
    finally:
        base.stop()
    assert found.comparisons == ()
    assert [(each.baseline, each.reason) for each in found.absent] == [("eager", "ValueError: no such size")]


def test_restarted_once(tmp_path: Path) -> None:
    """A baseline that is killed in between is started again, and the variant is measured against it."""
    base = baselines("plain", tmp_path)
    try:
        (first,) = base.of(0).members()
        os.kill(first._process, signal.SIGKILL)
        found = steady(lambda: measure(lambda: member("plain", tmp_path), base, SETTINGS, "cpu"))
        (second,) = base.of(0).members()
    finally:
        base.stop()
    assert len(found.comparisons) == 1
    assert second is not first


@pytest.mark.parametrize(("changes", "takes_part"), [({"seconds_per_variant": 1e-7}, True), ({}, False)])
def test_too_slow_for_the_time_limit(tmp_path: Path, monkeypatch, changes: dict, takes_part: bool) -> None:
    """A baseline slower than the budget takes part, with few rounds; one too slow for the limit does not."""
    if not takes_part:
        monkeypatch.setattr("pipeline.measure.comparison.baselines.SLOWEST", 1e-9)
    base = baselines("plain", tmp_path, settings(**changes))
    try:
        assert len(base.of(0).members()) == takes_part
        assert takes_part or "profile.time_limit" in base.of(0).absent()[0].reason
    finally:
        base.stop()


@pytest.mark.slow
def test_compiled(tmp_path: Path) -> None:
    """torch.compile takes part, and its second process finds what the first one built."""
    seconds = []
    for _ in range(2):
        base = baselines("plain", tmp_path, settings(baselines=("compile",)))
        try:
            (found,) = base.of(0).members()
        finally:
            base.stop()
        assert found.loaded is not None
        seconds.append(found.loaded.first_call_seconds)
    assert seconds[1] < seconds[0]
    assert any((tmp_path / "inductor").iterdir())


def test_gone_names_its_member() -> None:
    """The text says who, the fields say what."""
    from pipeline.records.outcome import Outcome

    assert str(MemberGone("eager", Outcome.CRASHED, "SIGSEGV")) == "eager: SIGSEGV"
