"""What the Snakefile asks for: the plan, the files that its rules make, one run per checkout at a time.

Snakemake itself is not imported here. The Snakefile's own process plans and holds the lock; the processes
that Snakemake starts for single jobs, and those that only look, do not wait for it.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TextIO

from pipeline.config.cache import current_plan, plan_of_the_run
from pipeline.environment import jobs_end_with_this, prefer_programs_in
from pipeline.errors import REMEDIES, ConfigError, KernelmillError, explained
from pipeline.mending import mend
from pipeline.progress import only_progress
from pipeline.records.plan import Plan, PlannedTask
from pipeline.store.layout import STAGES, output_path, spec_path
from pipeline.store.lock import take_lock

ROOT = Path("artifacts")
LOCK = ROOT / ".lock"
CONFIG_KEYS = ("experiment", "overrides")
LOOKING = (
    *("--lint", "--report", "--summary", "--detailed-summary", "--list"),
    *("--dag", "--rulegraph", "--filegraph"),
)
"""Options of Snakemake that run nothing."""


def open_workflow(config: Mapping[str, Any], *, main: bool, dryrun: bool) -> "Workflow":
    """Plan for Snakemake's `--config`; takes the checkout's lock where jobs will run.

    An error that the user can fix is one line, and ends the process.
    """
    if main and not dryrun:
        only_progress()
    looking = dryrun or is_looking()
    # `python` in the rules is the interpreter that runs Snakemake, also where its environment is not active.
    prefer_programs_in(Path(sys.executable).parent)
    jobs_end_with_this()
    try:
        lines = overrides_of(config)
        lock = take_lock(LOCK) if main and not looking else None
        find_plan = current_plan if main else plan_of_the_run
        plan = find_plan(lines, root=Path.cwd(), store=ROOT)
        if lock is not None:
            mend(plan, ROOT)
    except KernelmillError as error:
        _fail(str(error))
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        _fail(f"{error.filename or ROOT}: {explained(error)}")
    return Workflow(plan, lock)


def _fail(reason: str) -> NoReturn:
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(1)


def is_looking() -> bool:
    """Whether Snakemake was only asked to show something."""
    return any(argument.startswith(LOOKING) for argument in sys.argv[1:])


def overrides_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """`--config experiment=NAME overrides="…"` as overrides; a list of overrides is taken as it is.

    Raises
    ------
    ConfigError
        Another key, or overrides that are neither a string nor a list.
    """
    unknown = sorted(set(config) - set(CONFIG_KEYS))
    if unknown:
        raise ConfigError(f"--config {unknown[0]}=…: unknown key (known: {', '.join(CONFIG_KEYS)})")
    value = config.get("overrides", [])
    if isinstance(value, str):
        lines = shlex.split(value)
    elif isinstance(value, list) and all(isinstance(line, str) for line in value):
        lines = value
    else:
        raise ConfigError(f"--config overrides=…: expected 'group=option …', got {value!r}")
    chosen = [f"experiment={config['experiment']}"] if "experiment" in config else []
    return (*chosen, *lines)


class Workflow:
    """The files of a plan, by stage and key, as rules ask for them."""

    def __init__(self, plan: Plan, lock: TextIO | None = None) -> None:
        self.plan = plan
        self._lock = lock  # held as long as this object lives
        self._tasks = {stage: {getattr(task.row, stage): task for task in plan.tasks} for stage in STAGES}
        made = {each.key: str(ROOT / "mutate" / f"{each.key}.json") for each in plan.mutations}
        self.mutations = list(made.values())
        self.reported_mutations = [made[each.key] for each in plan.mutations if each.reported]
        self.cores = os.cpu_count() or 1
        self.aggregate = str(ROOT / "aggregate" / plan.aggregate / "summary.json")
        self.aggregate_spec = str(spec_path(ROOT, "aggregate", plan.aggregate))
        self.report = str(ROOT / "report" / plan.aggregate / "report.html")
        self.tracked = str(ROOT / "track" / plan.aggregate / "tracked.json")

    def log(self, stage: str) -> str:
        """Log of a job that there is once in a plan."""
        return str(ROOT / "logs" / stage / f"{self.plan.aggregate}.log")

    def outputs(self, stage: str) -> list[str]:
        """All files of a stage."""
        return [
            str(output_path(ROOT, stage, key, number))
            for key, task in self._tasks[stage].items()
            for number in range(task.row.rounds)
        ]

    def spec(self, stage: str) -> str:
        """Pattern of the spec's path."""
        return str(spec_path(ROOT, stage, "{key}"))

    def history(self, wildcards: Any) -> list[str]:
        """What the earlier rounds of a search measured."""
        task = self._task("generate", wildcards)
        return [
            str(output_path(ROOT, "profile", task.row.profile, number))
            for number in range(int(wildcards.round))
        ]

    def generated(self, wildcards: Any) -> str:
        """Variants for a compile job."""
        return self._before("generate", "compile", wildcards)

    def compiled(self, wildcards: Any) -> str:
        """Binaries for a verify job."""
        return self._before("compile", "verify", wildcards)

    def compiled_for_profile(self, wildcards: Any) -> str:
        """Binaries for a profile job."""
        return self._before("compile", "profile", wildcards)

    def verified(self, wildcards: Any) -> str:
        """Verdicts for a profile job."""
        return self._before("verify", "profile", wildcards)

    def compile_threads(self, wildcards: Any) -> int:
        """One per variant: small jobs overlap, a large one has all cores (Snakemake caps the number)."""
        return max(1, self._task("compile", wildcards).proposed)

    def verify_threads(self, wildcards: Any) -> int:
        """The same for verify."""
        return max(1, self._task("verify", wildcards).proposed)

    def profile_threads(self, wildcards: Any) -> int:
        """All cores where the CPU is measured, so that nothing else runs meanwhile."""
        return (os.cpu_count() or 1) if self._task("profile", wildcards).row.kind == "cpu" else 1

    def profile_gpus(self, wildcards: Any) -> int:
        """The GPU where one is measured: the profile's `resources: gpu=1` lets one job at a time have it."""
        row = self._task("profile", wildcards).row
        return int(row.kind != "cpu" and row.device_present)

    def _before(self, stage: str, later: str, wildcards: Any) -> str:
        key = getattr(self._task(later, wildcards).row, stage)
        return str(output_path(ROOT, stage, key, int(wildcards.round)))

    def _task(self, stage: str, wildcards: Any) -> PlannedTask:
        try:
            return self._tasks[stage][wildcards.key]
        except KeyError:
            path = output_path(ROOT, stage, wildcards.key, int(wildcards.round))
            hint = "python -m pipeline.plan --paths lists those of this plan"
            raise ConfigError(f"{path}: no task of this plan makes it ({hint})") from None
