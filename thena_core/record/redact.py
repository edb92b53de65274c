"""Mask what looks like a secret in texts.

The shapes follow what the public rule sets of gitleaks, detect-secrets and GitHub's secret scanning say, written
anew for Python and for linear time (those search files for a person who looks at the finds; none masks a text):

- keys by their vendor's prefix or mark, and what systems keep of passwords (`shapes.py`); a word followed by one long
  random part (`acme_live_…`) counts as such a key, too;
- JSON web tokens, PEM, PuTTY and JWK private keys, webhook addresses, logins in URLs and in command lines;
- what is assigned to a telling word (`password`, `token` …; `telling.py`, `assigned.py`) in code, JSON, YAML,
  query strings, headers, environment files, flags, XML, SQL and sentences, or stands below it in a table or a list
  (`listed.py`);
- what programs take as arguments, keep in files or say on the wire without such a word (`programs.py`);
- all of that behind JSON's and HTML's escapes, in base64 and in hexadecimal digits (`encoded.py`).

Not caught: a random string that nothing around it tells of; a secret split over several values or lines, or encoded
otherwise; a password that is a plain word in a sentence; customer data, which is no secret shape. Masking is a net, not
a wall: keep secrets out of arguments and observations.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from thena_core.record import programs, shapes, telling
from thena_core.record.assigned import MASKED, is_harmless, looks_random, mask_values
from thena_core.record.encoded import mask_encoded, unescaped
from thena_core.record.listed import mask_listed

Redactor = Callable[[str], str]
"""Takes a text, returns it with what must not be seen replaced."""

_FORMS = (*shapes.WHOLE, *programs.SPOKEN)
_MAX_PASSES = 4
_MAX_PEM = 20_000
# Services' names for what anybody may see: calls, answers, requests, checksums.
_ID_WORDS = frozenset(
    shapes.words(
        "call toolu tooluse chatcmpl cmpl req request msg resp rs fc run thread asst step file vs batch gen trace span "
        "job task evt event ft ftjob img id uuid md5 sha1 sha256 sha512 hash commit rev digest etag blob tree checksum "
        "pub public publishable cus price prod acct"
    )
)
_KEY_WORDS = frozenset(
    shapes.words("key token secret live sk rk ak pat api auth access svc at rt ik apikey priv private pwd")
)


def mask(text: str) -> str:
    """Replace secrets in `text`; what is left says of which kind they were (`sk-…masked`, `password=…masked`).

    It takes time linear in the text, and masking twice changes nothing more.

    Args:
        text: Any text, of any length.
    """
    return _mask(text, 0)


def _mask(text: str, depth: int) -> str:
    masked = _mask_plain(text, depth)
    plain = unescaped(masked)
    if plain is not None:
        # A key or its name may be cut up by escapes; the text stays as it was unless writing it plainly shows one.
        shown = _mask_plain(plain, depth)
        masked = shown if shown.count(MASKED) > masked.count(MASKED) else masked
    if "\\n" in masked and "\n" not in masked:  # lines that JSON made one of, such as the arguments of a call
        masked = _mask_plain(masked.replace("\\n", "\n"), depth).replace("\n", "\\n")
    return masked


def _mask_plain(text: str, depth: int) -> str:
    # What one rule leaves can complete another's shape; a second look costs only texts that held a secret.
    for _ in range(_MAX_PASSES):
        masked = _mask_once(text, depth)
        if masked == text:
            break
        text = masked
    return text


def _mask_once(text: str, depth: int) -> str:
    text = _mask_pem(text)
    for needles, pattern in _FORMS:
        for needle in needles:  # no `any`: most texts are short, and a generator for each form would cost the most
            if needle in text:
                text = re.sub(pattern, _keep_unless_done, text)
                break
    text = shapes.SURE.sub(_keep, text)
    text = shapes.LIKELY.sub(_keep_if_random, text)
    if "eyJ" in text:
        text = shapes.JWT.sub(_mask_jwt, text)
    text = mask_encoded(text, _mask, depth)
    if "://" in text:
        text = shapes.URL_TOKEN.sub(_keep_if_random, text)
        text = shapes.URL_LOGIN.sub(_keep_unless_done, text)
    text = shapes.CURL_LOGIN.sub(_keep_unless_done, text)
    text = shapes.SCHEME.sub(_keep_if_random, text)
    text = mask_values(text, telling.TELLING)
    text = mask_values(text, telling.FLAG)
    if "\n" in text:
        text = mask_listed(text)
    return shapes.PREFIXED.sub(_mask_prefixed, text)


def _keep(match: re.Match[str]) -> str:
    return match["kept"] + MASKED


def _keep_unless_done(match: re.Match[str]) -> str:
    secret = match[0][len(match["kept"]) :]
    return match[0] if is_harmless(secret) else match["kept"] + MASKED


def _keep_if_random(match: re.Match[str]) -> str:
    return match["kept"] + MASKED if looks_random(match["tail"]) else match[0]


def _mask_jwt(match: re.Match[str]) -> str:
    parts = match[0].split(".")
    return "eyJ" + MASKED if len(parts) > 1 and len(parts[0]) > 8 and sum(map(len, parts[1:])) > 8 else match[0]  # noqa: PLR2004


def _mask_prefixed(match: re.Match[str]) -> str:
    """Mask `word_…` where the last part is long and mixes digits, small and capital letters as no identifier does.

    Where the words before it speak of a key, small letters with digits are enough; where they speak of an id or a
    checksum, it stays.
    """
    word = match["word"]
    head, tail = re.fullmatch(r"((?:[A-Za-z][A-Za-z0-9]{0,15}[_\-]){0,4})(.*)", word, re.DOTALL).groups()  # type: ignore[union-attr]
    heads = re.split(r"[_\-]", head.lower())[:-1]
    if not heads or not _ID_WORDS.isdisjoint(heads) or head.lower().startswith("sha"):
        return word
    part = max(re.split(r"[_\-]", tail), key=len)
    digits, small, capital = (sum(map(test, part)) for test in (str.isdigit, str.islower, str.isupper))
    if not _KEY_WORDS.isdisjoint(heads):
        random = len(part) >= 14 and small + capital > 2 and (digits > 1 or (digits and small and capital > 2))  # noqa: PLR2004
    else:
        random = len(part) >= 20 and digits > 2 and small > 2 and capital > 2  # noqa: PLR2004
    return head + MASKED if random else word


def _mask_pem(text: str) -> str:
    out: list[str] = []
    done = 0
    end = -1
    for match in shapes.PEM_BEGIN.finditer(text) if "PRIVATE KEY" in text else ():
        body = match.end()
        if body < done:
            continue
        if end != len(text) and end < body:
            found = text.find("-----END" if match[0].startswith("-----") else "---- END", body)
            end = found if found >= 0 else len(text)
        # Without its end nearby the header is only being talked about, or the key was cut off: take what is base64.
        run = shapes.PEM_BODY.match(text, body)
        cut = body + len(run[0].rstrip()) if run else body
        stop = end if end < len(text) and end - body < _MAX_PEM else cut
        if stop - body >= 8:  # noqa: PLR2004
            out += text[done:body], MASKED
            done = stop
    return "".join([*out, text[done:]]) if out else text
