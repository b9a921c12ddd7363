"""Linear layer with sparse weights, y = x W^T: the dense weights are restored, then multiplied."""

import torch


def reference(x: torch.Tensor, values: torch.Tensor, positions: torch.Tensor, *, form: str) -> torch.Tensor:
    """x[M, K] or x[M, segments, segment], the weights as in `dense_weights` -> y[M, N]."""
    return x.flatten(1) @ dense_weights(x, values, positions, form=form)


def dense_weights(
    x: torch.Tensor, values: torch.Tensor, positions: torch.Tensor, *, form: str
) -> torch.Tensor:
    """The transpose of W, [columns of x, N].

    `unstructured`: row i of values[segments, N] has one weight for each segment of columns of W, at column
    `segment` * i + position. `2to4`: rows 2i and 2i + 1 of values[K / 2, N] have two weights for the columns
    4i to 4i + 3. Their positions are of 2 bits: those of rows 4i to 4i + 3 are in byte i, the first one in
    its low bits. Equal positions add up; weights beyond the last column are not used.
    """
    rows, cols = values.shape
    kept, segment = (2, 4) if form == "2to4" else (1, x.shape[2])
    if form == "2to4":
        positions = torch.stack([positions >> bit & 3 for bit in (0, 2, 4, 6)], 1).flatten(0, 1)[:rows]
    base = torch.arange(rows, device=values.device) // kept * segment
    column = base[:, None] + positions
    nothing = values.new_zeros(rows // kept * segment, cols)
    first, *others = (nothing.scatter(0, column[each::kept], values[each::kept]) for each in range(kept))
    return sum(others, start=first)[: x.shape[1:].numel()]
