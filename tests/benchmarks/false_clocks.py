"""Are false clocks found, and true ones believed? Writes docs/results/false_clocks.md.

    python -m tests.benchmarks.false_clocks [--repeats 4]

Each callable of `tests.benchmarks.clocks` is measured beside the same callable with a true clock, in
processes of its own, by the presets that users have. Run it on a quiet machine.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.measure.comparison.baselines import BaselineSets, HostedBaseline, MeasurementContext
from pipeline.measure.comparison.candidate_runner import measure
from pipeline.measure.comparison.round_summary import Unstable
from pipeline.measure.comparison.rounds import CANDIDATE
from pipeline.measure.hosting.measuring_messages import Reference, SetUp
from pipeline.measure.hosting.process_handle import Member, MemberGone, Place
from pipeline.plan.plan_cache import current_plan
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.layout import spec_path
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import read_record
from pipeline.sandbox.processes.fork_server import ForkServer
from tests.benchmarks.clocks import CLOCKS
from tests.benchmarks.machine import where
from tests.measure.problems import PROBLEM
from tests.paths import ROOT

TARGET = ROOT / "docs" / "results" / "false_clocks.md"
MODES: Mapping[str, tuple[str, ...]] = {
    "profile=standard": ("brief", "long"),
    "profile=server": ("brief", "long"),
    "profile=server profile.idle_seconds=0.01": ("brief", "long"),
    "profile=cold": ("long",),
}
"""What is measured how: a flush takes milliseconds, and thousands of brief calls make a batch."""
COLUMNS = ("tampered", "no result", "faster", "indistinguishable", "slower")
Row = tuple[str, str, str]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.false_clocks", description=__doc__)
    parser.add_argument("--repeats", type=int, default=4, help="measurements of each")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    server = ForkServer(preload=("numpy", "torch"))
    found: dict[Row, Counter[str]] = {}
    for mode, lengths in MODES.items():
        settings = _settings(mode)
        for _ in range(options.repeats):
            for length in lengths:
                for clock, said in _measured(server, length, settings):
                    found.setdefault((mode, length, clock), Counter())[said] += 1
                    print(mode, length, clock, said, flush=True)
    server.close()
    options.out.write_text("\n".join(page(found, options.repeats, where(("torch", "numpy")))) + "\n")


def page(found: Mapping[Row, Counter[str]], repeats: int, place: str) -> Iterator[str]:
    """How often what was said of each."""
    yield "# False clocks\n"
    yield f"`python -m tests.benchmarks.false_clocks --repeats {repeats}`. {place}\n"
    yield EXPLAINED.strip() + "\n"
    yield f"| settings | call | clock | {' | '.join(COLUMNS)} |"
    yield f"|---|---|---|{'---:|' * len(COLUMNS)}"
    for (mode, length, clock), said in found.items():
        yield f"| `{mode}` | {length} | {_words(clock)} | {' | '.join(str(said[each]) for each in COLUMNS)} |"


EXPLAINED = """\
Softmax of 64 rows by 256 columns, computed once (`brief`) or 40 times (`long`) per call, compared with the
same callable with a true clock in its own process. A slow clock omits a share of all time. A clock that is
slow after gaps omits a share only of calls before which nothing ran for half a millisecond; back to back it
is true. A true clock should be indistinguishable and a false one `tampered`; `faster` is a successful cheat.
Verify and the check of the timing functions are switched off, since they would find all of these patches:
the table shows what time accounting alone detects.
"""


def _words(clock: str) -> str:
    kind, _, share = clock.partition("_")
    return {"true": "true", "slow": f"{share} % slow", "late": f"{share} % slow after gaps"}[kind]


def _settings(mode: str) -> Profile:
    """As a user's command has them, beside the eager baseline alone."""
    overrides = ("kernel=softmax", "workload=bert_base", "hardware=cpu", *mode.split())
    with tempfile.TemporaryDirectory(prefix="km-") as folder:
        store = Path(folder)
        plan = current_plan((*overrides, "profile.baselines=[eager]"), root=ROOT, store=store)
        spec = read_record(spec_path(store, "profile", plan.tasks[0].row.profile), ProfileSpec)
    return spec.settings


def _measured(server: ForkServer, length: str, settings: Profile) -> Iterator[tuple[str, str]]:
    """Each clock once, and what was said of it."""
    with tempfile.TemporaryDirectory(prefix="km-") as folder:
        logs = Path(folder)

        def set_up(clock: str) -> SetUp:
            hosted = Reference(function=f"tests.benchmarks.clocks:{length}_{clock}")
            return SetUp(hosted=hosted, problem=PROBLEM, kind="cpu", flush_cache=settings.flush_cache)

        true = set_up("true")
        assert isinstance(true.hosted, Reference)
        context = MeasurementContext(
            set_up=true, baselines=(HostedBaseline(name="eager", hosted=true.hosted),), settings=settings,
            environment={}, inductor_cache=logs / "inductor", logs=logs,
        )  # fmt: skip
        place = Place(
            log=logs / "log.txt", environment={}, lifetime=settings.time_limit, patience=settings.time_limit
        )
        baselines = BaselineSets(server, context)
        try:
            for clock in CLOCKS:
                hosted = set_up(clock)
                yield (
                    clock,
                    _said(
                        lambda hosted=hosted: Member(CANDIDATE, server, hosted, place), baselines, settings
                    ),
                )
        finally:
            baselines.stop()


def _said(start, baselines: BaselineSets, settings: Profile) -> str:
    """The verdict, or why there is none.

    Raises
    ------
    MemberGone
        For another reason than its clock.
    """
    try:
        measured = measure(start, baselines, settings, "cpu")
    except Unstable:
        return "no result"
    except MemberGone as gone:
        if gone.outcome is not Outcome.TAMPERED:
            raise
        return "tampered"
    return measured.comparisons[0].verdict


if __name__ == "__main__":
    main()
