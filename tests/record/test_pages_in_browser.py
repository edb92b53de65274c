"""The report's pages in a real browser: opened from disk, without a network, with the worst that tools return."""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.scripted import ask, scripted
from tests.record.test_ledger import entry
from thena_core import Report, ToolDefinition
from thena_core.demo.app import build_demo
from thena_core.record.ledger import enter
from thena_core.record.report import document, write
from thena_core.record.tree import Node, Recorder

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--disable-component-update", "--disable-sync")  # fmt: skip
HOSTILE = {
    "script": "</script><script>document.title = 'run'; window.ran = true</script><img src=x onerror='window.ran = true'>",
    "comment": "<!--<script>window.ran = true</script>",
    "link": "[here](javascript:window.ran=true) javascript:window.ran=true",
    "long": "word " * 20_000,
    "one-word": "x" * 100_000,
    "right-to-left": "\u202eevil\u202c \u05d0\u05d1\u05d2 \u0645\u0631\u062d\u0628\u0627 \u2066x",
    "control": "a\0b\x1b[31mred\x1b[0m\x07\x08 \ufffe \ud800",
    "slot": "__THENA_DOCUMENT__ ${x} {{y}} \u2028 \u2029",
}

pytestmark = pytest.mark.browser


@dataclass
class Browser:
    """A browser and the thread that it belongs to: Playwright keeps an event loop running in it."""

    thread: ThreadPoolExecutor
    chromium: Any = None


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start the browser once; skip where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if BROWSER is None:
        pytest.skip("there is no browser on this machine: apt-get install chromium")
    with ThreadPoolExecutor(1) as thread:
        started = thread.submit(lambda: playwright.sync_playwright().start()).result()
        chromium = thread.submit(started.chromium.launch, executable_path=BROWSER, args=list(QUIET)).result()
        yield Browser(thread, chromium)
        thread.submit(chromium.close).result()
        thread.submit(started.stop).result()


def in_browser(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test in the browser's thread."""

    @functools.wraps(test)
    def there(**given: Any) -> None:
        given["browser"].thread.submit(test, **given).result()

    return there


class Page:
    """An open page, with whatever went wrong on it."""

    def __init__(self, browser: Browser, file: Path, width: int = 1600, scheme: str = "light") -> None:
        self.problems: list[str] = []
        self.page = browser.chromium.new_page(
            viewport={"width": width, "height": 1000 if width > 800 else 844}, color_scheme=scheme
        )
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        self.page.on("request", lambda request: request.url.startswith("file://") or self.problems.append(request.url))
        self.page.goto(file.as_uri())

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, *_: object) -> None:
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        self.page.close()
        assert not self.problems
        assert wide <= 0, "the page scrolls sideways"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run whose tools returned the worst."""
    folder = tmp_path_factory.mktemp("hostile")
    tools = [
        ToolDefinition(name, "d", None, lambda text=text: text, max_output_chars=200_000)
        for name, text in HOSTILE.items()
    ]
    app = scripted(tools, *map(ask, HOSTILE), observed=False, report=Report(folder=folder))
    assert asyncio.run(app.run(run_id="hostile")).result is not None
    return folder / "hostile" / "index.html"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the demo over a small folder."""
    folder = tmp_path_factory.mktemp("demo")
    here = os.getcwd()  # noqa: PTH109 - to come back to
    os.chdir(tmp_path_factory.mktemp("current"))
    try:
        for number in range(40):
            (folder / f"file_{number}.py").write_text("def main() -> None:\n    print('entry point')\n" * 50)
        (folder / "README.md").write_text("# A project\nThe entry point is main.\n")
        path = asyncio.run(build_demo(folder, log=False).run("Where is the entry point?")).report_path
        assert path is not None
        return path.resolve() / "index.html"
    finally:
        os.chdir(here)


@pytest.mark.behaviour("O06")
@pytest.mark.parametrize("width", [1600, 390])
@in_browser
def test_hostile_output_is_shown_and_runs_nothing(browser: Browser, hostile: Path, width: int) -> None:
    """Each step of a run that returned markup, control signs and very long texts opens; nothing of it runs."""
    with Page(browser, hostile, width) as page:
        for name, text in HOSTILE.items():
            page.locator("#search").fill(name)
            page.locator("#search").press("Enter")
            shown = page.locator("#details").inner_text()
            assert name in shown
            if len(text) > 1_500:
                page.get_by_role("button", name="Show all").click()
                assert len(page.locator("#details pre").last.inner_text()) > 90_000
        assert page.evaluate("window.ran") is None
        assert "hostile" in page.title()
        assert "\\u202e" in page.locator("#tree, #details").all_inner_texts()[-1] or page.locator("bdi").count() > 8


@pytest.mark.behaviour("O07")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1600, 390])
@in_browser
def test_the_demos_calls_are_two_clicks_away(
    browser: Browser, demo: Path, width: int, scheme: str, tmp_path: Path
) -> None:
    """The refused call, the failed one and the slowest one are each reached within two clicks or one search."""
    with Page(browser, demo, width, scheme) as page:
        details = page.locator("#details")
        page.locator("#errors .jump", has_text="denied").click()
        assert "Not allowed" in details.inner_text()
        assert details.locator("h2", has_text="budget at this point").count() == 1
        shots = Path(os.environ.get("THENA_SCREENSHOTS", tmp_path))
        page.screenshot(path=str(shots / f"report-{width}-{scheme}.png"))
        if width == 390:
            page.get_by_role("button", name="Close").click()
        page.locator("#errors .jump", has_text="error").first.click()
        assert "Error" in details.inner_text()
        if width == 390:
            page.get_by_role("button", name="Close").click()
        slowest = page.locator("#slow .jump").first
        name = slowest.locator(".name").inner_text()
        slowest.click()
        assert name in details.inner_text()
        page.locator("#search").fill("denied")
        page.locator("#search").press("Enter")
        assert "denied" in details.inner_text()
        assert page.locator("#count").inner_text().startswith("1 of")


@pytest.mark.behaviour("O07")
@in_browser
def test_the_keyboard_reaches_everything(browser: Browser, demo: Path) -> None:
    """Moving, folding, searching and going from failure to failure work without a mouse."""
    with Page(browser, demo) as page:
        selected = page.locator(".row[aria-selected=true]")
        page.keyboard.press("/")
        page.keyboard.type("save_note")
        page.keyboard.press("Enter")
        assert "save_note" in selected.inner_text()
        page.keyboard.press("/")
        page.keyboard.press("Escape")
        assert page.locator(".row:visible").count() > 10
        page.keyboard.press("Home")
        page.keyboard.press("ArrowLeft")
        assert page.locator(".row:visible").count() == 1
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert "loop" in selected.inner_text()
        page.keyboard.press("n")
        first = selected.inner_text()
        page.keyboard.press("n")
        second = selected.inner_text()
        assert {"error", "denied"} == {word for word in ("error", "denied") if word in first + second}
        page.keyboard.press("p")
        assert selected.inner_text() == first


def tree(nodes: int) -> Node:
    """Record a tree of so many steps, with calls that overlap, a nested run and changes on the way."""
    recorder = Recorder("big", keeps=True)
    root = recorder.open("workflow", "Big", None)
    made = 1
    while made < nodes:
        agent = recorder.open("agent", "Agent", root)
        calls = [recorder.open("tool", "read", agent, {"path": f"file_{made + k}"}) for k in range(8)]
        nested = recorder.open("workflow", "Nested", calls[0])
        calls[1].meta["changed_by"] = [
            {"by": "audit", "what": "arguments", "before": {"path": "../x"}, "after": {"path": "x"}}
        ]
        calls[2].meta["data"] = {"rows": [1, 2]}
        for node in (nested, *calls, agent):
            recorder.close(node, outcome="ok" if node.kind == "tool" else None, output="content " * 20)
        made += 10
    recorder.close(root)
    return root


@pytest.mark.behaviour("O07")
@in_browser
def test_two_thousand_steps_are_quick(browser: Browser, tmp_path: Path) -> None:
    """A run of 2,000 steps opens in a few seconds at most, is searched and folded at once, and its lanes stand apart."""
    write(document(tree(2_000), run_id="big", stopped_by="answered", usage={}, redact=None), tmp_path)
    start = time.perf_counter()
    with Page(browser, tmp_path / "big" / "index.html") as page:
        assert page.locator("#count").inner_text() == "2001 steps"
        assert time.perf_counter() - start < 10
        start = time.perf_counter()
        page.locator("#search").fill("file_1001")
        page.locator("#count", has_text="of 2001").wait_for()
        page.locator("#search").fill("")
        page.get_by_role("button", name="Fold all", exact=True).click()
        assert time.perf_counter() - start < 5
        bars = page.evaluate("nodes.slice(2, 10).map((n) => n.lane)")
        assert len(set(bars)) == 8  # calls that overlap, one lane each
        page.get_by_role("button", name="Unfold all").click()
        page.locator(".row", has_text="changed").first.click()
        shown = page.locator("#details").inner_text()
        assert "audit changed the arguments" in shown
        assert '"../x"' in shown
        assert page.locator(".row", has_text="nested run").count() == 200


@pytest.mark.behaviour("O02")
@pytest.mark.parametrize("width", [1600, 390])
@in_browser
def test_the_list_of_runs(browser: Browser, tmp_path: Path, width: int) -> None:
    """The index lists and searches 5,000 runs, also after a torn line, and leads to each."""
    for number in range(5_000):
        enter(tmp_path, entry(f"run-{number}"))
    index = tmp_path / "index.html"
    index.write_bytes(index.read_bytes()[:-40])
    write(document(tree(11), run_id="big", stopped_by="answered", usage={}, redact=None), tmp_path)
    with Page(browser, index, width) as page:
        assert page.locator("#note").inner_text() == "The newest 1000 of 5000 runs"
        page.locator("#search").fill("big")
        page.locator("#runs a").click()
        assert page.locator("#heading").inner_text() == "Big"
