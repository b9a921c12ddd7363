"""An embedded store per test, copied from one that is made once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.track.stores.mlflow_store import MlflowStore, make_embedded, open_store
from tests.track.small_run import TRACKING, copy_store


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was just made."""
    root = tmp_path_factory.mktemp("template")
    make_embedded(root)
    return root


@pytest.fixture
def root(tmp_path: Path, template: Path) -> Path:
    """An artifacts' root with an empty embedded store."""
    copy_store(template, tmp_path)
    return tmp_path


@pytest.fixture
def store(root: Path) -> Iterator[MlflowStore]:
    """The open store under `root`."""
    return open_store(TRACKING, root)
