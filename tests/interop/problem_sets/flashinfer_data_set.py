"""A small data set in the format of flashinfer-bench, written by hand."""

import json
from pathlib import Path

REFERENCE = """import torch


def run(x, weight, eps):
    square = x.float().pow(2).mean(-1, keepdim=True)
    return (x.float() * torch.rsqrt(square + eps) * weight.float()).to(x.dtype)
"""
DEFINITION = {
    "name": "rmsnorm_d32",
    "op_type": "rmsnorm",
    "description": 'Root mean square "norm".',
    "tags": ["status:plan"],
    "axes": {"batch": {"type": "var"}, "hidden": {"type": "const", "value": 32}},
    "inputs": {
        "x": {"shape": ["batch", "hidden"], "dtype": "float32"},
        "weight": {"shape": ["hidden"], "dtype": "float32"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["batch", "hidden"], "dtype": "float32"}},
    "reference": REFERENCE,
}
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def norm(x, weight, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + col, mask=col < cols, other=0.0)
    scale = tl.load(weight + col, mask=col < cols, other=0.0)
    inverse = 1.0 / tl.sqrt(tl.sum(values * values) / cols + eps)
    tl.store(y + row * cols + col, values * inverse * scale FACTOR, mask=col < cols)


def run(x, weight, eps, y):
    norm[(x.shape[0],)](x, weight, y, x.shape[1], eps, BLOCK=triton.next_power_of_2(x.shape[1]))
"""


def workload(uuid: str, batch: int, **inputs: dict) -> dict:
    """A line of the workloads."""
    described = {
        "x": {"type": "random"},
        "weight": {"type": "random"},
        "eps": {"type": "scalar", "value": 1e-6},
    }
    return {
        "definition": "rmsnorm_d32",
        "workload": {"uuid": uuid, "axes": {"batch": batch}, "inputs": described | inputs},
        "solution": None,
        "evaluation": None,
    }


def solution(name: str, sources: dict[str, str], **spec: object) -> dict:
    """A solution; `spec` changes what is usual."""
    usual = {"language": "triton", "target_hardware": ["NVIDIA_H100"], "entry_point": "main.py::run"}
    return {
        "name": name,
        "definition": "rmsnorm_d32",
        "author": "nobody",
        "spec": usual | spec,
        "sources": [{"path": path, "content": text} for path, text in sources.items()],
    }


def write(folder: Path, path: str, *values: dict) -> None:
    """JSON, or several lines of it."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(json.dumps(value) for value in values))


def safetensors(path: Path, name: str, shape: list[int], raw: bytes, dtype: str = "F32") -> None:
    """A file with one tensor."""
    header = json.dumps({name: {"dtype": dtype, "shape": shape, "data_offsets": [0, len(raw)]}}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(header).to_bytes(8, "little") + header + raw)


def data_set(folder: Path) -> Path:
    """A definition, two workloads, a right and a wrong solution in Triton, one that returns its output."""
    write(folder, "definitions/rmsnorm/rmsnorm_d32.json", DEFINITION)
    lines = (workload("large", 40), workload("small", 3))
    write(folder, "workloads/rmsnorm/rmsnorm_d32.jsonl", *lines)
    right = KERNEL.replace("FACTOR", "")
    where = "solutions/nobody/rmsnorm/rmsnorm_d32"
    write(folder, f"{where}/right.json", solution("right", {"main.py": right}))
    write(folder, f"{where}/wrong.json", solution("wrong", {"main.py": KERNEL.replace("FACTOR", "* 1.001")}))
    parts = {
        "main.py": "import torch\nfrom parts.norm import run as into\n\n\ndef run(x, weight, eps):\n"
        "    y = torch.empty_like(x)\n    into(x, weight, eps, y)\n    return y\n",
        "parts/__init__.py": "",
        "parts/norm.py": right,
    }
    returning = solution("in parts", parts, destination_passing_style=False)
    write(folder, f"{where}/in_parts.json", returning)
    ffi = solution("ffi", {"kernel.cu": ""}, language="cuda", entry_point="kernel.cu::run")
    write(folder, f"{where}/ffi.json", ffi)
    return folder
