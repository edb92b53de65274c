"""What `thena doctor` looks at, a function each; a key's value is never part of what it says."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from thena_core._render import listed, said_by
from thena_core.cli.listing import PLUGINS, TOOLS, entries_of, hooks_of, package_of
from thena_core.cli.problems import UsageProblem, one_line
from thena_core.cli.settings import mapping, project_table
from thena_core.errors import ThenaError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import httpx

    from thena_core.definition import ToolDefinition
    from thena_core.providers.base import Provider

Level = Literal["ok", "note", "problem"]

OLDEST = (3, 11)
PATIENCE = 5.0
"""Seconds that a service has to answer `--online`; a service that is there takes well under one."""

FEWEST_WORDS = 4
"""A description with fewer words says what a tool's name says already; this is a rule of thumb, and only a note."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's.

    Attributes:
        level: A `note` could be better, a `problem` makes the command fail.
        what: What was looked at.
        text: What was seen.
        todo: What to do about it.
    """

    level: Level
    what: str
    text: str
    todo: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """A model service.

    Attributes:
        name: As providers call it.
        key: The environment variable of its key, or `None`.
        address: The environment variable of its address.
        default: Its address where that is not set.
    """

    name: str
    key: str | None
    address: str
    default: str


Asked = tuple[Service, str]
"""A service, and the address at which it is asked."""

SERVICES = (
    Service("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    Service("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    Service("ollama", None, "OLLAMA_HOST", "http://127.0.0.1:11434"),
)


def python() -> list[Finding]:
    """Look at the interpreter."""
    text = f"Python {platform.python_version()} on {platform.system()}"
    if sys.version_info < OLDEST:
        return [Finding("problem", "python", text, "install Python 3.11 or newer")]
    return [Finding("ok", "python", text)]


def versions() -> list[Finding]:
    """Hold what is installed to the thena-core that it asks for."""
    import thena_core  # noqa: PLC0415 - its version, beside the installed one

    here = version("thena-core")
    found = [Finding("ok", "versions", f"thena-core {here}")]
    if thena_core.__version__ != here:
        text = f"thena-core is installed as {here}, and what is imported is {thena_core.__version__}"
        found = [Finding("problem", "versions", text, "install it anew: pip install --force-reinstall thena-core")]
    seen: set[str] = set()
    for distribution in distributions():
        name = distribution.name
        if name in seen:  # the first on the path is the one that is used
            continue
        seen.add(name)
        wanted = _wanted_core(distribution)
        if wanted is None:
            continue
        if _allows(wanted, here):
            found.append(Finding("ok", "versions", f"{name} {distribution.version}, made for thena-core{wanted}"))
        else:
            text = f"{name} {distribution.version} asks for thena-core{wanted}, and this is {here}"
            todo = f"pip install --upgrade thena-core {name}"
            found.append(Finding("problem", "versions", text, todo))
    return found


def entry_points() -> list[Finding]:
    """Load each installed plugin and tool, as an app that names it would."""
    found: list[Finding] = []
    for group, check in ((PLUGINS, _check_plugin), (TOOLS, _check_tool)):
        kind = group.removeprefix("thena.").removesuffix("s")
        for entry in entries_of(group):
            try:
                text = check(entry)
            except ThenaError as problem:
                todo = f"correct or remove {package_of(entry)}"
                found.append(Finding("problem", kind, one_line(problem), todo))
            else:
                found.append(Finding("ok", kind, f"{entry.name} of {package_of(entry)}: {text}"))
    return found


def project(folder: Path | None = None) -> list[Finding]:
    """Compare what the project in a folder declares with what is registered: a new entry point needs an install."""
    file = (folder or Path()) / "pyproject.toml"
    if not file.is_file():
        return []
    try:
        declared = _entry_points_in(project_table(file))
    except UsageProblem as problem:
        return [Finding("problem", "project", one_line(problem), "correct it")]
    found: list[Finding] = []
    for group in (PLUGINS, TOOLS):
        registered = {(entry.name, entry.value) for entry in entries_of(group)}
        for name, value in declared.get(group, {}).items():
            if (name, value) not in registered:
                text = f'"{name}" of [project.entry-points."{group}"] is not registered'
                found.append(Finding("problem", "project", text, "pip install -e ."))
    return found


def keys(environment: Mapping[str, str] | None = None) -> list[Finding]:
    """Say which keys are there, never what they are."""
    given = os.environ if environment is None else environment
    found: list[Finding] = []
    for service in SERVICES:
        if service.key is None:
            continue
        value = given.get(service.key, "")
        if not value.strip():
            found.append(Finding("note", "keys", f"{service.key} is not set"))
        elif not (value.isascii() and value.isprintable()) or value != value.strip():
            text = f"{service.key} is set, with a space, a line break or a character that no key has"
            found.append(Finding("problem", "keys", text, f"set {service.key} again, without what surrounds the key"))
        else:
            found.append(Finding("ok", "keys", f"{service.key} is set"))
    return found


def missing_keys(services: Sequence[Asked]) -> list[Finding]:
    """Name the keys that an app's services need and the environment lacks; the app may give them: a note each."""
    return [
        Finding("note", "keys", f"the app asks {service.name}", f"set {service.key}, unless the app gives the key")
        for service, _ in services
        if service.key is not None and not os.environ.get(service.key, "").strip()
    ]


def descriptions(tools: Iterable[ToolDefinition], owner: str) -> list[Finding]:
    """Name the descriptions that tell a model too little: they are what it decides by."""
    found: list[Finding] = []
    first: dict[str, str] = {}
    for tool in tools:
        where = f'"{tool.name}" of {owner}'
        words = tool.description.split()
        if len(words) < FEWEST_WORDS or "".join(words).lower() == tool.name.replace("_", "").lower():
            text = f"{where} is described in {len(words)} words: {' '.join(words)}"
            found.append(Finding("note", "description", text, f"say what {tool.name} does and when to use it"))
        same = first.setdefault(" ".join(words).lower(), tool.name)
        if same != tool.name:
            text = f'{where} is described like "{same}"'
            found.append(Finding("note", "description", text, f"say how {same} and {tool.name} differ"))
        bare = _undescribed(tool)
        if bare:
            text = f"{where} has parameters without a description: {listed(bare)}"
            todo = f"describe the parameters of {tool.name}: Field(description=…)"
            found.append(Finding("note", "description", text, todo))
    return found


def services_with_keys() -> list[Asked]:
    """Return the services that a key is set for, with their addresses."""
    return [(one, _address(one, None)) for one in SERVICES if one.key is not None and os.environ.get(one.key)]


def services_of(providers: Iterable[Provider]) -> list[Asked]:
    """Return the services that an app's providers ask, with their addresses; a provider of another kind is left out."""
    found: dict[str, Asked] = {}
    for provider in providers:
        for service in SERVICES:
            if service.name == getattr(provider, "name", None):
                given = getattr(provider, "base_url", None) or getattr(provider, "host", None)
                address = _address(service, given if isinstance(given, str) else None)
                found[address] = service, address
    return list(found.values())


async def reachable(services: Sequence[Asked]) -> list[Finding]:
    """Ask each service for anything: whatever it answers, it is there. No key is sent."""
    import httpx  # noqa: PLC0415 - only --online needs it

    if not services:
        return [Finding("note", "online", "no model service to ask: no key is set, and no app asks one")]
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        return list(await asyncio.gather(*(_reached(client, *service) for service in services)))


async def _reached(client: httpx.AsyncClient, service: Service, address: str) -> Finding:
    import httpx  # noqa: PLC0415 - only --online needs it

    from thena_core.providers.reply import shown as without_login  # noqa: PLC0415 - loads the providers

    where = service.name
    try:
        where = f"{service.name} at {without_login(address)}"
        answer = await client.get(address)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        todo = f"look at the network, a proxy, and {service.address}"
        return Finding("problem", "online", f"{where} cannot be reached: {said_by(error)}", todo)
    return Finding("ok", "online", f"{where} answers (status {answer.status_code})")


def _address(service: Service, given: str | None) -> str:
    address = given or os.environ.get(service.address) or service.default
    return address if "://" in address else f"http://{address}"  # Ollama's variable may be HOST:PORT


def _wanted_core(distribution: Distribution) -> str | None:
    """Return what a package says of thena-core's version, or `None` where it needs none."""
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 - only this looks at versions
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    for text in distribution.requires or ():
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # another package's fault, in another line
        if canonicalize_name(requirement.name) == "thena-core" and (
            requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        ):
            return str(requirement.specifier) or " (any)"
    return None


def _allows(specifier: str, here: str) -> bool:
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415 - only this looks at versions

    return specifier == " (any)" or SpecifierSet(specifier).contains(here, prereleases=True)


def _check_plugin(entry: EntryPoint) -> str:
    return ", ".join(hooks_of(entry.name))


def _check_tool(entry: EntryPoint) -> str:
    from thena_core.calls.declared import read_tool  # noqa: PLC0415 - loads what inspects tools

    return read_tool(entry.name).origin


def _entry_points_in(table: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    groups = mapping(mapping(table.get("project")).get("entry-points"))
    return {group: mapping(names) for group, names in groups.items()}


def _undescribed(tool: ToolDefinition) -> list[str]:
    properties: Mapping[str, Any] = tool.json_schema.get("properties", {})
    return [
        name
        for name, field in properties.items()
        if isinstance(field, dict) and not {"description", "$ref", "allOf"} & set(cast("dict[str, Any]", field))
    ]
