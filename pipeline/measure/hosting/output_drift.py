"""Does a callable still do what it did at its first call? Its tensors in, a line where it does not out.

What verified may count its calls and do less once it is timed. So a call after the timed ones, on the content
of the first one and on poisoned outputs, has to give what the first one gave.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.backends.devices.device import Call
from pipeline.measure.hosting.input_content import Content

if TYPE_CHECKING:
    import torch

POISON = 77
"""What integers hold before a call; floating-point numbers are NaN."""
_CLOSE = 0.05  # of the value or of the largest one: sums in another order differ by far less


class First:
    """What a callable gave when it was loaded."""

    def __init__(self, content: Content, seed: int, run: Callable[[Call], object]) -> None:
        self._content = content
        self._seed = seed
        self._run = run
        """Makes a call and waits for its end."""
        self._outputs: dict[str, torch.Tensor] = {}

    def keep(self, bind: Callable[[], Call]) -> None:
        """Call it on the content as it is, which is that of the seed."""
        self._call(bind)
        self._outputs = {name: tensor.clone() for name, tensor in self._content.outputs().items()}

    def difference(self, bind: Callable[[], Call]) -> str | None:
        """Call it on that content again: what is not as it was; None where everything is."""
        self._content.renew(self._seed)
        self._call(bind)
        for name, tensor in self._content.outputs().items():
            wrong = _different(self._outputs[name], tensor)
            if wrong:
                return (
                    f"called after the timed calls, on inputs that it had at first, it gives {wrong:,} of "
                    f"{tensor.numel():,} elements of {name} otherwise: what was timed is not what verified"
                )
        return None

    def _call(self, bind: Callable[[], Call]) -> None:
        """On poisoned outputs: what it does not write shows."""
        for tensor in self._content.outputs().values():
            tensor.fill_(float("nan") if tensor.dtype.is_floating_point else POISON)
        self._run(bind())


def _different(first: "torch.Tensor", late: "torch.Tensor") -> int:
    """How many elements are further apart than another order of summation explains."""
    import torch

    if torch.equal(first, late):
        return 0
    before, after = first.double(), late.double()
    finite = before[before.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    close = torch.isclose(after, before, rtol=_CLOSE, atol=_CLOSE * largest, equal_nan=True)
    return int((~close).sum())
