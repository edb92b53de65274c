"""Secrets that stand in the lines below their name: a table's column (CSV, Markdown, psql), a list in YAML."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping

from thena_core.record.assigned import MASKED, is_harmless, is_secret_name, is_telling_value, looks_random
from thena_core.record.shapes import words

Span = tuple[int, int]
_Reader = Callable[[str, int], list[Span] | None]
"""Finds the secrets of a line that begins at a place; `None` where the table or list has ended."""

_NAMES = words("passw passphrase pwd secret token apikey api_key api-key credential senha contrase kennwort")
_LONGEST_HEAD = 2_000
# In prose and code, too, words stand between commas: there a table's headings are one word each, without blanks around.
_WORD = re.compile(r'(?:\\?")?[^\W\d][\w.\-]{0,60}(?:\\?")?')
_WORDS = re.compile(r"[\s\"'*`\\]{0,8}(?:[^\W\d][\w .\-]{0,60})?[\s\"'*`\\]{0,8}")
_HEADING = {"\t": _WORDS, "|": _WORDS, ";": _WORD, ",": _WORD}
_PASSWORD = re.compile(r"(?i:passw|pwd|senha|contrase|kennwort)")
_RULE = re.compile(r"[\s|+:=\-]+")
_LIST = re.compile(r"[\s\-]{0,80}[\"']?(?P<name>[\w.\-]{1,60})[\"']?:[ \t]{0,8}")
_ITEM = re.compile(r"[ \t]{0,80}-[ \t]{1,4}(?P<value>\S.*)")
_DELIMITERS = ("\t", "|", ";", ",")
_FIELD = {sign: re.compile(rf'"(?:[^"]|"")*+"|[^{re.escape(sign)}]++') for sign in _DELIMITERS}
_AROUND = " \t\"'`*\\"
# A text inside of JSON: what stands before its first line, and what ends its last.
_BEFORE = re.compile(r'.*"[ \t]{0,4}:[ \t]{0,4}"')
_QUOTE = re.compile(r'(?<!\\)"')
_PLURALS = frozenset(words("passwords secrets tokens credentials api_keys apikeys"))


def mask_listed(text: str) -> str:
    """Mask what stands below the heading of a secret; every line is looked at once."""
    out: list[str] = []
    done = position = 0
    for place in _places(text):
        if place < position:
            continue
        head, below = _line_around(text, place, position)
        position = below
        read = _reader(head)
        if read is None:
            continue
        for start, line in _lines(text, below):
            found = read(line, start)
            if found is None:
                break
            position = start + len(line)
            for begin, end in found:
                out += text[done:begin], MASKED
                done = end
    return "".join([*out, text[done:]]) if out else text


def _places(text: str) -> list[int]:
    """Find the names; plain searches are many times as fast as a pattern in any case."""
    lower = text.lower()
    if len(lower) != len(text):  # a letter that is two small ones
        lower = text
    found: list[int] = []
    for name in _NAMES:
        place = lower.find(name)
        while place >= 0:
            found.append(place)
            place = lower.find(name, place + 1)
    return sorted(found)


def _line_around(text: str, place: int, earliest: int) -> tuple[str, int]:
    """Return the line of a place, and where the next begins; of a line that is too long for a heading nothing."""
    earliest = max(earliest, place - _LONGEST_HEAD)
    before = text.rfind("\n", earliest, place)
    end = text.find("\n", place, place + _LONGEST_HEAD)
    if end < 0:
        return "", place + 1
    return text[before + 1 if before >= 0 else earliest : end].rstrip("\r"), end + 1


def _lines(text: str, start: int) -> Iterator[tuple[int, str]]:
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, text[start:end].rstrip("\r")
        start = end + 1


def _reader(head: str) -> _Reader | None:
    """Return what reads the lines below a heading; `None` where the line is none."""
    before = _BEFORE.match(head)
    if before is None:
        return _list_reader(head) or _table_reader(head)
    head = head[before.end() :]
    read = _list_reader(head) or _table_reader(head)
    return None if read is None else lambda line, start: read(_QUOTE.split(line, maxsplit=1)[0], start)


def _list_reader(head: str) -> _Reader | None:
    listed = _LIST.fullmatch(head)
    if listed is None:
        return None
    named = is_secret_name(listed["name"]) or listed["name"].lower().replace("-", "_") in _PLURALS
    return _item if named else None


def _table_reader(head: str) -> _Reader | None:
    sign = next((sign for sign in _DELIMITERS if sign in head), None)
    if sign is None:
        return None
    headings = head.split(sign)
    if not all(_HEADING[sign].fullmatch(heading) for heading in headings):
        return None
    secret = {number: heading for number, heading in enumerate(headings) if is_secret_name(heading.strip(_AROUND))}
    sure = {number: _PASSWORD.search(heading) is not None for number, heading in secret.items()}
    return functools.partial(_row, sign=sign, columns=len(headings), sure=sure) if sure else None


def _item(line: str, start: int) -> list[Span] | None:
    item = _ITEM.fullmatch(line)
    return None if item is None else _secret(item["value"], start + item.start("value"), sure=False)


def _row(line: str, start: int, *, sign: str, columns: int, sure: Mapping[int, bool]) -> list[Span] | None:
    if _RULE.fullmatch(line):
        return []
    number = offset = 0
    found: list[Span] = []
    while offset <= len(line):
        field = _FIELD[sign].match(line, offset)
        value = field[0] if field is not None else ""
        if number in sure:
            found += _secret(value, start + offset, sure=sure[number])
        offset += len(value) + 1
        number += 1
    return found if number == columns else None  # else the table has ended


def _secret(value: str, start: int, *, sure: bool) -> list[Span]:
    inner = value.strip(_AROUND)
    if not inner or is_harmless(inner) or not (sure or is_telling_value(inner) or looks_random(inner)):
        return []
    begin = start + value.index(inner)
    return [(begin, begin + len(inner))]
