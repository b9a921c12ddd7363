"""A real Slurm of one node, started by hand as the test's own user: no systemd, no accounting, a counted GPU.

Debian's packages slurm-wlm and munge are installed where they are missing and that is possible. Everything
that runs is on loopback, lies in one folder, is stopped by its process id, and ends with the process that
started it, also when that is killed.
"""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PLUGIN = "snakemake-executor-plugin-slurm>=2.8,<3"
MODULE = "snakemake_executor_plugin_slurm"
DAEMONS = ("munged", "slurmctld", "slurmd")
COMMANDS = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo", "sacct", "sacctmgr", "sshare")
CPUS = 2
START_SECONDS = 30.0
_END_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")

_CONF = """\
ClusterName=kernelmill
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
CredType=cred/munge
# A job that is put back starts after this; a node that still ends its first start would be drained.
AuthInfo=socket={folder}/munge.socket,cred_expire=20
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MpiDefault=none
# By process group: linuxproc loses what a killed batch script leaves behind, and ends the job without it.
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
# What the executor asks squeue about may not be forgotten at once.
MinJobAge=3600
KillWait=2
# A node that the test sets down stays down until the test says otherwise.
ReturnToService=1
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
GresTypes=gpu
NodeName={node} NodeAddr=127.0.0.1 CPUs={cpus} Gres=gpu:h200:1 State=UNKNOWN
PartitionName=main Nodes={node} Default=YES MaxTime=60 State=UP
PartitionName=gpu Nodes={node} MaxTime=60 State=UP
"""

_WRAPPER = """\
#!/bin/sh
export SLURM_CONF={conf}
{more}exec {program} "$@"
"""

# A node has its GPU for those who asked for it: the library that tells about it is found in their jobs only.
_WITH_GPU = """\
case "$SLURM_JOB_GPUS $*" in
  [0-9]* | *--gres=gpu*) export LD_LIBRARY_PATH={gpu} ;;
esac
"""


def missing() -> str | None:
    """Install what is not there; the reason why the tests cannot run, or None."""
    absent = [name for name in (*DAEMONS, "srun") if _find(name) is None]
    if absent:
        if os.getuid() != 0 or shutil.which("apt-get") is None:
            return f"{', '.join(absent)} not found, and only root can install slurm-wlm and munge (Debian)"
        failed = _install_packages()
        if failed:
            return f"{', '.join(absent)} not found, and apt-get could not install them: {failed}"
    return None


def plugin_path(folder: Path) -> Path | str | None:
    """The executor plugin: None if it is here, else the folder it was put in, or why it could not be."""
    if importlib.util.find_spec(MODULE) is not None:
        return None
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]
    # Its dependencies, Snakemake's interfaces, are here already in versions that fit this Snakemake.
    parts = [PLUGIN, "snakemake-executor-plugin-slurm-jobstep", "throttler"]
    ended = subprocess.run(
        [*command, str(folder), "--no-deps", *parts], capture_output=True, text=True, timeout=120, check=False
    )
    if ended.returncode != 0:
        return f"{PLUGIN} is not installed, and pip could not: {_last(ended.stderr)}"
    return folder


class Slurm:
    """A running cluster; `environment` has its commands first on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = socket.gethostname().split(".")[0]
        self.gpu = folder / "gpu"
        self._daemons: list[subprocess.Popen[bytes]] = []
        for name in ("state", "spool", "bin", "gpu"):
            (folder / name).mkdir()
        self._configure()
        self._start()

    @property
    def path(self) -> str:
        """A PATH on which the cluster's commands come first."""
        return os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])

    def __call__(self, *command: str, check: bool = True) -> str:
        """Run one of Slurm's commands; its output."""
        ended = subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert not check or ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def jobs(self, state: str = "RUNNING,PENDING") -> list[str]:
        """Ids of the jobs in these states."""
        return self("squeue", "--noheader", "--format=%i", f"--states={state}").split()

    def described(self, job: str) -> dict[str, str]:
        """What scontrol tells about a job."""
        words = self("scontrol", "show", "job", job, "--oneliner").split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def stop(self) -> None:
        """End the daemons, the node first."""
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _configure(self) -> None:
        ports = _free_ports(2)
        conf = self.folder / "slurm.conf"
        conf.write_text(
            _CONF.format(
                host=socket.gethostname(),
                node=self.node,
                user=pwd.getpwuid(os.getuid()).pw_name,
                folder=self.folder,
                controller_port=ports[0],
                node_port=ports[1],
                cpus=CPUS,
            )
        )
        # A counted resource needs a device file, any one.
        (self.folder / "gres.conf").write_text(f"NodeName={self.node} Name=gpu Type=h200 File=/dev/null\n")
        (self.folder / "cgroup.conf").write_text("IgnoreSystemd=yes\n")
        for name in COMMANDS:
            program = _find(name)
            if program is None:
                continue
            more = _WITH_GPU.format(gpu=self.gpu) if name == "srun" else ""
            wrapper = self.folder / "bin" / name
            wrapper.write_text(_WRAPPER.format(conf=conf, program=program, more=more))
            wrapper.chmod(0o755)

    def _start(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        munge = ["--foreground", "--force", "--num-threads=2", f"--socket={self.folder}/munge.socket"]
        munge += [f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        self._daemon("munged", *munge)
        self._until((self.folder / "munge.socket").exists, "munged opens its socket")
        conf = str(self.folder / "slurm.conf")
        self._daemon("slurmctld", "-D", "-f", conf)
        self._daemon("slurmd", "-D", "-f", conf, "-N", self.node)
        self._until(lambda: "idle" in self("sinfo", "--noheader", "--format=%T", check=False), "an idle node")

    def _daemon(self, name: str, *arguments: str) -> None:
        program = _find(name)
        assert program is not None, name
        with (self.folder / f"{name}.out").open("wb") as stream:
            self._daemons.append(
                subprocess.Popen(
                    [*_END_WITH_PARENT, program, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                    env={**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")},
                    start_new_session=True,
                )
            )

    def _until(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            ended = [daemon.args for daemon in self._daemons if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                self.stop()
                raise AssertionError(f"waited for: {what}; ended: {ended}\n{self._logs()}")
            time.sleep(0.1)

    def _logs(self) -> str:
        """The ends of the daemons' logs."""
        paths = [*self.folder.glob("*.out"), *self.folder.glob("*.log")]
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in paths)


def _find(program: str) -> str | None:
    """Daemons lie in sbin, which not every user's PATH has."""
    return shutil.which(program, path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"]))


def _install_packages() -> str | None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["update", "-q"],
        ["install", "-q", "-y", "--no-install-recommends", "slurm-wlm", "munge"],
    ):
        ended = subprocess.run(
            ["apt-get", *command], env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        if ended.returncode != 0:
            return _last(ended.stderr)
    return None


def _last(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "it did not say why")


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports
