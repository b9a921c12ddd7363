"""Which mutants are made of a source, and which variants they meet."""

import itertools
from pathlib import Path

import pytest

from pipeline.backends import language
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.results.mutated import Mutation
from pipeline.records.results.variant import Variant
from pipeline.verify.mutation.mutant_generation import find_mutants, read, spread, write_mutated
from pipeline.verify.mutation.variant_cover import covering_variants
from tests.verify.mutation.sources import CPP


def variant(**tunables: TunableValue) -> Variant:
    """A variant with these tunables."""
    return Variant(
        kernel="k", implementation="cpp", backend="cpp", source_digest="s", attributes={}, tunables=tunables
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The small C++ kernel on disk."""
    path = tmp_path / "kernels" / "kernel.cpp"
    path.parent.mkdir()
    path.write_text(CPP)
    return path


def test_names_stay_when_lines_move(source: Path, tmp_path: Path) -> None:
    """An explanation of a survivor must not be lost with the next comment."""
    before = find_mutants([source], tmp_path, language.CPP)
    source.write_text(f"// one more line\n{CPP}")
    after = find_mutants([source], tmp_path, language.CPP)
    names = {operator: [mutant.id for mutant in mutants] for operator, mutants in before.items()}
    assert names == {operator: [mutant.id for mutant in mutants] for operator, mutants in after.items()}
    every = [name for group in names.values() for name in group]
    assert len(set(every)) == len(every) > 40


def test_every_beginning_is_spread(source: Path, tmp_path: Path) -> None:
    """A few mutants do not all come from the top of the file; all come in the end, each once."""
    mutants = find_mutants([source], tmp_path, language.CPP)["change_operator"]
    order = spread(mutants)
    assert order == spread(mutants)
    assert len(order) == len(mutants) == len({mutant.id for mutant in order})
    places = [mutants.index(mutant) / len(mutants) for mutant in order[:4]]
    assert max(b - a for a, b in itertools.pairwise([*sorted(places), 1.0])) < 0.5


def test_the_mistake_is_written(source: Path, tmp_path: Path) -> None:
    """The copy differs from the source by the mutant; without one it is the source."""
    mutant = find_mutants([source], tmp_path, language.CPP)["drop_maximum"][0]
    write_mutated(mutant, [source], tmp_path, tmp_path / "copy")
    write_mutated(None, [source], tmp_path, tmp_path / "same")
    assert (tmp_path / "same" / "kernels" / "kernel.cpp").read_bytes() == source.read_bytes()
    changed = read(tmp_path / "copy" / "kernels" / "kernel.cpp")
    assert changed.replace(mutant.after, mutant.before) == read(source)
    assert changed != read(source)


def test_every_value_is_met_first() -> None:
    """The default comes first, then whatever takes values that nobody took, then pairs of them."""
    tasks = [[variant(a=a, b=b) for a in (1, 2, 3) for b in (False, True)] for _ in range(2)]
    cover = covering_variants(tasks, {"a": 2, "b": False}, 20)
    assert cover.all[0].variant == variant(a=2, b=False)
    breadth = cover.all[: cover.breadth]
    assert cover.breadth == 3
    assert {task_variant.variant.tunables["a"] for task_variant in breadth} == {1, 2, 3}
    assert {task_variant.variant.tunables["b"] for task_variant in breadth} == {False, True}
    assert {task_variant.task for task_variant in breadth} == {0, 1}
    assert {tuple(task_variant.variant.tunables.values()) for task_variant in cover.all} == {
        (a, b) for a in (1, 2, 3) for b in (False, True)
    }
    assert len(covering_variants(tasks, {}, 2).all) == 2


def test_a_score_over_nothing_is_refused() -> None:
    """No preset may make no mutants."""
    fields = {"name": "n", "description": "", "report": True, "presets": ("standard",), "time_limit": 5.0}
    with pytest.raises(ValueError, match="per_operator: got 0, expected at least 1"):
        Mutation(**fields, per_operator=0, variants_at_most=1)
    with pytest.raises(ValueError, match="presets: expected at least one"):
        Mutation(**fields | {"presets": ()}, per_operator=1, variants_at_most=1)
