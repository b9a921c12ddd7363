"""A job is one file with all it needs, and says at once where it cannot run."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pipeline.execution.bundle import bootstrap, packing
from pipeline.execution.bundle.packing import TargetPython, files_of, with_needs
from pipeline.records.errors import BundleError
from pipeline.store.current_provenance import REVISION, revision
from tests.paths import ROOT

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job for this Python, made without network."""
    path = tmp_path_factory.mktemp("job") / "job.pyz"
    target = TargetPython(python=HERE, machine=packing.platform.machine())
    packing.pack(path, ("experiment=smoke",), target, extras=(), root=ROOT)
    return path


def start(job: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it with a Python that sees none of this environment's libraries."""
    command = [sys.executable, "-S", str(job), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def with_job(job: Path, path: Path, **changes: object) -> Path:
    """A copy whose job.json says something else."""
    with zipfile.ZipFile(job) as archive, zipfile.ZipFile(path, "w") as copy:
        said = json.loads(archive.read(bootstrap.JOB)) | changes
        copy.writestr(bootstrap.JOB, json.dumps(said))
        copy.writestr("__main__.py", archive.read("__main__.py"))
    return path


def test_what_is_in_it(job: Path) -> None:
    """Project, revision and libraries; no caches, no tests, no artifacts, nothing for another Python."""
    with zipfile.ZipFile(job) as archive:
        names = set(archive.namelist())
        said = json.loads(archive.read(bootstrap.JOB))
    assert {"__main__.py", "project/pipeline/cli/__init__.py", "project/conf/config.yaml"} <= names
    assert {"lib/hydra/__init__.py", "lib/simpleeval.py", "lib/antlr4/__init__.py"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith("project/tests")]
    tags = {name for name in names if ".cpython-" in name and f"cpython-{HERE.replace('.', '')}" not in name}
    assert not tags
    assert said["overrides"] == ["experiment=smoke"] and said["python"] == HERE
    assert (f"project/{REVISION}" in names) == (revision(ROOT) is not None)
    assert job.stat().st_size < 16 << 20


@pytest.mark.slow
def test_it_plans_where_nothing_of_the_project_is_installed(job: Path, tmp_path: Path) -> None:
    """conf/config.yaml names Hydra's plugins, which are installed here: the job brings its own."""
    with zipfile.ZipFile(job) as archive:
        archive.extractall(tmp_path)
    elsewhere = [path for path in sys.path if path.endswith("site-packages")]  # without their .pth files
    paths = [str(tmp_path / "project"), str(tmp_path / "lib"), *elsewhere]
    ended = subprocess.run(
        [
            sys.executable,
            "-S",
            "-m",
            "pipeline",
            "plan",
            "experiment=smoke",
            "kernel=softmax",
            "hardware=cpu",
        ],
        cwd=tmp_path / "project",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "softmax" in ended.stdout


def test_equal_contents_give_equal_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing twice, here with one library only."""
    monkeypatch.setattr(packing, "BROUGHT", ("simpleeval",))
    target = TargetPython(python=HERE, machine=packing.platform.machine())
    jobs = [tmp_path / "a.pyz", tmp_path / "b.pyz"]
    for path in jobs:
        packing.pack(path, ("experiment=smoke",), target, extras=(), root=ROOT)
    assert jobs[0].read_bytes() == jobs[1].read_bytes()


def test_the_wrong_python(job: Path, tmp_path: Path) -> None:
    """One line that names both and the way out."""
    ended = start(with_job(job, tmp_path / "old.pyz", python="3.2"), "run")
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: made for Python 3.2, this is {HERE}: ")
    assert ended.stderr.count("\n") == 1 and f"pack --python {HERE}" in ended.stderr


def test_a_machine_without_torch(job: Path, tmp_path: Path) -> None:
    """Said before anything is unpacked."""
    ended = start(job, "run", "--work", str(tmp_path / "work"))
    assert ended.returncode == 2 and "has no numpy, torch" in ended.stderr
    assert not (tmp_path / "work").exists()


def test_usage(job: Path) -> None:
    """Without a command."""
    assert "usage: python3 job.pyz run" in start(job).stderr


def test_unpacked_once(job: Path, tmp_path: Path) -> None:
    """A second start finds the folder with what the first one left; a half unpacked one does not count."""
    with zipfile.ZipFile(job) as archive:
        (tmp_path / ".unpacking-x").mkdir()
        folder = bootstrap.unpack(archive, "identity", tmp_path)
        (folder / "project" / "artifacts").mkdir()
        assert bootstrap.unpack(archive, "identity", tmp_path) == folder
    assert (folder / "project" / "artifacts").is_dir()


def test_extras_only_where_there_are_none(tmp_path: Path) -> None:
    """A library of the machine is preferred to the extra one, unless its major version is another one."""
    said = {"extras": {"numpy": "", "no-such-library": "", "click": "1.0", "torch": "2.0"}}
    paths = bootstrap.library_paths(tmp_path, said)
    assert paths[:2] == [str(tmp_path / "project"), str(tmp_path / "lib")]
    assert paths[2:] == [str(tmp_path / "extra" / name) for name in ("click", "no-such-library")]


def test_needs_of_needs() -> None:
    """Hydra needs OmegaConf, which needs a YAML; extras of a library are not needed."""
    found = with_needs(("hydra-core",))
    assert {"hydra-core", "omegaconf", "antlr4-python3-runtime", "pyyaml", "packaging"} == found.keys()


def test_not_installed() -> None:
    """Its name, and why it matters."""
    with pytest.raises(BundleError, match="no-such-library is not installed here"):
        with_needs(("no-such-library",))


def test_pure_libraries_serve_every_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are copied; compiled ones are fetched for the other Python, or there is one line."""
    other = TargetPython(python="3.99", machine="x86_64")
    version = with_needs(("omegaconf",))["omegaconf"]
    assert "omegaconf/__init__.py" in files_of("omegaconf", version, other)
    offline = subprocess.CompletedProcess([], 1, stdout="", stderr="ERROR: no network\n")
    monkeypatch.setattr(packing.subprocess, "run", lambda *_, **__: offline)
    with pytest.raises(BundleError, match=r"grimp .* for Python 3\.99 on x86_64: .*ERROR: no network"):
        files_of("grimp", with_needs(("grimp",))["grimp"], other)


def test_not_a_checkout(tmp_path: Path) -> None:
    """Somewhere else than in the project."""
    target = TargetPython(python=HERE, machine="x86_64")
    with pytest.raises(
        BundleError, match="not a checkout of the project: it has no conf, hydra_plugins, kernels, pipeline"
    ):
        packing.pack(tmp_path / "job.pyz", (), target, extras=(), root=tmp_path)
