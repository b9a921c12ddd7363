"""BackendBench: `<operator>/<operator>_implementation*.py`, implementations of PyTorch's operators.

In: a checkout with `generated_kernels/`, or that folder. Out: a problem for each operator of `torch.ops.aten`
(`add__Tensor` is `add.Tensor`) whose arguments can be made from its signature alone; candidates are its
implementations. Their inputs come from OpInfo, which is no part of PyTorch's packages: ours are random.
"""

from pathlib import Path

from pipeline.interop.problem_sets.converted_folder import ConvertedFolder
from pipeline.interop.problem_sets.problem_set_registry import ProblemSet

_KERNELS = "generated_kernels"
_PROBLEM = '''"""The operator aten::{operator}, as PyTorch computes it."""

import torch

_OPERATOR = {operator!r}
size_rows, size_columns = 48, 96
_VALUES = {{"Scalar": 0.5, "number": 0.5, "int": 1, "float": 0.5, "bool": True}}


def _overload():
    name, _, overload = _OPERATOR.partition(".")
    return getattr(getattr(torch.ops.aten, name), overload or "default")


def _value(argument):
    """For one argument without a default, by its type and name."""
    kind = str(argument.type)
    if kind == "Tensor":
        return torch.randn(size_rows, size_columns)
    if "dim" in argument.name:
        return [-1] if kind.startswith("List") else -1
    if kind in _VALUES:
        return _VALUES[kind]
    raise NotImplementedError(f"aten::{{_OPERATOR}}: no value for its argument {{argument.name}}: {{kind}}")


class Model(torch.nn.Module):
    def forward(self, *arguments):
        return _overload()(*arguments)


def get_inputs():
    return [_value(each) for each in _overload()._schema.arguments if not each.has_default_value()]


def get_init_inputs():
    return []
'''
_CANDIDATE = """{text}


import torch as _torch


class ModelNew(_torch.nn.Module):
    def forward(self, *arguments):
        return {function}(*arguments)
"""


def convert(into: ConvertedFolder) -> None:
    """Add all operators."""
    for folder in _operators(into.source):
        name, operator = folder.name, ".".join(folder.name.rsplit("__", 1))
        if not into.add_problem(name, {"problem.py": _PROBLEM.format(operator=operator)}, folder):
            continue
        for path in sorted(folder.glob(f"{name}_implementation*.py")):
            text = into.text(path)
            if text is not None:
                source = _CANDIDATE.format(text=text, function=f"{name}_kernel_impl")
                into.add_candidate(name, path.stem.removeprefix(f"{name}_"), source, path)


def _operators(folder: Path) -> list[Path]:
    places = [folder / _KERNELS, folder]
    found = (
        sorted({path.parent for path in place.glob("*/*_implementation*.py") if _is_named(path)})
        for place in places
    )
    return next((each for each in found if each), [])


def _is_named(path: Path) -> bool:
    return path.name.startswith(f"{path.parent.name}_implementation")


BACKENDBENCH = ProblemSet(
    name="BackendBench",
    description="generated_kernels/<operator>/<operator>_implementation*.py",
    recognizes=lambda folder: bool(_operators(folder)),
    convert=convert,
)
