"""Compile one variant without its device: run its launch on `meta` tensors, keep what the compiler made."""

import shutil
import traceback
from pathlib import Path

import triton

from pipeline.backends.backend import CompileJob, LaunchError
from pipeline.backends.machine_code.binary_digest import binary_digest
from pipeline.backends.triton.compiler_isolation import private_compiler
from pipeline.backends.triton.entry_source import constants, load_entry
from pipeline.backends.triton.error_summary import reason_of
from pipeline.backends.triton.execution_mode import require_compiler
from pipeline.backends.triton.facts import facts_of
from pipeline.backends.triton.offline_driver import BuiltKernel, recording
from pipeline.records.configuration.hardware import Target
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest_parts
from pipeline.records.results.compiled import Compiled

LOG = "log.txt"
KEPT = ("ttgir", "ptx", "cubin", "amdgcn", "hsaco", "json")
"""Stages whose result is kept; `json` is Triton's description of the binary, which loading needs."""


def compile_offline(job: CompileJob, root: Path, folder: Path) -> Compiled | Failure:
    """Compile every kernel that one launch on the workload's shape starts; the target need not be here."""
    log = folder / LOG
    log.touch()
    with private_compiler(log), recording(job.target, log) as recorder:
        require_compiler()
        failure = _launch(job, root, log)
        if failure is not None:
            return failure
        kernels = recorder.kernels()
        if not kernels:
            call = job.implementation.call
            name = call.function if call else job.implementation.entry
            reason = f"{name}(...) launched no Triton kernel on the workload's shape"
            return Failure(outcome=Outcome.COMPILE_ERROR, reason=reason, log=LOG)
        return _keep(kernels, job.target, folder)


def _launch(job: CompileJob, root: Path, log: Path) -> Failure | None:
    """Call the implementation as on a device."""
    from pipeline.backends.triton.simulated_device import device_present, tensors_of

    try:
        with device_present(job.target):
            load_entry(job, root)(**tensors_of(job.problem), **constants(job))
    except triton.OutOfResources as error:  # Triton compares the finished binary with the device's limits
        reason = f"{error.name}: got {error.required}, {job.target.architecture} has {error.limit}"
        return Failure(outcome=Outcome.LAUNCH_ERROR, reason=reason, log=LOG)
    except LaunchError as error:
        return Failure(outcome=Outcome.LAUNCH_ERROR, reason=str(error), log=LOG)
    except MemoryError as error:
        traceback.print_exc()
        return Failure(outcome=Outcome.OUT_OF_MEMORY, reason=f"while compiling: {error}", log=LOG)
    except (
        Exception,
        SystemExit,
    ) as error:  # its code may raise anything: that is the outcome
        traceback.print_exc()
        reason = reason_of(error, log.read_text(errors="replace"))
        return Failure(outcome=Outcome.COMPILE_ERROR, reason=reason, log=LOG)
    return None


def _keep(kernels: tuple[BuiltKernel, ...], target: Target, folder: Path) -> Compiled:
    """Copy what is worth keeping out of the private cache: kernel.cubin, kernel.1.cubin, …"""
    names = []
    binaries = {}
    for number, kernel in enumerate(kernels):
        for stage in KEPT:
            if stage in kernel.files:
                name = kept_name(number, stage)
                shutil.copyfile(kernel.files[stage], folder / name)
                names.append(name)
        binary = kept_name(number, kernel.binary.suffix[1:])
        binaries[binary] = binary_digest(kernel.binary.read_bytes())
    artifact = next(iter(binaries))
    return Compiled(
        artifact=artifact,
        artifact_digest=binaries[artifact] if len(binaries) == 1 else digest_parts(binaries),
        functions=tuple(kernel.name for kernel in kernels),
        grid=kernels[0].grid,
        facts=facts_of(kernels, target),
        files=(*names, LOG),
    )


def kept_name(number: int, stage: str) -> str:
    """File of one kernel's stage: `kernel.cubin` for the first kernel, `kernel.1.cubin` for the second."""
    return f"kernel.{number}.{stage}" if number else f"kernel.{stage}"
