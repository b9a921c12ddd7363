"""CUDA sources of an extension of PyTorch, compiled for an absent target by nvcc, where that is installed.

In: sources as `torch.utils.cpp_extension` would build them. Out: registers, spills and shared memory of each
kernel, or the compiler's first complaint. Only device code is made, so that nothing is linked.
"""

import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.backends.backend import CompiledExtension, ExtensionCompiler
from pipeline.backends.cpp.extension_builds import STANDARD, WITHOUT_FRONTEND, ExtensionSources
from pipeline.backends.cuda.emulator import HEADERS
from pipeline.backends.cuda.facts import own_shared_memory, spills
from pipeline.backends.machine_code.cubin_resources import kernel_resources
from pipeline.records.configuration.hardware import Target
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import StaticFacts

NVCC = "nvcc"
_TOOLKIT = "/usr/local/cuda/bin"
_SUFFIXES = (".cu",)
_OF_DEVICE_ALONE = {"ATen/cuda/Atomic.cuh", "ATen/cuda/DeviceUtils.cuh", "ATen/cuda/detail/KernelUtils.h"}
"""Headers of PyTorch that need no library."""
_OF_PYTORCH = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*[<"]((?:ATen|c10|torch/csrc)/cuda/[^">]+|torch/cuda\.h)[">]', re.MULTILINE
)
_ARCHITECTURE = re.compile(r"(?:sm|compute)_(\d+[a-z]?)")
_ARCHITECTURE_FLAGS = ("-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code")
_COMPLAINT = re.compile(r".*\b(?:error|fatal)\s*:\s*(.*)$")
_PLACE = re.compile(r"([^\s(:]+)(?:\((\d+)\)|:(\d+)(?::\d+)?):")
_ABSENT = re.compile(r"No such file|cannot open source file|could not open source file")
_OF_FRONTEND = re.compile(r'error\s*:.*("torch\b|"(nn|optim|data|serialize)"|followed by "::")')
_UNDECLARED = re.compile(r'identifier "(\w+)" is undefined|has no member "(\w+)"')
_LONGEST = 300  # characters of a reason


def extension_compiler(target: Target) -> ExtensionCompiler | None:
    """For a target; None without the CUDA toolkit."""
    # Not by the devices' own search: what the backend imports belongs to the identity of its binaries.
    program = shutil.which(NVCC) or shutil.which(NVCC, path=_TOOLKIT)
    if program is None:
        return None
    compiled = functools.partial(_compile, program, target.architecture)
    return ExtensionCompiler(name=NVCC, version=_version(program), compile=compiled)


@functools.cache
def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"V(\d+\.\d+\.\d+)", done.stdout)
    return found[1] if found else "unknown"


def _compile(program: str, architecture: str, extension: ExtensionSources) -> CompiledExtension:
    kernels: dict[str, StaticFacts] = {}
    for number, source in enumerate(each for each in extension.sources if each.suffix in _SUFFIXES):
        binary = extension.folder / f"{number}.cubin"
        command = [*_arguments(architecture, extension), str(source), "-o", str(binary)]
        # PyTorch's C++ frontend takes twice as long as all else: what misses it alone is compiled with it.
        for headers in (_overlay(extension, WITHOUT_FRONTEND), _overlay(extension, "")):
            done = _run([program, *(f"-I{folder}" for folder in headers), *command], extension.folder)
            printed = done.stdout + done.stderr
            if _OF_FRONTEND.search(printed) is None:
                break
        if done.returncode:
            return _refused(printed, extension)
        kernels |= _facts(binary.read_bytes(), printed)
    return CompiledExtension(kernels=kernels)


def _run(command: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr, sep="", end="", file=sys.stderr, flush=True)
    return done


def _arguments(architecture: str, extension: ExtensionSources) -> list[str]:
    """As PyTorch calls nvcc, for the target: of a feature set of its own (`90a`) if the flags ask for it."""
    from torch.utils import cpp_extension

    flags = list(extension.flags)
    plain = architecture.removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz")
    asked = {found for flag in flags for found in _ARCHITECTURE.findall(flag)}
    own = next((each for each in sorted(asked, reverse=True) if each.rstrip("af") == plain), plain)
    standard = [] if any(flag.startswith(("-std", "--std")) for flag in flags) else [STANDARD]
    common = getattr(cpp_extension, "COMMON_NVCC_FLAGS", [])
    given = dict.fromkeys((*(source.parent for source in extension.sources), *extension.folders))
    headers = [*(f"-D{macro}" for macro in extension.macros), *(f"-I{folder}" for folder in given)]
    made = ("-cubin", f"-arch=sm_{own}", "-Xptxas", "-v", "-w")
    return [*made, *common, *standard, *_without_architectures(flags), *headers]


def _without_architectures(flags: Iterable[str]) -> list[str]:
    kept, skip = [], False
    for flag in flags:
        of_architecture = flag.partition("=")[0] in _ARCHITECTURE_FLAGS
        if not skip and not of_architecture:
            kept.append(flag)
        skip = of_architecture and "=" not in flag
    return kept


def _overlay(extension: ExtensionSources, extension_header: str) -> list[Path]:
    """Folders with headers in place of PyTorch's: its own for devices need libraries that it may lack."""
    texts = {"torch/extension.h": extension_header} if extension_header else {}
    declared = f'#include <cuda_runtime.h>\n#include "{HEADERS / "torch_cuda.hpp"}"\n'
    for file in _files(extension):
        named = set(_OF_PYTORCH.findall(file.read_text(errors="replace"))) - _OF_DEVICE_ALONE
        texts |= dict.fromkeys(named, declared)
    folder = extension.folder / ("nvcc-short" if extension_header else "nvcc")
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return [folder] if texts else []


def _files(extension: ExtensionSources) -> set[Path]:
    """Sources and what lies next to them."""
    found = set(extension.sources)
    for source in extension.sources:
        found |= {path for path in source.parent.glob("*") if path.suffix in (".cuh", ".h", ".hpp")}
    return found


def _refused(printed: str, extension: ExtensionSources) -> CompiledExtension:
    """`compile_error`, unless it may be for want of a header on this machine."""
    found = next((match for line in printed.splitlines() if (match := _COMPLAINT.match(line))), None)
    if found is None:
        return CompiledExtension(incomplete="nvcc failed and named no error")
    place = _PLACE.match(found[0])
    name = Path(place[1]).name if place else ""
    text = f"{name}:{place[2] or place[3]}: {found[1]}" if place else found[0].strip()
    reason = f"nvcc: {text}"[:_LONGEST]
    of_flags = "option" in text and any(flag in text for flag in extension.flags)
    own = of_flags or text.startswith("ptxas") or name in {each.name for each in _files(extension)}
    if _ABSENT.search(text) or not own or _is_of_pytorch(text):
        return CompiledExtension(incomplete=reason)
    return CompiledExtension(failure=Failure(outcome=Outcome.COMPILE_ERROR, reason=reason))


def _is_of_pytorch(complaint: str) -> bool:
    """Whether a name that is missing is one of PyTorch's headers for devices, which were stood in for."""
    from torch.utils import cpp_extension

    names = [name for found in _UNDECLARED.findall(complaint) for name in found if name]
    parts = ("ATen/cuda", "c10/cuda")
    folders = [Path(folder) / part for folder in cpp_extension.include_paths("cpu") for part in parts]
    words = re.compile(rf"\b({'|'.join(names) or '(?!)'})\b")
    files = (path for folder in folders for path in folder.rglob("*.h*"))
    return any(words.search(path.read_text(errors="replace")) for path in files)


def _facts(cubin: bytes, printed: str) -> dict[str, StaticFacts]:
    needs = kernel_resources(cubin)
    names = _demangled(list(needs))
    return {
        name: StaticFacts(
            registers=need.registers, spills=spills(mangled, printed), shared_memory=own_shared_memory(need)
        )
        for (mangled, need), name in zip(needs.items(), names, strict=True)
    }


def _demangled(names: list[str]) -> list[str]:
    """`softmax<128>` of what the compiler calls a kernel."""
    program = shutil.which("c++filt")
    if program is None or not names:
        return names
    done = subprocess.run([program, *names], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if len(lines) != len(names):
        return names
    return [_without_arguments(line) for line in lines]


def _without_arguments(line: str) -> str:
    """`void rows<float>(float const*, int)` -> `rows<float>`."""
    depth, end = 0, len(line)
    for place in range(len(line) - 1, -1, -1):
        depth += (line[place] == ")") - (line[place] == "(")
        if line[place] == "(" and depth == 0:
            end = place
            break
    return line[:end].removeprefix("void ").strip()
