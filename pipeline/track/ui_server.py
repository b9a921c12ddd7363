"""The MLflow UI over the embedded store, on loopback, with links to the views of the last run.

If results went to an MLflow server, its own UI holds them: its address is printed, nothing is started.
"""

import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

from pipeline.records import environment
from pipeline.records.errors import TrackingError
from pipeline.records.record import read_record
from pipeline.records.results.tracked import Tracked, TrackOutput
from pipeline.track.charts import ui_links
from pipeline.track.stores.mlflow_store import EMBEDDED, backend_uri, is_server, make_embedded

TASKS_SHOWN = 12


def start(*, port: int, root: Path) -> None:
    """Print the links and become the server, which does not return.

    Raises
    ------
    TrackingError
        The port is taken.
    """
    tracked = latest(root)
    if tracked and is_server(tracked.uri):
        print(overview(tracked, tracked.uri))
        return
    require_free(port)
    make_embedded(root)
    ui = f"http://{ui_links.HOST}:{port}"
    print(f"MLflow UI at {ui} in about ten seconds; Ctrl-C ends it.\n{overview(tracked, ui)}", flush=True)
    environment.mlflow_server_defaults()
    serve(server_command(root, port))


def serve(command: list[str]) -> NoReturn:
    """Become the server: Ctrl-C and signals reach it directly."""
    os.execv(command[0], command)


def server_command(root: Path, port: int) -> list[str]:
    """The server: one worker, its own artifacts beside those of the runs, warnings only."""
    uri, artifacts = backend_uri(EMBEDDED, root), (root / "mlflow" / "artifacts").resolve()
    return [
        *(sys.executable, "-m", "mlflow", "server", "--host", ui_links.HOST, "--port", str(port)),
        *("--backend-store-uri", uri, "--registry-store-uri", uri, "--artifacts-destination", str(artifacts)),
        *("--workers", "1", "--uvicorn-opts", "--log-level warning --no-access-log"),
    ]


def latest(root: Path) -> Tracked | None:
    """What was tracked last."""
    outputs = sorted(root.glob("track/*/tracked.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    results = (read_record(path, TrackOutput).result for path in outputs)
    return next((result for result in results if isinstance(result, Tracked)), None)


def overview(tracked: Tracked | None, ui: str) -> str:
    """Links for the terminal."""
    if tracked is None:
        return "Nothing was tracked yet: `make run` does."
    found = tracked.links
    lines = [f"  winners              {found.charts}"]
    if found.compiled:
        lines.append(f"  facts by target      {found.compiled}")
    if found.searches:
        lines.append(f"  best so far by round {found.searches}")
    lines += [f"  sweep and report     {found.sweep}", f"  models               {found.models}"]
    if found.tasks:
        matter = any(task.differ for task in found.tasks)
        lines.append("Which tunables matter, task by task:" if matter else "Variants, task by task:")
        width = max(len(task.title) for task in found.tasks)
        lines += [f"  {task.title:{width}}  {task.charts}" for task in found.tasks[:TASKS_SHOWN]]
        more = len(found.tasks) - TASKS_SHOWN
        lines += [f"  … and {more} more in the report"] if more > 0 else []
    return "\n".join(lines).replace(ui_links.base(tracked.uri), ui)


def require_free(port: int) -> None:
    """Say so in one line where something else listens."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ui_links.HOST, port))
        except OSError as error:
            raise TrackingError(
                f"port {port} on {ui_links.HOST} is taken ({error.strerror}): "
                f"end what listens there, or `kernelmill ui --port {port + 1}`"
            ) from error
