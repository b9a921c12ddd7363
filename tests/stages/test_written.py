"""Written sources through the stages: right ones are judged and kept apart, cheating ones harm nobody."""

from pathlib import Path

import pytest

from tests.stages.written import Task, cold

CPU = (
    *("kernel=softmax", "hardware=cpu", "workload=awkward", "verify=fast", "profile=quick"),
    "profile.baselines=[eager]",
    "profile.time_limit=10",  # seconds until a clock that stands is given up
)
GPU = ("kernel=softmax", "hardware=h200", "workload=awkward", "verify=fast", "profile=quick")

PYTHON = """
#include <dlfcn.h>
namespace {
struct Patch {
    Patch() {
        auto run = reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "PyRun_SimpleString"));
        if (run) run(%s);
    }
} patch;
}
"""
TIMER = "import time; time.perf_counter_ns = lambda: 0"


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """A softmax for the CPU."""
    return Task(tmp_path_factory.mktemp("cpu"), *CPU)


def writing(path: Path) -> str:
    """C++ that writes a file when it is loaded, and does not mind if it cannot."""
    return f"""
#include <cstdio>
namespace {{
struct Mark {{
    Mark() {{ if (auto* file = std::fopen("{path}", "w")) {{ std::fputs("x", file); std::fclose(file); }} }}
}} mark;
}}
"""


def peeking() -> str:
    """C++ that looks for expected values in the memory of whoever started it."""
    return """
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
namespace {
struct Peek {
    Peek() {
        char name[64];
        std::snprintf(name, sizeof name, "/proc/%d/mem", getppid());
        if (auto* file = std::fopen(name, "r")) std::abort();
    }
} peek;
}
"""


@pytest.mark.slow
def test_right_and_wrong_cpp(task: Task, tmp_path: Path) -> None:
    """Each ends as what it is; what cheats harms nobody, and nothing is written anywhere."""
    text = task.declared("cpp")
    mark = tmp_path / "mark"
    task.generate(
        task.proposal("cpp", text + "\n// as it was\n"),
        task.proposal("cpp", text.replace("std::exp", "std::sin").replace("vec::exp", "vec::sin") + "}"),
        task.proposal("cpp", text + PYTHON % f'"{TIMER}"'),
        task.proposal("cpp", text + writing(mark)),
        task.proposal("cpp", text + peeking()),
        task.proposal("cpp", 'extern "C" int other() { return 0; }\n'),
        task.proposal("cpp", 'extern "C" int softmax() { return 0; }\n'),
    )
    ends = task.ends("compile", "verify")
    assert ends[0] == "passed"
    assert ends[1] == "compile: compile_error"
    assert ends[2] == "verify: tampered"
    assert ends[3] == "passed"
    assert not mark.exists()
    assert ends[4] == "passed"
    assert ends[5] == "compile: compile_error"
    assert ends[6] == "verify: unwritten_output"
    reasons = "\n".join(task.reasons("compile") + task.reasons("verify"))
    assert 'the source has no function extern "C" softmax; it defines other' in reasons
    assert "time.perf_counter_ns was replaced" in reasons


@pytest.mark.slow
def test_what_was_there_is_not_compiled_again(task: Task) -> None:
    """One more text costs its own compile; a lost one is never taken for the declared one."""
    text = task.declared("cpp")
    known = [task.proposal("cpp", text + "\n// as it was\n")]
    task.generate(*known)
    task.ends("compile", "verify")
    task.generate(*known, task.proposal("cpp", text + "\n// another\n", parents=["0" * 20]))
    assert "1 cached" in task.run("compile").stderr
    assert "1 cached" in task.run("verify").stderr
    (record,) = [each for each in task.read("generate").records if each.parents]
    (task.store / "store/generate" / record.entry[:2] / record.entry / "record.json").unlink()
    ended = task.run("compile")
    assert ended.returncode == 1
    assert "missing or damaged: run again, and generate makes it again" in ended.stderr


TRITON_CHEATS = {
    "torch for the answer": (
        "\n_softmax = launch\ndef launch(x, y, **rest):\n    _softmax(x=x, y=y, **rest)\n"
        "    y.copy_(torch.softmax(x.float(), -1).to(y.dtype))\n",
        "verify: tampered",
    ),
    "torch and no kernel": (
        "\ndef launch(x, y, **rest):\n    y.copy_(torch.softmax(x, -1))\n",
        "compile: compile_error",
    ),
    "ends the compiler": ("\nimport os\nos._exit(0)\n", "compile: crashed"),
    "ends it with an error": ("\nimport os\nos._exit(3)\n", "compile: crashed"),
    "raises what nobody catches": ("\nraise KeyboardInterrupt\n", "compile: crashed"),
    "no entry": ("\ndel launch\n", "compile: compile_error"),
    "not Python": ("\ndef (:\n", "compile: compile_error"),
    "patches the timer": ("\nimport time\ntime.perf_counter = lambda: 0.0\n", "verify: tampered"),
    "patches the judge": (
        "\nimport pipeline.verify.harness.conventions.outputs_given as judge\n"
        "judge.MappedBuffers.outputs = lambda *_: {}\n",
        "verify: tampered",
    ),
}


@pytest.mark.slow
def test_cheating_triton(tmp_path: Path) -> None:
    """Host code runs when it is compiled and when it is tried: confined both times."""
    task = Task(tmp_path, *GPU)
    text = task.declared("triton")
    mark = tmp_path / "mark"
    writes = f"\ntry:\n    open({str(mark)!r}, 'w').write('x')\nexcept OSError:\n    pass\n"
    task.generate(
        task.proposal("triton", text + "\n# as it was\n"),
        task.proposal("triton", text + writes),
        *(task.proposal("triton", f"{text}\nimport torch\n{more}") for more, _ in TRITON_CHEATS.values()),
    )
    ends = dict(zip(["right", "writes", *TRITON_CHEATS], task.ends("compile", "verify"), strict=True))
    assert ends == {"right": "passed", "writes": "verify: tampered"} | {
        name: end for name, (_, end) in TRITON_CHEATS.items()
    }
    assert not mark.exists()
    reasons = "\n".join(task.reasons("compile") + task.reasons("verify"))
    assert "launched no Triton kernel on the workload's shape" in reasons
    assert "time.perf_counter was replaced" in reasons


@pytest.mark.slow
@pytest.mark.alone
def test_measured_confined(task: Task, tmp_path: Path) -> None:
    """A clock that is false only while it is measured, and a file that is written only then."""
    text = task.declared("cpp")
    mark = tmp_path / "mark"
    only = "import sys; harness = 'pipeline.measure.hosting.measuring_process' in sys.modules; "
    patch = f"{only}import time; harness and setattr(time, 'perf_counter_ns', lambda: 0)"
    write = (
        f"{only}import pathlib, contextlib\\n"
        f"with contextlib.suppress(OSError): harness and pathlib.Path('{mark}').write_text('x')\\n"
    )
    task.generate(
        task.proposal("cpp", text + "\n// as it was\n"),
        task.proposal("cpp", text + PYTHON % f'"{patch}"'),
        task.proposal("cpp", text + PYTHON % f'"{write}"'),
    )
    ends = task.ends("compile", "verify", "profile", start=cold)  # a warm worker has the harness imported
    assert ends == [
        "passed",
        "profile: timeout",
        "passed",
    ]  # a clock that stands: no batch is ever long enough
    assert not mark.exists()
