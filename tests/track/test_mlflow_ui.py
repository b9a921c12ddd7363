"""Links to pages of MLflow's UI."""

import json
import urllib.parse

from pipeline.track import mlflow_ui


def _query(address: str) -> dict[str, list[str]]:
    return urllib.parse.parse_qs(address.split("?", 1)[1])


def test_the_embedded_store_is_shown_by_make_ui() -> None:
    """Links point to where `make ui` listens."""
    assert mlflow_ui.base("sqlite:////x/mlflow.db") == f"http://127.0.0.1:{mlflow_ui.PORT}"


def test_a_server_shows_itself() -> None:
    """Links point to the server that holds the runs."""
    assert mlflow_ui.base("https://mlflow.example.org/") == "https://mlflow.example.org"


def test_the_compare_page_names_every_run() -> None:
    """Runs and experiment arrive as JSON lists."""
    address, count = mlflow_ui.compare("http://ui", "7", ["a", "b"])
    assert count == 2
    assert json.loads(_query(address)["runs"][0]) == ["a", "b"]
    assert json.loads(_query(address)["experiments"][0]) == ["7"]


def test_a_compare_page_of_too_many_runs_holds_the_first_ones() -> None:
    """An address has a limit; the first runs are the fastest ones."""
    names = [f"{number:032x}" for number in range(5000)]
    address, count = mlflow_ui.compare("http://ui", "7", names)
    assert len(address) <= mlflow_ui.ADDRESS_LENGTH
    assert 100 < count < 5000
    assert json.loads(_query(address)["runs"][0]) == names[:count]


def test_runs_open_as_charts_in_the_prepared_view() -> None:
    """Not on the view for language models, which hides runs."""
    query = _query(mlflow_ui.runs("http://ui", "7", view="abc", mode="CHART"))
    assert query == {
        "workflowType": ["machine_learning"],
        "compareRunsMode": ["CHART"],
        "viewStateShareKey": ["abc"],
    }
