"""What a candidate's process notices of small candidates, one for each thing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pipeline.sandbox.processes.fork_server import ChildEnded
from pipeline.verify.harness.messages import CallReply, ReadyReply, RefusedReply, WeightUpdate
from tests.verify.harness.candidate_process import RUNS_BODIES, CandidateProcess, body

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

@triton.jit
def triple(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 3.0, mask=at < n)

def launch(kernel, x, y=None):
    y = torch.empty_like(x) if y is None else y
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), B=64)
    return y
"""
X = torch.linspace(-3, 3, 100).reshape(4, 25)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CandidateProcess]:
    """One process for all candidates that leave it as it was."""
    with CandidateProcess(HEAD + RUNS_BODIES, tmp_path_factory.mktemp("shared")) as talk:
        assert isinstance(talk.construct(), ReadyReply)
        yield talk


def call(talk: CandidateProcess, forward: str, **options: object) -> CallReply:
    """One call of a `forward(self, x)` with this body."""
    done = talk.call(body(forward), X, **options)
    assert isinstance(done, CallReply), done
    return done


def run(tmp_path: Path, forward: str, *, head: str = "", **options: object) -> CallReply:
    """The same in a process of its own."""
    with CandidateProcess(f"{HEAD}\n{head}\n{RUNS_BODIES}", tmp_path) as talk:
        assert isinstance(talk.construct(), ReadyReply)
        return call(talk, forward, **options)


def operations(done: CallReply) -> dict[str, tuple[bool, bool]]:
    """Name -> whether it worked on what an own kernel made, whether its result came out."""
    return {each.name: (each.from_own, each.is_output) for each in done.observed.operations}


def test_own_kernel_is_the_only_thing_seen(shared: CandidateProcess) -> None:
    """A right candidate: one launch that computed, nothing else."""
    done = call(shared, "return launch(double, x)")
    assert torch.equal(shared.value(done.outputs[0]), X * 2)
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
def test_operator_of_pytorch_is_named_and_known_as_the_output(
    shared: CandidateProcess, expression: str
) -> None:
    """However it is called, and wherever its result is moved."""
    found = operations(call(shared, f"return {expression}"))
    assert found["aten::_softmax"] == (False, True)


@pytest.mark.parametrize(
    ("returned", "beside_own"),
    [
        ("launch(double, x), x.sum(1)", True),
        ("launch(double, x[:1].contiguous()), x.exp()", False),
        ("launch(double, x), x.exp()", False),
        ("launch(double, x[:1].contiguous()), x[:3].exp(), x", False),
    ],
)
def test_one_of_several_outputs(shared: CandidateProcess, returned: str, beside_own: bool) -> None:
    """A sum next to what an own kernel computed is a part; inputs that are returned are nobody's."""
    (found,) = call(shared, f"return {returned}").observed.operations
    assert (found.from_own, found.is_output, found.beside_own) == (False, True, beside_own)


UNPACKS = """
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = (torch.nn.Parameter(torch.ones(n, 25)) for n in (6, 1))
        self.spare = torch.ones(6, 25)
    def forward(self, x):
        turned = launch(double, self.weight.detach().t().contiguous())
        return x @ turned + launch(copy, self.spare)[0, :1] + launch(triple, self.bias.detach())[0, 1:2]
"""


def test_kernels_that_prepare_weights(tmp_path: Path) -> None:
    """A kernel on the large weights of `Model` saw what matters, also on a copy; a bias or a tensor of the
    candidate's own is nothing."""
    state = {"weight": torch.rand(6, 25), "bias": torch.rand(1, 25)}
    with CandidateProcess(HEAD + UNPACKS, tmp_path) as talk:
        assert isinstance(talk.construct(state=state), ReadyReply)
        done = talk.call(X)
        assert isinstance(done, CallReply)
        reads = {each.name: each.reads for each in done.observed.launches}
        assert reads == {"double": "weights", "copy": "nothing", "triple": "nothing"}
        assert operations(done)["aten::mm"] == (True, False)


def test_operator_in_a_thread_is_seen(shared: CandidateProcess) -> None:
    """Threads of Python are watched."""
    done = call(
        shared,
        """
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    return pool.submit(torch.exp, x).result()
""",
    )
    assert operations(done)["aten::exp"] == (False, True)


def test_operator_hidden_from_the_mode_is_seen(shared: CandidateProcess) -> None:
    """PyTorch's profiler sees what escapes the dispatch mode."""
    done = call(shared, "with torch._C._DisableTorchDispatch():\n    return torch.softmax(x, 1)")
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


def test_finishing_touch_on_own_results_is_told_apart(shared: CandidateProcess) -> None:
    """A sum of partial results works on what an own kernel made."""
    found = operations(call(shared, "return launch(double, x).sum(1)"))
    assert found == {"aten::sum": (True, True)}


def test_moves_are_no_operations(shared: CandidateProcess) -> None:
    """Views, copies, casts and constants compute nothing."""
    forward = """
y = torch.zeros(4, 25, device=x.device)
y.copy_(x.t().contiguous().t().to(torch.float64).reshape(4, 25))
return launch(double, y[:, :]).clone()
"""
    assert call(shared, forward).observed.operations == ()


def test_kernel_that_only_copies_is_marked(shared: CandidateProcess) -> None:
    """Equal bits are a copy, however they were computed."""
    done = call(shared, "return launch(copy, x)")
    assert done.observed.launches[0].copies


def test_nothing_of_an_empty_input_is_touched(shared: CandidateProcess) -> None:
    """Whoever watches a launch leaves alone what an empty tensor seems to refer to."""
    done = shared.call(body("return launch(double, x)"), torch.empty(0, 25), fenced=True)
    assert isinstance(done, CallReply), done
    assert done.outputs[0].shape == (0, 25)


def test_launches_are_left_out_on_request(shared: CandidateProcess) -> None:
    """What comes out then was not made by them."""
    done = call(shared, "return launch(double, x)", suppress=True)
    assert done.outputs[0].unwritten == X.numel()
    assert done.observed.launches[0].count == 1


@pytest.mark.parametrize(
    ("forward", "where"),
    [
        ("y = torch.empty(101, device=x.device)\nlaunch(copy, torch.zeros(128), y[:100])", "past the end"),
        ("y = torch.empty(101, device=x.device)\nlaunch(copy, torch.zeros(64), y)", "nothing"),
    ],
)
def test_writes_beside_own_tensors(tmp_path: Path, forward: str, where: str) -> None:
    """The interpreter knows the tensors of a launch; other sizes than its own are what `launch` writes."""
    done = run(tmp_path, f"{forward}\nreturn launch(double, x)")
    found = [where in each.text for each in done.observed.memory_faults]
    assert found == ([True] if where != "nothing" else [])


def test_native_writes_beside_own_tensors(tmp_path: Path) -> None:
    """Guards around what a candidate allocates."""
    head = "import ctypes"
    forward = "y = torch.empty(101)\nctypes.memset(y.data_ptr() + 404, 0, 8)\nreturn launch(double, x)"
    done = run(tmp_path, forward, head=head)
    assert ["past its end" in each for each in done.observed.out_of_bounds] == [True]


def test_writes_before_own_tensors(tmp_path: Path) -> None:
    """Also on the other side, and when the tensor is gone already."""
    head = """
@triton.jit
def before(y):
    tl.store(y - 3, 1.0)
"""
    done = run(tmp_path, "before[(1,)](torch.ones(8, device='cuda'))\nreturn launch(double, x)", head=head)
    assert "before the start of y" in done.observed.memory_faults[0].text


def test_unwritten_elements_are_counted(shared: CandidateProcess) -> None:
    """What nobody wrote still holds the pattern, in the first call and in later ones."""
    forward = "return launch(double, x[:3], torch.empty_like(x))"
    assert [call(shared, forward).outputs[0].unwritten for _ in range(4)] == [25] * 4


CHANGES = {
    "time.perf_counter was replaced": "import time\ntime.perf_counter = lambda: 0.0",
    "torch.allclose was replaced": "torch.allclose = lambda *a, **k: True",
    "random state was seeded": "torch.manual_seed(3)",
    "default dtype was changed": "torch.set_default_dtype(torch.float64)",
    "a process was forked": "import os\nif os.fork() == 0: os._exit(0)",
    "pipeline.verify.harness.buffers.view was replaced": (
        "import pipeline.verify.harness.buffers as b\nb.view = print"
    ),
    "sys.settrace": "import sys\nsys.settrace(lambda *a: None)",
}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(CHANGES, id="what the process can go on with", marks=pytest.mark.slow),
        pytest.param({"torch.Tensor.data_ptr": "torch.Tensor.data_ptr = lambda self: 0"}, id="data_ptr"),
        pytest.param(
            {"profiler was stopped": "torch._C._autograd._disable_profiler()"},
            id="profiler",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_changes_around_it_are_named(tmp_path: Path, changes: dict[str, str]) -> None:
    """A right kernel that changes what is not its own; each change is named."""
    lines = "\n".join(changes.values())
    done = run(tmp_path, f"y = launch(double, x)\n{lines}\nreturn y")
    said = "; ".join(done.observed.tampering)
    assert [words for words in changes if words not in said] == [], said


@pytest.mark.slow
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


def test_work_after_return_is_seen(shared: CandidateProcess) -> None:
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
    assert call(shared, forward, settle=0.6).outputs[0].changed_later


@pytest.mark.parametrize(
    ("forward", "kind"),
    [
        ("class T(torch.Tensor): pass\nreturn x.as_subclass(T)", "T"),
        ("return 3", "int"),
        ("return None", "NoneType"),
        ("return x.to_sparse()", "torch.sparse_coo"),
    ],
)
def test_what_is_no_plain_tensor_is_only_named(shared: CandidateProcess, forward: str, kind: str) -> None:
    """Nothing of it is read."""
    output = call(shared, forward).outputs[0]
    assert (output.kind, output.offset) == (kind, None)


def test_form_of_the_outputs_is_told(shared: CandidateProcess) -> None:
    """Strides, aliases, overlaps of several outputs."""
    done = call(shared, "return x, launch(double, x).t(), torch.zeros(3).expand(2, 3), x[0].clone()")
    first, second, third, fourth = done.outputs
    assert done.structure == "tuple"
    assert first.aliases == ("input 0",)
    assert (second.shape, second.strides, second.aliases) == ((25, 4), (1, 25), ())
    assert third.overlaps
    assert not second.overlaps
    assert (fourth.name, fourth.shape) == ("output 3", (25,))


def test_candidate_for_the_device_runs_on_the_host(shared: CandidateProcess) -> None:
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
    done = call(shared, forward)
    assert done.observed.operations == ()
    assert done.outputs[0].elsewhere == ""
    assert done.observed.tampering == ()


@pytest.mark.slow
def test_graph_needs_a_device(tmp_path: Path) -> None:
    """What only a device can do is reported as such."""
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


@pytest.mark.slow
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


def test_inputs_inside_of_their_storage(shared: CandidateProcess) -> None:
    """At an address that is no multiple of 16."""
    done = call(shared, "return torch.tensor([float(x.storage_offset()), x.data_ptr() % 16.0])", lead=1)
    assert shared.value(done.outputs[0]).tolist() == [1.0, 4.0]
    done = call(shared, "return launch(double, x)", lead=1)
    assert torch.equal(shared.value(done.outputs[0]), 2 * X)


@pytest.mark.parametrize(
    ("forward", "found"),
    [
        ("open('kept.bin', 'wb').close()", ["wrote ./kept.bin"]),
        ("torch.save(x, 'kept.pt')", ["wrote ./kept.pt"]),
        (
            "import pathlib; pathlib.Path('/tmp/nowhere/of/all').unlink(missing_ok=True)",
            ["deleted /tmp/nowhere/of/all"],
        ),
        ("import tempfile; tempfile.TemporaryDirectory().cleanup()", []),
        ("open('source.cu', 'w').close()", []),
        ("open('candidate_module.py').close()", []),
        (
            "open('fresh.py', 'w').close(); import importlib.util as u; "
            "s = u.spec_from_file_location('fresh', 'fresh.py'); s.loader.exec_module(u.module_from_spec(s))",
            [],
        ),
    ],
)
def test_files(shared: CandidateProcess, forward: str, found: list[str]) -> None:
    """Files that its own code writes and deletes count; temporary ones, sources and imports do not."""
    done = call(shared, f"{forward}\nreturn launch(double, x)")
    assert list(done.observed.tampering) == found


WEIGHTED = """
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.weight * 1.0
"""


@pytest.mark.parametrize("how", ["in place", "load_state_dict"])
def test_weights_of_an_instance_change(tmp_path: Path, how: WeightUpdate) -> None:
    """The instance is the same, and says whether all names are."""
    with CandidateProcess(f"import torch\n{WEIGHTED}", tmp_path) as talk:
        ready = talk.construct(state={"weight": torch.full((3,), 2.0)})
        assert isinstance(ready, ReadyReply)
        assert ready.same_names
        talk.construct(state={"weight": torch.full((3,), 5.0)}, update=how)
        done = talk.call(X)
        assert isinstance(done, CallReply)
        assert talk.value(done.outputs[0]).tolist() == [5.0] * 3
