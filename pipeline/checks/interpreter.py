"""Which backends can stand in for an absent device, and how: one line each."""

from pipeline.records.record import Record


class Interpreter(Record, frozen=True, kw_only=True):
    """How a backend interprets its kernels instead of compiling them."""

    environment: dict[str, str]
    preload: tuple[str, ...]
    """Modules worth importing once, in that environment."""
    toolchain: tuple[str, ...]
    """What of the toolchain an interpretation depends on: no assembler of any target."""


INTERPRETERS = {
    "triton": Interpreter(
        environment={"TRITON_INTERPRET": "1"},
        preload=("pipeline.backends.triton.loading", "pipeline.backends.triton.interpreter"),
        toolchain=("triton", "torch", "numpy"),
    )
}
