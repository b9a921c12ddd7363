"""Which baselines a task meets: those asked for, those that the kernel declares, those that are not there."""

import msgspec
import pytest

from pipeline.backends.backend import CompileJob
from pipeline.measure.comparison.baselines import select_baselines
from pipeline.measure.hosting.measuring_messages import Candidate, Reference
from pipeline.records.configuration.kernel import Vendor
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.results.compiled import Compiled, StaticFacts
from pipeline.records.results.variant import Variant
from tests.stages.test_profile import SPEC


def asking(*baselines: str, **changes: object) -> ProfileSpec:
    """The spec with these baselines."""
    settings = msgspec.structs.replace(SPEC.settings, baselines=baselines)
    return msgspec.structs.replace(SPEC, settings=settings, **changes)


def test_the_reference_in_three_ways() -> None:
    """Eager, compiled, compiled with autotuning: the same function."""
    found, absent = select_baselines(asking("eager", "compile", "compile_max_autotune"), {})
    assert absent == ()
    hosted = {each.name: each.hosted for each in found}
    assert {name: each.compiled for name, each in hosted.items() if isinstance(each, Reference)} == {
        "eager": "no",
        "compile": "default",
        "compile_max_autotune": "max-autotune-no-cudagraphs",
    }
    assert {each.function for each in hosted.values() if isinstance(each, Reference)} == {SPEC.reference}


def test_vendors_by_their_names() -> None:
    """All that the spec holds, each with what chooses its library and what prepares its arguments."""
    vendor = Vendor(function="a.b:c", set_up="a.b:d", prepare="a.b:e", kinds=("cpu",), description="")
    found, absent = select_baselines(asking("vendor", vendors={"onednn": vendor}), {})
    assert [each.name for each in found] == ["onednn"]
    assert found[0].hosted == Reference(function="a.b:c", set_up="a.b:d", prepare="a.b:e")
    assert absent == ()


def test_no_vendor() -> None:
    """Absent with the reason, not silently left out."""
    found, absent = select_baselines(asking("vendor"), {})
    assert found == ()
    assert [each.reason for each in absent] == [
        "the kernel declares no vendor library's operator for cpu targets"
    ]


def test_implementations_by_name() -> None:
    """The default variant where it verified, else why it is absent."""
    name = next(iter(SPEC.implementations))
    wanted = asking(f"implementation:{name}", "implementation:tritno")
    found, absent = select_baselines(wanted, {})
    assert found == ()
    assert [each.reason for each in absent] == [
        "its default variant was not among the variants of this task that verified",
        "no implementation of that name for cpu targets; there are cpp",
    ]


@pytest.mark.parametrize(
    ("baselines", "text"),
    [
        (("eagre",), "expected some of eager, compile, compile_max_autotune, vendor, implementation:<"),
        (("implementation:",), "baselines: 'implementation:' names no implementation"),
        (("eager", "eager"), "baselines: each once"),
    ],
)  # fmt: skip
def test_wrong_names(baselines: tuple[str, ...], text: str) -> None:
    """What there is instead."""
    with pytest.raises(ValueError, match=text):
        msgspec.structs.replace(SPEC.settings, baselines=baselines).__post_init__()


def test_hosted_as_it_was_compiled() -> None:
    """An implementation's default variant is hosted under the implementation's name."""
    variant = Variant(
        kernel="twice", implementation="cpp", backend="cpp", source_digest="0", attributes={}, tunables={}
    )
    job = CompileJob(
        variant=variant, implementation=SPEC.implementations["cpp"], problem=SPEC.problem, target=SPEC.target
    )
    compiled = Compiled(
        artifact="kernel.so",
        artifact_digest="0",
        functions=("twice",),
        facts=StaticFacts(code_bytes=1),
        files=(),
    )
    candidate = Candidate(job=job, compiled=compiled, root=".", folder=".")
    found, absent = select_baselines(asking("implementation:cpp"), {"cpp": candidate})
    assert [(each.name, each.hosted) for each in found] == [("cpp", candidate)]
    assert absent == ()
