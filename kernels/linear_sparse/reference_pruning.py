"""2:4 pruning by a soft threshold: the weights of S-STE (Hu et al. 2024, arXiv:2409.09099)."""

import torch


def reference(weight: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """weight[N, K] -> values[2 ceil(K / 4), N] and positions[ceil(K / 8), N], as linear_2to4 takes them.

    Of each four weights in a row the two largest magnitudes stay, less the third one, times the scale: the
    result is continuous in the weights. Of equal magnitudes the first ones stay. Rows are padded with zeros,
    to whole bytes of positions.
    """
    rows, cols = weight.shape
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    padded = torch.nn.functional.pad(wide, (0, -cols % 8))
    groups = padded.reshape(rows, padded.shape[1] // 4, 4)
    size = groups.abs()
    order = size.sort(dim=-1, descending=True, stable=True).indices
    kept = order[..., :2].sort(-1).values
    chosen = groups.gather(-1, kept)
    values = scale * (chosen.sign() * (chosen.abs() - size.gather(-1, order[..., 2:3])))
    nibbles = kept[..., 0] | kept[..., 1] << 2
    positions = nibbles[:, 0::2] | nibbles[:, 1::2] << 4
    values = values.flatten(1).mT[: (cols + 3) // 4 * 2]
    return values.to(weight.dtype).contiguous(), positions.to(torch.uint8).mT.contiguous()


def magnitude(weight: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each value itself: it is a difference of two weights times a number. Positions are exact."""
    values, positions = reference(weight, scale)
    return values.abs(), torch.zeros_like(positions)
