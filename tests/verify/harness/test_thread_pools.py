"""Threads of libraries that keep a pool are not the candidate's."""

from pathlib import Path

import pytest

from tests.verify.harness.candidate_process import answer_of
from tests.verify.harness.in_a_child import Answer, count_threads


@pytest.mark.slow
def test_products_of_the_interpreter_leave_no_thread(tmp_path: Path) -> None:
    """NumPy's linear algebra starts threads at the first large product; one of the candidate's own counts."""
    assert answer_of(count_threads, tmp_path, Answer).items == ("0", "1")
