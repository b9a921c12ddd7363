"""What a candidate's process notices of small candidates, one for each thing."""

from pathlib import Path

import pytest
import torch

from pipeline.sandbox.sandbox import ChildEnded
from pipeline.verify.harness.returning.messages import CallReply, ReadyReply, RefusedReply
from tests.verify.harness.returning.candidate_process import CandidateProcess

HEAD = """
import torch, triton, triton.language as tl

@triton.jit
def double(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)

@triton.jit
def copy(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 0.0, mask=at < n)

def launch(kernel, x, y=None):
    y = torch.empty_like(x) if y is None else y
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), B=64)
    return y
"""
X = torch.linspace(-3, 3, 100).reshape(4, 25)


def run(
    tmp_path: Path, forward: str, *, head: str = "", where: str = "interpreter", **options: object
) -> CallReply:
    """One call of a candidate whose `forward(self, x)` has this body."""
    body = "\n".join(f"        {line}" for line in forward.strip().splitlines())
    model = f"class ModelNew(torch.nn.Module):\n    def forward(self, x):\n{body}\n"
    with CandidateProcess(f"{HEAD}\n{head}\n{model}", tmp_path, where=where) as talk:  # type: ignore[arg-type]
        return talk.run(X, **options)


def operations(done: CallReply) -> dict[str, tuple[bool, bool]]:
    """Name -> whether it worked on what an own kernel made, whether its result came out."""
    return {each.name: (each.from_own, each.is_output) for each in done.observed.operations}


def test_own_kernel_is_the_only_thing_seen(tmp_path: Path) -> None:
    """A right candidate: one launch that computed, nothing else."""
    source = f"{HEAD}\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return launch(double, x)"
    with CandidateProcess(source, tmp_path) as talk:
        done = talk.run(X)
        assert torch.equal(talk.value(done.outputs[0]), X * 2)
    assert [(each.kind, each.name, each.count, each.copies) for each in done.observed.launches] == [
        ("triton", "double", 1, False)
    ]
    assert done.observed.operations == ()
    assert done.observed.tampering == ()
    assert (done.structure, done.nonce, done.outputs[0].unwritten) == ("tensor", "a nonce", 0)


@pytest.mark.parametrize(
    "expression",
    [
        "torch.softmax(x, 1)",
        "torch.ops.aten._softmax.default(x, 1, False)",
        "torch.nn.Softmax(1)(x)",
        "torch.jit.script(torch.nn.Softmax(1))(x)",
        "launch(copy, torch.softmax(x, 1))",
        "launch(double, launch(copy, torch.softmax(x, 1)) / 2)",
        "torch.softmax(x.to(torch.float64), 1).to(torch.float32)",
        "torch.softmax(x, 1).t().contiguous().t()",
    ],
)
def test_operator_of_pytorch_is_named_and_known_as_the_output(tmp_path: Path, expression: str) -> None:
    """However it is called, and wherever its result is moved."""
    found = operations(run(tmp_path, f"return {expression}"))
    assert found["aten::_softmax"] == (False, True)


def test_operator_in_a_thread_is_seen(tmp_path: Path) -> None:
    """Threads of Python are watched."""
    done = run(
        tmp_path,
        """
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    return pool.submit(torch.exp, x).result()
""",
    )
    assert operations(done)["aten::exp"] == (False, True)


def test_operator_hidden_from_the_mode_is_seen(tmp_path: Path) -> None:
    """PyTorch's profiler sees what escapes the dispatch mode."""
    done = run(tmp_path, "with torch._C._DisableTorchDispatch():\n    return torch.softmax(x, 1)")
    assert "aten::_softmax" in operations(done)


def test_operator_inside_an_operator_of_its_own_is_seen(tmp_path: Path) -> None:
    """A library of the candidate's own does not hide what it calls."""
    head = """
@torch.library.custom_op("mine::soft", mutates_args=())
def soft(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, 1)
"""
    done = run(tmp_path, "return torch.ops.mine.soft(x)", head=head)
    assert operations(done)["aten::softmax"] == (False, True)
    assert [each.name for each in done.observed.launches] == ["mine::soft"]


def test_finishing_touch_on_own_results_is_told_apart(tmp_path: Path) -> None:
    """A sum of partial results works on what an own kernel made."""
    found = operations(run(tmp_path, "return launch(double, x).sum(1)"))
    assert found == {"aten::sum": (True, True)}


def test_moves_are_no_operations(tmp_path: Path) -> None:
    """Views, copies, casts and constants compute nothing."""
    forward = """
y = torch.zeros(4, 25, device=x.device)
y.copy_(x.t().contiguous().t().to(torch.float64).reshape(4, 25))
return launch(double, y[:, :]).clone()
"""
    assert run(tmp_path, forward).observed.operations == ()


def test_kernel_that_only_copies_is_marked(tmp_path: Path) -> None:
    """Equal bits are a copy, however they were computed."""
    done = run(tmp_path, "return launch(copy, x)")
    assert done.observed.launches[0].copies


def test_launches_are_left_out_on_request(tmp_path: Path) -> None:
    """What comes out then was not made by them."""
    done = run(tmp_path, "return launch(double, x)", suppress=True)
    assert done.outputs[0].unwritten == X.numel()
    assert done.observed.launches[0].count == 1


@pytest.mark.parametrize(
    ("forward", "where"),
    [
        ("y = torch.empty(101, device=x.device)\nlaunch(copy, torch.zeros(128), y[:100])", "past its end"),
        ("y = torch.empty(101, device=x.device)\nlaunch(copy, torch.zeros(64), y)", "nothing"),
    ],
)
def test_writes_beside_own_tensors(tmp_path: Path, forward: str, where: str) -> None:
    """Guards around what a candidate allocates; other sizes than its own are what `launch` writes."""
    done = run(tmp_path, f"{forward}\nreturn launch(double, x)")
    assert [where in each for each in done.observed.out_of_bounds] == ([True] if where != "nothing" else [])


def test_writes_before_own_tensors(tmp_path: Path) -> None:
    """Also on the other side, and when the tensor is gone already."""
    head = """
@triton.jit
def before(y):
    tl.store(y - 3, 1.0)
"""
    done = run(tmp_path, "before[(1,)](torch.ones(8, device='cuda'))\nreturn launch(double, x)", head=head)
    assert "before its start" in done.observed.out_of_bounds[0]


def test_unwritten_elements_are_counted(tmp_path: Path) -> None:
    """What nobody wrote still holds the pattern, in the first call and in later ones."""
    source = f"{HEAD}\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
    source += "        y = torch.empty_like(x)\n        return launch(double, x[:3], y)"
    with CandidateProcess(source, tmp_path) as talk:
        talk.construct()
        counts = []
        for _ in range(4):
            done = talk.call(X)
            assert isinstance(done, CallReply), done
            counts.append(done.outputs[0].unwritten)
    assert counts == [25] * 4


@pytest.mark.parametrize(
    ("forward", "said"),
    [
        ("import time\ntime.perf_counter = lambda: 0.0", "time.perf_counter was replaced"),
        ("torch.allclose = lambda *a, **k: True", "torch.allclose was replaced"),
        ("torch.Tensor.data_ptr = lambda self: 0", "torch.Tensor.data_ptr"),
        ("torch.manual_seed(3)", "random state was seeded"),
        ("torch.set_default_dtype(torch.float64)", "default dtype was changed"),
        ("import os\nif os.fork() == 0: os._exit(0)", "a process was forked"),
        (
            "import pipeline.verify.harness.buffers as b\nb.view = print",
            "pipeline.verify.harness.buffers.view was replaced",
        ),
        ("torch._C._autograd._disable_profiler()", "profiler was stopped"),
        ("import sys\nsys.settrace(lambda *a: None)", "sys.settrace"),
    ],
)
def test_changes_around_it_are_named(tmp_path: Path, forward: str, said: str) -> None:
    """A right kernel that changes what is not its own."""
    done = run(tmp_path, f"y = launch(double, x)\n{forward}\nreturn y")
    assert any(said in line for line in done.observed.tampering), done.observed.tampering


def test_threads_and_processes_that_stay_are_counted(tmp_path: Path) -> None:
    """What runs on after the call."""
    forward = """
import subprocess, threading, time
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
self.child = subprocess.Popen(["sleep", "30"])
return launch(double, x)
"""
    observed = run(tmp_path, forward).observed
    assert observed.threads >= 1
    assert observed.children == 1


def test_work_after_return_is_seen(tmp_path: Path) -> None:
    """An output that changes after `forward` has returned."""
    forward = """
import threading, time
y = launch(double, x)
def later():
    time.sleep(0.2)
    y.fill_(0)
threading.Thread(target=later).start()
return y
"""
    assert run(tmp_path, forward, settle=0.6).outputs[0].changed_later


@pytest.mark.parametrize(
    ("forward", "kind"),
    [
        ("class T(torch.Tensor): pass\nreturn x.as_subclass(T)", "T"),
        ("return 3", "int"),
        ("return None", "NoneType"),
        ("return x.to_sparse()", "torch.sparse_coo"),
    ],
)
def test_what_is_no_plain_tensor_is_only_named(tmp_path: Path, forward: str, kind: str) -> None:
    """Nothing of it is read."""
    output = run(tmp_path, forward).outputs[0]
    assert (output.kind, output.offset) == (kind, None)


def test_form_of_the_outputs_is_told(tmp_path: Path) -> None:
    """Strides, aliases, overlaps of several outputs."""
    done = run(tmp_path, "return x, launch(double, x).t(), torch.zeros(3).expand(2, 3), x[0].clone()")
    first, second, third, fourth = done.outputs
    assert done.structure == "tuple"
    assert first.aliases == ("input 0",)
    assert (second.shape, second.strides, second.aliases) == ((25, 4), (1, 25), ())
    assert third.overlaps
    assert not second.overlaps
    assert (fourth.name, fourth.shape) == ("output 3", (25,))


def test_candidate_for_the_device_runs_on_the_host(tmp_path: Path) -> None:
    """What code that was written for CUDA asks and does, without a device."""
    forward = """
assert torch.cuda.is_available() and x.is_cuda and x.device == torch.device("cuda", 0) and x.get_device() == 0
assert torch.cuda.get_device_properties(x.device).multi_processor_count == 4
with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.Stream()), torch.device("cuda"):
    y = torch.empty(x.shape)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record(torch.cuda.current_stream())
w = torch.randn(3, generator=torch.Generator(device="cuda"), device="cuda:0")
w = w.cuda().to("cuda").to(torch.device("cuda"))
assert w.device.type == "cuda" and torch.nn.Linear(2, 2).cuda().to("cuda").weight.is_cuda
host = x.cpu()
host.zero_()
launch(double, x, y)
end.record()
torch.cuda.synchronize()
assert start.elapsed_time(end) >= 0 and torch.cuda.current_stream().cuda_stream == 0
torch.backends.cuda.matmul.allow_tf32 = False
return y.to(x.device)
"""
    done = run(tmp_path, forward)
    assert done.observed.operations == ()
    assert done.outputs[0].device == "cpu"
    assert done.observed.tampering == ()


def test_graph_needs_a_device(tmp_path: Path) -> None:
    """What only a device can do is told as such."""
    with CandidateProcess(
        "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): torch.cuda.CUDAGraph()",
        tmp_path,
    ) as talk:
        talk.construct()
        refused = talk.call(X)
    assert isinstance(refused, RefusedReply)
    assert refused.error == "DeviceUnavailable"


@pytest.mark.parametrize(
    ("source", "stage", "error", "reason"),
    [
        ("import torch\n1 / 0", "import", "ZeroDivisionError", "ZeroDivisionError: division by zero"),
        ("class Model: pass", "import", "AttributeError", "no class ModelNew"),
        ("raise SystemExit(0)", "import", "SystemExit", "SystemExit: 0"),
        ("class ModelNew:\n    def __init__(self): raise KeyError('k')", "construct", "KeyError", "KeyError"),
        (
            "class ModelNew:\n    def __call__(self, x): raise KeyboardInterrupt",
            "call",
            "KeyboardInterrupt",
            "",
        ),
    ],
)
def test_what_raises_is_refused(tmp_path: Path, source: str, stage: str, error: str, reason: str) -> None:
    """With the stage, the type and the first line."""
    with CandidateProcess(source, tmp_path) as talk:
        answer = talk.loaded
        if isinstance(answer, ReadyReply):
            answer = talk.construct()
        if isinstance(answer, ReadyReply):
            answer = talk.call(X)
    assert isinstance(answer, RefusedReply), answer
    assert (answer.stage, answer.error) == (stage, error)
    assert reason in answer.reason


def test_leaving_ends_the_process(tmp_path: Path) -> None:
    """`os._exit(0)` is no answer."""
    source = "import os\nclass ModelNew:\n    def __call__(self, x): os._exit(0)"
    with CandidateProcess(source, tmp_path) as talk:
        talk.construct()
        with pytest.raises(ChildEnded):
            talk.call(X)


def test_protected_inputs_cannot_be_written(tmp_path: Path) -> None:
    """A write to them ends the process; reading them is fine."""
    source = f"{HEAD}\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, write):\n"
    source += "        return x.mul_(2) if write else launch(double, x)"
    with CandidateProcess(source, tmp_path) as talk:
        talk.construct()
        assert isinstance(talk.call(X, False, protected=True), CallReply)
        with pytest.raises(ChildEnded, match="SIGSEGV|SIGBUS"):
            talk.call(X, True, protected=True)


def test_nothing_outside_the_scratch_folder_can_be_written(tmp_path: Path) -> None:
    """The file system is read-only to it."""
    outside = tmp_path / "outside.txt"
    with CandidateProcess(f"open({str(outside)!r}, 'w')", tmp_path) as talk:
        assert isinstance(talk.loaded, RefusedReply)
    assert not outside.exists()
