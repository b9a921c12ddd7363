"""What this machine is, for a bundle: names, versions and sizes, nothing that says whose it is."""

import ctypes
import importlib.metadata
import platform
import subprocess

from pipeline.plan.identity.tool_versions import all_library_versions
from pipeline.plan.local_machine import Machine
from pipeline.records.environment import untranslated

LIBRARIES = ("triton", "cuda-core", "pandas")
"""Beside those that stages compute with."""
ABSENT = "absent"
_TOOLS = {"g++": ("g++", "--version"), "nvcc": ("nvcc", "--version")}
_DRIVER_BYTES = 80  # NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
_SECONDS = 20


def device_of(machine: Machine, kinds: set[str]) -> str:
    """Product names of what measures tasks of these kinds; the processor where nothing is measured."""
    names = []
    if machine.gpu is not None and machine.gpu[0] in kinds:
        names.append(machine.gpu[2])
    if not names or "cpu" in kinds:
        names.append(machine.cpu.facts["model"])
    return " and ".join(names)


def environment_of(machine: Machine) -> dict[str, str]:
    """Python, libraries, tools, driver, processor and system; what is not there is not in it."""
    facts = machine.cpu.facts
    found = {
        "gpu": machine.gpu[2] if machine.gpu else ABSENT,
        "architecture": machine.gpu[1] if machine.gpu else machine.cpu.architecture,
        "driver": driver_version() or ABSENT,
        "cpu": facts["model"],
        "cores": facts["cores"],
        "threads": facts["threads"],
        "memory": f"{int(facts['memory_bytes']) / 2**30:.0f} GiB",
        "system": facts["system"],
        "python": platform.python_version(),
        **all_library_versions(),
        **{name: _version(name) for name in LIBRARIES},
        **{tool: _first_line(command) or ABSENT for tool, command in _TOOLS.items()},
    }
    return {name: value for name, value in found.items() if value != ABSENT}


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ABSENT


def driver_version() -> str | None:
    """Of NVIDIA's driver, as NVML says (nvmlSystemGetDriverVersion); None where there is none."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2() != 0:
        return None
    try:
        text = ctypes.create_string_buffer(_DRIVER_BYTES)
        failed = nvml.nvmlSystemGetDriverVersion(text, ctypes.c_uint(_DRIVER_BYTES))
        return None if failed else text.value.decode(errors="replace")
    finally:
        nvml.nvmlShutdown()


def _first_line(command: tuple[str, ...]) -> str | None:
    """What a compiler calls itself: its first line, of nvcc's the one with the release."""
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=True, env=untranslated()
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = [line for line in ended.stdout.splitlines() if line.strip()]
    release = [line for line in lines if "release" in line]
    return next(iter([*release, *lines]), None)
