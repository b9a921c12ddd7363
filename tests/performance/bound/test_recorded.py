"""The replay of recorded tuning data, on a file of three configurations."""

import gzip
import json
import sys
from pathlib import Path

import pytest

from tests.benchmarks import bound


def entry(sizes: tuple[int, int, int, int], time: float | str) -> dict[str, object]:
    """One configuration as the T4 format has it."""
    names = ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y")
    failed = isinstance(time, str)
    return {
        "configuration": dict(zip(names, sizes, strict=True)),
        "invalidity": "runtime" if failed else "correct",
        "correctness": 0 if failed else 1,
        "times": {},
        "measurements": [{"name": "time", "value": time, "unit": ""}],
    }


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Blocks of full warps, of half warps, and one that failed."""
    results = [
        entry((32, 4, 1, 1), 0.6),
        entry((16, 1, 1, 1), 1.2),
        entry((32, 8, 4, 4), "RuntimeFailedConfig"),
    ]
    content = gzip.compress(json.dumps({"results": results}).encode())
    (tmp_path / "convolution_milo_A100_T4.json.gz").write_bytes(content)
    return tmp_path


def test_only_what_ran_is_compared(recorded: Path) -> None:
    """Milliseconds become seconds; a failure is no time."""
    (path,) = recorded.iterdir()
    assert [time for _, time in bound.read(path)] == [pytest.approx(6e-4), pytest.approx(1.2e-3)]


def test_half_warps_take_twice_the_time(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """7.55 GFLOP at 19.5 TFLOP/s are 387 us; with half of the lanes 774."""
    monkeypatch.setattr(sys, "argv", ["bound", str(recorded)])
    bound.main()
    _, _, peaks, launch = capsys.readouterr().out.splitlines()
    assert peaks.startswith("| convolution, A100 | peaks | 2 | 387 µs | 600 µs | 1.55 |")
    assert launch.startswith("| convolution, A100 | peaks and launch | 2 | 387 µs, 774 µs | 600 µs | 1.55 |")


def test_an_empty_folder_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No table of nothing."""
    monkeypatch.setattr(sys, "argv", ["bound", str(tmp_path)])
    with pytest.raises(SystemExit):
        bound.main()
    assert "no *_T4.json.gz in" in capsys.readouterr().err
