"""Resources read from the binaries: cubins against cuobjdump, code objects against their assembly."""

import re
import struct
import subprocess

import pytest

from pipeline.backends.machine_code.amd_code_object import kernel_metadata
from pipeline.backends.machine_code.cubin_resources import kernel_resources
from pipeline.backends.machine_code.nvidia_tools import tools
from pipeline.backends.registry import backend
from tests.backends.triton.triton_jobs import ROOT, declared_job, written_job

ARRAY = """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry indexed(.param .u64 out, .param .u32 place) {
  .reg .b32 %r<8>; .reg .b64 %rd<8>;
  .local .align 4 .b8 array[4096];
  .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [place];
  mov.u64 %rd2, array;
  mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3;
  mov.u32 %r2, %tid.x; st.local.u32 [array+8], %r2; st.local.u32 [array+12], %r1;
  mov.u32 %r7, tile; st.shared.u32 [%r7], %r2;
  bar.sync 0; bar.sync 3;
  ld.local.u32 %r3, [%rd4]; ld.shared.u32 %r4, [tile+4]; add.u32 %r5, %r3, %r4;
  st.global.u32 [%rd1], %r5; ret;
}
"""


RENAMED = """
import triton
import triton.language as tl


@triton.jit(repr=lambda _: "called_otherwise")
def copy(x, y, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.load(x + place))


def launch(x, y):
    copy[(x.numel() // 256,)](x, y, BLOCK=256)
"""


@pytest.fixture(scope="module")
def array_cubin(tmp_path_factory):
    """A kernel with an array in local memory and nothing spilled, static shared memory, two barriers."""
    folder = tmp_path_factory.mktemp("array")
    (folder / "array.ptx").write_text(ARRAY)
    command = [tools() / "ptxas", "-v", "-arch=sm_90a", "-o", folder / "a.cubin", folder / "array.ptx"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return folder / "a.cubin", printed


def test_local_array_is_not_a_spill(array_cubin):
    """The frame is in the cubin; that none of it is spilled, only ptxas says: the two are told apart."""
    cubin, printed = array_cubin
    found = kernel_resources(cubin.read_bytes())["indexed"]
    assert found.stack_frame == 4096
    assert "4096 bytes stack frame, 0 bytes spill stores" in printed
    assert found.barriers == int(re.search(r"used (\d+) barriers", printed)[1]) == 4
    usage = subprocess.run(
        [tools() / "cuobjdump", "-res-usage", cubin], check=True, capture_output=True, text=True
    ).stdout
    assert f"REG:{found.registers} STACK:4096 SHARED:{found.static_shared} " in usage


@pytest.mark.parametrize("hardware", ["a100", "rtx4090", "h200", "b200"])
def test_cubins_of_every_architecture(tmp_path, hardware):
    """Registers, frame and barriers are those that ptxas printed, in the old and the new format of cubins."""
    result = backend("triton").compile(declared_job("matmul", hardware), ROOT, tmp_path)
    found = kernel_resources((tmp_path / "kernel.cubin").read_bytes())["matmul"]
    printed = (tmp_path / "log.txt").read_text()
    assert f"Used {found.registers} registers, used {found.barriers} barriers" in printed
    assert f"{found.stack_frame} bytes stack frame" in printed
    facts = result.facts
    assert (facts.registers, facts.barriers) == (found.registers, found.barriers)
    assert (facts.local_memory, facts.spills) == (0, 0)
    assert facts.resident_blocks * facts.threads_per_block <= 2048


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hardware", "tiles"),
    [("mi300x", {}), ("mi355x", {}), ("mi300x", {"BLOCK_M": 128, "BLOCK_N": 256, "num_warps": 4})],
)
def test_code_object_agrees_with_its_assembly(tmp_path, hardware, tiles):
    """Every field of the note is the one that the assembly text states."""
    backend("triton").compile(declared_job("matmul", hardware, "float32", **tiles), ROOT, tmp_path)
    found = kernel_metadata((tmp_path / "kernel.hsaco").read_bytes())["matmul"]
    text = (tmp_path / "kernel.amdgcn").read_text()
    stated = {name: int(value) for name, value in re.findall(r"^\s+\.(\w+):\s+(\d+)$", text, re.MULTILINE)}
    assert found.registers == stated["vgpr_count"]
    assert found.scalar_registers == stated["sgpr_count"]
    assert found.spilled_registers == stated["vgpr_spill_count"]
    assert found.private_memory == stated["private_segment_fixed_size"]
    assert found.group_memory == stated["group_segment_fixed_size"]
    assert f"; codeLenInByte = {found.code_bytes}\n" in text


@pytest.mark.slow
def test_spilled_registers_of_amd(tmp_path):
    """A tile beyond all registers: what is spilled, the scratch that it takes, and the traffic to it."""
    tile = {"BLOCK_M": 256, "BLOCK_N": 512, "BLOCK_K": 16}
    facts = backend("triton").compile(declared_job("matmul", "mi300x", **tile), ROOT, tmp_path).facts
    text = (tmp_path / "kernel.amdgcn").read_text()
    spilled = int(re.search(r"\.vgpr_spill_count: +(\d+)", text)[1])
    assert facts.spills == 4 * spilled > 0
    assert facts.local_memory == int(re.search(r"; ScratchSize: (\d+)", text)[1]) > 0
    assert (
        facts.instructions["local"] == len(re.findall(r"^\tscratch_(?:load|store)", text, re.MULTILINE)) > 0
    )


@pytest.mark.parametrize("hardware", ["h200", "mi300x"])
def test_kernel_with_a_name_of_its_own(tmp_path, hardware):
    """The binary calls it as its `repr` says, not as its function is called."""
    facts = backend("triton").compile(written_job(tmp_path, RENAMED, on=hardware), tmp_path, tmp_path).facts
    assert facts.registers > 0 and facts.local_memory == 0


def test_no_code_object():
    """An ELF file without AMD's note, and a file that is no ELF file, are refused in words."""
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 1, 224, 1, 0, 0, 64, 0, 64, 0, 0, 64, 1, 0
    )
    empty = header + struct.pack("<IIQQQQIIQQ", *(0,) * 10) + b"\0"
    with pytest.raises(ValueError, match="no note NT_AMDGPU_METADATA: not a code object of AMD's"):
        kernel_metadata(empty)
    with pytest.raises(ValueError, match="not a little-endian 64-bit ELF file"):
        kernel_resources(b"PK")
