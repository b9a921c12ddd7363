"""Nsight Compute's tables and errors, written after its documented format: none was recorded on a device."""

import json
import sys
import time
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.devices.cuda import counters
from pipeline.backends.devices.cuda.counters import METRICS, TIME, count, parse, summed
from pipeline.backends.devices.device_registry import device
from pipeline.measure.hosting.single_call import count_single_call
from pipeline.records.results.profiled import Counters, Unmeasured
from tests.measure.problems import set_up

COMMAND = ("python", "-c", "pass")
READ, HITS, TENSOR = "dram__bytes_read.sum", "lts__t_sector_hit_rate.pct", "sm__inst_executed_pipe_tensor.sum"
COLUMNS = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size"]
UNITS = {TIME: "ns", READ: "byte", HITS: "%", TENSOR: "inst"}


def line(values: list[str]) -> str:
    """As ncu quotes them."""
    return ",".join(f'"{value}"' for value in values)


def table(*launches: tuple[str, str, str, str, str]) -> str:
    """Kernel, time, bytes read, hit rate and tensor instructions of each launch, in ncu's raw page."""
    lines = [
        "==PROF== Connected to process 4242 (/usr/bin/python3.12)",
        "==WARNING== Unable to deploy section files.",
        line([*COLUMNS, "Grid Size", "Device", "CC", *UNITS]),
        line([""] * (len(COLUMNS) + 3) + list(UNITS.values())),
    ]
    for number, (kernel, *values) in enumerate(launches):
        who = [str(number), "4242", "python3.12", "127.0.0.1", kernel, "1", "7", "(128, 1, 1)"]
        lines.append(line([*who, "(512, 1, 1)", "0", "9.0", *values]))
    return "\n".join([*lines, "==PROF== Disconnected from process 4242", ""])


SOFTMAX = ("softmax_kernel(float*, int)", "4,096", "8,388,608", "33.25", "n/a")
FILL = ("fill", "1024", "0", "93.5", "n/a")
DENIED = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
    " on the target device 0. For instructions on enabling permissions and to get more information see"
    " https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"
)


def test_a_table():
    """Numbers in groups of thousands; commas within a kernel's name; what is n/a is absent."""
    (softmax, fill) = parse(table(SOFTMAX, FILL))
    assert softmax.kernel == "softmax_kernel(float*, int)"
    assert softmax.values == {TIME: 4096, READ: 8388608, HITS: 33.25}
    assert fill.values == {TIME: 1024, READ: 0, HITS: 93.5}


def test_no_table():
    """What ncu prints where nothing was profiled."""
    assert parse("==WARNING== No kernels were profiled.\n") == ()
    assert parse("") == ()


def test_a_call_of_several_launches():
    """Bytes and times are added, a share is weighted by time: 4/5 of it at 33.25, 1/5 at 93.5."""
    values = summed(parse(table(SOFTMAX, FILL)))
    assert values == {TIME: 5120, READ: 8388608, HITS: pytest.approx(45.3)}


def test_what_one_launch_lacks_is_no_sum():
    """A total of a part of the launches would be taken for the whole."""
    values = summed(parse(table(SOFTMAX, ("gemm", "10", "n/a", "1", "64"))))
    assert READ not in values
    assert TENSOR not in values
    assert summed(()) == {}


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A program in ncu's place: writes down its arguments, a table, an output, and ends with a code."""

    def install(written: str, output: str = "", code: int = 0, before: str = "") -> Path:
        program = tmp_path / "ncu"
        program.write_text(
            f"#!{sys.executable}\n"
            "import json, pathlib, sys\n"
            f"record = pathlib.Path({str(tmp_path / 'arguments.json')!r})\n"
            "runs = json.loads(record.read_text()) if record.exists() else []\n"
            "record.write_text(json.dumps([*runs, sys.argv[1:]]))\n"
            f"{before}\n"
            f"pathlib.Path(sys.argv[sys.argv.index('--log-file') + 1]).write_text({written!r})\n"
            f"print({output!r})\n"
            f"sys.exit({code})\n"
        )
        program.chmod(0o755)
        monkeypatch.setattr(counters, "find_ncu", lambda: program)
        return tmp_path / "arguments.json"

    return install


def test_a_call_under_ncu(ncu, tmp_path: Path):
    """One call's launches, clocks untouched, caches as they are; the callable travels in a file."""
    arguments = ncu(table(SOFTMAX, FILL))
    found = count_single_call(device("cuda").measurement(), set_up("plain"), tmp_path / "counted")
    assert isinstance(found, Counters)
    assert (found.tool, found.values[READ], len(found.kernels)) == ("ncu", 8388608, 2)
    assert found.absent[TENSOR] == "ncu does not have it for this device, or not for every launch"
    (run,) = json.loads(arguments.read_text())
    text = " ".join(run)
    assert "--clock-control none --cache-control none" in text
    assert "--profile-from-start off" in text
    assert run[run.index("--metrics") + 1] == ",".join(METRICS)
    assert run[-3:-1] == ["-m", "pipeline.measure.hosting.single_call"]
    assert json.loads(Path(run[-1]).read_text())["set_up"]["hosted"]["function"].endswith(":plain")


def test_cold_caches_are_left_to_ncu(ncu, tmp_path: Path):
    """The timer would write over them with launches of its own, which would be counted; a graph hides all."""
    arguments = ncu(table(SOFTMAX))
    cold = msgspec.structs.replace(set_up("plain"), flush_cache=True, cuda_graph="always")
    count_single_call(device("cuda").measurement(), cold, tmp_path / "counted")
    (run,) = json.loads(arguments.read_text())
    assert "--cache-control all" in " ".join(run)
    asked = json.loads(Path(run[-1]).read_text())["set_up"]
    assert (asked["flush_cache"], asked["cuda_graph"]) == (False, "never")


def test_no_permission(ncu, tmp_path: Path):
    """The reason says what to do, in one line."""
    ncu(DENIED, code=1)
    found = count(COMMAND, tmp_path, flush_cache=False)
    assert isinstance(found, Unmeasured)
    assert found.reason == (
        "ncu: this user may not read the GPU's counters: run as root, or load the driver with"
        " NVreg_RestrictProfilingToAdminUsers=0 (https://developer.nvidia.com/ERR_NVGPUCTRPERM)"
    )


def test_a_metric_that_ncu_does_not_know(ncu, tmp_path: Path):
    """It is asked again without it."""
    before = (
        f"if {TENSOR!r} in sys.argv[sys.argv.index('--metrics') + 1]:\n"
        f"    sys.exit('==ERROR== Failed to find metric {TENSOR}')"
    )
    arguments = ncu(table(SOFTMAX), before=before)
    found = count(COMMAND, tmp_path, flush_cache=False)
    assert isinstance(found, Counters)
    assert found.values[TIME] == 4096
    assert TENSOR in found.absent
    assert len(json.loads(arguments.read_text())) == 2


@pytest.mark.parametrize(
    ("written", "output", "code", "reason"),
    [
        ("", "==ERROR== The application returned an error code (9).", 9, "ncu: The application returned"),
        ("", "ValueError: no such size", 3, "under ncu the callable refused: ValueError: no such size"),
        ("", "", 1, "ncu: exit code 1, no table"),
        ("==WARNING== No kernels were profiled.\n", "", 0, "ncu: exit code 0, no table"),
    ],
)
def test_other_ends(ncu, tmp_path: Path, written: str, output: str, code: int, reason: str):
    """Absent, with what is known of the reason."""
    ncu(written, output, code)
    found = count(COMMAND, tmp_path, flush_cache=False)
    assert isinstance(found, Unmeasured)
    assert found.reason.startswith(reason)


@pytest.mark.slow
def test_a_call_that_hangs(ncu, tmp_path: Path):
    """It ends in time, with all that it has started."""
    before = (
        "import subprocess, time\n"
        f"child = subprocess.Popen(['sleep', '60'])\n"
        f"pathlib.Path({str(tmp_path / 'child')!r}).write_text(str(child.pid))\n"
        "time.sleep(60)"
    )
    ncu("", before=before)
    found = count(COMMAND, tmp_path, flush_cache=False, seconds=3.0)  # to start takes a busy machine one
    assert found == Unmeasured(quantity="counters", reason="ncu: no answer within 3 s")
    state = Path(f"/proc/{(tmp_path / 'child').read_text()}/stat")
    end = time.monotonic() + 10.0
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)


def test_no_profiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Absent; with it, the newest of several is taken."""
    monkeypatch.setattr(counters.shutil, "which", lambda name: None)
    monkeypatch.setattr(counters, "PLACES", (str(tmp_path / "none"), str(tmp_path)))
    reason = "ncu (Nsight Compute) is not installed"
    assert count(COMMAND, tmp_path, flush_cache=False) == Unmeasured(quantity="counters", reason=reason)
    assert counters.lines() == {"counters": f"absent: {reason}"}
    for version in ("2024.3.2", "2025.3.1"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "ncu").touch()
    assert counters.find_ncu() == tmp_path / "2025.3.1" / "ncu"
