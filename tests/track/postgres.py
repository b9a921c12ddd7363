"""A PostgreSQL of its own for a test: Debian's package, no privileges, loopback, a temporary folder."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

USERS = ("postgres", "nobody")
APT_SECONDS = 300.0


class Unavailable(Exception):
    """Why there is no PostgreSQL here."""


def programs() -> Path:
    """The folder of `initdb` and `pg_ctl`; installs the package where that is possible.

    Raises
    ------
    Unavailable
        It is not installed and cannot be.
    """
    found = _installed()
    if found is None:
        _install()
        found = _installed()
    if found is None:
        raise Unavailable("the package postgresql holds no pg_ctl")
    return found


def _installed() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    on_path = shutil.which("initdb")
    candidates = [*reversed(folders), *([Path(on_path).parent] if on_path else [])]
    return next((folder for folder in candidates if (folder / "pg_ctl").exists()), None)


def _install() -> None:
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable("PostgreSQL is not installed, and only root can: apt-get install postgresql")
    # Debian's package would make a cluster and start it: this one is not the machine's.
    folder = Path("/etc/postgresql-common")
    folder.mkdir(exist_ok=True)
    setting = folder / "createcluster.conf"
    if not setting.exists():
        setting.write_text("create_main_cluster = false\n")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--no-install-recommends", "postgresql"]
    try:
        for command in (["apt-get", "update"], install):
            subprocess.run(command, env=quiet, check=True, capture_output=True, timeout=APT_SECONDS)
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"apt-get install postgresql failed: {error.stderr.decode()[-200:]}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"apt-get did not end within {APT_SECONDS:.0f} s") from error


class Server:
    """A running PostgreSQL that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._programs = programs()
        self._user = _user()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        if self._user is not None:
            entry = pwd.getpwnam(self._user)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        self._run("initdb", "--auth=trust", "--username=kernelmill", "--encoding=UTF8", "--locale=C")

    @property
    def uri(self) -> str:
        """What MLflow takes."""
        return f"postgresql://kernelmill@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.folder}"
        self._run("pg_ctl", "--wait", "--log", str(self.folder / "log"), "--options", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is what a crash is."""
        self._run("pg_ctl", "--wait", "--mode", mode, "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command: Sequence[str] = (
            str(self._programs / program), "--pgdata", str(self.folder / "data"), *arguments,
        )  # fmt: skip
        # pg_ctl leaves its server with what it has open: nothing of ours.
        ended = subprocess.run(
            command,
            user=self._user,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=120,
        )
        log = self.folder / "log"
        assert ended.returncode == 0, f"{program}: {log.read_text() if log.is_file() else ended.returncode}"


def _user() -> str | None:
    """Whom the server runs as: it refuses to be root."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in USERS if name in known)


@contextmanager
def running() -> Iterator[Server]:
    """A server in a folder that its user can reach: pytest's own are private.

    Raises
    ------
    Unavailable
        There is none, and it cannot be installed.
    """
    folder = Path(tempfile.mkdtemp(prefix="km-postgres-"))
    try:
        server = Server(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
