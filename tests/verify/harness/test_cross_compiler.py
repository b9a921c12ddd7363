"""Kernels of candidates are compiled for devices that are absent."""

import shutil
import textwrap
from pathlib import Path

import msgspec
import pytest
import torch

from pipeline.records.configuration.hardware import Target
from pipeline.records.outcome import Outcome
from pipeline.sandbox.processes.fork_server import Limits
from pipeline.verify.harness.encoding import encode, place
from pipeline.verify.harness.messages import CompileReply, CompileRequest, InterpretedLaunch
from pipeline.verify.harness.runtime.cross_compiler import PRELOAD, TARGET
from tests.lazy_fork_server import LazyForkServer
from tests.selection import slow_unless

SERVER = LazyForkServer(preload=PRELOAD)
LIMITS = {
    "warp_size": 32, "shared_memory_per_block": 232448, "shared_memory_per_sm": 233472,
    "registers_per_sm": 65536, "registers_per_thread": 255, "threads_per_block": 1024,
    "threads_per_sm": 2048, "blocks_per_sm": 32,
    "sm_count": 132,
}  # fmt: skip
H200 = Target(kind="cuda", architecture="sm_90", limits=LIMITS)
HEAD = """
import torch, triton, triton.language as tl
from triton.language.extra import libdevice
@triton.jit
def rows(x, w, y, n, B: tl.constexpr):
    at = tl.arange(0, B)
    value = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0)
    value = libdevice.tanh(value) * tl.load(w + at, mask=at < n, other=0.0)
    tl.store(y + tl.program_id(0) * n + at, value, mask=at < n)
"""
BODY = """
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n))
    def forward(self, x):
        assert x.is_cuda and self.weight.device == x.device
        y = torch.empty_like(x.cuda())
        torch.cuda.current_stream().wait_stream(torch.cuda.Stream())
        BEFORE
        rows[(x.shape[0],)](x, self.weight, y, x.shape[1], B=triton.next_power_of_2(x.shape[1]))
        AFTER
        return y
"""


def assemble(
    tmp_path: Path,
    source: str,
    target: Target = H200,
    *,
    every_configuration: bool = False,
    gradients: bool = False,
    interpreted: tuple[InterpretedLaunch, ...] = (),
) -> CompileReply:
    """Compile one call on a matrix, in a process of its own."""
    path, scratch = tmp_path / "candidate.py", tmp_path / "scratch"
    path.write_text(textwrap.dedent(source))
    scratch.mkdir()
    encoded = encode([torch.empty(4, 100)], "input", "test")
    request = CompileRequest(
        source=str(path),
        target=target,
        initial=[100],
        arguments=encoded.values,
        tensors=place(encoded.tensors, 0)[0],
        gradients=gradients,
        interpreted=interpreted,
        every_configuration=every_configuration,
    )
    log = tmp_path / "log.txt"
    child = SERVER.start(TARGET, limits=Limits(seconds=100, output=64 << 20), log=log, scratch=scratch)
    try:
        child.send(request)
        answer: CompileReply = child.receive(100, CompileReply)
        return answer
    finally:
        child.stop()


def body(before: str = "", after: str = "") -> str:
    """A candidate with something before and after its launch."""
    return HEAD + BODY.replace("BEFORE", before or "pass").replace("AFTER", after or "pass")


def test_kernel_is_compiled_with_its_facts(tmp_path: Path) -> None:
    """Registers, spills and shared memory of the real binary."""
    result = assemble(tmp_path, body())
    assert (result.failure, result.incomplete) == (None, "")
    (kernel,) = result.kernels
    assert kernel.name == "rows"
    assert kernel.registers is not None
    assert 8 <= kernel.registers <= 255
    assert kernel.spills == 0


@pytest.mark.slow
def test_code_that_only_the_interpreter_takes_is_a_compile_error(tmp_path: Path) -> None:
    """A kernel that calls PyTorch, or a name that Triton does not have."""
    result = assemble(tmp_path, body().replace("libdevice.tanh(value)", "torch.tanh(value)"))
    assert result.failure is not None
    assert result.failure.outcome is Outcome.COMPILE_ERROR


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "grid", "said"),
    [
        ("y = torch.empty(x.shape, dtype=x.dtype)", "(x.shape[0],)", "lies on the host"),
        ("y = torch.empty(x.shape, dtype=x.dtype, device=x.device)", "(x.shape[0],)", None),
        ("pass", "(x.shape[0], 70000)", "a grid of (4, 70000, 1) blocks"),
        ("pass", "(70000, x.shape[0])", None),
    ],
)
def test_what_no_device_launches(tmp_path: Path, before: str, grid: str, said: str | None) -> None:
    """Tensors without a device, and more blocks along the second axis than there may be."""
    result = assemble(tmp_path, body(before).replace("rows[(x.shape[0],)]", f"rows[{grid}]"))
    if said is None:
        assert result.failure is None
    else:
        assert result.failure is not None and said in result.failure.reason
        assert result.failure.outcome is Outcome.LAUNCH_ERROR


EXTENSION = """
    import torch
    from torch.utils.cpp_extension import load_inline
    doubled = load_inline(name="NAME", functions=["twice"], cpp_sources="torch::Tensor twice(torch::Tensor);",
    cuda_sources="__global__ void twice_kernel(float* x) { x[threadIdx.x] *= FACTOR; }"
    "torch::Tensor twice(torch::Tensor x) { twice_kernel<<<1, 32>>>(x.data_ptr<float>()); return x; }")
    class ModelNew(torch.nn.Module):
        def __init__(self, columns):
            super().__init__()
        def forward(self, x):
            return doubled.twice(x)
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize(("factor", "outcome"), [("2.0f", None), ("flaot(2)", Outcome.COMPILE_ERROR)])
def test_extensions_are_compiled(tmp_path: Path, factor: str, outcome: Outcome | None) -> None:
    """By nvcc, and not called; what it refuses is the candidate's fault."""
    name = "right_twice" if outcome is None else "wrong_twice"
    result = assemble(tmp_path, EXTENSION.replace("NAME", name).replace("FACTOR", factor))
    assert (None if result.failure is None else result.failure.outcome) is outcome
    assert result.of_extension == (outcome is not None)
    assert [kernel.name for kernel in result.kernels] == ([] if outcome else ["twice_kernel"])
    assert not result.incomplete


TUNED = """
@triton.autotune(configs=[triton.Config({"B": b}) for b in (BLOCKS)], key=["n"])
@triton.jit
def product(x, y, n, B: tl.constexpr):
    at = tl.arange(0, B)
    a = tl.load(x + at[:, None] * B + at[None, :])
    tl.store(y + at[:, None] * B + at[None, :], tl.dot(a, a))
class ModelNew(torch.nn.Module):
    def __init__(self, n): super().__init__()
    def forward(self, x):
        y = torch.empty_like(x)
        product[(1,)](x, y, 4)
        return y
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocks", "fits"), slow_unless(("64, 32", False).__eq__, [("64, 16", True), ("64, 32", False)])
)
def test_too_much_shared_memory_is_a_launch_error(tmp_path: Path, blocks: str, fits: bool) -> None:
    """Unless another configuration of an autotuner fits."""
    small = Target(kind="cuda", architecture="sm_90", limits={**LIMITS, "shared_memory_per_block": 4096})
    source = HEAD + TUNED.replace("BLOCKS", blocks)
    result = assemble(tmp_path, source, small, every_configuration=True)
    if fits:
        assert result.failure is None, result
        assert [each.name for each in result.kernels] == ["product"]
    else:
        assert result.failure is not None
        assert result.failure.outcome is Outcome.LAUNCH_ERROR


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "kernels"),
    [("print(float(x.sum()))", "", 0), ("", "if bool((y > 0).all()): raise KeyError", 1)],
)
def test_host_code_that_needs_values_is_no_failure(
    tmp_path: Path, before: str, after: str, kernels: int
) -> None:
    """What was compiled until then is reported, and why there is no more."""
    result = assemble(tmp_path, body(before, after))
    assert result.failure is None
    assert result.incomplete
    assert len(result.kernels) == kernels


BACKWARD = """
@triton.jit
def twice(x, y, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)
@triton.jit
def halves(x, y, n, B: tl.constexpr):
    at = 0
    while True:
        tl.store(y + at, 2 * tl.load(x + at))
        at += 1
        if at >= n: break
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        twice[(1,)](x, y, x.numel(), B=512)
        return y
    @staticmethod
    def backward(ctx, dy):
        dx = torch.empty_like(dy)
        BACK[(1,)](dy, dx, dy.numel(), B=512)
        return dx
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
    def forward(self, x):
        return Twice.apply(x)
"""


@pytest.mark.slow
@pytest.mark.parametrize("gradients", [True, False])
def test_kernels_of_a_backward_are_compiled_where_gradients_are_judged(
    tmp_path: Path, gradients: bool
) -> None:
    """`break` is a loop that Triton's interpreter takes and its compiler does not."""
    result = assemble(tmp_path, HEAD + BACKWARD.replace("BACK", "halves"), gradients=gradients)
    if gradients:
        assert result.failure is not None
        assert result.failure.outcome is Outcome.COMPILE_ERROR
    else:
        assert (result.failure, [each.name for each in result.kernels]) == (None, ["twice"])


@pytest.mark.slow
def test_a_backward_is_no_fault(tmp_path: Path) -> None:
    """Its kernel is among those that are reported."""
    result = assemble(tmp_path, HEAD + BACKWARD.replace("BACK", "twice"), gradients=True)
    assert (result.failure, result.incomplete) == (None, "")
    assert [each.name for each in result.kernels] == ["twice"]


def rows_call(name: str = "rows") -> InterpretedLaunch:
    """As the interpreter makes it."""
    floats = {name: {"tensor": "float32"} for name in "xwy"}
    return InterpretedLaunch(
        name=name, file="candidate_module.py", arguments={**floats, "n": 17, "B": 128, "num_warps": 8}
    )


TRITON_ONLY = """
@torch.library.triton_op("kernelmill_test::rows", mutates_args={})
def operator(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    torch.library.wrap_triton(rows)[(x.shape[0],)](x, w, y, x.shape[1], B=128)
    return y
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n))
    def forward(self, x): return operator(x, self.weight)
"""
FROM_A_VALUE = BODY.replace("BEFORE", "pass").replace("AFTER", "pass")
FROM_A_VALUE = FROM_A_VALUE.replace("(x.shape[1]))", "(int(self.lengths.max())))").replace(
    "torch.ones(n))", "torch.ones(n)); self.register_buffer('lengths', torch.full((3,), n))"
)
AFTER_A_VALUE = BODY.replace("BEFORE", "int(x.sum().item())").replace("AFTER", "pass")


@pytest.mark.slow
@pytest.mark.parametrize("body", [TRITON_ONLY, AFTER_A_VALUE, FROM_A_VALUE])
@pytest.mark.parametrize("right", [True, False])
def test_what_only_the_interpreter_reaches_is_compiled_for_its_launches(
    tmp_path: Path, body: str, right: bool
) -> None:
    """Kernels behind an operator, after host code that needs values, and with sizes from values."""
    source = HEAD + body
    source = source if right else source.replace("libdevice.tanh(value)", "torch.tanh(value)")
    result = assemble(tmp_path, source, interpreted=(rows_call(),))
    if right:
        assert (result.failure, result.incomplete) == (None, "")
        assert [each.name for each in result.kernels] == ["rows"]
    else:
        assert result.failure is not None
        assert result.failure.outcome is Outcome.COMPILE_ERROR


@pytest.mark.slow
def test_launches_that_cannot_be_repeated_are_named(tmp_path: Path) -> None:
    """A kernel of another file, and arguments that are no plain values."""
    calls = (rows_call("other"), msgspec.structs.replace(rows_call(), arguments=None))
    result = assemble(tmp_path, HEAD + TRITON_ONLY, interpreted=calls)
    assert (result.failure, result.incomplete) == (None, "not reached: other, rows")


@pytest.mark.slow
@pytest.mark.parametrize("decorator", ["torch.compile", "torch.compile(dynamic=True)"])
def test_compiled_function_is_called_as_it_is(tmp_path: Path, decorator: str) -> None:
    """PyTorch's compiler would ask for the device."""
    source = body().replace("    def forward", f"    @{decorator}\n    def forward")
    result = assemble(tmp_path, source)
    assert (result.failure, result.incomplete) == (None, "")
    assert [each.name for each in result.kernels] == ["rows"]
