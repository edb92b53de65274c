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
    "bedrock-api-key- secret-token: rzp_live_ rzp_test_ AVNS_ hcaik_ hcxik_ hcbik_ mdb_sa_sk_ vercel_blob_rw_ "
    "cfut_ cfat_ gloas- sk-None- n8n_api_ unkey_ ory_at_ ory_rt_ ory_ac_ ddp_ eyJrIjoi cmVmdGtu dG9rOj AQ. fm1_ fm2_ "
    "sha256~ sk-litellm- fio-u- esecret_ signkey- xaat- xapt- nsec1 s-s4t2ud- s-s4t2af- hl_sk_ zpka_"
)

# Ordinary words carry these, too, so what follows must look random.
LIKELY_PREFIXES = (
    "sk- sk_ gsk_ xai- csk- r8_ hf_ api_org_ fw_ e2b_ jina_ llx- pa- fc- npm_ ntn_ secret_ pul- sqp_ squ_ sqa_ sgp_ "
    "phx_ tfp_ aio_ re_ rnd_ napi_ fo1_ pat- pat. tk-us- EZAK EZTK ATBB AKCp LTAI AKID AQVN y0_ t1. "
    "pnu_ sm_aat_ ico- ovsxat_ endr+ b_ key- v1.0- CFPAT access-sandbox- access-production- ops_ glcp_ vcp_ atlasv1. "
    "SG. dapi dsapi EAA sm_sat_ sm_pat_ rpa_ syt_ m0- tr_prod_ tr_stg_ tr_dev_ tr_pat_ vtwn_ bb_live_"
)


def words(text: str) -> tuple[str, ...]:
    """Split a list that is kept as a text, so that its words can be read at a glance."""
    return tuple(text.split())


def either(listed: str) -> tuple[str, ...]:
    """Split the texts of which one must be there, for a form to be looked for."""
    return tuple(listed.split(", "))


def _one_of(listed: str) -> str:
    """Write an alternation grouped by first letter, so that a place where none starts costs one comparison."""
    by_first: dict[str, list[str]] = {}
    for word in sorted(words(listed), key=len, reverse=True):
        by_first.setdefault(word[0], []).append(re.escape(word[1:]))
    groups = (f"{re.escape(first)}(?:{'|'.join(tails)})" for first, tails in sorted(by_first.items()))
    return f"(?:{'|'.join(groups)})"


# A word starts here: also after an escape as JSON (\n, \u003d), URLs (%3D) and terminals (ESC[0m) write it.
EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\[[0-9]m)|(?<=\[[0-9]{2}m))"
_TAIL = r"(?:\.(?=[A-Za-z0-9_\-]{10})[A-Za-z0-9_\-]++){0,4}+[+/=]{0,2}+(?:(?<=[+/])[A-Za-z0-9_+/\-]++={0,2}+)?"

SURE = re.compile(f"(?P<kept>{_one_of(SURE_PREFIXES)})[A-Za-z0-9_\\-+/]{{8,}}+{_TAIL}")
LIKELY = re.compile(f"{EDGE}(?P<kept>{_one_of(LIKELY_PREFIXES)})(?P<tail>[A-Za-z0-9_\\-]{{16,}}+{_TAIL})")

_END = r"(?![0-9A-Za-z])"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FIELD = r"[\w.\-]{0,60}(?i:password|passwd|passphrase|secret|token|api_?key|_key|pwd|credential)\w{0,20}"
ARGUMENT = r"[^\s\"'…][^\s\"']*+"

# Whole forms, each with the part that may stay. A text without the words before it is not searched for the form, and
# the form is compiled (and kept, by `re`) when the first text with them comes: most programs never need most.
WHOLE = tuple(
    (either(needles), pattern)
    for needles, pattern in (
        ("AKIA, ASIA, ABIA, ACCA, A3T", r"(?P<kept>AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{12,}+"),  # Amazon's key ids
        ("ABSK", r"(?<![A-Za-z0-9+/])(?P<kept>ABSK)[A-Za-z0-9+/]{80,}+={0,2}+"),  # Amazon Bedrock
        ("1//0", r"(?P<kept>1//0)[A-Za-z0-9_\-]{30,}+"),  # Google's refresh tokens
        ("SK", r"(?P<kept>SK)(?<![A-Za-z0-9]SK)[0-9a-f]{32}" + _END),  # Twilio
        (":AA", r"(?<![0-9A-Za-z])(?P<kept>\d{8,10}:)AA[A-Za-z0-9_\-]{30,}+"),  # Telegram's bots
        (".", r"(?<![\w\-])(?P<kept>[MNO])[A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,}+"),  # Discord
        # Mailchimp, Mailgun, Zhipu
        (
            "-, .",
            (
                r"(?<![0-9A-Za-z\-])(?P<kept>)[0-9a-f]{32}"
                r"(?:-us\d{1,2}|-[0-9a-f]{8}-[0-9a-f]{8}|\.(?=[A-Za-z]{0,15}\d)[A-Za-z0-9]{16})(?![0-9A-Za-z\-])"
            ),
        ),
        ("Q~", r"(?P<kept>)[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.\-]{31,}+"),  # Microsoft Entra
        ("access_token$", r"(?P<kept>access_token\$[a-z]{4,12}\$)[0-9a-z]{8,32}\$[0-9a-f]{16,64}+"),  # Braintree
        ("gl", r"(?P<kept>gl[a-z]{2,6}-)[A-Za-z0-9_\-]{16,128}+\.[0-9a-z]{2}\.[0-9a-z]{7,12}+"),  # GitLab, routable
        ("dp.st.", r"(?P<kept>dp\.st\.[a-z0-9_\-]{2,35}\.)[A-Za-z0-9]{32,}+"),  # Doppler's service tokens
        ("pat", r"(?<![A-Za-z0-9])(?P<kept>pat)[A-Za-z0-9]{14}\.[0-9a-f]{64}"),  # Airtable
        ("0/, 1/, 2/", r"(?<![0-9A-Za-z])(?P<kept>[0-2]/)\d{12,20}(?:/\d{12,20})?:[0-9a-f]{32}" + _END),  # Asana
        ("oy2", r"(?<![0-9A-Za-z])(?P<kept>oy2)[a-z0-9]{43}" + _END),  # NuGet
        ("cio", r"(?<![0-9A-Za-z])(?P<kept>cio)(?=[A-Za-z]{0,31}\d)[A-Za-z0-9]{32}" + _END),  # crates.io
        ("s., b., r.", r"(?<![0-9A-Za-z.])(?P<kept>[sbr]\.)(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}" + _END),  # old Vault
        ("pk_", r"(?<![0-9A-Za-z])(?P<kept>pk_)\d{5,10}_[0-9A-Z]{32}" + _END),  # ClickUp
        ("sdk-, api-, mob-", r"(?<![0-9A-Za-z])(?P<kept>(?:sdk|api|mob)-)" + _UUID),  # LaunchDarkly
        ("A3-", r"(?<![0-9A-Za-z])(?P<kept>A3-)[A-Z0-9]{6}-[A-Z0-9]{6,11}(?:-[A-Z0-9]{5}){3,4}"),  # 1Password
        ("st.", r"(?<![0-9A-Za-z])(?P<kept>st\.)[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{16,64}"),  # Infisical
        ("u+", r"(?<![0-9A-Za-z])(?P<kept>u\+)(?=[A-Za-z_\-]{0,17}\d)[A-Za-z0-9_\-]{18}" + _END),  # PagerDuty
        (
            "AQE",
            r"(?<![0-9A-Za-z+/])(?P<kept>AQE)[A-Za-z0-9+/=]{40,120}-[A-Za-z0-9+/=]{20,80}-[A-Za-z0-9]{8,}+",
        ),  # Adyen
        ("AAAAAAAA", r"(?<![0-9A-Za-z+/])(?P<kept>A{18,24})(?=[A-Za-z0-9]{0,90}%)[A-Za-z0-9%]{50,}+"),  # X's app tokens
        ("hooks.slack.com", r"(?P<kept>hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9_/\-]{16,}+"),
        ("api.telegram.org", r"(?P<kept>api\.telegram\.org/(?:file/)?bot)[A-Za-z0-9_:\-]{16,}+"),
        # Addresses that are secrets: whoever knows them may post there.
        (
            "hook, incoming, mcp/s/",
            (
                r"(?P<kept>://[^\s/\"'<>]{0,120}/(?:[^\s/\"'<>?]{1,40}/){0,6}?(?:hooks?|webhooks?|webhookb2|incoming|mcp/s)/)"
                r"(?=[A-Za-z/\-]{0,80}[0-9])[A-Za-z0-9_/@\-]{16,}+"
            ),
        ),
        # What systems keep of passwords: crypt, Apache, Argon2, Django.
        (
            "$",
            (
                r"(?P<kept>\$(?:2[abxy]|[1567y]|apr1|argon2(?:id?|d)|scrypt|sha1|pbkdf2(?:-sha\d{1,3})?)\$)"
                r"[A-Za-z0-9./+=,$*\-]{20,}+"
            ),
        ),
        ("pbkdf2_sha", r"(?P<kept>pbkdf2_sha(?:1|256)\$\d{3,8}\$)[A-Za-z0-9./+=$]{20,}+"),
        ("Private-Lines:", r"(?P<kept>Private-Lines: \d{1,3}\s{1,2})[A-Za-z0-9+/=\s]{16,}+"),  # PuTTY
        ("sl.", r"(?<![A-Za-z0-9.])(?P<kept>sl\.)(?:u\.)?[A-Za-z0-9_\-]{60,}+"),  # Dropbox
        ("live_, test_", r"(?<![A-Za-z0-9])(?P<kept>(?:live|test)_)[0-9a-f]{35}" + _END),  # Lob
        ("_mmk", r"(?<![A-Za-z0-9])(?P<kept>)[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk" + _END),  # MaxMind
        (
            ".acc",
            (
                r"(?P<kept>(?:sc|ext|scauth|authress)_)[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_\-][A-Za-z0-9\-]{10,32}"
                r"\.[A-Za-z0-9+/_=\-]{16,120}+"
            ),
        ),  # Authress
        ("prv", r"(?<![A-Za-z0-9])(?P<kept>[xyz]prv)[A-Za-z0-9]{90,}+"),  # a wallet's root
        ("appid=", r"(?P<kept>[?&]appid=)[0-9a-f]{32}" + _END),  # OpenWeather
        ("BUNDLE_", r"(?P<kept>BUNDLE_[A-Z0-9_]{2,60}__(?:COM|ORG|NET|IO)[=:]\s?[\"']?)" + ARGUMENT),
        # Addresses with a key in their path.
        (
            "alchemy, infura, quiknode, ankr, /key/",
            (
                r"(?P<kept>://[^\s/\"'<>]{0,100}(?:alchemy|alchemyapi|infura|quiknode|ankr)\.(?:com|io|pro)/(?:[a-z0-9_]{1,12}/){0,2}"
                r"|/key/)(?=[A-Za-z_\-]{0,40}[0-9])[A-Za-z0-9_\-]{16,}+"
            ),
        ),
        ("WIFI:", r"(?P<kept>WIFI:[^\n]{0,80};P:)[^;\s…][^;\n]{0,80}"),
        ("jdbc:oracle", r"(?P<kept>jdbc:oracle:[a-z]{2,8}:[^\s/@:\"']{1,64}/)[^\s@\"'…][^\s@\"']{0,128}(?=@)"),
        # ODBC's braces
        ("={", r"(?P<kept>(?i:pwd|password)=\{)(?=[^}\s]{0,99}\d)(?=[^}\s]{0,99}[A-Za-z])[^}\s\"'…]{1,100}(?=\})"),
        (
            "ecretStr, ecretBytes, ecureString",
            r"(?P<kept>(?:[sS]ecretStr|[sS]ecretBytes|[sS]ecureString)(?:\(\s{0,4}| {1,4})b?[\"'])[^\"'\n…][^\"'\n]*+",
        ),
        (
            "auth",
            r"(?P<kept>auth[\"']?\s{0,4}[=:]\s{0,4}\(\s{0,4}[\"'][^\"'\n]{0,128}[\"'],\s{0,4}[\"'])[^\"'\n…][^\"'\n]*+",
        ),
        # Words that stand before a value in quotes without a sign between: SQL, and what services answer.
        (
            "DENTIFIED, PASSWORD, dentified, assword",
            (
                r"(?P<kept>(?:(?i:identified\s{1,4}by)(?:\s{1,4}(?i:password))?|WITH(?:\s{1,4}ENCRYPTED)?\s{1,4}PASSWORD|"
                r"(?i:role|user)\s{1,4}\S{1,64}\s{1,4}PASSWORD)\s{1,4}[\"'])[^\"'\n…][^\"'\n]*+"
            ),
        ),
        (
            "ENV, setx, setenv, set",
            r"(?P<kept>(?<![\w\-])(?:ENV|setx|setenv|set -[a-zA-Z]{1,3}|config set)[ \t]{1,4}[\w.\-]{0,40}"
            r"(?i:secret|token|password|passwd|api_?key|_key|_pass|pwd)\w{0,10}[ \t]{1,4}[\"']?)" + ARGUMENT,
        ),
        (
            '"value", "Value"',
            (
                r"(?P<kept>\"[vV]alue\"\s{0,4}:\s{0,4}\")[^\"\s…\\]{4,256}+(?=\"\s{0,8},\s{0,8}\"(?i:name|key)\"\s{0,4}:\s{0,4}\""
                r"[^\"\n]{0,60}(?i:secret|token|password|passwd|api[_\-]?key|authorization|_key|_pass|pwd)\")"
            ),
        ),
        (
            "SecureString",  # Amazon's parameters
            r"(?P<kept>\"Type\":\s{0,4}\"SecureString\",\s{0,20}\"Value\":\s{0,4}\")[^\"\n…][^\"\n]*+",
        ),
        # All of a Kubernetes secret, in YAML and in JSON
        (
            "kind: Secret",
            r"(?P<kept>\n(?P<indent>[ \t]{0,12})(?:data|stringData):)(?:\r?\n(?P=indent)[ \t]{1,8}[^\n…]++)++",
        ),
        (
            '"kind": "Secret", "kind":"Secret"',
            r"(?P<kept>\"(?:data|stringData)\"\s{0,4}:\s{0,4}\{)[^{}…]++(?=\})",
        ),
        # A form's field, and pydantic's words of a field that it refuses
        (
            "form-data",
            (
                rf"(?P<kept>form-data;[^\n]{{0,80}}?name=\"?{_FIELD}\"?[^\n]{{0,100}}\r?\n(?:[A-Za-z\-]{{1,40}}:[^\n]{{0,200}}\n){{0,4}}"
                r"\r?\n)[^\r\n…][^\r\n]*+"
            ),
        ),
        (
            "input_value=",
            (
                rf"(?P<kept>(?:^|\n){_FIELD}\r?\n[ ]{{2}}[^\n]{{0,300}}?input_value=)"
                r"(?:'[^'\n…]++'|\"[^\"\n…]++\"|(?!['\"{\[])[^,\]\n…]++)"
            ),
        ),
        # Code that hands one over: `.setPassword("…")`, `Client("…")`
        (
            "assword(, asswd(, ecret(, oken(, piKey(, pi_key(",
            (
                r"(?P<kept>(?:\.|(?i:set|with|use)_?)(?:[a-zA-Z]\w{0,20})?(?i:password|passwd|secret|token|api_?key)"
                r"\([ ]{0,4}@?[\"'])(?=[^\"'\n]{0,64}[0-9!@#$%^&*])[^\"'\n…\s][^\"'\n\s]{2,}+(?=[\"'][ ]{0,4}[),])"
            ),
        ),
        (
            "Client(",
            r"(?P<kept>Client\([ ]{0,4}[\"'])(?=[A-Za-z_\-]{0,40}\d)[A-Za-z0-9_\-]{24,}+(?=[\"'])",
        ),
        # A one-time code, and a login in a sentence
        (
            " code",
            (
                r"(?P<kept>[ ]code(?:(?<=(?i:verification)[ ]code)|(?<=(?i:confirmation)[ ]code)"
                r"|(?<=(?i:security)[ ]code)|(?<=(?i:one-time)[ ]code)|(?<=(?i:login)[ ]code)"
                r"|(?<=(?i:log-in)[ ]code)|(?<=(?i:sign-in)[ ]code)"
                r"|(?<=(?i:2fa)[ ]code))(?:[ ]is)?:?[ ]{1,2}(?:G-)?)\d{4,8}(?!\d|[.,:/\-]\d)"
            ),
        ),
        (
            "redentials, creds, ogin",
            (
                r"(?P<kept>(?i:credentials?|creds|logins?)(?:[ ](?:are|is))?:?[ ]{1,2}[^\s/:]{1,64}[ ]/[ ])"
                r"(?=[^\s\"']{0,64}\d)" + ARGUMENT
            ),
        ),
        # The private numbers of a JSON web key stand under one letter; the `kty` tells it.
        ('"kty"', r"(?P<kept>\"(?:d|p|q|dp|dq|qi|k)\"\s{0,4}:\s{0,4}\")[A-Za-z0-9_\-]{16,}+"),
        # A code that is changed for a token
        ("code=", r"(?P<kept>[?&#]code=)(?=[A-Za-z_\-.%]{0,40}\d)[A-Za-z0-9_\-.~%/]{12,}+"),
        # kubeconfig
        (
            "data",
            r"(?P<kept>(?:client-key|token|tls\.key|key)-?data[\"']?:\s{0,4}[\"']?)[A-Za-z0-9+/]{24,}+={0,2}+",
        ),
    )
)

# Marks that Microsoft, New Relic and others put into their keys; the whole run around them is the key.
MARKS = words("AZDO +ASt ACDb AzFu AzSe +ACR +AMC +AEh +AIoT +ARm JQQJ99 T3BlbkFJ NRAL")
RUN = re.compile(r"(?<![A-Za-z0-9+/_\-])[A-Za-z0-9+/_\-]{20,}+={0,2}+")

# Consumes the whole run of parts and leaves the verdict to the caller: no run is looked at twice.
JWT = re.compile(r"eyJ[A-Za-z0-9_\-]*+(?:\.[A-Za-z0-9_\-]*+){0,4}+")
PREFIXED = re.compile(r"(?<![A-Za-z0-9_\-])(?P<word>[A-Za-z][A-Za-z0-9_\-]{19,}+)(?!\.[A-Za-z])")
PEM_BEGIN = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,20}-{4,5}")
PEM_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s]|\\++[nr])*+")
URL_LOGIN = re.compile(
    r"(?P<kept>://[^\s:/@\"'<>\\]{0,256}+:)"
    r"(?:[^\s/\"'<>\\]{1,512}(?=@)|(?!\d{1,5}(?:[/?#]|$))[^\s\"'<>\\@]{1,256}(?=@))"
)
URL_TOKEN = re.compile(r"(?P<kept>://)(?P<tail>[A-Za-z0-9_\-.~%]{20,}+)(?=(?::[^\s/@]{0,40})?@)")
CURL_LOGIN = re.compile(
    r"(?P<kept>(?<!\S)(?:-u ?|(?:--user|--proxy-user)[ =])[ ]{0,3}[\"']?[^\s:\"'/]{1,128}:)[^\s\"']{1,256}+"
)
SCHEME = re.compile(
    r"(?P<kept>(?<![A-Za-z0-9])(?i:bearer|basic|apikey|token|key|negotiate|ssws)(?:[ \t]|%20|\+){1,4}[\"'`]?)"
    r"(?P<tail>[A-Za-z0-9._~+/\-]{6,}+={0,2}+)"
)
