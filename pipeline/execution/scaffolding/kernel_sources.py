"""Sources of a function's steps: plain C++ and Triton, right and simple, to be made fast by hand."""

from collections.abc import Iterator

from pipeline.execution.scaffolding.function_graph import POINTWISE, FunctionGraph, Step, ValueShape

_START = {"sum": "0.0f", "mean": "0.0f", "amax": "-INFINITY", "amin": "INFINITY"}
_NEUTRAL = {"sum": "0.0", "mean": "0.0", "amax": 'float("-inf")', "amin": 'float("inf")'}


def cpp_source(name: str, graph: FunctionGraph) -> str:
    """One loop over the columns for each reduction, and one for the result."""
    inputs = ", ".join(f"const Element* {each}" for each in graph.inputs)
    body = "\n".join(f"        {line}" for line in _cpp_row(graph))
    return f"""// {name}: one row after the other, as `reference.py` says.
//
// A start: every reduction reads its row again, and values are computed anew in each loop.
// What to try: LANES and vec::load of vector.hpp, several rows at a time.

#include <cmath>
#include <cstdint>

#define LANES 8  // vector.hpp wants it; this source converts single elements only
#include "../vector.hpp"

using vec::Element;

// Matrices [rows, cols] and vectors [cols], contiguous. Always returns 0.
extern "C" int {name}({inputs}, Element* y, std::int64_t rows, std::int64_t cols) {{
#pragma omp parallel for schedule(static) if (PARALLEL && rows * cols >= 16384)
    for (std::int64_t row = 0; row < rows; ++row) {{
{body}
    }}
    return 0;
}}
"""


def _cpp_row(graph: FunctionGraph) -> Iterator[str]:
    for step in graph.steps:
        if step.reduces:
            yield from _cpp_reduction(graph, step)
        elif step.shape is ValueShape.ROW:
            yield f"const float {step.name} = {_cpp(step, graph)};"
    result = graph.steps[-1]
    yield "for (std::int64_t col = 0; col < cols; ++col) {"
    yield from _cpp_values(graph, result.name)
    yield f"    y[row * cols + col] = vec::to_element({result.name});"
    yield "}"


def _cpp_reduction(graph: FunctionGraph, step: Step) -> Iterator[str]:
    name, argument = step.name, _operand(step.arguments[0], graph.inputs)
    yield f"float {name} = {_START[step.operation]};"
    yield "for (std::int64_t col = 0; col < cols; ++col) {"
    yield from _cpp_values(graph, str(step.arguments[0]))
    if step.operation in ("sum", "mean"):
        yield f"    {name} += {argument};"
    else:  # NaN stays
        sign = ">" if step.operation == "amax" else "<"
        yield f"    {name} = {argument} {sign} {name} || {argument} != {argument} ? {argument} : {name};"
    yield "}"
    if step.operation == "mean":
        yield f"{name} /= static_cast<float>(cols);"


def _cpp_values(graph: FunctionGraph, wanted: str) -> Iterator[str]:
    """What a column's value needs, in order."""
    needed = _needed(graph, wanted)
    for name, shape in graph.inputs.items():
        if name in needed:
            place = "col" if shape is ValueShape.VECTOR else "row * cols + col"
            yield f"    const float {name}_ = vec::to_float({name}[{place}]);"
    for step in graph.steps:
        if step.name in needed and step.shape is not ValueShape.ROW:
            yield f"    const float {step.name} = {_cpp(step, graph)};"


def _needed(graph: FunctionGraph, wanted: str) -> set[str]:
    steps = {step.name: step for step in graph.steps}
    found: set[str] = set()
    waiting = [wanted]
    while waiting:
        name = waiting.pop()
        if name in found or (name in steps and steps[name].shape is ValueShape.ROW):
            continue
        found.add(name)
        waiting += [
            each for each in (steps[name].arguments if name in steps else ()) if isinstance(each, str)
        ]
    return found


def _cpp(step: Step, graph: FunctionGraph) -> str:
    given = [_operand(each, graph.inputs, suffix="f") for each in step.arguments]
    return POINTWISE[step.operation].cpp.format(*given)


def _operand(argument: str | float, inputs: dict[str, ValueShape], *, suffix: str = "") -> str:
    if isinstance(argument, str):
        return f"{argument}_" if argument in inputs else argument
    text = f"{argument!r}{suffix}"
    return f"({text})" if argument < 0 else text


def missing_in_triton(graph: FunctionGraph) -> list[str]:
    """Operations that have no form there."""
    used = dict.fromkeys(step.operation for step in graph.steps if not step.reduces)
    return [name for name in used if POINTWISE[name].triton is None]


def triton_source(name: str, graph: FunctionGraph) -> str:
    """One program for each row, which it holds whole."""
    inputs = ", ".join(graph.inputs)
    body = "\n".join(f"    {line}" for line in _triton_row(graph))
    return f'''"""{name} in Triton: one program for each row, held whole in registers.

A start: long rows spill. What to try: several rows for a program, blocks of a row with a running result.
"""

import triton
import triton.language as tl


@triton.jit
def {name}_kernel({inputs}, y, cols, BLOCK: tl.constexpr):
    """Matrices [rows, cols] and vectors [cols] -> y [rows, cols]."""
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    mask = col < cols
{body}
    tl.store(y + row * cols + col, {graph.steps[-1].name}.to(y.dtype.element_ty), mask=mask)


def launch({inputs}, y, num_warps):
    """All tensors are contiguous; writes y."""
    rows, cols = y.shape
    if rows and cols:
        block = triton.next_power_of_2(cols)
        {name}_kernel[(rows,)]({inputs}, y, cols, BLOCK=block, num_warps=num_warps)
'''


def _triton_row(graph: FunctionGraph) -> Iterator[str]:
    for name, shape in graph.inputs.items():
        place = "col" if shape is ValueShape.VECTOR else "row * cols + col"
        yield f"{name}_ = tl.load({name} + {place}, mask=mask).to(tl.float32)"
    for step in graph.steps:
        if not step.reduces:
            form = POINTWISE[step.operation].triton
            assert form is not None
            yield f"{step.name} = {form.format(*(_operand(each, graph.inputs) for each in step.arguments))}"
            continue
        value = _operand(step.arguments[0], graph.inputs)
        kept = f"tl.where(mask, {value}, {_NEUTRAL[step.operation]})"
        if step.operation in ("sum", "mean"):
            tail = " / cols" if step.operation == "mean" else ""
            yield f"{step.name} = tl.sum({kept}, axis=0){tail}"
        else:  # NaN stays
            yield f"{step.name} = tl.{step.operation[1:]}({kept}, axis=0)"
            yield f"{step.name}_nan = tl.max(tl.where(mask & ({value} != {value}), 1, 0), axis=0)"
            yield f'{step.name} = tl.where({step.name}_nan > 0, float("nan"), {step.name})'
