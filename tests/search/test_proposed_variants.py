"""Proposals become variants: identity is the text and what it includes, never who wrote it."""

from pathlib import Path

import pytest

from pipeline.records.configuration.kernel import Call
from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_path
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import read_record
from pipeline.records.results.variant import Variant
from pipeline.records.search.written_source import LARGEST, Author, KeptSource, Proposal, WrittenSource
from pipeline.search.proposed_variants import variants_of, written_sources
from pipeline.store.stored_sources import main_file, require_sources, root_of, written_text
from tests.stages.test_generate import IMPLEMENTATION, SPEC

DECLARED = '#include "toy.hpp"\nextern "C" int toy() { return TOY; }\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one kernel."""
    folder = tmp_path / "repository" / "kernels" / "toy"
    folder.mkdir(parents=True)
    (folder / "toy.cpp").write_text(DECLARED)
    (folder / "toy.hpp").write_text("#define TOY 0\n")
    return tmp_path / "repository"


def proposal(text: str, name: str = "somebody", **more: object) -> Proposal:
    """A text at one point."""
    author = Author(writer="candidates", name=name)
    return Proposal(
        implementation="cpp",
        tunables={"LANES": 8, "STREAM": False},
        source=WrittenSource(text=text, author=author, **more),
    )


def variants(repository: Path, *proposals: Proposal, spec: GenerateSpec = SPEC) -> tuple[Variant, ...]:
    """What they become."""
    made = variants_of(spec, proposals, repository=repository, store=repository.parent / "store")
    assert not made.unfit
    return made.variants


def test_a_written_source_is_kept_with_what_it_includes(repository: Path) -> None:
    """The store holds the text in the declared file's place, and the header beside it."""
    text = DECLARED + "// faster\n"
    (variant,) = variants(repository, proposal(text))
    store = repository.parent / "store"
    assert variant.written
    root = root_of(variant, store)
    assert (root / "kernels/toy/toy.cpp").read_text() == text
    assert (root / "kernels/toy/toy.hpp").read_text() == "#define TOY 0\n"
    assert written_text(variant, store) == text
    assert main_file(variant, store) == root / "kernels/toy/toy.cpp"
    kept = read_record(entry_path(store, "generate", variant.source_digest) / "record.json", KeptSource)
    assert sorted(kept.files) == ["kernels/toy/toy.cpp", "kernels/toy/toy.hpp"]
    assert (repository / "kernels/toy/toy.cpp").read_text() == DECLARED


def test_the_same_text_is_the_same_variant_whoever_wrote_it(repository: Path) -> None:
    """Author and parents are provenance; the first of equals is kept."""
    text = DECLARED + "// faster\n"
    first, again = proposal(text, "a"), proposal(text, "b", parents=("0" * 20,))
    made = variants_of(SPEC, [first, again], repository=repository, store=repository.parent / "store")
    assert len(made.variants) == len(made.records) == 1
    assert made.records[0].author.name == "a"
    assert variants(repository, again) == made.variants


def test_another_text_or_header_is_another_variant(repository: Path) -> None:
    """What the compiler sees decides."""
    one, other = variants(repository, proposal(DECLARED + "// 1\n"), proposal(DECLARED + "// 2\n"))
    (repository / "kernels/toy/toy.hpp").write_text("#define TOY 1\n")
    (third,) = variants(repository, proposal(DECLARED + "// 1\n"))
    assert len({one.id, other.id, third.id}) == 3
    store = repository.parent / "store"
    assert (root_of(one, store) / "kernels/toy/toy.hpp").read_text() == "#define TOY 0\n"
    assert (root_of(third, store) / "kernels/toy/toy.hpp").read_text() == "#define TOY 1\n"


def test_a_text_equal_to_the_declared_one_is_the_declared_variant(repository: Path) -> None:
    """Nothing is compiled twice for it, and it is trusted like the repository."""
    from pipeline.backends.source_digests import Sources

    digest = Sources(repository).implementation(IMPLEMENTATION)
    spec = GenerateSpec(**{**{name: getattr(SPEC, name) for name in SPEC.__struct_fields__},
                           "source_digests": {"cpp": digest}})  # fmt: skip
    made = variants_of(spec, [proposal(DECLARED)], repository=repository, store=repository.parent / "store")
    assert [variant.written for variant in made.variants] == [False]
    assert made.variants[0].source_digest == digest
    assert made.records == ()


def test_ids_of_declared_variants_are_what_they_were() -> None:
    """Written sources came later: what was measured before keeps its name."""
    declared = Variant(
        kernel="toy", implementation="cpp", backend="cpp", source_digest="0" * 20,
        attributes={"epilogue": "none"}, tunables={"LANES": 8},
    )  # fmt: skip
    assert declared.id == "8b85917ee294c379b70a"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n", "the text is empty"),
        ("int x;\0", "not a text: it holds a null byte"),
        ("\ud800", "not a text: surrogates not allowed"),
        ("x" * (LARGEST + 1), f"{LARGEST + 1:,} bytes, expected at most {LARGEST:,}"),
        ('#include "/etc/passwd"\n', "kernels/toy/toy.cpp: includes /etc/passwd, which is outside"),
        ('#include "../../../../../../../../../etc/passwd"\n', "includes /etc/passwd, which is outside"),
    ],
)
def test_what_cannot_be_a_source_is_told_why(repository: Path, text: str, reason: str) -> None:
    """A typed outcome, no variant, nothing in the store."""
    store = repository.parent / "store"
    made = variants_of(SPEC, [proposal(text)], repository=repository, store=store)
    assert made.variants == made.records == ()
    (unfit,) = made.unfit
    assert unfit.failure.outcome == "compile_error"
    assert reason in unfit.failure.reason
    assert not (store / "store").exists()


def test_a_package_has_no_source_to_replace(repository: Path) -> None:
    """An implementation that calls an installed package is no place for a text."""
    call = Call(function="liger:softmax", arguments=(), results=("y",), package="liger")
    implementation = type(IMPLEMENTATION)(backend="triton", call=call, origin="", licence="")
    with written_sources(repository, repository.parent / "store") as kept:
        source = proposal(DECLARED).source
        assert source is not None
        found = kept.put("liger", implementation, source)
    assert "it has no source to replace" in found.failure.reason


def test_a_lost_source_is_an_error_that_makes_generate_run_again(repository: Path) -> None:
    """Never the declared text in its place: the output that names it goes, and the next run writes it."""
    store = repository.parent / "store"
    (variant,) = variants(repository, proposal(DECLARED + "// faster\n"))
    output = repository.parent / "round0.json"
    output.write_text("{}")
    require_sources([variant], store, output)
    main_file(variant, store).write_text("somebody changed it")
    with pytest.raises(StoreError, match="missing or damaged: run again, and generate makes it again"):
        require_sources([variant], store, output)
    assert not output.exists()
    with pytest.raises(StoreError):
        written_text(variant, store)
