"""Every kind of override, as what is searched or what is fixed."""

import pytest

from pipeline.execution.sweep.swept_space import read_settings, read_space
from pipeline.records.errors import ConfigError
from pipeline.search.sampling.parameter_space import Choice, Interval, Steps
from pipeline.search.sampling.samplers import Sampler

GROUPS = {"workload": ("decode", "prefill", "vit")}


def read(*arguments: str, params=None):
    """The sweep of these arguments, in a project with one group."""
    return read_space(params or {}, arguments, lambda key: GROUPS.get(key, ()))


def choice(name: str, *values) -> Choice:
    """A choice whose values are written as Python writes them."""
    return Choice(name=name, values=values, texts=tuple(map(str, values)))


@pytest.mark.parametrize(
    ("line", "parameter"),
    [
        ("a=choice(16,32,64)", choice("a", 16, 32, 64)),
        ("a=16,32,64", choice("a", 16, 32, 64)),
        ("+a=1,2", choice("+a", 1, 2)),
        ("a=choice(x,y)", choice("a", "x", "y")),
        ("a=1,1,2", choice("a", 1, 2)),
        ("a=true,null,0.5", Choice(name="a", values=(True, None, 0.5), texts=("True", "null", "0.5"))),
        ("a='x y','z'", Choice(name="a", values=("x y", "z"), texts=("'x y'", "'z'"))),
        ("a=1,true", Choice(name="a", values=("1", "True"), texts=("1", "True"))),
        ("a=[1,2],[3]", Choice(name="a", values=("[1,2]", "[3]"), texts=("[1,2]", "[3]"))),
        ("a={b:1},{b:2}", Choice(name="a", values=("{b:1}", "{b:2}"), texts=("{b:1}", "{b:2}"))),
        ("a=shuffle(choice(1,2))", choice("a", 1, 2)),
        ("a=range(1,9)", Steps(name="a", first=1, count=8)),
        ("a=range(3)", Steps(name="a", first=0, count=3)),
        ("a=range(0,64,step=16)", Steps(name="a", first=0, step=16, count=4)),
        ("a=range(0,65,16)", Steps(name="a", first=0, step=16, count=5)),
        ("a=range(9,1,-2)", Steps(name="a", first=3, step=2, count=4)),
        ("a=range(0,0.9,0.3)", Steps(name="a", first=0.0, step=0.3, count=3)),
        ("a=shuffle(range(1,4))", Steps(name="a", first=1, count=3)),
        ("a=tag(log,range(1,65))", Steps(name="a", first=1, count=64, log=True)),
        ("a=interval(0.1,1)", Interval(name="a", low=0.1, high=1.0)),
        ("a=interval(1,10)", Interval(name="a", low=1.0, high=10.0)),
        ("a=tag(log,interval(1e-4,1))", Interval(name="a", low=1e-4, high=1.0, log=True)),
        ("a=tag(int,interval(1,10))", Steps(name="a", first=1, count=10)),
        ("a=int(interval(1,10))", Steps(name="a", first=1, count=10)),
        ("a=tag(int,log,interval(1,1024))", Steps(name="a", first=1, count=1024, log=True)),
        ("workload=decode,vit", choice("workload", "decode", "vit")),
        ("workload=choice(decode,vit)", choice("workload", "decode", "vit")),
        ("workload=glob(*)", choice("workload", "decode", "prefill", "vit")),
        ("workload=glob(*,exclude=v*)", choice("workload", "decode", "prefill")),
    ],
)
def test_kinds(line: str, parameter) -> None:
    """What Hydra's grammar can say becomes a parameter whose texts are overrides again."""
    swept = read(line)
    assert swept.space.parameters == (parameter,)
    assert swept.fixed == ()


def test_plain_values_are_passed_through() -> None:
    """Also removals, additions and lists; the order is kept."""
    swept = read("kernel=matmul", "a=1,2", "~b", "+c=1", "d=[1,2]", "workload=vit")
    assert swept.fixed == ("kernel=matmul", "~b", "+c=1", "d=[1,2]", "workload=vit")


def test_one_value_is_fixed() -> None:
    """A list of one, as `kernelmill sweep` hands values on, and ranges with one number."""
    swept = read(
        "a=choice(64)", "b=range(3,4)", "c=choice([1,2])", "d=interval(2,2)", "e=1,2", "f=choice('x y')"
    )
    assert swept.fixed == ("a=64", "b=3", "c=[1,2]", "d=2.0", "f=x\\ y")
    assert [parameter.name for parameter in swept.space.parameters] == ["e"]


def test_params_of_the_yaml() -> None:
    """The command line wins over hydra.sweeper.params, both ways; a later argument over an earlier."""
    params = {"x": "interval(0,1)", "y": "choice(1,2)", "z": 5, "none": None, "flag": True}
    swept = read("y=7", "z=range(1,4)", "w=1", "w=2", params=params)
    assert [parameter.name for parameter in swept.space.parameters] == ["x", "z"]
    assert swept.fixed == ("y=7", "none=null", "flag=True", "w=2")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a=choice(1)", r"nothing to search"),
        ("a=1", r"nothing to search: give key=choice\(a,b\), key=range"),
        (
            "workload=interval(0,1)",
            r"workload is a config group.*expected choice\(…\) \(known: decode, prefill, vit\)",
        ),
        ("workload=range(1,3)", "workload is a config group"),
        (
            "workload=decode,vitt",
            r"workload=decode,vitt: unknown workload 'vitt' \(known: decode, prefill, vit\)",
        ),
        ("workload=glob(x*)", r"no workload is like that \(known: decode"),
        ("a=glob(*)", "glob is for config groups, and this is none"),
        ("a=range(5,5)", r"a=range\(5,5\): the range holds no number"),
        ("a=range(1,5,0)", "a step that is not 0"),
        ("a=interval(2,1)", "the lower one first, got 2.0 and 1.0"),
        ("a=tag(log,interval(0,1))", "log needs ends above 0, got 0.0"),
        ("a=tag(log,range(2,9,2))", "in steps of 1"),
        ("a=tag(lgo,interval(1,2))", r"unknown tag 'lgo' \(known: int, log\)"),
        ("a=tag(log,choice(1,2))", "tags are for range and interval"),
        ("a=tag(int,interval(0.5,2))", "whose ends are no whole numbers"),
        ("a=tag(int,range(0,1,0.5))", "of a range with fractions"),
        ("a=choice(", r"a=choice\(: not an override in Hydra's grammar"),
    ],
)
def test_errors(line: str, message: str) -> None:
    """One line names the override and what is expected."""
    with pytest.raises(ConfigError, match=message) as error:
        read(line)
    assert "\n" not in str(error.value)


def test_defaults() -> None:
    """The direction is that of the objective, and minimize where there is none."""
    sweep = read_settings({"sampler": {"name": "tpe", "seed": 0, "group": None}}, None)
    assert (sweep.sampler, sweep.directions) == (Sampler(name="tpe"), ("minimize",))
    assert (sweep.limits.trials, sweep.limits.batch) == (20, 8)
    assert read_settings({}, "maximize").directions == ("maximize",)
    assert read_settings({"direction": "minimize"}, "maximize").directions == ("minimize",)
    assert read_settings({"direction": ["minimize", "maximize"]}, None).directions == ("minimize", "maximize")


@pytest.mark.parametrize(
    ("given", "sampler"),
    [
        ("cmaes", Sampler(name="cmaes")),
        ({"name": "gp", "seed": None}, Sampler(name="gp", seed=None)),
        ({"name": "tpe", "n_startup_trials": 3}, Sampler(settings={"n_startup_trials": 3})),
        ({"_target_": "optuna.samplers.NSGAIISampler", "seed": 1}, Sampler(name="nsgaii", seed=1)),
    ],
)
def test_sampler(given, sampler: Sampler) -> None:
    """By name alone, with settings, or by the class that the published plugin's yamls name."""
    assert read_settings({"sampler": given}, None).sampler == sampler


def test_jobs_are_a_batch() -> None:
    """The published plugin calls it n_jobs."""
    assert read_settings({"n_jobs": 3}, None).limits.batch == 3


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"batch": 2, "n_jobs": 2}, "got batch and n_jobs, which mean the same; give batch"),
        ({"batch": 0}, "hydra.sweeper.batch: got 0, expected more than 0"),
        ({"n_trials": 0}, "hydra.sweeper.n_trials: got 0"),
        ({"timeout": -1.0}, "hydra.sweeper.timeout: got -1.0"),
        ({"n_trials": "many"}, r"hydra.sweeper: Expected `int`, got `str` - at `\$.n_trials`"),
        ({"max_failure_rate": 1.5}, "max_failure_rate: got 1.5, expected a share from 0 to 1"),
        ({"direction": "up"}, r"hydra.sweeper: .*direction.* \(expected minimize, maximize or a list"),
        ({"direction": []}, "hydra.sweeper.direction: got an empty list"),
        ({"sampler": {"seed": "x"}}, "hydra.sweeper.sampler.seed: got 'x', expected a whole number or null"),
        (
            {"sampler": {"_target_": "my.Sampler"}},
            "_target_: got my.Sampler, expected one of optuna.samplers.Brute",
        ),
        ({"custom_search_space": "a.b"}, "custom_search_space: not taken here"),
    ],
)
def test_errors_of_sweeper_settings(plain, message: str) -> None:
    """One line names the key."""
    with pytest.raises(ConfigError, match=message):
        read_settings(plain, None)
