"""The machine-code report: results over several targets in, Markdown with a command for every number out."""

from collections.abc import Callable, Iterator, Sequence

from pipeline.backends.machine_code import sass
from pipeline.records.errors import ConfigError
from pipeline.records.record import Record
from pipeline.records.results.collection import Result
from pipeline.records.results.compiled import Compiled, StaticFacts
from pipeline.report.machine_code.code_listing import (
    LineCount,
    SourceTexts,
    fact_values,
    heading,
    shown_lines,
)


class FactCommand(Record, frozen=True, kw_only=True):
    """One number, the file that holds it, and what prints it."""

    name: str
    value: int
    file: str
    command: str


class FactEvidence(Record, frozen=True, kw_only=True):
    """All numbers of a variant that one command can show."""

    preparation: tuple[str, ...]
    """Commands to run first: they write the texts that the others read."""
    traces: tuple[FactCommand, ...]


_WIDTHS = {
    "8": r"\.[US]8\b", "16": r"\.[US]?16\b", "64": r"\.64\b", "128": r"\.128\b", "256": r"\.256\b",
}  # fmt: skip
_AMD_WIDTHS = {
    "8": "[us]?byte", "16": "[us]?short", "32": "dword", "64": "dwordx2", "96": "dwordx3", "128": "dwordx4",
}  # fmt: skip
_TELLING = ("async_copy", "matrix", "local")
# Class -> pattern of a line of AMD's assembly; classes that need an order of precedence are left out.
_AMD_CLASSES = {
    "matrix": r"^\tv_s?mfma",
    "special": r"^\tv_(exp|log|rcp|rsq|sqrt|sin|cos)_",
    "load_scalar": r"^\ts_(buffer_)?load_",
    "load_shared": r"^\tds_(read|load)",
    "store_shared": r"^\tds_(write|store)",
    "local": r"^\tscratch_",
    "barrier": r"^\ts_barrier",
    "wait": r"^\ts_wait",
    "branch": r"^\ts_(c?branch|setpc|swappc|call|endpgm)",
}
_CPU_CLASSES = {
    "vector_512": r"%zmm",
    "vector_256": r"^(?!.*%zmm).*%ymm",
    "float_arithmetic": r"\t(v?(add|sub|mul|div|sqrt|min|max)[sp][sdh]\s|vfn?m(add|sub))",
    "fma": r"\tvfn?m(add|sub)",
    "dot": r"\t(vdpbf16|vpdp)",
    "gather": r"\tvp?gather",
    "prefetch": r"\tprefetch",
}
# What the linker adds has no size and is no function of the source.
_CPU_INSTRUCTIONS = (
    "awk '/>:$/ {own = !/<(de)?register_tm_clones>|<__do_global_dtors_aux>|<frame_dummy>/} "
    "own && /^ *[0-9a-f]+:/ {sum += 1} END {print sum}' kernel.s"
)
# Largest sum, over the functions, of what is pushed and what is taken from the stack pointer.
_CPU_FRAME = (
    r"perl -ne '$n = 0 if />:$/; $n += 8 if /\tpush /; $n += hex $1 if /sub +\$(0x\w+),%rsp/; "
    r"$m = $n if $n > $m; END {print $m}' kernel.s"
)


def evidence(compiled: Compiled) -> FactEvidence:
    """Commands for the numbers of one variant.

    Raises
    ------
    ConfigError
        It has several binaries, whose counts the facts add up.
    """
    binaries = [name for name in compiled.files if name.endswith((".cubin", ".hsaco", ".so"))]
    if len(binaries) != 1:
        raise ConfigError(
            f"a report explains one kernel, this variant has {', '.join(binaries) or 'none'}: use show"
        )
    match compiled.artifact.rpartition(".")[2]:
        case "cubin":
            return _nvidia(compiled.facts, compiled.files)
        case "hsaco":
            return _amd(compiled.facts)
    return _cpu(compiled.facts)


def _nvidia(facts: StaticFacts, files: tuple[str, ...]) -> FactEvidence:
    usage, code, log = "kernel.usage", "kernel.sass", "log.txt"
    traces = [
        _number("code_bytes", facts.code_bytes, "kernel.cubin", _last_address(code)),
        _number("registers", facts.registers, "kernel.cubin", f"grep -oP 'REG:\\K\\d+' {usage}"),
        _number("local_memory", facts.local_memory, "kernel.cubin", f"grep -oP 'STACK:\\K\\d+' {usage}"),
        _number("spills", facts.spills, log, f"grep -oP '\\d+(?= bytes spill stores)' {log}"),
        _number("barriers", facts.barriers, log, f"grep -oP 'used \\K\\d+(?= barriers)' {log}"),
    ]
    if "kernel.json" in files:  # Triton's description of a launch
        traces += [
            _number("shared_memory", facts.shared_memory, *_in("kernel.json", r'"shared": \K\d+')),
            _number("threads_per_block", facts.threads_per_block, *_in("kernel.ptx", r"^\.reqntid \K\d+")),
        ]
    total = sum(facts.instructions.values())
    traces.append(_number("instructions", total, "kernel.cubin", _count(r"^\s+/\*\w{4,}\*/(?!\s+NOP)", code)))
    for name, count in facts.matrix.items():
        traces.append(_number(name, count, "kernel.cubin", _count(rf"\b{name}\b", code)))
    for name, pattern in _sass_patterns(facts):
        traces.append(_number(name, facts.instructions.get(name, 0), "kernel.cubin", _count(pattern, code)))
    return FactEvidence(
        preparation=(
            f"nvdisasm -ndf -c kernel.cubin > {code}",
            f"cuobjdump --dump-resource-usage kernel.cubin > {usage}",
        ),
        traces=tuple(each for each in traces if each is not None),
    )


def _sass_patterns(facts: StaticFacts) -> Iterator[tuple[str, str]]:
    """Every class that is there, and those whose absence says something."""
    for name in dict.fromkeys((*facts.instructions, *_TELLING)):
        base, _, width = name.rpartition("_")
        if base in ("load_global", "store_global"):
            (mnemonic,) = sass.TABLE[base]
            narrow = rf"\b{mnemonic}(?!\S*(\.[US]?(8|16|64|128|256)\b))"
            yield name, rf"\b{mnemonic}\S*{_WIDTHS[width]}" if width in _WIDTHS else narrow
        else:
            yield name, rf"\*/\s+(@\S+ )?({'|'.join(sass.TABLE[name])})\b"


def _amd(facts: StaticFacts) -> FactEvidence:
    text = "kernel.amdgcn"
    spilled = f"echo $((4 * $({_field('vgpr_spill_count')})))"
    traces = [
        _number("code_bytes", facts.code_bytes, "kernel.hsaco", f"grep -oP 'codeLenInByte = \\K\\d+' {text}"),
        _number("registers", facts.registers, "kernel.hsaco", _field("vgpr_count")),
        _number("scalar_registers", facts.scalar_registers, "kernel.hsaco", _field("sgpr_count")),
        _number("spills", facts.spills, "kernel.hsaco", spilled),
        _number("local_memory", facts.local_memory, "kernel.hsaco", _field("private_segment_fixed_size")),
        _number("shared_memory", facts.shared_memory, *_in("kernel.json", r'"shared": \K\d+')),
        _number(
            "threads_per_block", facts.threads_per_block, "kernel.hsaco", _field("max_flat_workgroup_size")
        ),
        _number(
            "instructions",
            sum(facts.instructions.values()),
            text,
            _count(r"^\t(?!s_nop|s_code_end)[a-z]\w+", text),
        ),
    ]
    for name, count in facts.matrix.items():
        traces.append(_number(name, count, text, _count(rf"^\t{name}\b", text)))
    for name in dict.fromkeys((*facts.instructions, *_AMD_CLASSES)):
        count = facts.instructions.get(name, 0)
        kind, _, width = name.rpartition("_global_")
        if kind in ("load", "store") and width in _AMD_WIDTHS:
            pattern = rf"^\t(global|buffer|flat)_{kind}_{_AMD_WIDTHS[width]}(_d16\w*)?\b(?!.*\blds\b)"
            traces.append(_number(name, count, text, _count(pattern, text)))
        elif name in _AMD_CLASSES:
            traces.append(_number(name, count, text, _count(_AMD_CLASSES[name], text)))
    return FactEvidence(preparation=(), traces=tuple(each for each in traces if each is not None))


def _cpu(facts: StaticFacts) -> FactEvidence:
    size = "nm -S -t d --defined-only kernel.so | awk 'NF == 4 && $3 ~ /[tTwW]/ {sum += $2} END {print sum}'"
    traces = [
        _number("code_bytes", facts.code_bytes, "kernel.so", size),
        _number("local_memory", facts.local_memory, "kernel.so", _CPU_FRAME),
        _number("instructions", facts.instructions.get("all"), "kernel.so", _CPU_INSTRUCTIONS),
        *(
            _number(name, facts.instructions[name], "kernel.so", _count(pattern, "kernel.s"))
            for name, pattern in _CPU_CLASSES.items()
            if name in facts.instructions
        ),
    ]
    return FactEvidence(
        preparation=("objdump -d --no-show-raw-insn --section=.text kernel.so > kernel.s",),
        traces=tuple(each for each in traces if each is not None),
    )


def _number(name: str, value: int | None, file: str, command: str) -> FactCommand | None:
    """A fact that is absent has no trace."""
    return None if value is None else FactCommand(name=name, value=value, file=file, command=command)


def _in(file: str, pattern: str) -> tuple[str, str]:
    return file, f"grep -oP '{pattern}' {file}"


def _field(name: str) -> str:
    """A field of the metadata, as the assembly next to the code object states it."""
    return f"grep -oP '^ +\\.{name}: +\\K\\d+' kernel.amdgcn"


def _count(pattern: str, file: str) -> str:
    return f"grep -cP '{pattern}' {file}"


def _last_address(file: str) -> str:
    """The last instruction begins 16 bytes before the end."""
    return f"echo $((0x$(grep -oP '^\\s+/\\*\\K\\w{{4,}}(?=\\*/)' {file} | tail -n 1) + 16))"


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
Numbers are static: they do not depend on how often a loop runs. A dash means that a number does not exist or
is unknown on a target; it never means zero. Local memory is AMD's scratch, and on the CPU the largest stack
frame. Occupancy and resident blocks are estimates, computed from registers, shared memory and threads by the
rules in `pipeline/backends/machine_code/warp_occupancy.py` and the limits in `conf/hardware/`; nothing was
measured. `matrix use` compares with the instructions that are meant for the architecture
(`pipeline/backends/machine_code/matrix_instructions.py`).

Every other number below is listed with the file that contains it and a command that prints it. Run the
command in the variant's folder (an edit of the source leads to another folder). Instruction classes that no
single pattern can count are omitted; `kernelmill code show` prints every instruction
with its class. The NVIDIA tools are those in Triton's wheel:

```sh
PATH="$PATH:$(python -c 'import triton; print(triton.__path__[0])')/backends/nvidia/bin"
```
"""


class ReportedKernel(Record, frozen=True, kw_only=True):
    """One variant with what was read of its code."""

    result: Result
    lines: tuple[LineCount, ...]
    without_lines: str | None


class CodeExample(Record, frozen=True, kw_only=True):
    """A difference to show, as `diff` prints it."""

    command: str
    lines: tuple[str, ...]


def report(
    subjects: Sequence[ReportedKernel],
    texts: Callable[[Result], SourceTexts],
    *,
    command: str,
    example: CodeExample | None,
) -> Iterator[str]:
    """The whole page; raises ConfigError for a variant of several kernels."""
    evidences = [evidence(subject.result.compiled) for subject in subjects if subject.result.compiled]
    yield f"<!-- {command} -->"
    yield f"# Machine code of {_shared(subjects, 'kernel')} on {_shared(subjects, 'workload')}"
    yield f"\nGenerated by\n\n```sh\n{command}\n```\n"
    yield _toolchain(subjects)
    yield _READING
    yield from _summary(subjects)
    for subject, found in zip(subjects, evidences, strict=True):
        yield from _target(subject, found, texts(subject.result))
    if example is not None:
        yield from _example(example)


def _shared(subjects: Sequence[ReportedKernel], name: str) -> str:
    return ", ".join(dict.fromkeys(str(getattr(subject.result.task, name)) for subject in subjects))


def _toolchain(subjects: Sequence[ReportedKernel]) -> str:
    """Versions, each once."""
    versions: dict[str, None] = {}
    for subject in subjects:
        assert subject.result.compile is not None
        toolchain = subject.result.compile.provenance.toolchain
        versions |= dict.fromkeys(
            f"{name} {version}" for name, version in toolchain.items() if "flags" not in name
        )
    return f"Compiled with {', '.join(versions)}.\n"


def _summary(subjects: Sequence[ReportedKernel]) -> Iterator[str]:
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


def _target(subject: ReportedKernel, found: FactEvidence, texts: SourceTexts) -> Iterator[str]:
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


def _lines(subject: ReportedKernel, texts: SourceTexts) -> Iterator[str]:
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


def _example(example: CodeExample) -> Iterator[str]:
    shown, left = example.lines[:DIFFERENCE_LINES], len(example.lines) - DIFFERENCE_LINES
    yield f"## A difference\n\n```sh\n{example.command}\n```\n\n```diff"
    yield from shown
    yield "```"
    if left > 0:
        yield f"\n{left} more lines: the command above prints them all."
