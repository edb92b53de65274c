"""The site is built with warnings as errors, loads nothing from elsewhere, and fits a phone and a wide screen."""

from __future__ import annotations

import functools
import html
import http.server
import importlib.util
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.docs.page import DOCS, ROOT

WIDTHS = (390, 1600)
"""A phone and a wide screen, in CSS pixels."""

PATIENCE = 240.0
"""Seconds that the browser may take for all pages; it takes about a minute."""

PROBE = """<!doctype html><body><script>
const pages = PAGES, widths = WIDTHS, wrong = [];
const load = (page, width) => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  frame.onload = () => {
    const inner = frame.contentDocument, wide = inner.documentElement.scrollWidth;
    const broken = [...inner.images].filter(image => !image.complete || !image.naturalWidth).map(image => image.src);
    if (wide > width) wrong.push(`${page} is ${wide} px wide at ${width}`);
    if (!inner.querySelector("h1")) wrong.push(`${page} has no title at ${width}`);
    broken.forEach(source => wrong.push(`${page} lacks the picture ${source}`));
    frame.remove();
    done();
  };
  frame.src = page;
  document.body.append(frame);
});
(async () => {
  for (const width of widths) for (const page of pages) await load(page, width);
  fetch("told", {method: "POST", body: JSON.stringify(wrong)});
})();
</script>"""


def build(config: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build a site, warnings as errors. Never with --quiet, which hides the warnings from --strict, too."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(folder),
    ]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    if importlib.util.find_spec("mkdocs") is None or "THENA_DOCS" not in os.environ:
        pytest.skip("scripts/docs builds the site; with the extra `docs` installed, THENA_DOCS=1 does it here")
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT / "mkdocs.yml", folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    "text",
    [
        "[lost](nowhere.md)",
        "[lost](index.md#nowhere)",
        "![lost](images/nowhere.png)",
        "[lost](/nowhere.md)",
        "::: thena_core.Nowhere",
    ],
    ids=["page", "heading", "picture", "absolute", "name"],
)
def test_a_broken_link_is_an_error(text: str, tmp_path: Path) -> None:
    """A link to what there is not, and a name that cannot be documented, each end the build."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# A page\n\n{text}\n", encoding="utf-8")
    config = tmp_path / "mkdocs.yml"
    config.write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nextra_css: []\nnav: [index.md]\n", encoding="utf-8"
    )
    assert build(config, tmp_path / "site").returncode != 0
    (tmp_path / "docs" / "index.md").write_text("# A page\n\n[found](index.md)\n", encoding="utf-8")
    assert build(config, tmp_path / "site").returncode == 0


def pages_of(site: Path) -> list[str]:
    """Return the pages of a site, by their paths in it."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.name != "404.html")


def test_every_page_is_built(site: Path) -> None:
    """Each Markdown file is a page, in both languages; what is not translated is there in English."""
    names = {path.relative_to(DOCS).with_suffix("").as_posix().removesuffix(".pt-BR") for path in DOCS.rglob("*.md")}
    assert {f"{name}.html" for name in names} | {f"pt-BR/{name}.html" for name in names} <= set(pages_of(site))
    assert 'lang="pt-BR"' in (site / "pt-BR" / "tools.html").read_text(encoding="utf-8")
    assert "o modelo" in (site / "pt-BR" / "tools.html").read_text(encoding="utf-8")


def test_every_page_can_be_reached(site: Path) -> None:
    """Each page stands in the navigation of the first."""
    first = (site / "index.html").read_text(encoding="utf-8")
    linked = {html.unescape(target) for target in re.findall(r'href="([^"#:]+\.html)"', first)} | {"index.html"}
    assert [page for page in pages_of(site) if not page.startswith("pt-BR/") and page not in linked] == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """No page needs another host: no script, style, font or picture of one."""
    for page in pages_of(site):
        text = (site / page).read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]+src="(https?:[^"]+)"', text)
        loaded += re.findall(r'<link[^>]+rel="(?:stylesheet|preload|icon)"[^>]+href="(https?:[^"]+)"', text)
        assert loaded == [], page


@dataclass
class Served:
    """A site on a loopback server, since pages of the disk may not look into one another.

    Attributes:
        address: Where it is.
        told: What the probe in the browser found, when it is done.
    """

    address: str = ""
    told: queue.Queue[list[str]] = field(default_factory=queue.Queue)


@pytest.fixture
def served(site: Path) -> Iterator[Served]:
    """The site, served."""
    found = Served()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            found.told.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    found.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.browser
def test_it_fits_the_screen(site: Path, served: Served, tmp_path: Path) -> None:
    """No page is wider than a phone's or a wide screen, each has its title, and every picture is there."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    probe = PROBE.replace("PAGES", repr(pages_of(site))).replace("WIDTHS", repr(list(WIDTHS)))
    (site / "probe.html").write_text(probe, encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path}",
        "--remote-debugging-port=0",
    ]
    process = subprocess.Popen(
        [browser, *options, f"{served.address}/probe.html"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert served.told.get(timeout=PATIENCE) == []
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the browser is a family of processes
        process.wait()
