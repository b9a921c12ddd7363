"""STAGES: one row per stage, which the rules, bundles, recovery, the environment and the warm worker read.

A row says what a stage reads, what it writes and where, its command line, what it needs, and on which rooms
its results may depend. To add a stage: a module here, a row, and a rule file in workflows/rules
(docs/recipes/stage.md).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import (
    AggregateSpec,
    CompileSpec,
    GenerateSpec,
    MutateSpec,
    ProfileSpec,
    VerifySpec,
)
from pipeline.records.record import Record, read_record
from pipeline.records.results.aggregated import Summary
from pipeline.records.results.compiled import CompileOutput, CompileRecord
from pipeline.records.results.judged import JudgeOutput, JudgeSpec, VerdictsSpec
from pipeline.records.results.mutated import MutateOutput
from pipeline.records.results.profiled import ProfileOutput, ProfileRecord
from pipeline.records.results.timed import TimingOutput, TimingSpec
from pipeline.records.results.tracked import TrackOutput
from pipeline.records.results.variant import Generated
from pipeline.records.results.verified import VerifyOutput, VerifyRecord

BASE = frozenset({"records", "backends", "sandbox", "store"})
PER_ROUND = "{key}/round{round}.json"


class Input(Record, frozen=True, kw_only=True):
    """Outputs of other stages that a stage reads."""

    name: str
    """Its option on the command line, without the dashes."""
    stages: tuple[str, ...]
    """Whose outputs they are."""
    rounds: Literal["this", "earlier", "all"] = "this"
    """`earlier`: those of all earlier rounds, round by round."""
    given: Literal["file", "folder", "stage folder", "by spec"] = "file"
    """What the option takes: the file, its folder, or the folder of the stage. `by spec`: there is no option,
    because the stage finds the files by the keys in its spec."""


class Stage(Record, frozen=True, kw_only=True):
    """A stage: files in, one file out."""

    name: str
    spec: type[Record]
    output: type[Record] | None
    """None: not a record, such as a page or a table."""
    file: str = PER_ROUND
    """Path of the output below the folder of the stage; empty if it writes no file."""
    module: str = ""
    """Module in this room; empty: the one with the stage's name."""
    inputs: tuple[Input, ...] = ()
    entry: type[Record] | None = None
    """What its store entries hold, one for each variant; None for a stage without entries."""
    per_round: bool = False
    """Whether it runs in every round of every task."""
    planned: bool = True
    """Whether runs of a plan include it; its rules are then in workflows/rules/NAME.smk."""
    plan_wide: bool = False
    """Whether it runs once in a plan, on the spec of aggregate."""
    cores: Literal["one", "variants", "all"] = "one"
    """How many it can use: one, one for each variant, or all there are."""
    workers: bool = False
    """Whether it takes `--workers`."""
    ahead: bool = False
    """Whether a run without Snakemake may do it for all tasks before it measures the first one."""
    device: bool = False
    """Whether it holds its device alone: a GPU, or on a CPU target the whole machine."""
    runs_there: bool = False
    """Whether it runs kernels on a GPU that is present: not while another job measures there."""
    worker: Literal["--warm", "--judge", "--last"] | None = None
    """How `pipeline.execution.workers.submit` prepares the process that it runs in."""
    rooms: frozenset[str] = BASE
    """Rooms whose code its results may depend on."""
    preload: tuple[str, ...] = ()
    """Modules that the warm worker imports besides the stage itself."""

    @property
    def program(self) -> str:
        """Name of its module in this room."""
        return self.module or self.name

    def output_path(self, root: Path, key: str, number: int | str = 0) -> Path:
        """Where it writes for a key and, if it runs per round, a round."""
        return root / self.name / self.file.format(key=key, round=number)

    def spec_path(self, root: Path, key: str) -> Path:
        """Where the plan writes its spec; the plan-wide stages share that of aggregate."""
        return spec_path(root, "aggregate" if self.plan_wide else self.name, key)

    def log_path(self, root: Path, key: str, number: int | str = 0) -> Path:
        """Where its process writes what it prints."""
        folder = root / "logs" / self.name
        return folder / key / f"round{number}.log" if self.per_round else folder / f"{key}.log"

    def arguments(
        self, *, spec: str, out: str, root: str, inputs: Mapping[str, Sequence[str]], **more: str
    ) -> tuple[str, ...]:
        """Its command line; `more` may have `round` and `workers`, which only some stages take."""
        words = ["--spec", spec]
        for each in self.inputs:
            if each.given != "by spec":
                words += [f"--{each.name}", *inputs[each.name]]
        words += ["--out", out] if self.file else []
        words += [] if self.name == "verdicts" else ["--root", root]
        if self.name == "generate":
            words += ["--round", more["round"]]
        if self.workers:
            words += ["--workers", more["workers"]]
        return tuple(words)


_ROUNDS = ("generate", "compile", "verify", "profile")
_REPORTING = BASE | {"measure", "performance", "search"}
_ROWS = (
    Stage(
        name="generate",
        spec=GenerateSpec,
        output=Generated,
        inputs=(Input(name="history", stages=("compile", "verify", "profile"), rounds="earlier"),),
        per_round=True,
        ahead=True,
        rooms=BASE | {"search", "performance"},
        preload=("pipeline.search.strategies.grid", "pipeline.search.strategies.random"),
    ),
    Stage(
        name="compile",
        spec=CompileSpec,
        output=CompileOutput,
        inputs=(Input(name="variants", stages=("generate",)),),
        entry=CompileRecord,
        per_round=True,
        ahead=True,
        cores="variants",
        workers=True,
        worker="--warm",
        preload=("pipeline.backends.cpp",),
    ),
    Stage(
        name="verify",
        spec=VerifySpec,
        output=VerifyOutput,
        inputs=(Input(name="compiled", stages=("compile",)),),
        entry=VerifyRecord,
        per_round=True,
        runs_there=True,
        cores="variants",
        workers=True,
        rooms=BASE | {"verify"},
        preload=(
            "pipeline.verify.harness.process",
            "pipeline.verify.harness.conventions.outputs_given",
            "pipeline.verify.harness.kernel_trial",
        ),
    ),
    Stage(
        name="profile",
        spec=ProfileSpec,
        output=ProfileOutput,
        inputs=(Input(name="compiled", stages=("compile",)), Input(name="verified", stages=("verify",))),
        entry=ProfileRecord,
        per_round=True,
        device=True,
        rooms=BASE | {"measure", "performance"},
        preload=("pipeline.measure.comparison.bench", "pipeline.measure.hosting.measuring_process"),
    ),
    Stage(
        name="mutate",
        spec=MutateSpec,
        output=MutateOutput,
        file="{key}.json",
        cores="all",
        workers=True,
        rooms=BASE | {"verify", "search"},
    ),
    Stage(
        name="judge",
        planned=False,
        spec=JudgeSpec,
        output=JudgeOutput,
        file="{key}.json",
        cores="variants",
        workers=True,
        worker="--judge",
        rooms=BASE | {"verify"},
    ),
    Stage(
        name="timing",
        planned=False,
        spec=TimingSpec,
        output=TimingOutput,
        file="{key}.json",
        inputs=(Input(name="judged", stages=("judge",)),),
        device=True,
        rooms=BASE | {"measure"},
    ),
    Stage(
        name="verdicts",
        planned=False,
        spec=VerdictsSpec,
        output=None,
        file="{key}.csv",
        inputs=(
            Input(name="judged", stages=("judge",), given="stage folder"),
            Input(name="timed", stages=("timing",), given="stage folder"),
        ),
        rooms=BASE | {"verify"},
    ),
    Stage(
        name="aggregate",
        spec=AggregateSpec,
        output=Summary,
        file="{key}/summary.json",
        inputs=(Input(name="results", stages=(*_ROUNDS, "mutate"), rounds="all", given="by spec"),),
        plan_wide=True,
        worker="--last",
        rooms=_REPORTING | {"report"},
    ),
    Stage(
        name="track",
        spec=AggregateSpec,
        output=TrackOutput,
        file="{key}/tracked.json",
        inputs=(Input(name="aggregate", stages=("aggregate",), given="folder"),),
        plan_wide=True,
        worker="--last",
        rooms=_REPORTING | {"report", "track"},
    ),
    Stage(
        name="report",
        spec=AggregateSpec,
        output=None,
        file="{key}/report.html",
        inputs=(
            Input(name="aggregate", stages=("aggregate",), given="folder"),
            Input(name="tracked", stages=("track",)),
        ),
        plan_wide=True,
        worker="--last",
        rooms=_REPORTING | {"report"},
    ),
    Stage(
        name="attach",
        module="track",
        spec=AggregateSpec,
        output=None,
        file="",
        inputs=(Input(name="attach", stages=("track",)), Input(name="report", stages=("report",))),
        plan_wide=True,
        worker="--last",
        rooms=_REPORTING | {"report", "track"},
    ),
)
STAGES: dict[str, Stage] = {row.name: row for row in _ROWS}
"""All stages by name, each after those that it reads."""


RoundOutput = Generated | CompileOutput | VerifyOutput | ProfileOutput
"""What the stages of a round write: records of variants or of sources, which name store entries."""


def read_round(stage: str, path: Path) -> RoundOutput:
    """The output of a stage of a round.

    Raises
    ------
    StoreError
        It cannot be read.
    """
    kind = STAGES[stage].output
    assert kind is not None
    found = read_record(path, kind)
    assert isinstance(found, RoundOutput)
    return found


def rounds() -> tuple[Stage, ...]:
    """The stages of one round of a task, in order."""
    return tuple(stage for stage in STAGES.values() if stage.per_round)


def final() -> tuple[Stage, ...]:
    """The stages that run once in a plan, in order."""
    return tuple(stage for stage in STAGES.values() if stage.plan_wide)


def later(stage: str) -> tuple[str, ...]:
    """The stages of a round that come after one."""
    names = [each.name for each in rounds()]
    return tuple(names[names.index(stage) + 1 :])


def preload() -> tuple[str, ...]:
    """What the warm worker imports: the stages that most jobs need, and what they import late."""
    wanted = [stage for stage in STAGES.values() if stage.per_round or stage.plan_wide]
    names = [name for stage in wanted for name in (f"pipeline.stages.{stage.program}", *stage.preload)]
    return tuple(dict.fromkeys(names))
