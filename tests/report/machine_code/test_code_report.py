"""The evidence for static facts in a report of machine code."""

import os
import shutil
import subprocess

import pytest

from pipeline.backends.machine_code.nvidia_tools import tools
from pipeline.records.errors import ConfigError
from pipeline.report.machine_code.code_report import evidence
from pipeline.report.machine_code.code_views import one, stored
from tests.backends.triton.triton_jobs import TARGETS, written_job


@pytest.mark.slow
@pytest.mark.parametrize("hardware", [*TARGETS, "cpu"])
def test_every_number_is_what_its_command_prints(code_root, tmp_path, hardware):
    """Run as the report says: preparation, then one command for each number."""
    needed = ("nm", "objdump", "perl", "grep") if hardware == "cpu" else ("grep",)
    if missing := [name for name in needed if shutil.which(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    words = [f"hardware={hardware}", "default=true"]
    result = one(stored(code_root), words)
    folder = tmp_path / "entry"
    shutil.copytree(code_root / result.folder("compile"), folder)
    found = evidence(result.compiled)
    environment = {**os.environ, "PATH": f"{tools()}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}

    def run(command):
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    for command in found.preparation:
        run(command)
    printed = {trace.name: run(trace.command) for trace in found.traces}
    assert printed == {trace.name: str(trace.value) for trace in found.traces}
    assert all((folder / trace.file).is_file() for trace in found.traces)
    _check_complete({trace.name: trace.value for trace in found.traces}, result.compiled.facts)


def _check_complete(values, facts):
    """The commands speak of the facts themselves, and of nearly all of them."""
    assert values["code_bytes"] == facts.code_bytes
    assert values["local_memory"] == facts.local_memory
    if facts.registers is None:  # a CPU
        return
    assert values["registers"] == facts.registers
    assert values["instructions"] == sum(facts.instructions.values())
    assert sum(values[name] for name in facts.matrix) == facts.instructions["matrix"] == values["matrix"]
    if facts.scalar_registers is None:  # NVIDIA: nothing is left over
        assert sum(values[name] for name in facts.instructions) == values["instructions"]
        return
    uncounted = set(facts.instructions) - set(values)
    assert uncounted <= {"convert", "float", "integer", "shuffle", "fma", "other"}
    assert {"matrix", "local", "wait", "barrier", "load_shared", "special"} <= set(values)


def test_several_kernels_are_not_explained(tmp_path):
    """Facts of several kernels are sums: no single command prints them."""
    from pipeline.backends.registry import backend
    from tests.backends.triton import triton_sources

    compiled = backend("triton").compile(
        written_job(tmp_path, triton_sources.TWO_KERNELS), tmp_path, tmp_path
    )
    with pytest.raises(
        ConfigError, match=r"explains one kernel, this variant has kernel\.cubin, kernel\.1\.cubin"
    ):
        evidence(compiled)
