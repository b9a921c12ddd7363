"""What makes a result be made again: exactly what it depends on (DESIGN section 4), seen in the store."""

import os
import stat
from pathlib import Path

import pytest

from tests.end_to_end.checkout import Checkout

STAGES = ("compile", "verify", "profile")
# An interval so narrow is not unstable on a busy machine, where the timing would be taken again.
OVERRIDES = (
    "overrides=kernel=softmax workload=awkward hardware=cpu optimization=baseline "
    "verify=fast profile=quick profile.confidence=0.5 profile.baselines=[eager] tracking=disabled"
)
KERNEL = "conf/kernel/softmax.yaml"


def run(checkout: Checkout, *arguments: str) -> tuple[str, dict[str, int]]:
    """Run the one task; its output, and how many entries each stage made."""
    before = {stage: checkout.entries(stage) for stage in STAGES}
    output = checkout.snakemake(*arguments, "--config", OVERRIDES)
    made = {}
    for stage in STAGES:
        after = checkout.entries(stage)
        kept = {entry: time for entry, time in before[stage].items() if after.get(entry) == time}
        assert kept == before[stage], f"{stage}: entries were touched or lost"
        made[stage] = len(after) - len(before[stage])
    return output, made


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in which the task has run; each test leaves it with nothing to do."""
    checkout = Checkout(tmp_path_factory.mktemp("caching") / "project")
    _, made = run(checkout)
    assert made == {"compile": 1, "verify": 1, "profile": 1}
    return checkout


@pytest.mark.slow
def test_each_change_runs_what_depends_on_it(done: Checkout) -> None:
    """Nothing, a comment, then the code of each stage in turn.

    One test for all, because each step costs a start of Snakemake and the first one also a compile.
    """
    output, made = run(done)
    assert "Nothing to be done" in output
    assert made == {"compile": 0, "verify": 0, "profile": 0}

    done.edit("pipeline/stages/verify.py", "\nimport argparse\n", "\n# A comment.\nimport argparse\n")
    output, _ = run(done)
    assert "Nothing to be done" in output, "a comment must not run anything"

    done.edit("pipeline/stages/verify.py", "\nimport argparse\n", "\nimport argparse\n\nEDITED = 1\n")
    output, made = run(done)
    assert made == {"compile": 0, "verify": 1, "profile": 0}, (
        "verify's code: verify, and what is measured stays"
    )

    done.edit("pipeline/stages/profile.py", "\nimport argparse\n", "\nimport argparse\n\nEDITED = 1\n")
    assert run(done)[1] == {"compile": 0, "verify": 0, "profile": 1}

    done.edit("pipeline/stages/compile.py", "\nimport argparse\n", "\nimport argparse\n\nEDITED = 1\n")
    output, made = run(done)
    assert made["compile"] == 1, "compile's code: compile; the same binary needs no second verdict"

    before = done.entries("verify")
    done.edit(
        "pipeline/report/winner_selection.py",
        "import collections\n",
        "import collections\n\nEDITED = 1\n",
    )
    output, made = run(done)
    assert made == {"compile": 0, "verify": 0, "profile": 0}
    assert done.entries("verify") == before
    assert "Nothing to be done" not in output, "the tables' code: aggregate"


@pytest.mark.slow
def test_source_and_toolchain_are_part_of_the_identity(
    done: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Editing the kernel's source makes all of it again, another compiler's version its binary."""
    source = done.folder / "kernels" / "softmax" / "softmax.cpp"
    original = source.read_text()
    source.write_text(
        original.replace("namespace {", "namespace {\n\n[[maybe_unused]] const int edited = 1;", 1)
    )
    assert run(done, "profile")[1] == {"compile": 1, "verify": 1, "profile": 1}
    source.write_text(original)
    _, made = run(done, "profile")
    assert made == {"compile": 0, "verify": 0, "profile": 0}, "the old source's results are still there"

    compiler = tmp_path / "compiler"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *version*) echo "g++ (test) 99.1"; exit 0;; esac\nexec g++ "$@"\n'
    )
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setitem(done.environment, "CXX", os.fspath(compiler))
    assert run(done, "compile")[1]["compile"] == 1, "another compiler version"


@pytest.mark.slow
def test_a_peak_reaches_the_analysis_alone(checkout: Checkout) -> None:
    """A device's bandwidth changes the tables, not one binary."""
    config = OVERRIDES.replace("hardware=cpu", "hardware=a100")
    checkout.snakemake("--config", config)
    compiled, aggregated = (
        checkout.entries("compile"),
        set((checkout.folder / "artifacts/aggregate").iterdir()),
    )
    assert compiled
    hardware = checkout.folder / "conf" / "hardware" / "a100.yaml"
    text = hardware.read_text()
    start = text.index("dram_bandwidth")
    hardware.write_text(text[:start] + text[start:].replace("value: ", "value: 1", 1))
    output = checkout.snakemake("--config", config)
    assert checkout.entries("compile") == compiled
    assert set((checkout.folder / "artifacts/aggregate").iterdir()) > aggregated, output
