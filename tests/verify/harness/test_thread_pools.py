"""Threads of libraries that keep a pool are not the candidate's."""

from pathlib import Path

import pytest

from tests.verify.harness.candidate_process import answer_of
from tests.verify.harness.in_a_child import Answer, count_threads, count_threads_of_a_driver


@pytest.mark.slow
def test_products_of_the_interpreter_leave_no_thread(tmp_path: Path) -> None:
    """NumPy's linear algebra starts threads at the first large product; one of the candidate's own counts."""
    assert answer_of(count_threads, tmp_path, Answer).items == ("0", "1")


def test_threads_of_a_driver(tmp_path: Path) -> None:
    """It starts some of its own, and declared kernels have no native code on the host; Python's count."""
    assert answer_of(count_threads_of_a_driver, tmp_path, Answer).items == ("True", "0", "1")
