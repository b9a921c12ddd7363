"""Where a kernel touched memory that is not its own, as NVIDIA's Compute Sanitizer reports it.

In: a file for its log. Out: how a process is started under it, and the first report in a line.

Source: Compute Sanitizer's manual, https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html,
for the options and the form of reports; older versions write `at ADDRESS in FILE:LINE:KERNEL`.
"""

import re
from pathlib import Path

from pipeline.backends.devices.cuda.toolkit import find_tool
from pipeline.backends.devices.device import MemoryChecker

TOOL = "compute-sanitizer"
_OPTIONS = (
    *("--tool", "memcheck", "--print-limit", "1", "--show-backtrace", "no", "--report-api-errors", "no"),
    # A compiler that it starts cannot connect to the tool from its confinement, and would try for ever.
    *("--target-processes", "application-only"),
)
# In one large block of torch's allocator no access is beyond a tensor.
_ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
_PREFIX = "========="
_REPORT = re.compile(
    r"Invalid (?P<access>__\w+__ \S+) of size (?P<size>[\d,]+)(?: bytes)?"
    r" at (?P<where>.+?) by thread (?P<thread>\(\S+\)) in block (?P<block>\(\S+\))"
    r"(?: (?:Address|Access to) \S+ is (?P<problem>[a-z ]+?))?"
    r"(?: and is (?P<relation>[\w, ]+?) the nearest allocation(?: at \S+)?"
    r" of size (?P<allocated>[\d,]+) bytes)?$"
)
_PLACES = (
    re.compile(r"0x[\da-f]+ in (?P<file>\S+):(?P<line>\d+):(?P<kernel>.+)"),
    re.compile(r"0x[\da-f]+ in (?P<kernel>.+)"),
    re.compile(r"(?P<kernel>.+?)\+0x[\da-f]+(?: in (?P<file>\S+):(?P<line>\d+))?"),
)
_SIGNATURE = re.compile(r"(?:void )?(?P<name>(?:\(anonymous namespace\)|<unnamed>|[^(<])+)")
_LONGEST = 100  # characters of a kernel's name: those of templates have no end


def memory_checker(log: Path) -> MemoryChecker | None:
    """The tool, which writes to `log`; None if it is not installed."""
    tool = find_tool(TOOL)
    if tool is None:
        return None
    command = (tool, *_OPTIONS, "--log-file", str(log))
    return MemoryChecker(command=command, environment=_ENVIRONMENT, place=first_report)


def first_report(text: str) -> str | None:
    """`__global__ read of 4 bytes in KERNEL (FILE:LINE), …` of a log; None if it has no such report."""
    lines = [line.removeprefix(_PREFIX).strip() for line in text.splitlines() if line.startswith(_PREFIX)]
    start = next((number for number, line in enumerate(lines) if line.startswith("Invalid __")), None)
    if start is None:
        return None
    ends = ("Saved host backtrace", "Host Frame", "Device Frame", "ERROR SUMMARY", "Invalid __")
    end = next(
        (
            number
            for number, line in enumerate(lines)
            if number > start and (not line or line.startswith(ends))
        ),
        len(lines),
    )
    found = _REPORT.match(" ".join(lines[start:end]))
    return None if found is None else _line(found)


def _line(report: re.Match[str]) -> str:
    """An address without what lies there says nothing to a reader."""
    bounds = (
        report["relation"] and f"{report['relation']} the nearest allocation of {report['allocated']} bytes"
    )
    parts = [f"{report['access']} of {report['size']} bytes in {_place(report['where'])}"]
    parts += [f"thread {report['thread']} of block {report['block']}"]
    problem = bounds or report["problem"]
    return ", ".join(parts) + (f": {problem}" if problem else "")


def _place(where: str) -> str:
    found = next((match for pattern in _PLACES if (match := pattern.fullmatch(where))), None)
    if found is None:
        return where[:_LONGEST]
    name = _SIGNATURE.match(found["kernel"])
    kernel = (found["kernel"] if name is None else name["name"]).strip()[:_LONGEST]
    parts = found.groupdict()
    return f"{kernel} ({Path(parts['file']).name}:{parts['line']})" if parts.get("file") else kernel
