from pathlib import Path

import pytest

from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.results.collection import Collected, collect
from tests.report.sample_run import write_run


@pytest.fixture(scope="session")
def root(tmp_path_factory) -> Path:
    """Artifacts of the made-up run."""
    folder = tmp_path_factory.mktemp("sample") / "artifacts"
    write_run(folder)
    return folder


@pytest.fixture(scope="session")
def spec(root) -> AggregateSpec:
    """Its spec, as it is read back."""
    from pipeline.records.record import read_record

    return read_record(root / "spec.json", AggregateSpec)


@pytest.fixture(scope="session")
def collected(spec, root) -> Collected:
    """Its results."""
    return collect(spec, root)


@pytest.fixture(scope="session")
def code_root(tmp_path_factory) -> Path:
    """A store with machine code for every target."""
    from tests.report.code_run import shared_code

    return shared_code(tmp_path_factory)
