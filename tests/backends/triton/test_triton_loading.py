"""Loading: the binary that runs is the one that was compiled. Without a device, up to the launch."""

import functools
from pathlib import Path

import pytest
import triton

from pipeline.backends.backend import LaunchError
from pipeline.backends.registry import backend
from pipeline.backends.triton import loading
from pipeline.backends.triton.compiler_isolation import own_settings
from pipeline.backends.triton.entry_source import constants, load_entry
from pipeline.backends.triton.offline_driver import recording
from pipeline.records.record import digest_bytes
from tests.backends.triton.triton_jobs import ROOT, declared_job

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A softmax for h200: job, record, folder."""
    folder = tmp_path_factory.mktemp("compiled")
    job = declared_job("softmax", "h200")
    return job, backend("triton").compile(job, ROOT, folder), folder


def run_again(job, compiled, folder, scratch, dimensions):
    """What a process with a device does, without one: seed the cache, launch, note what is loaded."""
    log = scratch / "log.txt"
    log.touch()
    loaded, hits = [], []

    def note(*, cache_hit, **rest):
        hits.append(cache_hit)
        loading.note_group(loaded, **rest)

    shape = tuple(dimensions.values())
    tensors = {name: torch.empty(shape, dtype=torch.float16, device="meta") for name in "xy"}
    with own_settings(scratch / "cache"), recording(job.target, log):
        known = loading.seed_cache(compiled, folder)
        triton.knobs.compilation.listener = note
        load_entry(job, ROOT)(**tensors, **constants(job))
    return known, loaded, hits


def test_compiled_binary_is_found_not_made_again(compiled, tmp_path):
    """On the workload's shape Triton takes the stored binary from its cache."""
    job, record, _ = compiled
    known, loaded, hits = run_again(*compiled, tmp_path, job.problem.dimensions)
    assert hits == [True]
    assert set(loaded) == known == {record.artifact_digest}
    loading.require_known(loaded, known)


def test_other_shape_may_compile_anew(compiled, tmp_path):
    """A width that is no multiple of 16 specialises differently: the check would show another binary."""
    known, loaded, hits = run_again(*compiled, tmp_path, {"rows": 5, "cols": 1999})
    assert hits == [False]
    assert not known & set(loaded)


def test_strange_binary_is_refused():
    """The text says which binary ran, which was expected, and what to do."""
    with pytest.raises(
        LaunchError, match=r"another binary .* got strange, expected one of known; compile again"
    ):
        loading.require_known(["known", "strange"], frozenset({"known"}))


def test_workload_is_recognised(compiled):
    """Shape, contiguity and alignment decide whether a call is the one that was compiled for."""
    problem = compiled[0].problem.with_dimensions({"rows": 4, "cols": 64})
    wide = torch.empty(4, 128)
    x, y = torch.empty(4, 64), torch.empty(4, 64)
    assert loading.is_workload(problem, {"x": x, "y": y})
    assert not loading.is_workload(problem, {"x": wide[:, :64], "y": y})
    assert not loading.is_workload(problem, {"x": torch.empty(4, 63), "y": y})
    assert not loading.is_workload(problem, {"x": torch.empty(4 * 64 + 1)[1:].view(4, 64), "y": y})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device here")
def test_without_a_device_nothing_is_loaded(compiled):
    """A refusal, not a crash."""
    with pytest.raises(LaunchError, match="no cuda device here"):
        backend("triton").load(compiled[0], compiled[1], ROOT, compiled[2])


def test_every_kept_kernel_is_noted(tmp_path):
    """Both kinds of binary count, other files do not."""
    for name in ("k.cubin", "k.ptx"):
        (tmp_path / name).write_bytes(name.encode())
    loaded = []
    group = {path.name: str(path) for path in tmp_path.iterdir()}
    functools.partial(loading.note_group, loaded)(metadata_group=group)
    assert loaded == [digest_bytes(Path(tmp_path / "k.cubin").read_bytes())]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_launch_on_the_device(tmp_path):
    """The compiled binary runs and is right, on the workload's shape and on another one."""
    major, minor = torch.cuda.get_device_capability()
    by_architecture = {"80": "a100", "89": "rtx4090", "90": "h200", "100": "b200"}
    hardware = by_architecture.get(f"{major}{minor}")
    if hardware is None:
        pytest.skip(f"no declared target of sm_{major}{minor}")
    job = declared_job("softmax", hardware)
    record = backend("triton").compile(job, ROOT, tmp_path)
    launch = backend("triton").load(job, record, ROOT, tmp_path)
    for shape in (job.problem.shape("x"), (5, 1999)):
        x = torch.randn(shape, dtype=torch.float16, device="cuda")
        y = torch.empty_like(x)
        launch({"x": x, "y": y})
        torch.testing.assert_close(y, torch.softmax(x, -1), atol=1e-3, rtol=1e-2)
