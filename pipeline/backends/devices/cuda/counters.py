"""Hardware counters of one call on an NVIDIA GPU: a command in, what Nsight Compute counted out.

ncu starts the command, replays each of its kernels as often as it has counters to
read, and writes a table. Its times are those of replayed, serialised kernels: no time of a result comes from
here. Clocks are left as they are (`--clock-control none`): ncu's default would lock them for everyone.

Source: Nsight Compute CLI manual, https://docs.nvidia.com/nsight-compute/NsightComputeCli/, and its profiling
guide for the names of the metrics. Which of them a chip has, ncu says when it is asked.
"""

import contextlib
import csv
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pipeline.backends.devices.device import CALL_REFUSED
from pipeline.records.environment import untranslated
from pipeline.records.results.profiled import Counters, KernelCounters, Unmeasured

TOOL = "ncu"
PLACES = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute")
SECONDS = 120.0  # for one call: imports, first call, then some ten replays of each kernel
LAUNCHES = 64  # of one call that are counted, at most
LACKING = "ncu does not have it for this device, or not for every launch"

TIME = "gpu__time_duration.sum"  # nanoseconds
METRICS = (
    TIME,
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__t_bytes.sum",
    "lts__t_sector_hit_rate.pct",
    "l1tex__t_sector_hit_rate.pct",
    "l1tex__data_bank_conflicts_pipe_lsu.sum",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed.sum",
    "sm__inst_executed_pipe_tensor.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
)


def find_ncu() -> Path | None:
    """On the path, or where NVIDIA's packages put it; the newest of several."""
    found = shutil.which(TOOL)
    if found is not None:
        return Path(found)
    single, versions = map(Path, PLACES)
    candidates = [single, *sorted(versions.glob(f"*/{TOOL}"), reverse=True)]
    return next((path for path in candidates if path.is_file()), None)


def count(
    command: Sequence[str], folder: Path, *, flush_cache: bool, seconds: float = SECONDS
) -> Counters | Unmeasured:
    """Counters of the one call of a process between cudaProfilerStart and cudaProfilerStop.

    All its launches together and one by one; `folder` takes the files. Caches are left as the call before has
    left them, or emptied by ncu before each launch. ncu does not see launches within a graph.
    """
    ncu = find_ncu()
    if ncu is None:
        return _absent(f"{TOOL} (Nsight Compute) is not installed")
    table = folder / "ncu.csv"
    caches = "all" if flush_cache else "none"
    metrics: tuple[str, ...] = METRICS
    while True:
        table.unlink(missing_ok=True)
        code, output = _run([str(ncu), *_options(metrics, caches, table), *command], folder, seconds)
        text = table.read_text(errors="replace") if table.is_file() else ""
        refused = [name for name in metrics if any(name in line for line in _errors(text + output))]
        if not refused or len(refused) == len(metrics):
            break
        metrics = tuple(name for name in metrics if name not in refused)  # this ncu, or chip, lacks them
    if code is None:
        return _absent(f"{TOOL}: no answer within {seconds:g} s")
    return _judged(code, text, output)


def parse(text: str) -> tuple[KernelCounters, ...]:
    """ncu's table (`--csv --page raw`): names, units, then one line a launch; lines before it are left out.

    A metric that the chip does not have is `n/a` there and absent here.
    """
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return ()
    rows = list(csv.DictReader(line for line in lines[start:] if line.startswith('"')))
    return tuple(
        KernelCounters(kernel=row["Kernel Name"], values=_values(row))
        for row in rows
        if row.get("ID")  # the line of units has no number
    )


def summed(kernels: Sequence[KernelCounters]) -> dict[str, float]:
    """Of one call: sums are added, shares weighted by time; what one launch lacks is left out."""
    totals: dict[str, float] = {}
    for name in METRICS:
        values = [kernel.values.get(name) for kernel in kernels]
        weights = [1.0 if name.endswith(".sum") else kernel.values.get(TIME) for kernel in kernels]
        pairs = zip(values, weights, strict=True)
        known = [(value, weight) for value, weight in pairs if value is not None and weight is not None]
        if len(known) < len(kernels) or not known:
            continue
        total = sum(value * weight for value, weight in known)
        totals[name] = total if name.endswith(".sum") else total / sum(weight for _, weight in known)
    return totals


def lines() -> dict[str, str]:
    """For people: whether there is a profiler. Whether it may read counters shows at its first use."""
    ncu = find_ncu()
    return {"counters": f"absent: {TOOL} (Nsight Compute) is not installed" if ncu is None else str(ncu)}


def _options(metrics: Sequence[str], caches: str, table: Path) -> tuple[str, ...]:
    return (
        *("--csv", "--page", "raw", "--print-units", "base", "--log-file", str(table)),
        *("--profile-from-start", "off", "--launch-count", str(LAUNCHES)),
        *("--clock-control", "none", "--cache-control", caches),
        *("--metrics", ",".join(metrics)),
    )


def _run(command: Sequence[str], folder: Path, seconds: float) -> tuple[int | None, str]:
    """Exit code, None after a timeout, and what was printed; the whole session ends with it."""
    # Its lock file in the shared temporary folder would keep other users out.
    environment = untranslated() | {"TMPDIR": str(folder)}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, ""
    else:
        return process.returncode, output
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _judged(code: int, text: str, output: str) -> Counters | Unmeasured:
    if "ERR_NVGPUCTRPERM" in text + output:
        return _absent(
            f"{TOOL}: this user may not read the GPU's counters: run as root, or load the driver with"
            " NVreg_RestrictProfilingToAdminUsers=0 (https://developer.nvidia.com/ERR_NVGPUCTRPERM)"
        )
    kernels = parse(text)
    values = summed(kernels)
    if values:
        lacking = dict.fromkeys((name for name in METRICS if name not in values), LACKING)
        return Counters(tool=TOOL, values=values, kernels=kernels, absent=lacking)
    if code == CALL_REFUSED:
        return _absent(f"under {TOOL} the callable refused: {_last_line(output)}")
    errors = _errors(text + output)
    return _absent(f"{TOOL}: {errors[-1] if errors else _last_line(output) or f'exit code {code}, no table'}")


def _errors(text: str) -> list[str]:
    marked = [line for line in text.splitlines() if line.startswith("==ERROR==")]
    return [line.removeprefix("==ERROR==").strip() for line in marked]


def _values(row: dict[str, str]) -> dict[str, float]:
    """Numbers are grouped in thousands."""
    texts = {name: (row.get(name) or "").replace(",", "") for name in METRICS}
    return {name: float(text) for name, text in texts.items() if text.replace(".", "", 1).isdecimal()}


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or [""])[-1][:300]


def _absent(reason: str) -> Unmeasured:
    return Unmeasured(quantity="counters", reason=reason)
