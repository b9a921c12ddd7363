"""Every operator makes the mistake that its name says, in one line, and leaves the rest as it is."""

import ast
import difflib
from collections.abc import Mapping

import pytest

from pipeline.records.results.mutated import Mutant
from pipeline.verify.mutation import cpp_operators, python_operators
from pipeline.verify.mutation.source_edit import Operator, apply, make_mutant
from tests.verify.mutation.sources import CPP, TRITON

MISTAKES = {
    ("py", "drop_mask"): "tl.load(x + row[:, None] * x_stride + col[None, :]).to(tl.float32)",
    ("py", "off_by_one"): "for start in range(0, cols - 1, BLOCK):",
    ("py", "half_accumulate"): ".to(tl.float16).to(tl.float32)",
    ("py", "skip_last_tile"): "for start in range(0, cols - BLOCK, BLOCK):",
    ("py", "swap_axes"): "tl.sum(total, axis=0)",
    ("py", "drop_maximum"): "total += tl.exp(values)",
    ("py", "wrong_epsilon"): "10.0 * eps",
    ("py", "stale_accumulator"): "total = tl.exp(values - tl.max(values, axis=1)[:, None])",
    ("py", "missing_sync"): "pass",
    ("py", "int32_overflow"): "row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)",
    ("py", "change_operator"): "mask = (row <= rows)[:, None] & (col < cols)[None, :]",
    ("py", "change_constant"): "other=1.0).to(tl.float32)",
    ("py", "swap_extremum"): "tl.min(values, axis=1)",
    ("py", "drop_cast"): "mask=mask, other=0.0)",
    ("py", "return_early"): "return; tl.store(",
    ("cpp", "drop_mask"): "vec::load(x + row * stride_x + col);",
    ("cpp", "off_by_one"): "for (Index row = 0; row < rows - 1; ++row) {",
    (
        "cpp",
        "half_accumulate",
    ): "sums[0] = vec::bit_cast<Floats>(vec::bit_cast<vec::Words>(sums[0]) & 0xffff0000u); }",
    ("cpp", "skip_last_tile"): "for (; col + LANES <= cols; col += LANES) {",
    ("cpp", "swap_axes"): "load_some(x + row * cols + col",
    ("cpp", "drop_maximum"): "sums[0] += vec::exp(values);",
    ("cpp", "wrong_epsilon"): "(10.0 * eps)",
    ("cpp", "stale_accumulator"): "static thread_local Floats sums[UNROLL] = {};",
    ("cpp", "missing_sync"): "static Scratch scratch;",
    ("cpp", "int32_overflow"): "using Index = std::int32_t;",
    ("cpp", "change_operator"): "for (; col <= cols; col += LANES) {",
    ("cpp", "change_constant"): "cols - col, 1.0f);",
    ("cpp", "swap_extremum"): "std::max(ceil_div(cols, LANES), rows)",
    ("cpp", "drop_cast"): "y[row] = (eps) + vec::reduce(sums[0]);",
    ("cpp", "return_early"): ";",
}
LANGUAGES: dict[str, tuple[str, Mapping[str, Operator]]] = {
    "py": (TRITON.encode().decode("latin-1"), python_operators.OPERATORS),
    "cpp": (CPP, cpp_operators.OPERATORS),
}


def mutants(language: str, operator: str) -> list[Mutant]:
    """All mutants of one operator."""
    source, operators = LANGUAGES[language]
    made = (make_mutant(operator, f"kernel.{language}", source, edit) for edit in operators[operator](source))
    return [mutant for mutant in made if mutant is not None]


def test_every_operator_is_tried() -> None:
    """Both languages know the same mistakes, and each stands in the table above."""
    assert python_operators.OPERATORS.keys() == cpp_operators.OPERATORS.keys()
    assert {name for _, name in MISTAKES} == python_operators.OPERATORS.keys()
    assert len(MISTAKES) == 2 * len(python_operators.OPERATORS)


@pytest.mark.parametrize(("language", "operator"), MISTAKES)
def test_the_mistake_is_made(language: str, operator: str) -> None:
    """Among the mutants is the one that the name promises."""
    assert any(MISTAKES[language, operator] in mutant.after for mutant in mutants(language, operator))


@pytest.mark.parametrize(("language", "operator"), MISTAKES)
def test_one_line_changes(language: str, operator: str) -> None:
    """A mutant differs from its source in the line that it shows, and nowhere else."""
    source, _ = LANGUAGES[language]
    for mutant in mutants(language, operator):
        changed = apply(mutant, source)
        lines = [
            line
            for line in difflib.ndiff(source.split("\n"), changed.split("\n"))
            if line.startswith(("- ", "+ "))
        ]
        assert [line[0] for line in lines] == ["-", "+"], mutant
        assert [line[2:].strip() for line in lines] == [mutant.before, mutant.after]
        assert source.split("\n")[mutant.line - 1].strip() == mutant.before


@pytest.mark.parametrize("operator", python_operators.OPERATORS)
def test_python_mutants_parse(operator: str) -> None:
    """What is not Python would be a mistake of ours, not of a kernel's author."""
    source, _ = LANGUAGES["py"]
    for mutant in mutants("py", operator):
        ast.parse(apply(mutant, source).encode("latin-1"))


def test_host_code_is_told_apart() -> None:
    """No binary shows a change of the launch, so it must be known."""
    grids = mutants("py", "skip_last_tile")
    assert {mutant.host for mutant in grids} == {False, True}
    assert all(mutant.host == ("cdiv" in mutant.before) for mutant in grids)


@pytest.mark.parametrize("operator", cpp_operators.OPERATORS)
def test_comments_are_left_alone(operator: str) -> None:
    """The first line is a comment that looks like code."""
    assert all(mutant.line > 1 for mutant in mutants("cpp", operator))
