"""TARGET: from `module:object` to the app it means, a `Thena` or a function that returns one."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from thena_core._render import did_you_mean, listed, said_by
from thena_core.app import Thena
from thena_core.cli.problems import CommandFailed, UsageProblem

if TYPE_CHECKING:
    from thena_core.build import Built
    from thena_core.cli.settings import Settings
    from thena_core.observers import Observers

EXAMPLE = "shop.app:app"


@dataclass(frozen=True, slots=True)
class Target:
    """What a TARGET names, imported; `app` makes it an app, inside of an event loop.

    Attributes:
        text: As it was written.
        found: A `Thena`, or what the function returned: one, or an awaitable of one.
    """

    text: str
    found: Any

    async def app(self) -> Thena:
        """Return the app.

        Raises:
            UsageProblem: Where it is something else.
            CommandFailed: Where an async function fails.
        """
        found = self.found
        if inspect.isawaitable(found):
            try:
                found = await found
            except Exception as error:
                raise CommandFailed(f"{self.text} failed: {said_by(error)}") from error
        if isinstance(found, Thena):
            return found
        raise UsageProblem(_no_app(self.text, found))


def is_target(word: str) -> bool:
    """Whether a word is written like a TARGET; a tool's name never is."""
    module, colon, name = word.partition(":")
    parts = [*module.split("."), *name.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)


def split_words(words: Sequence[str], settings: Settings, usage: str) -> tuple[str, list[str]]:
    """Take the TARGET off the front of a command's words, or from the settings where it is not there.

    Raises:
        UsageProblem: Where neither has one.
    """
    if words and is_target(words[0]):
        return words[0], list(words[1:])
    if settings.target is not None:
        return settings.target, list(words)
    wrong = f'"{words[0]}" is no TARGET' if words else "the TARGET is missing"
    raise UsageProblem(
        f"{wrong}: write it as module:object, e.g. {usage.replace('TARGET', EXAMPLE, 1)}"
        f'{_as_module(words[0]) if words else ""}, or set target = "{EXAMPLE}" in [tool.thena] of pyproject.toml'
    )


def load_target(text: str, settings: Settings) -> Target:
    """Import what a TARGET names; a function is called.

    It is looked for in the current folder, in the project's folder, and among what is installed.

    Raises:
        UsageProblem: Where there is no such module or object.
        CommandFailed: Where the module or the function fails.
    """
    if not is_target(text):
        raise UsageProblem(f'"{text}" is no TARGET: write it as module:object, e.g. {EXAMPLE}{_as_module(text)}')
    module_name, _, path = text.partition(":")
    module = _module(module_name, text, [Path(), *([settings.project] if settings.project else [])])
    found: Any = module
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            raise UsageProblem(_missing(text, module, name)) from error
    if isinstance(found, (Thena, type)) or not callable(found):
        return Target(text, found)
    return Target(text, _called(text, cast("Callable[..., Any]", found)))


def built_of(app: Thena) -> Built:
    """Return what an entered app runs; the command line shows what no author needs to see.

    Raises:
        RuntimeError: Before the app was entered.
    """
    built = app._built  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if built is None:
        raise RuntimeError("the app is not built")
    return built


def observers_of(app: Thena) -> Observers:
    """Return what an app's constructor said about log and report, so that a command changes nothing of it."""
    return app._observers  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _module(name: str, text: str, folders: Sequence[Path]) -> ModuleType:
    for folder in reversed([str(folder.resolve()) for folder in folders]):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise CommandFailed(_import_failed(name, error)) from error
        parent, _, last = error.name.rpartition(".")
        near = did_you_mean(last, _siblings(parent, folders))
        raise UsageProblem(
            f"{text}: there is no module {error.name} in the current folder or among what is installed.{near} "
            f"Write: module:object, e.g. {EXAMPLE}"
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise CommandFailed(_import_failed(name, error)) from error


def _import_failed(name: str, error: BaseException) -> str:
    hint = ""
    if isinstance(error, ModuleNotFoundError) and error.name:
        hint = f". Install what brings {error.name.partition('.')[0]}, or see where it is asked for with --debug"
    return f"importing {name} failed: {said_by(error)}{hint}"


def _siblings(parent: str, folders: Sequence[Path]) -> list[str]:
    """Name the modules beside one that is not there."""
    places = [str(folder.resolve()) for folder in folders]
    if parent:
        places = list(getattr(sys.modules.get(parent), "__path__", []))
    return [module.name for module in pkgutil.iter_modules(places)]


def _missing(text: str, module: ModuleType, name: str) -> str:
    values = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    apps = [key for key, value in values.items() if isinstance(value, Thena)]
    # a name that is near is worth more than the list of apps
    near = did_you_mean(name, values)
    if apps:
        near += f" Apps there: {listed(apps)}."
    elif not near:
        near = f" Write in it: {name} = Thena(…)"
    return f"{text}: the module {module.__name__} has no {name}.{near}"


def _called(text: str, function: Callable[..., Any]) -> Any:
    name = getattr(function, "__name__", "it")
    try:
        required = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
        ]
    except (TypeError, ValueError):  # written in C, without a signature
        required = []
    if required:
        raise UsageProblem(
            f"{text}: {name} needs {listed(required)}, and a TARGET is called with nothing. "
            f"Give them defaults, or name an app."
        )
    try:
        return function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise CommandFailed(f"{text} failed: {said_by(error)}") from error


def _no_app(text: str, found: Any) -> str:
    if isinstance(found, type):
        return f"{text} is the class {found.__name__}. Write beside it, and name: app = Thena({found.__name__})"
    return f"{text} gives {type(found).__name__}, where a Thena or a function that returns one is due"


def _as_module(text: str) -> str:
    """Turn a file's path into the module that is meant."""
    path, _, name = text.partition(":")
    if not path.endswith(".py"):
        return ""
    module = path.removesuffix(".py").replace("\\", "/").strip("./").replace("/", ".")
    return f". Did you mean {module}:{name or 'app'}?"
