"""Words that tell of a secret, and what may stand between such a word and its value."""

from __future__ import annotations

import re

from thena_core.record.shapes import words

_ESCAPES = r"\\{0,15}"
_QUOTE = rf"{_ESCAPES}(?:\"{{3}}|'{{3}}|[\"'`“])"
_COLOUR = r"(?:\x1b\[[0-9;]{0,8}m){0,2}"
_CLOSED = rf"(?:{_ESCAPES}[\"'`”]\]?)?(?:</?(?:b|strong|key|dt|td|th|label)>)?\*{{0,2}}{_COLOUR}"
_TYPE = r"(?:&(?:'\w{1,12} )?)?(?:str|bytes|[sS]tring|SecretStr|str \| None|Optional\[str\])"
_SIGNS = "|".join((
    rf"(?:\?\s?)?:\s{{0,4}}{_TYPE}\s{{0,4}}=",
    r"%(?:25){0,3}3[dD]|%(?:25){0,3}3[aA](?:%20|\+)?",
    r"</(?:key|td|th|dt)>\s{0,40}<(?:string|td|dd)>",  # a property list, a table
    r":[ \t]{1,4}[|>][+\-]?[ \t]{0,4}\r?\n[ \t]{1,40}",  # a block of YAML
    r":=|=>|->|={1,3}|:|：|＝|\.{2,30}:?",
    r"[ \t]{0,4}(?:for[ \t]\S{1,40}[ \t])?(?:is|was)(?:[ \t]now)?(?:[ \t]set[ \t]to)?[ \t]?:?(?=\s)",
    r"[ \t]{0,4}(?:provided|supplied|given|received|used|set[ \t]to|changed[ \t]to|reset[ \t]to)[ \t]?:?(?=\s)",
))  # fmt: skip
_NAMED = rf"{_ESCAPES}\"[A-Za-z]{{1,20}}{_ESCAPES}\"\s{{0,4}}:\s{{0,4}}"
_APART = "|".join((
    rf",\s{{0,16}}{_ESCAPES}[\"']?(?i:value|v){_ESCAPES}[\"']?\s{{0,4}}[:=]",  # {"name": "PASSWORD", "value": …}
    rf",(?:\s{{0,16}}{_NAMED}[^,\n]{{0,60}},){{1,3}}\s{{0,16}}{_ESCAPES}\"(?i:value){_ESCAPES}\"\s{{0,4}}:",
    r"\s{1,16}(?i:value|default|content)\s{0,2}[:=]",  # - name: PASSWORD, value: … in YAML; attributes in XML
    r"[\"'][^<>\n]{0,100}?\svalue=",  # <input type="password" … value="…">
    rf",(?=\s{{0,2}}[bfru]{{0,2}}{_ESCAPES}[\"'])",  # ("PASSWORD", "…")
))  # fmt: skip
# Elements: what stands between the tags is the value; `assigned` looks for the tag's beginning.
_ELEMENT = r"(?:\s[^<>\n]{0,100})?(?<!\s)>(?:\s{0,8}<!\[CDATA\[|\s{0,40}<(?:string|dd|td|code)>)?(?=[^\s<])"
# Nothing but a blank: then the value's own look decides.
_BESIDE = r"[ \t]{1,2}(?=[\"'`“]\S)|\t(?=\S)|[ ]{1,40}(?=[^\s\"'`=:]{0,40}\d)|[ \t]{0,4}\|(?=[ \t]{0,4}\w)"
_BETWEEN = (
    rf"{_CLOSED}(?:\s{{0,4}}(?:{_SIGNS})|{_APART}|{_ELEMENT}|{_BESIDE})"
    rf"{_COLOUR}\*{{0,2}}[ \t]{{0,4}}{_COLOUR}(?:\s{{0,8}}(?={_QUOTE}))?"
    rf"(?:[\[(]\s{{0,8}}(?=[bfruBFRU]{{0,2}}{_QUOTE})|\[\[)?(?:[bfruBFRU@$]{{1,2}}(?=[\"']))?"
)

_STEMS = (
    "password passwords passwort passwörter passwd passphrase passcode pass pwd secret secrets key keys token "
    "tokens credential credentials cred creds auth authorization authentication jwt connectionstring "
    "connection_string mnemonic seed_phrase seedphrase recovery_phrase backup_phrase secret_phrase cookie "
    "signature sig session sessionid session_id sessid phpsessid sid pat pin otp pw kennwort senha contraseña "
    "contrasenya parola lozinka hasło heslo wachtwoord lösenord adgangskode kodeord passord salasana şifre sifre "
    "lykilorð jelszó geslo heslo slaptažodis parool parole пароль סיסמה contrasena clave mdp 密码 密碼 口令 密钥 "
    "密鑰 秘钥 令牌 パスワード パスフレーズ 비밀번호 암호 csrftoken psk bindpw rootpw"
)


def _one_of(listed: str) -> str:
    """Write an alternation in any case, grouped by first letter: where none starts it costs one comparison."""
    by_first: dict[str, list[str]] = {}
    for word in sorted(words(listed), key=len, reverse=True):
        for first in {word[0], word[0].upper()}:
            by_first.setdefault(first, []).append(re.escape(word[1:]))
    groups = (f"{first}(?i:{'|'.join(tails)})" for first, tails in sorted(by_first.items()))
    return f"(?:{'|'.join(groups)})"


# A word that tells, what stands between it and its value, and the quote that opens the value.
TELLING = re.compile(
    f"(?P<word>{_one_of(_STEMS)}"
    f"|(?i:mot de passe|mật khẩu|kata sandi|كلمة المرور|(?:seed|recovery|backup|secret)[ \\-]phrase))"
    f"(?:[_\\-]?(?:(?i:base|base64|value|hash|confirmation|confirm|again|repeat|plain|text|plaintext|raw|data)|[0-9]{{1,2}}))?"
    f"(?P<between>{_BETWEEN})(?P<quote>{_QUOTE})?"
)
FLAG = re.compile(
    r"(?<![\w\-])--?(?:[A-Za-z0-9]{1,20}[\-_]){0,4}"
    r"(?P<word>(?i:password|passwd|passphrase|pass|pwd|secret|token|api-?key|key|credentials?|auth))"
    r"(?P<between>[ \t]{1,4})(?P<quote>[\"'])?(?=[^\s\-|&;<>])"
)

# What makes a `key` a secret, when it stands before it.
KEY_QUALIFIERS = words(
    "api app access secret private priv auth encryption encrypt signing sign service account master shared storage "
    "subscription license licence consumer client deploy admin webhook hmac crypto cipher session aes rsa ssh gpg "
    "host server user bot openai anthropic azure google aws stripe function functions primary secondary"
)

# How much a word tells: `strong` ones of whatever follows, `medium` ones of what is no plain word, the rest of what is
# long and random.
MEDIUM = words("pass pw pin otp tokens keys secrets clave mdp parole")
WEAK = words(
    "key keys sig signature session sessionid session_id sessid phpsessid sid auth authentication pat cred otp pin "
    "tokens csrftoken"
)
PASSWORDS = words("password passwords passwd passwort pwd pw passphrase passcode bindpw rootpw")
PHRASES = words("passphrase mnemonic seed_phrase seedphrase recovery_phrase backup_phrase secret_phrase")
# So short that they end other words: `compass`, `author`, `spin`.
SHORT = words("pass pw pat pin otp sig sid pwd auth cred creds session sessid psk mdp clave parole parool")
