"""The gated delta rule (Yang et al. 2024, arXiv:2412.06464), in its parallel form."""

import torch


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rate: torch.Tensor, write: torch.Tensor
) -> torch.Tensor:
    """q, k [batch, heads, steps, depth], v[.., values], rate, write [batch, heads, steps] -> o as v.

    The same as the loop S_t = exp(-rate_t) S_{t-1} + k_t u_t^T, o_t = S_t^T q_t over time, with
    u_t = sigmoid(write_t) (v_t - exp(-rate_t) S_{t-1}^T k_t): what the state holds for a key is replaced by
    its value, in part. All u_t solve one triangular system. Keys are no longer than 1, so that no state
    grows. Rate 0 is DeltaNet (Yang et al. 2024, arXiv:2406.06484).
    """
    kind = torch.promote_types(q.dtype, torch.float32)
    step = torch.arange(q.shape[2], device=q.device)
    # Sums from each step on: differences of sums over all steps would lose digits.
    left = torch.where(step[:, None] > step, rate.to(kind)[..., None], 0.0).cumsum(-2)
    decay = torch.exp(-left).tril()
    share = torch.sigmoid(write.to(kind))[..., None]
    system = (share * decay * (k @ k.mT)).tril(-1)
    update = torch.linalg.solve_triangular(system, share * v.to(kind), upper=False, unitriangular=True)
    return ((q @ k.mT) * decay).to(v.dtype) @ update.to(v.dtype)
