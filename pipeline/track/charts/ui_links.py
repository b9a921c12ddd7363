"""Addresses of the UI's pages: ids in, links out.

The UI's plain experiment page opens on a view for language models that hides runs, so links name the view.
"""

import json
import urllib.parse
from collections.abc import Sequence
from typing import Literal

from pipeline.track.stores.mlflow_store import is_server

HOST = "127.0.0.1"
PORT = 5000
"""The one place that knows where `make ui` listens."""
ADDRESS_LENGTH = 8000
"""Characters that servers and terminals take in an address; a compare page names every run."""

_VIEW = {"workflowType": "machine_learning"}


def base(uri: str) -> str:
    """Address of the UI for a store: the server's own, or the one that `make ui` starts."""
    return uri.rstrip("/") if is_server(uri) else f"http://{HOST}:{PORT}"


def runs(ui: str, experiment: str, *, view: str, mode: Literal["CHART", "TABLE"]) -> str:
    """The runs of an experiment in a shared view, as charts or as a table."""
    query = {**_VIEW, "compareRunsMode": mode, "viewStateShareKey": view}
    return f"{ui}/#/experiments/{experiment}/runs?{urllib.parse.urlencode(query)}"


def compare(ui: str, experiment: str, names: Sequence[str]) -> tuple[str, int]:
    """The compare page of the first of these runs that an address can hold, and how many those are."""
    count = len(names)
    while True:
        query = f"runs={_list(names[:count])}&experiments={_list([experiment])}"
        address = f"{ui}/#/compare-runs?{query}"
        if len(address) <= ADDRESS_LENGTH or count <= 1:
            return address, count
        count = min(count - 1, count * ADDRESS_LENGTH // len(address))


def run(ui: str, experiment: str, identity: str) -> str:
    """The page of one run."""
    return f"{ui}/#/experiments/{experiment}/runs/{identity}?{urllib.parse.urlencode(_VIEW)}"


def models(ui: str) -> str:
    """The model registry."""
    return f"{ui}/#/models"


def model(ui: str, name: str, version: str) -> str:
    """The page of one version of a registered model."""
    return f"{ui}/#/models/{urllib.parse.quote(name)}/versions/{version}"


def _list(names: Sequence[str]) -> str:
    return urllib.parse.quote(json.dumps(list(names), separators=(",", ":")))
