"""Listings of machine code: source lines in all three forms, the mix they add up to, and what they lack."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from pipeline.backends.cpp import Cpp
from pipeline.backends.cpp.object_listing import parse_lines, read_shared_object
from pipeline.backends.listings import read_listings
from pipeline.backends.machine_code import amdgcn_listing, sass_listing
from pipeline.backends.machine_code.listing import Instruction, SourceLine
from pipeline.backends.registry import backend
from pipeline.records.errors import StoreError, ToolchainError
from pipeline.records.results.compiled import Compiled, StaticFacts
from tests.backends.cpp.test_cpp import PART, SCALE, job
from tests.backends.triton.triton_jobs import ROOT, declared_job

SASS = """
.text.kernel:
kernel:
\t//## File "/k/a.cu", line 13
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "/lib/b.h", line 55 inlined at "/k/a.cu", line 12
\t//## File "/k/a.cu", line 12
.L_x_0:
        /*0010*/              @!P0 HMMA.16816.F32 R4, R2, R3, RZ ;
        /*0020*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0030*/                   BRA `(.L_x_0);
        /*0040*/                   NOP;
$__internal_0_$trap:
        /*0050*/                   RET.REL.NODEC R2 `(kernel) ;
"""
PTX = """
\t.loc\t1 40 0                          // a.py:40:0
\tmov.u32 %r1, %r2;
\t.loc\t2 43 17                         // standard.py:43:17 @[ a.py:31:25 @[ a.py:46:69 ] ]
\tadd.s32 %r1, %r1, 63;
\t.file\t1 "/k/a.py"
\t.file\t2 "/t/standard.py"
"""
THROUGH_PTX = """
kernel:
\t//## File "/t/standard.py", line 43
\t//## File ".nv_debug_ptx_txt", line 5
        /*0000*/                   VIADD R0, R3, 0x3f ;
\t//## File ".nv_debug_ptx_txt", line 3
        /*0010*/                   VIADD R0, R3, 0x3f ;
"""
AMD = """
\t.text
kernel:                                 ; @kernel
\t.file\t1 "/k" "a.py"
\t.loc\t1 40 0 prologue_end             ; a.py:40:0
\ts_load_dwordx2 s[2:3], s[0:1], 0x0
\t.file\t2 "/t/language" "standard.py"
\t.loc\t2 43 17 is_stmt 1               ; standard.py:43:17 @[ a.py:32:25 @[ a.py:46:69 ] ]
.LBB0_1:                                ; %loop
\tv_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], a[0:15] ; a comment
\ts_nop 0
\t.loc\t1 0 0 is_stmt 0                 ; :0:0
\ts_endpgm
"""


def test_inlined_lines_of_a_cubin():
    """A header's line counts for the line that inlined it; the chain is kept; padding is left out."""
    kernel, trap = sass_listing.parse(SASS)
    first, product, load, branch = kernel.instructions
    assert first.source == SourceLine(file="/k/a.cu", line=13)
    assert [frame.short for frame in load.frames] == ["b.h:55", "a.cu:12"]
    assert load.source.short == "a.cu:12"
    assert (load.address, load.classes) == (0x20, ("load_global_128",))
    assert branch.classes == ("branch",)
    assert trap.name == "$__internal_0_$trap" and len(trap.instructions) == 1
    assert (product.label, product.mnemonic, product.classes) == (".L_x_0", "HMMA.16816.F32", ("matrix",))


def test_callers_from_the_ptx():
    """Triton's cubin names the library's line alone; the PTX says who called it."""
    (function,) = sass_listing.parse(THROUGH_PTX, PTX)
    known, other = function.instructions
    assert [frame.short for frame in known.frames] == ["standard.py:43", "a.py:31", "a.py:46"]
    assert known.source.short == "a.py:31"
    assert [frame.short for frame in other.frames] == ["standard.py:43"]  # the PTX speaks of another line


def test_amd_assembly():
    """Directives give lines, comments their callers, labels their place; line 0 is no line."""
    (function,) = amdgcn_listing.parse(AMD)
    load, product, end = function.instructions
    assert load.source == SourceLine(file="/k/a.py", line=40)
    assert product.source.short == "a.py:32"
    assert product.label == ".LBB0_1"
    assert product.text == "v_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], a[0:15]"
    assert end.source is None and end.classes == ("branch",)


def test_places_of_objdump():
    """What is not said again still holds: the innermost line stays where only its callers change."""
    text = (
        "/u/v.h:5\ninlined by /k/a.cpp:10 (f)\n  10:\tnop\ninlined by /k/a.cpp:11 (f)\n  11:\tnop\n"
        "/k/a.cpp:12 (discriminator 2)\n  12:\tnop\n  13:\tnop\n"
    )
    places = {address: [frame.short for frame in frames] for address, frames in parse_lines(text)}
    assert places == {
        0x10: ["v.h:5", "a.cpp:10"],
        0x11: ["v.h:5", "a.cpp:11"],
        0x12: ["a.cpp:12"],
        0x13: ["a.cpp:12"],
    }


def test_instruction_without_a_line():
    """No frames, no source."""
    assert Instruction(mnemonic="nop", text="nop", classes=()).source is None


@pytest.mark.slow
@pytest.mark.parametrize("hardware", ["a100", "h200", "b200", "mi300x"])
def test_listing_adds_up_to_the_facts(tmp_path, hardware):
    """Every instruction of the mix is in the listing, with a line of the kernel's own source for most."""
    compiled = backend("triton").compile(declared_job("matmul", hardware), ROOT, tmp_path)
    (listing,) = read_listings(compiled, tmp_path)
    counted = Counter(name for each in listing.instructions for name in each.classes)
    assert dict(counted) == compiled.facts.instructions
    assert listing.without_lines is None
    own = [each for each in listing.instructions if each.source and "matmul_triton.py" in each.source.file]
    assert len(own) > 0.9 * len(listing.instructions)
    lines = (ROOT / "kernels/matmul/matmul_triton.py").read_text().splitlines()
    products = [each.source.line for each in listing.instructions if "matrix" in each.classes]
    assert any("tl.dot(" in lines[line - 1] for line in products)


@pytest.fixture
def shared_object(tmp_path):
    """A compiled C++ kernel in its store entry."""
    if shutil.which("objdump") is None:
        pytest.skip("needs binutils")
    root, folder = tmp_path / "root", tmp_path / "entry"
    root.mkdir()
    folder.mkdir()
    (root / "scale.cpp").write_text(SCALE)
    (root / "part.hpp").write_text(PART)
    return Cpp().compile(job(), root, folder), folder


def test_lines_of_a_shared_object(shared_object):
    """The sources are compiled again with a line table; the code is the same, so the lines hold."""
    compiled, folder = shared_object
    before = sorted(folder.rglob("*"))
    (listing,) = read_listings(compiled, folder)
    assert listing.without_lines is None
    counted = Counter(name for each in listing.instructions for name in each.classes)
    assert dict(counted) == compiled.facts.instructions
    lines = {each.source.line for each in listing.instructions if each.source}
    product = SCALE.splitlines().index(next(line for line in SCALE.splitlines() if "part(x[" in line)) + 1
    assert product in lines
    files = {each.source.file for each in listing.instructions if each.source}
    assert files <= {"scale.cpp", "part.hpp"}  # and not where they are kept, which differs between variants
    assert sorted(folder.rglob("*")) == before


def test_other_code_gives_no_lines(shared_object):
    """Sources that give other machine code are not believed."""
    _, folder = shared_object
    (folder / "sources" / "part.hpp").write_text(PART.replace("return value", "return value * 3.0f"))
    listing = read_shared_object(folder)
    assert "the machine code differs" in listing.without_lines
    assert all(not each.frames for each in listing.instructions)


def test_sources_that_are_gone_give_no_lines(shared_object):
    """The code is still there to read."""
    _, folder = shared_object
    shutil.rmtree(folder / "sources")
    listing = read_shared_object(folder)
    assert "could not be compiled again" in listing.without_lines
    assert listing.instructions


def test_no_disassembly_was_kept(shared_object):
    """The text says what to install."""
    _, folder = shared_object
    (folder / "kernel.s").unlink()
    with pytest.raises(ToolchainError, match=r"no kernel\.s; install binutils \(objdump\) and compile again"):
        read_shared_object(folder)


def test_nothing_to_list(shared_object, tmp_path):
    """An entry of another kind of artifact names what it has."""
    import msgspec

    compiled = msgspec.structs.replace(shared_object[0], files=("kernel.py", "log.txt"))
    with pytest.raises(StoreError, match=r"no machine code .* it has kernel\.py, log\.txt"):
        read_listings(compiled, tmp_path)


def test_cubin_without_lines(tmp_path):
    """A cubin from a compiler that was not asked for lines says so."""
    import subprocess

    from pipeline.backends.machine_code.nvidia_tools import tools
    from tests.backends.machine_code.test_resources import ARRAY

    (tmp_path / "a.ptx").write_text(ARRAY)
    subprocess.run(
        [tools() / "ptxas", "-arch=sm_90a", "-o", tmp_path / "a.cubin", tmp_path / "a.ptx"], check=True
    )
    listing = sass_listing.read_cubin(tmp_path / "a.cubin", None)
    assert listing.without_lines == "a.cubin has no line table: it was compiled without -lineinfo"
    assert any("local" in each.classes for each in listing.instructions)


def test_a_binary_that_stayed_on_another_machine_is_named(tmp_path: Path) -> None:
    """An entry of a bundle without binaries: which file, and what to do; no trace of a disassembler."""
    for name in ("kernel.cubin", "kernel.so"):
        compiled = Compiled(
            artifact=name, artifact_digest="0", functions=("f",), files=(name, "log.txt"), facts=StaticFacts()
        )
        with pytest.raises(StoreError, match=rf"has no {name}: a bundle brought it without binaries"):
            read_listings(compiled, tmp_path)
