"""Instruction-set extensions and stack frames, from lines as objdump writes them."""

import pytest

from pipeline.backends.cpp.disassembly import read_lines
from pipeline.backends.cpp.facts import stack_frame
from pipeline.backends.cpp.instruction_extensions import extension


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vfmadd231ps %ymm1,%ymm2,%ymm3", "fma"),
        ("vfmadd231ps %zmm1,%zmm2,%zmm3", "avx512f"),
        ("vfmadd231ps %xmm17,%xmm2,%xmm3", "avx512f"),
        ("vaddps %ymm1,%ymm2,%ymm3", "avx"),
        ("vpaddd %ymm1,%ymm2,%ymm3", "avx2"),
        ("vmovups %ymm1,(%rax){%k1}", "avx512f"),
        ("vdpbf16ps %ymm1,%ymm2,%ymm3", "avx512_bf16"),
        ("vpdpbusd %zmm1,%zmm2,%zmm3", "avx512_vnni"),
        ("vpdpbusd %ymm1,%ymm2,%ymm3", "avx_vnni"),
        ("vcvtph2ps %xmm1,%ymm2", "f16c"),
        ("vaddph %zmm1,%zmm2,%zmm3", "avx512_fp16"),
        ("vmovss (%rdi),%xmm0", "avx"),
        ("addps %xmm1,%xmm2", "sse2"),
        ("tdpbf16ps %tmm0,%tmm1,%tmm2", "amx_tile"),
        ("fmla v1.4s, v0.4s, v2.4s", "asimd"),
        ("ldr q0, [x0, #16]", "asimd"),
        ("fmla z1.s, p0/m, z2.s, z3.s", "sve"),
        ("sdot v0.4s, v1.16b, v2.16b", "asimddp"),
        ("mov %rax,%rbx", None),
        ("jne 1190 <scale>", None),
    ],
)
def test_least_extension(line, expected):
    """As the manuals list them."""
    mnemonic, _, operands = line.partition(" ")
    assert extension(mnemonic, operands) == expected


@pytest.mark.parametrize(
    ("code", "size"),
    [
        (("push   %rbp", "push   %r12", "sub    $0x4480,%rsp"), 16 + 0x4480),
        (("add    $0xffffffffffffff80,%rsp",), 128),
        (("sub    $0x40,%rsp", "sub    $0xffffffffffffff80,%rsp"), 64),  # gives 128 back
        (("stp\tx29, x30, [sp, #-48]!", "sub\tsp, sp, #0x20"), 48 + 0x20),
        (("sub    $0x8,%rax", "add    $0x80,%rsp"), 0),
    ],
)
def test_stack_frame(code, size):
    """What the function pushes and takes; the largest of several functions counts."""
    lines = [f"    {number:x}:\t{line}" for number, line in enumerate(code, 1)]
    text = "\n".join(["0000000000001000 <f>:", *lines, "", "0000000000002000 <g>:", "    2000:\tret"])
    assert stack_frame(read_lines(text, {"f", "g"})) == size
    assert stack_frame(read_lines(text, {"g"})) == 0


def test_a_frame_pointer_is_one_where_it_is_set_up():
    """Elsewhere %rbp is a register like any other, and what it points to is not the stack."""
    text = """
0000000000001000 <framed>:
    1000:	mov    %rsp,%rbp
    1004:	vmovups %ymm0,-0x40(%rbp)
    1008:	vmovups %ymm0,(%rdi)
0000000000002000 <free>:
    2000:	vmovups %ymm0,-0x40(%rbp)
    2004:	vmovups 0x20(%rsp),%ymm0        # a comment
"""
    lines = read_lines(text, {"framed", "free"})
    assert [line.address for line in lines if line.on_stack] == [0x1004, 0x2004]
    assert lines[-1].operands == "0x20(%rsp),%ymm0"
