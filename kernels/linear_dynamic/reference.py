"""Linear layers for quantised training: both operands are quantised on the way, then multiplied.

Forward, y = x W^T with x[M, K] and W[N, K]. Backward, y = x W is the gradient of the input: x is that of the
output, and W[K, N] has its rows along the sum. A group of elements shares a scale, which maps its largest
magnitude to the largest number of the codes.
"""

import itertools

import torch

LARGEST = {"int8": 127.0, "e4m3": 448.0, "e5m2": 57344.0, "e2m1": 6.0}
"""Largest number of each code: of int8 as SwitchBack uses it (Wortsman et al. 2023, arXiv:2304.13013), of
both types of FP8 (Micikevicius et al. 2022, arXiv:2209.05433), of FP4 (Open Compute Project, Microscaling
Formats v1.0, section 5.3.3)."""
FLOAT8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}

UNIT = 2.0**-24  # of float32, rounded to nearest
_NUDGE = 8 * UNIT
"""Relative error of what is rounded to a code: of the scale, its inverse, a product, quick divisions."""
_SUMS = 2.0**-9
"""Of the root of the sum of squared products, the error of FP8 products on matrix units that add less than
float32 has: about 14 bits on Hopper (DeepSeek-AI 2024, arXiv:2412.19437, section 3.3.2)."""


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    *,
    codes: str,
    scaling: str,
    group: int = 0,
    direction: str = "forward",
) -> torch.Tensor:
    """x[M, K], weight[N, K], or [K, N] backward -> y[M, N].

    What has a scale: with `row`, a row of x and all weights (SwitchBack); with `tensor`, either operand; with
    `block`, `group` elements in a row of x and `group` x `group` weights (DeepSeek-V3); with `micro`, `group`
    in a row of either, which a Hadamard transform mixes before (Quartet, Castro et al. 2025,
    arXiv:2505.14669).
    """
    left, right = _operands(x, weight, direction)
    x_codes, weight_codes = codes_of(codes)
    x_tile, weight_tile = tiles_of(left, right, scaling, group)
    left = quantised(left, x_codes, x_tile, mixed=scaling == "micro")
    right = quantised(right, weight_codes, weight_tile, mixed=scaling == "micro")
    return (left @ right.mT).to(x.dtype)


def _operands(x: torch.Tensor, weight: torch.Tensor, direction: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of both meet in a sum; of 16-bit types in float32."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return x.to(wide), (weight if direction == "forward" else weight.mT).to(wide)


def codes_of(codes: str) -> tuple[str, str]:
    """Of x and of the weights: gradients have a type of their own, E5M2, the weights that they meet E4M3."""
    return codes, "e4m3" if codes == "e5m2" else codes


def tiles_of(
    left: torch.Tensor, right: torch.Tensor, scaling: str, group: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows and columns that share a scale, of either operand."""
    rows, depth = (max(size, 1) for size in left.shape)
    whole = (max(right.shape[0], 1), depth)
    if scaling == "row":
        return (1, depth), whole
    if scaling == "tensor":
        return (rows, depth), whole
    return (1, group), (group if scaling == "block" else 1, group)


def quantised(
    values: torch.Tensor,
    codes: str,
    tile: tuple[int, int],
    *,
    mixed: bool = False,
    nudge: tuple[float, float] = (0.0, 0.0),
) -> torch.Tensor:
    """values[rows, cols] -> codes times scales, of the same shape; `mixed`, of whole tiles.

    `nudge`: how far, in relative terms, values and largest magnitudes are moved before.
    """
    rows, cols = values.shape
    tiles = torch.nn.functional.pad(values, (0, -cols % tile[1], 0, -rows % tile[0]))
    sizes = (tiles.shape[0] // tile[0], tile[0], tiles.shape[1] // tile[1], tile[1])
    tiles = tiles.reshape(sizes)
    size = tiles.abs()
    if mixed:
        transform = hadamard(tile[1], values.dtype).to(values.device)
        tiles, size = tiles @ transform, size @ transform.abs()
    largest = tiles.abs().amax((1, 3), keepdim=True)
    if nudge != (0.0, 0.0):
        tiles = tiles + nudge[0] * size
        largest = largest + nudge[1] * size.amax((1, 3), keepdim=True)
    scale = scale_of(largest, codes)
    found = (rounded(tiles / scale, codes) * scale).reshape(sizes[0] * sizes[1], sizes[2] * sizes[3])
    return found[:rows] if mixed else found[:rows, :cols]


def hadamard(size: int, dtype: torch.dtype) -> torch.Tensor:
    """The orthonormal Hadamard matrix of Sylvester, [size, size]."""
    matrix = torch.ones(1, 1, dtype=dtype)
    while matrix.shape[0] < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix / size**0.5


def scale_of(largest: torch.Tensor, codes: str) -> torch.Tensor:
    """In float32, or in float64; of FP4 a power of two, in whose terms the largest magnitude is 4 to 8."""
    tiny = torch.finfo(torch.float32).tiny
    if codes == "e2m1":
        _, exponent = torch.frexp(largest)
        power = torch.ldexp(torch.ones_like(largest), exponent - 3).clamp(min=tiny)
        return torch.where(largest.isfinite(), power, torch.nan)
    return (largest / LARGEST[codes]).clamp(min=tiny)


def rounded(values: torch.Tensor, codes: str) -> torch.Tensor:
    """To the nearest number of the codes, to the even one of two, and none beyond the largest one."""
    values = values.clamp(-LARGEST[codes], LARGEST[codes])
    if codes == "int8":
        return values.round()
    if codes == "e2m1":
        _, exponent = torch.frexp(values)
        step = torch.ldexp(torch.ones_like(values), (exponent - 2).clamp(min=-1))
        return (values / step).round() * step
    return values.to(FLOAT8[codes]).to(values.dtype)


def magnitude(
    x: torch.Tensor,
    weight: torch.Tensor,
    *,
    codes: str,
    scaling: str,
    group: int = 0,
    direction: str = "forward",
) -> torch.Tensor:
    """How far a right result may be from the reference, in units of float32's roundoff.

    A value on the edge of two codes, within the error of what is rounded, may have either: the bound is what
    the other one changes. Integers are added up exactly; the rest is for sums of products, scales among them.
    """
    left, right = _operands(x, weight, direction)
    tiles = tiles_of(left, right, scaling, group)
    sizes, moved = [], []
    for values, each, tile in zip((left, right), codes_of(codes), tiles, strict=True):
        found = quantised(values, each, tile, mixed=scaling == "micro")
        nudged = [
            quantised(values, each, tile, mixed=scaling == "micro", nudge=nudge)
            for nudge in itertools.product((-_NUDGE, _NUDGE), repeat=2)
        ]
        change = torch.stack([(other - found).abs() for other in nudged]).amax(0)
        sizes.append(found.abs())
        moved.append(found.abs() + change)
    terms = left.shape[1]
    products = sizes[0] @ sizes[1].mT
    edges = (moved[0] @ moved[1].mT - products) / UNIT
    sums = (min(terms, 8.0 * terms**0.5) + 8.0) * products
    if codes in FLOAT8:
        sums = sums + (_SUMS / UNIT) * (sizes[0].square() @ sizes[1].square().mT).sqrt()
    return edges + sums
