"""CUDA sources of `torch.utils.cpp_extension` on the CPU, where the device is absent.

In: files with kernels and with the host code that launches them. Out: C++ for the host's compiler, with its
arguments; of a loaded extension, races and accesses outside of all tensors. `emulation/extension.hpp` says
what there is of CUDA, `emulation/host.hpp` what of its runtime.
"""

import _ctypes
import ctypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pipeline.backends.backend import MemoryFault, MemorySpan
from pipeline.backends.cpp.extension_builds import Emulation, NotEmulatedError
from pipeline.backends.cuda.emulator import EMULATION, HEADERS, INSTRUMENTED, WRAPPED, faults_of
from pipeline.backends.cuda.inline_ptx import rewrite

_DEVICE_SUFFIXES = (".cu", ".cuh")
_KEPT_FLAGS = ("-D", "-U", "-I", "-isystem")  # of those for nvcc
_COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"].*$', re.MULTILINE)
_PROVIDED = re.compile(
    r"(cuda|cuda_runtime|cuda_runtime_api|cuda_fp16|cuda_bf16|driver_types|vector_types|vector_functions"
    r"|device_launch_parameters|math_constants|device_functions|mma|cooperative_groups|cuda_device_runtime_api"
    r"|cuda_pipeline|cuda_pipeline_primitives|sm_\d+_intrinsics)\.hp?p?$|cooperative_groups/.*|cub/.*"
    r"|(ATen|c10|torch/csrc)/cuda/.*|torch/cuda\.h|cuda/(std/)?functional$"
)
_OPTIONAL = {  # their names may be a source's own as well
    "functional.hpp": re.compile(r"cub/.*|cuda/(std/)?functional$"),
    "torch_device.hpp": re.compile(r"ATen/cuda/(.*\.cuh|detail/.*)$"),
}
_ABSENT = re.compile(
    r"(cublas|cudnn|curand|cusparse|cusolver|cufft|thrust|cutlass|cute|cuda/|nccl|nvrtc|nvToolsExt)"
)
_LAUNCH = re.compile(r'<<<|"(?:[^"\\\n]|\\.)*"')
_NAME_BEFORE = re.compile(r"[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*$")
_TYPE = re.compile(r"\.\s*type\s*\(\s*\)\s*\.\s*is_cuda\s*\(\s*\)")  # of tensors, as it was asked once
_OF_DEVICE = re.compile(r"\b(DeviceType\s*::\s*|TORCH_LIBRARY_IMPL\s*\(\s*\w+\s*,\s*(?:Autograd)?)CUDA\b")
_OPEN, _CLOSE = "([{", ")]}"
_SYMBOL = b"kernelmill_before_launch"


def emulation() -> Emulation:
    """For `stand_in_for_builds`."""
    return Emulation(translate=one_source, compiling=(*EMULATION, *INSTRUMENTED), linking=WRAPPED)


def one_source(sources: Sequence[Path], folder: Path, flags: Sequence[str]) -> tuple[Path, list[str]]:
    """All sources of an extension with CUDA as one for the host's compiler, in `folder`, and its arguments.

    Raises
    ------
    NotEmulatedError
        They use a library or a statement that is not emulated; the text names it.
    """
    # Kernels first: what others only declare is defined there.
    ordered = sorted(sources, key=lambda source: source.suffix not in _DEVICE_SUFFIXES)
    texts = {str(source): _whole(source, set()) for source in ordered}
    target = folder / "emulated.cpp"
    target.write_text(for_the_host(texts))
    own = (f"-I{folder}" for folder in dict.fromkeys((HEADERS, *(source.parent for source in ordered))))
    return target, [*own, *kept_flags(flags)]


def _whole(source: Path, seen: set[Path]) -> str:
    """Its text with its own headers in place, each once."""

    def header(found: re.Match[str]) -> str:
        path = source.parent / found[2]
        if found[1] != '"' or not path.is_file():
            return found[0]
        return "" if path.resolve() in seen else f'#line 1 "{path}"\n{_whole(path, seen)}'

    seen.add(source.resolve())
    return _INCLUDE.sub(header, source.read_text(errors="replace"))


def for_the_host(texts: Mapping[str, str]) -> str:
    """Sources, by name, as one for the host's compiler; lines of messages are theirs.

    Raises
    ------
    NotEmulatedError
        They use a library or a statement that is not emulated; the text names it.
    """
    includes, parts, optional = ["#include <torch/types.h>"], [], []
    for name, text in texts.items():
        own, named, rest = _split(text)
        includes += own
        optional += [each for each, pattern in _OPTIONAL.items() if any(map(pattern.match, named))]
        parts += [
            f'#line 1 "{name}"',
            rewrite(_launches(_TYPE.sub(".is_cuda()", _OF_DEVICE.sub(r"\1CPU", rest)))),
        ]
    emulated = (f'#include "{header}"' for header in ("extension.hpp", *dict.fromkeys(optional)))
    return "\n".join([*includes, *emulated, *parts, ""])


def kept_flags(flags: Sequence[str]) -> list[str]:
    """Those for nvcc that the host's compiler takes as well: macros and folders."""
    kept, take = [], False
    for flag in flags:
        if take or flag.startswith(_KEPT_FLAGS):
            kept.append(flag)
        take = flag in _KEPT_FLAGS
    return kept


def _split(text: str) -> tuple[list[str], list[str], str]:
    """Includes before the emulation, headers that it stands in for, and the rest without comments."""
    text = _COMMENT_OR_TEXT.sub(_blank, text)
    includes, emulated = [], []
    for kind, name in _INCLUDE.findall(text):
        if _PROVIDED.match(name):
            emulated.append(name)
        elif _ABSENT.match(name):
            raise NotEmulatedError(f"{name} needs a device")
        elif kind == "<":
            includes.append(f"#include <{name}>")
    text = _INCLUDE.sub(lambda found: found[0] if _is_own(found[1], found[2]) else "", text)
    return includes, emulated, text


def _is_own(kind: str, name: str) -> bool:
    return kind == '"' and not _PROVIDED.match(name)


def _blank(found: re.Match[str]) -> str:
    """A comment is as many lines of nothing; a string stays."""
    return found[0] if found[0][0] in "\"'" else " " + "\n" * found[0].count("\n")


def _launches(text: str) -> str:
    """`kernel<T><<<grid, block>>>(x)` as a call of `emulated::launch`."""
    position = 0
    while match := _LAUNCH.search(text, position):
        found = match.start()
        if match[0] != "<<<":
            position = match.end()
            continue
        start = _start(text, found)
        if start is None:
            raise NotEmulatedError(f"a launch of what has no name: {_line(text, found)}")
        name = text[start:found].strip()
        end = _end(text, found + 3, ">>>")
        opened = text.find("(", end + 3)
        if text[end + 3 : opened].strip(" \t\n\\"):
            raise NotEmulatedError(f"a launch without arguments in brackets: {_line(text, found)}")
        closed = _end(text, opened + 1, ")")
        given = text[opened + 1 : closed]
        call = (
            f'emulated::launch("{_without_template(name)}", {{{text[found + 3 : end]}}},'
            f" [=](auto... given) {{ {name}(given...); }}{', ' * bool(given.strip())}{_arguments(given)})"
        )
        text = text[:start] + call + text[closed + 1 :]
        position = start + len(call) - len(given)
    return text


def _start(text: str, position: int) -> int | None:
    """Where the kernel's name begins whose launch, after its template's arguments, stands at `position`.

    None where it has no name, or is a member.
    """
    start = len(text[:position].rstrip())
    depth = inside = 0
    while start and (depth or text[start - 1] == ">"):
        start -= 1
        inside += (text[start] == ")") - (text[start] == "(")
        depth += 0 if inside else (text[start] == ">") - (text[start] == "<")
        if depth == 0:
            break
    found = _NAME_BEFORE.search(text[:start].rstrip())
    is_member = found is not None and text[: found.start()].rstrip().endswith((".", "->"))
    return None if found is None or is_member else found.start()


def _line(text: str, position: int) -> str:
    return text[text.rfind("\n", 0, position) + 1 :].partition("\n")[0].strip()


def _without_template(name: str) -> str:
    return re.sub(r"\s+", " ", name.partition("<")[0]).strip()


def _arguments(given: str) -> str:
    """As they are; NULL, which is a number here, is none for a kernel."""
    return re.sub(r"\bNULL\b", "nullptr", given)


def _end(text: str, position: int, closing: str) -> int:
    """Where `closing` stands outside of brackets and strings."""
    depth = 0
    while position < len(text):
        literal = _COMMENT_OR_TEXT.match(text, position)
        if literal:
            position = literal.end()
            continue
        if depth == 0 and text.startswith(closing, position):
            return position
        depth += (text[position] in _OPEN) - (text[position] in _CLOSE)
        position += 1
    raise NotEmulatedError(f"a launch whose {closing} does not come")


# ---- loaded extensions

_Watch = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_bool
)
_Fault = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_uint))
_Before = ctypes.CFUNCTYPE(None)


class EmulatedExtension:
    """A loaded shared object, whose kernels are shown all memory there is (`spans`) before each launch.

    It refers to this object until the process ends.
    """

    def __init__(self, path: str, spans: Callable[[], list[MemorySpan]]) -> None:
        handle = _ctypes.dlopen(path, 0)
        self._watch = _Watch(_ctypes.dlsym(handle, "kernelmill_watch"))
        self._fault = _Fault(_ctypes.dlsym(handle, "kernelmill_fault"))
        self._spans = spans
        self._names: list[bytes] = []  # which the library refers to
        self._error: Exception | None = None
        self._before = _Before(self._report_spans)
        place = ctypes.c_void_p.from_address(_ctypes.dlsym(handle, "kernelmill_before_launch"))
        place.value = ctypes.cast(self._before, ctypes.c_void_p).value

    def _report_spans(self) -> None:
        """Before each launch; an exception would be lost in C."""
        try:
            spans = self._spans()
            self._names = [span.name.encode() for span in spans]
            self._watch(None, None, 0, 0, False)
            for name, span in zip(self._names, spans, strict=True):
                self._watch(name, span.start, span.size, span.itemsize, span.guarded)
        except Exception as error:
            self._error = error

    def take(self) -> Iterator[MemoryFault]:
        """What its kernels did wrong since the last call of this."""
        if self._error is not None:
            raise self._error
        yield from faults_of(self._fault)


_WATCHED: dict[str, EmulatedExtension] = {}


def watch(path: str, spans: Callable[[], list[MemorySpan]]) -> bool:
    """Whether a loaded shared object was built with the emulation; from now on its faults are kept."""
    try:
        is_emulated = _SYMBOL in Path(path).read_bytes()
    except OSError:
        return False
    if is_emulated and path not in _WATCHED:
        _WATCHED[path] = EmulatedExtension(path, spans)
    return is_emulated


def take_memory_faults() -> tuple[MemoryFault, ...]:
    """Races, and accesses outside of all tensors, since the last call of this."""
    return tuple(fault for extension in _WATCHED.values() for fault in extension.take())
