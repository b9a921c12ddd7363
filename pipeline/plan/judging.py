"""Plan the judging of a folder of problems: its specs are written, nothing of it is run.

In: the folder, a hardware target, a preset of verify. Out: `Judging`: keys and paths for Snakemake, and what
is wrong with the folder, one line each.
"""

import re
from pathlib import Path

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.plan.config.compose import composer
from pipeline.plan.config.groups import check_option, option_file
from pipeline.plan.config.options import OptionLoader
from pipeline.plan.config.overrides import Overrides
from pipeline.plan.config.schema import to_record
from pipeline.plan.identity.stage_builds import StageBuilds
from pipeline.plan.local_machine import Machine, ResolvedHardware, read_machine, resolve
from pipeline.plan.spec_files import write_spec
from pipeline.plan.tasks.resolution import limits_of
from pipeline.records.configuration.hardware import RECORDED, Hardware, Target
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.errors import ConfigError
from pipeline.records.planning.specs import key_of
from pipeline.records.record import Record, digest
from pipeline.records.results.judged import JudgeSpec, ProblemFolder, VerdictsSpec
from pipeline.verify.candidates.flashinfer.conversion import convert, plain_name
from pipeline.verify.candidates.flashinfer.data_set import is_data_set
from pipeline.verify.candidates.kernelbench import complaints, scan


class Judging(Record, frozen=True, kw_only=True):
    """What there is to judge."""

    problems: dict[str, ProblemFolder]
    """By key of judge, in the order of the rows."""
    verdicts: str
    """Key of verdicts."""
    complaints: tuple[str, ...]
    on_device: bool
    """Whether candidates run on a GPU that is present."""


def plan_judging(folder: Path, *, hardware: str, verify: str, root: Path, store: Path) -> Judging:
    """Write the specs of all problems; `root` is the repository, `store` the artifact folder.

    A data set in the format of flashinfer-bench is imported into the store first.

    Raises
    ------
    ConfigError
        The folder holds nothing to judge, or there is no such option.
    """
    if is_data_set(folder):
        name = f"{plain_name(folder.name)}-{digest(str(folder.absolute()))}"
        folder = convert(folder, store / "imported" / name)
    problems = scan(folder)
    machine = read_machine()
    device, settings = _options(hardware, verify, root / "conf", machine)
    if device.hardware.kind == RECORDED or device.hardware.recorded is not None:
        raise ConfigError(
            f"hardware={hardware}: recorded measurements are replayed, and judge nobody's source"
        )
    target = _target(device.hardware)
    build = StageBuilds().judge(target)
    keys: dict[str, ProblemFolder] = {}
    for problem in problems:
        spec = JudgeSpec(
            problem=problem,
            hardware=hardware,
            target=target,
            device_present=device.present,
            device=_model(device, machine),
            settings=settings,
            build=build,
        )
        key = key_of(re.sub(r"[^A-Za-z0-9_.-]", "_", problem.name), spec)
        write_spec(store, "judge", key, spec)
        keys[key] = problem
    table = VerdictsSpec(folder=str(folder), keys=tuple(keys))
    name = key_of("verdicts", table)
    write_spec(store, "verdicts", name, table)
    return Judging(
        problems=keys,
        verdicts=name,
        complaints=tuple(line for problem in problems for line in complaints(problem)),
        on_device=device.present and not executes_on_host(target.kind),
    )


def _options(hardware: str, verify: str, conf: Path, machine: Machine) -> tuple[ResolvedHardware, Verify]:
    for group, name in (("hardware", hardware), ("verify", verify)):
        check_option(conf, group, name, f"--{group} {name}")
    with composer(conf) as hydra:
        catalogue = OptionLoader(hydra, Overrides(choices={}, values={}), conf.parent)
        declared = catalogue.all_hardware()
        plain = hydra.option("verify", verify)
        settings = to_record(plain, Verify, option_file(conf, "verify", verify))
        return resolve(declared[hardware], declared, machine), settings


def _target(hardware: Hardware) -> Target:
    """What candidates are shown of a device; on the processor they see what is there."""
    limits = {} if executes_on_host(hardware.kind) else limits_of(hardware)
    return Target(kind=hardware.kind, architecture=hardware.architecture, limits=limits)


def _model(device: ResolvedHardware, machine: Machine) -> str:
    """What candidates run on: an absent device is stood in for by the processor."""
    found = machine.device(device.hardware.kind)
    if device.present and found is not None:
        return found.name
    return machine.cpu.facts.get("model", machine.cpu.architecture)
