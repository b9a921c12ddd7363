"""CUDA sources of an extension are rewritten for the host's compiler."""

import pytest

from pipeline.backends.cpp.extension_builds import NotEmulatedError
from pipeline.backends.cuda.emulated_extension import for_the_host, kept_flags


def body(text: str) -> str:
    """What stands after the includes."""
    return for_the_host({"source.cu": text}).partition('#line 1 "source.cu"\n')[2].rstrip("\n")


@pytest.mark.parametrize(
    ("launch", "call"),
    [
        (
            "add<<<blocks, 256>>>(x, n);",
            'launch("add", {blocks, 256}, [=](auto... given) { add(given...); }, x, n);',
        ),
        ("none<<<1, 32>>>();", 'launch("none", {1, 32}, [=](auto... given) { none(given...); });'),
        (
            "ns::add<float, (N > 4 ? 1 : 2)> <<<dim3(f(a, b)), t, n * sizeof(T), s>>> (g(x), NULL);",
            'launch("ns::add", {dim3(f(a, b)), t, n * sizeof(T), s},'
            " [=](auto... given) { ns::add<float, (N > 4 ? 1 : 2)>(given...); }, g(x), nullptr);",
        ),
    ],
)
def test_launches(launch: str, call: str) -> None:
    """With what they are configured by, the kernel as it was named, and its arguments."""
    assert body(f"if (n) {launch}") == f"if (n) emulated::{call}"


@pytest.mark.parametrize("text", ["x = a << b << c;", "// add<<<1, 1>>>(x)", 'puts("a<<<b>>>(c)");'])
def test_what_is_no_launch(text: str) -> None:
    """Shifts, comments and strings stay what they are."""
    assert "emulated::" not in body(text)


def test_names_of_the_device() -> None:
    """Tensors are the host's, and so are operators for them."""
    assert body("TORCH_LIBRARY_IMPL(ext, CUDA, m) {}") == "TORCH_LIBRARY_IMPL(ext, CPU, m) {}"
    assert body("x.device().type() == c10::DeviceType::CUDA;") == "x.device().type() == c10::DeviceType::CPU;"


def test_shared_memory() -> None:
    """Each array is known by its name; what has no size is the launch's dynamic memory."""
    text = body(
        "__shared__ __align__(16) float a[4][8], b;\n"
        "extern __shared__ __align__(sizeof(double)) unsigned char raw[];\n"
        "__shared__ typename cub::BlockReduce<float, 32>::TempStorage temp;"
    )
    assert [line.count("emulated::Poisoned") for line in text.splitlines()] == [2, 0, 1]
    assert all(f'"{name}")' in text for name in ("a", "b", "temp"))
    assert "unsigned char* const raw = reinterpret_cast<unsigned char*>(emulated::machine.shared);" in text


def test_includes_and_lines() -> None:
    """Other headers come before the emulation, CUDA's are it, and lines stay where they were."""
    text = for_the_host(
        {"a.cu": "#include <cuda_runtime.h>\n/* of\ntwo */ #include <vector>\n__global__ void f();"}
    )
    before, _, after = text.partition('#include "extension.hpp"\n')
    assert "#include <vector>" in before
    assert "cuda_runtime" not in text
    assert after.splitlines().index("__global__ void f();") == 4  # after `#line 1`


@pytest.mark.parametrize("header", ["cublas_v2.h", "curand_kernel.h", "thrust/sort.h", "cutlass/cutlass.h"])
def test_libraries_of_a_device(header: str) -> None:
    """The header is named."""
    with pytest.raises(NotEmulatedError, match=header):
        for_the_host({"a.cu": f"#include <{header}>"})


def test_flags() -> None:
    """Those that say something about the source."""
    assert kept_flags(["-O3", "-DN=4", "-gencode", "arch=compute_90", "-I", "here", "--use_fast_math"]) == [
        "-DN=4",
        "-I",
        "here",
    ]
