"""Plugins that packages bring: found by their entry point, held to the versions they name, imported only when named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thena_core._render import did_you_mean, listed, said_by
from thena_core.errors import PluginLoadError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from packaging.requirements import Requirement

GROUP = "thena.plugins"


def installed_names() -> list[str]:
    """Return the names of all installed plugins, sorted; none of them is imported."""
    return sorted({entry.name for entry in _entries()})


def load(name: str) -> tuple[Any, str | None]:
    """Import an installed plugin; return it, and its package with the version.

    Raises:
        PluginLoadError: Where no package or more than one brings it, where its package does not allow this version of
            thena-core, and where it cannot be imported.
    """
    entries = [entry for entry in _entries() if entry.name == name]
    if not entries:
        names = installed_names()
        known = f"Installed: {listed(names)}." if names else "No package that brings plugins is installed."
        raise PluginLoadError(name, f"no installed package brings it.{did_you_mean(name, names)} {known}")
    if len(entries) > 1:
        packages = listed(sorted(_distribution(entry) or entry.value for entry in entries))
        raise PluginLoadError(name, f"several installed packages bring it: {packages}. Uninstall all but one.")
    [entry] = entries
    distribution = _distribution(entry)
    requires = list(entry.dist.requires or ()) if entry.dist is not None else []
    _check_version(name, distribution, requires)
    try:
        return entry.load(), distribution
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        problem = said_by(error)
        if isinstance(error, ModuleNotFoundError):
            problem += _extra_missing(entry, error, requires)
        raise PluginLoadError(name, problem, distribution) from error


def _entries() -> list[EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - only names need it

    return list(entry_points(group=GROUP))


def _distribution(entry: EntryPoint) -> str | None:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else None


def _check_version(name: str, distribution: str | None, requires: Sequence[str]) -> None:
    """Hold a plugin's package to what it says of thena-core: pip may have installed it against its word."""
    from importlib.metadata import version  # noqa: PLC0415 - only named plugins need it

    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            if canonicalize_name(text).startswith("thena-core"):
                raise PluginLoadError(name, f'its requirement "{text}" cannot be read', distribution) from error
            continue
        if canonicalize_name(requirement.name) != "thena-core" or not _applies(requirement, ""):
            continue
        here = version("thena-core")
        if not requirement.specifier.contains(here, prereleases=True):
            problem = f"it needs thena-core{requirement.specifier}, and this is thena-core {here}"
            raise PluginLoadError(name, problem, distribution)


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _extra_missing(entry: EntryPoint, error: ModuleNotFoundError, requires: Sequence[str]) -> str:
    """Say how to install the extra that an entry point names, where that is what is missing.

    `importlib.metadata` looks at no extras, so an entry point `… [redis]` is there without them, too.
    """
    if entry.dist is None or (error.name or "").partition(".")[0] == entry.module.partition(".")[0]:
        return ""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - a failure alone needs it

    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415

    for extra in entry.extras:
        for text in requires:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue
            if _applies(requirement, "") or not _applies(requirement, extra):
                continue
            try:
                version(requirement.name)
            except PackageNotFoundError:
                return f'. Its extra is not installed: pip install "{entry.dist.name}[{extra}]"'
    return ""
