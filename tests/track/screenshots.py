"""Pictures of the MLflow UI over a real store, for the README: the latest tracked experiment in, PNGs out.

python -m tests.track.screenshots [--root artifacts] [--task "softmax · llama3_8b_decode"] [--out FOLDER]
"""

import argparse
import sys
from pathlib import Path

from pipeline.track import mlflow_ui
from pipeline.track import mlflow_ui as ui
from tests.track import browser
from tests.track.mlflow_server import serving

PARALLEL = ".parcoords .dimension .label"
LINES = ".js-plotly-plot .scatterlayer .js-line"


def main(arguments: list[str]) -> int:
    """Open the pages of one task, of the searches, of the winners and of the absent targets."""
    parser = argparse.ArgumentParser(prog="python -m tests.track.screenshots", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    parser.add_argument("--task", default="", help="beginning of the task's title; the first task without it")
    parser.add_argument("--out", type=Path, default=Path("artifacts/screenshots/real"), help="folder")
    options = parser.parse_args(arguments)
    tracked, missing = ui.latest(options.root), browser.missing()
    if missing or tracked is None:
        print(f"error: {missing or 'nothing was tracked yet'}", file=sys.stderr)
        return 1
    task = next(task for task in tracked.links.tasks if task.title.startswith(options.task))
    pages = {
        "mlflow_compare": (task.compare, ".parcoords"),
        "mlflow_charts": (task.charts, PARALLEL if task.differ else ".js-plotly-plot .point"),
        "mlflow_searches": (tracked.links.searches, LINES),
        "mlflow_sweep": (tracked.links.sweep, "main"),
        "mlflow_winners": (tracked.links.charts, ".js-plotly-plot .bars .point"),
        "mlflow_targets": (tracked.links.compiled, ".ag-row"),
    }
    with serving(options.root) as base, browser.browser() as driver:
        for name, (address, drawn) in pages.items():
            if address is not None:
                browser.open_page(driver, address.replace(mlflow_ui.base(tracked.uri), base))
                browser.wait_for(lambda drawn=drawn: driver.find_elements("css selector", drawn), drawn)
                print(browser.picture(driver, options.out / f"{name}.png"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
