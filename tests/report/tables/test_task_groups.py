"""Tables that were made part by part against tables made from nothing, after random changes and damage."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pipeline.records.outcome import Outcome
from pipeline.records.record import read_record, to_json
from pipeline.records.results.aggregated import Summary
from pipeline.report.tables import task_groups
from pipeline.stages import aggregate, report
from tests.report.sample_run import PROVENANCE, Case, cases, write_run

STEPS = 6
PARTS = Path("store") / task_groups.STAGE


def small() -> list[Case]:
    """Measured, failing and absent tasks; two of them share kernel, workload and hardware."""
    chosen = [case for case in cases() if case.hardware in ("cpu", "h200", "mi300x")][:7]
    other = msgspec.structs.replace(chosen[0], dtype="float16", failures={})
    return [*chosen, other]


def make(root: Path) -> dict[str, bytes]:
    """Aggregate and report; every file of theirs, but for when and where the tables were made."""
    folder, page = root / "aggregate" / "sample", root / "report" / "sample" / "report.html"
    common = ["--spec", str(root / "spec.json"), "--root", str(root)]
    assert aggregate.main([*common, "--out", str(folder / "summary.json")]) == 0
    summary = read_record(folder / "summary.json", Summary)
    same = to_json(msgspec.structs.replace(summary, provenance=PROVENANCE))
    (folder / "summary.json").write_bytes(same)
    assert report.main([*common, "--aggregate", str(folder), "--out", str(page)]) == 0
    files = (path for path in folder.iterdir() if not path.name.endswith(".seal"))
    return {path.name: path.read_bytes() for path in (*files, page)}


def from_nothing(root: Path, other: Path) -> dict[str, bytes]:
    """The same in a copy that has the stages' outputs alone."""
    if other.exists():
        shutil.rmtree(other)
    keep_out = shutil.ignore_patterns(task_groups.STAGE, "report", "aggregate")
    shutil.copytree(root, other, ignore=keep_out)
    return make(other)


def slower(numbers: random.Random, chosen: list[Case]) -> list[Case]:
    """Another baseline of one task."""
    place = numbers.randrange(len(chosen))
    changed = msgspec.structs.replace(chosen[place], eager=numbers.uniform(0.5, 3.0))
    return [*chosen[:place], changed, *chosen[place + 1 :]]


def failing(numbers: random.Random, chosen: list[Case]) -> list[Case]:
    """Failures of one task."""
    place = numbers.randrange(len(chosen))
    stage, outcome = numbers.choice(
        [("compile", Outcome.COMPILE_ERROR), ("verify", Outcome.WRONG_VALUE), ("profile", Outcome.TIMEOUT)]
    )
    number = numbers.randrange(4)
    changed = msgspec.structs.replace(chosen[place], failures={number: (stage, outcome, f"at {number}")})
    return [*chosen[:place], changed, *chosen[place + 1 :]]


def one_more(numbers: random.Random, chosen: list[Case]) -> list[Case]:
    """One more tunable of one task, whose values are of any type: other tasks have none of it, or another."""
    place = numbers.randrange(len(chosen))
    values = numbers.choice([(1, 2), (0.5, 2.0), (False, True), ("a", "b")])
    space = {**chosen[place].space, "extra": values}
    return [*chosen[:place], msgspec.structs.replace(chosen[place], space=space), *chosen[place + 1 :]]


def fewer(numbers: random.Random, chosen: list[Case]) -> list[Case]:
    """One task less."""
    place = numbers.randrange(len(chosen))
    return [*chosen[:place], *chosen[place + 1 :]]


def shuffled(numbers: random.Random, chosen: list[Case]) -> list[Case]:
    """The plan comes to the tasks in another order."""
    return numbers.sample(chosen, len(chosen))


CHANGES = (slower, failing, one_more, fewer, shuffled)


def flip(path: Path, numbers: random.Random) -> None:
    """Another byte somewhere."""
    content = bytearray(path.read_bytes())
    content[numbers.randrange(len(content))] ^= 1 << numbers.randrange(8)
    path.write_bytes(bytes(content))


def cut(path: Path, numbers: random.Random) -> None:
    """The end is missing."""
    path.write_bytes(path.read_bytes()[: numbers.randrange(path.stat().st_size)])


def remove(path: Path, numbers: random.Random) -> None:
    """The file is gone, its seal perhaps."""
    path.unlink()


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (flip, cut, remove)


def damage_one(root: Path, numbers: random.Random) -> Path:
    """Damage one file of one part; which."""
    path = numbers.choice(sorted((root / PARTS).glob("*/*/*")))
    numbers.choice(DAMAGES)(path, numbers)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_equals_a_computation_from_nothing(seed, tmp_path):
    """Byte for byte, tables and page, after each of some random changes, with a damaged part or without."""
    numbers = random.Random(seed)
    root, other = tmp_path / "root", tmp_path / "other"
    chosen = small()
    for step in range(STEPS if seed > 1 else 3):
        write_run(root, chosen)
        if step % 2:
            damage_one(root, numbers)
        assert make(root) == from_nothing(root, other), f"step {step}: {chosen}"
        chosen = numbers.choice(CHANGES)(numbers, chosen)


@pytest.fixture
def made(monkeypatch) -> list[str]:
    """Keys of the parts that are made and not found."""
    keys: list[str] = []
    make_part = task_groups.make_group

    def counting(key, collected):
        keys.extend([key] if key else [])
        return make_part(key, collected)

    monkeypatch.setattr(task_groups, "make_group", counting)
    return keys


def test_only_what_changed_is_looked_at(tmp_path, made):
    """The first time every group, then none, then the group whose baseline is another one."""
    chosen = small()[:3]
    write_run(tmp_path, chosen)
    make(tmp_path)
    assert len(made) == 3
    make(tmp_path)
    assert len(made) == 3
    write_run(tmp_path, [*chosen[:2], msgspec.structs.replace(chosen[2], eager=9.0)])
    make(tmp_path)
    assert len(made) == 4


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["record.json", "tables.msgpack", "seal.json"])
def test_a_damaged_part_is_made_again(damage, name, tmp_path, made, capsys):
    """Whatever file of it is damaged, it is named in one line, and the tables are as before."""
    write_run(tmp_path, small()[:2])
    before = make(tmp_path)
    path = sorted((tmp_path / PARTS).glob(f"*/*/{name}"))[0]
    damage(path, random.Random(5))
    capsys.readouterr()
    assert make(tmp_path) == before
    assert len(made) == 3
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "made again" in line]
    assert line.startswith(f"{path.parent}: damaged (")


def test_a_part_of_another_name_is_not_believed(tmp_path, made, capsys):
    """A whole part that lies in the folder of another one is stale: made again."""
    write_run(tmp_path, small()[:2])
    before = make(tmp_path)
    one, other = sorted((tmp_path / PARTS).glob("*/*"))
    shutil.rmtree(one)
    shutil.copytree(other, one)
    assert make(tmp_path) == before
    assert len(made) == 3
    assert "damaged (not what its name says), made again" in capsys.readouterr().err


def test_another_code_makes_all_again(tmp_path, made):
    """The digest of the stage's code and its libraries are in the name."""
    spec = write_run(tmp_path, small()[:2])
    make(tmp_path)
    build = msgspec.structs.replace(spec.build, code="other")
    (tmp_path / "spec.json").write_bytes(to_json(msgspec.structs.replace(spec, build=build)))
    make(tmp_path)
    assert len(made) == 4
