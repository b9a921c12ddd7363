"""The JSON of flashinfer-bench, as its documentation describes it: definitions, workloads, solutions.

In: the folder of a data set (`definitions/`, `workloads/`, `solutions/`, each with any folders inside). Out:
records. Unknown fields are passed over: the format is another project's, and grows.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import simpleeval

from pipeline.records.errors import ConfigError

FILE = "definition.json"
ELEMENTS_AT_MOST = 1 << 22
"""Of the largest tensor of a workload; larger ones are not tried, except where all are."""

T = TypeVar("T")


class DataSetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Another project's record."""


class DefinitionAxis(DataSetRecord, frozen=True, kw_only=True):
    """`const` with its value, `var`, which workloads give one, or `expr`."""

    type: str
    value: int | None = None
    expression: str | None = None
    """Of other axes, where the type is `expr` (SOL-ExecBench)."""


class TensorSpec(DataSetRecord, frozen=True, kw_only=True):
    """A tensor by the names of its axes; without a shape a plain number."""

    shape: tuple[str, ...] | None
    dtype: str


class Definition(DataSetRecord, frozen=True, kw_only=True):
    """A task: what is computed, on which shapes."""

    name: str
    axes: dict[str, DefinitionAxis]
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    reference: str
    """Python source with a function `run`, inputs in order."""
    description: str | None = None
    constraints: tuple[str, ...] | None = None
    custom_inputs_entrypoint: str | None = None
    """Function of `reference` that makes the inputs of type `custom` (SOL-ExecBench)."""

    def shape(self, tensor: TensorSpec, sizes: dict[str, int]) -> tuple[int, ...]:
        """Concrete shape; KeyError for an axis without a value."""
        known = self.sizes(sizes)
        return tuple(known[axis] for axis in tensor.shape or ())

    def sizes(self, given: dict[str, int]) -> dict[str, int]:
        """Of all axes that have a value, where some are given; KeyError for one that an expression misses."""
        known = {name: axis.value for name, axis in self.axes.items() if axis.value is not None} | given
        for name, axis in self.axes.items():
            if axis.expression is not None:
                try:
                    known[name] = int(simpleeval.simple_eval(axis.expression, names=known))
                except simpleeval.InvalidExpression as error:
                    raise KeyError(f"{name} = {axis.expression}: {error}") from None
        return known


class DefinitionWorkload(DataSetRecord, frozen=True, kw_only=True):
    """One set of inputs of a definition."""

    uuid: str
    axes: dict[str, int]
    inputs: dict[str, dict[str, Any]]
    """By `type`: `random`, `custom`, `scalar` with `value`, `safetensors` with `path` and `tensor_key`."""
    tolerance: dict[str, Any] | None = None
    """`max_atol`, `max_rtol`, `required_matched_ratio` (SOL-ExecBench)."""


class WorkloadLine(DataSetRecord, frozen=True, kw_only=True):
    """A line of `workloads/…/*.jsonl`."""

    definition: str
    workload: DefinitionWorkload


class SourceFile(DataSetRecord, frozen=True, kw_only=True):
    """One file of a solution."""

    path: str
    content: str


class SolutionBuild(DataSetRecord, frozen=True, kw_only=True):
    """How a solution is built and called."""

    language: str = ""
    languages: tuple[str, ...] = ()
    """In place of `language` (SOL-ExecBench)."""
    entry_point: str
    """`file::function`."""
    destination_passing_style: bool = True
    """Outputs come as the last arguments and are written in place."""
    compile_options: dict[str, tuple[str, ...]] | None = None
    """`cflags`, `cuda_cflags`, `ld_flags` (SOL-ExecBench)."""
    binding: str | None = None
    """Of C++ and CUDA: `torch`, or `tvm-ffi` where it is not given."""


class Solution(DataSetRecord, frozen=True, kw_only=True):
    """A candidate."""

    name: str
    definition: str
    spec: SolutionBuild
    sources: tuple[SourceFile, ...]


class DataSet(DataSetRecord, frozen=True, kw_only=True):
    """The record that `convert` writes next to a problem."""

    root: str
    definition: Definition
    workloads: tuple[DefinitionWorkload, ...]
    """In the order of their size."""


def is_data_set(folder: Path) -> bool:
    """Whether a folder is laid out as theirs."""
    return (folder / "definitions").is_dir() and not (folder / "definitions" / "problem.py").is_file()


def definitions(folder: Path) -> Iterator[tuple[Path, Definition | ConfigError]]:
    """Every definition with its file, or what is wrong with it."""
    return _each(folder / "definitions", Definition)


def solutions(folder: Path) -> Iterator[tuple[Path, Solution | ConfigError]]:
    """Every solution with its file, or what is wrong with it."""
    return _each(folder / "solutions", Solution)


def workloads(folder: Path) -> dict[str, list[DefinitionWorkload]]:
    """Definition -> its workloads in order; lines that are none are left out.

    Raises
    ------
    ConfigError
        A line is no JSON of a workload; names file and line.
    """
    found: dict[str, list[DefinitionWorkload]] = {}
    for path in sorted((folder / "workloads").rglob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if not line.strip():
                continue
            try:
                read = msgspec.json.decode(line, type=WorkloadLine)
            except msgspec.DecodeError as error:
                raise ConfigError(f"{path}:{number}: not a workload: {error}") from None
            found.setdefault(read.definition, []).append(read.workload)
    return found


def _each(folder: Path, kind: type[T]) -> Iterator[tuple[Path, T | ConfigError]]:
    for path in sorted(folder.rglob("*.json")):
        try:
            yield path, msgspec.json.decode(path.read_bytes(), type=kind)
        except (OSError, msgspec.DecodeError) as error:
            yield path, ConfigError(f"{path}: not a {kind.__name__.lower()}: {error}")


def read(folder: Path) -> DataSet:
    """Of the problem in a folder."""
    return msgspec.json.decode((folder / FILE).read_bytes(), type=DataSet)


def order(definition: Definition, found: list[DefinitionWorkload]) -> tuple[DefinitionWorkload, ...]:
    """Smallest first, without those that are too large to be tried; at least one."""
    ranked = sorted(found, key=lambda each: _elements(definition, each))
    small = [each for each in ranked if _elements(definition, each) <= ELEMENTS_AT_MOST]
    return tuple(small or ranked[:1])


def _elements(definition: Definition, workload: DefinitionWorkload) -> int:
    tensors = [*definition.inputs.values(), *definition.outputs.values()]
    try:
        return max(math.prod(definition.shape(tensor, workload.axes)) for tensor in tensors)
    except KeyError:  # reported when the problem makes its inputs
        return 0
