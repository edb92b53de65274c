"""Values that a telling word gives away: `password=…`, `"api_key": "…"`, `Authorization: Bearer …`, `--token …`."""

from __future__ import annotations

import re

from thena_core.record import shapes, telling

MASKED = "…masked"

_DONE = re.compile(
    r"(?:[A-Za-z0-9_.:/$+\-]{0,32}|(?i:bearer|basic|apikey|token|key|negotiate|ssws) {1,4}[A-Za-z0-9_.\-]{0,32})…masked"
)
_NOTHING = shapes.words(
    "none null nil true false undefined str string bytes int bool any optional required missing yes no empty todo "
    "object secretstr self await new function lambda not async return value values text data result input default "
    "name user example redacted hidden masked removed config"
)
_PLACEHOLDER = re.compile(
    r"[<{$%\[(…].*|\*+|[xX]+|[.•…\-_=]+|(?i:your)[_\- ].*|\\+|(?i:\[?redacted\]?|\[?filtered\]?)", re.DOTALL
)
_CODE = re.compile(
    r"(?:self|cls|this|os|process|settings|config|cfg|env|environ|args|ctx|request|secrets|getpass)[.\[(].*", re.DOTALL
)
_CALL = re.compile(r"[A-Za-z_][\w.]*[(\[].*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_ALGORITHM = re.compile(r"(?i:sha|base|md|utf|v|step|bcrypt|argon|pbkdf|field|input)[\-_]?\d{1,4}\W*")
_TYPE_NAME = re.compile(r"_?(?:[A-Z]+[a-z]+){2,}")
_BARE = re.compile(r"(?:[^\s\"'`&,;)}\]<>\\\x1b”]|\\(?![nrt\"'])|[,;)}\]>](?![\s\"'`\\,;:)}\]]|$|\w{1,30}=))++")
_UNTIL_QUOTE = {
    '"': re.compile(r'(?:[^"\\\r\n]|\\.)*+'),
    "'": re.compile(r"(?:[^'\\\r\n]|\\.)*+"),
    "`": re.compile(r"[^`\r\n]*+"),
    "“": re.compile(r"[^”\r\n]*+"),
    '"""': re.compile(r'(?:[^"]|"(?!""))*+'),
    "'''": re.compile(r"(?:[^']|'(?!''))*+"),
}
_UNTIL_ESCAPED_QUOTE = {quote: re.compile(rf"(?:[^{quote[0]}\\\r\n]|\\++(?!{quote[0]}))*+") for quote in _UNTIL_QUOTE}
_TOKEN_RUN = re.compile(r"[A-Za-z0-9_\-.+/~%]++(?::[A-Za-z0-9]{16,}+)?={0,2}+")
_LINE = re.compile(r"(?:[^\"'`\r\n\\]|\\(?![nr\"']))*+")
_WHOLE_LINE = re.compile(r"[^\r\n]*+")
_AUTH_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9\-]{2,20}|AWS4-HMAC-SHA256)[ \t]{1,4}(?=[^\s…])")
_COOKIE = re.compile(r"[A-Za-z0-9_.\-]{1,100}=")
_SCHEMES = shapes.words("bearer basic digest token apikey negotiate aws4-hmac-sha256 ssws hawk oauth")
_OPENED = re.compile(r"([\"'`])[\w\-. ]{0,24}$")
_NEXT_ITEM = re.compile(r"\\{0,15}[\"']\s{0,16},\s{0,16}[bfru]?\\{0,15}[\"']")
_CONFIG_END = re.compile(r"[ \t]*(?:$|[\r\n&;\"'`<|#])|[ \t]+(?:[A-Za-z_]\w{0,40}=|[a-z\-]{2,20}(?:[ \t]|$))")
_LONGEST_KEPT = 64
_SHORTEST = 3
_LONGEST_UNSURE = 300


def is_secret_name(name: str) -> bool:
    """Tell whether a field of this name holds a secret as a whole, such as `password`, `apiKey` or `Authorization`."""
    if len(name) > 200:  # noqa: PLR2004  -- longer is text, not a name; `mask` looks at it
        return False
    match = telling.TELLING.search(name + "=")
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


def is_telling_value(text: str) -> bool:
    """Tell passwords from words where only a value's own look can: letters beside digits or signs."""
    return len(text) > 4 and any(map(str.isalpha, text)) and any(c.isdigit() or c in "!@#$%^&*+=?~" for c in text)  # noqa: PLR2004


def mask_values(text: str, head: re.Pattern[str]) -> str:
    """Mask what follows each match of `head`, which is `telling.TELLING` or `telling.FLAG`."""
    out: list[str] = []
    done = position = 0
    while (match := head.search(text, position)) is not None:
        start, end = _secret_value(text, match)
        position = match.end()
        # A list may hold several: `"passwords": ["…", "…"]`.
        several = "[" in match["between"]
        while start < end:
            out += text[done:start], MASKED
            done = position = end
            following = _NEXT_ITEM.match(text, end) if several else None
            if following is None:
                break
            start, end = _quoted(text, following.end(), following[0].rpartition(" ")[2].lstrip(",bfru"))
    return "".join([*out, text[done:]]) if out else text


def _quoted(text: str, start: int, quote: str) -> tuple[int, int]:
    until = _UNTIL_ESCAPED_QUOTE if quote.startswith("\\") else _UNTIL_QUOTE
    value = until[quote.lstrip("\\")[-3:]].match(text, start) if quote.lstrip("\\")[-3:] in until else None
    return (start, start) if value is None or is_harmless(value[0]) else value.span()


def _secret_value(text: str, match: re.Match[str]) -> tuple[int, int]:
    """Find where the secret after a telling word begins and ends; an empty span where it is none.

    A value that stays is short or shares no place with the next head, so that no text is looked at over and over.
    """
    word, start, quote, between = match["word"].lower(), match.end(), match["quote"], match["between"]
    strength = "strong" if match.re is telling.FLAG else _tells(text, match.start(), word)
    if strength == "no" or _is_no_assignment(text, match):
        return start, start
    if strength == "weak":
        return _random_value(text, start, word)
    sign = between.strip().lstrip("\\\"'`”])*")
    listed = sign.startswith((",", "|")) and "value" not in between.lower()
    beside = not sign and match.re is not telling.FLAG  # only a quote follows: `invalid token "…"`
    if word in ("authorization", "cookie"):
        return _header_value(text, start, quote if not listed and not beside else None, word)
    unsure = listed or beside or strength == "medium"
    value = _value_at(text, start, quote, word, start + _LONGEST_UNSURE if unsure else len(text))
    if (
        value is None
        or (beside and not _may_stand_beside(word, quote, value[0]))
        or is_harmless(value[0])
        or _is_code(value[0], text, match)
    ):
        return start, start
    if unsure and (len(value[0]) == _LONGEST_UNSURE or word in value[0].lower() or not is_telling_value(value[0])):
        return start, start
    return value.span()


def _may_stand_beside(word: str, quote: str | None, value: str) -> bool:
    """Tell `password hunter2` and `token "a1b2c3"` from `pass "x=1"` and `password sha256`."""
    if quote:
        return word != "pass"
    return word in telling.PASSWORDS and _ALGORITHM.fullmatch(value) is None and any(map(str.isdigit, value))


def _random_value(text: str, start: int, word: str) -> tuple[int, int]:
    """Take what looks like a key; of a `pin` also its digits."""
    run = _TOKEN_RUN.match(text, start)
    if run is None:
        return start, start
    number = word in ("pin", "otp") and run[0].isdigit() and 4 <= len(run[0]) <= 8  # noqa: PLR2004
    key = _is_key(run[0]) and word not in run[0].lower() and not is_harmless(run[0])
    return run.span() if number or key else (start, start)


def _is_key(run: str) -> bool:
    return len(run) >= 16 and any(map(str.isdigit, run)) and looks_random(run)  # noqa: PLR2004


def _value_at(text: str, start: int, quote: str | None, word: str, end: int) -> re.Match[str] | None:
    if quote:
        until = _UNTIL_ESCAPED_QUOTE if quote.startswith("\\") else _UNTIL_QUOTE
        return until[quote.lstrip("\\")].match(text, start, end)
    if word.replace(" ", "_").replace("-", "_") in telling.PHRASES:
        return _LINE.match(text, start, end)
    return _BARE.match(text, start, end)


def _is_no_assignment(text: str, match: re.Match[str]) -> bool:
    """Tell a quote that closes (`"Password: "`), a docstring below a class, and a tag's end from an assignment."""
    between, quote = match["between"], match["quote"]
    sign = between.strip().lstrip("\\\"'`”])*")
    closed = between.lstrip()[:1] in ("\\", '"', "'", "`", "”", "]")
    if ">" in sign[:100] and "=>" not in sign and "->" not in sign and not re.match(r"[:=]", sign):
        start = match.start()
        return re.search(r"<[\w:.\-]{0,40}>?$", text[max(0, start - 48) : start]) is None
    if quote and not closed and "=" not in sign:
        if "\n" in between and not re.match(r":[ \t]+[|>]", sign):
            return True
        opened = _OPENED.search(text[max(0, match.start() - 26) : match.start()])
        return opened is not None and opened[1] == quote
    return False


def _header_value(text: str, start: int, quote: str | None, word: str) -> tuple[int, int]:
    """Take a header's value to the end of its line; unquoted and without a known form it may be a sentence."""
    scheme = _AUTH_SCHEME.match(text, start) if word == "authorization" else None
    begin = scheme.end() if scheme else start
    run = _TOKEN_RUN.match(text, begin)
    name = scheme[0].strip().lower() if scheme is not None else ""
    pair = word == "cookie" and _COOKIE.match(text, start) is not None
    if not (name in _SCHEMES or pair or (word == "authorization" and (quote or (run and is_telling_value(run[0]))))):
        return start, start
    in_parts = not quote and name in ("digest", "hawk", "oauth")
    line = (_WHOLE_LINE if in_parts else _LINE).match(text, begin)
    value = line[0].rstrip() if line else ""
    return (start, start) if is_harmless(value) else (begin, begin + len(value))


def _tells(text: str, start: int, word: str) -> str:
    """Say how much a word tells at this place: `strong`, `medium`, `weak` (only with a random value) or `no`."""
    before = text[max(0, start - 24) : start]
    if word in telling.SHORT and before[-1:].isalpha() and not (before[-1:].islower() and text[start].isupper()):
        return "no"
    if word == "key" and before.lower().rstrip("_-. ").endswith(telling.KEY_QUALIFIERS):
        return "strong"
    if word in telling.WEAK:
        return "weak"
    if word in telling.MEDIUM:
        # DB_PASS and "pass" are names, `second pass` is a word
        return "strong" if word == "pass" and before[-1:] in ("_", '"', "'") else "medium"
    return "strong"


def is_harmless(value: str) -> bool:
    """Tell whether a value is no secret: empty, a placeholder, or masked already."""
    if len(value) > _LONGEST_KEPT:
        return False
    stripped = value.strip()
    return (
        len(stripped) < _SHORTEST
        or stripped.lower() in _NOTHING
        or _DONE.fullmatch(stripped) is not None
        or _PLACEHOLDER.fullmatch(stripped) is not None
    )


def _is_code(value: str, text: str, match: re.Match[str]) -> bool:
    """Tell expressions, comparisons and sentences from values that are assigned."""
    if len(value) > _LONGEST_KEPT:
        return False
    word, between = match["word"].lower(), match["between"]
    if match["quote"]:
        return "==" in between and value.isalpha() and len(value) < 8  # noqa: PLR2004
    follows = match.end() + len(value)
    if "==" in between or _CODE.fullmatch(value) or _CALL.fullmatch(value) or text.startswith("(", follows):
        return True
    if match.re is telling.FLAG:
        return False
    if value.isdigit():
        return len(value) < (4 if word.startswith(("pass", "pw")) else 8)
    plain = value.rstrip(".!?…:")
    if not _NAME.fullmatch(plain):
        return len(plain) < 2  # noqa: PLR2004
    return _is_word(plain, text[follows : follows + 48], word, between)


def _is_word(value: str, follows: str, word: str, between: str) -> bool:
    """Tell a variable, a type or a word of a sentence from a password that looks like one."""
    digits = any(map(str.isdigit, value))
    lower = value.lower()
    if digits:
        return "." in value and word in lower
    if word in lower or (_TYPE_NAME.fullmatch(value) and ":" in between) or follows.startswith(("(", "[", "\\")):
        return True
    if not re.search(r"[=:]", between):  # `the password is wrong`
        return True
    config = _CONFIG_END.match(follows) is not None
    if "=" in between and " " not in between:
        return not config
    by_itself = re.match(r"[ \t]*(?:$|[\r\n])", follows) is not None
    return not (by_itself and word.startswith(("pass", "pwd", "secret")) and "." not in value and "_" not in value)
