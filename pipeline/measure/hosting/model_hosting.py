"""Load a model from elsewhere in a measuring child. In: a HostedModel, its content. Out: calls of it.

A candidate gets the weights of `Model` as the judge gives them, and stays in the training mode it begins in.
Gradients are computed where the problem has them judged: then a call is `forward` and `backward`.
"""

import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from pipeline.backends.cpp.extension_builds import ExtensionBuilds, stand_in_for_builds
from pipeline.backends.devices.device import Call, Device
from pipeline.measure.hosting.measuring_messages import HostedModel
from pipeline.measure.hosting.model_content import ModelContent
from pipeline.sandbox.models.candidate_import import import_candidate
from pipeline.sandbox.models.model_problem import seeded
from pipeline.sandbox.models.weight_transfer import transfer_weights

Forward = Callable[..., Any]


class LoadedModel(NamedTuple):
    """A model that can be called."""

    forward: Forward
    """As it is timed."""
    parameters: tuple[torch.Tensor, ...]
    """Those that take gradients."""
    weights: tuple[torch.Tensor, ...]


def construct(hosted: HostedModel, content: ModelContent, device: Device) -> torch.nn.Module:
    """`Model`, or the candidate's `ModelNew` with its weights; raises what their code raises."""
    place = device.torch_device
    seed, variant = hosted.seed % (1 << 32), content.variant
    model = variant.model(seed, variant.init_arguments(seed)).to(place)
    if hosted.candidate is None:
        return model
    stand_in_for_builds(ExtensionBuilds(time.perf_counter), device=not device.is_host)
    module: Any = import_candidate(Path(hosted.candidate), Path.cwd())
    own: torch.nn.Module = seeded(seed, module.ModelNew, *variant.init_arguments(seed))
    if isinstance(own, torch.nn.Module):
        own = own.to(place)
    with torch.no_grad():
        transfer_weights(own, state_of(model))
    return own


def state_of(model: torch.nn.Module) -> Mapping[str, torch.Tensor]:
    """Its weights by name."""
    return {name: each.detach() for name, each in (*model.named_parameters(), *model.named_buffers())}


def load_model(hosted: HostedModel, content: ModelContent, device: Device) -> LoadedModel:
    """Construct it, and compile it where that is asked for."""
    torch.set_grad_enabled(content.gradients)
    model = construct(hosted, content, device)
    module = model if isinstance(model, torch.nn.Module) else torch.nn.Module()
    parameters = tuple(each for each in module.parameters() if each.requires_grad)
    return LoadedModel(forward=model, parameters=parameters, weights=tuple(state_of(module).values()))


def bound(loaded: LoadedModel, content: ModelContent) -> Call:
    """The call on the tensors as they lie now."""
    arguments = content.arguments()
    if not content.gradients:
        return functools.partial(loaded.forward, *arguments)
    wanted = [each.requires_grad_() for each in content.tensors() if each.is_floating_point()]
    return functools.partial(_with_gradients, loaded, arguments, wanted)


def _with_gradients(loaded: LoadedModel, arguments: list[Any], wanted: list[torch.Tensor]) -> list[Any]:
    """Outputs, and the gradients of the inputs; those of the parameters are computed as well."""
    found = loaded.forward(*arguments)
    outputs = [each for each in tensors_of(found) if each.requires_grad]
    leaves = [*wanted, *loaded.parameters]
    if not outputs or not leaves:
        return [found]
    gradients = torch.autograd.grad(
        outputs, leaves, [torch.ones_like(each) for each in outputs], allow_unused=True
    )
    return [found, *(each for each in gradients[: len(wanted)] if each is not None)]


def tensors_of(result: Any) -> list[torch.Tensor]:
    """Those in a result, in order; of a dict by its keys."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, list | tuple):
        return [tensor for each in result for tensor in tensors_of(each)]
    if isinstance(result, dict):
        return [tensor for key in sorted(result, key=str) for tensor in tensors_of(result[key])]
    return []
