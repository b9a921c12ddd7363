"""The machine-code report: results over several targets in, Markdown with a command for every number out."""

from collections.abc import Callable, Iterator, Sequence

from pipeline.records.record import Record
from pipeline.records.results import Result
from pipeline.report.machine_code.code_listing import fact_values, heading
from pipeline.report.machine_code.fact_evidence import Evidence, evidence
from pipeline.report.machine_code.source_lines import LineCount, shown_lines
from pipeline.report.machine_code.source_text import SourceTexts

LINES = 6  # source lines shown for each target
DIFFERENCE_LINES = 90  # of a difference; the command shows the rest

_SUMMARY = (
    ("registers", "registers"),
    ("spills", "spills (B)"),
    ("local_memory", "local memory (B)"),
    ("shared_memory", "shared memory (B)"),
    ("barriers", "barriers"),
    ("estimate_occupancy", "occupancy (estimate, share)"),
    ("estimate_occupancy_limiter", "limited by"),
    ("estimate_resident_blocks", "resident blocks (estimate)"),
    ("matrix", "matrix instructions"),
    ("matrix_use", "matrix use"),
    ("code_bytes", "code (B)"),
)
_READING = """\
Numbers are static: how often a loop runs is not in them. A dash is what does not exist or cannot be known on
a target, never zero. Local memory is AMD's scratch, and on the CPU the largest stack frame. Occupancy and
resident blocks are estimates, from registers, shared memory and threads by the rules in
`pipeline/backends/machine_code/occupancy.py` and the limits in `conf/hardware/`; nothing was measured.
`matrix use` compares with the instructions that are meant for the architecture
(`pipeline/backends/machine_code/matrix.py`).

Every other number stands below with the file that holds it and a command that prints it, to be run in the
variant's folder (folders are named after what was compiled with what: after an edit there are others).
Classes of instructions that no single pattern can count are left out there;
`python -m pipeline.cli.machine_code show` gives every instruction with its class.
NVIDIA's tools are those in Triton's wheel:

```sh
PATH="$PATH:$(python -c 'import triton; print(triton.__path__[0])')/backends/nvidia/bin"
```
"""


class Subject(Record, frozen=True, kw_only=True):
    """One variant with what was read of its code."""

    result: Result
    lines: tuple[LineCount, ...]
    without_lines: str | None


class Example(Record, frozen=True, kw_only=True):
    """A difference to show, as `diff` prints it."""

    command: str
    lines: tuple[str, ...]


def report(
    subjects: Sequence[Subject],
    texts: Callable[[Result], SourceTexts],
    *,
    command: str,
    example: Example | None,
) -> Iterator[str]:
    """The whole page; raises ConfigError for a variant of several kernels."""
    evidences = [evidence(subject.result.compiled) for subject in subjects if subject.result.compiled]
    yield f"<!-- {command} -->"
    yield f"# Machine code of {_shared(subjects, 'kernel')} on {_shared(subjects, 'workload')}"
    yield f"\nMade by\n\n```sh\n{command}\n```\n"
    yield _toolchain(subjects)
    yield _READING
    yield from _summary(subjects)
    for subject, found in zip(subjects, evidences, strict=True):
        yield from _target(subject, found, texts(subject.result))
    if example is not None:
        yield from _example(example)


def _shared(subjects: Sequence[Subject], name: str) -> str:
    return ", ".join(dict.fromkeys(str(getattr(subject.result.task, name)) for subject in subjects))


def _toolchain(subjects: Sequence[Subject]) -> str:
    """Versions, each once."""
    versions: dict[str, None] = {}
    for subject in subjects:
        assert subject.result.compile is not None
        toolchain = subject.result.compile.provenance.toolchain
        versions |= dict.fromkeys(
            f"{name} {version}" for name, version in toolchain.items() if "flags" not in name
        )
    return f"Compiled with {', '.join(versions)}.\n"


def _summary(subjects: Sequence[Subject]) -> Iterator[str]:
    yield (
        "| target | architecture | implementation | " + " | ".join(heading for _, heading in _SUMMARY) + " |"
    )
    yield "|---|---|---|" + "---:|" * len(_SUMMARY)
    for subject in subjects:
        values = {name: value for name, value, _ in fact_values(subject.result)}
        cells = [values.get(name, "–") for name, _ in _SUMMARY]
        result = subject.result
        names = f"{result.task.hardware} | {result.architecture} | {result.variant.implementation}"
        yield f"| {names} | {' | '.join(cells)} |"
    yield ""


def _target(subject: Subject, found: Evidence, texts: SourceTexts) -> Iterator[str]:
    result = subject.result
    yield f"## {result.variant.implementation} on {result.task.hardware} ({result.architecture})\n"
    yield f"{heading(result)}."
    yield f"Variant `{result.id}` in `artifacts/{result.folder('compile')}`.\n"
    if found.preparation:
        yield "```sh\n" + "\n".join(found.preparation) + "\n```\n"
    width = max(len(trace.name) for trace in found.traces)
    place = max(len(trace.file) for trace in found.traces)
    yield "```text"
    for trace in found.traces:
        yield f"{trace.name:{width}}  {trace.value:6d}  {trace.file:{place}}  {trace.command}"
    yield "```\n"
    yield from _cpu_facts(result)
    yield from _lines(subject, texts)


def _cpu_facts(result: Result) -> Iterator[str]:
    """What only a CPU's code has; derived from the classes."""
    values = {name: value for name, value, _ in fact_values(result)}
    if "vector_bits" in values:
        yield f"- Widest vectors: {values['vector_bits']} bit."
        yield f"- Fused multiply-adds: {values.get('fma_share', '–')} of the floating-point instructions"
        yield "  (`fma / float_arithmetic`; dot products are apart)."
        yield f"- Extensions, with the instructions that need them: {values.get('vector_extensions', '–')}."
        unused = values["vector_extensions_unused"] or "none"
        yield f"- Vector extensions of the target left unused: {unused}.\n"


def _lines(subject: Subject, texts: SourceTexts) -> Iterator[str]:
    if subject.without_lines:
        yield f"Source lines: {subject.without_lines}.\n"
        return
    total = sum(count.instructions for count in subject.lines)
    yield f"Source lines with the most of its {total} instructions, and those with matrix or local-memory"
    yield "ones (on a CPU: dot products, and vectors on the stack):\n"
    yield "```text"
    for count in shown_lines(subject.lines, LINES):
        classes = ", ".join(f"{name} {number}" for name, number in count.classes.items())
        yield f"{count.instructions:5d}  {count.source.short if count.source else 'no line'}: {classes}"
        text = texts.text(count.source) if count.source else None
        if text:
            yield f"       | {text}"
    yield "```\n"


def _example(example: Example) -> Iterator[str]:
    shown, left = example.lines[:DIFFERENCE_LINES], len(example.lines) - DIFFERENCE_LINES
    yield f"## A difference\n\n```sh\n{example.command}\n```\n\n```diff"
    yield from shown
    yield "```"
    if left > 0:
        yield f"\n{left} more lines: the command above prints them all."
