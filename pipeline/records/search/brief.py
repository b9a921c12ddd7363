"""What an agent gets to know about a task: the reference, the device, kernels to learn from."""

from pipeline.records.configuration.hardware import Quantity, Target
from pipeline.records.configuration.kernel import Cost
from pipeline.records.record import Record


class Exemplar(Record, frozen=True, kw_only=True):
    """A kernel of this repository of the same category, which the repository's tests verify."""

    kernel: str
    implementation: str
    source: str
    """Path from the repository's root."""
    digest: str
    """Of that file with what it includes."""
    origin: str
    licence: str


class Brief(Record, frozen=True, kw_only=True):
    """Goes into the prompts of one task."""

    description: str
    category: str
    reference: str
    """`module:function`."""
    reference_digest: str
    cost: Cost
    deterministic: bool
    special_values: bool
    target: Target
    device: str | None = None
    """Model name, if the machine reports it."""
    peaks: dict[str, Quantity] = {}
    exemplars: tuple[Exemplar, ...] = ()
    start_digest: str | None = None
    """Of the source to start from."""
