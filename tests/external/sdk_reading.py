"""Read answers with the official SDKs: python sdk_reading.py URL, cases as JSON on stdin, what they read on stdout."""

from __future__ import annotations

import json
import sys

import anthropic
import ollama
import openai

URL = sys.argv[1]
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def read_openai(case):
    sdk = openai.OpenAI(api_key="k", base_url=f"{URL}/v1", max_retries=0)
    if case["stream"]:
        with sdk.chat.completions.stream(**ASKED, stream_options={"include_usage": True}) as events:
            answer = events.get_final_completion()
    else:
        answer = sdk.chat.completions.create(**ASKED)
    message = answer.choices[0].message
    calls = [[call.id, call.function.name, json.loads(call.function.arguments)] for call in message.tool_calls or ()]
    usage = answer.usage
    counts = [usage.prompt_tokens, usage.completion_tokens] if usage else None
    return message.content or "", calls, answer.choices[0].finish_reason, counts


def read_anthropic(case):
    sdk = anthropic.Anthropic(api_key="k", base_url=URL, max_retries=0)
    asked = {**ASKED, "max_tokens": 9}
    if case["stream"]:
        with sdk.messages.stream(**asked) as events:
            answer = events.get_final_message()
    else:
        answer = sdk.messages.create(**asked)
    text = "".join(block.text for block in answer.content if block.type == "text")
    calls = [[block.id, block.name, block.input] for block in answer.content if block.type == "tool_use"]
    usage = answer.usage
    prompt = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return text, calls, answer.stop_reason, [prompt, usage.output_tokens]


def read_ollama(case):
    answer = ollama.Client(host=URL).chat(**ASKED, stream=case["stream"])
    parts = list(answer) if case["stream"] else [answer]
    text = "".join(part.message.content or "" for part in parts)
    calls = [
        [None, call.function.name, dict(call.function.arguments)]
        for part in parts
        for call in part.message.tool_calls or ()
    ]
    last = parts[-1]
    return text, calls, last.done_reason, [last.prompt_eval_count, last.eval_count]


READERS = {"openai": read_openai, "anthropic": read_anthropic, "ollama": read_ollama}
sys.stdout.write(json.dumps([READERS[case["wire"]](case) for case in json.load(sys.stdin)]))
