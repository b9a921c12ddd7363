"""Builds extensions for `torch.utils.cpp_extension`: without ninja, faster, and timed.

In: the arguments of PyTorch's build. Out: the same shared object, by the system's compiler. A header included
before `torch/extension.h` leaves out the C++ frontend (modules, optimizers), which most extensions do not use
and which takes half of the time; what does not compile with it is compiled with PyTorch's own.
"""

import contextlib
import inspect
import re
import shlex
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.backends.cpp import compiler
from pipeline.records.record import Record, digest, digest_bytes

WITHOUT_FRONTEND = """#pragma once
#include <torch/types.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
"""
_DEVICE_SOURCES = (".cu", ".cuh", ".hip")
STANDARD = "-std=c++20"
_NOT_FOR_KERNELS = re.compile(r"-ffast-math|-Ofast|-Werror.*|-l(cu|nv).*")
"""Flags for the host's part, or for libraries that are not needed."""
_BUILDS = ("cpp_extension", "load_inline", "g++", "gcc", "nvcc", "nvrtc", "clang", "c++")
_COMPLAINT = re.compile(r":\d+: (?:fatal )?error: |: undefined reference to ")
_FOLDERS = re.compile(r"^\S*/")
_EXCERPT = re.compile(r"\s*\d+ \|(.*)")  # of the source, after a complaint
_KNOWN = (
    "name", "sources", "extra_cflags", "extra_cuda_cflags", "extra_sycl_cflags", "extra_ldflags",
    "extra_include_paths", "build_directory", "verbose", "with_cuda", "with_sycl", "is_standalone",
)  # fmt: skip


class DeviceUnavailable(RuntimeError):
    """Something that only a device, or its compiler, can do."""


class BuildError(RuntimeError):
    """An extension did not compile; the text is the compiler's first complaint."""


class Emulation(Record, frozen=True, kw_only=True, eq=False):
    """Builds sources for CUDA for the host."""

    translate: Callable[[Sequence[Path], Path, Sequence[str]], tuple[Path, list[str]]]
    """Sources, a folder, flags of nvcc -> one source for the host's compiler, with its arguments.

    Raises NotEmulatedError.
    """
    compiling: tuple[str, ...]
    """Arguments that all of them have."""
    linking: tuple[str, ...]


class ExtensionSources(Record, frozen=True, kw_only=True):
    """What `torch.utils.cpp_extension` would have built."""

    sources: tuple[Path, ...]
    folder: Path
    """Of the build."""
    macros: tuple[str, ...]
    """`NAME` or `NAME=VALUE`."""
    folders: tuple[Path, ...]
    """Of headers, PyTorch's own among them."""
    flags: tuple[str, ...]
    """For the compiler of a device."""


class NotEmulatedError(Exception):
    """A source that the emulation cannot stand in for; the text says why."""


class ExtensionBuilds:
    """The time that building took, which is not the candidate's own."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.seconds = 0.0
        self.compiler: tuple[str, ...] | None = None
        """A command in place of the compiler's."""
        self.header: Path | None = None
        """Of `extension_headers`, for what is emulated."""

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Inside, something is built."""
        started = self._clock()
        try:
            yield
        finally:
            self.seconds += self._clock() - started


def may_build(text: str) -> bool:
    """Whether a candidate's source has words of one that runs a compiler when it is loaded."""
    return any(word in text for word in _BUILDS)


def stand_in_for_builds(builds: ExtensionBuilds, *, device: bool, emulation: Emulation | None = None) -> None:
    """Replace PyTorch's build in this process, where it is the one that is known here.

    `device`: whether CUDA sources can be compiled; PyTorch's own build does that. `emulation`: how they are
    built where they cannot.
    """
    from torch.utils import cpp_extension

    original = getattr(cpp_extension, "_write_ninja_file_and_build_library", None)
    if original is None or tuple(inspect.signature(original).parameters) != _KNOWN:
        return

    def build(name: str, sources: Sequence[str], *arguments: Any, **keywords: Any) -> None:
        given = inspect.signature(original).bind(name, sources, *arguments, **keywords).arguments
        with builds.timed():
            if not _is_for_device(given):
                _build(given, builds.compiler or compiler.find())
            elif device:
                original(name, sources, *arguments, **keywords)
            elif emulation is not None and not given.get("with_sycl"):
                _build_emulated(given, emulation, builds.header)
            else:
                raise DeviceUnavailable("an extension with sources for CUDA needs a device and its compiler")

    cpp_extension._write_ninja_file_and_build_library = build
    cpp_extension.verify_ninja_availability = lambda: None


def divert_builds(take: Callable[[ExtensionSources], None]) -> None:
    """Replace PyTorch's build in this process, where it is the one that is known here, by `take`."""
    from torch.utils import cpp_extension

    original = getattr(cpp_extension, "_write_ninja_file_and_build_library", None)
    if original is None or tuple(inspect.signature(original).parameters) != _KNOWN:
        return

    def build(name: str, sources: Sequence[str], *arguments: Any, **keywords: Any) -> None:
        given = inspect.signature(original).bind(name, sources, *arguments, **keywords).arguments
        take(
            ExtensionSources(
                sources=tuple(Path(str(source)) for source in sources),
                folder=Path(given["build_directory"]),
                macros=_macros(given),
                folders=_folders(given),
                flags=tuple(_flags(given, "extra_cuda_cflags")),
            )
        )

    cpp_extension._write_ninja_file_and_build_library = build
    cpp_extension.verify_ninja_availability = lambda: None


def _is_for_device(given: dict[str, Any]) -> bool:
    is_device = any(str(source).endswith(_DEVICE_SOURCES) for source in given["sources"])
    return is_device or bool(given.get("with_cuda") or given.get("with_sycl"))


def _build_emulated(given: dict[str, Any], emulation: Emulation, header: Path | None) -> None:
    """The same for sources with kernels.

    Raises
    ------
    DeviceUnavailable
        They use what is not emulated. Where the compiler refuses them, that may be the emulation's fault.
    """
    flags = _flags(given, "extra_cuda_cflags")
    folder, sources = Path(given["build_directory"]), [Path(str(source)) for source in given["sources"]]
    try:
        source, arguments = emulation.translate(sources, folder, flags)
        plain = {name: _host_flags(given, name) for name in ("extra_cflags", "extra_ldflags")}
        compiling = (*emulation.compiling, *arguments)
        given = {**given, **plain, "sources": [source]}
        _build(given, compiler.find(), compiling, emulation.linking, header)
    except NotEmulatedError as error:
        raise DeviceUnavailable(f"not emulated: {error}") from None
    except BuildError as error:
        raise DeviceUnavailable(f"not emulated, or no CUDA C++: {error}") from None


def _host_flags(given: dict[str, Any], name: str) -> list[str]:
    return [flag for flag in _flags(given, name) if not _NOT_FOR_KERNELS.fullmatch(flag)]


def _build(
    given: dict[str, Any],
    program: Sequence[str],
    compiling: Sequence[str] = (),
    linking: Sequence[str] = (),
    header: Path | None = None,
) -> None:
    """Compile and link in the build's own folder, with more arguments for each; `header` is read first.

    Raises
    ------
    BuildError
        The compiler refused.
    """
    sources = [str(source) for source in given["sources"]]
    folder = Path(given["build_directory"])
    overlay = folder / "overlay"
    (overlay / "torch").mkdir(parents=True, exist_ok=True)
    (overlay / "torch" / "extension.h").write_text(WITHOUT_FRONTEND)
    target = folder / f"{given['name']}{'' if given.get('is_standalone') else '.so'}"
    identity = _identity(given, (*program, *compiling, *linking), sources)
    kept = folder / "identity.txt"
    # Several processes that time one candidate share a folder; nobody else writes to it.
    if target.is_file() and kept.is_file() and kept.read_text() == identity:
        return
    objects = []
    ahead = [] if header is None else ["-include", str(header)]
    for number, source in enumerate(sources):
        part = folder / f"{number}.o"
        command = [*program, *compile_arguments(given), *compiling, "-c", source, "-o", str(part)]
        complaint = _run([*program, f"-I{overlay}", *command[len(program) :], *ahead], folder)
        if complaint is not None:  # it may name what only PyTorch's own header declares
            complaint = _run(command, folder)
        if complaint is not None:
            raise BuildError(complaint)
        objects.append(str(part))
    complaint = _run([*program, *objects, *_link(given), *linking, "-o", str(target)], folder)
    if complaint is not None:
        raise BuildError(complaint)
    kept.write_text(identity)


def _identity(given: dict[str, Any], program: Sequence[str], sources: Sequence[str]) -> str:
    """What a shared object depends on."""
    texts = [digest_bytes(Path(source).read_bytes()) for source in sources]
    return digest([*program, *compile_arguments(given), *_link(given), *texts])


def compile_arguments(given: Mapping[str, Any]) -> list[str]:
    """Those for one of its sources; of no particular extension where nothing is given."""
    flags = _flags(given, "extra_cflags")
    standard = [] if any(flag.startswith("-std") for flag in flags) else [STANDARD]
    return [
        *(f"-D{macro}" for macro in _macros(given)),
        *(f"-isystem{folder}" for folder in _folders(given)),
        "-fPIC",
        "-fdiagnostics-color=never",
        *standard,
        *flags,
    ]


def _macros(given: Mapping[str, Any]) -> tuple[str, ...]:
    name = (f"TORCH_EXTENSION_NAME={given['name']}",) if "name" in given else ()
    return *name, "TORCH_API_INCLUDE_EXTENSION_H"


def _folders(given: Mapping[str, Any]) -> tuple[Path, ...]:
    from torch.utils import cpp_extension

    own = [*cpp_extension.include_paths("cpu"), sysconfig.get_paths()["include"]]
    return tuple(Path(str(each)) for each in (*(given.get("extra_include_paths") or []), *own))


def _link(given: dict[str, Any]) -> list[str]:
    from torch.utils import cpp_extension

    flags = _flags(given, "extra_ldflags")
    folders = [f"-L{folder}" for folder in cpp_extension.library_paths("cpu")]
    shared = [] if given.get("is_standalone") else ["-shared"]
    return [*shared, *folders, "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python", *flags]


def _flags(given: Mapping[str, Any], name: str) -> list[str]:
    """As a shell would have them, which PyTorch's own build goes through: `[""]` is none."""
    return shlex.split(" ".join(str(flag) for flag in given.get(name) or []))


def _run(command: Sequence[str], folder: Path) -> str | None:
    """The first complaint, or None; everything that is said goes to the log."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr, sep="", end="", flush=True)
    if done.returncode == 0:
        return None
    loose = next((line.strip() for line in done.stderr.splitlines() if "error" in line), None)
    return first_complaint(done.stderr) or loose or f"the compiler ended with code {done.returncode}"


def first_complaint(printed: str) -> str | None:
    """What a compiler or a linker refused first, with its line of the source; None where nothing was."""
    lines = printed.splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if _COMPLAINT.search(line):
            complaint, excerpt = _FOLDERS.sub("", line.strip()), _EXCERPT.match(after)
            return f"{complaint}: {excerpt[1].strip()}" if excerpt else complaint
    return None
