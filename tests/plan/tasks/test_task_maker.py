"""What a task's row says of its device."""

import msgspec

from pipeline.plan.config.compose import composer
from pipeline.plan.tasks.task_maker import peaks_of
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.record import from_plain
from tests.kernels.derived_bounds import kernel_of
from tests.kernels.test_cpp_kernels import problem_of
from tests.paths import ROOT


def test_peak_of_products_in_another_type() -> None:
    """The estimate for codes of 8 bits is that of FP8, also where the workload has 16 bits."""
    with composer(ROOT / "conf") as composed:
        h200 = from_plain(composed.option("hardware", "h200"), Hardware)
    kernel = kernel_of("linear_switchback")
    problem = problem_of(kernel, "bfloat16", (4, 4, 4))
    assert peaks_of(kernel, problem, h200)["matrix_bfloat16"] == h200.peaks["matrix_fp8"]
    usual = msgspec.structs.replace(kernel, cost=msgspec.structs.replace(kernel.cost, products=None))
    assert peaks_of(usual, problem, h200) == h200.peaks
