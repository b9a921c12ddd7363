"""Caches as Linux describes them."""

from pathlib import Path

from pipeline.backends.devices.cpu.ceilings import cpu_levels
from pipeline.backends.devices.device_ceilings import Level


def write(cpus: Path, core: int, index: int, *facts: str) -> None:
    """One cache of one core: level, type, size, who shares it."""
    folder = cpus / f"cpu{core}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in zip(("level", "type", "size", "shared_cpu_list"), facts, strict=False):
        (folder / name).write_text(f"{text}\n")


def test_shared_caches_count_once(tmp_path: Path) -> None:
    """Private caches add up over the cores, a shared one does not; instructions are left out."""
    for core in (0, 2):
        write(tmp_path, core, 0, "1", "Data", "48K", f"{core}-{core + 1}")
        write(tmp_path, core, 1, "1", "Instruction", "32K", f"{core}-{core + 1}")
        write(tmp_path, core, 2, "2", "Unified", "1024K", f"{core}-{core + 1}")
        write(tmp_path, core, 3, "3", "Unified", "32M", "0-3")
    assert cpu_levels((0, 2), tmp_path) == (
        Level(name="L1", capacity=96 << 10),
        Level(name="L2", capacity=2 << 20),
        Level(name="L3", capacity=32 << 20),
        Level(name="DRAM"),
    )
    assert cpu_levels((0,), tmp_path)[0].capacity == 48 << 10


def test_a_system_that_tells_nothing(tmp_path: Path) -> None:
    """Then there is only the memory; a cache without a size is left out."""
    write(tmp_path, 0, 0, "1", "Data", "unknown", "0")
    write(tmp_path, 0, 1, "2", "Unified")
    assert cpu_levels((0,), tmp_path) == (Level(name="DRAM"),)
