"""Builds a stand-in for NVIDIA's driver, with which the real host libraries run on a machine without a GPU.

torch's own runtime needs private tables of the driver: `torch.cuda` finds no device.
"""

import re
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("driver.c")
NAME = "libcuda.so.1"
LOOKUPS = {"cuGetProcAddress", "cuGetProcAddress_v2"}
LOOKUP = """
Result cuGetProcAddress_v2(const char* name, void** found, int version, uint64_t flags, int* status) {
  (void)version, (void)flags;
  *found = strcmp(name, "cuGetProcAddress") == 0 ? (void*)cuGetProcAddress_v2 : NULL;
  for (unsigned i = 0; i < sizeof entries / sizeof *entries; ++i)
    if (strcmp(entries[i].name, name) == 0) *found = entries[i].address;
  if (status) *status = *found == NULL;
  return *found ? 0 : NOT_FOUND;
}
Result cuGetProcAddress(const char* name, void** found, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, found, version, flags, NULL);
}
"""


def build(folder: Path) -> Path:
    """`libcuda.so.1` in this folder, for LD_LIBRARY_PATH."""
    bindings = pytest.importorskip("cuda.bindings.driver", reason="needs cuda-bindings")
    written = SOURCE.read_text()
    own = set(re.findall(r"^Result (cu[A-Z]\w+)\(", written, re.MULTILINE))
    others = sorted({name for name in dir(bindings) if re.match(r"cu[A-Z]", name)} - own - LOOKUPS)
    stubs = [f'Result {name}(void) {{ return called("{name}"); }}' for name in others]
    rows = ",".join(f'{{"{name}", (void*){name}}}' for name in sorted({*others, *own}))
    table = f"static const struct {{const char* name; void* address;}} entries[] = {{{rows}}};"
    source = folder / "driver.c"
    source.write_text("\n".join([written, *stubs, table, LOOKUP]))
    library = folder / NAME
    command = ["gcc", "-shared", "-fPIC", "-w", "-o", library, source, f"-Wl,-soname,{NAME}", "-lpthread"]
    subprocess.run(command, check=True, capture_output=True)
    return library
