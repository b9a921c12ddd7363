"""Tables, MLflow and report of what a bundle brought, as for an experiment that ran here."""

import os
import sys
from pathlib import Path

import msgspec

from pipeline.execution.bundle.bundle_file import Bundle
from pipeline.execution.chain.stage_commands import StageCommands
from pipeline.execution.chain.stage_processes import Command, run_all
from pipeline.plan.config.compose import composer
from pipeline.plan.config.options import OptionLoader
from pipeline.plan.config.overrides import parse
from pipeline.plan.identity.stage_builds import StageBuilds
from pipeline.plan.spec_files import write_spec
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.errors import BundleError
from pipeline.records.planning.specs import AggregateSpec, key_of
from pipeline.records.record import Record


class FinalOutputs(Record, frozen=True, kw_only=True):
    """Where the results are read."""

    summary: str
    tracked: str
    report: str


def spec_here(bundle: Bundle, spec: AggregateSpec, tracking: Tracking) -> AggregateSpec:
    """The spec for this checkout: its tables are made here and logged as is usual here, the results there."""
    return msgspec.structs.replace(
        spec, origin=bundle.manifest.origin, tracking=tracking, build=StageBuilds().aggregate()
    )


def tracking_of(name: str | None, repository: Path) -> Tracking:
    """An option of conf/tracking; None: the one that config.yaml chooses.

    Raises
    ------
    ConfigError
        There is no such option.
    """
    lines = () if name is None else (f"tracking={name}",)
    overrides = parse(lines, repository / "conf")
    with composer(repository / "conf") as hydra:
        return OptionLoader(hydra, overrides, repository).settings().tracking


def run_final_stages(spec: AggregateSpec, root: Path) -> FinalOutputs:
    """Run aggregate, track, report, and put the report into the sweep's run.

    Raises
    ------
    BundleError
        A stage failed; its last words are in the text.
    """
    key = key_of(spec.experiment, spec)
    write_spec(root, "aggregate", key, spec)
    commands = StageCommands(root, len(os.sched_getaffinity(0))).final(key)
    for command in commands:
        run_one(command)
    outputs = {command.stage: str(command.output) for command in commands if command.output is not None}
    return FinalOutputs(summary=outputs["aggregate"], tracked=outputs["track"], report=outputs["report"])


def run_one(command: Command) -> None:
    """Run a command that has to succeed.

    Raises
    ------
    BundleError
        It did not.
    """
    (job,) = run_all([command], cores=1, deadline=None, say=lambda line: print(line, file=sys.stderr))
    if job.error:
        raise BundleError(f"{job.error} (log: {command.log})")
