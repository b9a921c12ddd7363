"""What a diagnosis rests on goes to the searches that read one, and to no other."""

import pytest

from pipeline.records.errors import ConfigError
from pipeline.records.planning.specs import GenerateSpec
from tests.plan.project import Project

ONE = ("workload=small", "hardware=cpu")


def test_a_search_that_reads_diagnoses(project: Project) -> None:
    """Cost, target and peaks; nothing that only a language model needs."""
    spec = project.spec("generate", project.keys("search=mutate", *ONE)["generate"])
    assert isinstance(spec, GenerateSpec) and spec.brief is not None
    assert spec.brief.cost.flops is not None
    assert spec.brief.target.kind == "cpu"
    assert spec.brief.exemplars == ()
    assert spec.brief.start_digest is None


def test_a_search_that_reads_none(project: Project) -> None:
    """A grid's variants depend on nothing of it."""
    spec = project.spec("generate", project.keys("search=grid", *ONE)["generate"])
    assert isinstance(spec, GenerateSpec) and spec.brief is None


def test_folders_have_a_use(project: Project) -> None:
    """Strategies that write from a folder are named."""
    with pytest.raises(ConfigError, match="candidates: settings of another strategy; got strategy: grid"):
        project.plan("search=grid", "+search.candidates.folder=kernels")
    with pytest.raises(ConfigError, match="folder"):
        project.plan("search=candidates")
