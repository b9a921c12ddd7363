"""A headless Chromium that opens pages of the MLflow UI, and what it sees there."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
PATIENCE = 60.0  # seconds for a page to draw its charts on a busy machine

# MLflow opens its assistant over the page on a first visit.
NO_ASSISTANT = """
try {
  localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true')
  localStorage.setItem('mlflow.assistant.panelOpen_v1', 'false')
} catch (error) {}
"""


def missing() -> str | None:
    """Why no browser can be driven here; None where one can."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed: pip install -e '.[dev]'"
    if not any(map(shutil.which, CHROMIUM)):
        return "no Chromium: apt-get install chromium chromium-driver"
    if not shutil.which(DRIVER):
        return "no chromedriver: apt-get install chromium-driver"
    return None


@contextmanager
def browser(width: int = 1600, height: int = 1100) -> Iterator[Any]:
    """A browser that ends with the block; nothing is downloaded for it."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, CHROMIUM)))
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        f"--window-size={width},{height}",
    ):
        options.add_argument(argument)
    service = webdriver.ChromeService(executable_path=shutil.which(DRIVER))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": NO_ASSISTANT})
        yield driver
    finally:
        driver.quit()


def open_page(driver: Any, address: str) -> None:
    """A fresh load, also where only what follows # differs."""
    driver.get("about:blank")
    driver.get(address)


def axes(driver: Any) -> list[str]:
    """Titles of the axes of a parallel-coordinates plot, from left to right.

    The compare page draws it with Plotly, the chart page with a library of its own.
    """
    return texts(driver, ".parcoords .axis-title, .parcoords .dimension .label")


def texts(driver: Any, selector: str) -> list[str]:
    """Text of each matching element."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
    return list(driver.execute_script(script, selector))


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """The first true value of the condition."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.2)
    raise AssertionError(f"{what}: not seen within {PATIENCE:.0f} s")


def outside(driver: Any, base: str) -> list[str]:
    """What the page asked other hosts for."""
    script = "return performance.getEntriesByType('resource').map(e => e.name)"
    inside = (base, "data:", "blob:", "about:", "chrome:")
    return [name for name in driver.execute_script(script) if not name.startswith(inside)]


def picture(driver: Any, path: Path) -> Path:
    """Keep a screenshot once lines and labels stand still."""
    time.sleep(1.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    assert driver.save_screenshot(str(path))
    return path


def coloured(driver: Any, selector: str) -> int:
    """How many pixels of an element are neither grey nor white: what its lines are drawn with."""
    import io

    import numpy as np
    from PIL import Image

    element = driver.find_element("css selector", selector)
    pixels = np.asarray(Image.open(io.BytesIO(element.screenshot_as_png)).convert("RGB")).astype(int)
    return int((pixels.max(axis=2) - pixels.min(axis=2) > 60).sum())
