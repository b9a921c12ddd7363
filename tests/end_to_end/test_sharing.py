"""Two checkouts in different folders, of different users and machines, with a store that they share."""

import json
from pathlib import Path

import pytest

from tests.end_to_end.checkout import Checkout

# An interval so narrow is not unstable on a busy machine: such a timing would not be shared.
ASKED = (
    "kernel=softmax workload=awkward hardware=cpu optimization=full search=random "
    "search.variants_per_round=3 optimization.implementations=[cpp] verify=fast profile=quick "
    "profile.confidence=0.5 profile.baselines=[eager] tracking=disabled"
)
RUN = ("profile", "--config", f"overrides={ASKED}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For checkouts and the store that they share."""
    return tmp_path_factory.mktemp("sharing")


@pytest.fixture(scope="module")
def ours(folder: Path) -> Checkout:
    """The first one, which has made everything."""
    checkout = _checkout(folder / "ours", folder / "shared")
    checkout.snakemake(*RUN)
    return checkout


def _checkout(folder: Path, shared: Path) -> Checkout:
    checkout = Checkout(folder)
    checkout.environment["KERNELMILL_STORE"] = str(shared)
    return checkout


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_what_one_made_the_other_has(tmp_path: Path, folder: Path, ours: Checkout) -> None:
    """Nothing is to be done there; nothing is in the store that names a folder, a user or a machine."""
    made = {stage: set(ours.entries(stage)) for stage in ("compile", "verify", "profile")}
    assert all(made.values())

    theirs = _checkout(tmp_path / "some" / "where" / "else", folder / "shared")
    theirs.environment["HOME"] = str(tmp_path)
    said = theirs.snakemake(*RUN)
    assert "shared store: 4 stage outputs of this plan were there" in said
    assert "Nothing to be done" in said
    assert {stage: set(theirs.entries(stage)) for stage in made} == made

    for path in (theirs.folder / "artifacts").rglob("*"):
        if path.is_file() and path.suffix != ".log" and "plan/cache" not in path.as_posix():
            assert str(ours.folder).encode() not in path.read_bytes(), path
    # The rest of the chain runs on what came.
    theirs.snakemake("aggregate", "--config", f"overrides={ASKED}")


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.usefixtures("ours")
def test_one_more_variant_costs_one_more(tmp_path: Path, folder: Path) -> None:
    """Plans that overlap share entries where no output is the same."""
    theirs = _checkout(tmp_path / "theirs", folder / "shared")
    more = ASKED.replace("variants_per_round=3", "variants_per_round=4")
    said = theirs.snakemake("verify", "--config", f"overrides={more}")
    assert "(3 cached)" in said, said


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_measurements_are_of_one_kind_of_machine(tmp_path: Path) -> None:
    """On a machine with more cores, binaries and verdicts are taken over, measurements are not."""
    shared = tmp_path / "shared"
    run = ("profile", "--config", f"overrides={ASKED.replace('per_round=3', 'per_round=1')}")
    ours = _checkout(tmp_path / "ours", shared)
    ours.snakemake(*run)
    other = _checkout(tmp_path / "other", shared)
    other.edit(
        "pipeline/backends/devices/cpu/detection.py",
        '"cores": str(_physical_cores(cpus)),',
        '"cores": str(1 + _physical_cores(cpus)),',
    )
    other.snakemake(*run)
    assert set(other.entries("compile")) == set(ours.entries("compile"))
    assert not set(other.entries("profile")) & set(ours.entries("profile"))
    devices = {
        json.loads(path.read_text())["device"]
        for checkout in (ours, other)
        for path in (checkout.folder / "artifacts" / "plan" / "profile").glob("*.json")
    }
    assert len(devices) == 2
