"""docs/papers.md: every experiment of the literature has its section, with its claim and its command."""

import yaml

from tests.benchmarks.papers import (
    EXPERIMENTS,
    INTRODUCTION,
    OLDER,
    PAGE,
    section,
    sections_of,
    with_description,
)


def test_every_experiment_is_on_the_page() -> None:
    """Named, with its source, as its yaml describes it."""
    page = PAGE.read_text()
    for path in sorted(EXPERIMENTS.glob("*.yaml")):
        experiment = yaml.safe_load(path.read_text())["experiment"]
        assert f"## {path.stem}\n\n{experiment['description'].strip()}" in page, path
        assert "arXiv:" in experiment["description"], path
        assert f"kernelmill run experiment=paper/{path.stem}" in page, path


def test_sections_stay_as_they_are() -> None:
    """Of experiments that are not run again."""
    page = PAGE.read_text()
    assert "\n".join([INTRODUCTION, *sections_of(page).values()]) == page


def test_a_section(tmp_path) -> None:
    """Ratios with intervals, and facts of what was compiled for absent devices."""
    (tmp_path / "winners.csv").write_text(
        "kernel,workload,dtype,status,verify_preset,implementation,configuration,median_seconds,"
        "roofline_share,speedup.eager,speedup.eager.low,speedup.eager.high\n"
        "scan,long,float32,measured,fast,cpp,LANES=8,0.0012,0.3,2.5,2.25,2.75\n"
        "scan,longer,float32,measured,fast,cpp,LANES=8,0.0024,0.3,20,18,22\n"
        "scan,long,float32,not measured,fast,triton,BLOCK=64,,,,,\n"
    )
    (tmp_path / "static_facts.csv").write_text(
        "kernel,workload,hardware,kind,outcome,configuration,registers,spills,shared_memory,matrix,matrix_instructions\n"
        "scan,long,h200,cuda,passed,BLOCK=64,40,0,512,,0\n"
        "scan,long,cpu,cpu,passed,LANES=8,,,,,0\n"
    )
    (tmp_path / "variants.csv").write_text(
        "task,kernel,workload,dtype,outcome,implementation,configuration,median_seconds\n"
        "t,scan,long,float32,passed,cpp,LANES=8,0.0012\n"
        "t,scan,long,float32,passed,cpp,LANES=1,0.0036\n"
        "t,scan,long,float32,wrong_value,cpp,LANES=2,\n"
    )
    text = section("marlin", tmp_path)
    assert "| scan | long | float32 | cpp `LANES=8` | 1.20 ms | 2.50 (2.25 to 2.75) |" in text
    assert "| 2.40 ms | 20.0 (18.0 to 22.0), at 1.5 % |" in text
    assert "| scan | long | h200 | `BLOCK=64` | 40 | 0 | 512 | 0 |" in text
    assert "| scan | long | float32 | cpp `LANES=1` | 3.60 ms | 3.00 |" in text
    assert "triton" not in text.partition("Compiled for")[0].partition("Measured, ")[2]


def test_a_changed_experiment_has_older_figures() -> None:
    """Said once, however often the page is written."""
    (name, text) = next(iter(sections_of(PAGE.read_text()).items()))
    changed = text.replace("\n\n", "\n\nBefore: ", 1)
    renewed = with_description(name, changed)
    assert OLDER in renewed and "Before: " not in renewed
    assert with_description(name, renewed.replace("\n\n", "\n\nAgain: ", 1)).count(OLDER) == 1
