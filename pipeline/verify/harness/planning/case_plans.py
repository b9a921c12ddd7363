"""Makes a condition concrete: arguments, the model with its weights, and what `Model` returns.

In: a problem and a condition. Out: a `CasePlan`: all but the expected values, from one run of `Model`. If the
problem does not allow the condition, there is no plan.
"""

import copy
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
import torch

from pipeline.backends.devices.device import Device
from pipeline.backends.devices.device_registry import HOST, device
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.record import Record, digest, digest_bytes
from pipeline.sandbox.models.model_problem import (
    ModelProblem,
    ProblemError,
    ProblemVariant,
    describe,
    seeded,
)
from pipeline.verify.harness.encoding import Encoded, encode
from pipeline.verify.harness.planning.extent import tensors_of
from pipeline.verify.harness.planning.trial_conditions import Condition
from pipeline.verify.harness.runtime.decoding import form_of
from pipeline.verify.oracle.input_variations import (
    NO_ZEROS,
    OF_NUMBERS,
    OTHER_ARGUMENTS,
    OTHER_NUMBERS,
    STRIDED,
    WITH_TIES,
    Range,
    applicable,
    free_inputs,
    vary,
)
from pipeline.verify.oracle.selection import OtherChoices

_SPREAD = 0.1  # of the values that constant parameters get instead
_BELOW = -4.0
"""A bias that leaves nothing above 0 of thousands of normalized values, as their maximum shows."""
_CONSTANTS = {"random": (0.0, 1.0), "signed": (0.0, 1.0), "negative": (0.0,)}
"""What parameters are all of that are changed."""
_RUNNING = ("running_mean", "running_var")  # buffers that are weights; others may be masks


class ReferenceOutput(Record, frozen=True, kw_only=True):
    """One output of `Model` as PyTorch returns it."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    aliases: tuple[str, ...]
    """Inputs whose memory it shares."""


class CasePlan(Record, frozen=True, kw_only=True, eq=False):
    """One condition with its tensors."""

    condition: Condition
    initial: Encoded
    """Arguments of `Model`."""
    arguments: list[Any]
    """Of `forward`, as the problem made them."""
    encoded: Encoded
    model: torch.nn.Module
    """With the weights of this condition; called only on copies of it."""
    state: dict[str, torch.Tensor]
    identity: str
    """Of what `ModelNew` is constructed with: equal ones share an instance."""
    changed: tuple[str, ...]
    """Parameters that got other values than they were constructed with."""
    outputs: tuple[ReferenceOutput, ...]
    values: tuple[torch.Tensor, ...]
    """What `Model` returned, in its own precision."""
    structure: str
    """`tensor`, `tuple`, or what else it returned."""
    mutated: dict[str, torch.Tensor]
    """Inputs that `Model` itself changes, with what it leaves in them."""
    strict_strides: bool = False
    """Whether strides that nobody expects are wrong."""

    @property
    def work(self) -> float:
        """A measure of how long a call takes: elements of inputs, outputs and weights."""
        tensors = [*self.encoded.tensors.values(), *self.values, *self.state.values()]
        return 1.0 + sum(tensor.numel() for tensor in tensors)


class CasePlanner:
    """Makes plans of one problem; keeps models and ranges, which many conditions share."""

    def __init__(
        self, problem: ModelProblem, *, strict_strides: bool = False, kind: DeviceKind = HOST
    ) -> None:
        self._strict_strides = strict_strides
        self._kind = kind
        self._problem = problem
        self._variants: dict[str, ProblemVariant] = {"{}": problem.declared}
        self._free: dict[str, dict[str, Range]] = {}
        self._samples = (0x5EED, 0xFEED)
        self._alike: frozenset[str] | None = None

    def device(self, condition: Condition) -> Device:
        """Where `Model` runs: on large sizes the candidates' device if it has float64, else the host."""
        return self._large if condition.kind == "full" else device(HOST)

    @functools.cached_property
    def _large(self) -> Device:
        found = device(self._kind)
        try:
            found.allocate(1, torch.float64)
        except (RuntimeError, TypeError):  # it is not here, or has no such numbers
            return device(HOST)
        return found

    def _tables(self, variant: ProblemVariant, condition: Condition) -> frozenset[str]:
        """Trained parameters that every seed constructs alike: a copy made at construction goes stale."""
        if condition.constants not in ("random", "signed"):
            return frozenset()
        if self._alike is None:
            seeds = (condition.weights, condition.weights + 1)
            one, other = (variant.model(seed, variant.init_arguments(seed)) for seed in seeds)
            pairs = zip(one.named_parameters(), other.parameters(), strict=False)
            self._alike = frozenset(
                name for (name, each), same in pairs if each.requires_grad and torch.equal(each, same)
            )
        return self._alike

    def make(self, condition: Condition) -> CasePlan:
        """Run the problem's code; ProblemError where it fails on this condition."""
        condition = self._in_declared_order(condition)
        variant = self._variant(condition)
        initial = encode(variant.init_arguments(condition.weights), "initial", "get_init_inputs()")
        if condition.variation == OTHER_ARGUMENTS:
            initial = initial.with_numbers(OF_NUMBERS[OTHER_ARGUMENTS])
        model = variant.model(condition.weights, copy.deepcopy(initial.decode()))
        other = _change_constants(model, condition, self._tables(variant, condition))
        if not other and condition.kind != "weights":  # messages name no other weights where there are none
            condition = msgspec.structs.replace(condition, constants="as constructed")
        arguments = self._arguments(variant, condition)
        encoded = encode(arguments, "input", "get_inputs()")
        if condition.variation in (OTHER_NUMBERS, NO_ZEROS):
            encoded = encoded.with_numbers(OF_NUMBERS[condition.variation])
            arguments = encoded.decode()
        elif condition.variation not in (None, OTHER_ARGUMENTS):
            free = self.free(condition)
            given = encoded
            encoded = given.with_tensors(vary(given.tensors, free, condition.variation, condition.seed))
            if condition.variation == STRIDED and not _differ_in_memory(given, encoded):
                raise ProblemError("the inputs have one order in memory only")
            arguments = encoded.decode()
        returned, mutated = _run(model, encoded, self.device(condition))
        values = tuple(tensors_of(returned))
        if condition.variation in WITH_TIES and _depend_on_choices(values, model, arguments):
            raise ProblemError("what Model returns depends on which of equal elements it chooses")
        state = {name: each.detach().clone() for name, each in _state(model)}
        return CasePlan(
            condition=condition,
            initial=initial,
            arguments=arguments,
            encoded=encoded,
            model=model,
            state=state,
            identity=_identity(condition, initial, state),
            changed=tuple(name for name in other if name in dict(model.named_parameters())),
            outputs=_outputs(values, mutated.given),
            values=tuple(value.detach().resolve_conj().resolve_neg().cpu().clone() for value in values),
            structure=form_of(returned)[0],
            mutated=mutated.changed,
            strict_strides=self._strict_strides,
        )

    def outputs_with(self, plan: CasePlan, other: CasePlan) -> tuple[torch.Tensor, ...]:
        """What `Model` returns on the inputs of one plan with the weights of another."""
        returned, _ = _run(other.model, plan.encoded, device(HOST))
        return tuple(value.detach() for value in tensors_of(returned))

    def free(self, condition: Condition) -> dict[str, Range]:
        """Which inputs may be varied on these sizes."""
        key = str(condition.sizes)
        if key not in self._free:
            variant = self._variant(condition)
            samples = [encode(variant.inputs(seed), "input", "get_inputs()") for seed in self._samples]
            self._free[key] = free_inputs([sample.tensors for sample in samples])
        return self._free[key]

    def variations(self, condition: Condition, names: Sequence[str]) -> tuple[str, ...]:
        """Which variations apply; equal values only where all outputs are continuous."""
        free, first = self.free(condition), self.make(condition)
        ties = all(value.is_floating_point() for value in first.values)

        def applies(name: str) -> bool:
            if name in OF_NUMBERS:
                given = first.initial if name == OTHER_ARGUMENTS else first.encoded
                return given.with_numbers(OF_NUMBERS[name]).values != given.values
            return name == STRIDED or applicable(name, free, ties=ties)

        return tuple(name for name in names if applies(name))

    def _in_declared_order(self, condition: Condition) -> Condition:
        """A stored condition has its sizes in another order, which would be another label."""
        names = [size.name for size in self._problem.sizes if size.name in condition.sizes]
        ordered = {name: condition.sizes[name] for name in names}
        return msgspec.structs.replace(condition, sizes=ordered | dict(condition.sizes))

    def _variant(self, condition: Condition) -> ProblemVariant:
        key = str(condition.sizes)
        if key not in self._variants:
            self._variants[key] = self._problem.variant(condition.sizes)
        return self._variants[key]

    def _arguments(self, variant: ProblemVariant, condition: Condition) -> list[Any]:
        if condition.group is None:
            return variant.inputs(condition.seed)
        groups = variant.groups(condition.seed) or []
        if condition.group >= len(groups):
            raise ProblemError(f"get_input_groups(): {len(groups)} groups under another seed")
        return groups[condition.group]


def _depend_on_choices(values: Sequence[torch.Tensor], model: torch.nn.Module, arguments: list[Any]) -> bool:
    """Whether another of equal elements, as `topk` may choose it, leads to other values."""
    with torch.no_grad(), OtherChoices():  # type: ignore[no-untyped-call]
        others = tensors_of(run_reference(copy.deepcopy(model), copy.deepcopy(arguments)))
    pairs = zip(values, others, strict=True)
    return any(
        one.shape != other.shape or not torch.allclose(_computable(one), _computable(other), equal_nan=True)
        for one, other in pairs
    )


def _computable(tensor: torch.Tensor) -> torch.Tensor:
    """On the host, and not in a type of 8 bits, which PyTorch only converts."""
    return tensor.cpu().float() if tensor.is_floating_point() and tensor.itemsize == 1 else tensor.cpu()


def _differ_in_memory(one: Encoded, other: Encoded) -> bool:
    pairs = zip(one.tensors.values(), other.tensors.values(), strict=True)
    return any(_steps(first) != _steps(second) for first, second in pairs)


def _steps(tensor: torch.Tensor) -> list[int]:
    """The strides of axes along which there are steps."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def returned_alike(one: CasePlan, other: CasePlan) -> bool:
    """Whether `Model` returned equal values, but for sums whose order changes."""
    pairs = zip(one.values, other.values, strict=False)
    return all(first.shape == second.shape and _about_equal(first, second) for first, second in pairs)


class _Mutated(Record, frozen=True, kw_only=True, eq=False):
    given: dict[str, torch.Tensor]
    """What `Model` was called with; it may have changed it."""
    changed: dict[str, torch.Tensor]


def _run(model: torch.nn.Module, encoded: Encoded, where: Device) -> tuple[Any, _Mutated]:
    """Call a copy of the model on copies of the inputs, as PyTorch would."""
    given = encoded.copied().on(where.torch_device)
    with torch.no_grad(), where.computing():
        returned = run_reference(copy.deepcopy(model).to(where.torch_device), given.decode())
    after = {name: tensor.cpu() for name, tensor in given.tensors.items()}
    changed = {
        name: tensor
        for name, tensor in after.items()
        if not torch.equal(bits_of(tensor), bits_of(encoded.tensors[name]))
    }
    return returned, _Mutated(given=given.tensors, changed=changed)


def run_reference(model: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """`Model` on arguments, always under the same random state; ProblemError where it raises."""
    try:
        returned = seeded(0, model, *arguments)
    except ProblemError:
        raise
    except (Exception, SystemExit) as error:
        raise ProblemError(f"get_inputs() does not fit Model: forward raises {describe(error)}") from error
    _, leaves = form_of(returned)
    foreign = next((type(each).__name__ for each in leaves if not isinstance(each, torch.Tensor)), None)
    if foreign is not None or not leaves:
        raise ProblemError(
            f"Model.forward returns {foreign or 'nothing'}, expected a tensor,"
            " or tensors in a tuple, list or dict"
        )
    return returned


def perturbed_outputs(plan: CasePlan) -> tuple[torch.Tensor, ...]:
    """What `Model` returns where half of its float32 inputs are one rounding step nearer to zero.

    So all stay in their range. ProblemError where it raises all the same.
    """
    tensors = dict(plan.encoded.tensors)
    for name, tensor in tensors.items():
        if tensor.dtype is torch.float32 and 0 not in tensor.stride() and tensor.dim():
            tensors[name] = tensor.clone()
            part = tensors[name][..., ::2]
            torch.nextafter(part, torch.zeros_like(part), out=part)
    returned, _ = _run(plan.model, plan.encoded.with_tensors(tensors), device(HOST))
    return tuple(value.detach() for value in tensors_of(returned))


def refuse_kept_state(plan: CasePlan) -> None:
    """ProblemError where what one instance returns depends on its earlier calls, as running statistics do."""
    model = copy.deepcopy(plan.model)
    results = []
    for _ in range(2):
        with torch.no_grad():
            _, found = form_of(run_reference(model, plan.encoded.copied().decode()))
        results.append([each.detach().clone() for each in found])
    for number, (one, other) in enumerate(zip(*results, strict=False)):
        if one.shape == other.shape and _about_equal(one, other):
            continue
        changed = [name for name, each in _state(model) if not torch.equal(each, plan.state[name])]
        kept = f", which depends on {', '.join(changed)}" if changed else ""
        raise ProblemError(
            f"Model.forward keeps state: a second call on equal inputs returns another output {number}{kept};"
            " no answer is the right one"
        )


def _about_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """But for sums whose order changes."""
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    first, second = (torch.view_as_real(each) if each.is_complex() else each for each in (one, other))
    first, second = first.double(), second.double()
    size = float(first[first.isfinite()].abs().max()) if bool(first.isfinite().any()) else 0.0
    return torch.allclose(first, second, rtol=1e-3, atol=1e-3 * size, equal_nan=True)


def output_gradients(plan: CasePlan) -> dict[str, torch.Tensor]:
    """What is propagated back from each output; the same for equal conditions, zero for integers.

    On other sizes one value for all elements, with strides of 0 as from `sum().backward()`; with other
    weights the last two axes lie in memory in the other order.
    """
    generator = torch.Generator().manual_seed(plan.condition.seed)
    gradients = {}
    for number, value in enumerate(plan.values):
        shape = value.shape
        if plan.condition.kind == "sizes":
            drawn = torch.randn((), generator=generator).expand(shape)
        elif plan.condition.kind == "weights" and len(shape) > 1:
            drawn = torch.randn((*shape[:-2], shape[-1], shape[-2]), generator=generator).mT
        else:
            drawn = torch.randn(shape, generator=generator)
        drawn = drawn if value.is_floating_point() else torch.zeros(shape)
        gradients[f"output gradient {number}"] = drawn.to(value.dtype)
    return gradients


def _identity(condition: Condition, initial: Encoded, state: Mapping[str, torch.Tensor]) -> str:
    parts = [condition.weights, initial.values]
    tensors = [*initial.tensors.items(), *state.items()]
    return digest([*parts, [[name, digest_bytes(bytes(bits_of(each).numpy()))] for name, each in tensors]])


def _state(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Parameters and buffers by name."""
    return [*model.named_parameters(), *model.named_buffers()]


def differ_by_weights(one: CasePlan, other: CasePlan) -> bool:
    """Whether an instance made for one plan is right for the other once it has that one's weights."""
    if not one.state or one.initial.tensors or one.initial.values != other.initial.values:
        return False
    pairs = zip(_attributes(one.model), _attributes(other.model), strict=False)
    return all(torch.equal(first, second) for first, second in pairs)


def _attributes(model: torch.nn.Module) -> list[torch.Tensor]:
    """Tensors that modules hold apart from parameters and buffers."""
    return [
        value
        for module in model.modules()
        for value in vars(module).values()
        if isinstance(value, torch.Tensor)
    ]


def _change_constants(
    model: torch.nn.Module, condition: Condition, tables: Collection[str]
) -> tuple[str, ...]:
    """Other values for floating parameters that are all 0 or all 1, which stay what they are: biases, scales.

    A kernel that moves a maximum across a scale is right where the scale is positive only: "signed" gives
    trained ones both signs. Elements of `tables` that are not 0 keep their signs. Running statistics are
    changed as well. Returns the names of what was changed.
    """
    if condition.constants == "as constructed":
        return ()
    generator = torch.Generator().manual_seed(condition.seed)
    changed = []
    parameters = {name for name, _ in model.named_parameters()}
    for name, tensor in _state(model):
        is_weight = name in parameters or name.rpartition(".")[2] in _RUNNING
        if not is_weight or not tensor.is_floating_point() or tensor.numel() == 0:
            continue
        first = float(tensor.detach().flatten()[0])
        if first in _CONSTANTS[condition.constants] and bool((tensor == first).all()):
            noise = _SPREAD * torch.randn(tensor.shape, generator=generator).clamp_(-3, 3)
            other = first + noise
            if condition.constants == "negative":
                other = _BELOW - noise.abs()
            elif condition.constants == "signed" and first == 1.0 and tensor.requires_grad:
                other *= _signs(tensor.shape, generator)
            with torch.no_grad():
                tensor.copy_(other)
        elif name in tables:
            noise = _SPREAD * torch.randn(tensor.shape, generator=generator).clamp_(-3, 3)
            with torch.no_grad():
                size = tensor.abs()
                tensor.add_(noise * torch.where(size > 0, size, size.mean()))
        else:
            continue
        changed.append(name)
    return tuple(changed)


def _signs(shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    """-1 and 1; the first is -1, for there may be one only."""
    signs = torch.randint(0, 2, shape, generator=generator) * 2.0 - 1.0
    signs.view(-1)[0] = -1.0
    return signs


def _outputs(values: tuple[torch.Tensor, ...], given: dict[str, torch.Tensor]) -> tuple[ReferenceOutput, ...]:
    places = {tensor.untyped_storage().data_ptr(): name for name, tensor in given.items() if tensor.numel()}
    return tuple(
        ReferenceOutput(
            dtype=str(value.dtype).removeprefix("torch."),
            shape=tuple(value.shape),
            strides=tuple(value.stride()),
            aliases=tuple(
                name for place, name in places.items() if place == value.untyped_storage().data_ptr()
            ),
        )
        for value in values
    )


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """A view of the same bytes, so that NaN compares equal to itself."""
    return tensor.detach().contiguous().flatten().view(torch.uint8)
