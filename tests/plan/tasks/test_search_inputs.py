"""Winners of other tasks become starts: the most similar first, values as the kernel declares them."""

from pathlib import Path

import pytest

from pipeline.plan.tasks.search_inputs import starts
from pipeline.records.configuration.kernel import Implementation, Tunable
from pipeline.records.errors import ConfigError
from pipeline.search.strategy import Winners

DECLARED = {
    "cpp": Implementation(
        backend="cpp",
        source="kernels/toy/toy.cpp",
        entry="toy",
        tunables={
            "LANES": Tunable(values=(1, 8), default=8),
            "STREAM": Tunable(values=(False, True), default=False),
        },
        origin="",
        licence="",
    )
}
WANTED = {"kernel": "toy", "workload": "small", "hardware": "cpu", "dtype": "float32"}
HEADER = "kernel,workload,hardware,dtype,implementation,configuration\n"


def write(folder: Path, *rows: str, name: str = "winners.csv") -> None:
    """A table as aggregate has it, as far as it is read."""
    (folder / name).write_text(HEADER + "".join(f"{row}\n" for row in rows))


def test_the_most_similar_first(tmp_path: Path) -> None:
    """The same dtype weighs more than the same workload; other kernels and implementations are out."""
    write(
        tmp_path,
        "toy,small,h200,float16,cpp,LANES=1 STREAM=True",
        "toy,large,h200,float32,cpp,LANES=16 STREAM=False GONE=3",
        "toy,small,h200,float32,triton,BLOCK=64",
        "other,small,h200,float32,cpp,LANES=1 STREAM=False",
        "toy,small,a100,float32,cpp,LANES=8 STREAM=True",
    )
    found, files = starts(Winners(path="winners.csv", at_most=8), DECLARED, WANTED, tmp_path)
    assert [start.tunables for start in found] == [
        {"LANES": 8, "STREAM": True},
        {"LANES": 16, "STREAM": False},
        {"LANES": 1, "STREAM": True},
    ]
    assert found[0].of == "toy small on a100, float32"
    assert files == (tmp_path / "winners.csv",)


def test_a_pattern_and_a_limit(tmp_path: Path) -> None:
    """Several files count as one; the same point once; no more than asked for."""
    write(tmp_path, "toy,small,a,float32,cpp,LANES=8 STREAM=True", name="a.csv")
    write(
        tmp_path,
        "toy,small,b,float32,cpp,LANES=8 STREAM=True",
        "toy,large,b,float32,cpp,LANES=1 STREAM=True",
        name="b.csv",
    )
    found, files = starts(Winners(path="*.csv", at_most=8), DECLARED, WANTED, tmp_path)
    assert (len(found), len(files)) == (2, 2)
    (only,), _ = starts(Winners(path=str(tmp_path / "*.csv"), at_most=1), DECLARED, WANTED, tmp_path)
    assert only.of == "toy small on a, float32"


@pytest.mark.parametrize(
    ("winners", "text"),
    [
        (None, "search.transfer.winners: missing; expected a winners.csv, as aggregate writes it"),
        ("gone.csv", "search.transfer.winners=gone.csv: no such file"),
        ("other.csv", "no winner of toy with one of its implementations (cpp)"),
        ("broken.csv", "broken.csv: no table of winners: it has no column 'kernel'"),
        ("cut.csv", "cut.csv: line 2: ends within the row; make the table anew"),
        ("binary.csv", "binary.csv: cannot be read as a table of winners: 'utf-8' codec can't decode byte"),
        ("notes.txt", "=notes.txt: neither a winners.csv nor recorded results: "),
        ("", "search.transfer.winners=: no such file"),
        ("**x.csv", "search.transfer.winners=**x.csv: neither a file nor a pattern: "),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, winners: str | None, text: str) -> None:
    """One line says what is missing."""
    write(tmp_path, "other,small,h200,float32,cpp,LANES=1", name="other.csv")
    write(tmp_path, "toy,small,h200", name="cut.csv")
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n")
    (tmp_path / "notes.txt").write_text("no JSON")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError) as caught:
        starts(Winners(path=winners, at_most=8), DECLARED, WANTED, tmp_path)
    assert text in str(caught.value)
