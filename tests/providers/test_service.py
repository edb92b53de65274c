"""What the providers over HTTP share: nothing of a run stays in them, whoever uses them, and addresses are taken apart."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.providers import anthropic_answers, ollama_answers
from tests.providers.conversation import ANSWER, explorer
from tests.providers.loopback import completion, tool_call
from thena_core import Thena
from thena_core.errors import ProviderError
from thena_core.messages import History, Message
from thena_core.providers import AnthropicProvider, ChatRequest, OllamaProvider, OpenAIProvider, Provider
from thena_core.providers.reply import Reply
from thena_core.providers.sent import Sent
from thena_core.providers.service import address
from thena_core.providers.transport import Transport


class Canned(Transport):
    """Answer without a network: a call first, then the text, in turn."""

    def __init__(self, first: Any, second: Any) -> None:
        super().__init__("canned")
        self.bodies = [json.dumps(first).encode(), json.dumps(second).encode()]
        self.asked = 0

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], **more: Any) -> Reply:
        self.asked += 1
        return Reply(200, {}, self.bodies[(self.asked - 1) % 2])


PROVIDERS: dict[str, Callable[[], Provider]] = {
    "openai": lambda: OpenAIProvider(
        "m", "k", transport=Canned(completion(None, [tool_call("list_dir", id="c")]), completion(ANSWER))
    ),
    "anthropic": lambda: AnthropicProvider(
        "m",
        "k",
        transport=Canned(
            anthropic_answers.message(anthropic_answers.THOUGHT, anthropic_answers.use("c", "list_dir", path=".")),
            anthropic_answers.message(anthropic_answers.text(ANSWER)),
        ),
    ),
    "ollama": lambda: OllamaProvider(
        "m",
        transport=Canned(
            ollama_answers.answer("", ollama_answers.call("list_dir", path="."), stream=False, thinking="Hm.").body,
            ollama_answers.answer(ANSWER, stream=False).body,
        ),
    ),
}


def alive(*kinds: type) -> int:
    """Count the objects of these kinds that are still there."""
    gc.collect()
    return sum(type(known) in kinds for known in gc.get_objects())


@pytest.mark.behaviour("V09")
@pytest.mark.parametrize("name", PROVIDERS)
async def test_nothing_of_a_run_stays_in_a_shared_provider(name: str) -> None:
    """After 1,000 runs with one provider, no message, request or encoded history of them is left."""
    provider = PROVIDERS[name]()
    async with Thena(explorer(provider)) as app:
        await app.run("warm up")
        before = alive(Message, History, ChatRequest, Sent)
        for number in range(1_000):
            result = await app.run(f"question {number}")
            assert result.output == ANSWER
        del result
        assert alive(Message, History, ChatRequest, Sent) <= before


def test_addresses_are_taken_apart() -> None:
    """White space around an address does not count, and what is none is refused with a line to write instead."""
    parts = address(" https://h:8/p?q=1 ", "acme", 'base_url="http://h"')
    assert (parts.scheme, parts.netloc, parts.path, parts.query) == ("https", "h:8", "/p", "q=1")
    for wrong in ("", "h", "http://", "http://h:x", "http://[::1", "ftp://h"):
        with pytest.raises(ProviderError) as caught:
            address(wrong, "acme", 'base_url="http://h"')
        assert str(caught.value) == (
            'acme: base_url is not an address. Write it with its scheme, e.g. base_url="http://h".'
        )


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"retry": 3}, TypeError, r"retry=3: give True, False, or Retry"),
        ({"rescue": "lenent"}, ValueError, r"rescue='lenent': give True, False or \"lenient\""),
        ({"timeout": 0}, ValueError, r"seconds above 0"),
    ],
    ids=["retry", "rescue", "timeout"],
)
def test_settings_that_cannot_be_meant_are_refused(
    settings: dict[str, object], kind: type[Exception], words: str
) -> None:
    """A setting of the wrong kind is refused where it is written, with what to write."""
    with pytest.raises(kind, match=words):
        OpenAIProvider("m", **settings)  # type: ignore[arg-type]
