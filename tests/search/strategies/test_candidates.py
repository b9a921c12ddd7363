"""A folder of sources: what fits becomes a variant, what does not is told why, and nothing is a crash."""

import os
from pathlib import Path

import msgspec
import pytest

from pipeline.plan.tasks.search_inputs import files_of
from pipeline.records.configuration.search_settings import Search
from pipeline.records.errors import ConfigError, StoreError
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.search.written_source import Proposal, Unfit
from pipeline.search.spaces.search_space import space_of
from pipeline.search.strategies import candidates
from pipeline.search.strategy import Budget, WriterContext
from tests.stages.test_generate import SPEC


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sources, one that is no text, and some that have no place."""
    found = tmp_path / "mine"
    (found / "below").mkdir(parents=True)
    (found / "b.cpp").write_text("int b;\n")
    (found / "a.cpp").write_text("int a;\n")
    (found / "binary.cpp").write_bytes(b"\xff\xfe\x00")
    (found / "notes.txt").write_text("to do")
    (found / "_draft.cpp").write_text("int draft;\n")
    return found


def search(folder: str, **settings: str) -> Search:
    """A search over a folder of sources."""
    given = {"candidates": {"folder": folder, **settings}}
    return Search(name="", description="", strategy="candidates", settings=given)


def files(folder: str, root: Path) -> dict[str, str]:
    """The files of the folder that a search names."""
    return files_of(folder, root, setting="search.candidates.folder")


def workshop(folder: Path) -> WriterContext:
    """A task whose search names the folder."""
    wanted = search(folder.name)
    spec = msgspec.structs.replace(SPEC, search=wanted, files=files(folder.name, folder.parent))
    return WriterContext(spec=spec, repository=str(folder.parent), store=str(folder.parent / "store"))


def propose(
    shop: WriterContext, round_number: int = 0, variants: int | None = None
) -> list[Proposal | Unfit]:
    """One round."""
    budget = Budget(round=round_number, rounds=3, variants=variants, variants_per_round=variants, seed=0)
    budget = msgspec.structs.replace(budget, search=shop.spec.search)
    return candidates.propose(space_of(shop.spec), [], budget, shop)


def test_each_source_is_a_proposal_beside_the_default(folder: Path) -> None:
    """In the order of the names; the declared one first, to compare with."""
    found = propose(workshop(folder))
    sources = [each.source for each in found if isinstance(each, Proposal)]
    assert [each and each.author.name for each in sources] == [None, "a.cpp", "b.cpp"]
    assert all(each.tunables == {"LANES": 8, "STREAM": False} for each in found if isinstance(each, Proposal))
    told = {each.author.name: str(each.failure.outcome) for each in found if isinstance(each, Unfit)}
    assert told == {"binary.cpp": "compile_error", "notes.txt": "pruned"}
    reasons = [each.failure.reason for each in found if isinstance(each, Unfit)]
    assert reasons == [
        "not a text: invalid start byte at byte 0",
        "no implementation of this task has such a source; there are .cpp (cpp)",
    ]


def test_rounds_share_the_folder(folder: Path) -> None:
    """Each has its part, and none comes twice."""
    shop = workshop(folder)
    rounds = [
        [each for each in propose(shop, number, 2) if isinstance(each, Proposal)] for number in range(3)
    ]
    names = [each.source.author.name if each.source else "" for one in rounds for each in one]
    assert names == ["", "a.cpp", "b.cpp"]


def test_a_file_that_changed_since_the_plan_is_an_error(folder: Path) -> None:
    """What runs is what was planned."""
    shop = workshop(folder)
    (folder / "a.cpp").write_text("int changed;\n")
    with pytest.raises(StoreError, match="a.cpp: changed since the plan was made; run again"):
        propose(shop)


def test_two_implementations_with_one_suffix(folder: Path) -> None:
    """Which of them is meant must be said, and be there."""
    shop = workshop(folder)
    both = {**shop.spec.implementations, "other": shop.spec.implementations["cpp"]}
    spec: GenerateSpec = msgspec.structs.replace(shop.spec, implementations=both)
    with pytest.raises(ConfigError, match="cpp and other both have .cpp sources: name one of them"):
        propose(msgspec.structs.replace(shop, spec=spec))
    spec = msgspec.structs.replace(spec, search=search(folder.name, implementation="neither"))
    with pytest.raises(ConfigError, match="got 'neither', this task has cpp, other"):
        propose(msgspec.structs.replace(shop, spec=spec))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent", "absent: does not exist, expected a folder of sources"),
        ("mine/a.cpp", "mine/a.cpp: is a file, expected a folder of sources"),
        ("mine/below", "mine/below: holds no source, expected one file for each variant"),
    ],
)
def test_a_folder_that_is_none(folder: Path, name: str, reason: str) -> None:
    """One line that says what to do."""
    with pytest.raises(ConfigError, match=reason):
        files(name, folder.parent)


def test_links(folder: Path) -> None:
    """Within the repository they are files like others; what they lead to elsewhere is no source."""
    (folder.parent / "shared.cpp").write_text("int shared;\n")
    (folder / "c.cpp").symlink_to("../shared.cpp")
    (folder / "d.cpp").symlink_to("a.cpp")
    assert {"c.cpp", "d.cpp"} <= files(folder.name, folder.parent).keys()
    (folder / "key.cpp").symlink_to("/etc/hostname")
    with pytest.raises(ConfigError, match="key.cpp: a link to /etc/hostname, outside of the repository: put"):
        files(folder.name, folder.parent)
    (folder / "key.cpp").unlink()
    (folder / "gone.cpp").symlink_to("nothing.cpp")
    with pytest.raises(ConfigError, match="gone.cpp: a link to .*nothing.cpp, which does not exist: remove"):
        files(folder.name, folder.parent)


def test_what_is_no_file_is_passed_over(folder: Path) -> None:
    """To read a pipe would wait for ever."""
    os.mkfifo(folder / "pipe.cpp")
    assert "pipe.cpp" not in files(folder.name, folder.parent)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_must_not_be_read(folder: Path) -> None:
    """A file, and the folder itself."""
    (folder / "a.cpp").chmod(0)
    with pytest.raises(ConfigError, match="a.cpp: cannot be read: Permission denied"):
        files(folder.name, folder.parent)
    folder.chmod(0)
    try:
        with pytest.raises(ConfigError, match="search.candidates.folder: .*mine: cannot be read"):
            files(folder.name, folder.parent)
    finally:
        folder.chmod(0o755)
