"""The recipe for files: nothing outside of the folder is read, and nothing in it that is no file, too big or no text."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from dependency_injector import containers, providers

from tests.recipes.recipe import recipe
from thena_core import Thena, ToolOutput

files = recipe("files")
SECRET = "the key is 1234"


class Asked:
    """The three tools over one folder."""

    def __init__(self, app: Thena, folder: Path) -> None:
        self.app = app
        self.folder = folder

    async def __call__(self, tool: str, **arguments: Any) -> ToolOutput:
        return await self.app.call(tool, arguments)


@pytest_asyncio.fixture
async def ask(tmp_path: Path) -> AsyncIterator[Asked]:
    """Make a folder with a secret beside it."""
    folder = tmp_path / "data"
    (folder / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text(SECRET)
    (folder / "a.txt").write_text("hello\nwörld\n")
    (folder / "sub" / "b.txt").write_text("Hello b")

    class Services(containers.DeclarativeContainer):
        folder_ = providers.Singleton(files.Folder, root=folder)

    async with Thena(tools=[files.read_file, files.list_folder, files.search_files], container=Services()) as app:
        yield Asked(app, folder)


async def test_good_use(ask: Asked) -> None:
    """Files are read, folders listed, lines found, by paths that go down from the folder."""
    assert (await ask("read_file", path="a.txt")).content == "hello\nwörld\n"
    assert (await ask("read_file", path="./sub//b.txt")).content == "Hello b"
    assert (await ask("list_folder")).content == "a.txt  13 bytes\nsub/"
    assert (await ask("search_files", text="HELLO")).content == "a.txt:1: hello\nsub/b.txt:1: Hello b"
    assert (await ask("search_files", text="hello", path="sub")).content == "sub/b.txt:1: Hello b"
    assert (await ask("search_files", text="x")).content == "[nothing found]"
    assert (await ask("list_folder", path="sub/deep")).content == "[empty]"


@pytest.mark.parametrize("tool", ["read_file", "list_folder", "search_files"])
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("..", id="the folder above"),
        pytest.param("../secret.txt", id="up"),
        pytest.param("sub/../../secret.txt", id="down and up"),
        pytest.param("a.txt/../../secret.txt", id="up through a file"),
        pytest.param("/etc/hostname", id="absolute"),
        pytest.param("/a.txt", id="absolute, of a name in the folder"),
        pytest.param("//etc/hostname", id="absolute, two slashes"),
        pytest.param("{folder}/../secret.txt", id="absolute and up"),
        pytest.param("link.txt", id="a link to a file"),
        pytest.param("links/secret.txt", id="through a linked folder"),
        pytest.param("links", id="a linked folder"),
        pytest.param("inside", id="a link that stays inside"),
        pytest.param("circle/circle", id="a link to itself"),
        pytest.param("pipe", id="a FIFO that nobody writes to"),
        pytest.param("socket", id="a socket"),
        pytest.param("a.txt/b", id="below a file"),
        pytest.param("nothing", id="not there"),
        pytest.param("a.txt\0.png", id="NUL"),
        pytest.param("x" * 10_000, id="10,000 characters"),
        pytest.param("x/" * 2_000, id="2,000 folders"),
        pytest.param("x" * 300, id="a name too long"),
        pytest.param("\ud800", id="a lone surrogate"),
        pytest.param("..\\secret.txt", id="backslashes"),
        pytest.param("~/x", id="a home"),
        pytest.param("file:///etc/hostname", id="a URL"),
    ],
)
async def test_bad_paths(ask: Asked, tool: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is an observation that says why, at once, and without a word of what stands elsewhere."""
    outside = ask.folder.parent
    (ask.folder / "link.txt").symlink_to(outside / "secret.txt")
    (ask.folder / "links").symlink_to(outside)
    (ask.folder / "inside").symlink_to("sub")
    (ask.folder / "circle").symlink_to("circle")
    os.mkfifo(ask.folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(ask.folder)  # the address of a socket has at most 108 bytes
        listening.bind("socket")
        more = {"text": "key"} if tool == "search_files" else {}
        output = await ask(tool, path=path.replace("{folder}", str(ask.folder)), **more)
    assert output.is_error, output.content
    assert output.content.startswith("Refused: ")
    assert SECRET not in output.content
    assert str(outside) not in output.content.replace(path.replace("{folder}", str(ask.folder)), "")
    assert len(output.content) < 300


async def test_links_are_shown_and_not_searched(ask: Asked) -> None:
    """A listing says that a link is one, and a search passes it over and counts it."""
    (ask.folder / "link").symlink_to(ask.folder.parent)
    assert "link  [not a file, or a link]" in (await ask("list_folder")).content
    assert (await ask("search_files", text="key")).content == (
        "[nothing found]\n[not searched, or not all of it: 1 places]"
    )


@pytest.mark.parametrize("swapped", ["file", "folder"])
async def test_swapped_during_the_call(ask: Asked, swapped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that takes a file's or a folder's place between the look at it and its opening is not followed."""
    target = ask.folder / "sub" / "b.txt" if swapped == "file" else ask.folder / "sub"
    really = os.open

    def swap(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if path == target.name and not target.is_symlink():
            target.rename(ask.folder / "gone")
            target.symlink_to(ask.folder.parent / "secret.txt" if swapped == "file" else ask.folder.parent)
        return really(path, flags, *more, **options)

    (ask.folder.parent / "b.txt").write_text(SECRET)
    monkeypatch.setattr(os, "open", swap)
    output = await ask("read_file", path="sub/b.txt")
    assert target.is_symlink()
    assert output.is_error
    assert SECRET not in output.content


async def test_swapped_for_a_fifo_during_the_call(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A FIFO that takes a file's place between the look at it and its opening neither blocks nor is read."""
    target = ask.folder / "a.txt"
    really = os.open

    def swap(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if path == target.name:
            target.unlink()
            os.mkfifo(target)
        return really(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", swap)
    assert (await ask("read_file", path="a.txt")).content == "Refused: it is neither a file nor a folder ('a.txt')"


async def test_what_is_no_file_is_not_even_opened(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """To open a device can already do things (rewind a tape, arm a watchdog), so it is looked at before."""
    os.mkfifo(ask.folder / "pipe")
    really, opened = os.open, list[Any]()

    def watched(path: Any, flags: int, *more: Any, **options: Any) -> int:
        opened.append(path)
        return really(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", watched)
    assert (await ask("read_file", path="pipe")).is_error
    assert opened == [ask.folder]


async def test_devices() -> None:
    """A device is not read, wherever it stands; `/dev` is full of them."""

    class Services(containers.DeclarativeContainer):
        folder = providers.Singleton(files.Folder, root=Path("/dev"))

    async with Thena(tools=[files.read_file], container=Services()) as app:
        output = await app.call("read_file", {"path": "zero"})
    assert output.content == "Refused: it is neither a file nor a folder ('zero')"


async def test_a_huge_file(ask: Asked) -> None:
    """Of a terabyte the asked part is read, and the observation says where to read on; text joins without a gap."""
    text = "wörld€" * 20_000
    (ask.folder / "long.txt").write_text(text, encoding="utf-8")
    read, offset = "", 0
    while True:
        output = await ask("read_file", path="long.txt", offset=offset)
        part, mark, rest = output.content.rpartition("\n[")
        read += part if mark else output.content
        if not mark:
            break
        offset = int(rest.partition("offset=")[2].removesuffix("]"))
    assert read == text
    os.truncate(ask.folder / "long.txt", 1 << 40)
    assert (await ask("read_file", path="long.txt")).content.startswith("wörld")
    assert (await ask("read_file", path="long.txt", offset=1 << 39)).content.startswith("Refused: binary")
    assert (await ask("read_file", path="a.txt", offset=1 << 70)).content == "(the tool returned nothing)"
    assert (await ask("read_file", path="a.txt", offset=-1)).content.startswith("invalid arguments")


async def test_binary_and_wrong_encodings(ask: Asked) -> None:
    """NUL bytes are refused, UTF-16 too; other wrong bytes are replaced, not raised."""
    (ask.folder / "binary").write_bytes(b"\x7fELF\0\0")
    (ask.folder / "utf16.txt").write_text("hello", encoding="utf-16")
    (ask.folder / "latin1.txt").write_text("wörld", encoding="latin-1")
    assert (await ask("read_file", path="binary")).is_error
    assert (await ask("read_file", path="utf16.txt")).is_error
    assert (await ask("read_file", path="latin1.txt")).content == "w\N{REPLACEMENT CHARACTER}rld"
    assert "latin1.txt:1" in (await ask("search_files", text="rld")).content


async def test_names_that_cannot_be_printed(ask: Asked) -> None:
    """A line break or a wrong byte in a name is escaped: a name cannot pretend to be a line of the listing."""
    (ask.folder / "a\nb.txt  1 bytes").write_text("hello")
    Path(os.fsdecode(os.fsencode(ask.folder) + b"/\xff.txt")).write_text("hello")
    rows = (await ask("list_folder")).content.splitlines()
    assert "'a\\nb.txt  1 bytes'  5 bytes" in rows
    assert "'\\udcff.txt'  5 bytes" in rows
    found = (await ask("search_files", text="hello")).content.splitlines()
    assert len(found) == 4


async def test_many_and_deep(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is listed, walked and found is capped, and the observation says so; a deep tree too."""
    monkeypatch.setattr(files, "MAX_ENTRIES", 5)
    for number in range(9):
        (ask.folder / "sub" / f"f{number}").write_text("hit\n" * 20)
    listed = (await ask("list_folder", path="sub")).content.splitlines()
    assert (len(listed), listed[-1]) == (6, "[more entries are not shown]")
    found = (await ask("search_files", text="hit", path="sub")).content.splitlines()
    assert len([row for row in found if row.endswith(": hit")]) == files.MAX_MATCHES
    assert "[there may be more]" in found

    descriptor = os.open(ask.folder, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    assert "[not searched, or not all of it: 1 places]" in (await ask("search_files", text="w", path="d")).content


async def test_a_folder_that_is_gone(ask: Asked) -> None:
    """A folder that was taken away is an observation, which does not say where it was."""
    ask.folder.rename(ask.folder.parent / "elsewhere")
    for tool, arguments in (("read_file", {"path": "a.txt"}), ("list_folder", {}), ("search_files", {"text": "x"})):
        output = await ask(tool, **arguments)
        assert output.content == "Refused: the folder cannot be opened: No such file or directory"


async def test_a_search_ends_in_time(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the time is up, what was found so far is shown, and that there may be more."""
    monkeypatch.setattr(files, "SEARCH_SECONDS", 0.0)
    assert (await ask("search_files", text="hello")).content == "[nothing found]\n[there may be more]"


async def test_no_descriptor_is_left_open(ask: Asked) -> None:
    """Whatever became of a call, it left nothing open."""
    (ask.folder / "link").symlink_to("sub")
    opened = Path("/proc/self/fd")
    if not opened.exists():
        pytest.skip("there is no /proc to count descriptors in")
    before = len(list(opened.iterdir()))
    for path in ("a.txt", "nothing", "link/b.txt", "sub", "sub/b.txt", "a\0b"):
        await ask("read_file", path=path)
        await ask("search_files", text="hello", path=path)
    assert len(list(opened.iterdir())) == before
