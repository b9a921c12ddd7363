"""The known backends; adding one is one module and one line here."""

from pipeline.backends.backend import Backend
from pipeline.records.errors import ConfigError

NAMES = ("cpp", "cuda", "triton")


def backend(name: str) -> Backend:
    """The backend of that name; its heavy imports happen when it is used.

    Raises
    ------
    ConfigError
        Unknown name; the text lists the known ones.
    """
    match name:
        case "cpp":
            from pipeline.backends.cpp import Cpp

            return Cpp()
        case "cuda":
            from pipeline.backends.cuda import Cuda

            return Cuda()
        case "triton":
            from pipeline.backends.triton import Triton

            return Triton()
    raise ConfigError(f"backend: got '{name}', expected one of {', '.join(NAMES)}")
