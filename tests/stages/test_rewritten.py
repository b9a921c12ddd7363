"""Every kind of rewrite through compile and verify: at least one place each where it is right."""

from pathlib import Path

import pytest

from pipeline.search.rewriting.rewrite import Source
from pipeline.search.rewriting.rewrite_catalogue import TRANSFORMATIONS
from tests.search.rewriting.sources import H200, MATMUL, TWO_KERNELS
from tests.stages.written import Task

FAST = ("workload=awkward", "verify=fast", "profile=quick")
SOFTMAX = Path("kernels/softmax/softmax_triton.py").read_text()

TRITON = (
    ("matmul_bias_gelu", MATMUL, ("split-K",)),
    ("matmul_bias_gelu", TWO_KERNELS, ("fused epilogue",)),
    ("softmax", SOFTMAX, ("persistent", "vector width")),
)


def rewritten(kind: str, text: str) -> list[str]:
    """One rewrite of each function or loop that the kind finds."""
    found = TRANSFORMATIONS[kind].find(Source(text=text, limits=H200))
    places = {rewrite.line: rewrite.text for rewrite in found}
    assert places, kind
    return list(places.values())


def ends(task: Task, implementation: str, kinds: tuple[str, ...], text: str) -> set[str]:
    """How the parent and its rewrites ended, with the reasons."""
    texts = [text, *(each for kind in kinds for each in rewritten(kind, text))]
    task.generate(*(task.proposal(implementation, each) for each in texts))
    found = task.ends("compile", "verify")
    assert len(found) == len(texts), "a rewrite that changes nothing"
    return {*found, *task.reasons("compile"), *task.reasons("verify")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "text", "kinds"), TRITON, ids=[f"{each[0]}-{each[2][0]}" for each in TRITON]
)
def test_triton(tmp_path: Path, kernel: str, text: str, kinds: tuple[str, ...]) -> None:
    """All compile for the H200, and Triton's interpreter finds nothing wrong with them."""
    task = Task(tmp_path, f"kernel={kernel}", "hardware=h200", *FAST)
    assert ends(task, "triton", kinds, text) == {"passed", ""}
