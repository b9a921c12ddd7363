"""The backends that can interpret their kernels if the device is absent: one line each."""

from typing import Literal

from pipeline.records.environment import EMULATE_CUDA
from pipeline.records.record import Record


class Interpreter(Record, frozen=True, kw_only=True):
    """How a backend interprets its kernels instead of compiling them."""

    where: Literal["interpreter", "emulator"]
    """What the record calls it."""
    environment: dict[str, str]
    preload: tuple[str, ...]
    """Modules worth importing once, in that environment."""
    toolchain: tuple[str, ...]
    """What of the toolchain an interpretation depends on: no assembler of any target."""


INTERPRETERS = {
    "cuda": Interpreter(
        where="emulator",
        environment={EMULATE_CUDA: "1"},
        preload=("pipeline.backends.cuda.emulator",),
        toolchain=("c++", "c++ flags", "torch", "numpy"),
    ),
    "triton": Interpreter(
        where="interpreter",
        environment={"TRITON_INTERPRET": "1"},
        preload=("pipeline.backends.triton.loading", "pipeline.backends.triton.interpreter"),
        toolchain=("triton", "torch", "numpy"),
    ),
}
