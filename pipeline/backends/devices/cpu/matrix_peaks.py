"""Peak of the libraries' matrix product on the CPU, by dtype: the best of square products and libraries."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.backends.devices.device_ceilings import PRODUCTS

if TYPE_CHECKING:
    import torch

SIZES = (256, 512, 1024, 2048, 4096)
CALLS = 3
LONGEST = 0.01  # seconds of one product after which no larger one is tried; float16 may take 13 ms at 256
NUMPY_DTYPES = ("float32", "float64")
INTEGERS = "int8"

Product = Callable[[], object]


def matrix_peaks(dtypes: Sequence[str] = PRODUCTS) -> dict[str, tuple[float, str]]:
    """Dtype -> FLOP/s (int8: OP/s) and the library that reached it; what no library has is left out."""
    floats = [name for name in dtypes if name != INTEGERS]
    found = {name: (peak_of(name, "torch"), "torch") for name in floats}
    integers = _integers() if INTEGERS in dtypes else None
    if integers is not None:
        found[INTEGERS] = (integers, "torch")
    for name in [name for name in floats if name in NUMPY_DTYPES]:
        flops = peak_of(name, "numpy")
        if flops > found[name][0]:
            found[name] = (flops, "numpy")
    return found


def peak_of(dtype: str, library: str) -> float:
    """FLOP/s of one dtype by one library, `numpy` or `torch`, as `matrix_peaks` takes them."""
    import numpy as np
    import torch

    if library == "numpy":
        return _best(_numpy_product(np.dtype(dtype)))
    return _best(_torch_product(getattr(torch, dtype)))


def _best(product: Callable[[int], Product]) -> float:
    best = 0.0
    for size in SIZES:
        call = product(size)
        fewest = min(_seconds(call) for _ in range(CALLS))
        best = max(best, 2.0 * size**3 / fewest)
        if fewest > LONGEST:
            break
    return best


def _seconds(call: Product) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _torch_product(dtype: "torch.dtype") -> Callable[[int], Product]:
    import torch

    def product(size: int) -> Product:
        a, b = (torch.ones(size, size, dtype=dtype) for _ in range(2))
        c = torch.empty_like(a)
        return lambda: torch.matmul(a, b, out=c)

    return product


def _numpy_product(dtype: Any) -> Callable[[int], Product]:
    import numpy as np

    def product(size: int) -> Product:
        a, b = (np.ones((size, size), dtype) for _ in range(2))
        c = np.empty_like(a)
        return lambda: np.matmul(a, b, out=c)

    return product


def _integers() -> float | None:
    """int8 with sums in int32, where this release of torch has it for the CPU."""
    import torch

    function = getattr(torch, "_int_mm", None)
    if function is None:
        return None

    def product(size: int) -> Product:
        a, b = (torch.ones(size, size, dtype=torch.int8) for _ in range(2))
        return lambda: function(a, b)

    try:
        return _best(product)
    except (RuntimeError, NotImplementedError):  # no kernel for this device
        return None
