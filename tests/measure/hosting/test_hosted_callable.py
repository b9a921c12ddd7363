"""What a measuring child hosts: bound to tensors, prepared where a baseline asks for it."""

import msgspec
import torch

from pipeline.backends.devices.device_registry import device
from pipeline.measure.hosting.hosted_callable import content_of, load
from pipeline.measure.hosting.measuring_messages import Reference
from tests.measure import callables
from tests.measure.problems import set_up


def test_arguments_are_prepared() -> None:
    """From the inputs, when the call is bound."""
    prepared = Reference(
        function="tests.measure.callables:plain", prepare="tests.measure.callables:as_float64"
    )
    given = msgspec.structs.replace(set_up("plain"), hosted=prepared)
    content = content_of(given, device("cpu"))
    content.renew(1)
    call = load(given, content, device("cpu")).bind()
    found = call()
    assert found.dtype == torch.float64
    assert torch.equal(found, callables.plain(*callables.as_float64(*content.inputs())))
