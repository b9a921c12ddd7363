"""What the machine and its device report: versions, identity, conditions, energy, counters, ceilings.

python -m pipeline.execution.device_check.checked_machine KIND: the call that a profiler counts.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.backends.devices.cuda.nvml import Nvml
from pipeline.backends.devices.cuda.toolkit import find_tool
from pipeline.backends.devices.device import DeviceMeasurement, NotAvailable
from pipeline.backends.devices.device_ceilings import DeviceCeilings
from pipeline.backends.devices.device_registry import device
from pipeline.execution.bundle.writing import driver_version, environment_of
from pipeline.execution.device_check.check_processes import CheckSetting
from pipeline.execution.device_check.check_report import CheckAnswer
from pipeline.execution.machine_ceilings import measured
from pipeline.performance.quantities import rate, seconds, share
from pipeline.performance.roofline import per_second
from pipeline.plan.config.options import declared_hardware
from pipeline.plan.identity.tool_versions import version_of
from pipeline.plan.local_machine import ABSENT, read_machine, resolve
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.environment import untranslated
from pipeline.records.results.profiled import Unmeasured

CONF = Path("conf")
_LIBRARIES = ("torch", "triton", "numpy", "cuda-core", "cuda-bindings", "nvidia-ml-py")
_TOOL_SECONDS = 20
_NEARLY = 0.05  # by how much NVML and torch may differ: the driver keeps a part of the memory for itself
_IDENTITIES = ("identity", "other processes")
"""Readings that say which machine it is, or what others do there."""
_READ = ("clock", "power", "energy counter")
"""Readings without which conditions are incomplete."""
_BUSY_SECONDS = 0.6  # an energy counter advances every 20 to 100 ms
_SIZE = 4096  # of the matrices that keep the device busy
_LACKING = ("is not installed", "may not read")
"""Why there are no counters, where the machine is to blame and not this project."""


def check_versions(setting: CheckSetting) -> CheckAnswer:
    """Libraries, driver and tools; what is missing is named."""
    profiler = device(setting.kind).measurement().counter_lines().get("counters", ABSENT)
    ncu = profiler if Path(profiler).is_file() else None
    figures = {**environment_of(read_machine()), **dict(_versions(ncu))}
    figures.setdefault("gpu", ABSENT)
    present = {name: text for name, text in figures.items() if text != ABSENT}
    missing = [name for name, text in figures.items() if text == ABSENT]
    named = ("python", "torch", "CUDA of torch", "triton", "driver")
    parts = [f"{name} {present[name]}" for name in named if name in present]
    parts += [f"missing: {', '.join(missing)}"] if missing else []
    lacks_driver = setting.device is not None and ABSENT in (figures["driver"], figures["torch"])
    return CheckAnswer(status="failed" if lacks_driver else "ok", detail="; ".join(parts), figures=figures)


def _versions(ncu: str | None) -> Iterator[tuple[str, str]]:
    import torch

    for name in _LIBRARIES:
        yield name, version_of(name)
    yield "CUDA of torch", str(torch.version.cuda or torch.version.hip or ABSENT)
    yield "driver", driver_version() or ABSENT
    tools = {"nvcc": find_tool("nvcc"), "ncu": ncu, "compute-sanitizer": find_tool("compute-sanitizer")}
    for name, place in tools.items():
        yield name, ABSENT if place is None else _version_line(place)
    yield "ninja", "present" if find_tool("ninja") else ABSENT


def _version_line(place: str) -> str:
    """The line of `--version` that has a number after `version` or `release`."""
    try:
        ended = subprocess.run(
            [place, "--version"],
            capture_output=True,
            text=True,
            timeout=_TOOL_SECONDS,
            check=True,
            env=untranslated(),
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"present, but --version fails: {type(error).__name__}"
    lines = [line.strip() for line in ended.stdout.splitlines() if line.strip()]
    numbered = [line for line in lines if "release" in line or "ersion " in line]
    return next(iter([*numbered, *lines]), "present")


def check_device(setting: CheckSetting) -> CheckAnswer:
    """The driver's library and torch describe the same device."""
    _require_device(setting)
    import torch

    here = device(setting.kind)
    module = getattr(torch, here.torch_device)
    if not module.is_available():
        return CheckAnswer(
            status="failed", detail=f"{setting.device}: torch finds no {here.torch_device} device"
        )
    if not hasattr(module, "get_device_properties"):
        raise NotAvailable(f"torch describes no {here.torch_device} device")
    seen = module.get_device_properties(0)
    # CUDA's builds of torch have `gcnArchName`, too: it is the device's name there.
    architecture = seen.gcnArchName.partition(":")[0] if torch.version.hip else f"sm_{seen.major}{seen.minor}"
    memory = _driver_memory()
    figures = {
        "name": str(setting.device),
        "name by torch": seen.name,
        "architecture": str(setting.architecture),
        "architecture by torch": architecture,
        "memory by torch": f"{seen.total_memory} B",
        "devices by torch": str(module.device_count()),
        **({} if memory is None else {"memory": f"{memory} B"}),
    }
    differing = [name for name in ("name", "architecture") if figures[name] != figures[f"{name} by torch"]]
    if memory is not None and abs(memory - seen.total_memory) > _NEARLY * memory:
        differing.append("memory")
    size = f"{seen.total_memory / 2**30:.1f} GiB"
    text = f"{seen.name}, {architecture}, {size}"
    if differing:
        pairs = (f"{name}: {figures[name]}, torch: {figures[f'{name} by torch']}" for name in differing)
        words = "; ".join(pairs)
        return CheckAnswer(status="failed", detail=f"driver and torch disagree: {words}", figures=figures)
    return CheckAnswer(status="ok", detail=f"{text}; driver and torch agree", figures=figures)


def _driver_memory() -> int | None:
    """Bytes, as NVML reports them; None where it does not."""
    try:
        with Nvml() as nvml:
            return nvml.device().memory_bytes()
    except NotAvailable:
        return None


def check_conditions(setting: CheckSetting) -> CheckAnswer:
    """Clock, power and energy can be read, and the energy counter advances while the device works."""
    _require_device(setting)
    measurement = device(setting.kind).measurement()
    source = measurement.conditions()
    try:
        _work(setting, 0.2)
        figures = {name: text for name, text in source.lines().items() if name not in _IDENTITIES}
    finally:
        source.close()
    used = _energy(setting, measurement)
    figures["energy of work"] = f"{used:.1f} J in about {_BUSY_SECONDS:g} s"
    lacking = [f"{name} {figures.get(name, ABSENT)}" for name in _READ if _is_absent(figures, name)]
    if lacking:
        return CheckAnswer(status="absent", detail="; ".join(lacking), figures=figures)
    text = "; ".join(f"{name} {figures[name]}" for name in ("clock", "power"))
    if used <= 0:
        return CheckAnswer(
            status="failed", detail=f"the energy counter stands still; {text}", figures=figures
        )
    return CheckAnswer(status="ok", detail=f"{text}; {figures['energy of work']}", figures=figures)


def _is_absent(figures: Mapping[str, str], name: str) -> bool:
    return figures.get(name, ABSENT).startswith(ABSENT)


def _energy(setting: CheckSetting, measurement: DeviceMeasurement) -> float:
    """Joules while the device works."""
    with measurement.energy_meter() as meter:
        before = meter.joules()
        _work(setting, _BUSY_SECONDS)
        return meter.joules() - before


def _work(setting: CheckSetting, duration: float) -> None:
    import torch

    here = device(setting.kind)
    matrix = here.allocate(_SIZE * _SIZE, torch.float32).view(_SIZE, _SIZE)
    end = time.monotonic() + duration
    while time.monotonic() < end:
        torch.mm(matrix, matrix)
        here.synchronize()


def check_counters(setting: CheckSetting) -> CheckAnswer:
    """The profiler counts one launch."""
    _require_device(setting)
    measurement = device(setting.kind).measurement()
    lines = measurement.counter_lines()
    if not measurement.has_profiler:
        raise NotAvailable("; ".join(lines.values()))
    folder = Path(setting.folder).absolute() / "counters"
    folder.mkdir(exist_ok=True)
    command = (sys.executable, "-m", __spec__.name, setting.kind)
    found = measurement.count_process(command, folder, flush_cache=False)
    if isinstance(found, Unmeasured):
        missing = any(words in found.reason for words in _LACKING)
        return CheckAnswer(status="absent" if missing else "failed", detail=found.reason)
    figures = {name: f"{value:g}" for name, value in found.values.items()}
    figures |= {name: f"{ABSENT}: {reason}" for name, reason in found.absent.items()}
    kernels = ", ".join(dict.fromkeys(each.kernel[:60] for each in found.kernels))
    detail = f"{found.tool}: {len(found.values)} counters of {kernels or 'one call'}"
    if found.absent:
        detail += f"; without {', '.join(found.absent)}"
    return CheckAnswer(status="ok", detail=detail, figures=figures)


def check_ceilings(setting: CheckSetting) -> CheckAnswer:
    """Bandwidth and matrix products, as shares of what conf/hardware declares."""
    _require_device(setting)
    hardware = target_here(setting)
    root = Path(setting.folder) / "ceilings"
    found = measured("local", "again", root=root, conf=CONF).ceilings
    rates = dict(_rates(found, hardware))
    figures = {name: text for name, (text, _) in rates.items()}
    figures |= {f"launch, {name}": seconds(value) for name, value in found.launch_seconds.items()}
    figures |= {"disturbed": "; ".join(found.disturbed)} if found.disturbed else {}
    shares = {name: text for name, (text, declared) in rates.items() if declared}
    shown = shares or figures
    return CheckAnswer(
        status="ok", detail="; ".join(f"{name} {text}" for name, text in shown.items()), figures=figures
    )


def _rates(found: DeviceCeilings, hardware: Hardware) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Name -> text, and whether the hardware declares a peak for it."""
    bandwidths = {"copy": found.copy, "read": found.read, "triad": found.triad}
    for name, points in bandwidths.items():
        yield name, _share(hardware, "dram_bandwidth", points[-1].bandwidth, "B/s")
    for unit, values in (("matrix", found.matrix_flops), ("vector", found.vector_flops)):
        for dtype, flops in values.items():
            operations = "OP/s" if dtype.startswith("int") else "FLOP/s"
            yield f"{unit} {dtype}", _share(hardware, f"{unit}_{dtype}", flops, operations)


def _share(hardware: Hardware, name: str, value: float, unit: str) -> tuple[str, bool]:
    peak = hardware.peaks.get(name)
    if peak is None:
        return rate(value, unit), False
    return f"{rate(value, unit)} ({share(value / per_second(name, peak))} of the declared peak)", True


def target_here(setting: CheckSetting) -> Hardware:
    """What conf/hardware declares for the device of this machine.

    Raises
    ------
    NotAvailable
        It declares nothing of the architecture.
    """
    declared = declared_hardware(CONF)
    found = resolve(declared["local"], declared, read_machine())
    if found.hardware.kind != setting.kind:
        raise NotAvailable(f"conf/hardware declares no {setting.architecture} (docs/recipes/hardware.md)")
    return found.hardware


def _require_device(setting: CheckSetting) -> None:
    if setting.device is None:
        raise NotAvailable(setting.absence)


def _profiled_call(kind: str) -> None:
    """One addition, after another one that warms up."""
    import torch

    here = device(kind)
    tensor = here.allocate(1 << 24, torch.float32)
    tensor.add_(1)
    here.synchronize()
    with here.measurement().profiled():
        tensor.add_(1)


if __name__ == "__main__":
    _profiled_call(sys.argv[1])
