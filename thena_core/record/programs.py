"""Secrets that programs take as arguments, keep in their files, or say to each other on the wire.

As in `shapes`: every pattern does a bounded amount of work per place where it can start, `kept` is what may stay, and
a text without the words before a form is not searched for it.
"""

from __future__ import annotations

from thena_core.record.shapes import ARGUMENT, either

_DIGIT = r"(?=[^\s\"']{0,64}\d)"


def _word(program: str) -> str:
    """Match one of several programs, as a word; what stands before is looked at last, which is much quicker."""
    return "(?:" + "|".join(f"{one[0]}(?<![\\w\\-]{one[0]}){one[1:]}" for one in program.split("|")) + ")"


def _after(program: str, flag: str) -> str:
    """Write the pattern of an argument: a program, anything else on its line, and the flag before the secret."""
    return rf"(?P<kept>{_word(program)}[ \t][^\n|;&]{{0,200}}?{flag}){ARGUMENT}"


SPOKEN = tuple(
    (either(needles), pattern)
    for needles, pattern in (
        # Flags that do not say what they take
        ("sshpass", _after("sshpass", r"-p\s{0,4}[\"']?")),
        ("mysql, maria", _after("mysql|mysqldump|mysqladmin|mariadb", r"(?<=\s)-p")),
        ("login", _after("docker|podman|helm|az|oras|crane|skopeo", r"login[ \t][^\n|;&]{0,80}?-p[ =]")),
        ("redis-cli", _after("redis-cli", r"-a[ =]")),
        ("mongo, psexec", _after(r"mongo[a-z]{0,10}|psexec", r"(?<=\s)-p[ \t]{1,4}[\"']?")),
        (
            "sqlcmd, bcp , mosquitto, ipmitool",
            _after(r"sqlcmd|bcp|mosquitto_[a-z]{2,3}|ipmitool", r"(?<=\s)-P[ \t]{0,4}[\"']?"),
        ),
        ("ldap", _after(r"ldap[a-z]{3,8}", r"(?<=\s)-w[ \t]{1,4}[\"']?")),
        ("lftp", _after("lftp", r"-u[ \t]{1,4}[^\s,]{1,64},")),
        ("freerdp, rdesktop", _after(r"xfreerdp3?|wlfreerdp3?|wfreerdp3?|rdesktop", r"(?:/p:|(?<=\s)-p ?)")),
        ("smbclient, rpcclient, smbget", _after("smbclient|rpcclient|smbget", r"[^\s%]{1,64}%")),
        ("7z , 7za , 7zz , rar ", _after("7z|7za|7zz|rar|unrar", r"(?<=\s)-p")),
        ("net use", _after("net use", r"/user:\S{1,64}[ \t]{1,4}")),
        (
            "htpasswd",
            (
                rf"(?P<kept>{_word('htpasswd')}[ \t]{{1,4}}-[a-zB-Z]{{0,3}}b[a-zB-Z]{{0,3}}[ \t]{{1,4}}"
                rf"\S{{1,128}}[ \t]{{1,4}}\S{{1,64}}[ \t]{{1,4}}){ARGUMENT}"
            ),
        ),
        ("storepass, keypass", rf"(?P<kept>(?<![\w\-])-(?:src|dest)?(?:store|key)pass[ \t]{{1,4}}[\"']?){ARGUMENT}"),
        ("pass:", r"(?P<kept>(?<![\w\-])pass:)(?=\S{0,40}\d)[A-Za-z0-9!#$%^&*_\-]{6,128}+"),  # openssl
        (
            "net user",
            (
                r"(?P<kept>(?<![\w\-])net user[ \t]{1,4}[^\s/]{1,64}[ \t]{1,4})"
                r"(?=[^\s/]{0,128}\d|[^\s/]{1,128}[ \t]{1,4}/[a-z])[^\s/\"'…]\S*+"
            ),
        ),
        (
            "sqlplus, rman , expdp, impdp",
            (
                r"(?P<kept>" + _word("sqlplus|rman|expdp|impdp") + r"[ \t][^\n|;&]{0,200}?[\w$#.]{1,64}/)"
                r"[^\s\"'@/…][^\s\"'@]*+"
            ),
        ),
        # Handed on by a pipe
        (
            "echo , printf ",
            (
                r"(?P<kept>" + _word("echo|printf") + r"[ \t]{1,4}(?:-[neE]{1,3}[ \t]{1,4})?"
                r"(?:[\"']?%s(?:\\n)?[\"']?[ \t]{1,4})?[\"']?)"
                r"[^\s\"'|…$][^\s\"'|]{2,128}+(?=[\"']?[ \t]{0,4}\|[ \t]{0,4}(?:sudo[ \t]{1,4}-[A-Za-z]{0,4}S|chpasswd"
                r"|[^|\n]{0,100}?(?:--password-stdin|--with-token|--passphrase-fd|--stdin)))"
            ),
        ),
        # Routers' and databases' files
        (
            "enable , username , -server",
            r"(?P<kept>(?<![\w\-])(?:enable[ ]{1,2}(?:secret|password)"
            r"|username[ ]{1,2}\S{1,64}[ ]{1,2}(?:privilege[ ]\d{1,2}[ ])?(?:secret|password)"
            r"|(?:tacacs|radius)-server[ ](?:host[ ]\S{1,64}[ ])?key)[ ]{1,2}(?:level[ ]\d{1,2}[ ])?(?:\d[ ]{1,2})?)"
            + _DIGIT
            + ARGUMENT,
        ),
        ("snmp-server", rf"(?P<kept>snmp-server[ ]{{1,2}}community[ ]{{1,2}}){ARGUMENT}"),
        ("requirepass, masterauth", rf"(?P<kept>(?:requirepass|masterauth)[ \t]{{1,4}}[\"']?){_DIGIT}{ARGUMENT}"),
        (
            ":5432:, :5433:, :6432:, :*:",  # PostgreSQL's password file
            (
                r"(?P<kept>(?:^|\n)[A-Za-z0-9.*\-]{1,100}:(?:\d{4,5}|\*):[\w*\-]{1,64}:[\w*.\-]{1,64}:)(?=[^\s:]{0,64}\d)"
                r"(?=[^\s:]{0,64}[A-Za-z])[^\s:…]{5,128}(?=\s|$)"
            ),
        ),
        ("login", r"(?P<kept>login\s{1,8}\S{1,128}\s{1,8}password\s{1,8})[^\s…]\S*+"),  # .netrc
        # On the wire: Redis, SMTP, FTP, IMAP, NickServ
        (
            "AUTH",
            r"(?P<kept>(?:^|\n|> |C: )AUTH[ ](?:(?:PLAIN|LOGIN|XOAUTH2|CRAM-MD5)[ ])?(?:[A-Za-z]\w{0,32}[ ])?)"
            + _DIGIT
            + r"(?=\S{0,128}[A-Za-z])[^\s\"',;:.…][^\s\"',;]{5,}+(?=\s|$)",
        ),
        (
            "AUTH",
            r"(?P<kept>[\"']AUTH[\"'],[ ]?(?:[\"'][^\"'\n]{1,64}[\"'],[ ]?)?[\"'])"
            + _DIGIT
            + r"[^\"'\n…][^\"'\n]*+(?=[\"'][\])])",
        ),
        ("PASS", rf"(?P<kept>USER \S{{1,64}}\r?\n(?:[^\n]{{0,120}}\n)?(?:[>C]:? ?)?PASS[ ]){ARGUMENT}"),
        ("LOGIN", rf"(?P<kept>(?:^|\n)[A-Za-z0-9.]{{1,12}} LOGIN \"?[^\s\"]{{1,64}}\"? \"?){ARGUMENT}"),
        ("IDENTIFY", rf"(?P<kept>(?i:nickserv)[ :]{{1,3}}IDENTIFY[ ](?:\S{{1,32}}[ ](?=\S))?){ARGUMENT}"),
    )
)
