"""The specs of mutate: one per implementation of a kernel, over all tasks of the plan that hold it.

In: the verify specs of the tasks. Out: MutateSpecs; and the explanations of survivors, which stand in
`survivors.yaml` beside the sources and above them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from pipeline.plan.config.options import Settings
from pipeline.plan.identity.stage_builds import Builds
from pipeline.plan.tasks.stage_specs import Specs
from pipeline.records.errors import ConfigError
from pipeline.records.kernel import Implementation
from pipeline.records.record import digest
from pipeline.records.settings import Verify
from pipeline.records.specs import MutateSpec, MutateTask
from pipeline.verify.mutation.mutant_generation import LANGUAGES

SURVIVORS = "survivors.yaml"


def mutate_specs(
    tasks: Iterable[Specs], settings: Settings, presets: Mapping[str, Verify], builds: Builds
) -> tuple[MutateSpec, ...]:
    """One spec per kernel and implementation; tasks that differ only in their target count once."""
    groups: dict[tuple[str, str], dict[str, Specs]] = {}
    for each in tasks:
        if each.verify.recorded is not None:  # nothing runs, so nothing can be killed
            continue
        for name, implementation in each.verify.implementations.items():
            # An installed package's sources are not ours to change, and of CUDA C++ no mistakes are known.
            if implementation.call is not None or Path(implementation.source).suffix not in LANGUAGES:
                continue
            group = groups.setdefault((each.generate.kernel, name), {})
            group.setdefault(digest([each.verify.problem, _where(each)]), each)
    # The experiment's own may have been overridden.
    judging = (settings.verify if name == settings.verify.name else each for name, each in presets.items())
    judges = tuple(msgspec.structs.replace(each, description="") for each in judging)
    return tuple(
        MutateSpec(
            kernel=kernel,
            implementation=name,
            source_digest=next(iter(group.values())).generate.source_digests[name],
            tasks=tuple(_task(each, name, builds) for each in group.values()),
            presets=judges,
            settings=msgspec.structs.replace(settings.mutation, name="", description="", report=False),
        )
        for (kernel, name), group in groups.items()
    )


def explanations(implementation: Implementation, root: Path) -> dict[str, str]:
    """Mutant -> why it survives: from `survivors.yaml` in the source's folder and in those above it.

    Raises
    ------
    ConfigError
        A file is not a mapping of names to texts.
    """
    found: dict[str, str] = {}
    for folder in Path(implementation.source).parents:
        found = _read_survivors(root / folder / SURVIVORS, (folder / SURVIVORS).as_posix()) | found
    return found


def _read_survivors(path: Path, where: str) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        found: Any = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: not YAML: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise ConfigError(f"{where}: expected `mutant: why it survives` lines")
    return {str(name): " ".join(text.split()) for name, text in found.items()}


def _where(specs: Specs) -> str:
    """Targets that are absent are interpreted, all alike."""
    spec = specs.verify
    return spec.target.architecture if spec.device_present else "absent"


def _task(specs: Specs, name: str, builds: Builds) -> MutateTask:
    spec = specs.verify
    implementation = spec.implementations[name]
    build = builds.of_backend("mutate", implementation.backend, spec.target)
    verify = msgspec.structs.replace(
        spec, parent="", implementations={name: implementation}, builds={implementation.backend: build}
    )
    space = specs.generate.implementations[name]
    return MutateTask(space=space, limits=specs.generate.limits, verify=verify)
