"""The only module that reads environment variables; each one is a function that says what it is for."""

import os
import tempfile
from pathlib import Path

from pipeline.records.errors import ConfigError

# Variables that begin so change what Triton, LLVM or ptxas emit, or whether Triton compiles at all.
COMPILER_SETTINGS = (
    "TRITON_", "AMDGCN_", "PTXAS_", "NVPTX_", "LLVM_", "MLIR_", "USE_IR_LOC", "DISABLE_",
)  # fmt: skip


def compiler() -> str | None:
    """$CXX: the C++ compiler that the user prefers, as build tools everywhere take it."""
    return os.environ.get("CXX") or None


def untranslated() -> dict[str, str]:
    """All variables, with messages of programs in plain English: reasons are shown, searched and compared."""
    return {**os.environ, "LC_ALL": "C"}


SECRET = "_API_KEY"
"""How the name of a variable ends that processes which run kernels never get."""
RUN = "KERNELMILL_RUN"


def jobs_end_with_this() -> None:
    """$KERNELMILL_RUN: the Snakemake process that jobs end with (`pipeline.execution.workers.submit`)."""
    os.environ[RUN] = str(os.getpid())


def that_end_with_this() -> dict[str, str]:
    """All variables for stages that another program than Snakemake starts: they end with this process."""
    return {**os.environ, RUN: str(os.getpid())}


WARM = "KERNELMILL_WARM"


def is_job_of(worker: Path) -> None:
    """$KERNELMILL_WARM: where the warm worker listens whose job this process is."""
    os.environ[WARM] = str(worker)


def warm_worker() -> Path | None:
    """The same; None of a process that is none, and of a cluster's job, whose processes end with it."""
    worker = os.environ.get(WARM)
    return None if worker is None or ON_NODE in os.environ else Path(worker)


def prefer_programs_in(folder: Path) -> None:
    """$PATH: programs of this folder first, for the processes that this one starts."""
    paths = os.environ.get("PATH", "").split(os.pathsep)
    if paths[0] != str(folder):
        os.environ["PATH"] = os.pathsep.join([str(folder), *paths])


def rename_completed_command(old: str, new: str) -> None:
    """$COMP_LINE: the command line that the shell wants completed, with another name for the program."""
    line = os.environ.get("COMP_LINE", "")
    if line.startswith(old):
        os.environ["COMP_LINE"] = new + line.removeprefix(old)


def user_cache() -> Path | None:
    """$XDG_CACHE_HOME, or ~/.cache: what can be made again and all checkouts of this user share; None
    without a home. Relative paths do not count (XDG Base Directory Specification 0.8)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):  # noqa: PTH117  (an empty one is no path)
        return Path(named)
    home = os.path.expanduser("~")  # noqa: PTH111  (`Path.home` raises where there is none)
    return Path(home, ".cache") if os.path.isabs(home) else None  # noqa: PTH117


def visible_devices() -> tuple[str, ...] | None:
    """$CUDA_VISIBLE_DEVICES: the devices that this process may use; None where it is not restricted."""
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return None
    return tuple(part.strip() for part in value.split(",") if part.strip())


def mlflow_defaults() -> None:
    """MLflow's own variables unless the user set them: no telemetry, and a dead server is reported soon."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")  # five processes for other features
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # two lines for each run


def mlflow_server_defaults() -> None:
    """The same for the server, whose libraries' warnings are not for the user's terminal."""
    mlflow_defaults()
    os.environ.setdefault("PYTHONWARNINGS", "ignore")


FRONT = "KERNELMILL_FRONT"


WORKER_SECONDS = "KERNELMILL_WORKER_SECONDS"


def worker_seconds(default: float) -> float:
    """$KERNELMILL_WORKER_SECONDS: how long the warm worker waits for its next job."""
    try:
        return max(float(os.environ[WORKER_SECONDS]), 0.0)
    except (KeyError, ValueError):
        return default


def front_address() -> str | None:
    """$KERNELMILL_FRONT: where the command listens that shows this run's progress."""
    return os.environ.get(FRONT)


def that_report_to(address: str) -> dict[str, str]:
    """All variables for a process whose progress is shown by the command that listens there."""
    return {**os.environ, FRONT: address}


def forget_front() -> None:
    """The same variable: no process that runs candidates knows the address."""
    os.environ.pop(FRONT, None)


def let_hydra_raise() -> bool:
    """$HYDRA_FULL_ERROR: Hydra raises its errors, it prints none; whether the user wants tracebacks."""
    wanted = os.environ.get("HYDRA_FULL_ERROR") == "1"
    os.environ["HYDRA_FULL_ERROR"] = "1"
    return wanted


SHARED_STORE = "KERNELMILL_STORE"


def shared_store() -> str | None:
    """$KERNELMILL_STORE: path or URL of the store that this checkout shares with others."""
    return os.environ.get(SHARED_STORE) or None


def use_shared_store(url: str) -> None:
    """The same for this process and those that it starts."""
    os.environ[SHARED_STORE] = url


def api_key(name: str) -> str | None:
    """The variable that a search names: the key of a language model's endpoint; never written anywhere."""
    return os.environ.get(name) or None


def api_keys() -> tuple[str, ...]:
    """Every variable whose name ends with _API_KEY: what must not stand in anything that leaves."""
    return tuple(value for name, value in os.environ.items() if name.endswith("_API_KEY") and value)


EMULATE_CUDA = "KERNELMILL_EMULATE_CUDA"


def emulates_cuda() -> bool:
    """$KERNELMILL_EMULATE_CUDA: set by verify for processes that run CUDA C++ on the CPU."""
    return os.environ.get(EMULATE_CUDA) == "1"


def forget_compiler_settings() -> None:
    """Forget $TRITON_INTERPRET and its like: a result must not depend on the user's shell."""
    for name in [name for name in os.environ if name.startswith(COMPILER_SETTINGS)]:
        del os.environ[name]


ON_NODE = "KERNELMILL_ON_NODE"


def inside_slurm() -> bool:
    """$SLURM_JOB_ID: whether Slurm started this process."""
    return "SLURM_JOB_ID" in os.environ


def stages_run_on_a_node() -> None:
    """$KERNELMILL_ON_NODE: for the stages of a cluster's job, which start nothing that could outlive it."""
    os.environ[ON_NODE] = "1"


def use_scratch(folder: str) -> Path:
    """$TMPDIR: temporary files of this process and those that it starts; `folder` may name variables.

    Raises
    ------
    ConfigError
        The folder is not there, or a variable of it is not set.
    """
    path = Path(os.path.expandvars(folder))
    if not path.is_dir():
        raise ConfigError(f"scratch: {folder}: no such folder on this node ({path})")
    os.environ["TMPDIR"] = str(path)
    tempfile.tempdir = None  # what was found earlier
    return path
