"""Whether Triton compiles or interprets in this process: TRITON_INTERPRET decides it at the first import."""

import triton
import triton.language


def interpreting() -> bool:
    """Whether kernels that are imported now are interpreted.

    Raises
    ------
    RuntimeError
        TRITON_INTERPRET was set, or unset, after Triton had been imported: neither mode works then.
    """
    wanted = bool(triton.knobs.runtime.interpret)
    # Triton's own library is written in Triton, so it was bound to a mode when it was imported.
    found = type(triton.language.softmax).__name__ == "InterpretedFunction"
    if wanted != found:
        raise RuntimeError(
            f"triton was imported to {_mode(found)}, but TRITON_INTERPRET now asks it to {_mode(wanted)}: "
            "start a new process for that"
        )
    return wanted


def require_compiler() -> None:
    """Raises RuntimeError in a process that interprets."""
    if interpreting():
        raise RuntimeError("this process interprets: unset TRITON_INTERPRET and start a new one to compile")


def _mode(interprets: bool) -> str:
    return "interpret" if interprets else "compile"
