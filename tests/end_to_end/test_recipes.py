"""The recipes in docs/ are tried as written: files are made, changes are made, commands are run."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.checkout import ROOT, Checkout

RECIPES = sorted(path for path in (ROOT / "docs" / "recipes").glob("*.md") if path.stem != "index")
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def apply_difference(file: Path, difference: str) -> None:
    """Replace each run of `-` lines, after lines that stay, by the `+` lines after it."""
    text = file.read_text()
    for before, added in re.findall(r"((?:^[- ].*\n)+)((?:^\+.*\n)+)", difference, re.MULTILINE):
        old = re.sub(r"^[- ]", "", before, flags=re.MULTILINE)
        kept = "".join(line[1:] for line in before.splitlines(keepends=True) if line.startswith(" "))
        new = kept + re.sub(r"^\+", "", added, flags=re.MULTILINE)
        assert text.count(old) == 1, f"{file}: the recipe's line is not there once: {old!r}"
        text = text.replace(old, new)
    file.write_text(text)


MODULES = {"kernelmill": "pipeline", "snakemake": "snakemake"}
"""Command -> what `python -m` runs for it."""


def run_commands(checkout: Checkout, script: str) -> None:
    """Run the commands of a recipe; those that need no shell find libraries imported (`warm_commands`)."""
    lines = script.replace("\\\n", "").splitlines()
    if any(line.startswith("export ") for line in lines):  # which the lines after it need
        lines = [script]
    for line in lines:
        command, _, arguments = line.partition(" ")
        if command in MODULES and not re.search(r"[|<>;&$]", line):
            checkout.module(MODULES[command], *shlex.split(arguments))
        else:
            run_shell(checkout, line)


def run_shell(checkout: Checkout, script: str) -> None:
    """As a user would, in the test's environment."""
    environment = checkout.environment
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    ended = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=checkout.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout


TOUCHED = {"backend": 4, "check": 2, "device": 4, "metric": 1, "format": 2, "stage": 3, "strategy": 2}
"""Recipe -> how many files it may touch."""
OUTSIDE = ("backend", "device")
"""Recipes for another package, which changes nothing in `pipeline/`."""


@pytest.mark.parametrize("recipe", TOUCHED)
def test_files_touched(recipe: str) -> None:
    """One declaration per thing: a recipe that needs one file more fails."""
    blocks = BLOCK.findall((ROOT / "docs" / "recipes" / f"{recipe}.md").read_text())
    touched = {path for _, path, _ in blocks if path}
    assert len(touched) == TOUCHED[recipe]
    if recipe in OUTSIDE:
        assert not [path for path in touched if path.startswith("pipeline/")]


# Each takes a whole run.
@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [pytest.param(path, id=path.stem) for path in RECIPES],
)
def test_recipe(checkout: Checkout, recipe: Path) -> None:
    """Every variant of the recipe's task ends without a failure of its own."""
    if recipe.stem == "third_party" and importlib.util.find_spec("liger_kernel") is None:
        pytest.skip("liger-kernel is not installed: python -m pip install -e '.[liger]'")
    blocks = BLOCK.findall(recipe.read_text())
    assert any(language == "sh" for language, _, _ in blocks)
    for language, path, content in blocks:
        if language == "sh":
            # The test's environment has the extras; one installed from a copy would depend on the copy.
            wanted = re.sub(r"^python -m pip install .*\n", "", content, flags=re.MULTILINE)
            run_commands(checkout, wanted.replace("snakemake ", "snakemake --quiet rules "))
        elif language == "diff":
            apply_difference(checkout.folder / path, content)
        elif path:
            file = checkout.folder / path
            assert not file.exists(), f"{path} is there already: the recipe would overwrite it"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
    replayed = recipe.stem == "format"  # verify stores nothing of what is replayed
    for stage in ("compile",) if replayed else ("compile", "verify"):
        records = checkout.records(stage)
        assert records, f"{stage} made nothing"
        failed = [record["result"] for record in records if record["result"]["type"] != "passed"]
        assert not failed, failed
    if recipe.stem == "backend":
        assert_whole_chain(checkout, "numpy", "backend numpy")
    if recipe.stem == "device":
        assert_whole_chain(checkout, "core_cpp", "device core")
        measured = [record["result"] for record in checkout.records("profile")]
        assert {result["device"]["name"] for result in measured} == {"one core"}
        assert all(result["ceilings"]["level"] == "DRAM" for result in measured)


def assert_whole_chain(checkout: Checkout, backend: str, code: str) -> None:
    """Variants of a backend are measured and tracked, and results depend on the code of another package."""
    for stage in ("compile", "verify", "profile"):
        of_backend = [each for each in checkout.records(stage) if each["variant"]["backend"] == backend]
        assert of_backend, stage
        for record in of_backend:
            assert code in record["provenance"]["toolchain"]
    for stage in ("aggregate", "track"):
        assert list((checkout.folder / "artifacts" / stage).rglob("*.json")), stage
