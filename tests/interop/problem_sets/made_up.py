"""Small folders in the formats of other projects, for tests: doubling a vector, right and wrong."""

import json
from pathlib import Path

MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x


n = 3000


def get_inputs():
    return [torch.randn(n)]


def get_init_inputs():
    return []
"""
DOUBLE = '''
import ctypes
import subprocess
import torch

SOURCE = """
extern "C" void scale(const float* x, float* y, long n) {
    for (long i = 0; i < n; i++) y[i] = FACTORf * x[i];
}
"""


def build():
    open("scale.cpp", "w").write(SOURCE)
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "scale.cpp", "-o", "./scale.so"], check=True)
    return ctypes.CDLL("./scale.so")


LIBRARY = build()


def double_into(x, y):
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, y)]
    LIBRARY.scale(*pointers, ctypes.c_long(x.numel()))


def double(x):
    y = torch.empty_like(x)
    double_into(x, y)
    return y
'''
FACTORS = {"right": "2.0", "wrong": "2.01"}


def double(name: str, tail: str) -> str:
    """The right or the wrong candidate, ending with what the format calls."""
    return f"{DOUBLE.replace('FACTOR', FACTORS[name])}\n\n{tail}"


def write(folder: Path, files: dict[str, str]) -> Path:
    """Files by path."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def kernelbench(folder: Path) -> Path:
    """Two levels, one run with a candidate of each kind."""
    new = "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return double(x)\n"
    return write(
        folder,
        {
            "KernelBench/level1/1_Double.py": MODEL,
            "KernelBench/level2/7_Double_again.py": MODEL,
            "runs/first/level_1_problem_1_sample_0_kernel.py": double("right", new),
            "runs/first/level_1_problem_1_sample_1_kernel.py": double("wrong", new),
        },
    )


def robust_kbench(folder: Path) -> Path:
    """One task with a function, its model and a configuration."""
    task = """
import torch


def forward_fn(x, scale):
    return scale * x


class Model(torch.nn.Module):
    def __init__(self, factor: float = 2.0):
        super().__init__()
        self.factor = factor

    def forward(self, x, fn=forward_fn):
        return fn(x, self.factor)


def get_inputs(count: int = 100):
    return [torch.randn(count)]
"""
    config = {f"single_{kind}_configs": [{}] for kind in ("init", "shared")}
    config |= {"single_input_configs": [{"count": 3000}]}
    forward = "def forward(x, scale):\n    return double(x)\n"
    return write(
        folder,
        {
            "tasks/double/func_forward.py": task,
            "tasks/double/config_forward.json": json.dumps(config),
            "tasks/double/forward_right.py": double("right", forward),
            "tasks/double/forward_wrong.py": double("wrong", forward),
        },
    )


def gpu_mode(folder: Path) -> Path:
    """One task that writes into an output it is given, with a module that both sides import."""
    task = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "eval.py", "source": "../eval.py"}
tests:
  - {"size": 3000, "seed": 7}
  - {"size": 17, "seed": 8}
"""
    reference = """
import torch
from task import FACTOR


def ref_kernel(data):
    x, y = data
    y[...] = FACTOR * x
    return y


def generate_input(size, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    x = torch.randn(size, device="cuda", generator=generator)
    return x, torch.empty_like(x)


def make_match_reference(reference, **tolerance): ...


check_implementation = make_match_reference(ref_kernel, rtol=1e-4, atol=1e-4)
"""
    kernel = (
        "from task import FACTOR\n\n\ndef custom_kernel(data):\n    double_into(*data)\n    return data[1]\n"
    )
    return write(
        folder,
        {
            "problems/double/task.yml": task,
            "problems/double/task.py": "FACTOR = 2.0\n",
            "problems/double/reference.py": reference,
            "problems/double/submission.py": double("right", kernel),
            "problems/double/solutions/wrong/factor.py": double("wrong", kernel),
        },
    )


def sol_execbench(folder: Path) -> Path:
    """One definition with an axis that is an expression and inputs of its own, two solutions."""
    definition = {
        "name": "double",
        "op_type": "scale",
        "axes": {
            "half": {"type": "var"},
            "length": {"type": "expr", "expression": "2 * half"},
        },
        "custom_inputs_entrypoint": "make",
        "inputs": {"x": {"shape": ["length"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["length"], "dtype": "float32"}},
        "reference": "import torch\n\n\ndef make(sizes, device):\n"
        "    return {'x': torch.rand(sizes['length'], device=device)}\n\n\ndef run(x):\n    return 2 * x\n",
    }
    line = {
        "uuid": "a",
        "axes": {"half": 1500},
        "inputs": {"x": {"type": "custom"}},
        "tolerance": {"max_atol": 1e-4, "max_rtol": 1e-4, "required_matched_ratio": 0.9},
    }
    files = {
        "L1/double/definition.json": json.dumps(definition),
        "L1/double/workload.jsonl": json.dumps(line),
    }
    run = "def run(x, y):\n    double_into(x, y)\n"
    for name in FACTORS:
        solution = {
            "name": name,
            "definition": "double",
            "author": "nobody",
            "spec": {"languages": ["pytorch"], "target_hardware": ["LOCAL"], "entry_point": "kernel.py::run"},
            "sources": [{"path": "kernel.py", "content": double(name, run)}],
        }
        files[f"L1/double/solution_{name}.json"] = json.dumps(solution)
    return write(folder, files)


def backendbench(folder: Path) -> Path:
    """One operator with an implementation of each kind."""
    right = DOUBLE.replace("y[i] = FACTORf * x[i]", "y[i] = x[i] > 0 ? x[i] : LEAK")
    end = "def relu__default_kernel_impl(x):\n    return double(x)\n"
    return write(
        folder,
        {
            "generated_kernels/relu__default/relu__default_implementation_v1.py": right.replace("LEAK", "0")
            + f"\n\n{end}",
            "generated_kernels/relu__default/relu__default_implementation_v2.py": right.replace(
                "LEAK", "0.01f * x[i]"
            )
            + f"\n\n{end}",
        },
    )
