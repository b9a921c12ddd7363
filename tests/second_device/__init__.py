"""A second tensor device without a GPU, installed for tests as another package would be: kind `second`.

Its tensors lie in the host's memory, where native code can read and write them, but PyTorch refuses to mix
them with those of the CPU, as it does for a GPU.
"""

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from torch.utils import cpp_extension

from pipeline.backends.devices.device_registry import GROUP

FOLDER = Path(__file__).parent
METADATA = "Metadata-Version: 2.1\nName: second-device\nVersion: 1.0\n"


def install(folder: Path) -> Path:
    """A folder for `sys.path` with the package, which takes half a minute to compile."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    metadata = folder / "second_device-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(METADATA)
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\nsecond = second_device:SecondDevice\n")
    shutil.copy(FOLDER / "second_device.py", folder)
    headers = (*cpp_extension.include_paths(), sysconfig.get_path("include"))
    include = [option for path in headers for option in ("-isystem", path)]
    options = ["-shared", "-fPIC", "-O0", "-std=c++20", "-DTORCH_EXTENSION_NAME=second_device_native"]
    library = folder / "second_device_native.so"
    links = [f"-L{path}" for path in cpp_extension.library_paths()]
    links += ["-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python"]
    command = ["g++", *options, *include, "-o", library, FOLDER / "second_device.cpp", *links]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-3000:]
    return folder
