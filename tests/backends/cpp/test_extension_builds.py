"""Extensions are compiled with a lighter header first, and with PyTorch's own where that does not do."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.backends.cpp.extension_builds import first_complaint

COMPILER = """#!{python}
import pathlib, sys
with open({log!r}, "a") as log:
    print("lighter" if any("overlay" in each for each in sys.argv) else "own", file=log)
if {fails}:
    sys.exit("main.cpp:20:30: error: expected template-name before '<' token")
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).touch()
"""
BUILD = """
import sys, time
from torch.utils import cpp_extension
from pipeline.backends.cpp.extension_builds import ExtensionBuilds, stand_in_for_builds
builds = ExtensionBuilds(time.perf_counter)
builds.compiler = (sys.argv[1],)
stand_in_for_builds(builds, device=False)
cpp_extension.load(name="own", sources=[sys.argv[2]], is_python_module=False, is_standalone=True,
                   build_directory=sys.argv[3])
"""


@pytest.mark.parametrize(
    ("fails", "asked", "built"),
    [
        ("False", ["lighter", "own"], True),
        ("any('overlay' in each for each in sys.argv)", ["lighter", "own", "own"], True),
        ("'-c' in sys.argv", ["lighter", "own"], False),
    ],
)
def test_whatever_the_lighter_header_lacks(tmp_path: Path, fails: str, asked: list[str], built: bool) -> None:
    """Compilers complain in many ways: the second attempt is always made; what is linked has no headers."""
    log, program, source = tmp_path / "log", tmp_path / "compiler", tmp_path / "own.cpp"
    program.write_text(COMPILER.format(python=sys.executable, log=str(log), fails=fails))
    program.chmod(0o755)
    source.write_text("")
    folder = tmp_path / "build"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(program), str(source), str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert log.read_text().split() == asked
    assert (done.returncode == 0) is built, done.stderr
    assert built or "BuildError: main.cpp:20:30: error" in done.stderr


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (
            "/a/k.cpp: In function 'f':\n/a/k.cpp:3:5: error: expected ';'\n    3 |   return y\n  ^\n",
            "k.cpp:3:5: error: expected ';': return y",
        ),
        (
            "k.cpp:1:10: fatal error: no.h: No such file\ncompilation terminated.\n",
            "k.cpp:1:10: fatal error: no.h: No such file",
        ),
        (
            "/usr/bin/ld: /tmp/a.o: in function `f':\na.cpp:(.text+0x9): undefined reference to `g'\n",
            "a.cpp:(.text+0x9): undefined reference to `g'",
        ),
        ("k.cpp:3:5: warning: unused\nValueError: an error\n", None),
    ],
)
def test_what_was_refused_first(printed: str, expected: str | None) -> None:
    """Without the folder, with the line of the source where the compiler shows it."""
    assert first_complaint(printed) == expected
