"""System headers compiled ahead: what a source begins with, and that the artifact is the same with them."""

import re
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.cpp import Cpp, compiler, precompiled_headers
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import Compiled
from tests.backends.cpp.test_cpp import job
from tests.paths import ROOT

KERNELS = sorted(ROOT.glob("kernels/*/*.cpp"))
SOURCE = """
#include <cmath>
extern "C" int scale(const float* x, float* y, long rows, long cols, long stride_x, double factor) {
    for (long i = 0; i < rows * cols; ++i) y[i] = std::exp(x[i]) + SHIFT;
    return 0;
}
"""
needs_gcc = pytest.mark.skipif(
    not re.search(r"g\+\+|gcc", compiler.toolchain()["c++"], re.IGNORECASE), reason="needs GCC"
)


def test_what_a_source_begins_with(tmp_path: Path):
    """Includes in quotes are followed, comments left out; it ends with the first line of another kind."""
    (tmp_path / "first.hpp").write_text('#pragma once\n#include <cstddef>\n#include "second.hpp"\n')
    (tmp_path / "second.hpp").write_text(
        "#if defined(__x86_64__)\n#  include <immintrin.h>  // wide\n#endif\n"
    )
    source = tmp_path / "source.cpp"
    source.write_text(
        '// A story.\n/* Of several\n   lines. */\n#include "first.hpp"\n#include "first.hpp"\n\n'
        "#include <cmath>\nint first;\n#include <vector>\n"
    )
    assert precompiled_headers.beginning(source).splitlines() == [
        "#include <cstddef>",
        "#if defined(__x86_64__)",
        "#  include <immintrin.h>",
        "#endif",
        "#include <cmath>",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int first;\n#include <cmath>\n", ""),
        ("#define NDEBUG\n#include <cassert>\n", ""),
        ('#pragma GCC optimize("O1")\n#include <cmath>\n', ""),
        ("#ifndef GUARD\n#define GUARD\n#include <cmath>\n#endif\n", ""),
        ("#include <cmath>\n#if 1\n#include <vector>\nint first;\n#endif\n", "#include <cmath>\n"),
        ("#if 1\n#endif\nint first;\n", ""),
        ('#include "absent.hpp"\n#include <cmath>\n', ""),
        ("#if 1 && \\\n 1\n#include <cmath>\n#endif\n", ""),
    ],
    ids=["code", "macro", "pragma", "guard", "open condition", "no header", "absent file", "long line"],
)
def test_where_the_beginning_ends(tmp_path: Path, text: str, expected: str):
    """Nothing comes before anything that it could have depended on."""
    source = tmp_path / "source.cpp"
    source.write_text(text)
    assert precompiled_headers.beginning(source) == expected


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one kernel, and a folder to be shared."""
    (tmp_path / "scale.cpp").write_text(SOURCE)
    return tmp_path


def compiled(root: Path, name: str, shared: Path | None = None, **changes: object) -> Compiled | Failure:
    """The kernel, compiled into a folder of this name."""
    one = msgspec.structs.replace(job(**changes), shared=None if shared is None else str(shared))
    (root / name).mkdir()
    Cpp().share(one, root)
    return Cpp().compile(one, root, root / name)


@needs_gcc
def test_compiled_ahead_once(root: Path, monkeypatch: pytest.MonkeyPatch):
    """The first of a round compiles the headers, the others read them; log and artifact say nothing of it."""
    asked = []
    real = compiler.precompile

    def counted(header: Path, made: Path, *, log: Path, seconds: float) -> bool:
        asked.append(header)
        return real(header, made, log=log, seconds=seconds)

    monkeypatch.setattr(compiler, "precompile", counted)
    found = [compiled(root, name, root / "shared") for name in ("one", "two")]
    alone = compiled(root, "alone")
    assert len(asked) == 1
    assert (asked[0].parent / "headers.hpp.gch").stat().st_size > 1 << 20
    assert found == [alone, alone]
    logs = {(root / name / "log.txt").read_text() for name in ("one", "two", "alone")}
    assert len(logs) == 1
    assert "headers.hpp" not in logs.pop()


@needs_gcc
def test_it_is_read(root: Path):
    """What lies there in compiled form is used: a broken text behind it is not seen."""
    one = msgspec.structs.replace(job(), shared=str(root / "shared"))
    Cpp().share(one, root)
    header = precompiled_headers.find(root / "scale.cpp", root / "shared")
    assert header is not None
    header.write_text("#error the text was read\n")
    arguments = ["-DSHIFT=0", "-o", "kernel.so", "scale.cpp"]
    log = root / "log.txt"
    assert compiler.run(arguments, folder=root, log=log, seconds=30, header=header) is None
    (header.parent / "headers.hpp.gch").unlink()
    failure = compiler.run(arguments, folder=root, log=log, seconds=30, header=header)
    assert failure is not None
    assert "the text was read" in failure.reason


@pytest.mark.slow
@needs_gcc
def test_macros_that_would_change_the_headers(root: Path):
    """GCC does not take what was compiled without them: the artifact is as without headers compiled ahead."""
    (root / "scale.cpp").write_text("#if SHIFT\n#include <cmath>\n#endif\n" + SOURCE)
    compiled(root, "zero", root / "shared", tunables={})
    shared, alone = (
        compiled(root, name, folder, tunables={"SHIFT": 1})
        for name, folder in (("one", root / "shared"), ("alone", None))
    )
    assert isinstance(shared, Compiled)
    assert shared == alone


@needs_gcc
def test_a_wrong_source_is_wrong_in_the_same_words(root: Path):
    """The compiler's words are those of a compile that stands alone."""
    (root / "scale.cpp").write_text(SOURCE.replace("std::exp", "std::nothing"))
    shared, alone = compiled(root, "one", root / "shared"), compiled(root, "alone")
    assert isinstance(shared, Failure)
    assert shared == alone
    assert shared.outcome is Outcome.COMPILE_ERROR
    assert "nothing" in shared.reason
    assert (root / "one" / "log.txt").read_text() == (root / "alone" / "log.txt").read_text()


def test_nobody_waits_for_who_makes_them(root: Path):
    """Where another worker is at it, and where it failed, a variant is compiled without."""
    folder = root / "shared"
    header = precompiled_headers.header_path(precompiled_headers.beginning(root / "scale.cpp"), folder)
    header.parent.mkdir(parents=True)
    assert precompiled_headers.find(root / "scale.cpp", folder) is None
    assert isinstance(compiled(root, "one", folder), Compiled)
    assert not header.exists()


def test_a_folder_that_cannot_be_written(root: Path):
    """It is this machine's trouble, and no variant's."""
    (root / "shared").write_text("in the way")
    assert isinstance(compiled(root, "one", root / "shared"), Compiled)


@needs_gcc
def test_headers_that_do_not_compile(root: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is left of what was begun, and the variant is compiled without."""

    def broken(header: Path, made: Path, *, log: Path, seconds: float) -> bool:
        made.write_text("half")
        return False

    monkeypatch.setattr(compiler, "precompile", broken)
    assert isinstance(compiled(root, "one", root / "shared"), Compiled)
    assert not list((root / "shared").rglob("*.gch"))


@pytest.mark.parametrize("source", KERNELS, ids=lambda path: path.stem)
def test_our_kernels_begin_with_headers(source: Path):
    """All have what is worth being compiled ahead."""
    assert "#include <cmath>" in precompiled_headers.beginning(source)
