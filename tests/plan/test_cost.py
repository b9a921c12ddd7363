"""What planning a task costs, in counts (encodings, files, solved spaces): no clock that others disturb."""

from collections import Counter
from typing import Any

import pytest

from pipeline.plan.identity.stage_builds import StageBuilds
from pipeline.plan.memoize import Memoized
from pipeline.plan.tasks import resolution, stage_specs, task_maker
from pipeline.records import record
from pipeline.search.spaces.search_space import Subspace
from pipeline.store.atomic import FolderWriter
from tests.plan.project import Project

JOBS = 60


def counted(monkeypatch: pytest.MonkeyPatch, counts: Counter[str], owner: Any, name: str) -> None:
    """Count the calls of a function."""
    real = getattr(owner, name)

    def call(*arguments: Any, **keywords: Any) -> Any:
        counts[name] += 1
        return real(*arguments, **keywords)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize(
    "line",
    [
        "workload.dimensions.tokens={}",
        "+kernel.attributes.shift={}",
        "profile.batches_at_most={}",
        "verify.time_limit={}.5",
    ],
)
def test_a_task_more(project: Project, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Four specs are encoded and written once each, and little beside; what tasks share is made once."""
    counts: Counter[str] = Counter()
    counted(monkeypatch, counts, record.msgspec.json, "encode")
    counted(monkeypatch, counts, stage_specs, "spec_file")
    counted(monkeypatch, counts, FolderWriter, "_write")
    counted(monkeypatch, counts, Subspace, "points")
    counted(monkeypatch, counts, StageBuilds, "_of_backend")
    counted(monkeypatch, counts, task_maker, "fingerprint")
    counted(monkeypatch, counts, resolution, "_narrowed")
    jobs = [("workload=small", "hardware=cpu", line.format(30 + number)) for number in range(JOBS)]
    plan = project.make_sweep(*jobs).plan
    assert len(plan.tasks) == JOBS
    assert counts["spec_file"] == 4 * JOBS
    assert counts["_write"] <= 4 * JOBS + 5
    assert counts["encode"] <= 12 * JOBS + 60
    assert counts["points"] <= 2
    assert counts["_of_backend"] <= 4
    assert counts["fingerprint"] == 1
    assert counts["_narrowed"] <= 2


def test_once_by_identity() -> None:
    """Equal records are two, equal strings one; a function that raises is asked again."""
    asked: list[object] = []
    first, second = {"a": 1}, {"a": 1}

    def make(*given: Any) -> int:
        asked.append(given)
        if given[-1] == "bad":
            raise ValueError("again")
        return len(asked)

    once = Memoized(make)
    assert [once(first, "x"), once(second, "x"), once(first, "".join(["x"]))] == [1, 2, 1]
    for _ in range(2):
        with pytest.raises(ValueError, match="again"):
            once(first, "bad")
    assert len(asked) == 4
