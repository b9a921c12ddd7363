"""What prune_2to4 makes is what linear_2to4 multiplies with."""

import pytest
import torch

from kernels.linear_sparse.reference import dense_weights
from kernels.linear_sparse.reference_pruning import reference


@pytest.mark.parametrize("cols", [1, 4, 6, 8, 21, 64])
def test_pruned_weights_are_soft_thresholded(cols: int) -> None:
    """Of four weights the two largest stay, less the third one; the others are zeros."""
    weight = torch.randn(9, cols, generator=torch.Generator().manual_seed(3))
    values, positions = reference(weight, 1.5)
    dense = dense_weights(torch.empty(0, cols), values, positions, form="2to4").mT
    groups = torch.nn.functional.pad(weight, (0, -cols % 4)).unflatten(1, (-1, 4))
    third = groups.abs().sort(-1).values[..., 1:2]
    expected = 1.5 * groups.sign() * (groups.abs() - third).clamp(min=0.0)
    torch.testing.assert_close(dense, expected.flatten(1)[:, :cols])


def test_first_of_equal_weights_stay() -> None:
    """Then nothing is left of them, but their positions are certain."""
    values, positions = reference(torch.tensor([[1.0, -1.0, 1.0, 1.0, 0.0, 2.0, 2.0, -3.0]]), 1.0)
    assert values.flatten().tolist() == [0.0, 0.0, 0.0, -1.0]
    assert positions.item() == (0 | 1 << 2) | (1 | 3 << 2) << 4
