"""Instruction classes: reading machine code and assembly text."""

import struct

import pytest

from pipeline.backends.machine_code import amdgcn, sass
from pipeline.backends.machine_code.elf import code_sections

SASS = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/                   LDG.E.U16 R4, desc[UR4][R2.64] ;
        /*0030*/             @!UP0 STG.E desc[UR4][R2.64], R4 ;
        /*0040*/                   HGMMA.64x128x16.F32 R24, gdesc[UR8], R24, gsb0 ;
        /*0050*/                   FFMA R0, R1, R2, R3 ;
        /*0060*/                   NOP ;
        /*0070*/                   BRANDNEW.X R0 ;
"""


def test_disassembly_by_class():
    """Predicates and modifiers are seen through, widths kept, padding left out; the unknown is other."""
    assert sass.count_text(SASS) == {
        "fma": 1,
        "load_global_128": 1,
        "load_global_16": 1,
        "matrix": 1,
        "other": 2,
        "store_global_32": 1,
    }


def test_unknown_operation_goes_to_the_disassembler(tmp_path, monkeypatch):
    """Machine code beyond the table is not guessed at."""
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(_elf(struct.pack("<QQ", 0x1FF, 0)))
    monkeypatch.setattr(sass, "disassemble", lambda _: SASS)
    assert sass.instruction_mix(cubin) == sass.count_text(SASS)


def test_every_operation_has_one_class():
    """No operation code stands in two classes."""
    codes = [(code, kind) for kind, names in sass.TABLE.items() for codes in names.values() for code in codes]
    assert len(dict(codes)) == len(set(codes))


def test_machine_code_of_an_elf_file():
    """Only executable sections count; anything else is refused."""
    assert code_sections(_elf(b"\x01" * 16)) == {".text.kernel": b"\x01" * 16}
    with pytest.raises(ValueError, match="not a little-endian 64-bit ELF file"):
        code_sections(b"MZ" + b"\0" * 100)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", "matrix"),
        ("v_fma_f32 v0, v1, v2, v3", "fma"),
        ("v_fmac_f32_e32 v0, v1, v2", "fma"),
        ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]", "fma"),
        ("v_exp_f32_e32 v0, v1", "special"),
        ("v_rsq_f32_e32 v0, v1", "special"),
        ("v_cvt_f16_f32_e32 v0, v1", "convert"),
        ("v_add_f32_e32 v0, v1, v2", "float"),
        ("v_pk_mul_f32 v[0:1], v[2:3], v[4:5]", "float"),
        ("v_max_f32_e32 v0, v1, v2", "float"),
        ("v_add_u32_e32 v0, v1, v2", "integer"),
        ("s_mul_hi_u32 s0, s1, s2", "integer"),
        ("v_mov_b32_e32 v0, v1", "other"),
        ("s_load_dwordx2 s[2:3], s[0:1], 0x0", "load_scalar"),
        ("s_waitcnt vmcnt(0)", "wait"),
        ("global_load_dwordx4 v[0:3], v[4:5], off", "load_global_128"),
        ("buffer_load_dwordx2 v[0:1], v4, s[0:3], 0 offen", "load_global_64"),
        ("global_load_short_d16_hi v0, v[4:5], off", "load_global_16"),
        ("buffer_load_ushort v0, v4, s[0:3], 0 offen", "load_global_16"),
        ("global_store_dword v[4:5], v0, off", "store_global_32"),
        ("buffer_load_dwordx4 v4, s[0:3], 0 offen lds", "async_copy"),
        ("global_load_lds_dwordx4 v[0:1], off", "async_copy"),
        ("ds_read_b128 v[0:3], v4", "load_shared"),
        ("ds_write2st64_b64 v4, v[0:1], v[2:3]", "store_shared"),
        ("ds_bpermute_b32 v0, v1, v2", "shuffle"),
        ("v_add_f32_dpp v0, v1, v2 quad_perm:[1,0,3,2]", "shuffle"),
        ("scratch_store_dword off, v0, s32", "local"),
        ("s_barrier", "barrier"),
        ("s_cbranch_scc1 .LBB0_2", "branch"),
    ],
)
def test_amd_instruction_classes(line, kind):
    """Mnemonics of the CDNA 3 and 4 manuals."""
    assert amdgcn.instruction_mix(f"\t{line}\n") == {kind: 1}


def test_amd_padding_and_directives_do_not_count():
    """Only instructions are counted."""
    assert amdgcn.instruction_mix("\t.text\nkernel:\n\ts_nop 0\n\t; v_fma_f32\n\ts_endpgm\n") == {"branch": 1}


def _elf(code):
    """A minimal ELF file: one executable section, its name table."""
    names = b"\0.text.kernel\0.shstrtab\0"
    start = 64 + len(code) + len(names)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        *(1, 190, 1, 0, 0, start, 0, 64, 0, 0, 64, 3, 2),
    )
    section = struct.Struct("<IIQQQQIIQQ")
    sections = (
        section.pack(*[0] * 10)
        + section.pack(1, 1, 0x4, 0, 64, len(code), 0, 0, 0, 0)
        + section.pack(14, 3, 0, 0, 64 + len(code), len(names), 0, 0, 0, 0)
    )
    return header + code + names + sections
