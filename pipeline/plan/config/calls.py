"""Check what a kernel's yaml says of a package's callable, or of another kernel's gradients."""

from collections.abc import Iterator

from pipeline.plan.config.groups import hint
from pipeline.records.kernel import DERIVED, Argument, Call, Given, GradientOf, Implementation, Kernel

CALLING = ("triton",)
"""Backends whose implementations may be callables of packages."""


def call_problems(kernel: Kernel, implementation: Implementation, call: Call) -> Iterator[str]:
    """All that is wrong: `key: what`."""
    module, _, names = call.function.partition(":")
    if not module or not names or not all(name.isidentifier() for name in names.split(".")):
        yield f"function: expected module:function or module:Class.apply, got '{call.function}'"
    inputs = tuple(name for name, tensor in kernel.tensors.items() if tensor.role == "input")
    known = {*inputs, *kernel.scalars, *kernel.attributes, *implementation.tunables}
    places = [(f"arguments[{number}]", argument) for number, argument in enumerate(call.arguments)]
    places += [(f"keywords.{key}", argument) for key, argument in call.keywords.items()]
    for place, argument in places:
        yield from _argument(place, argument, known, inputs)
    yield from _results(kernel, call)
    if call.gradients is not None:
        yield from _gradients(call, inputs)


def gradient_problems(kernel: Kernel, declared: GradientOf) -> Iterator[str]:
    """What is wrong with a backward kernel's `gradient_of`."""
    inputs = [name for name, tensor in kernel.tensors.items() if tensor.role == "input"]
    outputs = [name for name, tensor in kernel.tensors.items() if tensor.role == "output"]
    for key, names in (("inputs", declared.inputs), ("upstream", declared.upstream)):
        for name in names:
            if name not in inputs:
                yield f"gradient_of.{key}: unknown input '{name}' {hint(name, inputs)}"
    if set(declared.inputs) & set(declared.upstream):
        yield "gradient_of: an input is either the forward's or an upstream gradient"
    if len(declared.inputs) != len(outputs):
        wanted = ", ".join(outputs)
        yield f"gradient_of.inputs: expected one for each output ({wanted}), got {len(declared.inputs)}"
    if kernel.tolerance.magnitude != DERIVED:
        yield f"gradient_of: needs tolerance.magnitude: {DERIVED}, got '{kernel.tolerance.magnitude}'"


def _argument(place: str, argument: Argument, known: set[str], inputs: tuple[str, ...]) -> Iterator[str]:
    match argument:
        case str() if argument not in known:
            names = hint(argument, sorted(known))
            yield f"{place}: unknown name '{argument}' {names}; a string is {{literal: …}}"
        case Given(copy=str(name)) if name not in inputs:
            yield f"{place}.copy: unknown input '{name}' {hint(name, inputs)}"


def _results(kernel: Kernel, call: Call) -> Iterator[str]:
    outputs = [name for name, tensor in kernel.tensors.items() if tensor.role == "output"]
    for number, name in enumerate(call.results):
        if name is not None and name not in outputs:
            yield f"results[{number}]: unknown output '{name}' {hint(name, outputs)}"
        elif name is not None and name in call.results[:number]:
            yield f"results[{number}]: '{name}' stands there twice"
    for name in outputs:
        if name not in call.results:
            yield f"results: the output '{name}' is missing"


def _gradients(call: Call, inputs: tuple[str, ...]) -> Iterator[str]:
    assert call.gradients is not None
    given = [argument.copy if isinstance(argument, Given) else argument for argument in call.arguments]
    for name in call.gradients.of:
        if name not in given:
            yield f"gradients.of: '{name}' is none of the arguments"
    for name in call.gradients.upstream:
        if name not in inputs:
            yield f"gradients.upstream: unknown input '{name}' {hint(name, inputs)}"
    if len(call.gradients.of) != len(call.results):
        yield (
            f"gradients.of: {len(call.gradients.of)} gradients for {len(call.results)} results,"
            " expected one for each"
        )
