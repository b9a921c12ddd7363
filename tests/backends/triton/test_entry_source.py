"""Sources and toolchain of the Triton backend: what makes a result outdated."""

import sys

import pytest

from pipeline.backends.registry import backend
from pipeline.backends.triton import toolchain
from pipeline.records.errors import ToolchainError
from tests.backends.triton.triton_jobs import target, written_job


def write(root, files):
    """Files of a small repository."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_local_imports_are_followed(tmp_path):
    """Absolute and relative imports, packages on the way, cycles; nothing that is installed."""
    job = written_job(tmp_path, "import torch\nfrom parts.tile import order\nimport json\n")
    write(
        tmp_path,
        {
            "parts/__init__.py": "",
            "parts/tile.py": "from . import scale\nfrom .deep.swizzle import f\n",
            "parts/scale.py": "import parts.tile\n",
            "parts/deep/__init__.py": "",
            "parts/deep/swizzle.py": "",
            "parts/unused.py": "",
        },
    )
    found = [path.relative_to(tmp_path) for path in backend("triton").sources(job.implementation, tmp_path)]
    assert str(found[0]) == "written.py"
    assert sorted(map(str, found)) == [
        "parts/__init__.py",
        "parts/deep/__init__.py",
        "parts/deep/swizzle.py",
        "parts/scale.py",
        "parts/tile.py",
        "written.py",
    ]


def test_source_that_does_not_parse_is_its_own_only_source(tmp_path):
    """The plan goes on; compile gives the outcome."""
    job = written_job(tmp_path, "def launch(:\n")
    assert backend("triton").sources(job.implementation, tmp_path) == (tmp_path / "written.py",)


@pytest.mark.parametrize(("hardware", "assembler"), [("h200", True), ("mi355x", False)])
def test_toolchain_names_what_decides_the_binary(hardware, assembler):
    """Triton, NVIDIA's assembler where it is used, and the option that we set."""
    found = backend("triton").toolchain(target(hardware))
    assert found["triton"].startswith("3.")
    assert found["fp_fusion"] == "on"
    assert ("ptxas" in found) == assembler


def test_toolchain_without_triton(monkeypatch):
    """One line that says what to do."""
    toolchain.tools.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ToolchainError, match="triton is not installed: pip install triton"):
        backend("triton").toolchain(target("mi300x"))
    toolchain.tools.cache_clear()


def test_backend_itself_imports_neither_torch_nor_triton():
    """The plan asks for toolchain and sources: importing the backend must stay cheap."""
    import subprocess

    code = (
        "import sys\n"
        "from pipeline.backends.registry import backend\n"
        "backend('triton')\n"
        "assert not {'torch', 'triton'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
