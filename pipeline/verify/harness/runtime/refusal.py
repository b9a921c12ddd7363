"""Why a candidate could not be loaded, constructed or called. In: an exception. Out: `RefusedReply`."""

import traceback

from pipeline.backends.cpp.extension_builds import DeviceUnavailable
from pipeline.backends.devices.driver_errors import meaning
from pipeline.backends.triton.error_summary import is_interpreters_limit, reason_of
from pipeline.sandbox.models.error_place import causes, raised_at
from pipeline.verify.harness.messages import RefusalStage, RefusedReply

_NO_DEVICE = (
    "not compiled with CUDA",
    "_cuda_",
    "not supported in interpreter mode",
    "'InterpreterBuilder' object has no attribute",
    "with arguments from the 'CPU' backend",
    "needs a device",
    "CUDA_HOME environment variable is not set",
    "libcuda.so",
    "active drivers",
    "libnvrtc",
    "nvcc: not found",
    "'nvcc'",
)
"""What is said where something needs a device, or can only be done there."""
_STARVED = "can't allocate memory"
_LONGEST = 500  # characters


class IllegalAddress(RuntimeError):
    """A kernel touched memory of a device that is not its own."""


def refuse(error: BaseException, stage: RefusalStage, nonce: str = "") -> RefusedReply:
    """Write the traceback to the log and say it in a line; running out of memory is the sandbox's to tell."""
    if isinstance(error, MemoryError) or _STARVED in str(error):
        raise error
    traceback.print_exception(error)
    text = " ".join(str(each) for each in causes(error))
    name = type(error).__name__
    of_driver = meaning(text)
    if of_driver == "out of memory":
        name = MemoryError.__name__
    elif of_driver == "illegal address":
        name = IllegalAddress.__name__
    elif of_driver or any(word in text for word in _NO_DEVICE) or is_interpreters_limit(causes(error)[-1]):
        name = DeviceUnavailable.__name__
    elif _is_build(error, text):
        stage = "build"
    place = "" if of_driver else raised_at(_shown(error))  # a driver says so at some later call
    return RefusedReply(stage=stage, error=name, reason=f"{_line(error)}{place}"[:_LONGEST], nonce=nonce)


def _is_build(error: BaseException, text: str) -> bool:
    """Whether a compiler refused; the interpreter meets an unknown name of Triton's when it runs."""
    names = {type(each).__name__ for each in causes(error)}
    if names & {"BuildError", "CompilationError", "PTXASError", "CompileTimeAssertionFailure"}:
        return True
    if "Error building extension" in text:
        return True
    return "InterpreterError" in names and (
        "module 'triton.language" in text or "NameError" in text or "type object 'tensor'" in text
    )


def _line(error: BaseException) -> str:
    shown = _shown(error)
    return reason_of(shown, "") + (" (in a kernel, interpreted)" if shown is not error else "")


def _shown(error: BaseException) -> BaseException:
    """What a kernel raised in the interpreter, which wraps it."""
    others = [each for each in causes(error) if type(each).__name__ != "InterpreterError"]
    return others[0] if others else error
