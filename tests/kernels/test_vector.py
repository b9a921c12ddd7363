"""kernels/vector.hpp: conversions bit for bit as torch's, and the exponential's error, on every path."""

import ctypes
import functools
import platform

import pytest
import torch

from pipeline.backends.cpp import compiler
from tests.paths import ROOT

SOURCE = """
#include "vector.hpp"
extern "C" void widen(const vec::Element* from, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += LANES) vec::store_raw(to + i, vec::load(from + i));
}
extern "C" void narrow(const float* from, vec::Element* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += LANES) vec::store(to + i, vec::load_raw<vec::Floats>(from + i));
}
extern "C" void narrow_each(const float* from, vec::Element* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = vec::to_element(from[i]);
}
extern "C" void exponential(const float* from, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += LANES) {
        vec::store_raw(to + i, vec::exp(vec::load_raw<vec::Floats>(from + i)));
    }
}
extern "C" void bytes(const std::uint8_t* from, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += LANES) {
        vec::store_raw(to + i, vec::to_floats(vec::bit_cast<vec::Ints>(vec::load_bytes(from + i))));
    }
}
extern "C" void signed_bytes(const std::int8_t* from, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += LANES) {
        vec::store_raw(to + i, vec::to_floats(vec::load_bytes(from + i)));
    }
}
extern "C" void looked_up(const std::uint8_t* from, float* to, std::int64_t count) {
    float table[16];
    for (int i = 0; i < 16; ++i) table[i] = static_cast<float>(i * i);
    for (std::int64_t i = 0; i < count; i += LANES) {
        vec::store_raw(to + i, vec::look_up(table, vec::load_bytes(from + i)));
    }
}
extern "C" void gathered(const float* array, const std::uint8_t* from, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += LANES) {
        vec::store_raw(to + i, vec::gather(array, vec::load_bytes(from + i)));
    }
}
extern "C" void gathered_words(const std::uint8_t* array, const std::uint8_t* from, std::int32_t* to,
                               std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += LANES) {
        vec::store_raw(to + i, vec::gather_words(array, vec::load_bytes(from + i)));
    }
}
extern "C" void stored_bytes(const std::uint8_t* from, std::uint8_t* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += LANES) {
        vec::store_bytes(to + i, vec::load_bytes(from + i) | 0xabcd00u);
    }
}
extern "C" int transposed(const std::uint8_t* from, std::uint8_t* to) {
    vec::Words rows[LANES];
    for (int row = 0; row < LANES; ++row) rows[row] = vec::load_bytes(from + row * LANES);
    vec::transpose(rows);
    for (int row = 0; row < LANES; ++row) vec::store_bytes(to + row * LANES, rows[row]);
    return LANES;
}
extern "C" void larger_sizes(const float* from, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += LANES) {
        const auto values = vec::load_raw<vec::Floats>(from + i);
        vec::store_raw(to + i, vec::maximum_size(vec::splat(2.0f), values));
    }
}
extern "C" void reductions(const float* from, float* to) {
    to[0] = vec::reduce_sum(vec::load_raw<vec::Floats>(from));
    to[1] = vec::reduce_maximum(vec::load_raw<vec::Floats>(from));
}
"""
PATHS = [(1, "native"), (8, "native"), (16, "native"), (8, "x86-64"), (16, "x86-64-v3")]
SPECIAL = [
    0.0,
    -0.0,
    float("inf"),
    float("-inf"),
    float("nan"),
    65504.0,
    65519.9,
    65520.0,
    3.4e38,
    6e-8,
    1e-45,
]


@pytest.fixture(
    scope="module",
    params=[PATHS[1], *(pytest.param(path, marks=pytest.mark.slow) for path in PATHS if path != PATHS[1])],
    ids=str,
)
def build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Compile for an element type on one path; portable paths have no intrinsics to fall back on."""
    lanes, architecture = request.param
    if architecture != "native" and platform.machine() != "x86_64":
        pytest.skip("an instruction set of x86-64")
    folder = tmp_path_factory.mktemp("vector")
    (folder / "vector.cpp").write_text(SOURCE)

    @functools.cache
    def compile_for(element: str) -> ctypes.CDLL:
        arguments = [f"-DLANES={lanes}", f"-DELEMENT_{element.upper()}", f"-I{ROOT / 'kernels'}"]
        arguments += [f"-march={architecture}", "-o", f"{element}.so", "vector.cpp"]
        assert compiler.run(arguments, folder=folder, log=folder / "log.txt", seconds=30) is None
        return ctypes.CDLL(str(folder / f"{element}.so"))

    return compile_for


def call(function, source: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Apply to a tensor whose size is a multiple of 16."""
    result = torch.empty(source.shape, dtype=dtype)
    pointers = ctypes.c_void_p(source.data_ptr()), ctypes.c_void_p(result.data_ptr())
    function(*pointers, ctypes.c_int64(source.numel()))
    return result


def same(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """Equal bits, but any NaN is as good as another."""
    integers = {2: torch.int16, 4: torch.int32}[got.element_size()]
    equal = got.view(integers) == expected.view(integers)
    return bool((equal | (got.isnan() & expected.isnan())).all())


@pytest.mark.slow
@pytest.mark.parametrize("element", ["float16", "bfloat16"])
def test_conversions(build, element: str):
    """All 65,536 values widen exactly; floats narrow to the nearest, ties to even."""
    library = build(element)
    dtype = getattr(torch, element)
    every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
    assert same(call(library.widen, every, torch.float32), every.to(torch.float32))
    random = torch.randint(-(1 << 31), (1 << 31) - 1, (1 << 16,), dtype=torch.int64).to(torch.int32)
    wide = every.to(torch.float32)
    ties = ((wide[1:].double() + wide[:-1].double()) / 2).float()
    moderate = torch.randn(1 << 14) * 1e-6
    floats = torch.cat([random.view(torch.float32), ties, moderate, torch.tensor(SPECIAL)])
    floats = torch.nn.functional.pad(floats, (0, -floats.numel() % 16))
    assert same(call(library.narrow, floats, dtype), floats.to(dtype))
    assert same(call(library.narrow_each, floats, dtype), floats.to(dtype))


def test_exponential(build):
    """Within 1.1 units in the last place where the result is normal, gradual underflow, NaN and infinity."""
    library = build("float32")
    x = torch.linspace(-87.3, 88.0, 1 << 20)
    got = call(library.exponential, x, torch.float32).double()
    exact = x.double().exp()
    unit = torch.exp2(torch.floor(torch.log2(exact)) - 23)
    assert ((got - exact) / unit).abs().max() <= 1.1
    small = torch.linspace(-110.0, -87.3, 1 << 16)
    error = call(library.exponential, small, torch.float32).double() - small.double().exp()
    assert error.abs().max() <= 2.0**-148
    special = torch.tensor([float("-inf"), float("nan"), 0.0, -0.0] * 4)
    assert same(call(library.exponential, special, torch.float32), special.exp())


def test_bytes(build):
    """All 256 values, with a sign and without."""
    library = build("float32")
    every = torch.arange(256).to(torch.uint8)
    assert torch.equal(call(library.bytes, every, torch.float32), every.float())
    signed = every.view(torch.int8)
    assert torch.equal(call(library.signed_bytes, signed, torch.float32), signed.float())


def test_look_up(build):
    """By the low 4 bits, whatever the others are."""
    every = torch.arange(256).to(torch.uint8)
    got = call(build("float32").looked_up, every, torch.float32)
    assert torch.equal(got, (every % 16).float() ** 2)


def test_gather(build):
    """From anywhere in the array."""
    array, places = torch.randn(256), torch.randperm(256).to(torch.uint8)
    result = torch.empty(256)
    pointers = (ctypes.c_void_p(each.data_ptr()) for each in (array, places, result))
    build("float32").gathered(*pointers, ctypes.c_int64(256))
    assert torch.equal(result, array[places.long()])


def test_gather_words(build):
    """At any offset, aligned or not."""
    array, places = torch.randint(0, 256, (259,), dtype=torch.uint8), torch.randperm(256).to(torch.uint8)
    result = torch.empty(256, dtype=torch.int32)
    pointers = (ctypes.c_void_p(each.data_ptr()) for each in (array, places, result))
    build("float32").gathered_words(*pointers, ctypes.c_int64(256))
    expected = array[places.long()[:, None] + torch.arange(4)].contiguous()
    assert torch.equal(result, expected.view(torch.int32).flatten())


def test_stored_bytes(build):
    """The low bits of words."""
    every = torch.arange(256).to(torch.uint8)
    assert torch.equal(call(build("float32").stored_bytes, every, torch.uint8), every)


def test_transpose(build):
    """Rows become columns."""
    source, result = torch.randperm(256).to(torch.uint8), torch.empty(256, dtype=torch.uint8)
    pointers = (ctypes.c_void_p(each.data_ptr()) for each in (source, result))
    lanes = build("float32").transposed(*pointers)
    square = source[: lanes * lanes].view(lanes, lanes)
    assert torch.equal(result[: lanes * lanes].view(lanes, lanes), square.mT)


def test_larger_sizes(build):
    """Without their sign; NaN stays."""
    values = torch.tensor([-3.0, 1.0, -1.0, float("-inf"), float("nan"), 4.0, -0.0, 2.5] * 2)
    got = call(build("float32").larger_sizes, values, torch.float32)
    wanted = torch.tensor([3.0, 2.0, 2.0, float("inf"), float("nan"), 4.0, 2.0, 2.5] * 2)
    assert torch.equal(got.nan_to_num(nan=-1.0), wanted.nan_to_num(nan=-1.0))


def test_reductions(build):
    """Every lane counts once."""
    library = build("float32")
    lanes = torch.tensor([2.0**power for power in range(16)])
    for shift in range(16):
        source, result = lanes.roll(shift), torch.empty(2)
        library.reductions(ctypes.c_void_p(source.data_ptr()), ctypes.c_void_p(result.data_ptr()))
        # As many lanes as the path has: the sum is exact, so it says which ones were in it.
        fitting = [count for count in (1, 8, 16) if source[:count].sum() == result[0]]
        assert fitting
        assert result[1] == source[: fitting[0]].max()
