"""The command line: show, diff and report over a store with real machine code."""

import pytest

from pipeline.cli.main import main
from tests.report.code_run import shared_code


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A store that nothing here changes."""
    return shared_code(tmp_path_factory)


def run(root, capsys, *arguments):
    """Exit code and what was printed."""
    code = main(["code", *arguments, "--root", str(root)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize(
    ("hardware", "expected"),
    [
        ("h200", ("HGMMA.64x64x16.F32.BF16", "matrix_use                  meant", "load_global_128   4")),
        pytest.param(
            *("b200", ("UTCHMMA", "estimate_resident_blocks", "tensor_memory")), marks=pytest.mark.slow
        ),
        ("mi355x", ("v_mfma_f32_32x32x16_bf16", "scalar_registers", "load_scalar")),
    ],
)
def test_show(root, capsys, hardware, expected):
    """Facts, source lines and code of GPU variants."""
    code, out, _ = run(root, capsys, "show", f"hardware={hardware}", "default=true")
    assert code == 0
    assert all(text in out for text in expected)
    assert "matmul_triton.py:" in out
    assert "source lines by instructions (static, of " in out


@pytest.mark.slow
def test_show_of_the_cpu(root, capsys):
    """Vector width, fused share, stack frame and extensions, and the code by source line."""
    code, out, _ = run(root, capsys, "show", "hardware=cpu", "--lines", "2")
    assert code == 0
    assert all(name in out for name in ("vector_bits", "fma_share", "local_memory", "vector_extensions"))
    assert "matrix_use" not in out and "registers" not in out.partition("instructions (")[0]
    assert "tile.hpp:" in out


def test_show_without_code(root, capsys):
    """The code is the long part."""
    _, out, _ = run(root, capsys, "show", "hardware=a100", "--no-code")
    assert "nvdisasm" not in out and "registers" in out


def test_source_text_only_where_it_was_compiled(root, capsys):
    """The sample's variants do not carry this checkout's digest: no text beside their lines."""
    _, out, _ = run(root, capsys, "show", "hardware=a100", "--no-code")
    assert "matmul_triton.py:" in out and "tl.dot(" not in out


def test_source_text(root, capsys, monkeypatch):
    """Where the sources are those that were compiled, their lines stand beside the numbers."""
    monkeypatch.setattr("pipeline.backends.source_digests.Sources.implementation", lambda *_: "0" * 20)
    _, out, _ = run(root, capsys, "show", "hardware=a100", "--no-code")
    assert "| sums = tl.dot(" in out


def test_diff(root, capsys):
    """Facts, classes and lines that differ, then the code."""
    code, out, _ = run(root, capsys, "diff", "hardware=h200 num_stages=1", "hardware=h200 num_stages=3")
    assert code == 0
    assert "shared_memory" in out and "8192 B  ->  24576 B" in out
    assert "async_copy" in out.partition("source lines")[0]
    assert "\n+ matmul_triton.py:" in out and "\n- matmul_triton.py:" in out


def test_diff_summary(root, capsys):
    """What comes before the code, and nothing else."""
    words = ("diff", "hardware=h200 num_stages=1", "hardware=h200 num_stages=3")
    _, whole, _ = run(root, capsys, *words)
    code, out, _ = run(root, capsys, *words, "--summary")
    assert code == 0
    assert whole.startswith(out) and "source lines that differ" in out
    assert whole.removeprefix(out).startswith("matmul: ")


def test_diff_with_itself(root, capsys):
    """All equal, in words."""
    _, out, _ = run(root, capsys, "diff", "hardware=a100", "hardware=a100")
    assert "facts: equal" in out and "instructions (static count by class): equal" in out
    assert "matmul: equal (" in out


def test_diff_of_two_instruction_sets(root, capsys):
    """Facts and source lines can be compared, instructions cannot."""
    code, out, _ = run(root, capsys, "diff", "hardware=a100", "hardware=mi300x")
    assert code == 0
    assert out.endswith("another instruction set: the code is not compared\n")
    assert "source lines that differ" in out


def test_files_that_are_gone(root, capsys, tmp_path):
    """The record is there, its store entry is not: what to run."""
    import shutil

    copy = tmp_path / "artifacts"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("store"))
    code, _, err = run(copy, capsys, "show", "hardware=a100")
    assert code == 1
    assert err.endswith("the files of this variant are gone: snakemake --cores all compile\n")


@pytest.mark.slow
def test_report(root, capsys, tmp_path):
    """One section for each target, line 1 is the command, and an example of a difference."""
    file = tmp_path / "report.md"
    code, out, _ = run(
        root,
        capsys,
        "report",
        "default=true",
        *("--diff", "hardware=h200 num_stages=1", "hardware=h200 num_stages=3"),
        *("--out", str(file)),
    )
    text = file.read_text()
    assert (code, out) == (0, f"{file}: 8 compiled kernels\n")
    assert text.startswith("<!-- kernelmill code report default=true")
    assert text.count("\n## ") == 9
    assert "| b200 | sm_100 |" in text and "| mi300x | gfx942 |" in text and "| cpu |" in text
    assert "grep -cP '\\bHGMMA\\b' kernel.sass" in text
    assert "more lines: the command above prints them all." in text


def test_report_of_what_failed(root, capsys):
    """A variant without code is named."""
    code, _, err = run(root, capsys, "report", "hardware=h200", "num_stages=9")
    assert code == 2
    assert err.startswith("error: matmul triton on h200") and err.endswith("nothing to report\n")


def test_unknown_name_is_one_line(root, capsys):
    """With what there is, and exit code 2."""
    code, out, err = run(root, capsys, "show", "hardware=h2000")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("error: hardware=h2000: no such variant (there is h200, ")


def test_empty_store(tmp_path, capsys):
    """Says what to run first."""
    code, _, err = run(tmp_path, capsys, "show", "hardware=h200")
    assert code == 1
    assert err == f"error: {tmp_path}: nothing was compiled yet: kernelmill run does\n"
