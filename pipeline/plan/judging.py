"""Plan the judging of a folder of problems: its specs are written, nothing of it is run.

In: the folder, a hardware target, a preset of verify. Out: `Judging`: keys and paths for Snakemake, and what
is wrong with the folder, one line each.
"""

import difflib
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.interop.problem_sets.converted_folder import file_name
from pipeline.interop.problem_sets.model_copies import with_copy_of_model
from pipeline.interop.problem_sets.problem_set_registry import convert_folder
from pipeline.performance.quantities import counted
from pipeline.plan.config.compose import composer
from pipeline.plan.config.groups import check_option, option_file
from pipeline.plan.config.options import OptionLoader
from pipeline.plan.config.overrides import Overrides
from pipeline.plan.config.schema import to_record
from pipeline.plan.identity.stage_builds import StageBuilds
from pipeline.plan.local_machine import Machine, ResolvedHardware, fingerprint, read_machine, resolve
from pipeline.plan.spec_files import write_spec
from pipeline.plan.tasks.resolution import limits_of
from pipeline.records.configuration.hardware import RECORDED, Hardware, Target
from pipeline.records.configuration.stage_settings import Profile, Tracking, Verify
from pipeline.records.errors import ConfigError
from pipeline.records.planning.specs import key_of
from pipeline.records.record import Record, digest
from pipeline.records.results.judged import CandidateFile, JudgeSpec, ProblemFolder, VerdictsSpec
from pipeline.records.results.timed import TimingSpec
from pipeline.verify.candidates.kernelbench import complaints, problem_folder, scan

Candidates = Literal["given", "copy_of_model", "submitted"]
"""What is judged: the folder's candidates, or in their place a copy of each problem's own `Model`, or what
comes later for any of the problems."""

NEAREST = 3
"""Names that are shown for a pattern that matches nothing."""
HELD_OUT = "quick"
"""Preset of conf/profile for sizes that a problem does not declare."""


class JudgingRequest(NamedTuple):
    """What is judged, and how."""

    folder: Path
    hardware: str = "local"
    verify: str = "standard"
    profile: str | None = None
    """Preset of conf/profile by which candidates that passed are timed; None: nothing is timed."""
    candidates: Candidates = "given"
    only: tuple[str, ...] = ()
    """Patterns of `problem` or `problem/candidate`: what none of them matches is left out; empty: nothing."""


class Judging(Record, frozen=True, kw_only=True):
    """What there is to judge."""

    problems: dict[str, ProblemFolder]
    """By key of judge, in the order of the rows."""
    unanswered: tuple[ProblemFolder, ...]
    """Problems of the folder without a candidate, which are not among `problems`."""
    timings: dict[str, str]
    """Key of judge -> key of timing; empty where nothing is timed."""
    verdicts: str
    """Key of verdicts."""
    complaints: tuple[str, ...]
    on_device: bool
    """Whether candidates run on a GPU that is present."""
    is_timed: bool
    """Whether those that pass are measured."""


def plan_judging(request: JudgingRequest, *, root: Path, store: Path) -> Judging:
    """Write the specs of all problems; `root` is the repository, `store` the artifact folder.

    Folders in the formats of other projects are converted into the store first.

    Raises
    ------
    ConfigError
        The folder holds nothing to judge, nothing that `only` matches, or there is no such option.
    """
    folder = request.folder
    imported = store / "imported" / f"{file_name(folder.name)}-{digest(str(folder.absolute()))}"
    problems, unanswered, left_out = _problems(request, imported)
    machine = read_machine()
    options = _options(request, root / "conf", machine)
    device, hardware = options.device, request.hardware
    if device.hardware.kind == RECORDED or device.hardware.recorded is not None:
        raise ConfigError(
            f"hardware={hardware}: recorded measurements are replayed, and judge nobody's source"
        )
    settings = options.verify
    if request.candidates == "copy_of_model":
        settings = msgspec.structs.replace(settings, own_work=False)
    target = _target(device.hardware)
    builds = StageBuilds(store)
    build = builds.judge(target)
    keys: dict[str, ProblemFolder] = {}
    timings: dict[str, str] = {}
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
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", problem.name)
        key = key_of(name, spec)
        write_spec(store, "judge", key, spec)
        keys[key] = problem
        if options.profile is not None and options.held_out is not None:
            timing = TimingSpec(
                parent=key,
                problem=problem,
                hardware=hardware,
                target=target,
                device_present=device.present,
                device=fingerprint(device, machine),
                settings=options.profile,
                held_out=options.held_out,
                build=builds.timing(target),
            )
            timings[key] = key_of(name, timing)
            write_spec(store, "timing", timings[key], timing)
    timed = None if request.profile is None else tuple(timings.values())
    table = VerdictsSpec(folder=str(folder), keys=tuple(keys), timed=timed)
    name = key_of("verdicts", table)
    write_spec(store, "verdicts", name, table)
    return Judging(
        problems=keys,
        unanswered=unanswered,
        timings=timings,
        verdicts=name,
        complaints=(*left_out, *(line for problem in problems for line in complaints(problem))),
        is_timed=request.profile is not None,
        on_device=device.present and not executes_on_host(target.kind),
    )


def _problems(
    request: JudgingRequest, imported: Path
) -> tuple[tuple[ProblemFolder, ...], tuple[ProblemFolder, ...], tuple[str, ...]]:
    """What is judged, what has no candidate, and a line for each thing that was left out."""
    folder, candidates = request.folder, request.candidates
    converted = convert_folder(folder, imported)
    left_out: tuple[str, ...] = ()
    if converted is None:
        problems = scan(folder)
    else:
        root = folder.absolute()
        problems = tuple(
            problem_folder(Path(each.folder), name=each.name, root=_within(Path(each.folder), root, imported))
            for each in converted.problems
        )
        left_out = converted.complaints
    if request.only:
        problems = matching(problems, request.only, folder)
    if candidates == "copy_of_model":
        copies = imported / "copies_of_model"
        return tuple(with_copy_of_model(each, copies) for each in problems), (), left_out
    if converted is None or candidates == "submitted":
        return problems, (), left_out
    judged = tuple(each for each in problems if each.candidates)
    unanswered = tuple(each for each in problems if not each.candidates)
    if not judged:
        raise ConfigError(
            f"{folder}: {counted(len(problems), 'problem')} without a candidate; expected one, "
            "or --copy-of-model to judge the problems themselves"
        )
    if unanswered:
        line = f"{folder}: {len(unanswered)} of {len(problems)} problems have no candidate"
        left_out = (*left_out, line)
    return judged, unanswered, left_out


def matching(
    problems: tuple[ProblemFolder, ...], patterns: Iterable[str], folder: Path
) -> tuple[ProblemFolder, ...]:
    """Problems with a name that a pattern matches, and of others the candidates whose name it matches.

    Patterns are those of a shell, and `*` stands for a slash as well: `*/sample_0`.

    Raises
    ------
    ConfigError
        A pattern matches nothing.
    """
    kept: dict[str, dict[str, CandidateFile]] = {}
    for pattern in patterns:
        found = {each.name: _matched(each, pattern) for each in problems}
        found = {name: chosen for name, chosen in found.items() if chosen is not None}
        if not found:
            raise ConfigError(f"--only {pattern}: matches nothing in {folder}; {_nearest(problems, pattern)}")
        for name, chosen in found.items():
            kept.setdefault(name, {}).update((each.name, each) for each in chosen or ())
    return tuple(
        msgspec.structs.replace(
            each, candidates=tuple(own for own in each.candidates if own.name in kept[each.name])
        )
        for each in problems
        if each.name in kept
    )


def _matched(problem: ProblemFolder, pattern: str) -> tuple[CandidateFile, ...] | None:
    """The candidates that a pattern chooses; None if it matches neither the problem nor one of them."""
    if fnmatchcase(problem.name, pattern):
        return problem.candidates
    own = (each for each in problem.candidates if fnmatchcase(f"{problem.name}/{each.name}", pattern))
    return tuple(own) or None


def _nearest(problems: Iterable[ProblemFolder], pattern: str) -> str:
    """Names that hold the most of the pattern's letters, in runs: a pattern is shorter than what it means."""
    plain = re.sub(r"[*?\[\]]", "", pattern).lower()
    several = list(problems)
    names = [each.name for each in several]
    if any(plain.startswith(f"{name.lower()}/") for name in names):  # a candidate of a known problem
        names = [f"{each.name}/{own.name}" for each in several for own in each.candidates] or names

    def distance(name: str) -> tuple[int, float]:
        pairs = difflib.SequenceMatcher(None, plain, name.lower(), autojunk=False)
        return -sum(block.size for block in pairs.get_matching_blocks()), -pairs.ratio()

    return f"the nearest names: {', '.join(sorted(names, key=distance)[:NEAREST])}"


def _within(problem: Path, root: Path, imported: Path) -> Path:
    return root if problem.is_relative_to(root) else imported


def tracking_settings(name: str, root: Path) -> Tracking:
    """An option of conf/tracking.

    Raises
    ------
    ConfigError
        There is no such option.
    """
    conf = root / "conf"
    check_option(conf, "tracking", name, f"--tracking {name}")
    with composer(conf) as hydra:
        return to_record(hydra.option("tracking", name), Tracking, option_file(conf, "tracking", name))


class _Options(NamedTuple):
    """What the request chooses."""

    device: ResolvedHardware
    verify: Verify
    profile: Profile | None
    held_out: Profile | None


def _options(request: JudgingRequest, conf: Path, machine: Machine) -> _Options:
    chosen = {"hardware": request.hardware, "verify": request.verify}
    if request.profile is not None:
        chosen["profile"] = request.profile
    for group, name in chosen.items():
        check_option(conf, group, name, f"--{group} {name}")
    with composer(conf) as hydra:
        catalogue = OptionLoader(hydra, Overrides(choices={}, values={}), conf.parent)
        declared = catalogue.all_hardware()
        profile, held_out = None, None
        if request.profile is not None:
            profile = catalogue.preset("profile", request.profile, Profile)
            quick = catalogue.preset("profile", HELD_OUT, Profile)
            # One baseline: torch.compile would compile for each of the sizes.
            held_out = msgspec.structs.replace(quick, baselines=("eager",))
        return _Options(
            device=resolve(declared[request.hardware], declared, machine),
            verify=catalogue.preset("verify", request.verify, Verify),
            profile=profile,
            held_out=held_out,
        )


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
