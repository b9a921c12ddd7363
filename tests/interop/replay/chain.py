"""All stages of a plan's only task, by hand and in process."""

from pathlib import Path

from pipeline.plan.local_machine import read_machine
from pipeline.plan.planner import make_plan
from pipeline.records.layout import output_path, spec_path
from pipeline.records.planning.specs import TaskRow
from pipeline.stages import aggregate, compile, generate, profile, report, track, verify
from tests.paths import ROOT


class Chain:
    """A planned task, its outputs in a store of its own."""

    def __init__(self, store: Path, *lines: str) -> None:
        self.store = store
        made = make_plan([lines], root=ROOT, store=store, machine=read_machine())
        (task,) = made.plan.tasks
        self.row: TaskRow = task.row
        self.aggregate = made.plan.aggregate
        self.summary = store / "aggregate" / "x" / "summary.json"
        self.page = store / "report.html"
        self.tracked = store / "tracked.json"

    def out(self, stage: str, number: int = 0) -> Path:
        """What a stage wrote in a round."""
        return output_path(self.store, stage, getattr(self.row, stage), number)

    def run(self) -> None:
        """Every round, then tables, MLflow and the report."""
        history: list[str] = []
        for number in range(self.row.rounds):
            self._round(number, history)
            history += [str(self.out(stage, number)) for stage in ("compile", "verify", "profile")]
        spec = ["--spec", str(spec_path(self.store, "aggregate", self.aggregate))]
        root = ["--root", str(self.store)]
        assert aggregate.main([*spec, "--out", str(self.summary), *root]) == 0
        made = ["--aggregate", str(self.summary.parent), *root]
        assert track.main([*spec, *made, "--out", str(self.tracked)]) == 0
        assert report.main([*spec, *made, "--tracked", str(self.tracked), "--out", str(self.page)]) == 0

    def _round(self, number: int, history: list[str]) -> None:
        out = {stage: str(self.out(stage, number)) for stage in ("generate", "compile", "verify", "profile")}
        proposed = ["--round", str(number), "--history", *history]
        assert generate.main([*self._to("generate", number), *proposed]) == 0
        assert compile.main([*self._to("compile", number), "--variants", out["generate"]]) == 0
        assert verify.main([*self._to("verify", number), "--compiled", out["compile"]]) == 0
        measured = ["--verified", out["verify"], "--compiled", out["compile"]]
        assert profile.main([*self._to("profile", number), *measured]) == 0

    def _to(self, stage: str, number: int) -> list[str]:
        spec = spec_path(self.store, stage, getattr(self.row, stage))
        return ["--spec", str(spec), "--out", str(self.out(stage, number)), "--root", str(self.store)]
