"""Confine this process before it runs a candidate's code: what it may write, reach and see.

In: the folder that it may write to. Out: the names of the mechanisms that are active. Each is used where the
platform offers it without being asked for; what is missing is left out and not named.
"""

import os
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal, get_args

from pipeline.records.environment import SECRET
from pipeline.records.errors import WorkerError
from pipeline.sandbox.confinement import capabilities, landlock, mounts, seccomp, system_calls
from pipeline.sandbox.confinement.own_network import Network

Mechanism = Literal["read-only mounts", "landlock", "capabilities", "seccomp"]
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
"""What can be left out to find out which one a library cannot bear; candidates always get all of them."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/nvidia*", "/dev/kfd", "/dev/dri")
_PROCESSES = Path("/proc")
TRITON_CACHE = "triton"
_FOLDERS = {
    "TMPDIR": "tmp",
    "XDG_CACHE_HOME": "cache",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": TRITON_CACHE,
    "CUDA_CACHE_PATH": "cuda",
}


def confine(
    scratch: Path,
    writable: Sequence[Path] = (),
    *,
    mechanisms: Collection[Mechanism] = MECHANISMS,
    network: Network = "none",
) -> tuple[str, ...]:
    """Give up the right to write outside of `scratch` and `writable`, the network, and other processes.

    Everything stays readable and executable but the memory of other processes. Temporary files and caches of
    libraries go into `scratch`. In a network of its `own` (`own_network`) it may listen, but not connect: a
    tool watches it, whose threads in this process are held by the filter of system calls alone.
    Cannot be undone. Elsewhere than on Linux nothing is active.

    Raises
    ------
    WorkerError
        Called when there are threads already, which would stay free, or the kernel refused half-way.
    """
    _forget_keys()
    if not system_calls.available():
        _redirect_caches(scratch)
        return ()
    if network == "none" and system_calls.threads() > 1:
        raise WorkerError(
            "confine: got a process with several threads, expected one: call it before they start"
        )
    _redirect_caches(scratch)
    try:
        return _confine((scratch, *writable), mechanisms, network)
    except OSError as error:
        raise WorkerError(f"confine: the kernel refused: {error.strerror}") from error


def _confine(folders: Sequence[Path], mechanisms: Collection[Mechanism], network: Network) -> tuple[str, ...]:
    for folder in folders:
        if folder.is_relative_to(_PROCESSES):
            # Never closed: the kernel may forget this entry and make another one, to which no rule applies.
            os.open(folder, os.O_PATH | os.O_CLOEXEC)
    # First: the other mechanisms forbid mounting.
    mounted = mounts.read_only(folders) if "read-only mounts" in mechanisms else None
    system_calls.forgo_privileges()
    devices = [path for pattern in _DEVICES for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    active = (
        None if mounted is None else "read-only mounts",
        landlock.restrict((*folders, *(mounted or ()), *devices), network)
        if "landlock" in mechanisms
        else None,
        capabilities.drop() if "capabilities" in mechanisms else None,
        seccomp.restrict(seccomp.LISTENING if network == "own" else seccomp.UNCONNECTED)
        if "seccomp" in mechanisms
        else None,
    )
    system_calls.conceal()
    return (*(name for name in active if name is not None), "no new privileges", "undumpable")


def _forget_keys() -> None:
    """Kernels never see API keys; started by `pipeline.execution.workers.submit`, this process had none."""
    for name in [name for name in os.environ if name.endswith(SECRET)]:
        del os.environ[name]


def _redirect_caches(scratch: Path) -> None:
    """Libraries would write into the user's home, which is not writable and not theirs to change."""
    os.environ["HOME"] = str(scratch)
    for variable, name in _FOLDERS.items():
        os.environ[variable] = str(scratch / name)
    (scratch / _FOLDERS["TMPDIR"]).mkdir(exist_ok=True)  # the others are made when they are needed
    tempfile.tempdir = None  # looked up anew
