"""The settings of strategies in a search's yaml: checked by the strategies, complete in the record."""

import pytest

from pipeline.plan.config.groups import schema_of
from pipeline.plan.config.options import to_search
from pipeline.plan.config.plain_options import applicable
from pipeline.records.errors import ConfigError

PLAIN = {"name": "mine", "description": "", "strategy": "ablation", "rounds": 2, "variants_per_round": 4}
WHERE = "conf/search/mine.yaml"


def test_defaults_are_part_of_the_search() -> None:
    """Of the strategy and of the one that it wraps; the same search with and without them written down."""
    search = to_search(PLAIN, WHERE)
    assert search.settings["ablation"] == {"search": "surrogate"}
    assert search.settings["surrogate"]["startup"] == 8
    assert to_search({**PLAIN, "ablation": None, "surrogate": {"startup": 8}}, WHERE) == search


def test_another_wrapped_strategy() -> None:
    """Its settings come in, those of the default go."""
    search = to_search({**PLAIN, "ablation": {"search": "evolution"}}, WHERE)
    assert set(search.settings) == {"ablation", "evolution"}


def test_a_setting_that_the_yaml_leaves_out() -> None:
    """It is overridden like any other key; the known keys are those of the yaml, with the strategy's name."""
    plain = {**PLAIN, "strategy": "successive_halving", "successive_halving": {"rungs": 3}}
    line = "search.successive_halving.shrink={M: 4}"
    assert applicable(line, "search", plain) == f"++{line}"
    known = schema_of("search", plain).__struct_fields__
    assert "successive_halving" in known and "settings" not in known


def test_a_strategy_without_settings() -> None:
    """It has none in the record, and accepts none."""
    assert to_search({**PLAIN, "strategy": "grid"}, WHERE).settings == {}
    with pytest.raises(ConfigError, match="conf/search/mine.yaml: unknown key 'grid'"):
        to_search({**PLAIN, "strategy": "grid", "grid": {}}, WHERE)
