"""What this machine is to the plan: facts filled in, devices recognised, measurements tied to theirs."""

import msgspec
import pytest

from pipeline.backends.devices.device import FoundDevice
from pipeline.plan.local_machine import ABSENT, Machine, ResolvedHardware, fingerprint, read_machine, resolve
from pipeline.records.configuration.hardware import Hardware, Quantity
from tests.plan.project import CPU, MACHINE

LIMIT = {"warp_size": Quantity(value=32, unit="threads", source="test")}
NATIVE = Hardware(name="cpu", description="here", kind="cpu", architecture="native", limits={})
LOCAL = msgspec.structs.replace(NATIVE, name="local")


def gpu(name: str, architecture: str = "sm_90") -> Hardware:
    """A declared target."""
    return Hardware(name=name, description=name, kind="cuda", architecture=architecture, limits=LIMIT)


DECLARED = {each.name: each for each in (gpu("h100"), gpu("h200"), gpu("gh200"), gpu("rtx4090", "sm_89"))}


def with_gpu(product: str, architecture: str = "sm_90") -> Machine:
    """A machine with this GPU."""
    return msgspec.structs.replace(MACHINE, devices=(FoundDevice("cuda", architecture, product),))


def here(machine: Machine) -> list[str]:
    """Declared targets that are present."""
    return [name for name, each in DECLARED.items() if resolve(each, DECLARED, machine).present]


@pytest.mark.parametrize(
    ("product", "architecture", "expected"),
    [
        ("NVIDIA H200", "sm_90", ["h200"]),
        ("NVIDIA H100 80GB HBM3", "sm_90", ["h100"]),
        ("NVIDIA GH200 480GB", "sm_90", ["gh200"]),
        ("NVIDIA GeForce RTX 4090", "sm_89", ["rtx4090"]),
        ("Some engineering sample", "sm_90", ["h100", "h200", "gh200"]),
        ("NVIDIA B200", "sm_100", []),
    ],
)
def test_devices_of_one_architecture_are_told_apart(
    product: str, architecture: str, expected: list[str]
) -> None:
    """What is measured on an H200 never bears the name of the H100, although one binary runs on both."""
    assert here(with_gpu(product, architecture)) == expected


def test_without_a_gpu_none_is_present() -> None:
    """Declared GPUs are absent, the CPU is not."""
    assert here(MACHINE) == []
    assert resolve(NATIVE, DECLARED, MACHINE).present


def test_a_feature_suffix_is_the_same_device() -> None:
    """A target sm_90a runs on a device that calls itself sm_90."""
    special = gpu("h200", "sm_90a")
    assert resolve(special, {"h200": special}, with_gpu("NVIDIA H200")).present


def test_native_is_filled_in_and_keeps_what_the_yaml_says() -> None:
    """Facts come from the machine; a limit in the yaml wins."""
    limit = {"l2_cache": Quantity(value=1, unit="byte", source="yaml")}
    device = resolve(msgspec.structs.replace(NATIVE, limits=limit), {}, MACHINE)
    assert device.hardware.architecture == CPU.architecture
    assert device.hardware.limits == {**CPU.limits, **limit}
    assert (device.hardware.name, device.hardware.description) == ("cpu", "here")


def test_local_is_the_gpu_or_else_the_cpu() -> None:
    """The declared target of the GPU that is here, under its own name; an unknown GPU counts as none."""
    found = resolve(LOCAL, DECLARED, with_gpu("NVIDIA H200"))
    assert (found.hardware.name, found.hardware.kind, found.present) == ("local", "cuda", True)
    assert found.hardware.facts["target"] == "h200"
    assert resolve(LOCAL, DECLARED, MACHINE).hardware.kind == "cpu"
    assert resolve(LOCAL, DECLARED, with_gpu("NVIDIA B200", "sm_100")).hardware.kind == "cpu"


def test_the_fingerprint_tells_devices_apart() -> None:
    """Another model or number of cores is another device; memory and the name of the option are not."""
    cpu = ResolvedHardware(hardware=CPU, present=True)
    other = msgspec.structs.replace(CPU, facts={**CPU.facts, "cores": "64"})
    same = msgspec.structs.replace(CPU, facts={**CPU.facts, "memory_bytes": "2"})
    known = fingerprint(cpu, MACHINE)
    assert fingerprint(cpu, msgspec.structs.replace(MACHINE, cpu=other)) != known
    assert fingerprint(cpu, msgspec.structs.replace(MACHINE, cpu=same)) == known
    assert fingerprint(ResolvedHardware(hardware=LOCAL, present=True), MACHINE) == known
    assert fingerprint(ResolvedHardware(hardware=gpu("h100"), present=False), MACHINE) == ABSENT
    present = ResolvedHardware(hardware=gpu("h200"), present=True)
    assert fingerprint(present, with_gpu("NVIDIA H200")) != fingerprint(present, with_gpu("NVIDIA H200 NVL"))


def test_this_machine_is_read_in_milliseconds() -> None:
    """A plan looks at the machine each time, so that must cost nothing, and give the same answer."""
    import time

    read_machine()
    started = time.process_time()
    assert read_machine() == read_machine()
    assert time.process_time() - started < 0.5
