"""Offline compilation: facts traced to the binaries, on targets that are not here, and failures."""

import os
import subprocess

import msgspec
import pytest

from pipeline.backends.machine_code import sass
from pipeline.backends.machine_code.nvidia_tools import tools
from pipeline.backends.registry import backend
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import Compiled
from tests.backends.triton import triton_sources as sources
from tests.backends.triton.triton_jobs import DIMENSIONS, ROOT, declared_job, target, written_job
from tests.selection import slow_unless


def compile_into(folder, job, root=ROOT):
    """Compile and expect a binary."""
    folder.mkdir(exist_ok=True)
    result = backend("triton").compile(job, root, folder)
    assert isinstance(result, Compiled), result
    return result


def failure_of(folder, source, **how):
    """Compile a written source and expect a failure."""
    result = backend("triton").compile(written_job(folder, source, **how), folder, folder)
    assert isinstance(result, Failure), result
    assert (folder / result.log).is_file()
    return result


@pytest.mark.parametrize("hardware", ["h200", "mi300x"])
@pytest.mark.parametrize("name", sorted(DIMENSIONS))
def test_declared_kernels_compile(tmp_path, name, hardware):
    """Every kernel compiles for an NVIDIA and an AMD target, with facts within what the hardware has."""
    job = declared_job(name, hardware)
    compiled = compile_into(tmp_path, job)
    facts, limits = compiled.facts, job.target.limits
    assert compiled.artifact == ("kernel.cubin" if hardware == "h200" else "kernel.hsaco")
    assert (tmp_path / compiled.artifact).read_bytes().startswith(b"\x7fELF")
    assert sorted(compiled.files) == sorted(path.name for path in tmp_path.iterdir())
    assert 8 <= facts.registers <= limits["registers_per_thread"]
    assert facts.threads_per_block == 4 * limits["warp_size"]
    assert 0 < facts.shared_memory <= limits["shared_memory_per_block"]
    assert 0 < facts.occupancy_bound <= 1
    assert facts.instructions["branch"] > 0
    assert any(kind.startswith("store_global_") for kind in facts.instructions)
    assert facts.code_bytes > 4 * sum(facts.instructions.values())


def test_grid_is_that_of_the_workload(tmp_path):
    """The recorded grid is the launch's own, from the workload's shape."""
    compiled = compile_into(tmp_path, declared_job("softmax", "h200", ROWS=4))
    assert compiled.grid == (512 // 4, 1, 1)
    assert compiled.functions == ("softmax_online",)


@pytest.mark.parametrize(
    "hardware",
    slow_unless(("b200", "mi300x").__contains__, ["a100", "rtx4090", "h100", "b200", "mi300x", "mi355x"]),
)
def test_matmul_uses_matrix_units(tmp_path, hardware):
    """float16 runs on the target's matrix units, and our table agrees with the disassembler."""
    compiled = compile_into(tmp_path, declared_job("matmul", hardware, num_stages=3))
    assert compiled.facts.instructions["matrix"] > 0
    if "kernel.cubin" in compiled.files:
        text = sass.disassemble(tmp_path / "kernel.cubin")
        counts = sass.read_text(text)
        assert (compiled.facts.instructions, compiled.facts.matrix) == (counts.classes, counts.matrix)
        expected = {"h100": "HGMMA", "b200": "UTCHMMA"}.get(hardware, "HMMA")
        assert f"{expected}." in text or f"{expected} " in text
    else:
        assert "v_mfma_f32" in (tmp_path / "kernel.amdgcn").read_text()


@pytest.mark.slow
def test_float32_on_nvidia_has_no_tensor_cores(tmp_path):
    """float32 is multiplied in full precision: fused multiply-adds, not tf32."""
    facts = compile_into(tmp_path, declared_job("matmul", "a100", "float32")).facts
    assert "matrix" not in facts.instructions
    assert facts.instructions["fma"] >= 64 * 64 * 32 // 128  # one step of the tile, over 128 threads


@pytest.mark.slow
@pytest.mark.parametrize(("wide", "spills"), [({}, False), ({"BLOCK_M": 128, "BLOCK_N": 256}, True)])
def test_registers_and_stack_are_those_of_the_binary(tmp_path, wide, spills):
    """What ptxas printed is what cuobjdump reads from the cubin, with and without spills."""
    job = declared_job("matmul_bias_gelu", "a100", **wide, num_warps=8)
    facts = compile_into(tmp_path, job).facts
    command = [tools() / "cuobjdump", "-res-usage", tmp_path / "kernel.cubin"]
    usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"REG:{facts.registers} STACK:{facts.local_memory} " in usage
    assert f"{facts.spills} bytes spill stores" in (tmp_path / "log.txt").read_text()
    assert ("local" in facts.instructions) == (facts.spills > 0) == (facts.local_memory > 0) == spills


def test_same_input_same_bytes(tmp_path):
    """Compiling twice gives the same binary, with another target's compile in between."""
    first = compile_into(tmp_path / "first", declared_job("softmax", "h200"))
    other = compile_into(tmp_path / "other", declared_job("softmax", "a100"))
    second = compile_into(tmp_path / "second", declared_job("softmax", "h200"))
    assert first.artifact_digest == second.artifact_digest != other.artifact_digest


def test_shell_settings_do_not_leak(tmp_path, monkeypatch):
    """The user's variables and cache change nothing: same bytes, cache untouched, variables back in place."""
    plain = compile_into(tmp_path / "plain", declared_job("rms_norm", "h200"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    monkeypatch.setenv("DISABLE_PTXAS_OPT", "1")
    before = dict(os.environ)
    changed = compile_into(tmp_path / "changed", declared_job("rms_norm", "h200"))
    assert changed.artifact_digest == plain.artifact_digest
    assert not (tmp_path / "cache").exists()
    assert dict(os.environ) == before


def test_all_kernels_of_a_launch_are_kept(tmp_path):
    """Two kernels: both binaries, each once; resources of the tighter one, code of both."""
    compiled = compile_into(tmp_path, written_job(tmp_path, sources.TWO_KERNELS), tmp_path)
    assert compiled.functions == ("double", "halve")
    assert {"kernel.cubin", "kernel.1.cubin", "kernel.ptx", "kernel.1.ptx"} <= set(compiled.files)
    assert compiled.grid == (16, 1, 1)
    assert compiled.facts.instructions["branch"] >= 4  # exit and padding loop of each


def test_grid_may_be_a_function(tmp_path):
    """A grid that depends on meta-parameters is evaluated as at a launch."""
    compiled = compile_into(tmp_path, written_job(tmp_path, sources.GRID_FUNCTION), tmp_path)
    assert compiled.grid == (8, 2, 1)


def test_autotuned_kernel_takes_its_first_configuration(tmp_path):
    """Without a device nothing can be timed: the first configuration stands, the others are not compiled."""
    compiled = compile_into(tmp_path, written_job(tmp_path, sources.AUTOTUNED), tmp_path)
    assert compiled.grid == (16, 1, 1)
    assert compiled.functions == ("double",)


@pytest.mark.parametrize("source", [sources.UNKNOWN_NAME, sources.UNKNOWN_NAME_IN_A_FUNCTION])
def test_error_in_the_kernel(tmp_path, source):
    """The reason is the compiler's message with the line of the file; the log has the traceback."""
    failure = failure_of(tmp_path, source)
    assert failure.outcome is Outcome.COMPILE_ERROR
    assert "undefined_thing is not defined" in failure.reason
    assert "(line 8: tl.store(y + tl.arange(0, BLOCK), undefined_thing))" in failure.reason
    assert "\n" not in failure.reason
    assert "Traceback" in (tmp_path / "log.txt").read_text()


def test_error_of_the_assembler(tmp_path):
    """The reason is the assembler's own line."""
    failure = failure_of(tmp_path, sources.REFUSED_BY_ASSEMBLER)
    assert failure.outcome is Outcome.COMPILE_ERROR
    assert failure.reason == "ptxas: Unknown modifier '.such'"


@pytest.mark.slow
def test_too_much_shared_memory(tmp_path):
    """What no launch could grant is known without one: got and limit."""
    tiles = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_stages": 3, "num_warps": 8}
    failure = backend("triton").compile(declared_job("matmul", "mi300x", **tiles), ROOT, tmp_path)
    assert failure.outcome is Outcome.LAUNCH_ERROR
    assert failure.reason == "shared memory: got 98304, gfx942 has 65536"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (sources.LAUNCHES_NOTHING, "launched no Triton kernel"),
        (sources.RAISES_AT_IMPORT, "ModuleNotFoundError: No module named 'a_package_that_is_not_there'"),
        (sources.NOT_PYTHON, "SyntaxError: "),
        (sources.EXITS, "SystemExit: 3"),
    ],
)
def test_modules_that_do_not_launch(tmp_path, source, reason):
    """Whatever a module does instead of launching is its outcome, not ours."""
    failure = failure_of(tmp_path, source)
    assert failure.outcome is Outcome.COMPILE_ERROR
    assert reason in failure.reason


def test_failed_assembly_leaves_nothing_behind(tmp_path, monkeypatch):
    """The assembler's temporary files go with the compile."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    failure_of(tmp_path, sources.REFUSED_BY_ASSEMBLER)
    assert list(scratch.iterdir()) == []


def test_limits_come_from_the_target(tmp_path):
    """The same source is refused where a target grants a block less, also in one process."""
    roomy = target("h200")
    tight = msgspec.structs.replace(roomy, limits=roomy.limits | {"shared_memory_per_block": 8192})
    job = written_job(tmp_path, sources.ONE_PRODUCT, on=roomy)
    compile_into(tmp_path, job, tmp_path)
    failure = failure_of(tmp_path, sources.ONE_PRODUCT, on=tight)
    assert failure.outcome is Outcome.LAUNCH_ERROR
    assert failure.reason.endswith("sm_90 has 8192")


@pytest.mark.parametrize("hardware", ["h200", "mi300x"])
def test_digest_does_not_depend_on_place_and_time(tmp_path, hardware):
    """Line tables name the folder and the second; what was measured of a binary holds in every checkout."""
    source = """
        import triton, triton.language as tl
        @triton.jit
        def scale(x, y, n, FACTOR: tl.constexpr):
            at = tl.program_id(0) * 128 + tl.arange(0, 128)
            tl.store(y + at, tl.load(x + at, at < n) * FACTOR, at < n)
        def launch(x, y, FACTOR):
            scale[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), FACTOR)
    """
    found = []
    for name, factor in (("one", 2), ("another one", 2), ("third", 3)):
        folder = tmp_path / name
        folder.mkdir()
        job = written_job(folder, source, on=hardware, FACTOR=factor)
        result = backend("triton").compile(job, folder, folder)
        assert isinstance(result, Compiled), result
        found.append((result.artifact_digest, (folder / result.artifact).read_bytes()))
    assert found[0][1] != found[1][1]
    assert found[0][0] == found[1][0] != found[2][0]
