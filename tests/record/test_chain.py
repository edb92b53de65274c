"""Tests of thena_core.record.chain, and of what exceptions that leave an app say."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from dependency_injector import containers, providers
from pydantic import BaseModel

from tests.hooks.scripted import ask, scripted
from thena_core import BuildError, FatalToolError, HookError, Inject, Report, ThenaError, hookimpl, tool
from thena_core.record.chain import MAX_TEXT, MaskedError, mask_error
from thena_core.record.redact import mask

KEY = "sk-ant-REDACTED"
OTHER = "hunter2hunter2"


class Strict(BaseModel):
    """Refuses texts."""

    key: int


class Composed(Exception):
    """Makes its text of what nobody can reach."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def __str__(self) -> str:
        return f"bad key {self._key}"


def raised(fails: Callable[[], Any], outer: Callable[[], BaseException], *, how: str) -> BaseException:
    try:
        try:
            fails()
        except Exception as error:
            if how == "cause":
                raise outer() from error
            if how == "hidden":
                raise outer() from None
            raise outer()  # noqa: B904 - what it came from is its context
    except BaseException as error:  # noqa: BLE001 - to be looked at
        return error
    raise AssertionError


def composed() -> None:
    raise Composed(KEY)


def plain() -> None:
    raise ValueError(f"refused {KEY}", 7)


def validated() -> None:
    Strict(key=KEY)  # type: ignore[arg-type]  # that is what it refuses


def file() -> None:
    raise FileNotFoundError(2, "No such file", f"/home/{KEY}/x")


def deep() -> None:
    try:
        plain()
    except ValueError:
        composed()


def grouped() -> None:
    raise ExceptionGroup("two", [ValueError(KEY), KeyError(KEY)])


def noted() -> None:
    error = ValueError("plain")
    error.add_note(f"with {KEY}")
    raise error


FAILURES = [composed, plain, validated, file, deep, grouped, noted]


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


@pytest.mark.behaviour("O05", "Q01")
@pytest.mark.parametrize("how", ["cause", "context", "hidden"])
@pytest.mark.parametrize("fails", FAILURES, ids=lambda fails: fails.__name__)
def test_a_printed_chain_has_no_secret(fails: Callable[[], Any], how: str) -> None:
    """Whatever stands behind an exception, its traceback, text and repr are masked; class and place are still told."""
    error = raised(fails, lambda: HookError("before_tool", "Guard", f"no, {KEY}"), how=how)
    assert KEY in shown(error)
    mask_error(error, mask)
    text = shown(error)
    assert KEY not in text
    assert error.problem == "no, sk-ant-…masked"  # type: ignore[attr-defined]
    if how != "hidden":
        name = {"validated": "ValidationError", "deep": "Composed", "file": "FileNotFoundError"}.get(fails.__name__)
        assert name is None or name in text
        assert f"in {fails.__name__}" in text


def test_the_chain_stays_where_it_can() -> None:
    """An exception without secrets is not touched, one with them is the same object; twice changes nothing more."""
    error = raised(plain, lambda: FatalToolError("gone"), how="cause")
    cause = error.__cause__
    mask_error(error, mask)
    once = shown(error)
    mask_error(error, mask)
    assert shown(error) == once
    assert error.__cause__ is cause
    assert cause is not None
    assert cause.args == ("refused sk-ant-…masked", 7)
    quiet = raised(lambda: 1 / 0, lambda: FatalToolError("gone"), how="cause")
    cause = quiet.__cause__
    assert cause is not None
    args = cause.args
    mask_error(quiet, mask)
    assert quiet.__cause__ is cause
    assert cause.args is args


def test_a_stand_in_keeps_what_it_stands_for() -> None:
    """It names the class, and has the traceback, the cause and what was hidden of the one that it replaces."""
    error = raised(deep, lambda: FatalToolError("gone"), how="cause")
    inner = error.__cause__
    assert inner is not None
    mask_error(error, mask)
    stand_in = error.__cause__
    assert isinstance(stand_in, MaskedError)
    assert str(stand_in) == "Composed: bad key sk-ant-…masked"
    assert stand_in.__traceback__ is inner.__traceback__
    assert stand_in.__context__ is inner.__context__
    assert error.__suppress_context__


def test_circles_and_huge_texts_end() -> None:
    """A chain that bites its tail is walked once, and of megabytes only the beginning is kept."""
    one, two = ValueError("x " * 5_000_000 + KEY), ValueError(KEY)
    one.__context__, two.__context__ = two, one
    mask("warm up")
    begun = time.process_time()
    mask_error(one, mask)
    assert time.process_time() - begun < 1.0
    assert KEY not in str(one) + str(two)
    assert len(str(one)) < MAX_TEXT + 100
    before = str(one)
    mask_error(one, mask)
    assert str(one) == before


def test_a_masking_that_fails_hides_everything() -> None:
    """Where the app's own masking raises, no text is let through."""

    def fails(_text: str) -> str:
        raise ZeroDivisionError

    error = ValueError(KEY)
    mask_error(error, fails)
    assert str(error) == "(masking failed)"


@pytest.mark.behaviour("O05", "Q01")
@pytest.mark.parametrize("redact", [True, False], ids=["masked", "off"])
@pytest.mark.parametrize("where", ["tool", "hook", "provider", "build"])
async def test_what_leaves_an_app_is_masked(where: str, redact: bool) -> None:
    """The exception of a tool, a guard, a model service or a build is masked with all behind it, unless switched off."""

    @tool
    async def ends() -> str:
        """Ends the run."""
        try:
            deep()
        except Composed as error:
            raise FatalToolError(f"gone: {KEY}") from error
        return "never"

    class Guard:
        @hookimpl
        async def before_tool(self, call: Any) -> None:
            if where == "hook":
                deep()

        @hookimpl
        def tool_middleware(self, tool: Any) -> None:
            if where == "build":
                plain()

    made = scripted([ends], ask("ends"), plugins=[Guard()], redact=redact)
    if where == "provider":

        async def broken(_request: Any) -> Any:
            plain()

        made.provider.chat = broken  # type: ignore[method-assign]
    ended = await made.run()
    kinds = {"tool": FatalToolError, "hook": HookError, "provider": ValueError, "build": BuildError}
    assert type(ended.error) is kinds[where]
    assert (KEY not in shown(ended.error)) is redact


@pytest.mark.behaviour("Q01", "O05")
@pytest.mark.parametrize("way", ["observation", "fatal"])
async def test_secrets_in_error_text_logs_and_reports(
    way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """C19, https://github.com/BerriAI/litellm/pull/39964: a credential in an error and its cause shows at no exit."""
    caplog.set_level(logging.DEBUG, logger="thena")
    caplog.set_level(logging.DEBUG, logger="asyncio")

    class Credentials:
        def __init__(self, key: str) -> None:
            self.key = key

    class Services(containers.DeclarativeContainer):
        credentials = providers.Object(Credentials("tok-THENA-0001"))

    login = "user:pw-0003"  # not in the lines that raise, which a traceback quotes

    @tool
    async def call_api(credentials: Annotated[Credentials, Inject]) -> str:
        """Calls."""
        try:
            raise ConnectionError(f"GET https://{login}@api.test/v1?api_key={credentials.key} -> 503")
        except ConnectionError as error:
            kind = RuntimeError if way == "observation" else FatalToolError
            raise kind(f"failed with Authorization: Bearer {credentials.key}") from error

    events: list[str] = []
    made = scripted(
        [call_api],
        ask("call_api"),
        container=Services(),
        log=lambda event: events.append(str(event.as_dict()) + repr(event) + event.brief()),
        report=Report(tmp_path),
    )
    ended = await made.run()
    await asyncio.sleep(0)
    printed = capsys.readouterr()
    files = "".join(path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file())
    messages = repr(made.provider.requests) + repr([m for r in made.provider.requests for m in r.messages])
    exits = [*events, caplog.text, printed.out, printed.err, files, messages]
    if ended.error is not None:
        assert isinstance(ended.error, ThenaError)
        exits += [shown(ended.error), repr(ended.error.run)]
    for secret in ("tok-THENA-0001", "pw-0003"):
        assert not [text[:200] for text in exits if secret in text]
    told = ended.observation if way == "observation" else shown(ended.error)  # type: ignore[arg-type]
    assert way == "observation" or "-> 503" in told
    assert ("RuntimeError" if way == "observation" else "ConnectionError") in told
