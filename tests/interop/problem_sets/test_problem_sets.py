"""Folders of other projects: recognised, converted, judged; bad input is one line, and the rest is judged."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.interop.problem_sets.converted_folder import ConvertedFolder, file_name
from pipeline.interop.problem_sets.problem_set_registry import convert_folder, problem_sets
from pipeline.records import entry_points
from pipeline.records.errors import ConfigError
from pipeline.verify.candidates.kernelbench import complaints, problem_folder, scan
from pipeline.verify.candidates.source_files import SOURCE_BYTES_AT_MOST
from tests.cli.test_judge import judge, rows
from tests.end_to_end.checkout import Checkout
from tests.interop.problem_sets import made_up
from tests.interop.problem_sets.flashinfer_data_set import data_set

FORMATS: dict[str, tuple[Callable[[Path], Path], str, set[str]]] = {
    "KernelBench": (made_up.kernelbench, "level1/1_Double", {"first.sample_0", "first.sample_1"}),
    "robust-kbench": (made_up.robust_kbench, "double", {"forward_right", "forward_wrong"}),
    "GPU MODE": (made_up.gpu_mode, "double", {"submission", "wrong.factor"}),
    "SOL-ExecBench": (made_up.sol_execbench, "L1/double", {"right", "wrong"}),
    "BackendBench": (made_up.backendbench, "relu__default", {"implementation_v1", "implementation_v2"}),
    "flashinfer-bench": (data_set, "rmsnorm_d32", {"right", "wrong", "in_parts", "ffi"}),
}


def converted(folder: Path, out: Path) -> tuple[dict[str, set[str]], tuple[str, ...]]:
    """Candidates by problem, and the complaints."""
    found = convert_folder(folder, out)
    assert found is not None
    names = {
        each.name: {path.stem for path in (Path(each.folder) / "solutions").glob("*.py")}
        for each in found.problems
    }
    return names, found.complaints


def test_every_format_has_a_folder_here() -> None:
    """A new format is tried as the others are."""
    assert {each.name for each in problem_sets()} == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_recognition_and_conversion(tmp_path: Path, name: str) -> None:
    """A folder is of its own kind only; problems and candidates have the names that it gives them."""
    make, problem, candidates = FORMATS[name]
    folder = make(tmp_path / "in")
    assert [each.name for each in problem_sets() if each.recognizes(folder)] == [name]
    names, lines = converted(folder, tmp_path / "out")
    assert names[problem] == candidates
    assert lines == ()
    for each in convert_folder(folder, tmp_path / "out").problems:
        found = problem_folder(Path(each.folder), name=each.name, root=tmp_path)
        assert complaints(found) == () or not found.candidates


def test_our_own_layout_is_no_other_format(tmp_path: Path) -> None:
    """It is read where it lies."""
    made_up.write(tmp_path, {"double/problem.py": made_up.MODEL})
    assert convert_folder(tmp_path, tmp_path / "out") is None


@pytest.mark.slow
def test_all_formats_in_one_folder_are_judged(tmp_path: Path) -> None:
    """A right and a wrong candidate in each; one line says that the folder mixes formats."""
    for make, _, _ in list(FORMATS.values())[:-1]:
        make(tmp_path / "mixed")
    checkout = Checkout(tmp_path / "checkout")
    done = judge(checkout, str(tmp_path / "mixed"), "--out", str(tmp_path / "all.csv"))
    assert done.returncode == 0, done.stderr
    assert "holds problems of several formats (KernelBench, robust-kbench, " in done.stderr
    outcomes = [row["outcome"] for row in rows(tmp_path / "all.csv")]
    assert (outcomes.count("passed"), outcomes.count("wrong_value"), len(outcomes)) == (5, 5, 10)


@pytest.mark.slow
def test_a_copy_of_model(tmp_path: Path) -> None:
    """Every problem has a verdict, which says that nobody asked whose work it was; broken ones say why."""
    made_up.kernelbench(tmp_path / "set")
    broken = made_up.MODEL.replace("import torch", "import torch\nimport nothing_of_that_name", 1)
    made_up.write(tmp_path / "set", {"KernelBench/level4/1_Absent.py": broken})
    checkout = Checkout(tmp_path / "checkout")
    done = judge(checkout, str(tmp_path / "set"), "--copy-of-model", "--out", str(tmp_path / "copies.csv"))
    found = {row["problem"]: row for row in rows(tmp_path / "copies.csv")}
    assert [row["outcome"] for row in found.values()] == ["passed", "passed", "bad_problem"]
    assert {row["solution"] for row in found.values()} == {"copy_of_model"}
    assert "whether own kernels did the work was not asked" in found["level1/1_Double"]["notes"]
    assert "No module named 'nothing_of_that_name'" in found["level4/1_Absent"]["reason"]
    assert done.returncode == 0, done.stderr


def test_one_run_of_kernelbench(tmp_path: Path) -> None:
    """The folder of a run is judged against the checkout around it."""
    folder = made_up.kernelbench(tmp_path / "set")
    names, lines = converted(folder / "runs/first", tmp_path / "out")
    assert names["level1/1_Double"] == {"sample_0", "sample_1"}
    assert lines == ()


RUN = "runs/first/level_1_problem_1_sample"
BAD: dict[str, tuple[dict[str, str], str]] = {
    "half written": ({f"{RUN}_2_kernel.py": ""}, "_sample_2_kernel.py: is empty"),
    "no candidate yet": ({"runs/second/prompt.txt": "x"}, "runs/second: a run without candidates"),
    "another problem's": (
        {"runs/first/level_1_problem_9_sample_0_kernel.py": "x = 1"},
        "there is no problem 9 in level1, its candidate is left out",
    ),
    "two with one name": ({f"{RUN}_00_kernel.py": "x = 1"}, "is candidate first.sample_0 of level1/1_Double"),
    "two with one number": (
        {"KernelBench/level1/1_Other.py": made_up.MODEL},
        "1_Other.py: level1/1_Double has this number as well",
    ),
    "another name": (
        {"runs/first/kernel.py": "x = 1"},
        "expected the name level_L_problem_N_sample_S_kernel.py",
    ),
    "large": (
        {f"{RUN}_3_kernel.py": "#" * (SOURCE_BYTES_AT_MOST + 1)},
        "has 4.2 MB, expected at most 4.2 MB",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input(tmp_path: Path, kind: str) -> None:
    """One line that names the file; the other candidates are there."""
    files, text = BAD[kind]
    folder = made_up.write(made_up.kernelbench(tmp_path / "set"), files)
    names, (line,) = converted(folder, tmp_path / "out")
    assert text in line
    assert "\n" not in line
    assert names["level1/1_Double"] == {"first.sample_0", "first.sample_1"}


@pytest.mark.parametrize("layout", ["ours", "KernelBench"])
def test_links_out_of_the_folder(tmp_path: Path, layout: str) -> None:
    """A source that is somebody else's file is not read, in our own layout neither."""
    secret = tmp_path / "secret.py"
    secret.write_text("class ModelNew: ...")
    if layout == "ours":
        folder = made_up.write(tmp_path / "set", {"p/problem.py": made_up.MODEL, "p/solutions/a.py": "x = 1"})
        (folder / "p/solutions/b.py").symlink_to(secret)
        (line,) = complaints(scan(folder)[0])
    else:
        folder = made_up.kernelbench(tmp_path / "set")
        (folder / f"{RUN}_2_kernel.py").symlink_to(secret)
        _, (line,) = converted(folder, tmp_path / "out")
    assert f"a symbolic link out of the folder {folder}, expected a file in it" in line


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Pipes, folders and links to nothing are one line each, at once."""
    folder = made_up.write(tmp_path / "set", {"p/problem.py": made_up.MODEL, "p/solutions/good.py": "x = 1"})
    os.mkfifo(folder / "p/solutions/pipe.py")
    (folder / "p/solutions/folder.py").mkdir()
    (folder / "p/solutions/link.py").symlink_to("absent.py")
    (problem,) = scan(folder)
    assert {each.name: each.failure and each.failure.reason for each in problem.candidates} == {
        "folder": "no regular file",
        "good": None,
        "link": "a symbolic link to nothing",
        "pipe": "no regular file",
    }


def test_names_with_spaces_and_quotes(tmp_path: Path) -> None:
    """Kept in the table; the files' names are safe, and differ where the names do."""
    into = ConvertedFolder(tmp_path, tmp_path / "out")
    odd = ["a b", "a'b", 'a"b', "a/b", "../a", "a;b $(c)"]
    for name in odd:
        assert into.add_problem(name, {"problem.py": made_up.MODEL}, tmp_path)
        into.add_candidate(name, "it's", "class ModelNew: ...", tmp_path / name)
    found = into.finished().problems
    assert [each.name for each in found] == odd
    assert len({each.folder for each in found}) == len(odd)
    assert all(Path(each.folder).parent == tmp_path / "out" for each in found)
    assert file_name("plain-1.0") == "plain-1.0"


def test_files_of_an_earlier_conversion_are_removed(tmp_path: Path) -> None:
    """A candidate that was deleted is not judged; one that stayed keeps its time."""
    folder = made_up.kernelbench(tmp_path / "set")
    converted(folder, tmp_path / "out")
    kept = next((tmp_path / "out").rglob("first.sample_1.py"))
    before = kept.stat().st_mtime_ns
    (folder / f"{RUN}_0_kernel.py").unlink()
    names, _ = converted(folder, tmp_path / "out")
    assert names["level1/1_Double"] == {"first.sample_1"}
    assert kept.stat().st_mtime_ns == before


@pytest.mark.slow
def test_ten_thousand_candidates(tmp_path: Path) -> None:
    """Converted and scanned in seconds of the processor."""
    folder = made_up.kernelbench(tmp_path / "set")
    for number in range(2, 10_000):
        (folder / f"{RUN}_{number}_kernel.py").write_text(f"{made_up.DOUBLE}# {number}\n")
    started = time.process_time()
    found = convert_folder(folder, tmp_path / "out")
    problem = problem_folder(Path(found.problems[0].folder), name="p", root=tmp_path / "out")
    assert len(problem.candidates) == 10_000
    assert time.process_time() - started < 30  # 7 on one core of 2023


def test_an_entry_point_that_is_no_problem_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line: which, got, expected."""

    class Entry:
        def load(self) -> str:
            return "nothing"

    monkeypatch.setattr(entry_points, "entry_points", lambda group: {"odd": Entry()})
    problem_sets.cache_clear()
    try:
        with pytest.raises(ConfigError, match="entry point odd of kernelmill.problem_sets: got 'nothing'"):
            problem_sets()
    finally:
        problem_sets.cache_clear()


@pytest.mark.slow
def test_without_candidates(tmp_path: Path) -> None:
    """One line names the option that judges the problems themselves."""
    made_up.write(tmp_path / "set", {"KernelBench/level1/1_Double.py": made_up.MODEL})
    checkout = Checkout(tmp_path / "checkout")
    command = [sys.executable, "-m", "pipeline", "judge", str(tmp_path / "set")]
    done = subprocess.run(
        command, cwd=checkout.folder, env=checkout.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "1 problem without a candidate; expected one, or --copy-of-model" in done.stderr


def test_a_run_outside_of_its_checkout(tmp_path: Path) -> None:
    """It says where a run has to lie."""
    made_up.write(tmp_path / "tst", {"level_1_problem_12_sample_0_kernel.py": "class ModelNew: ..."})
    with pytest.raises(ConfigError, match=r"looks like a run of KernelBench, .* KernelBench/runs/tst$"):
        convert_folder(tmp_path / "tst", tmp_path / "out")
