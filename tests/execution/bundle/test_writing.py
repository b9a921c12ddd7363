"""What goes into a bundle, what stays, and that nothing says whose machine it was."""

import platform
from pathlib import Path

import pytest

from pipeline.execution.bundle import writing
from pipeline.execution.bundle.bundle_file import read_bundle, sha256
from pipeline.records.errors import BundleError
from pipeline.store import privacy
from tests.execution.bundle.made_up import BINARY, Run, bundle_of, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of one task."""
    return make_run(tmp_path_factory.mktemp("run") / "artifacts")


def test_binaries_stay_with_their_digests(run: Run, tmp_path: Path) -> None:
    """Unless they are asked for; sources, logs, records and raw rounds always travel."""
    bundle_of(run, tmp_path / "small.kmb")
    bundle = read_bundle(tmp_path / "small.kmb")
    (left,) = bundle.manifest.left_out
    assert left.name.endswith("/kernel.so") and left.sha256 == sha256(BINARY)
    assert left.reason == "binaries stay unless --with-binaries"
    endings = {name.rpartition("/")[2] for name in bundle.contents if name.startswith("store/")}
    assert endings == {"record.json", "rounds.json", "softmax.cpp", "log.txt"}
    bundle_of(run, tmp_path / "large.kmb", binaries=True)
    large = read_bundle(tmp_path / "large.kmb")
    assert large.manifest.left_out == ()
    assert BINARY in large.contents.values()


def test_every_task_is_told(run: Run, tmp_path: Path) -> None:
    """The manifest has the outcomes of each task, and the jobs."""
    bundle_of(run, tmp_path / "a.kmb")
    manifest = read_bundle(tmp_path / "a.kmb").manifest
    (task,) = manifest.tasks
    assert task.name == "softmax x awkward x cpu x defaults" and task.missing is None
    assert task.outcomes == {stage: {"passed": 1} for stage in ("compile", "verify", "profile")}
    assert [job.stage for job in manifest.jobs] == ["generate", "compile", "verify", "profile"]
    assert manifest.environment["python"] == platform.python_version()


def test_nothing_of_the_machine(run: Run, tmp_path: Path) -> None:
    """Neither its name nor its paths are in any file, although the logs had them."""
    bundle_of(run, tmp_path / "a.kmb")
    bundle = read_bundle(tmp_path / "a.kmb")
    everything = b"".join(bundle.contents.values()) + repr(bundle.manifest).encode()
    for path in (Path.cwd(), Path.home(), Path(run.root).parent):
        assert str(path).encode() not in everything
    assert platform.node().encode() not in b"".join(
        content for name, content in bundle.contents.items() if name.startswith("logs/")
    )
    assert b"./x: profile passed" in everything, "the log is there, with its paths made relative"


def test_too_large(run: Run, tmp_path: Path) -> None:
    """Binaries stay first, then raw rounds, and then there is no bundle."""
    whole = bundle_of(run, tmp_path / "a.kmb", binaries=True)
    assert whole.note is None
    smaller = bundle_of(run, tmp_path / "a.kmb", binaries=True, limit=whole.size - 1)
    assert smaller.note is not None and smaller.note.endswith("without binary")
    assert smaller.size < whole.size
    with pytest.raises(BundleError, match=r"the records alone take .*raise --limit"):
        bundle_of(run, tmp_path / "none.kmb", limit=100)
    assert not (tmp_path / "none.kmb").exists()


def test_long_logs_lose_their_middle() -> None:
    """The head, a note, the tail; a short one stays."""
    log = b"head " + b"x" * 200_000 + b" tail"
    shorter = writing.cut(log)
    assert len(shorter) < writing.LOG_BYTES + 100
    assert shorter.startswith(b"head ") and shorter.endswith(b" tail")
    assert f"{len(log) - writing.LOG_BYTES} bytes cut out".encode() in shorter
    assert writing.cut(b"short") == b"short"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("store/compile/ab/abc/record.json", "record"),
        ("store/profile/ab/abc/rounds.json", "raw"),
        ("store/verify/ab/abc/log.txt", "log"),
        ("store/compile/ab/abc/sources/kernels/vector.hpp", "source"),
        ("store/compile/ab/abc/kernel.cubin", "binary"),
        ("store/compile/ab/abc/kernel.s", "binary"),
        ("store/compile/ab/abc/kernel.json", "binary"),
    ],
)
def test_parts(name: str, part: str) -> None:
    """By their names."""
    assert writing.part_of(name) == part


def test_paths_give_way_to_names() -> None:
    """The longest first, whole names only."""
    paths = {"/home/someone/work": ".", "/home/someone": "~"}
    text = b"/home/someone/work/a.cpp:1 /home/someone/x /home/someone-else /home/someone/workshop"
    cleaned = privacy.without_paths(text, paths)
    assert cleaned == b"./a.cpp:1 ~/x /home/someone-else ~/workshop"


def test_the_host_gives_way_in_logs() -> None:
    """Where it is a word of its own, and long enough to be a name."""
    assert privacy.without_host(b"on node7: node7x node7", "node7") == b"on <host>: node7x <host>"
    assert privacy.without_host(b"on gpu", "gpu") == b"on gpu"
    assert privacy.without_host(b"localhost", "localhost") == b"localhost"
