"""The first file of a job: unpacks project and libraries once, then becomes the project's command.

Standard library only, in a Python that old interpreters read: it has to tell them that they are too old.

python3 job.pyz run [--work FOLDER] [--out results.kmb] [further options of `kernelmill bundle run`]
python3 job.pyz show FILE

A job that was packed with --check checks the device in place of an experiment, and writes device_check.json.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NoReturn

FOLDER = "kernelmill-jobs"
JOB = "job.json"
COMPLETE = ".complete"
EXPERIMENT, CHECK = "experiment", "device check"
"""What `run` does in a job."""
USAGE = "usage: python3 job.pyz run [--work FOLDER] [--out FILE] [--minutes N] … | show FILE"


def main(arguments: list[str]) -> int:
    """Unpack, and become the project's command; returns where it cannot."""
    with zipfile.ZipFile(Path(sys.argv[0]).absolute()) as archive:
        job = json.loads(archive.read(JOB))
        problem = _problem(job, arguments)
        if problem:
            return _refuse(problem)
        command, *rest = arguments
        work = _option(rest, "--work")
        try:
            folder = unpack(archive, job["identity"], Path(work).absolute() if work else base_folder())
        except OSError as error:
            return _refuse(f"cannot be unpacked: {error} (--work FOLDER: another place)")
    return _become(folder, job, [sys.executable, "-m", "pipeline", *_command(job, command, rest)])


def _command(job: dict[str, Any], command: str, rest: list[str]) -> list[str]:
    """What the project is asked to do, with the files that it writes and reads where this was started."""
    if command != "run":
        return [
            "bundle",
            command,
            *(name if name.startswith("-") else str(Path(name).absolute()) for name in rest),
        ]
    check = job["runs"] == CHECK
    out = _option(rest, "--out") or ("device_check.json" if check else "results.kmb")
    begin = ["check", "--device"] if check else ["bundle", "run", *job["overrides"]]
    return [*begin, *rest, "--out", str(Path(out).absolute())]


def base_folder() -> Path:
    """Where jobs are unpacked: a folder of this user alone."""
    base = Path(tempfile.gettempdir()) / f"{FOLDER}-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    if base.stat().st_uid != os.getuid():
        raise OSError(f"{base} belongs to another user")
    return base


def unpack(archive: zipfile.ZipFile, identity: str, base: Path) -> Path:
    """The folder of this job; one that an earlier start filled is used again, with its results."""
    folder = base / identity
    if (folder / COMPLETE).is_file():
        return folder
    base.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=str(base)))
    try:
        archive.extractall(str(scratch))
        (scratch / COMPLETE).touch()
        scratch.rename(folder)
    finally:
        shutil.rmtree(str(scratch), ignore_errors=True)
    return folder


def library_paths(folder: Path, job: dict[str, Any]) -> list[str]:
    """Ours first; an extra one only where this machine has none of its own of that major version."""
    extras = [
        str(folder / "extra" / name)
        for name, version in sorted(job["extras"].items())
        if not _has_distribution(name, version)
    ]
    return [str(folder / "project"), str(folder / "lib"), *extras]


def _problem(job: dict[str, Any], arguments: list[str]) -> str | None:
    """Why this Python cannot run it."""
    have = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if have != job["python"]:
        return (
            f"made for Python {job['python']}, this is {have}: start it with another python3, "
            f"or pack it anew: kernelmill bundle pack --python {have}"
        )
    if not arguments or arguments[0] not in ("run", "show"):
        return USAGE
    missing = [name for name in job["needed"] if importlib.util.find_spec(name) is None]
    return f"{sys.executable} has no {', '.join(missing)}" if missing else None


def _has_distribution(name: str, version: str) -> bool:
    """Whether this machine has it in the same major version; `version` may be empty."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        here = distribution(name).version
    except PackageNotFoundError:
        return False
    return not version or here.split(".")[0] == version.split(".", maxsplit=1)[0]


def _become(folder: Path, job: dict[str, Any], command: list[str]) -> NoReturn:
    paths = library_paths(folder, job)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, before] if before else paths)
    os.chdir(str(folder / "project"))
    sys.stdout.flush()
    os.execv(command[0], command)


def _option(arguments: list[str], name: str) -> str | None:
    """Take `--name value` or `--name=value` out of the arguments."""
    for index, argument in enumerate(arguments):
        if argument == name and index + 1 < len(arguments):
            value = arguments[index + 1]
            del arguments[index : index + 2]
            return value
        if argument.startswith(f"{name}="):
            del arguments[index]
            return argument[len(name) + 1 :]
    return None


def _refuse(text: str) -> int:
    sys.stderr.write(f"error: {text}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
