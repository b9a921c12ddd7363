"""The system's C++ compiler and disassembler: finds them, reads their versions, and runs them."""

import functools
import importlib.util
import os
import platform
import re
import select
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.records import environment
from pipeline.records.errors import ToolchainError
from pipeline.records.outcome import Failure, Outcome

CANDIDATES = ("g++", "c++", "clang++")

# Contraction to fused multiply-adds is GCC's default and not Clang's; errno and traps of floating-point
# operations are not observed here. Nothing that changes results (-ffast-math) is on: NaN must propagate.
FLAGS = (
    "-std=c++17", "-O3", "-fopenmp", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
    "-fPIC", "-shared", "-Wl,-z,defs", "-Wno-psabi", "-fmax-errors=20", "-fdiagnostics-color=never",
)  # fmt: skip

_LINKING = ("-shared", "-Wl,-z,defs")  # of these flags

_TORCH_INCLUDE = re.compile(r"^\s*#\s*include\s*<torch/csrc/inductor/", re.MULTILINE)
# The flags of torch/_inductor/cpp_builder.py that decide what code computes.
_TORCH_FLAGS = ("-std=c++20", "-DNDEBUG", "-ffp-contract=off", "-fno-tree-loop-vectorize")

_MARK = re.compile(r'# (\d+) "([^"]*)"')  # says where the lines after it come from
_NOT_OWN = ("/usr/", "/opt/", "/lib")
# Binutils up to 2.40 take a header's line for one of the file that includes it in GCC's tables of version 5.
LINE_TABLE = ("-gdwarf-4", "-g1")
_COMPILED = (".cpp", ".cc", ".cxx", ".c", ".cu")  # the other files are headers
_LOG_BYTES = 1 << 20  # of a log that is searched for the reason
_REASONS = (
    (Outcome.OUT_OF_MEMORY, re.compile(r"virtual memory exhausted|out of memory|std::bad_alloc")),
    (Outcome.COMPILE_ERROR, re.compile(r"\berror: |undefined reference|cannot find")),
)


@functools.cache
def find() -> tuple[str, ...]:
    """The compiler's command: $CXX (which may carry arguments) or the first candidate on the PATH.

    Raises
    ------
    ToolchainError
        There is none; the text says what to install.
    """
    preferred = environment.compiler()
    if preferred is not None:
        command = shlex.split(preferred)
        path = shutil.which(command[0])
        if path is None:
            raise ToolchainError(f"CXX={preferred}: no such program on the PATH; correct it or unset CXX")
        return (path, *command[1:])
    for name in CANDIDATES:
        path = shutil.which(name)
        if path is not None:
            return (path,)
    raise ToolchainError(
        f"no C++ compiler: none of {', '.join(CANDIDATES)} is on the PATH; install one "
        "(Debian: apt-get install g++) or name it in CXX"
    )


@functools.cache
def toolchain() -> dict[str, str]:
    """What decides the artifact and the facts read from it."""
    versions = {"c++": _version([*find()]), "c++ flags": shlex.join([*find()[1:], *_flags()])}
    objdump = shutil.which("objdump")
    return versions if objdump is None else versions | {"objdump": _version([objdump])}


def preprocessed_lines(macros: Iterable[str], source: str, root: Path) -> set[tuple[str, int]]:
    """(file, line) of all lines that the preprocessor keeps; files are named from `root`, as `source` is."""
    command = [find()[0], *shlex.split(toolchain()["c++ flags"]), "-E", *macros, source]
    result = subprocess.run(
        command, cwd=root, env=environment.untranslated(), capture_output=True, text=True, check=False
    )
    found: set[tuple[str, int]] = set()
    file, line = "", 0
    for each in result.stdout.splitlines():
        mark = _MARK.match(each)
        if mark:
            line, path = int(mark[1]), (root / mark[2]).resolve()
            file = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
            continue
        if file and each.strip():
            found.add((file, line))
        line += 1
    return found


def run(
    arguments: list[str], *, folder: Path, log: Path, seconds: float, header: Path | None = None
) -> Failure | None:
    """Compile in `folder`; the command and all that the compiler says go to `log`. None: it worked.

    `header` is read first. It says what the source says itself, so the command in the log has it not.
    """
    command = [*find(), *_flags(), *arguments]
    ahead = [] if header is None else ["-include", str(header)]
    return _run([*command, *ahead], shlex.join(command), folder=folder, log=log, seconds=seconds)


def precompile(header: Path, compiled: Path, *, log: Path, seconds: float) -> bool:
    """Compile a header with the flags of `run`, for GCC to read in place of its text; whether that worked."""
    flags = [flag for flag in _flags() if flag not in _LINKING]
    command = [*find(), *flags, "-x", "c++-header", "-o", str(compiled), str(header)]
    return _run(command, shlex.join(command), folder=header.parent, log=log, seconds=seconds) is None


def _run(command: list[str], shown: str, *, folder: Path, log: Path, seconds: float) -> Failure | None:
    with log.open("w") as stream:
        stream.write(f"{shown}\n")
        stream.flush()
        with subprocess.Popen(
            command,
            cwd=folder,
            env=environment.untranslated(),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            process_group=0,
        ) as process:
            if not _ends(process, seconds):
                # The group: the driver's own children do the work and would go on.
                os.killpg(process.pid, signal.SIGKILL)
                reason = f"the compiler did not finish in {seconds:g} s"
                return Failure(outcome=Outcome.TIMEOUT, reason=reason, log=log.name)
            code = process.wait()
    return None if code == 0 else _failure(log, code)


def _ends(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Whether it ends in time. `wait` with a limit looks every 50 ms, a tenth of what a compile takes."""
    descriptor = os.pidfd_open(process.pid)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(1000 * seconds))
    finally:
        os.close(descriptor)


def disassemble(artifact: Path) -> str | None:
    """Text of the machine code; None where binutils is not here."""
    objdump = shutil.which("objdump")
    if objdump is None:
        return None
    command = [objdump, "-d", "--no-show-raw-insn", "--section=.text", artifact.name]
    result = subprocess.run(command, cwd=artifact.parent, capture_output=True, text=True, check=False)
    if result.returncode < 0:  # killed: facts must not be missing for that
        result = subprocess.run(command, cwd=artifact.parent, capture_output=True, text=True, check=False)
    return result.stdout if result.returncode == 0 else None


def _flags() -> tuple[str, ...]:
    """Clang knows -march=native on x86 only."""
    clang_on_arm = "clang" in Path(find()[0]).name and platform.machine() != "x86_64"
    return (*FLAGS, "-mcpu=native" if clang_on_arm else "-march=native")


def _version(command: list[str]) -> str:
    result = subprocess.run(
        [command[0], "--version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    lines = result.stdout.splitlines()
    if result.returncode != 0 or not lines:
        raise ToolchainError(
            f"{command[0]} --version failed: {result.stderr.strip() or 'it printed nothing'}"
        )
    return lines[0]


def _failure(log: Path, code: int) -> Failure:
    with log.open(errors="replace") as stream:
        lines = stream.read(_LOG_BYTES).splitlines()[1:]
    for outcome, pattern in _REASONS:
        for line in lines:
            if pattern.search(line):
                return Failure(outcome=outcome, reason=line.strip(), log=log.name)
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    reason = f"the compiler ended with code {code}: {last}"
    return Failure(outcome=Outcome.COMPILE_ERROR, reason=reason, log=log.name)


def torch_arguments(source: str) -> tuple[str, ...]:
    """Arguments for a source that PyTorch generated, which includes a header of PyTorch; none for any other.

    The header brings vectors (`at::vec`), whose exponentials are in libtorch_cpu.

    Raises
    ------
    ToolchainError
        PyTorch is not installed with its headers.
    """
    if not _TORCH_INCLUDE.search(source):
        return ()
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise ToolchainError("a source includes PyTorch's headers: python -m pip install torch")
    folder = Path(found.origin).parent
    includes = (folder / "include", folder / "include/torch/csrc/api/include")
    return (
        *_TORCH_FLAGS,
        *(f"-I{include}" for include in includes),
        *(f"-L{folder / 'lib'}", "-Wl,--as-needed", "-ltorch_cpu", "-lc10"),
    )


def run_tool(
    command: Sequence[str | Path], folder: Path, seconds: float
) -> "subprocess.CompletedProcess[str]":
    """Run a program of the toolchain in `folder`, with what it prints.

    Raises
    ------
    OSError
        It cannot be started.
    subprocess.TimeoutExpired
        It did not finish in these seconds.
    """
    return subprocess.run(
        command,
        cwd=folder,
        env=environment.untranslated(),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


class SourcePlace(NamedTuple):
    """Where in its sources an address of a library lies, or one of its callers."""

    code: int
    """The address."""
    text: str
    """`softmax.cpp:148`, or `softmax.cpp:148, in vector.hpp:62` if a header's function was called there."""


def source_line(library: Path, code: int) -> str:
    """`softmax.cpp:148`: the innermost line of the kernel's own source; empty without binutils."""
    place = source_place(library, [code])
    return "" if place is None else place.text


def source_place(library: Path, codes: Sequence[int]) -> SourcePlace | None:
    """The innermost line of the kernel's own source, of a call stack with its innermost address first.

    None without binutils, or if the library has no line for any of them.
    """
    tool = shutil.which("addr2line")
    if tool is None:
        return None
    command = [tool, "-a", "-i", "-e", str(library), *map(hex, codes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    places = list(_places(done.stdout, codes))
    own = [each for each in places if not os.path.normpath(each.text).startswith(_NOT_OWN)] or places
    if not own:
        return None
    # Shared headers lie outside the kernel's folder, which is that of the outermost file that is compiled.
    compiled = [each for each in own if _file(each).suffix in _COMPILED] or own
    home = _file(compiled[-1]).parent
    innermost = own[0]
    found = next(each for each in own if _file(each).is_relative_to(home))
    text = Path(found.text).name
    return SourcePlace(found.code, text if found is innermost else f"{text}, in {Path(innermost.text).name}")


def _places(text: str, codes: Sequence[int]) -> Iterator[SourcePlace]:
    """Of what `addr2line -a -i` prints: for each address a line with it, then `file:line` outwards."""
    number = -1
    for line in text.splitlines():
        if line.startswith("0x"):
            number += 1
        elif not line.startswith("?"):
            yield SourcePlace(codes[number], line.partition(" (")[0])


def _file(place: SourcePlace) -> Path:
    return Path(os.path.normpath(place.text.rpartition(":")[0]))
