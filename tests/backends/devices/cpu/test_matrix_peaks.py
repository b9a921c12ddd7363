"""Peaks of matrix products: which library counts, and what is left out."""

import pytest
import torch

from pipeline.backends.devices.cpu import matrix_peaks as module


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products that take no time."""
    monkeypatch.setattr(module, "SIZES", (16, 32))


def test_every_dtype() -> None:
    """Floats of torch; float32 and float64 of the faster of two libraries."""
    found = module.matrix_peaks()
    assert {"float32", "float64", "float16", "bfloat16"} <= found.keys()
    assert all(flops > 0 for flops, _ in found.values())
    assert found["bfloat16"][1] == "torch"


def test_only_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others cost time, one of them most of it."""
    assert module.matrix_peaks(("bfloat16",)).keys() == {"bfloat16"}
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: a)
    assert module.matrix_peaks(("int8",)).keys() == {"int8"}


def test_the_faster_library_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is named."""
    monkeypatch.setattr(module, "_best", lambda product: 2.0 if "numpy" in product.__qualname__ else 1.0)
    found = module.matrix_peaks()
    assert found["float32"] == (2.0, "numpy")
    assert found["float16"] == (1.0, "torch")


def test_operations_over_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of the sizes, and no larger one after a product that took long."""
    sizes: list[int] = []

    def product(size: int):
        sizes.append(size)
        return lambda: None

    monkeypatch.setattr(module, "SIZES", (10, 20, 40))
    monkeypatch.setattr(module, "_seconds", lambda call: {10: 1e-3, 20: 0.02, 40: 1.0}[sizes[-1]])
    assert module._best(product) == pytest.approx(2 * 10**3 / 1e-3)
    assert sizes == [10, 20]


def test_a_torch_without_int8(monkeypatch: pytest.MonkeyPatch) -> None:
    """Absent, not zero; the same where the processor has no kernel."""

    def refuses(a: torch.Tensor, b: torch.Tensor) -> None:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(torch, "_int_mm", refuses, raising=False)
    assert module._integers() is None
    monkeypatch.delattr(torch, "_int_mm")
    assert "int8" not in module.matrix_peaks()
