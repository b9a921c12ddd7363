"""How a kernel is called, for a prompt: an implementation and its problem in, a signature and rules out."""

import re

from pipeline.backends.registry import backend
from pipeline.records.configuration.kernel import Implementation, TunableValue
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


class Contract(Record, frozen=True, kw_only=True):
    """What a source has to keep to."""

    language: str
    fence: str
    signature: str
    lines: tuple[str, ...]
    includes: tuple[str, ...]
    """Files in quotes that it may include."""


def contract_of(
    implementation: Implementation, problem: Problem, tunables: dict[str, TunableValue], declared: str
) -> Contract:
    """Of an implementation at a point; `declared` is the text of its own source."""
    member = backend(implementation.backend)
    language = member.language
    rules = [_shapes(problem)]
    if problem.attributes:
        rules.append(f"attributes: {_pairs(problem.attributes)}")
    if tunables:
        how = (
            "macros of the command line" if language.preprocessor else "keyword arguments of the entry point"
        )
        rules.append(f"{how}, to be used or ignored: {_pairs(tunables)}")
    includes = tuple(sorted(set(_INCLUDE.findall(declared)))) if language.preprocessor else ()
    rules += member.rules
    if includes:
        rules.append(f"may be included in addition to system headers: {', '.join(includes)}")
    if implementation.launch is not None:
        grid, block = implementation.launch.grid, implementation.launch.block
        rules.append(f"launched with grid {list(grid)} and block {list(block)}, shared memory in bytes:"
                     f" {implementation.launch.shared_memory}")  # fmt: skip
    entry = implementation.entry
    return Contract(
        language=language.title,
        fence=language.fence,
        signature=member.signature(entry, problem) or f"{entry}: exactly as in the source below",
        lines=tuple(rules),
        includes=includes,
    )


def _shapes(problem: Problem) -> str:
    shown = [
        f"{name} {tensor.dtype} [{', '.join(tensor.shape)}]"
        + (" (rows may be padded: stride in elements)" if tensor.layout == "row_strided" else "")
        for name, tensor in problem.tensors.items()
    ]
    sizes = _pairs(problem.dimensions)
    return f"tensors: {'; '.join(shown)}; measured at {sizes}, checked at many other sizes"


def _pairs(values: dict[str, int] | dict[str, TunableValue]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
