"""What is read from the machine: this one, and others as their system files describe them."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.backends.devices.cpu import detection
from pipeline.records.record import to_json
from tests.paths import ROOT

EPYC = """\
processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 17
model name	: AMD EPYC 9554
flags: fpu sse2 ssse3 sse4_1 sse4_2 avx avx2 fma f16c bmi1 bmi2 avx512f avx512cd avx512bw avx512dq avx512vl

processor	: 1
model name	: another
"""
HASWELL = "vendor_id : GenuineIntel\nflags : sse2 ssse3 sse4_1 sse4_2 avx avx2 fma f16c bmi1 bmi2\n"
GRACE = "CPU implementer	: 0x41\nFeatures	: fp asimd fphp asimdhp bf16 sve\nCPU part	: 0xd4f\n"


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Pretend to be on a machine: call with its name and the text of /proc/cpuinfo."""
    monkeypatch.setattr(detection, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(detection, "CPUS", tmp_path)
    monkeypatch.setattr(detection, "SYSCONF_CACHES", {})
    detection.cpuinfo.cache_clear()

    def pretend(name: str, text: str | None) -> Path:
        monkeypatch.setattr("platform.machine", lambda: name)
        if text is not None:
            (tmp_path / "cpuinfo").write_text(text)
        return tmp_path

    yield pretend
    detection.cpuinfo.cache_clear()


def values(hardware) -> dict[str, float]:
    """Limits without their sources."""
    return {name: limit.value for name, limit in hardware.limits.items()}


def add_cache(cpus: Path, index: int, level: str, kind: str, size: str) -> None:
    """One cache of every processor that a test may be bound to."""
    for cpu in detection.usable_cpus():
        folder = cpus / f"cpu{cpu}" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{text}\n")


def test_this_machine():
    """Caches, vector registers and cores are there and plausible, and equal on every read."""
    found = detection.read_cpu()
    assert found.kind == "cpu"
    assert {"l1d_cache", "l2_cache", "vector_bits", "vector_registers"} <= set(found.limits)
    assert 4 << 10 <= found.limits["l1d_cache"].value <= found.limits["l2_cache"].value
    assert 1 <= int(found.facts["cores"]) <= int(found.facts["threads"])
    assert int(found.facts["memory_bytes"]) > 1 << 28
    assert to_json(found) == to_json(detection.read_cpu())


def test_takes_milliseconds_and_no_torch():
    """The plan reads it on every start."""
    script = (
        "import sys, pipeline.backends.devices.cpu.detection as machine\n"
        "machine.read_cpu()\n"
        "print('torch' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"
    detection.cpuinfo.cache_clear()
    started = time.perf_counter()
    detection.read_cpu()
    assert time.perf_counter() - started < 0.1


def test_avx512(system):
    """Level, model and 32 registers of 512 bits; only features that matter, in a fixed order."""
    system("x86_64", EPYC)
    found = detection.read_cpu()
    assert found.architecture == "x86-64-v4-AuthenticAMD-25-17"
    assert found.features[:3] == ("sse2", "ssse3", "sse4_1")
    assert "fpu" not in found.features
    assert found.facts["model"] == "AMD EPYC 9554"
    assert values(found)["vector_bits"] == 512
    assert values(found)["vector_registers"] == 32


def test_avx2(system):
    """Absent fields of the model are left out."""
    system("AMD64", HASWELL)
    found = detection.read_cpu()
    assert found.architecture == "x86-64-v3-GenuineIntel"
    assert (values(found)["vector_bits"], values(found)["vector_registers"]) == (256, 16)


def test_arm(system):
    """The other instruction set."""
    system("arm64", GRACE)
    found = detection.read_cpu()
    assert found.architecture == "aarch64-0x41-0xd4f"
    assert found.features == ("asimd", "fphp", "asimdhp", "bf16", "sve")
    assert (values(found)["vector_bits"], values(found)["vector_registers"]) == (128, 32)


def test_system_that_tells_nothing(system):
    """What constraints cannot do without is assumed and says so; the rest is absent."""
    system("riscv64", None)
    found = detection.read_cpu()
    assert found.architecture == "riscv64"
    assert found.features == ()
    assert "l3_cache" not in found.limits
    assert found.limits["l2_cache"].source == "assumed: the system does not tell"
    assert found.limits["vector_bits"].source == "assumed for riscv64"


def test_caches_of_sysfs(system):
    """Units are understood, instruction caches left out, and the source is named."""
    cpus = system("x86_64", EPYC)
    add_cache(cpus, 0, "1", "Data", "48K")
    add_cache(cpus, 1, "1", "Instruction", "32K")
    add_cache(cpus, 2, "2", "Unified", "2M")
    add_cache(cpus, 3, "3", "Unified", "nonsense")
    found = detection.read_cpu()
    assert values(found)["l1d_cache"] == 48 << 10
    assert values(found)["l2_cache"] == 2 << 20
    assert "l3_cache" not in found.limits
    assert found.limits["l1d_cache"].source.endswith("cache/index0")
    assert found.limits["l1d_cache"].unit == "byte"


def test_cores_are_counted_once(system, monkeypatch: pytest.MonkeyPatch):
    """Two threads of a core are one core; a processor that the system does not describe is one."""
    cpus = system("x86_64", EPYC)
    monkeypatch.setattr(detection, "usable_cpus", lambda: {0, 1, 2, 3, 4})
    for cpu, core in ((0, 0), (1, 0), (2, 1), (3, 1)):
        folder = cpus / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text("0\n")
        (folder / "core_id").write_text(f"{core}\n")
    found = detection.read_cpu()
    assert (found.facts["cores"], found.facts["threads"]) == ("3", "5")


def test_facts_are_plain(system):
    """The record survives JSON with equal bytes, as a spec needs."""
    system("x86_64", EPYC)
    text = to_json(detection.read_cpu())
    assert json.loads(text)["limits"]["vector_bits"]["unit"] == "bit"
