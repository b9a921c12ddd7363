import html.parser
import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from pipeline.records.layout import asked_path
from pipeline.records.outcome import Outcome
from pipeline.records.record import to_json
from pipeline.records.results.tracked import TaskLinks, Tracked, TrackedCounts, TrackingLinks, TrackOutput
from pipeline.report import winner_selection
from pipeline.report.page.rendering import embedded
from pipeline.stages import aggregate, report
from pipeline.store.atomic import write_atomic
from tests.report.sample_run import cases, write_run

LOADING = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("use", "href"),
}


class Page(html.parser.HTMLParser):
    """What a page loads, links to, and says."""

    def __init__(self, text: str) -> None:
        """Parse at once."""
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self.data: str = ""
        self._inside: list[str] = []
        self._kind = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):  # noqa: D102
        values = dict(attrs)
        self.loaded += [value for name, value in attrs if (tag, name) in LOADING]
        self.styles += [values["style"]] if "style" in values else []
        if tag == "a":
            self.links.append(values["href"])
        if tag in ("script", "style"):
            self._inside.append(tag)
            self._kind = values.get("type", "")

    def handle_endtag(self, tag):  # noqa: D102
        if self._inside and tag == self._inside[-1]:
            self._inside.pop()

    def handle_data(self, data):  # noqa: D102
        if not self._inside:
            self.words.append(data)
        elif self._inside[-1] == "style":
            self.styles.append(data)
        elif self._kind == "application/json":
            self.data += data

    @property
    def text(self) -> str:
        """All that is read, blanks joined."""
        return " ".join(" ".join(self.words).split())


def make(root: Path, *more: str) -> Path:
    """Aggregate and report of the run under `root`."""
    folder, out = root / "aggregate" / "sample", root / "report" / "sample" / "report.html"
    common = ["--spec", str(root / "spec.json"), "--root", str(root)]
    assert aggregate.main([*common, "--out", str(folder / "summary.json")]) == 0
    assert report.main([*common, "--aggregate", str(folder), "--out", str(out), *more]) == 0
    return out


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    """The report of the made-up run."""
    root = tmp_path_factory.mktemp("report") / "artifacts"
    write_run(root)
    return make(root)


@pytest.fixture(scope="module")
def page(path) -> Page:
    """The same, parsed."""
    return Page(path.read_text())


def test_loads_nothing(page):
    """No script, style, image or font comes from anywhere but the page itself."""
    assert [value for value in page.loaded if not value.startswith("data:")] == []
    assert not re.search(r"@import|url\((?!['\"]?data:)", "".join(page.styles))


def test_the_page_is_small(path):
    """All its charts included, a page with dozens of variants stays far below 1 MB."""
    assert len(path.read_bytes()) < 0.5e6


def test_links_lead_to_files(page, path):
    """Every relative link leads to a file that is there: logs, tables."""
    relative = [link for link in page.links if not link.startswith(("#", "http"))]
    assert any(link.endswith("log.txt") for link in relative)
    assert all((path.parent / link).exists() for link in relative)


def test_anchors_exist(page, path):
    """Every link inside the page has its target."""
    text = path.read_text()
    assert all(f'id="{link[1:]}"' in text for link in page.links if link.startswith("#"))


def test_winners_and_what_was_not_measured(page):
    """The page says who won, by how much, and why the others have no time."""
    assert "1.93×" in page.text and "1.91 – 1.96" in page.text
    assert "not measured: device unavailable" in page.text and "12 compile error" in page.text
    assert "weak check: zeros would have passed too" in page.text


def test_mean_over_many_workloads(tmp_path, page, monkeypatch):
    """Where a kernel was measured on many workloads, its mean comes before the single ones."""
    assert "Over all workloads" not in page.text
    monkeypatch.setattr(winner_selection, "MANY", 1)
    write_run(tmp_path)
    text = Page(make(tmp_path).read_text()).text
    assert re.search(r"Over all workloads .* softmax float32 cpu eager PyTorch \d\S*× .* Each of them", text)


def test_diagnosis_of_the_winners(page, path):
    """Each winner's findings with what is left to gain; estimates are marked, and counts stand below."""
    assert "Memory-bound: 49.2 GB/s, 77 % of the bandwidth measured for this working set." in page.text
    assert "at most 1.30×" in page.text
    assert "Estimate: memory-bound at best." in page.text
    assert '<td class="estimate">Estimate: memory-bound' in path.read_text()


def test_error_of_the_bounds(page):
    """Measured over estimated time, per task and by what the bound is from."""
    assert "measured ceilings and the variant's code" in page.text
    section = page.text[page.text.index("Accuracy of the bounds") :]
    assert "declared peaks" not in section[: section.index("Speed-ups")]  # no GPU was measured


def test_every_row_has_its_findings(page):
    """Codes in the variants table, each with its sentence once in the page's data."""
    variants = json.loads(page.data)["variants"]
    assert any(column["name"] == "findings" for column in variants["shown"])
    findings = variants["findings"]
    assert len({finding["sentence"] for finding in findings}) == len(findings)
    for outcome, places in zip(variants["columns"]["outcome"], variants["columns"]["findings"], strict=True):
        if outcome == "compile_error":
            assert places is None
        elif outcome == "passed":
            assert findings[places[0]]["basis"] == "measured"


def test_failures_in_full(page):
    """Reasons are not cut."""
    assert (
        "y[17, 3] = 0.25, expected 0.0312: 31 x the bound, rows=1 cols=4093, seed 3, one_signed" in page.text
    )
    assert "compile error in compile: 20 variants" in page.text


def test_reasons_that_differ_in_numbers_share_a_row(tmp_path):
    """Hundreds of timeouts after 30.1, 30.2 … seconds are one cause; every text can still be read."""
    failures = {n: ("verify", Outcome.TIMEOUT, f"no answer within {30 + n / 10} s") for n in range(4)}
    write_run(tmp_path, [msgspec.structs.replace(cases()[1], failures=failures)])
    text = Page(make(tmp_path).read_text()).text
    assert "3 texts more, other numbers" in text
    assert all(f"no answer within {30 + n / 10} s" in text for n in range(4))


def test_interpreter_is_said_plainly(page):
    """Where verify ran in the interpreter the page says that the binary did not run."""
    assert "Triton interpreter , reduced shapes" in page.text
    assert "the binary did not run" in page.text


def test_all_targets_have_static_facts(page):
    """All seven GPU targets are in the table of each kernel."""
    for target in ("h200", "h100", "a100", "b200", "rtx4090", "mi300x", "mi355x"):
        assert page.text.count(target) >= 3


def test_data_is_valid_and_short(page):
    """What the scripts read is JSON with a row per variant, without NaN."""
    data = json.loads(page.data)
    assert data["variants"]["rows"] == 390
    assert {len(values) for values in data["variants"]["columns"].values()} == {390}
    assert {roof["hardware"] for roof in data["roofs"]} == {"cpu"}


def test_roofline_by_level(page):
    """Each measured cache is a line of its own, each point says what bounds it and which level holds it."""
    data = json.loads(page.data)
    for roof in data["roofs"]:
        caches = [(cache["name"], cache["bandwidth"]) for cache in roof["caches"]]
        assert caches == [("L1", 2.6e11), ("L2", 1.2e11), ("L3", 6.4e10)]
    columns = data["variants"]["columns"]
    for name in ("bound", "memory_level"):
        measured = [seconds is not None for seconds in columns["median_seconds"]]
        assert [value is not None for value in columns[name]] == measured
    assert "memory-bound (L3), " in page.text


def test_data_cannot_end_its_element():
    """Text of a kernel cannot break out of the script element that holds the data."""
    text = embedded({"reason": "</script><script>alert(1)</script>", "line": "\u2028"})
    assert "<" not in text and "\u2028" not in text
    assert json.loads(text)["reason"].startswith("</script>")


def test_reasons_are_escaped(tmp_path):
    """A compiler's message is shown as text, whatever is in it."""
    nasty = "error: <img src=x onerror=alert(1)></script> & 'quotes'"
    case = msgspec.structs.replace(cases()[0], failures={0: ("compile", Outcome.COMPILE_ERROR, nasty)})
    write_run(tmp_path, [case])
    parsed = Page(make(tmp_path).read_text())
    assert nasty in parsed.text
    assert [value for value in parsed.loaded if not value.startswith("data:")] == []


def test_command_names_the_tasks(page):
    """The command to reproduce names what was chosen, where nothing is known of what was asked for."""
    assert "kernelmill run experiment=sample kernel=softmax,rms_norm,matmul" in page.text
    assert "hardware=cpu,h200,h100,a100,b200,rtx4090,mi300x,mi355x optimization=full search=grid" in page.text


def test_command_is_what_was_asked_for(tmp_path):
    """With every override, job by job."""
    jobs = (("kernel=softmax", "search.rounds=4", "kernel.description='two words'"), ("kernel=rms_norm",))
    write_run(tmp_path, cases()[:1])
    asked_path(tmp_path / "spec.json").write_bytes(to_json(jobs))
    text = Page(make(tmp_path).read_text()).text
    assert "kernelmill run kernel=softmax search.rounds=4 'kernel.description='" in text
    assert "kernelmill run kernel=rms_norm" in text


def test_nothing_measured(tmp_path):
    """Without one measurement the page has no winner, no speed-up and no effect, and says so."""
    write_run(tmp_path, [case for case in cases() if case.hardware == "h200"])
    parsed = Page(make(tmp_path).read_text())
    assert "Nothing was measured in this run, so there is no winner." in parsed.text
    assert "No speed-ups: nothing was measured." in parsed.text
    assert json.loads(parsed.data)["samples"] == {}


def test_nothing_failed(tmp_path):
    """A run without failures says that, too."""
    write_run(tmp_path, [cases()[1]])
    parsed = Page(make(tmp_path).read_text())
    assert "No variant failed." in parsed.text
    assert "No GPU target is part of this experiment" in parsed.text


def test_links_to_the_tracking_ui(tmp_path):
    """Where results were logged before, the page links to the UI; the links load nothing."""
    charts = "http://127.0.0.1:5000/#/experiments/1/runs"
    links = TrackingLinks(
        charts=charts,
        compiled=None,
        sweep=f"{charts}/s",
        models=f"{charts}/m",
        tasks=(
            TaskLinks(task="t", title="softmax", runs=3, charts=charts, compare=f"{charts}/c", compared=3),
        ),
    )
    tracked = Tracked(
        uri="sqlite",
        experiments={},
        sweep="s",
        measured=TrackedCounts(),
        compiled=TrackedCounts(),
        champions=(),
        links=links,
        seconds=1,
    )
    write_run(tmp_path, [cases()[1]])
    output = TrackOutput(experiment="sample", result=tracked)
    write_atomic(tmp_path / "tracked.json", msgspec.json.encode(output))
    parsed = Page(make(tmp_path, "--tracked", str(tmp_path / "tracked.json")).read_text())
    assert charts in parsed.links and "compare softmax" in parsed.text
    assert [value for value in parsed.loaded if not value.startswith("data:")] == []


@pytest.mark.slow
@pytest.mark.browser
def test_opens_from_disk_without_network(path, browser):
    """In a real browser: no network, nothing on the console, all plots drawn, the table works."""
    browser.get(path.as_uri())
    drawn = (
        "return [...document.querySelectorAll('.plot')]"
        ".map(plot => plot.querySelectorAll('svg[viewBox] path, svg[viewBox] line').length > 0)"
    )
    assert browser.execute_script(drawn) == [True] * 4
    assert (
        browser.execute_script("return document.querySelectorAll('#variants-table tbody tr').length") == 100
    )
    search = browser.find_element("id", "variants-search")
    search.send_keys("softmax wrong_value")
    assert browser.find_element("id", "variants-count").text == "1 of 390 variants"
    assert browser.get_log("browser") == []
    messages = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    asked = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert path.as_uri() in asked
    assert [url for url in asked if url.startswith(("http", "ws", "ftp"))] == []


@pytest.fixture
def browser(tmp_path):
    """Headless Chromium; every name resolves to nothing."""
    driver, binary = shutil.which("chromedriver"), shutil.which("chromium")
    if not (driver and binary):
        pytest.skip("chromium and chromedriver are not installed")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1280,2000",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    session = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield session
    session.quit()
