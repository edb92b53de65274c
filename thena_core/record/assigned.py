"""Values that a telling word gives away: `password=…`, `"api_key": "…"`, `Authorization: Bearer …`, `--token …`."""

from __future__ import annotations

import re

from thena_core.record import shapes

MASKED = "…masked"

_DONE = re.compile(
    r"(?:[A-Za-z0-9_.:/$+\-]{0,32}|(?i:bearer|basic|apikey|token|key|negotiate) {1,4}[A-Za-z0-9_.\-]{0,32})…masked"
)
_NOTHING = shapes.words(
    "none null nil true false undefined str string bytes int bool any optional required missing yes no empty todo "
    "object secretstr self await new function lambda not async return"
)
_PLACEHOLDER = re.compile(r"[<{$%\[].*|\*+|[xX]+|[.•…]+|(?i:your)[_\- ].*|\\+", re.DOTALL)
_CODE = re.compile(
    r"(?:self|cls|this|os|process|settings|config|cfg|env|environ|args|ctx|request|secrets|getpass)[.\[(].*", re.DOTALL
)
_CALL = re.compile(r"[A-Za-z_][\w.]*[(\[].*", re.DOTALL)
_BARE = re.compile(r"(?:[^\s\"'`&,;)}\]<>\\]|\\(?![nrt\"'])|[,;)}\]>](?![\s\"'`\\,;:)}\]]|$|\w{1,30}=))++")
_UNTIL_QUOTE = {
    '"': re.compile(r'(?:[^"\\\r\n]|\\.)*+'),
    "'": re.compile(r"(?:[^'\\\r\n]|\\.)*+"),
    "`": re.compile(r"[^`\r\n]*+"),
    '"""': re.compile(r'(?:[^"]|"(?!""))*+'),
    "'''": re.compile(r"(?:[^']|'(?!''))*+"),
}
_UNTIL_ESCAPED_QUOTE = {quote: re.compile(rf"(?:[^{quote[0]}\\\r\n]|\\++(?!{quote[0]}))*+") for quote in _UNTIL_QUOTE}
_TOKEN_RUN = re.compile(r"[A-Za-z0-9_\-.+/~%]++={0,2}+")
_LINE = re.compile(r"(?:[^\"'`\r\n\\]|\\(?![nr\"']))*+")
_AUTH_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9\-]{2,20}|AWS4-HMAC-SHA256)[ \t]{1,4}(?=[^\s…])")
_COOKIE = re.compile(r"[A-Za-z0-9_.\-]{1,100}=")
_SCHEMES = shapes.words("bearer basic digest token apikey negotiate aws4-hmac-sha256")
_WEAK = shapes.words("key keys sig signature session sessionid session_id sid auth authentication pat otp cred pin")
_SHORT_WORDS = shapes.words("pass pat pin otp sig sid pwd auth cred creds session")
_MAX_KEPT = 64


def is_secret_name(name: str) -> bool:
    """Tell whether a field of this name holds a secret as a whole, such as `password`, `apiKey` or `Authorization`."""
    if len(name) > 200:  # noqa: PLR2004  -- longer is text, not a name; `mask` looks at it
        return False
    match = shapes.TELLING.search(name + "=")
    return (
        match is not None
        and match.end() == len(name) + 1
        and _tells(name, match.start(), match["word"].lower()) == "strong"
    )


def looks_random(text: str) -> bool:
    """Tell keys from words: one long part with digits or mixed case in it, or too long a part for a word."""
    for part in re.split(r"[_\-.]", text):
        mixed = any(c.isdigit() for c in part) or (not part.islower() and not part.isupper() and not part.istitle())
        if len(part) >= 24 or (len(part) >= 10 and mixed and not part.isdigit()):  # noqa: PLR2004
            return True
    return False


def mask_values(text: str, head: re.Pattern[str]) -> str:
    """Mask what follows each match of `head`, which is `shapes.TELLING` or `shapes.FLAG`."""
    out: list[str] = []
    done = position = 0
    while (match := head.search(text, position)) is not None:
        start, end = _secret_value(text, match)
        position = match.end()
        if start < end:
            out += text[done:start], MASKED
            done = position = end
    return "".join([*out, text[done:]]) if out else text


def _secret_value(text: str, match: re.Match[str]) -> tuple[int, int]:
    """Find where the secret after a telling word begins and ends; an empty span where it is none.

    A value that stays is short or shares no place with the next head, so that no text is looked at over and over.
    """
    word, start, quote = match["word"].lower(), match.end(), match["quote"]
    strength = "strong" if match.re is shapes.FLAG else _tells(text, match.start(), word)
    between = match["between"].lower()
    listed = between.lstrip("\\\"'`").startswith(",") and "value" not in between
    if strength == "no":
        return start, start
    if strength == "weak" or listed:
        run = _TOKEN_RUN.match(text, start)
        long = run is not None and len(run[0]) >= 16 and looks_random(run[0]) and not is_harmless(run[0])  # noqa: PLR2004
        return run.span() if run and long else (start, start)
    if word in ("authorization", "cookie"):
        return _header_value(text, start, quote, word)
    if quote:
        until = _UNTIL_ESCAPED_QUOTE if quote.startswith("\\") else _UNTIL_QUOTE
        value = until[quote.lstrip("\\")].match(text, start)
    else:
        value = _BARE.match(text, start)
    if value is None or is_harmless(value[0]) or _is_code(value[0], text, match):
        return start, start
    return value.span()


def _header_value(text: str, start: int, quote: str | None, word: str) -> tuple[int, int]:
    """Take a header's value to the end of its line; unquoted and without a known form it may be a sentence."""
    scheme = _AUTH_SCHEME.match(text, start) if word == "authorization" else None
    begin = scheme.end() if scheme else start
    run = _TOKEN_RUN.match(text, begin)
    known = scheme is not None and scheme[0].strip().lower() in _SCHEMES
    pair = word == "cookie" and _COOKIE.match(text, start) is not None
    if not (quote or known or pair or (run and looks_random(run[0]))):
        return start, start
    line = _LINE.match(text, begin)
    value = line[0].rstrip() if line else ""
    return (start, start) if is_harmless(value) else (begin, begin + len(value))


def _tells(text: str, start: int, word: str) -> str:
    """Say how much a word tells at this place: `strong`, `weak` (only with a random value) or `no`."""
    before = text[max(0, start - 24) : start]
    if word in _SHORT_WORDS and before[-1:].isalpha() and not (before[-1:].islower() and text[start].isupper()):
        return "no"
    if word == "key" and before.lower().rstrip("_-. ").endswith(shapes.KEY_QUALIFIERS):
        return "strong"
    return "weak" if word in _WEAK else "strong"


def is_harmless(value: str) -> bool:
    """Tell whether a value is no secret: empty, a placeholder, or masked already."""
    if len(value) > _MAX_KEPT:
        return False
    stripped = value.strip()
    return (
        not stripped
        or stripped.lower() in _NOTHING
        or _DONE.fullmatch(stripped) is not None
        or _PLACEHOLDER.fullmatch(stripped) is not None
    )


def _is_code(value: str, text: str, match: re.Match[str]) -> bool:
    """Tell expressions, comparisons and sentences from values that are assigned."""
    if len(value) > _MAX_KEPT:
        return False
    word, between = match["word"].lower(), match["between"]
    if match["quote"]:
        return "==" in between and value.isalpha() and len(value) < 8  # noqa: PLR2004
    follows = match.end() + len(value)
    if _CODE.fullmatch(value) or _CALL.fullmatch(value) or value.lower() == word or text.startswith("(", follows):
        return True
    if between.strip() in ("is", "was"):
        return not (any(map(str.isdigit, value)) and any(map(str.isalpha, value)))
    if word.startswith(("pass", "pwd")):
        return False
    if value.isdigit():
        return len(value) < 8  # noqa: PLR2004
    return ":" in between and value.rstrip(".").isalpha() and len(value) < 16  # noqa: PLR2004
