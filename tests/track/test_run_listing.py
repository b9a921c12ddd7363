"""Tracked runs in the terminal: found by tags and names, and compared."""

import os
from pathlib import Path

import msgspec
import pytest

from pipeline.cli.main import main
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.errors import ConfigError
from pipeline.track.run_listing import TrackedRun, differences, find_runs, one_run
from pipeline.track.stores.mlflow_store import EMBEDDED, open_store

SETTINGS = Tracking(name="t", description="", enabled=True, uri=EMBEDDED, experiment="e")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs."""
    root = tmp_path_factory.mktemp("tracked")
    client = open_store(SETTINGS, root).client
    experiment = client.create_experiment("e", artifact_location=str(root))
    for number, kernel in enumerate(("softmax", "matmul")):
        run = client.create_run(
            experiment,
            start_time=1000 * (number + 1),  # 0 would be now
            tags={"kernel": kernel, "hardware": "cpu"},
            run_name=f"cpp {kernel}",
        )
        for metric in ("check/cases", "time/median_us", "speedup/eager", "agent/cost"):
            client.log_metric(run.info.run_id, metric, 10.0 * (number + 1))
        client.log_param(run.info.run_id, "LANES", "8")
    return root


@pytest.mark.slow
def test_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The latest first; filters by tag, parameter and name; what differs between two."""
    assert [run.tags["kernel"] for run in find_runs(root, (), limit=9)] == ["matmul", "softmax"]
    assert len(find_runs(root, ("hardware=cpu", "LANES=8"), limit=1)) == 1
    (softmax,) = find_runs(root, ("cpp soft", "kernel=softmax"), limit=9)
    assert find_runs(root, ("kernel=softmax", "cpp matmul"), limit=9) == []
    matmul = one_run(root, find_runs(root, ("kernel=matmul",), limit=1)[0].id[:12])
    found = differences(softmax, matmul)
    first = ["time/median_us", "speedup/eager", "kernel"]
    assert [each.name for each in found] == [*first, "agent/cost", "check/cases"]
    assert found[0].ratio == 2.0
    with pytest.raises(ConfigError, match="no run has this id"):
        one_run(root, "zzzz")
    assert main(["runs", "kernel=softmax", "--root", str(root)]) == 0
    assert softmax.id[:8] in capsys.readouterr().out
    assert main(["runs", "--compare", softmax.id, matmul.id, "--root", str(root)]) == 0
    one, other, _, head, row, *_ = capsys.readouterr().out.splitlines()
    assert (one, other) == (f"first   {softmax.id[:8]}  cpp softmax", f"second  {matmul.id[:8]}  cpp matmul")
    assert head.split() == ["first", "second", "second/first"]
    assert row.split() == ["time/median_us", "10", "20", "2"]


def test_what_only_identifies_comes_last() -> None:
    """Digests, folders that they name, and tags for the program itself."""
    tags = {
        **{"compile_folder": "store/compile/8c/8c338f3cb5cb4eabbca9", "kernelmill.slot": "a", "seeds": "1"},
        **{"task": "cb2ed55070debc8a2811", "bound": "memory"},
    }
    first, second = tracked(time__median_us=1.0), tracked(time__median_us=2.0, check__cases=1.0)
    second = msgspec.structs.replace(second, tags=tags, params={"LANES": "8"})
    names = [each.name for each in differences(first, second)]
    assert names[:4] == ["time/median_us", "LANES", "bound", "check/cases"]
    assert sorted(names[4:]) == ["compile_folder", "kernelmill.slot", "seeds", "task"]


def tracked(**metrics: float) -> TrackedRun:
    """A run with these metrics of a time and a speed-up."""
    names = {name.replace("__", "/"): value for name, value in metrics.items()}
    return TrackedRun(
        id="a", name="", experiment="", started="", params={}, metrics=names, tags={}, address=""
    )


def test_intervals_of_two_runs() -> None:
    """They stand next to their values, which say whether they overlap."""
    first = tracked(
        time__median_us=11.03, time__low_us=9.33, time__high_us=12.5,
        speedup__eager=2.0, speedup__eager_low=1.9, speedup__eager_high=2.1, check__cases=3.0,
    )  # fmt: skip
    second = tracked(
        time__median_us=11.94, time__low_us=11.3, time__high_us=12.3,
        speedup__eager=1.5, speedup__eager_low=1.4, speedup__eager_high=1.6, check__cases=4.0,
    )  # fmt: skip
    assert [(each.name, each.intervals) for each in differences(first, second)] == [
        ("time/median_us", "overlap"),
        ("time/low_us", None),
        ("time/high_us", None),
        ("speedup/eager", "apart"),
        ("speedup/eager_low", None),
        ("speedup/eager_high", None),
        ("check/cases", None),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("kernl=softmax", "tag 'kernl'; did you mean 'kernel'"),
        ("kernel=sofmax", "known: matmul, softmax"),
        ("sofmax", "no run's name"),
    ],
)
def test_a_filter_that_no_run_matches(root: Path, wanted: str, text: str) -> None:
    """It is named, with what there is."""
    with pytest.raises(ConfigError, match=text):
        find_runs(root, ("hardware=cpu", wanted), limit=9)


@pytest.mark.slow
def test_a_folder_that_cannot_be_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are listed all the same; nothing appears or changes next to the database."""
    expected = find_runs(root, (), limit=9)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    assert find_runs(root, (), limit=9) == expected
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_nothing_was_tracked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line; no database is made."""
    assert main(["runs", "--root", str(tmp_path)]) == 1
    assert "nothing was tracked yet" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
