"""What kernels that save memory are compared with: PyTorch's own fused AdamW, all in float32."""

import torch
from torch.optim.adamw import adamw

from kernels.adamw.reference_8bit import dequantise

Prepared = tuple[dict[str, list[torch.Tensor]], dict[str, float]]


def dequantised(
    p: torch.Tensor, g: torch.Tensor,
    m_code: torch.Tensor, m_scale: torch.Tensor, v_code: torch.Tensor, v_scale: torch.Tensor,
    step: float, **settings: float,
) -> Prepared:  # fmt: skip
    """Called as the reference of adamw_8bit -> the arguments of `fused`. Not part of a call."""
    return state_of(
        p,
        g,
        dequantise(m_code, m_scale, signed=True),
        dequantise(v_code, v_scale, signed=False),
        step,
        settings,
    )


def state_of(
    p: torch.Tensor,
    g: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    step: float,
    settings: dict[str, float],
) -> Prepared:
    """Of one parameter, copied: the library's function works in place. It counts the step itself."""
    count = torch.tensor(step - 1, dtype=torch.float32, device=p.device)
    tensors = {"params": p, "grads": g, "exp_avgs": m, "exp_avg_sqs": v}
    state = {name: [each.to(torch.float32, copy=True)] for name, each in tensors.items()}
    return {**state, "max_exp_avg_sqs": [], "state_steps": [count]}, settings


def fused(state: dict[str, list[torch.Tensor]], settings: dict[str, float]) -> tuple[torch.Tensor, ...]:
    """One step of torch.optim.AdamW's function -> parameters and both moments, in float32."""
    adamw(**state, fused=True, amsgrad=False, maximize=False, **settings)
    return state["params"][0], state["exp_avgs"][0], state["exp_avg_sqs"][0]
