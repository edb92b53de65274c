"""What a listener hears of a streamed answer: text at once, and neither thoughts nor calls."""

from __future__ import annotations

import pytest

from tests.providers.loopback import Loopback, streamed
from thena_core.definition import ToolDefinition
from thena_core.messages import Message
from thena_core.providers import ChatRequest, OpenAIProvider
from thena_core.providers.rescue import Rescue
from thena_core.providers.spoken import may_be_call

CALL = '{"name": "ping", "arguments": {}}'


async def heard(loopback: Loopback, pieces: list[str], rescue: Rescue = True, *, tools: bool = True) -> list[str]:
    """Stream pieces through the provider and return what the listener was given, piece by piece."""
    loopback.script(streamed(*pieces))
    texts: list[str] = []
    request = ChatRequest([Message("user", "hi")], on_text=texts.append)
    request.tools = [ToolDefinition("ping", "Pings.")] if tools else []
    provider = OpenAIProvider("m", "k", loopback.url, retry=False, rescue=rescue)
    try:
        await provider.chat(request)
    finally:
        await provider.aclose()
    return texts


@pytest.mark.behaviour("S01")
@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        pytest.param(["It", " is", " 9."], ["It", " is", " 9."], id="text"),
        pytest.param(["<thi", "nk>hm</", "think>\n", "\nYes", "."], ["Yes", "."], id="V05-thoughts"),
        pytest.param([CALL[:5], CALL[5:]], [], id="V04-a-call"),
        pytest.param(["```json\n", CALL, "\n```"], [], id="V04-a-fenced-call"),
        pytest.param(["<tool", "_call>", CALL, "</tool_call>"], [], id="V04-a-tagged-call"),
        pytest.param(['{"c', 'ity": "Paris"}'], ['{"city": "Paris"}'], id="json-that-is-no-call"),
        pytest.param(["```", "python\nprint(1)\n", "```"], ["```python\nprint(1)\n", "```"], id="code"),
        pytest.param(["[", "1, 2]", " are"], ["[1, 2]", " are"], id="list"),
        pytest.param(["<", "b>bold</b>", " x"], ["<b>bold</b>", " x"], id="markup"),
        pytest.param(["\n", " a", "b"], ["\n a", "b"], id="white-space-first"),
        pytest.param(
            ['{"name": "other", ', '"arguments": {}}'], ['{"name": "other", "arguments": {}}'], id="unknown-tool"
        ),
        pytest.param(["So: ", CALL], ["So: ", CALL], id="call-behind-text"),
    ],
)
async def test_text_is_heard_as_soon_as_it_is_known_to_be_text(
    loopback: Loopback, pieces: list[str], texts: list[str]
) -> None:
    """Plain text is handed on piece by piece; what may be a thought or a call is kept until that is known."""
    assert await heard(loopback, pieces) == texts


@pytest.mark.behaviour("V04")
async def test_nothing_is_kept_back_where_no_call_is_read(loopback: Loopback) -> None:
    """Without tools, and with `rescue=False`, JSON is text like any other."""
    pieces = [CALL[:5], CALL[5:]]
    assert await heard(loopback, pieces, tools=False) == pieces
    assert await heard(loopback, pieces, False) == pieces


@pytest.mark.behaviour("V04")
async def test_a_lenient_reader_keeps_back_what_may_be_a_call(loopback: Loopback) -> None:
    """Inside text, too, a call is not heard, and text before it and instead of it is."""
    assert await heard(loopback, ["So: ", CALL[:3], CALL[3:]], "lenient") == ["So: "]
    assert await heard(loopback, ["a [li", "nk](x) and {", "b}"], "lenient") == ["a [li", "nk](x) and ", "{b}"]


@pytest.mark.parametrize(
    ("text", "may_be"),
    [
        ("<", True),
        ("<tool", True),
        ("<tool_call>{", True),
        ("<table>", False),
        ("`", True),
        ("```", True),
        ("```js", True),
        ("```json\n", True),
        ('```json\n{"na', True),
        ('```json\n{"city"', False),
        ("```python", False),
        ("`x`", False),
        ("{", True),
        ("{ ", True),
        ('{"', True),
        ('{"nam', True),
        ('{"names"', False),
        ("{1", False),
        ("[", True),
        ('[{"name"', True),
        ("[1", False),
        ("[TOOL_", True),
        ("func", True),
        ("functional", False),
    ],
)
def test_knows_how_calls_begin(text: str, may_be: bool) -> None:
    """A beginning is kept as long as it can become a call, and not longer."""
    assert may_be_call(text) is may_be
