"""MLflow's UI: it is served over the embedded store on loopback, and links lead to its pages.

If results went to an MLflow server, its own UI shows them: its address is printed and nothing is started.
The UI's plain experiment page opens on a view for language models that hides runs, so links name the view.
"""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pipeline.records import environment
from pipeline.records.errors import TrackingError
from pipeline.records.record import read_record
from pipeline.records.results.tracked import TaskLinks, Tracked, TrackOutput
from pipeline.sandbox.processes.supervisor import die_with_parent
from pipeline.track.stores.mlflow_store import EMBEDDED, backend_uri, is_server, make_embedded

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


def within(address: str) -> str:
    """The same page of the UI in which the link stands, wherever that UI is served."""
    return address[address.index("#/") :]


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


TASKS_SHOWN = 12
EARLIER_READ = 100
"""Runs in which tasks are looked for."""


def start(*, port: int, root: Path) -> int:
    """Print the links and serve until Ctrl-C; the server's exit code.

    Raises
    ------
    TrackingError
        The port is taken.
    """
    tracked = latest(root)
    if tracked and is_server(tracked.uri):
        print(overview(tracked, tracked.uri, root))
        return 0
    require_free(port)
    make_embedded(root)
    ui = f"http://{HOST}:{port}"
    print(
        f"{overview(tracked, ui, root)}\nThe pages open in about ten seconds; Ctrl-C ends the UI.", flush=True
    )
    environment.mlflow_server_defaults()
    return _serve(server_command(root, port))


def _serve(command: list[str]) -> int:
    """Until it ends, or Ctrl-C ends it: by SIGTERM, because it would print a traceback at SIGINT."""
    server = subprocess.Popen(
        command,
        start_new_session=True,
        preexec_fn=lambda: die_with_parent(signal.SIGTERM),  # noqa: PLW1509  (no threads here)
    )
    try:
        return server.wait()
    except KeyboardInterrupt:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
        return 0


def server_command(root: Path, port: int) -> list[str]:
    """The server: one worker, its own artifacts next to those of the runs, warnings only."""
    uri, artifacts = backend_uri(EMBEDDED, root), (root / "mlflow" / "artifacts").resolve()
    return [
        *(sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port)),
        *("--backend-store-uri", uri, "--registry-store-uri", uri, "--artifacts-destination", str(artifacts)),
        *("--workers", "1", "--uvicorn-opts", "--log-level warning --no-access-log"),
    ]


def latest(root: Path) -> Tracked | None:
    """What was tracked last."""
    return next(_all_tracked(root), None)


def _all_tracked(root: Path) -> Iterator[Tracked]:
    """What was tracked, the latest first."""
    outputs = sorted(root.glob("track/*/tracked.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    results = (read_record(path, TrackOutput).result for path in outputs)
    return (result for result in results if isinstance(result, Tracked))


def _earlier(root: Path, tracked: Tracked) -> list[TaskLinks]:
    """Tasks of earlier runs in the same store, the latest first; a page that a later run made anew is its."""
    pages = {task.charts for task in tracked.links.tasks}
    found = []
    for each in itertools.islice(_all_tracked(root), EARLIER_READ):
        for task in each.links.tasks if each.uri == tracked.uri else ():
            if task.charts not in pages:
                pages.add(task.charts)
                found.append(task)
    return found


def overview(tracked: Tracked | None, ui: str, root: Path) -> str:
    """Links for the terminal; `root`: the folder of all artifacts."""
    if tracked is None and (root / "submissions").is_dir():
        return f"No run was tracked yet, but submissions of candidates: {ui}/#/experiments"
    if tracked is None:
        return f"Nothing was tracked yet: `make run` does. {ui}"
    found = tracked.links
    lines = [f"  winners              {found.charts}"] if found.charts else []
    if found.runs:
        lines.append(f"  all measured runs    {found.runs}")
    if found.compiled:
        lines.append(f"  facts by target      {found.compiled}")
    if found.searches:
        lines.append(f"  best so far by round {found.searches}")
    if found.sweeps:
        lines.append(f"  all sweeps           {found.sweeps}")
    lines += [f"  this sweep, report   {found.sweep}", f"  models               {found.models}"]
    if found.tasks:
        matter = any(task.differ for task in found.tasks)
        lines.append("Which tunables matter, task by task:" if matter else "Variants, task by task:")
        lines += _task_lines(found.tasks, "in the report")
    earlier = _earlier(root, tracked)
    if earlier:
        lines.append("The same for tasks of earlier runs, the latest first:")
        lines += _task_lines(earlier, "in the reports of these runs")
    return "\n".join(lines).replace(base(tracked.uri), ui)


def _task_lines(tasks: Sequence[TaskLinks], elsewhere: str) -> list[str]:
    shown, more = tasks[:TASKS_SHOWN], len(tasks) - TASKS_SHOWN
    width = max(len(task.title) for task in shown)
    lines = [f"  {task.title:{width}}  {task.charts}" for task in shown]
    return [*lines, *([f"  … and {more} more {elsewhere}"] if more > 0 else [])]


def require_free(port: int) -> None:
    """Say so in one line where something else listens."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise TrackingError(
                f"port {port} on {HOST} is taken ({error.strerror}): "
                f"end what listens there, or `kernelmill ui --port {port + 1}`"
            ) from error
