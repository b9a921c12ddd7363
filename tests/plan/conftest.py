"""Fixtures of the config layer's tests."""

from pathlib import Path

import pytest

from pipeline.plan.identity import stage_builds
from tests.plan.project import Project, read_once


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A small project of one's own; the pipeline's code is read once for all tests."""
    monkeypatch.setattr(stage_builds, "Code", read_once)
    return Project(tmp_path / "project")
