"""How the benchmarks of the pipeline's own cost account for processes and state what they found."""

import sys
from pathlib import Path

import pytest

from pipeline.plan.plan_cache import current_plan
from tests.benchmarks import figures
from tests.benchmarks.figures import Figure, Section, Table, kept, page, publish
from tests.benchmarks.made_up import EXPERIMENT, Size, declare, one_more_value
from tests.benchmarks.sweeps import stages
from tests.benchmarks.tree import Failed, spend
from tests.end_to_end.checkout import Checkout

SECTION = Section(
    name="one",
    title="A title",
    command="python -m one",
    measured="Measured here.",
    figures=(Figure(what="ratio", found="1.05", aim="at most 1.10", met=True),),
    tables=(Table(title="Parts", heading=("part", "ours"), rows=(("all", "1.00 s"),)),),
    notes=("A note.",),
)
BURN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
LEAVE = f"""\
import os
if os.fork() == 0:
    os.setsid()
    exec({BURN!r})
    os._exit(0)
print("left")
"""


def test_a_section_is_kept_for_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was published stands in the page: once in the table of all, once with its parts."""
    monkeypatch.setattr(figures, "KEPT", tmp_path)
    publish(SECTION)
    text = page(kept(["one", "never run"]), "# Introduction\n")
    assert "| ratio | 1.05 | at most 1.10 | yes | `python -m one` |" in text
    assert "ratio: **1.05** (goal: at most 1.10)" in text
    assert "| all | 1.00 s |" in text
    assert text.startswith("# Introduction\n") and "A note." in text


@pytest.mark.slow
def test_processes_that_left_are_counted(tmp_path: Path) -> None:
    """A process that outlives the command in a session of its own is waited for."""
    spent = spend([sys.executable, "-c", LEAVE], folder=tmp_path, environment={}, temporary=tmp_path)
    assert spent.output == "left\n"
    assert spent.cpu_seconds >= 0.3
    assert spent.peak is None


@pytest.mark.slow
def test_memory_of_all_processes(tmp_path: Path) -> None:
    """Two processes with 50 MB each are 100 MB."""
    hold = "import time; held = b'x' * 50_000_000; time.sleep(1.5)"
    start = f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {hold!r}])"
    both = f"{start}\n{hold}\nchild.wait()"
    spent = spend(
        [sys.executable, "-c", both], folder=tmp_path, environment={}, temporary=tmp_path, watch=True
    )
    assert spent.peak is not None and 100e6 < spent.peak < 200e6


def test_a_failed_command_is_no_figure(tmp_path: Path) -> None:
    """Its output is the error's text."""
    with pytest.raises(Failed, match="exit code 3\nwhy"):
        spend(
            [sys.executable, "-c", "print('why'); raise SystemExit(3)"],
            folder=tmp_path,
            environment={},
            temporary=tmp_path,
        )


@pytest.mark.slow
def test_seconds_of_the_stages(tmp_path: Path) -> None:
    """Lines of several jobs add up; what a stage prepared is a part of it."""
    checkout = Checkout(tmp_path / "project")
    logs = {
        "compile/a-1/round0": "compile softmax for cpu: 2 variants: 2 passed · 1.5 s",
        "compile/a-2/round0": "compile softmax for cpu: 2 variants: 2 passed · 2.0 s",
        "profile/a-1/round0": "prepared ceilings · 3.0 s\nprofile softmax on cpu: 1 variant · 4.0 s",
    }
    for name, text in logs.items():
        path = checkout.folder / "artifacts" / "logs" / f"{name}.log"
        path.parent.mkdir(parents=True)
        path.write_text(f"{text}\n")
    found, _ = stages(checkout)
    assert found == {"compile": 3.5, "(prepared ceilings)": 3.0, "profile": 4.0}


@pytest.mark.slow
def test_a_value_more_is_one_variant_more(tmp_path: Path) -> None:
    """Of one task alone: the others keep the keys of all their stages."""
    checkout = Checkout(tmp_path / "project")
    size = Size(kernels=2, workloads=1, tunables=2, values=3)
    declare(checkout, size)

    def tasks() -> list[tuple[int, str]]:
        lines = (f"experiment={EXPERIMENT}", "tracking=disabled")
        plan = current_plan(lines, root=checkout.folder, store=tmp_path / "store")
        return [(task.proposed, task.row.generate) for task in plan.tasks]

    before = tasks()
    assert [count for count, _ in before] == [9, 9] and size.variants == 18
    one_more_value(checkout, size)
    after = tasks()
    assert [count for count, _ in after] == [10, 9]
    assert after[0] != before[0] and after[1] == before[1]
