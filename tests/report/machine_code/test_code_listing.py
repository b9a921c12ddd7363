"""Differences of machine code: which instructions are equal, how functions pair up, and real variants."""

import pytest

from pipeline.backends.listings import read_listings
from pipeline.backends.machine_code.listing import Function, Instruction, Listing, SourceLine
from pipeline.report.machine_code.code_listing import (
    difference_lines,
    differences,
    line_counts,
    line_differences,
    normalised,
    shown_lines,
)
from pipeline.report.machine_code.code_views import one, stored


def listing(*names_and_code, file="kernel.cubin"):
    """A listing of (name, texts)."""
    functions = tuple(
        Function(
            name=name,
            instructions=tuple(
                Instruction(mnemonic=text.split()[0], text=text, classes=("other",)) for text in texts
            ),
        )
        for name, texts in names_and_code
    )
    return Listing(file=file, command="x", functions=functions)


@pytest.mark.parametrize(
    ("file", "one_text", "other_text"),
    [
        ("kernel.cubin", "@!P0 IMAD R4, R2.reuse, R3, RZ", "@!P3 IMAD R17, R9, R24.reuse, RZ"),
        ("kernel.cubin", "BRA `(.L_x_2)", "BRA `(.L_x_17)"),
        ("kernel.cubin", "BRA 0x1230", "BRA 0x40"),
        ("kernel.cubin", "LDG.E.128 R4, desc[UR4][R2.64+0x10]", "LDG.E.128 R8, desc[UR6][R10.64+0x10]"),
        ("kernel.amdgcn", "v_fma_f32 v1, v2, v3, v4", "v_fma_f32 v9, v8, v7, v255"),
        (
            "kernel.amdgcn",
            "global_load_dwordx4 v[0:3], v[4:5], off",
            "global_load_dwordx4 v[8:11], v[2:3], off",
        ),
        ("kernel.amdgcn", "s_cbranch_scc1 .LBB0_2", "s_cbranch_scc1 .LBB0_9"),
        ("kernel.so", "vfmadd231ps 0x40(%rax),%zmm1,%zmm2", "vfmadd231ps 0x40(%r9),%zmm31,%zmm12"),
        ("kernel.so", "jne 1190 <scale+0x20>", "jne 11f0 <scale+0x80>"),
        ("kernel.so", "vbroadcastss 0xe57(%rip),%xmm1", "vbroadcastss 0xa07(%rip),%xmm8"),
        ("kernel.so", "mov %eax,%r10d", "mov %r8d,%ecx"),
    ],
)
def test_equal_but_for_registers_and_addresses(file, one_text, other_text):
    """What the allocator, the layout and the scheduler chose does not count."""
    texts = [Instruction(mnemonic="x", text=text, classes=()) for text in (one_text, other_text)]
    assert normalised(texts[0], file) == normalised(texts[1], file)


@pytest.mark.parametrize(
    ("file", "one_text", "other_text"),
    [
        ("kernel.cubin", "LDG.E.128 R4, desc[UR4][R2.64]", "LDG.E.64 R4, desc[UR4][R2.64]"),
        ("kernel.cubin", "LDS R4, [R2+0x10]", "LDS R4, [R2+0x20]"),
        ("kernel.cubin", "IMAD R4, R2, R3, RZ", "IMAD R4, R2, R3, R1"),
        ("kernel.cubin", "@P0 EXIT", "@!P0 EXIT"),
        ("kernel.cubin", "MOV R1, R2", "MOV R1, UR2"),
        ("kernel.amdgcn", "s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(3)"),
        ("kernel.amdgcn", "v_mov_b64 v[0:1], v[2:3]", "v_mov_b64 v[0:3], v[4:7]"),
        ("kernel.amdgcn", "v_add_f32 v0, v1, v2", "v_add_f32 v0, s1, v2"),
        ("kernel.so", "vmovups %ymm0,(%rsp)", "vmovups %ymm0,(%rdi)"),
        ("kernel.so", "vmovups %ymm0,(%rdi)", "vmovups %zmm0,(%rdi)"),
        ("kernel.so", "add $0x40,%rax", "add $0x80,%rax"),
        ("kernel.so", "call 10 <f>", "call 10 <g>"),
    ],
)
def test_different_things(file, one_text, other_text):
    """Widths, immediates, offsets, predication, register files, the stack, who is called."""
    texts = [Instruction(mnemonic="x", text=text, classes=()) for text in (one_text, other_text)]
    assert normalised(texts[0], file) != normalised(texts[1], file)


def test_runs_in_order():
    """Equal runs are of the first; an insertion and a replacement are where they happen."""
    first = listing(("k", ["A R1", "B R1", "C R1"]))
    second = listing(("k", ["A R2", "X R2", "B R2", "D R2"]))
    (found,) = differences([first], [second])
    assert [(run.side, [each.text for each in run.instructions]) for run in found.runs] == [
        ("both", ["A R1"]),
        ("second", ["X R2"]),
        ("both", ["B R1"]),
        ("first", ["C R1"]),
        ("second", ["D R2"]),
    ]
    lines = list(difference_lines(found))
    assert lines[0] == "k: 2 instructions equal, 1 only in the first, 2 only in the second"
    assert [line[0] for line in lines[1:]] == [" ", "+", " ", "-", "+"]


def test_equal_code_is_one_line():
    """Nothing to read where nothing differs."""
    (found,) = differences([listing(("k", ["A R1"]))], [listing(("k", ["A R7"]))])
    assert list(difference_lines(found)) == ["k: equal (1 instructions, apart from registers and addresses)"]


def test_long_equal_runs_are_cut():
    """Context on both sides, the number of what is left out between."""
    same = [f"A{number}" for number in range(20)]
    (found,) = differences([listing(("k", ["X", *same, "X"]))], [listing(("k", [*same, "Y"]))])
    lines = list(difference_lines(found))
    assert "@@ 14 equal instructions @@" in lines
    assert len(lines) == 1 + 1 + 3 + 1 + 3 + 2


def test_functions_pair_by_name_or_being_alone():
    """A renamed kernel is compared; a function that only one side has is shown whole."""
    (renamed,) = differences([listing(("old", ["A"]))], [listing(("new", ["A"]))])
    assert (renamed.first, renamed.second) == ("old", "new")
    found = differences([listing(("f", ["A"]), ("g", ["B"]))], [listing(("f", ["A"]), ("h", ["C", "D"]))])
    assert [(each.first, each.second) for each in found] == [("f", "f"), ("g", None), (None, "h")]
    assert found[2].count("second") == 2


def test_a_variant_equals_itself_and_pipelining_shows(code_root):
    """Real code: no difference to itself; three stages copy asynchronously where one loads."""
    results = stored(code_root)
    one_stage = one(results, ["hardware=h200", "num_stages=1"])
    three = one(results, ["hardware=h200", "num_stages=3"])
    left, right = (
        read_listings(each.compiled, code_root / each.folder("compile")) for each in (one_stage, three)
    )
    (same,) = differences(left, left)
    assert {run.side for run in same.runs} == {"both"}
    (changed,) = differences(left, right)
    added = [each.text for run in changed.runs if run.side == "second" for each in run.instructions]
    removed = [each.text for run in changed.runs if run.side == "first" for each in run.instructions]
    assert any(text.startswith("LDGSTS") for text in added)
    assert any("LDG.E" in text for text in removed)
    assert changed.count("both") + changed.count("first") == len(left[0].instructions)
    assert changed.count("both") + changed.count("second") == len(right[0].instructions)
    lines = "\n".join(line_differences(line_counts(left), line_counts(right)))
    assert "async_copy 0 -> 6" in lines


def test_prominent_lines_are_shown_however_few():
    """A line with one spilled register matters more than its one instruction."""
    instructions = [
        Instruction(mnemonic="x", text="x", classes=(kind,), frames=(SourceLine(file="/k/a.py", line=line),))
        for line, kind in [(1, "integer"), (1, "integer"), (2, "other"), (2, "other"), (3, "local")]
    ]
    counts = line_counts(
        [Listing(file="a", command="b", functions=(Function(name="f", instructions=tuple(instructions)),))]
    )
    assert [(count.source.line, count.instructions) for count in counts] == [(1, 2), (2, 2), (3, 1)]
    assert [count.source.line for count in shown_lines(counts, 1)] == [1, 3]
