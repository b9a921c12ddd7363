"""Each job's configuration and folder are what Hydra makes of the same overrides."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig, OmegaConf, open_dict

from pipeline.execution.sweep import sweep_jobs
from pipeline.execution.sweep.grid_sweeper import JobFailed
from pipeline.execution.sweep.sweep_jobs import (
    JobFolders,
    LazyJobReturn,
    SweepJob,
    SweepJobs,
    YamlTexts,
    list_text,
)
from pipeline.plan.config import plain_options
from pipeline.plan.config.overrides import read_override
from tests.paths import ROOT

CONF = ROOT / "conf"
JOBS = [
    ("kernel=softmax", "hardware=cpu"),
    ("kernel=rms_norm", "workload=awkward", "workload.dimensions.tokens=3"),
    ("experiment=smoke", "profile.baselines=[eager,compile]", "verify.time_limit=1e1"),
    ("kernel=softmax", "kernel.description='quoted: 1e3'", "verify=paranoid"),
    ("search=random", "search.seed=7"),
    (),
]


def by_hydra(master: DictConfig, lines: tuple[str, ...], number: int) -> DictConfig:
    """Hydra's own composition of a job."""
    loader = GlobalHydra.instance().config_loader()
    config = loader.load_sweep_config(master, list(lines))
    with open_dict(config):
        config.hydra.job.id = str(number)
        config.hydra.job.num = number
    return config


def make(master: DictConfig, *jobs: tuple[str, ...], first: int = 0) -> tuple[SweepJobs, list[SweepJob]]:
    """Our jobs."""
    sweep = SweepJobs(master, CONF)
    return sweep, sweep.make(list(jobs), first)


@pytest.mark.parametrize(
    "lines", [*JOBS[1:4], *(pytest.param(job, marks=pytest.mark.slow) for job in (JOBS[0], *JOBS[4:]))]
)
def test_configuration_as_hydra_composes_it(
    master: Callable[..., DictConfig], lines: tuple[str, ...]
) -> None:
    """The same groups with the same values; Hydra's own part too."""
    whole = master()
    sweep, (job,) = make(whole, lines, first=4)
    config = sweep.config(job)
    expected = by_hydra(whole, lines, 4)
    for group in expected:
        if group != "hydra":
            # an axis that the job does not choose has no key, as with Hydra
            assert OmegaConf.to_container(config[group], resolve=True) == OmegaConf.to_container(
                expected[group], resolve=True
            )
    assert set(config) == set(expected)
    ours, theirs = (OmegaConf.to_container(each.hydra, resolve=False) for each in (config, expected))
    ours["runtime"].pop("output_dir"), theirs["runtime"].pop("output_dir", None)
    assert ours == theirs


@pytest.mark.slow
def test_files_as_hydra_writes_them(master: Callable[..., DictConfig], tmp_path: Path) -> None:
    """Read back with OmegaConf, the three files say what the configuration says."""
    whole = master()
    sweep, jobs = make(whole, *JOBS)
    folders = JobFolders(sweep)
    for job in jobs:
        folders.write(job)
        folder = tmp_path / "sweep" / str(job.number) / ".hydra"
        config = sweep.config(job)
        plain = OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))
        assert plain == {
            str(key): OmegaConf.to_container(config[key], resolve=True) for key in config if key != "hydra"
        }
        written = OmegaConf.to_container(OmegaConf.load(folder / "hydra.yaml"), resolve=False)
        expected = OmegaConf.to_container(config.hydra, resolve=False, enum_to_str=True)
        assert written == {"hydra": expected}
        assert OmegaConf.to_container(OmegaConf.load(folder / "overrides.yaml")) == list(job.lines)


def test_no_files_where_hydra_is_told_to_write_none(
    master: Callable[..., DictConfig], tmp_path: Path
) -> None:
    """`hydra.output_subdir=null`: the job's folder is there, and empty."""
    sweep, (job,) = make(master("hydra.output_subdir=null"), JOBS[0])
    JobFolders(sweep).write(job)
    assert list((tmp_path / "sweep" / "0").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subdir", "expected"),
    [
        ("${hydra.job.num}", "3"),
        ("n${hydra.job.id}", "n3"),
        ("${hydra.job.override_dirname}", "hardware=cpu,kernel=softmax,workload=awkward"),
        ("${hydra.runtime.choices.kernel}/${hydra.job.num}", "softmax/3"),
        ("${workload.dimensions.tokens}", "37"),
        ("${hydra:job.num}-${kernel.name}", "3-softmax"),
    ],
)
def test_subfolder(master: Callable[..., DictConfig], tmp_path: Path, subdir: str, expected: str) -> None:
    """Named after anything that the job's configuration holds; Hydra's state stays as it was."""
    whole = master(f"hydra.sweep.subdir='{subdir}'")
    lines = ("kernel=softmax", "hardware=cpu", "workload=awkward")
    before = HydraConfig.instance().cfg
    _, (job,) = make(whole, lines, first=3)
    tokens = SweepJobs(whole, CONF).config(job).workload.dimensions.tokens
    assert job.folder == tmp_path / "sweep" / expected.replace("37", str(tokens))
    assert HydraConfig.instance().cfg is before


def test_override_dirname_follows_its_settings(master: Callable[..., DictConfig]) -> None:
    """Separators and left-out keys are Hydra's settings."""
    lines = ["kv_sep=@", "item_sep=__", "exclude_keys=[kernel]"]
    whole = master(*(f"hydra.job.config.override_dirname.{line}" for line in lines))
    _, (job,) = make(whole, ("workload=awkward", "kernel=softmax", "hardware=cpu"))
    assert job.override_dirname == "hardware@cpu__workload@awkward"


def test_return(master: Callable[..., DictConfig]) -> None:
    """A sweeper gets what Hydra's launchers give; configurations are made when looked at."""
    sweep, (job,) = make(master(), JOBS[0])
    returned = LazyJobReturn(job, sweep.config, "__main__")
    assert returned.status is JobStatus.UNKNOWN
    returned.completed(0.25)
    assert (returned.return_value, returned.status) == (0.25, JobStatus.COMPLETED)
    assert returned.overrides == list(JOBS[0])
    assert returned.cfg is not None and returned.hydra_cfg is not None
    assert returned.cfg.kernel.name == "softmax" and "hydra" not in returned.cfg
    assert returned.hydra_cfg.hydra.job.num == 0
    copied = pickle.loads(pickle.dumps(returned))
    assert type(copied) is JobReturn
    assert (copied.return_value, copied.cfg) == (0.25, returned.cfg)


def test_failed_return_raises(master: Callable[..., DictConfig], capsys: pytest.CaptureFixture[str]) -> None:
    """On access, as Hydra's users expect."""
    sweep, (job,) = make(master(), JOBS[0])
    returned = LazyJobReturn(job, sweep.config, "__main__")
    returned.failed(JobFailed("error: job 0: device unavailable"))
    assert returned.status is JobStatus.FAILED
    with pytest.raises(JobFailed, match="device unavailable"):
        _ = returned.return_value
    assert "Error executing job with overrides: ['kernel=softmax', 'hardware=cpu']" in capsys.readouterr().err


def test_each_text_is_read_once() -> None:
    """Jobs say the same often."""
    assert read_override("kernel=softmax") is read_override("kernel=softmax")


STRINGS = (
    *("softmax", "a b", "", " ", "yes", "No", "y", "NULL", "null", "~", "true", "off", "inf", "+inf", "-inf"),
    *(
        "NaN",
        "+nan",
        "infinity",
        "Infinity",
        "1",
        "007",
        "1_000",
        "+1",
        "-1",
        "0x1f",
        "1e3",
        "1.5",
        ".5",
        "1:30",
    ),
    *(
        "2020-01-01",
        "=",
        "<<",
        "a=1",
        "+a.b=1",
        "++a.b=1",
        "+++a=1",
        "~a",
        "a=[1,2]",
        "a=${b}",
        "a:b",
        "a: b",
    ),
    *(
        "a #b",
        "#a",
        "/abs/path",
        "./rel",
        "a,b",
        ",a",
        "a-",
        "-a",
        "- a",
        "?",
        "? a",
        "!a",
        "&a",
        "*a",
        "|",
        "%a",
    ),
    *("@a", "`a", "'a'", '"a"', "a'b", "é", "日本", "a\nb", "a\n", "\ta", "a\t", "e1", "_1", "_", "x" * 300),
    *(
        "word " * 60,
        "x" * 1500,
        "a=" + "b" * 200,
        "a" * 127,
        "a" * 129,
        "９",
        "²",
        "1" * 18,
        "1" * 30,
        "__",
        "...",
    ),
    *(
        "---",
        "a...",
        "a/b.c-d_e",
        "e+5",
        "1e",
        "0b1",
        "0o7",
        "12e03",
        "_1e5",
        "y=",
        "on.off",
        "/",
        "//",
        "+",
        "++",
    ),
)
VALUES: tuple[Any, ...] = (
    *STRINGS,
    *(None, True, False, 0, 1, -1, 10**20, 0.0, 1.5, 1e300, 1e-7, float("inf"), float("nan"), [], {}),
    *([1, 2], ["a", "1"], [[1], [2]], [{"a": 1}], {"a": {}}, {"a": []}, {"a": {"b": [1, {"c": "off"}]}}),
)


def whole_text(value: Any) -> str:
    """What PyYAML makes of all at once, with OmegaConf's rule for quotes."""
    return plain_options.dump(value)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_as_of_the_whole(value: Any) -> None:
    """As a value at every depth, twice by the same maker; as a key where it can be one."""
    maker = YamlTexts()
    for whole in ({"k": value}, {"outer": {"k": value, "last": 1}}, {"a": {"b": {"c": value}}}, {"k": value}):
        assert maker.mapping(whole.items()) == whole_text(whole)
    if isinstance(value, str | bool):
        for whole in ({value: "v"}, {"outer": {value: {"inner": 1}}}):
            assert maker.mapping(whole.items()) == whole_text(whole)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_lists(depth: int) -> None:
    """Below keys as at the top, each string alone and all together."""
    for values in (*([each] for each in STRINGS), list(STRINGS), ["a=1", "b=2"]):
        whole: Any = values
        for _ in range(depth + 1 if depth else 0):
            whole = {"k": whole}
        expected = "".join(whole_text(whole).splitlines(keepends=True)[depth + 1 if depth else 0 :])
        assert list_text(values, depth) == expected


def test_what_jobs_share_is_dumped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand configurations that differ in a number cost the dumps of what they share."""
    dumped: list[Any] = []
    real = plain_options.dump
    monkeypatch.setattr(sweep_jobs, "dump", lambda value: dumped.append(value) or real(value))
    shared, text = {"sizes": [1, 2, 4], "off": 1}, "more than one word"
    maker = YamlTexts()
    for number in range(1000):
        plain = {"kernel": {"shared": shared, "text": text, "number": number}, "name": f"job{number}"}
        made = maker.mapping(plain.items())
    assert len(dumped) == 3
    assert made == real(plain)
