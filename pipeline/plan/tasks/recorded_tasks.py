"""Tasks on recorded measurements. In: a kernel, a target that names a file. Out: what the task is made of.

The file decides which implementation takes part: ours by the name that we export (`softmax.cpp`), any other
by its tunables. The values that do not occur in it are left out of the space, and so are rules on limits
which the target does not declare: the recording itself says which points exist.
"""

from collections.abc import Mapping, Set
from pathlib import Path

import msgspec

from pipeline.interop.formats.format_registry import combined, read_recorded
from pipeline.plan.tasks.resolution import Impossible, limits_of, problem_of
from pipeline.records.configuration.hardware import RECORDED, Hardware
from pipeline.records.configuration.kernel import Implementation, Kernel, Tunable, TunableValue
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.workload import Workload
from pipeline.records.errors import ConfigError, FormatError
from pipeline.records.formula import names_in
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record, digest_bytes
from pipeline.records.search.recorded_space import RecordedFile, RecordedSpace
from pipeline.search.spaces.search_space import constants_of

EXPECTED = (
    "expected the path of a T4 file, a cache file of Kernel Tuner or output of KTT: see docs/guide/replay.md"
)
EXPECTED_SPACE = f"expected the path of a T1 file, or '{RECORDED}' for the space of the measurements"
AXES = ("x", "y", "z")


class Replayed(Record, frozen=True, kw_only=True):
    """What differs in a task that replays."""

    file: RecordedFile
    problem: Problem
    implementations: dict[str, Implementation]

    @property
    def sources(self) -> dict[str, str]:
        """The file's digest in place of a source's, for each implementation."""
        return dict.fromkeys(self.implementations, self.file.digest)


class Replaying:
    """Reads the files of a plan, each once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._spaces: dict[str, tuple[RecordedSpace, str]] = {}
        self.read: set[Path] = set()
        """All files that were read: the plan is made again if one changes."""

    def task(
        self, kernel: Kernel, hardware: Hardware, workload: Workload, optimization: Optimization, where: str
    ) -> Replayed | None:
        """What a task on recorded measurements is made of; None where the target names none.

        Raises
        ------
        ConfigError
            The file is missing, or cannot be read.
        Impossible
            It has no results of this kernel, or of another problem.
        """
        if hardware.recorded is None:
            if hardware.kind == RECORDED:
                raise ConfigError(f"hardware.recorded: missing; {EXPECTED}")
            if kernel.space is not None:
                raise Impossible(f"{kernel.name} is known by recorded measurements alone: hardware=recorded")
            return None
        space, digest = self._file(hardware.recorded, "hardware.recorded")
        if not space.results:
            raise ConfigError(f"hardware.recorded={hardware.recorded}: it has no results; {EXPECTED}")
        if kernel.space is not None:
            name, declared = self._described(kernel.space, space)
            problem = _problem(kernel, declared, workload)
            implementation = _declared(declared)
        else:
            name = _implementation(kernel, space)
            problem = problem_of(kernel, workload, where)
            _check_problem(problem, space)
            known = constants_of(problem, limits_of(hardware)).keys()
            implementation = _narrowed(kernel.implementations[name], space, known)
        if optimization.implementations != "all" and name not in optimization.implementations:
            raise Impossible(f"{optimization.name} has no {name}, of which {space.source} has results")
        file = RecordedFile(
            path=hardware.recorded,
            digest=digest,
            format=space.format,
            device=space.device or _named(hardware),
            implementation=name,
            space=kernel.space if kernel.space not in (None, RECORDED) else None,
        )
        return Replayed(file=file, problem=problem, implementations={name: implementation})

    def _described(self, wanted: str, space: RecordedSpace) -> tuple[str, RecordedSpace]:
        if wanted != RECORDED:
            described, _ = self._file(wanted, "kernel.space")
            try:
                space = combined(described, space)
            except FormatError as error:
                raise ConfigError(f"kernel.space={wanted}: {error}") from None
        return space.kernel or RECORDED, space

    def _file(self, name: str, key: str) -> tuple[RecordedSpace, str]:
        if name not in self._spaces:
            path = self._root / name
            if not path.is_file():
                expected = EXPECTED if key == "hardware.recorded" else EXPECTED_SPACE
                what = "is no file" if path.exists() else "there is no such file"
                raise ConfigError(f"{key}={name}: {what}; {expected}")
            self.read.add(path.resolve())
            try:
                self._spaces[name] = read_recorded(path), digest_bytes(path.read_bytes())
            except FormatError as error:
                raise ConfigError(f"{key}: {error}") from None
        return self._spaces[name]


def _implementation(kernel: Kernel, space: RecordedSpace) -> str:
    """Whose results the file has."""
    named, _, implementation = (space.kernel or "").partition(".")
    ours = [implementation] if named == kernel.name else [] if implementation else [*kernel.implementations]
    fitting = [
        name
        for name in ours
        if name in kernel.implementations
        and kernel.implementations[name].tunables.keys() == space.tunables.keys()
    ]
    if len(fitting) != 1:
        has = f"{space.source} has results of {space.kernel or 'a kernel that it does not name'}"
        raise Impossible(f"{has} with the tunables {', '.join(space.tunables)}, and of no {kernel.name}")
    return fitting[0]


def _check_problem(problem: Problem, space: RecordedSpace) -> None:
    """Where we wrote the file it says on which dimensions; others count a problem's size in their own way."""
    sizes = tuple(problem.dimensions.values())
    if "." in (space.kernel or "") and space.problem and sorted(space.problem) != sorted(sizes):
        wanted = " ".join(f"{name}={size}" for name, size in problem.dimensions.items())
        got = " ".join(str(size) for size in space.problem)
        raise Impossible(f"{space.source} was measured on the dimensions {got}, not on {wanted}")


def _narrowed(implementation: Implementation, space: RecordedSpace, constants: Set[str]) -> Implementation:
    """With the values that occur in the results, and the rules that can be evaluated."""
    occurring = {name: [each.tunables[name] for each in space.results] for name in space.tunables}
    tunables = {name: _tunable(each, occurring[name]) for name, each in implementation.tunables.items()}
    known = constants | tunables.keys()
    rules = tuple(each for each in implementation.constraints if names_in(each.rule) <= known)
    return msgspec.structs.replace(implementation, tunables=tunables, constraints=rules)


def _tunable(declared: Tunable, occurring: list[TunableValue]) -> Tunable:
    values = tuple(each for each in declared.values if each in occurring)
    values += tuple(each for each in dict.fromkeys(occurring) if each not in values)
    default = declared.default if declared.default in values else values[0]
    off = declared.off if declared.off in values else None
    return msgspec.structs.replace(declared, values=values, default=default, off=off)


def _declared(space: RecordedSpace) -> Implementation:
    """An implementation that is nothing but its space."""
    return Implementation(
        backend=RECORDED,
        tunables={
            name: Tunable(values=values, default=space.defaults.get(name, values[0]))
            for name, values in space.tunables.items()
        },
        constraints=space.constraints,
        origin=space.source,
        licence="",
    )


def _problem(kernel: Kernel, space: RecordedSpace, workload: Workload) -> Problem:
    """Its size as the tuner counts it; other names in its rules are attributes."""
    sizes: Mapping[str, int] = dict(zip(AXES, space.problem, strict=False))
    return Problem(
        kernel=kernel.name,
        dimensions={f"problem_{axis}": size for axis, size in sizes.items()},
        tensors={},
        scalars={},
        attributes=dict(space.constants),
        element=workload.dtype,
    )


def _named(hardware: Hardware) -> str | None:
    """A named copy says whose measurements they are."""
    return None if hardware.name == RECORDED else hardware.name
