"""The backend `cpp`: compile, static facts, load and launch, and every way in which they fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch

from pipeline.backends.backend import CompileJob, LaunchError
from pipeline.backends.c_sources import definitions
from pipeline.backends.cpp import Cpp, compiler, facts
from pipeline.backends.cpp.disassembly import read_lines
from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import Implementation, Tensor, TunableValue
from pipeline.records.errors import ConfigError, ToolchainError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.problem import Problem
from pipeline.records.results.compiled import Compiled
from pipeline.records.results.variant import Variant
from tests.paths import ROOT

SCALE = """
#include "part.hpp"
#include <cstdint>
extern "C" int scale(const float* x, float* y, int64_t rows, int64_t cols, int64_t stride_x, double factor) {
    if (rows == 13) return 7;
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t col = 0; col < cols; ++col)
            y[row * cols + col] = part(x[row * stride_x + col]) * static_cast<float>(factor) + SHIFT;
    return 0;
}
"""
PART = "#pragma once\ninline float part(float value) { return value; }\n"

needs_objdump = pytest.mark.skipif(shutil.which("objdump") is None, reason="needs binutils")


def job(source: str = "scale.cpp", entry: str = "scale", tunables: dict[str, TunableValue] | None = None):
    """One variant of a kernel that multiplies rows by a factor."""
    shape = ("rows", "cols")
    return CompileJob(
        variant=Variant(
            kernel="scale",
            implementation="cpp",
            backend="cpp",
            source_digest="",
            attributes={"epilogue": "bias_gelu", "depth": 3},
            tunables={"SHIFT": 0, "FAST": True} if tunables is None else tunables,
        ),
        implementation=Implementation(
            backend="cpp", source=source, entry=entry, origin="test", licence="none"
        ),
        problem=Problem(
            kernel="scale",
            dimensions={"rows": 4, "cols": 8},
            # An output declared before the input: the ABI still has inputs first.
            tensors={
                "y": Tensor(role="output", shape=shape, dtype="float32"),
                "x": Tensor(role="input", shape=shape, dtype="float32", layout="row_strided"),
            },
            scalars={"factor": 2.0},
            attributes={},
            element="float32",
        ),
        target=Target(kind="cpu", architecture="native", limits={}),
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one kernel."""
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "scale.cpp").write_text(SCALE)
    (folder / "part.hpp").write_text(PART)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where compile writes."""
    path = tmp_path / "entry"
    path.mkdir()
    return path


def compiled(root: Path, folder: Path, **changes: object) -> Compiled:
    """The compiled kernel."""
    result = Cpp().compile(job(**changes), root, folder)
    assert isinstance(result, Compiled), result
    return result


def test_compiles_and_computes(root: Path, folder: Path):
    """Padded rows, a scalar and the order of the ABI arrive in the kernel."""
    launch = Cpp().load(job(), compiled(root, folder), root, folder)
    x, y = torch.randn(5, 12)[:, :7], torch.empty(5, 7)
    launch({"x": x, "y": y})
    assert torch.equal(y, 2 * x)


def test_layouts_may_change_from_call_to_call(root: Path, folder: Path):
    """The remembered layout is of the last call only."""
    launch = Cpp().load(job(), compiled(root, folder), root, folder)
    for rows, cols, padding in [(3, 4, 0), (3, 4, 2), (1, 1, 0), (0, 4, 0), (4, 3, 1), (3, 4, 0)]:
        x, y = torch.randn(rows, cols + padding)[:, :cols], torch.empty(rows, cols)
        launch({"x": x, "y": y})
        assert torch.equal(y, 2 * x)


def test_keeps_everything_beside_the_artifact(root: Path, folder: Path):
    """Sources, log and artifact are listed, and the log starts with the command."""
    result = compiled(root, folder)
    assert {"kernel.so", "log.txt", "sources/scale.cpp", "sources/part.hpp"} <= set(result.files)
    assert "-DSHIFT=0" in (folder / "log.txt").read_text().splitlines()[0]


def test_same_source_gives_the_same_artifact(root: Path, folder: Path, tmp_path: Path):
    """The digest of the artifact does not depend on where it was compiled."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    assert compiled(root, folder).artifact_digest == compiled(root, other).artifact_digest


def test_static_facts(root: Path, folder: Path):
    """Code size is positive; what the compiler does not report is absent, not zero."""
    found = compiled(root, folder).facts
    assert found.code_bytes > 50
    assert found.registers is None
    assert found.spills is None


@needs_objdump
def test_instruction_mix(root: Path, folder: Path):
    """Memory is read and written, and all classes are at most the whole."""
    mix = compiled(root, folder).facts.instructions
    assert mix["load"] > 0
    assert mix["store"] > 0
    assert max(mix.values()) == mix["all"]


def test_instruction_classes():
    """Each line of a disassembly counts in its classes; functions of the linker do not count."""
    text = """
0000000000001000 <_init>:
    1000:	call   *%rax
0000000000001190 <scale>:
    1190:	vfmadd231ps 0x40(%rax),%zmm1,%zmm2
    1196:	vmovups %zmm2,(%rsp,%rax,8)
    119c:	vmovss (%rdi),%xmm0
    11a0:	lea    0x8(%rdi),%rdi
    11a4:	jne    1190 <scale>
    11a6:	vmovups %ymm0,(%rdi){%k1}
    11ac:	prefetcht0 0x40(%rdi)
    11b0:	vbroadcastss 0xe57(%rip),%xmm1        # 2040 <_fini+0x5d0>
"""
    assert facts.instruction_mix(read_lines(text, {"scale"})) == {
        "all": 8,
        "branch": 1,
        "float_arithmetic": 1,
        "fma": 1,
        "load": 3,
        "prefetch": 1,
        "scalar_float": 1,
        "stack": 1,
        "store": 2,
        "vector_128": 1,
        "vector_256": 1,
        "vector_512": 2,
        "vector_stack": 1,
    }


def test_instruction_classes_of_arm():
    """The same classes from another instruction set."""
    text = """
0000000000001190 <scale>:
    1190:	ldr	q0, [x0, #16]
    1194:	fmla	v1.4s, v0.4s, v2.4s
    1198:	str	q1, [sp, #32]
    119c:	b.ne	1190 <scale>
"""
    mix = facts.instruction_mix(read_lines(text, {"scale"}))
    assert mix == {
        "all": 4,
        "branch": 1,
        "float_arithmetic": 1,
        "fma": 1,
        "load": 1,
        "stack": 1,
        "store": 1,
        "vector_128": 3,
        "vector_stack": 1,
    }


def test_definitions():
    """Flags are 0 and 1, words join their attribute's name, numbers are values."""
    assert definitions(job()) == [
        "-DELEMENT_FLOAT32",
        "-DSHIFT=0",
        "-DFAST=1",
        "-DEPILOGUE_BIAS_GELU",
        "-DDEPTH=3",
    ]


def test_compile_error_gives_its_line_and_a_log(root: Path, folder: Path):
    """The first error is the reason; the log has all of it."""
    (root / "part.hpp").write_text("inline float part(float value) { return valeu; }\n")
    result = Cpp().compile(job(), root, folder)
    assert isinstance(result, Failure)
    assert result.outcome is Outcome.COMPILE_ERROR
    assert result.reason.startswith("part.hpp:1:")
    assert "'valeu' was not declared" in result.reason
    assert result.log is not None
    assert "valeu" in (folder / result.log).read_text()


def test_missing_tunable_is_a_compile_error(root: Path, folder: Path):
    """A macro that nobody defined is named."""
    result = Cpp().compile(job(tunables={}), root, folder)
    assert isinstance(result, Failure)
    assert "SHIFT" in result.reason


def test_undefined_symbol_is_found_at_compile_time(root: Path, folder: Path):
    """A shared object that could not be loaded is not an artifact."""
    (root / "part.hpp").write_text("float part(float value);\n")
    result = Cpp().compile(job(), root, folder)
    assert isinstance(result, Failure)
    assert "undefined reference to `part(float)'" in result.reason


def test_missing_entry_names_what_there_is(root: Path, folder: Path):
    """The exported function must have the declared name."""
    result = Cpp().compile(job(entry="scales"), root, folder)
    assert isinstance(result, Failure)
    assert 'no function extern "C" scales; it defines scale' in result.reason


def test_compiler_that_does_not_end(root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch):
    """The time limit ends the compiler; every N costs it anew, nothing is memoized."""
    monkeypatch.setattr("pipeline.backends.cpp.TIME_LIMIT", 0.5)
    (root / "part.hpp").write_text(
        "inline float part(float value) { return value; }\n"
        "constexpr long spin(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i * i % 7; return s; }\n"
        "template <long N> struct Slow { static constexpr long v = spin(200000 + N) + Slow<N - 1>::v; };\n"
        "template <> struct Slow<0> { static constexpr long v = 0; };\n"
        "static_assert(Slow<800>::v > 0);\n"
    )
    result = Cpp().compile(job(), root, folder)
    assert isinstance(result, Failure)
    assert result.outcome is Outcome.TIMEOUT
    assert result.reason == "the compiler did not finish in 0.5 s"


def test_sources_follow_includes(root: Path):
    """Headers of headers count; system headers do not."""
    (root / "part.hpp").write_text('#include <vector>\n  #  include "deep/more.hpp"\n')
    (root / "deep").mkdir()
    (root / "deep" / "more.hpp").write_text('#include "../part.hpp"\n')
    names = [path.name for path in Cpp().sources(job().implementation, root)]
    assert names == ["scale.cpp", "part.hpp", "more.hpp"]


def test_source_that_does_not_exist(root: Path):
    """A wrong path in a yaml is a configuration error."""
    with pytest.raises(
        ConfigError, match=r"^scael\.cpp: no such file; `source` is a path from the repository$"
    ):
        Cpp().sources(job(source="scael.cpp").implementation, root)


def test_include_from_outside_the_repository(root: Path):
    """What lies outside could change unnoticed."""
    (root.parent / "outside.hpp").write_text("")
    (root / "part.hpp").write_text('#include "../outside.hpp"\n')
    with pytest.raises(ConfigError, match="outside the repository"):
        Cpp().sources(job().implementation, root)


def test_refused_call_is_a_launch_error(root: Path, folder: Path):
    """A number other than 0 reaches the caller."""
    launch = Cpp().load(job(), compiled(root, folder), root, folder)
    with pytest.raises(LaunchError, match="scale returned 7"):
        launch({"x": torch.empty(13, 2), "y": torch.empty(13, 2)})


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        (torch.empty(2, 3).half(), torch.empty(2, 3), "x: got torch.float16, expected torch.float32"),
        (torch.empty(2, 3), torch.empty(3, 3), "y: got rows = 3, expected 2"),
        (torch.empty(3, 2).t(), torch.empty(2, 3), "x: got strides"),
        (torch.empty(2, 3), torch.empty(2, 4)[:, :3], "y: got strides .* expected a contiguous tensor"),
        (torch.empty(3), torch.empty(2, 3), "x: got 1 dimensions, expected 2"),
        (torch.empty(2, 3, device="meta"), torch.empty(2, 3), "x: got a tensor on meta"),
        (torch.empty(1, 3).expand(2, 3), torch.empty(2, 3), "x: got strides"),
    ],
)
def test_arguments_that_do_not_fit(root: Path, folder: Path, x: torch.Tensor, y: torch.Tensor, text: str):
    """The check names the tensor, what it got and what it expected; nothing is called."""
    launch = Cpp().load(job(), compiled(root, folder), root, folder)
    with pytest.raises(LaunchError, match=text):
        launch({"x": x, "y": y})


def test_threads_are_those_of_torch(root: Path, folder: Path):
    """torch.set_num_threads reaches the kernel: one OpenMP runtime serves both."""
    (root / "threads.cpp").write_text(
        "#include <omp.h>\n#include <cstdint>\n"
        'extern "C" int threads(const float*, float* y, int64_t, int64_t, int64_t, double) {\n'
        "    y[0] = static_cast<float>(omp_get_max_threads());\n    return 0;\n}\n"
    )
    changed = job(source="threads.cpp", entry="threads")
    launch = Cpp().load(changed, compiled(root, folder, source="threads.cpp", entry="threads"), root, folder)
    before = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            y = torch.zeros(1, 1)
            launch({"x": torch.zeros(1, 1), "y": y})
            assert y.item() == count
    finally:
        torch.set_num_threads(before)


@pytest.mark.slow
def test_works_in_a_forked_child(root: Path, folder: Path):
    """Parallel regions run in a child of a process that has loaded torch and computed nothing."""
    result = compiled(root, folder)
    script = (
        "import os, sys, torch, msgspec\n"
        "from pathlib import Path\n"
        "from tests.backends.cpp.test_cpp import job\n"
        "from pipeline.backends.cpp import Cpp\n"
        "from pipeline.records.results.compiled import Compiled\n"
        "compiled = msgspec.json.decode(sys.argv[1], type=Compiled)\n"
        "for _ in range(2):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        torch.set_num_threads(2)\n"
        "        folder = Path(sys.argv[2])\n"
        "        launch = Cpp().load(job(), compiled, folder, folder)\n"
        "        x, y = torch.randn(64, 8), torch.empty(64, 8)\n"
        "        launch({'x': x, 'y': y})\n"
        "        os._exit(0 if torch.equal(y, 2 * x) else 1)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, msgspec.json.encode(result).decode(), str(folder)],
        check=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.fixture
def fresh_compiler():
    """The compiler is looked for anew, before and after."""
    compiler.find.cache_clear()
    compiler.toolchain.cache_clear()
    yield
    compiler.find.cache_clear()
    compiler.toolchain.cache_clear()


def test_toolchain_names_compiler_and_flags():
    """What decides the artifact is in it."""
    versions = Cpp().toolchain(job().target)
    assert "c++" in versions
    assert "-O3" in versions["c++ flags"]


@pytest.mark.usefixtures("fresh_compiler")
def test_cxx_is_honoured(monkeypatch: pytest.MonkeyPatch):
    """$CXX wins, and its arguments count as flags."""
    monkeypatch.setenv("CXX", "g++ -g0")
    assert compiler.find()[1:] == ("-g0",)
    assert compiler.toolchain()["c++ flags"].startswith("-g0 ")


@pytest.mark.usefixtures("fresh_compiler")
def test_cxx_that_does_not_exist(monkeypatch: pytest.MonkeyPatch):
    """The text names the variable and its value."""
    monkeypatch.setenv("CXX", "g++-99 -pipe")
    with pytest.raises(ToolchainError, match=r"^CXX=g\+\+-99 -pipe: no such program on the PATH"):
        compiler.find()


@pytest.mark.usefixtures("fresh_compiler")
def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The text says what to install."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"no C\+\+ compiler.*apt-get install g\+\+"):
        compiler.find()
