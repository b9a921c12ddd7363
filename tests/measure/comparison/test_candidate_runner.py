"""Rounds: who is timed when, when it is enough, what is said of the samples, and who is not believed."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.devices.cuda.nvml import NotAvailable
from pipeline.backends.devices.device_lock import device_lock
from pipeline.measure import statistics
from pipeline.measure.comparison import candidate_runner, round_summary
from pipeline.measure.comparison.candidate_runner import ACCUSATIONS, measure
from pipeline.measure.comparison.round_summary import Measured, Once, Unstable, once, together
from pipeline.measure.comparison.rounds import Round, run_rounds, undisturbed
from pipeline.measure.device_monitor import Monitor
from pipeline.measure.hosting.clock_check import FalseClock, ShortBatches, check_clock
from pipeline.measure.hosting.measuring_messages import Loaded
from pipeline.measure.hosting.measuring_process import MOST_CALLS
from pipeline.measure.hosting.process_handle import Member, MemberGone
from pipeline.measure.hosting.timed_batch import Batch
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.outcome import Outcome
from pipeline.records.results.profiled import AbsentBaseline, Conditions, Peak
from tests.measure.problems import SETTINGS, TRIES, accused, baselines, member, settings, steady
from tests.selection import slow_unless

pytestmark = pytest.mark.alone

NO_MONITOR = Monitor(NotAvailable("a test"))


class Scripted(Member):
    """A member without a process: its times are given, its turns are written down."""

    def __init__(self, name: str, seconds: Sequence[float], turns: list[tuple[str, int]]) -> None:
        self.name = name
        self.calls = 10
        self.kind = "cpu"
        self.loaded = Loaded(
            setup_seconds=0.1, first_call_seconds=0.2, first_peak=Peak(), facts={"name": "a device"}
        )
        self.calibrated = None
        self._seconds = iter(seconds)
        self._turns = turns

    def straight(self) -> None:
        """Its batches are straight themselves."""

    def batch(self, seed: int, *, others: int = 1) -> Batch:
        """The next of the given times."""
        self.others = others
        self._turns.append((self.name, seed))
        return batch(next(self._seconds))


def batch(
    seconds: float, *, unseen: float = 1e-4, computed: float = 0.0, waited: float = 0.0, queued: float = 0.0
) -> Batch:
    """A batch of ten calls."""
    return Batch(calls=10, seconds=seconds, unseen=unseen, computed=computed, waited=waited, queued=queued)


def rounds_of(candidate: Sequence[float], eager: Sequence[float]) -> list[Round]:
    """Rounds in which nothing went wrong."""
    return [
        Round(batches={"candidate": batch(a), "eager": batch(b)})
        for a, b in zip(candidate, eager, strict=True)
    ]


def members(turns: list[tuple[str, int]] | None = None) -> tuple[Scripted, Scripted]:
    """A candidate twice as fast as its baseline."""
    told = [] if turns is None else turns
    return Scripted("candidate", [0.01] * 500, told), Scripted("eager", [0.02] * 500, told)


def summarize(members: Sequence[Member], rounds: Sequence[Round], chosen: Profile) -> Measured:
    """What is said of one process."""
    return together([once(members, rounds, chosen, None)], chosen, ())


@pytest.fixture
def accused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However noisy the machine: whether a clock is found false is the subject, not how often."""
    monkeypatch.setattr(round_summary, "HOPELESS", math.inf)
    monkeypatch.setattr(candidate_runner, "ACCUSATIONS", 1)
    monkeypatch.setattr(candidate_runner, "quiet", lambda rounds: rounds)


def test_members_know_whether_they_are_alone() -> None:
    """Who shares the device with nobody has no caches to fill again."""
    both, one = members(), members()[:1]
    run_rounds(both, SETTINGS, NO_MONITOR)
    run_rounds(one, SETTINGS, NO_MONITOR)
    assert [each.others for each in (*both, *one)] == [1, 1, 0]


def test_interleaved_in_random_order() -> None:
    """Every round times each once, on the same seed, which no other round has; both come first at times."""
    turns: list[tuple[str, int]] = []
    # A budget of seconds would end it early where the machine stands still for a moment.
    chosen = settings(batches_at_least=40, batches_at_most=40, seconds_per_variant=60.0)
    run_rounds(members(turns), chosen, NO_MONITOR)
    rounds = list(zip(turns[::2], turns[1::2], strict=True))
    assert len(rounds) == 40
    for first, second in rounds:
        assert {first[0], second[0]} == {"candidate", "eager"}
        assert first[1] == second[1]
    assert len({seed for _, seed in turns}) == 40
    assert {first[0] for first, _ in rounds} == {"candidate", "eager"}


def test_precise_enough_is_enough() -> None:
    """Samples without scatter end the rounds at the least number."""
    assert len(run_rounds(members(), SETTINGS, NO_MONITOR)) == SETTINGS.batches_at_least


def test_scatter_goes_on() -> None:
    """Samples that scatter are taken until the largest number."""
    scattered = [0.01 * (1 + (i * 7919 % 13) / 13) for i in range(500)]
    wild = (Scripted("candidate", scattered, []), Scripted("eager", scattered[3:], []))
    assert len(run_rounds(wild, settings(relative_half_width=0.001), NO_MONITOR)) == SETTINGS.batches_at_most


def test_waiting_rounds_are_repeated() -> None:
    """A round in which a thread waited for a core is left out, whatever it measured, and that is told."""
    rounds = rounds_of([0.01] * 10, [0.02] * 10)
    rounds[3].batches["eager"] = batch(0.04, waited=0.02)
    rounds[7].batches["candidate"] = batch(0.005, waited=0.004)
    assert undisturbed(rounds, SETTINGS) == rounds[:3] + rounds[4:7] + rounds[8:]
    found = summarize(members(), rounds, SETTINGS)
    assert found.timing.samples == (0.001,) * 8
    assert "disturbed: 2 rounds repeated" in found.notes
    assert len(found.rounds) == 10


def test_a_busy_machine_gives_its_quietest_rounds() -> None:
    """Where all waited, those that waited least are used, in their order, and that is told."""
    rounds = [Round(batches={"candidate": batch(0.01, waited=0.01 - 0.0005 * i)}) for i in range(12)]
    assert undisturbed(rounds, SETTINGS) == rounds[-6:]
    found = summarize(members()[:1], rounds, SETTINGS)
    assert "disturbed: in 6 of 6 rounds threads waited for a core" in found.notes


def test_waiting_for_the_coordinator_is_no_disturbance() -> None:
    """It has a core while it asks and while it hears, when no clock runs: that much waiting says nothing."""
    rounds = rounds_of([0.01] * 10, [0.02] * 10)
    asked = msgspec.structs.replace(batch(0.01, waited=0.0015), coordinated=0.001)
    rounds[3].batches["candidate"] = asked
    assert undisturbed(rounds, SETTINGS) == rounds
    rounds[3].batches["candidate"] = msgspec.structs.replace(asked, coordinated=0.0004)
    assert undisturbed(rounds, SETTINGS) == rounds[:3] + rounds[4:]


def test_summary() -> None:
    """Medians per call, the ratio with its verdict, what the process found."""
    found = summarize(members(), rounds_of([0.01] * 8, [0.02] * 8), SETTINGS)
    assert found.timing.median.value == pytest.approx(0.001)
    assert found.timing.first_call_seconds == 0.2
    (comparison,) = found.comparisons
    assert comparison.speedup.value == pytest.approx(2.0)
    assert comparison.verdict == "faster"
    assert found.facts == {"name": "a device"}
    assert found.notes == ()


def test_a_baseline_that_breaks_down_later() -> None:
    """It is compared with where it was, which is told, and is not absent as well."""
    full, alone = rounds_of([0.01] * 8, [0.02] * 8), rounds_of([0.01] * 8, [0.02] * 8)
    for each in alone:
        del each.batches["eager"]
    gone = (
        AbsentBaseline(baseline="eager", reason="it ended"),
        AbsentBaseline(baseline="other", reason="no"),
    )
    chosen = settings(processes_at_least=2, processes_at_most=2)
    several = [once(members(), full, chosen, None), once(members()[:1], alone, chosen, None)]
    found = together(several, chosen, gone)
    assert [each.baseline for each in found.comparisons] == ["eager"]
    assert [each.baseline for each in found.absent] == ["other"]
    assert "compared with eager in 1 of 2 processes: it broke down" in found.notes
    assert (found.timing.processes, found.comparisons[0].timing.processes) == ((8, 8), ())


def test_earlier_processes_are_kept_where_a_later_one_scatters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rounds of all of them, each with its process's number."""
    told = [once]

    def second_fails(who: Sequence[Member], rounds: Sequence[Round], *rest: object) -> Once:
        if not told:
            raise Unstable("wild", rounds)
        return told.pop()(who, rounds, *rest)

    monkeypatch.setattr(round_summary, "HOPELESS", math.inf)  # what the first one measured is not the subject
    monkeypatch.setattr(candidate_runner, "once", second_fails)
    base = baselines("plain", tmp_path)
    chosen = settings(processes_at_least=2, processes_at_most=2)
    try:
        with pytest.raises(Unstable, match="wild") as unstable:
            measure(lambda: member("plain", tmp_path), base, chosen, "cpu")
    finally:
        base.stop()
    assert {each.process for each in unstable.value.rounds} == {0, 1}


def test_hopeless_scatter() -> None:
    """An interval wider than the value is no result; the rounds are kept."""
    rounds = rounds_of([0.01, 0.1] * 5, [0.02] * 10)
    with pytest.raises(Unstable, match="interval of the median") as unstable:
        summarize(members(), rounds, SETTINGS)
    assert len(unstable.value.rounds) == 10


def test_imprecision_is_told() -> None:
    """A speed-up that is known three times worse than wished carries a note."""
    times = [0.01, 0.011, 0.012, 0.013, 0.014, 0.015]
    found = summarize(members(), rounds_of(times, [0.02] * 6), settings(relative_half_width=0.01))
    assert "imprecise: speed-up over eager: known to" in str(found.notes)
    # Where a percentage would say nothing any more, words do.
    found = summarize(members(), rounds_of([0.02] * 10, [0.001, 0.09] * 5), SETTINGS)
    assert "imprecise: speed-up over eager: its interval is wider than the value" in str(found.notes)


def test_a_false_clock() -> None:
    """Time that passes and is not told is tampered; slow messages, which all have, are not."""
    honest = [
        Round(
            batches={
                "candidate": batch(0.01, unseen=5e-3, computed=0.0102),
                "eager": batch(0.02, unseen=5e-3, computed=0.0202),
            }
        )
    ] * 8
    check_clock(honest, SETTINGS, "cpu")
    slow_machine = {"candidate": batch(0.001, computed=0.0016), "eager": batch(0.002, computed=0.0026)}
    check_clock([Round(batches=slow_machine)] * 8, SETTINGS, "cpu")
    false = [Round(batches={"candidate": batch(0.001, unseen=9e-3), "eager": batch(0.02, unseen=1e-4)})] * 8
    with pytest.raises(MemberGone, match=r"0.001 s for a batch that took 0.01 s$") as gone:
        check_clock(false, SETTINGS, "cpu")
    assert gone.value.outcome is Outcome.TAMPERED
    false = [
        Round(
            batches={"candidate": batch(0.008, unseen=2e-3, computed=0.01), "eager": batch(0.02, unseen=1e-4)}
        )
    ] * 8
    with pytest.raises(MemberGone, match="0.008 s for a batch that took 0.01 s of CPU time") as gone:
        check_clock(false, SETTINGS, "cpu")
    assert isinstance(gone.value, FalseClock), (
        "one of 40 right candidates was accused by it: it is measured again"
    )


def test_driving_a_gpu_takes_the_host_time() -> None:
    """Launches and waits for the device count even if no baseline shows how long they are."""
    driving = [Round(batches={"candidate": batch(0.0022, unseen=6e-4, computed=0.0027)})] * 8
    check_clock(driving, SETTINGS, "cuda")
    with pytest.raises(FalseClock):
        check_clock(driving, SETTINGS, "cpu")
    false = [Round(batches={"candidate": batch(0.008, unseen=2e-3, computed=0.01)})] * 8
    with pytest.raises(FalseClock):
        check_clock(false, SETTINGS, "cuda")


def test_batches_that_became_short() -> None:
    """A clock that ran fast while calls were counted leaves nothing to check it by."""
    short = [Round(batches={"candidate": batch(0.0002), "eager": batch(0.02)})] * 8
    with pytest.raises(ShortBatches, match=r"0.0002 s by its clock, and took 0.001 s or more when their"):
        check_clock(short, SETTINGS, "cpu")
    check_clock([Round(batches={"candidate": batch(0.0003)})] * 8, SETTINGS, "cpu")
    most = msgspec.structs.replace(batch(0.0002), calls=MOST_CALLS)
    check_clock([Round(batches={"candidate": most})] * 8, SETTINGS, "cpu")
    one_by_one = Round(batches={"candidate": batch(0.0002)}, straight={"candidate": batch(0.001)})
    check_clock([one_by_one] * 8, SETTINGS, "cpu")


def test_waking_between_calls_is_no_lie() -> None:
    """Calls timed one by one: what baselines compute outside of their clock is not held against it."""

    def each(seconds: float, computed: float) -> Batch:
        return msgspec.structs.replace(batch(seconds, computed=computed), latencies=(seconds / 8,) * 8)

    def check(computed: float, seconds: float = 0.00107, *, straight: float = 0.004, **others: Batch) -> None:
        """`straight`: CPU seconds of the candidate's four milliseconds back to back."""
        ours = {"candidate": each(seconds, computed), **others}
        back_to_back = {name: batch(0.004, computed=0.004) for name in others}
        back_to_back["candidate"] = batch(0.004, computed=straight)
        chosen = settings(mode="server", idle_seconds=0.01)
        check_clock([Round(batches=ours, straight=back_to_back)] * 8, chosen, "cpu")

    eager = each(0.002, 0.0024)
    check(0.00149, eager=eager)
    check(0.00149)
    for others in ({"eager": eager}, {}):
        with pytest.raises(MemberGone, match="0.0005 s for a batch that took 0.0018 s of CPU time"):
            check(0.0018, 0.0005, **others)
        with pytest.raises(MemberGone, match="0.004 s for a batch that took 0.0053 s of CPU time"):
            check(0.00149, straight=0.0053, **others)
    with pytest.raises(MemberGone, match="of CPU time"):  # back to back nobody sleeps
        check_clock([Round(batches={"candidate": batch(0.00107, computed=0.00149)})] * 8, SETTINGS, "cpu")


def test_spinning_for_threads_that_wait_is_no_lie() -> None:
    """On a busy machine the main thread computes before its clock starts: its other threads have no core."""
    brief = batch(4.7e-5, unseen=3.5e-3, computed=3.3e-3, waited=3.4e-3, queued=1e-4)
    slow = batch(0.02, unseen=4e-3, computed=0.012, queued=0.012)
    chosen = settings(batch_seconds=4e-5)
    check_clock([Round(batches={"candidate": brief, "eager": slow})] * 8, chosen, "cpu")
    alone = batch(4.7e-5, unseen=3.5e-3, computed=3.3e-3, waited=1e-4, queued=1e-4)
    with pytest.raises(MemberGone, match="4.7e-05 s for a batch that took 0.0033 s of CPU time") as gone:
        check_clock([Round(batches={"candidate": alone, "eager": slow})] * 8, chosen, "cpu")
    assert isinstance(gone.value, FalseClock)


def test_a_false_clock_on_a_busy_machine() -> None:
    """A clock that counts three quarters of the waiting too; slow messages, which all have, are not told."""
    slow = batch(0.02, unseen=4e-3, computed=0.012, queued=0.012)
    honest = [
        Round(batches={"candidate": batch(0.01, unseen=4e-3, computed=0.006, queued=0.008), "eager": slow})
    ] * 8
    check_clock(honest, SETTINGS, "cpu")
    false = [Round(batches={"candidate": batch(0.0105, unseen=3.5e-3, computed=0.009, queued=0.005),
              "eager": batch(0.02, unseen=1e-3, computed=0.012, queued=0.0085)})] * 8  # fmt: skip
    with pytest.raises(MemberGone, match="0.0105 s for a batch that was running or ready for 0.014 s"):
        check_clock(false, SETTINGS, "cpu")


def test_measured(tmp_path: Path) -> None:
    """Real processes: a callable that does half of the work again is slower, one that does not is not."""
    base = baselines("plain", tmp_path)
    chosen = settings(
        batches_at_least=8, batches_at_most=40, seconds_per_variant=0.5, relative_half_width=0.1
    )
    try:
        slower = steady(lambda: measure(lambda: member("slowed", tmp_path), base, chosen, "cpu"))
        equal = steady(lambda: measure(lambda: member("plain", tmp_path), base, chosen, "cpu"))
    finally:
        base.stop()
    assert slower.comparisons[0].speedup.value < 0.9
    assert equal.comparisons[0].speedup.value == pytest.approx(1.0, abs=0.3)
    assert len(equal.timing.samples) == len(equal.comparisons[0].timing.samples) >= 6


def test_a_liar_is_caught(tmp_path: Path, accused_at_once: None) -> None:
    """A candidate that slows its own clock down is tampered, not fast."""
    base = baselines("plain", tmp_path)
    try:
        gone = accused(
            lambda: measure(lambda: member("lying", tmp_path), base, settings(batch_seconds=0.01), "cpu")
        )
    finally:
        base.stop()
    assert gone.outcome is Outcome.TAMPERED


ONE_BY_ONE = [{"mode": "server", "idle_seconds": 0.002}, {"flush_cache": True}]


@pytest.mark.parametrize("how", slow_unless(ONE_BY_ONE[0].__eq__, ONE_BY_ONE))
def test_a_liar_is_caught_by_calls_back_to_back(
    tmp_path: Path, accused_at_once: None, how: dict[str, object]
) -> None:
    """Sleeping and flushing between calls takes CPU time that no clock counts, in which a false one hides."""
    gone = accused(lambda: measured_one_by_one("slow_lying", tmp_path, how))
    assert gone.outcome is Outcome.TAMPERED


@pytest.mark.parametrize("how", slow_unless(ONE_BY_ONE[0].__eq__, ONE_BY_ONE))
def test_true_clocks_of_calls_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, object]
) -> None:
    """What sleeping and flushing takes is no lie; each batch has one back to back behind it."""
    monkeypatch.setattr(round_summary, "HOPELESS", math.inf)
    found = steady(lambda: measured_one_by_one("slow", tmp_path, how))
    assert all(each.straight.keys() == each.batches.keys() for each in found.rounds)


def measured_one_by_one(name: str, folder: Path, how: dict[str, object]) -> Measured:
    """Beside `slow`."""
    chosen = settings(
        batch_seconds=0.004, batches_at_least=12, batches_at_most=12, seconds_per_variant=2.0, **how
    )
    base = baselines("slow", folder, chosen)
    try:
        return measure(lambda: member(name, folder, flush_cache=chosen.flush_cache), base, chosen, "cpu")
    finally:
        base.stop()


def test_a_clock_that_is_fast_while_calls_are_counted(tmp_path: Path) -> None:
    """Batches of one short call could hide all of it in what is allowed for a batch: no result.

    On a noisy machine what a message takes may look as if it did, which is no result either; and other
    reasons may come first.
    """
    base = baselines("plain", tmp_path)
    try:
        for _ in range(TRIES):
            with pytest.raises((Unstable, MemberGone)) as ended:
                measure(lambda: member("hurrying", tmp_path), base, SETTINGS, "cpu")
            if re.search("too short to check the clock by|its clock", str(ended.value)):
                break
        else:
            pytest.fail(str(ended.value))
    finally:
        base.stop()


def test_a_clock_that_is_false_after_gaps_alone(tmp_path: Path, accused_at_once: None) -> None:
    """Back to back it is true; they use more of the processor than the baselines', beside what they say."""
    gone = accused(
        lambda: measured_one_by_one("lying_after_gaps", tmp_path, {"mode": "server", "idle_seconds": 0.004})
    )
    assert gone.outcome is Outcome.TAMPERED


def test_waking_beside_the_baselines() -> None:
    """What each process needs to wake up is no lie, and what it needs beyond that is one on a CPU alone."""

    def rounds(ours: float, *theirs: float) -> list[Round]:
        def each(computed: float) -> Batch:
            plain = batch(0.001, computed=computed)
            return msgspec.structs.replace(plain, latencies=(0.000125,) * 8)

        others = {f"b{number}": each(computed) for number, computed in enumerate(theirs)}
        straight = {name: batch(0.004, computed=0.004) for name in ("candidate", *others)}
        return [Round(batches={"candidate": each(ours), **others}, straight=straight)] * 12

    chosen = settings(mode="server", idle_seconds=0.002)
    check_clock(rounds(0.00148, 0.0014, 0.0014), chosen, "cpu")
    check_clock(rounds(0.00148), chosen, "cpu")
    with pytest.raises(FalseClock, match=r"0.001 s for a batch, and it used at least 0.00015 s of CPU"):
        check_clock(rounds(0.00155, 0.0014, 0.0014), chosen, "cpu")
    check_clock(rounds(0.00155, 0.0014, 0.0014), chosen, "cuda")
    some = [*rounds(0.00155, 0.0014)[:8], *rounds(0.0014, 0.0014)[:4]]
    check_clock(some, chosen, "cpu")


@pytest.mark.parametrize("false", range(4))
def test_one_accusation_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, false: int) -> None:
    """A load may look like a false clock: three measurements have to agree before anybody is accused."""
    looks = iter([True] * false + [False] * 4)

    def suspect(*_: object) -> None:
        if next(looks):
            raise FalseClock("its clock says 1 s for a batch that took 2 s")

    monkeypatch.setattr(round_summary, "check_clock", suspect)
    # However noisy the machine: the clock is the subject.
    monkeypatch.setattr(round_summary, "HOPELESS", math.inf)
    monkeypatch.setattr(candidate_runner, "quiet", lambda rounds: rounds)
    base = baselines("plain", tmp_path)
    try:
        if false < ACCUSATIONS:
            assert measure(lambda: member("plain", tmp_path), base, SETTINGS, "cpu").timing.samples
        else:
            with pytest.raises(FalseClock, match="took 2 s"):
                measure(lambda: member("plain", tmp_path), base, SETTINGS, "cpu")
    finally:
        base.stop()


def test_nobody_is_accused_by_a_busy_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three accusations of rounds in which threads waited for cores: not known, which no winner can be."""

    def suspect(*_: object) -> None:
        raise FalseClock("its clock says 1 s for a batch that took 2 s")

    monkeypatch.setattr(round_summary, "check_clock", suspect)
    monkeypatch.setattr(candidate_runner, "quiet", lambda _: [])
    base = baselines("plain", tmp_path)
    try:
        with pytest.raises(
            Unstable, match="clock cannot be checked: its clock says 1 s .* load of the machine"
        ):
            measure(lambda: member("plain", tmp_path), base, SETTINGS, "cpu")
    finally:
        base.stop()


def test_a_candidate_that_dies_leaves_the_others(tmp_path: Path) -> None:
    """A crash while timed is that candidate's outcome; the next one meets the same baselines."""
    base = baselines("plain", tmp_path)
    try:
        gone = accused(lambda: measure(lambda: member("failing_later", tmp_path), base, SETTINGS, "cpu"))
        before = base.of(0).members()
        steady(lambda: measure(lambda: member("plain", tmp_path), base, SETTINGS, "cpu"))
        assert base.of(0).members() == before
    finally:
        base.stop()
    assert gone.outcome is Outcome.CRASHED
    assert "SIGKILL" in gone.reason


def test_small_differences_have_to_be_seen_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Further processes of candidate and baselines, all rounds kept; its costs are seen once, at the end."""
    monkeypatch.setattr(statistics, "NEAR", math.inf)
    ended: list[str] = []
    base = baselines("plain", tmp_path)
    chosen = settings(
        batches_at_least=8, processes_at_most=3, seconds_per_variant=0.5, relative_half_width=0.1
    )

    def slowed() -> Measured:
        ended.clear()
        return measure(lambda: member("slowed", tmp_path), base, chosen, "cpu", lambda: ended.append("timed"))

    try:
        slower = steady(slowed)
        equal = steady(
            lambda: measure(lambda: member("plain", tmp_path), base, settings(batches_at_least=8), "cpu")
        )
    finally:
        base.stop()
    (comparison,) = slower.comparisons
    assert comparison.verdict == "slower"
    assert [each.process for each in slower.rounds] == sorted(each.process for each in slower.rounds)
    assert {each.process for each in slower.rounds} == {0, 1, 2}
    assert slower.timing.processes == comparison.timing.processes
    assert len(slower.timing.processes) == 3
    assert sum(slower.timing.processes) == len(slower.timing.samples)
    assert ended == ["timed"]
    assert slower.examined is not None
    assert equal.timing.processes == ()


@pytest.mark.slow
def test_equals_are_equal(tmp_path: Path) -> None:
    """A/A: of 30 comparisons of a call of some microseconds with itself, few are called different.

    At a true rate of 5 %, more than 6 of 30 come up once in 1,600 runs, if these have nothing in common: a
    baseline that lives through all of them, with its pages in a better place, has a part in each.
    """
    base = baselines("plain", tmp_path)
    chosen = settings(
        batches_at_least=10, batches_at_most=40, batch_seconds=0.004, seconds_per_variant=0.4,
        relative_half_width=0.03, processes_at_most=3,
    )  # fmt: skip
    try:
        found = []
        for _ in range(30):
            with device_lock("cpu"):  # other runs on this machine measure as well
                found.append(measure(lambda: member("plain", tmp_path), base, chosen, "cpu"))
            base.stop()
    finally:
        base.stop()
    called = [each for each in found if each.comparisons[0].verdict != "indistinguishable"]
    assert len(called) <= 6


def test_a_slow_clock_is_repeated() -> None:
    """Rounds in which the device was slowed are left out, whatever they measured, and that is told."""
    rounds = rounds_of([0.01] * 10, [0.02] * 10)
    usual = Conditions(clock_mhz_low=1900.0, clock_mhz_high=1900.0, samples=1)
    slow = Conditions(clock_mhz_low=1200.0, clock_mhz_high=1900.0, throttled=("power cap",), samples=1)
    rounds = [
        msgspec.structs.replace(each, device=slow if i == 4 else usual) for i, each in enumerate(rounds)
    ]
    assert undisturbed(rounds, SETTINGS) == rounds[:4] + rounds[5:]
    found = summarize(members(), rounds, SETTINGS)
    assert "disturbed: 1 round repeated" in found.notes
    assert "throttled: power cap in 1 of 10 looks at the device" in found.notes
    assert found.conditions.clock_mhz_low == 1200.0


def test_a_device_that_is_never_steady_is_told() -> None:
    """Where too few rounds are left, all that is used is marked."""
    rounds = rounds_of([0.01] * 10, [0.02] * 10)
    clocks = [1900.0] * 3 + [1700.0 - 10 * i for i in range(7)]
    rounds = [
        msgspec.structs.replace(each, device=Conditions(clock_mhz_low=clock, clock_mhz_high=clock, samples=1))
        for each, clock in zip(rounds, clocks, strict=True)
    ]
    found = summarize(members(), rounds, SETTINGS)
    assert any(note.startswith("unsteady: the clock was between 1640 and 1900 MHz") for note in found.notes)
