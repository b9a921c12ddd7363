"""The gated delta rule (Yang et al. 2024, arXiv:2412.06464), as a loop over time."""

import torch


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rate: torch.Tensor, write: torch.Tensor
) -> torch.Tensor:
    """q, k [batch, heads, steps, depth], v[.., values], rate, write [batch, heads, steps] -> o as v.

    S_t = exp(-rate_t) S_{t-1} + k_t u_t^T, u_t = sigmoid(write_t) (v_t - exp(-rate_t) S_{t-1}^T k_t): what
    the state holds for a key is replaced by its value, in part. Keys are no longer than 1, so that no state
    grows. Rate 0 is DeltaNet (Yang et al. 2024, arXiv:2406.06484). The state is at least float32; its
    products have operands as q.
    """
    kind = torch.promote_types(q.dtype, torch.float32)
    decay = torch.exp(-rate.to(kind))[..., None, None]
    share = torch.sigmoid(write.to(kind))[..., None, None]
    state = torch.zeros(*k.shape[:2], k.shape[3], v.shape[3], dtype=kind, device=q.device)
    outputs = [v[:, :, :0]]
    for step in range(q.shape[2]):
        now = slice(step, step + 1)
        state = decay[:, :, step] * state
        known = (k[:, :, now] @ state.to(k.dtype)).to(kind)
        update = (share[:, :, step] * (v[:, :, now].to(kind) - known)).to(v.dtype)
        state = state + k[:, :, now].mT.to(kind) * update.to(kind)
        outputs.append(q[:, :, now] @ state.to(q.dtype))
    return torch.cat(outputs, 2)
