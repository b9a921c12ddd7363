"""A sweep through Hydra's multirun, with Snakemake and real stages."""

import json

import pytest

from tests.end_to_end.checkout import Checkout

SWEEP = (
    *("sweep", "kernel=softmax", "workload=awkward", "hardware=cpu,h200", "optimization=baseline"),
    *("verify=fast", "profile=quick", "profile.baselines=[eager]", "tracking=disabled"),
    *("hydra.sweep.dir=sweep", "hydra.sweep.subdir=${hydra.runtime.choices.hardware}"),
)


@pytest.mark.slow
def test_a_sweep_is_one_dag(checkout: Checkout) -> None:
    """Two jobs, one of an absent device: winners, a line for each, and nothing left for the other door."""
    output = checkout.module("pipeline", *SWEEP)
    log = checkout.folder / "artifacts" / "logs" / "snakemake.log"
    assert log.read_text().count("Using workflow specific profile") == 1, "one start of Snakemake"
    lines = output.splitlines()[-3:]
    assert lines[0] == "job  time (minimize)  overrides"
    assert lines[1].startswith("  0 ") and "hardware=cpu" in lines[1] and "(" not in lines[1]
    assert lines[2].endswith("(softmax x awkward x h200: device unavailable)")
    for number, target in enumerate(("cpu", "h200")):
        folder = checkout.folder / "sweep" / target
        record = json.loads((folder / "job.json").read_text())
        assert record["number"] == number and len(record["tasks"]) == 1
        assert (folder / ".hydra" / "overrides.yaml").is_file()
    assert len(list((checkout.folder / "artifacts" / "aggregate").iterdir())) == 1
    assert "Nothing to be done" in checkout.module("pipeline", *SWEEP)
    (sweep,) = (checkout.folder / "artifacts" / "plan" / "sweeps").glob("*.json")
    assert "Nothing to be done" in checkout.snakemake("--config", f"sweep={sweep}")
    assert "Nothing to be done" in checkout.module("pipeline", "run", *SWEEP[1:9])


@pytest.mark.slow
def test_a_stage_that_breaks_fails_its_job_alone(checkout: Checkout) -> None:
    """The other job comes to its end; the failed one's line names the stage and its log."""
    checkout.edit(
        "pipeline/stages/profile.py",
        "    options = parser.parse_args(arguments)\n",
        "    options = parser.parse_args(arguments)\n    assert 'sm_90' not in options.spec.read_text()\n",
    )
    output = checkout.module("pipeline", *SWEEP, check=False)
    lines = output.splitlines()
    at = lines.index("job  time (minimize)  overrides")
    assert lines[at + 1].endswith("s  hardware=cpu")
    assert "h200 x baseline: profile did not finish" in lines[at + 2]
    assert lines[-1] == "error: 1 of 2 jobs failed: 1 (said above)"
