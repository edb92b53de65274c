"""The shapes by which a secret is known: prefixes, whole forms, and the words that tell of one.

Every pattern does a bounded amount of work per place where it can start, or ends in a possessive run that it
consumes: nothing here can backtrack, so masking stays linear in the text.
"""

from __future__ import annotations

import re

# Odd enough to be sure of, wherever they stand: the vendor chose them so that scanners find them.
SURE_PREFIXES = (
    "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- glptt- glcbt- glft- glsoat- glagent- glimt- glffct- "
    "glrtr- GR1348941 xoxb- xoxp- xoxa- xoxr- xoxs- xoxc- xoxd- xoxo- xoxe- xoxe.xoxb- xoxe.xoxp- xapp- sk-ant- "
    "sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk-lf- pplx- nvapi- lsv2_pt_ lsv2_sk_ tvly- pcsk_ tgp_v1_ AIza GOCSPX- "
    "ya29. dckr_pat_ dckr_oat_ pypi-AgE rubygems_ shpat_ shpca_ shppa_ shpss_ sq0atp- sq0csp- lin_api_ lin_oauth_ "
    "figd_ figdr_ PMAK- NRAK- NRII- NRJS- NRSP- glsa_ glc_ sntryu_ sntrys_ dop_v1_ doo_v1_ dor_v1_ dp.pt. dp.st. "
    "dp.ct. HRKU- nfp_ sbp_ sb_secret_ pscale_tkn_ pscale_pw_ pscale_oauth_ hvs. hvb. hvr. AGE-SECRET-KEY- ops_eyJ "
    "CLOJARS_ dt0c01. dt0s01. duffel_live_ duffel_test_ FLWSECK shippo_live_ shippo_test_ xkeysib- xsmtpsib- tskey- "
    "whsec_ rdme_ ATATT3 ATCTT3 bkua_ CCIPAT_ CFPAT- sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ apify_api_ "
    "bedrock-api-key- access_token$production$ secret-token:"
)

# Ordinary words carry these, too, so what follows must look random.
LIKELY_PREFIXES = (
    "sk- sk_ gsk_ xai- csk- r8_ hf_ api_org_ fw_ e2b_ jina_ llx- pa- fc- npm_ ntn_ secret_ pul- sqp_ squ_ sqa_ sgp_ "
    "phx_ tfp_ aio_ re_ rnd_ napi_ fo1_ fm1_ fm2_ pat- pat. tk-us- EZAK EZTK ATBB AKCp LTAI AKID ABSK AQVN y0_ t1. "
    "pnu_ sm_aat_ ico- ovsxat_ endr+ b_ key- v1.0- CFPAT access-sandbox- access-production- ops_ glcp_ vcp_ atlasv1. "
    "SG. dapi dsapi EAA"
)


def words(text: str) -> tuple[str, ...]:
    """Split a list that is kept as a text, so that its words can be read at a glance."""
    return tuple(text.split())


def _one_of(listed: str, *, any_case: bool = False) -> str:
    """Write an alternation grouped by first letter, so that a place where none starts costs one comparison."""
    by_first: dict[str, list[str]] = {}
    for word in sorted(words(listed), key=len, reverse=True):
        for first in {word[0], word[0].upper()} if any_case else {word[0]}:
            by_first.setdefault(first, []).append(re.escape(word[1:]))
    rest = "(?i:{})" if any_case else "(?:{})"
    groups = (re.escape(first) + rest.format("|".join(tails)) for first, tails in sorted(by_first.items()))
    return f"(?:{'|'.join(groups)})"


# A word starts here: also after an escape as JSON (\n, \u003d), URLs (%3D) and terminals (ESC[0m) write it.
EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\[[0-9]m)|(?<=\[[0-9]{2}m))"
_TAIL = r"(?:\.(?=[A-Za-z0-9_\-]{10})[A-Za-z0-9_\-]++){0,4}+[+/=]{0,2}+(?:(?<=[+/])[A-Za-z0-9_+/\-]++={0,2}+)?"

SURE = re.compile(f"(?P<kept>{_one_of(SURE_PREFIXES)})[A-Za-z0-9_\\-]{{8,}}+{_TAIL}")
LIKELY = re.compile(f"{EDGE}(?P<kept>{_one_of(LIKELY_PREFIXES)})(?P<tail>[A-Za-z0-9_\\-]{{16,}}+{_TAIL})")

# Whole forms, each with the part that may stay.
WHOLE = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<kept>AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{12,}+",  # Amazon's access key ids
        r"(?P<kept>1//0)[A-Za-z0-9_\-]{30,}+",  # Google's refresh tokens
        r"(?P<kept>SK)(?<![A-Za-z0-9]SK)[0-9a-f]{32}(?![0-9A-Za-z])",  # Twilio
        r"(?<![0-9A-Za-z])(?P<kept>\d{8,10}:)AA[A-Za-z0-9_\-]{30,}+",  # Telegram's bots
        r"(?<![A-Za-z0-9_\-])(?P<kept>[MNO])[A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,}+",  # Discord
        r"(?<![0-9A-Za-z])(?P<kept>)[0-9a-f]{32}-us\d{1,2}(?![0-9A-Za-z])",  # Mailchimp
        r"(?P<kept>)[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.\-]{31,}+",  # Microsoft Entra's client secrets
        r"(?P<kept>hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9_/\-]{16,}+",
        r"(?P<kept>discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/)[A-Za-z0-9_/\-]{16,}+",
        r"(?P<kept>webhook\.office\.com/webhookb2/)[A-Za-z0-9_/@\-]{16,}+",
        r"(?P<kept>login\s{1,8}\S{1,128}\s{1,8}password\s{1,8})[^\s…]\S*+",  # .netrc
        r"(?P<kept>auth[\"']?\s{0,4}[=:]\s{0,4}\(\s{0,4}[\"'][^\"'\n]{0,128}[\"'],\s{0,4}[\"'])[^\"'\n…][^\"'\n]*+",
        r"(?P<kept>api\.telegram\.org/(?:file/)?bot)[A-Za-z0-9_:\-]{16,}+",
    )
)

# Consumes the whole run of parts and leaves the verdict to the caller: no run is looked at twice.
JWT = re.compile(r"eyJ[A-Za-z0-9_\-]*+(?:\.[A-Za-z0-9_\-]*+){0,4}+")
PREFIXED = re.compile(r"(?<![A-Za-z0-9_\-])(?P<word>[A-Za-z][A-Za-z0-9_\-]{27,}+)")
PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,20}-----")
PEM_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s]|\\++[nr])*+")
URL_LOGIN = re.compile(r"(?P<kept>://[^\s:/@\"'<>\\]{0,256}+:)[^\s/\"'<>\\]{1,512}(?=@)")
URL_TOKEN = re.compile(r"(?P<kept>://)(?P<tail>[A-Za-z0-9_\-.~%]{20,}+)(?=@)")
CURL_LOGIN = re.compile(r"(?P<kept>(?<!\S)(?:-u|--user|--proxy-user)[ =]{1,4}[\"']?[^\s:\"'/]{1,128}:)[^\s\"']{1,256}+")
SCHEME = re.compile(
    r"(?P<kept>(?<![A-Za-z0-9])(?i:bearer|basic|apikey|token|key|negotiate)(?:[ \t]|%20){1,4})"
    r"(?P<tail>[A-Za-z0-9._~+/\-]{6,}+={0,2}+)"
)

_QUOTE = r"\\{0,3}(?:\"{3}|'{3}|[\"'`])"
_SEPARATOR = (
    r"(?:\\{0,3}[\"'`])?\]?\s{0,4}"
    r"(?:(?:\?\s?)?:\s{0,4}(?:str|bytes|[sS]tring|SecretStr|str \| None|Optional\[str\])\s{0,4}=|%3[dD]|:=|=>|={1,3}|:"
    r"|(?<!\s)>(?=[^\s<])|\s(?:is|was)(?=\s)|,\s{0,16}\\{0,3}[\"']?(?i:value)\\{0,3}[\"']?\s{0,4}[:=]|,(?=\s{0,2}\\{0,3}[\"']))"
    r"[ \t]{0,4}(?:\s{0,8}(?=\\{0,3}[\"'`]))?(?:[\[({]\s{0,2}(?=\\{0,3}[\"'`]))?(?:[bfruBFRU]{1,2}(?=[\"']))?"
)
_STEMS = (
    "password passwords passwort passwd passphrase passcode pass pwd secret secrets key keys token credential "
    "credentials cred creds auth authorization authentication jwt connectionstring connection_string mnemonic "
    "seed_phrase cookie signature sig session sessionid session_id sid pat pin otp"
)
# A word that tells, what stands between it and its value, and the quote that opens the value.
TELLING = re.compile(
    f"(?P<word>{_one_of(_STEMS, any_case=True)})"
    f"(?:[_\\-]?(?:(?i:base|value|hash|plain|text|raw)|[0-9]{{1,2}}))?(?P<between>{_SEPARATOR})(?P<quote>{_QUOTE})?"
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
