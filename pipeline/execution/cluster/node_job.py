"""A stage in a job on a node: the machine is compared with the plan's, then the stage runs as everywhere.

python -m pipeline.execution.cluster.node_job STAGE ARGUMENTS…    as for python -m pipeline.stages.STAGE

A plan is made on one machine and its jobs run on others. What they make is kept under the tools and the
device that the plan named, so a node that has others must refuse.
"""

import argparse
import importlib
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipeline.backends.devices.device_registry import device
from pipeline.plan.identity.tool_versions import find_tools, library_versions
from pipeline.plan.local_machine import identity, read_machine
from pipeline.records.configuration.hardware import Target
from pipeline.records.errors import ConfigError, KernelmillError
from pipeline.records.planning.specs import Build, CompileSpec, MutateSpec, ProfileSpec, VerifySpec
from pipeline.records.record import read_record
from pipeline.stages.table import STAGES


def main(arguments: Sequence[str]) -> int:
    """Command line; returns the stage's exit code."""
    if not arguments:
        print("usage: python -m pipeline.execution.cluster.node_job STAGE ARGUMENTS…", file=sys.stderr)
        return 2
    stage, rest = arguments[0], list(arguments[1:])
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--spec", type=Path)
    try:
        spec = parser.parse_known_args(rest)[0].spec
        if spec is not None:
            check(stage, spec)
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sys.argv = [f"pipeline.stages.{stage}", *rest]
    return int(importlib.import_module(f"pipeline.stages.{stage}").main(rest))


def check(stage: str, spec: Path) -> None:
    """Compare this machine with what a spec was planned for.

    Raises
    ------
    ConfigError
        Another device or other versions: the first difference, and what to do.
    """
    for difference in _differences(stage, spec):
        raise ConfigError(f"{stage} {spec.stem}: this node ({platform.node()}) {difference}")


def _differences(stage: str, path: Path) -> Iterator[str]:
    kind = STAGES[stage].spec if stage in STAGES else None
    match None if kind is None else read_record(path, kind):
        case CompileSpec() as spec:
            yield from _tools(stage, spec.target, spec.builds)
        case VerifySpec() as spec:
            yield from _tools(stage, spec.target, spec.builds)
            yield from _target(spec)
        case MutateSpec(tasks=tasks):
            for task in tasks:
                yield from _tools(stage, task.verify.target, task.verify.builds)
                yield from _target(task.verify)
        case ProfileSpec() as spec:
            yield from _tools(stage, spec.target, spec.builds)
            yield from _device(spec)


def _tools(stage: str, target: Target, builds: Mapping[str, Build]) -> Iterator[str]:
    libraries = library_versions(stage)
    for name, build in builds.items():
        here = {**libraries, **find_tools(name, target).versions}
        for tool in sorted({*here, *build.toolchain}):
            planned, found = build.toolchain.get(tool, "absent"), here.get(tool, "absent")
            if planned != found:
                yield (
                    f"has {tool} {found}, the plan was made with {planned}: "
                    "give all machines the same environment (docs/guide/clusters.md)"
                )


def _target(spec: VerifySpec) -> Iterator[str]:
    """Whether binaries for the target run here, as the plan says."""
    target = spec.target
    if not spec.device_present:
        return
    mismatch = device(target.kind).mismatch(target)
    if mismatch is not None:
        yield f"{mismatch}: {_ADVICE}"


def _device(spec: ProfileSpec) -> Iterator[str]:
    if not spec.device_present:
        return
    machine = read_machine()
    if identity(spec.target.kind, machine) != spec.device:
        facts = machine.cpu.facts
        gpu = machine.accelerator.name if machine.accelerator else "no GPU"
        yield (
            f"is not the device that the plan names: here are {gpu}, {facts['model']}, "
            f"{facts['cores']} cores, {facts['threads']} threads: {_ADVICE}"
        )


_ADVICE = (
    "ask a node of this target with `kernelmill nodes probe`, "
    "and see partition, constraint and cpus in the profile's site.yaml"
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
