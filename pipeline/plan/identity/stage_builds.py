"""What a stage's results depend on besides its inputs: code and toolchain, as `Build` records."""

import functools
from collections.abc import Iterator
from pathlib import Path

import pipeline
from pipeline.backends.devices.device_registry import device
from pipeline.backends.registry import backend, candidate_backends
from pipeline.plan.identity.import_closure import Code
from pipeline.plan.identity.tool_versions import (
    Toolchain,
    all_library_versions,
    find_tools,
    library_versions,
    version_of,
)
from pipeline.plan.memoize import Memoized
from pipeline.records.configuration.hardware import DeviceKind, Target
from pipeline.records.configuration.search_settings import Search
from pipeline.records.entry_points import entry_points
from pipeline.records.layout import STAGES
from pipeline.records.planning.specs import Build
from pipeline.records.record import digest
from pipeline.search.strategy_registry import members, module, strategy

REPLAY = "pipeline.interop.replay"
PRUNING = "pipeline.search.variant_pruning"
"""What `pipeline.stages.optional` imports: only the tasks that replay or prune depend on it."""
OTHERS = frozenset((*STAGES, "mutate", "judge", "timing", "verdicts", "optional", "table"))
"""Modules in `pipeline.stages` that do not run on the spec of aggregate."""
FORMATS = "kernelmill.formats"
"""Entry points of those that read recorded measurements."""


_OWN = f"{pipeline.__name__}."


class StageBuilds:
    """Makes the Build of every stage; each distinct one once."""

    def __init__(self, store: Path | None = None) -> None:
        """`store` is the artifact folder, where what was read of the code is kept."""
        assert pipeline.__file__ is not None
        kept = None if store is None else store / "plan" / "cache" / "code"
        self._code = functools.cache(Code(Path(pipeline.__file__).parents[1], kept=kept).digest)
        self._toolchains: dict[tuple[str, str], Toolchain] = {}
        self.of_backend = Memoized(self._of_backend)
        """(stage, backend, target) -> Build of compile, verify or profile with one backend."""

    @property
    def toolchains(self) -> tuple[Toolchain, ...]:
        """All that were asked for."""
        return tuple(self._toolchains.values())

    def generate(self, search: Search) -> Build:
        """Of generate with one search strategy, and the one that it may have search for it."""
        names = members(search)
        code = self._code("pipeline.stages.generate", *(module(name) for name in names))
        libraries = {library for name in names for library in strategy(name).libraries}
        versions = library_versions("generate") | {name: version_of(name) for name in sorted(libraries)}
        return Build(code=code, toolchain=versions)

    def _of_backend(self, stage: str, name: str, target: Target) -> Build:
        key = (name, digest(target))
        if key not in self._toolchains:
            self._toolchains[key] = find_tools(name, target)
        modules = (*_project_modules(backend(name)), *device_modules(stage, target.kind))
        return Build(
            code=self._code(f"pipeline.stages.{stage}", *modules),
            toolchain={**library_versions(stage), **self._toolchains[key].versions},
        )

    def replayed(self, stage: str) -> Build:
        """Of compile, verify or profile where recorded measurements are replayed: no backend takes part."""
        code = self._code(f"pipeline.stages.{stage}", REPLAY, *_formats())
        return Build(code=code, toolchain=library_versions("generate"))

    def pruning(self) -> str:
        """Digest of the code that decides which compiled variants a search does not want verified."""
        return self._code(PRUNING)

    def judge(self, target: Target) -> Build:
        """Of judge: with the tools of all backends whose language candidates may contain."""
        versions = library_versions("judge") | _candidate_tools(target)
        interpreters = [found for name in candidate_backends() if (found := backend(name).interpreter)]
        modules = [name for each in interpreters for name in each.preload if name.startswith(_OWN)]
        code = self._code("pipeline.stages.judge", *modules, *device_modules("verify", target.kind))
        return Build(code=code, toolchain=versions)

    def timing(self, target: Target) -> Build:
        """Of timing: candidates may be compiled by any of the languages' tools when they are loaded."""
        versions = library_versions("timing") | _candidate_tools(target)
        code = self._code("pipeline.stages.timing", *device_modules("timing", target.kind))
        return Build(code=code, toolchain=versions)

    def program(self, *modules: str) -> Build:
        """Of a result that no stage makes: these modules with what they import, and all libraries."""
        return Build(code=self._code(*modules), toolchain=all_library_versions())

    def aggregate(self) -> Build:
        """Of aggregate, report, track and all others that run once in a plan: they share one spec."""
        folder = Path(str(pipeline.__file__)).parent / "stages"
        stages = sorted(path.stem for path in folder.glob("[a-z]*.py") if path.stem not in OTHERS)
        code = self._code(*(f"pipeline.stages.{stage}" for stage in stages))
        return Build(code=code, toolchain=library_versions("aggregate"))


def _candidate_tools(target: Target) -> dict[str, str]:
    """Of all languages of candidates; a language whose packages are not installed has none."""
    versions: dict[str, str] = {}
    for name in candidate_backends():
        if all(version_of(package) != "absent" for package in backend(name).packages):
            versions |= find_tools(name, target).versions
        found = backend(name).extension_compiler(target)
        if found is not None:
            versions[found.name] = found.version
    return versions


def _project_modules(member: object) -> tuple[str, ...]:
    """Modules of this project that define a backend's or a device's class and its base classes.

    The code of other packages is part of the toolchain (`find_tools`).
    """
    return tuple(each.__module__ for each in type(member).__mro__ if each.__module__.startswith("pipeline."))


def device_modules(stage: str, kind: DeviceKind) -> tuple[str, ...]:
    """A verdict depends on the `Device`, a measurement on its `DeviceMeasurement` as well."""
    if stage not in ("verify", "mutate", "profile", "timing"):
        return ()
    found = device(kind)
    own = _project_modules(found)
    return (*own, *_project_modules(found.measurement())) if stage in ("profile", "timing") else own


def _formats() -> Iterator[str]:
    """The modules of the project's own formats."""
    for entry in entry_points(FORMATS).values():
        if entry.module.startswith("pipeline."):
            yield entry.module
