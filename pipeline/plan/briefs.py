"""What agents are told of a task: the kernel, the device and kernels of the same category in, a Brief out."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pipeline.plan.tasks.resolution import limits_of
from pipeline.records.agent import Agent
from pipeline.records.brief import Brief, Exemplar
from pipeline.records.errors import ConfigError
from pipeline.records.hardware import Hardware, Target
from pipeline.records.kernel import Implementation, Kernel
from pipeline.records.record import Record, digest_bytes


class Subject(Record, frozen=True, kw_only=True):
    """What a brief is about."""

    agent: Agent | None
    """None: no language model writes, the brief is for diagnosing."""
    kernel: Kernel
    implementations: dict[str, Implementation]
    """Those that fit the target."""
    hardware: Hardware
    reference_digest: str
    kernels: Mapping[str, Kernel]
    """All that are declared."""


def brief_of(subject: Subject, root: Path, digest: Callable[[Implementation], str]) -> Brief:
    """The brief; `digest` tells an implementation's sources.

    Raises
    ------
    ConfigError
        The source to start from is not there, or no implementation has one that could be changed.
    """
    kernel, hardware = subject.kernel, subject.hardware
    if subject.agent and all(each.call is not None for each in subject.implementations.values()):
        raise ConfigError(
            f"search=llm: {kernel.name}: no implementation for {hardware.name} has a source here"
        )
    return Brief(
        description=kernel.description,
        category=kernel.category,
        reference=kernel.reference,
        reference_digest=subject.reference_digest,
        cost=kernel.cost,
        deterministic=kernel.deterministic,
        special_values=kernel.special_values,
        target=Target(
            kind=hardware.kind,
            architecture=hardware.architecture,
            limits=limits_of(hardware),
            features=hardware.features,
        ),
        device=hardware.facts.get("model"),
        peaks=hardware.peaks,
        exemplars=tuple(_exemplars(subject, digest))[: subject.agent.exemplars] if subject.agent else (),
        start_digest=_start(subject.agent, root) if subject.agent else None,
    )


def _start(agent: Agent, root: Path) -> str | None:
    if agent.start is None:
        return None
    path = (root / agent.start).resolve()
    if not path.is_relative_to(root.resolve()) or not path.is_file():
        text = f"search.agent.start: {agent.start}: no such file"
        raise ConfigError(f"{text}; it is a path from the repository's root")
    return digest_bytes(path.read_bytes())


def _exemplars(subject: Subject, digest: Callable[[Implementation], str]) -> Iterator[Exemplar]:
    """Other kernels of the category, for the same backends, with sources in this repository."""
    backends = {each.backend for each in subject.implementations.values()}
    for name, kernel in sorted(subject.kernels.items()):
        if kernel.category != subject.kernel.category or name == subject.kernel.name:
            continue
        for key, implementation in kernel.implementations.items():
            if implementation.call is None and implementation.backend in backends:
                yield Exemplar(
                    kernel=name,
                    implementation=key,
                    source=implementation.source,
                    digest=digest(implementation),
                    origin=implementation.origin,
                    licence=implementation.licence,
                )
