"""Plugins of packages that cannot be used: each named with its package, its version and the cause."""

from __future__ import annotations

import sys
import warnings

import pytest

from tests.plugins.conftest import Install
from tests.plugins.watched import GUARD, hooks_of, refused
from thena_core import BuildError, PluginLoadError


@pytest.mark.behaviour("P04")
async def test_unknown_name(install: Install) -> None:
    """A name that no package brings is answered with the nearest one and those that there are."""
    install("acme", plugins={"audit": "acme_audit", "trace": "acme_trace"})
    assert await refused(["adit"]) == [
        (
            '[thena] The plugin "adit" cannot be loaded: no installed package brings it. Did you mean "audit"? '
            "Installed: audit, trace."
        )
    ]


@pytest.mark.behaviour("P04")
@pytest.mark.usefixtures("install")
async def test_nothing_installed() -> None:
    """Where no package brings plugins, the text says that."""
    assert await refused(["audit"]) == [
        (
            '[thena] The plugin "audit" cannot be loaded: no installed package brings it. '
            "No package that brings plugins is installed."
        )
    ]


@pytest.mark.behaviour("P04")
async def test_name_of_two_packages(install: Install) -> None:
    """A name that two packages claim is refused: which of them was found first must not decide."""
    install("acme-audit", "1.2", plugins={"audit": "acme_audit"}, files={"acme_audit.py": GUARD})
    install("other", "3.0", plugins={"audit": "other_audit"}, files={"other_audit.py": GUARD})
    text = (
        '[thena] The plugin "audit" cannot be loaded: several installed packages bring it: acme-audit 1.2, other 3.0. '
        "Uninstall all but one."
    )
    assert await refused(["audit"]) == [text]
    assert await refused("installed") == [text]


BROKEN = {
    "boom": ("boom_plugin", "ModuleNotFoundError: No module named 'module_that_does_not_exist'"),
    "syntax": ("syntax_plugin", "SyntaxError: invalid syntax (syntax_plugin.py, line 1)"),
    "exiter": ("exit_plugin", "SystemExit: 3"),
    "gone": ("not_installed.mod", "ModuleNotFoundError: No module named 'not_installed'"),
    "noattr": ("good_plugin:missing", "AttributeError: module 'good_plugin' has no attribute 'missing'"),
}


@pytest.fixture
def broken(install: Install) -> None:
    """One good plugin, and one that is broken in each way."""
    install(
        "acme",
        "1.2.3",
        plugins={"good": "good_plugin", **{name: value for name, (value, _) in BROKEN.items()}},
        files={
            "good_plugin.py": GUARD,
            "boom_plugin.py": "import module_that_does_not_exist\n",
            "syntax_plugin.py": "def broken(:\n",
            "exit_plugin.py": "import sys; sys.exit(3)\n",
        },
    )


@pytest.mark.behaviour("P04")
@pytest.mark.usefixtures("broken")
async def test_broken_ones_fail_by_name() -> None:
    """D11 (simonw/llm#1351, conda/conda#12460, datachain-ai/datachain#1904): each by name, package and cause."""
    assert await refused(["good", *BROKEN]) == [
        f'[thena] The plugin "{name}" (from acme 1.2.3) cannot be loaded: {cause}'
        for name, (_, cause) in BROKEN.items()
    ]


@pytest.mark.behaviour("P04")
@pytest.mark.usefixtures("broken")
async def test_going_on_without() -> None:
    """D11 (conda/conda#12460): with `on_plugin_error="warn"` one warning for each, and the good one works."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert await hooks_of(["boom", "good", *BROKEN], on_plugin_error="warn") == ["good_plugin"]
    assert [str(warning.message) for warning in caught] == [
        f'[thena] The plugin "{name}" (from acme 1.2.3) cannot be loaded: {BROKEN[name][1]}'
        for name in ["boom", *BROKEN]
    ]


@pytest.mark.behaviour("P04")
async def test_the_cause_is_kept(install: Install) -> None:
    """D11: the import's own error is the `__cause__`, with its traceback; the facts are in attributes."""
    install("acme", "2.0", plugins={"boom": "boom_cause"}, files={"boom_cause.py": "1 / 0\n"})
    with pytest.raises(BuildError) as caught:
        await hooks_of(["boom"])
    [problem] = caught.value.exceptions
    assert isinstance(problem, PluginLoadError)
    assert (problem.plugin, problem.distribution) == ("boom", "acme 2.0")
    assert isinstance(problem.__cause__, ZeroDivisionError)


@pytest.mark.behaviour("P04")
async def test_the_keyboard_is_no_plugin(install: Install) -> None:
    """D11: a plugin that exits does not end the host; the user who presses Ctrl-C while it is imported does."""
    install("acme", plugins={"slow": "slow_plugin"}, files={"slow_plugin.py": "raise KeyboardInterrupt\n"})
    with pytest.raises(KeyboardInterrupt):
        await hooks_of(["slow"], on_plugin_error="warn")


@pytest.mark.behaviour("P04")
async def test_entry_point_of_a_class(install: Install) -> None:
    """A package whose entry point names a class is told so, with its own name."""
    source = GUARD + "class Audit:\n    before_tool = before_tool\n"
    install("acme", "1.5", plugins={"audit": "class_plugin:Audit"}, files={"class_plugin.py": source})
    assert await refused(["audit"]) == [
        '[thena] The plugin "audit" (from acme 1.5) cannot be loaded: it is a class; its entry point names no object'
    ]


@pytest.mark.behaviour("P04")
async def test_extra_that_is_not_installed(install: Install) -> None:
    """D17 (pypa/packaging.python.org#757, python/importlib_metadata#368): the extra is named, with the line to paste."""
    install(
        "acme-redis",
        "0.4",
        plugins={
            "redis": "acme_redis.cache [redis]",
            "plain": "acme_redis.cache",
            "own": "acme_redis.own [redis]",
            "here": "acme_redis.cache [there]",
        },
        files={
            "acme_redis/__init__.py": "",
            "acme_redis/cache.py": "import redis_driver_that_is_missing\n",
            "acme_redis/own.py": "import acme_redis.typo\n",
        },
        requires=[
            "some package, two",
            "nobody-has-this",
            'redis-driver; extra == "redis"',
            'pydantic; extra == "there"',
        ],
        extras=["redis", "there"],
    )
    missing = "ModuleNotFoundError: No module named 'redis_driver_that_is_missing'"
    head = '[thena] The plugin "{}" (from acme-redis 0.4) cannot be loaded: {}'
    assert await refused(["redis", "plain", "own", "here"]) == [
        head.format("redis", missing + '. Its extra is not installed: pip install "acme-redis[redis]"'),
        head.format("plain", missing),
        head.format("own", "ModuleNotFoundError: No module named 'acme_redis.typo'"),
        head.format("here", missing),
    ]


VERSIONS = {
    "same": ("thena-core==0.1.0", ""),
    "missing": ("pluggy>=1", ""),
    "other-python": ('thena-core>=99; python_version < "3"', ""),
    "extra": ('thena-core>=99; extra == "future"', ""),
    "old": ("thena-core<0.1", "it needs thena-core<0.1, and this is thena-core 0.1.0"),
    "newer-minor": ("thena-core>=0.2", "it needs thena-core>=0.2, and this is thena-core 0.1.0"),
    "newer-major": ("thena-core>=3,<4", "it needs thena-core<4,>=3, and this is thena-core 0.1.0"),
    "other-spelling": ("Thena_Core>=99", "it needs thena-core>=99, and this is thena-core 0.1.0"),
    "garbage": ("thena-core two", 'its requirement "thena-core two" cannot be read'),
    "garbage-of-others": ("some package, two", ""),
}


@pytest.mark.behaviour("P04")
@pytest.mark.parametrize(("requirement", "problem"), VERSIONS.values(), ids=list(VERSIONS))
async def test_versions(install: Install, requirement: str, problem: str) -> None:
    """D18 (pytest-dev/pytest#5102, inventree/InvenTree#3789): one sentence, before anything of it is imported."""
    install(
        "acme",
        "5.1",
        plugins={"audit": "versioned_audit"},
        files={"versioned_audit.py": GUARD},
        requires=["pluggy>=1", requirement],
        extras=["future"],
    )
    if not problem:
        assert await hooks_of(["audit"]) == ["versioned_audit"]
        return
    assert await refused(["audit"]) == [f'[thena] The plugin "audit" (from acme 5.1) cannot be loaded: {problem}']
    assert "versioned_audit" not in sys.modules


@pytest.mark.behaviour("P04")
@pytest.mark.filterwarnings("ignore:.thena. The plugin")
async def test_others_are_unaffected(install: Install) -> None:
    """D18: a plugin for another version leaves the others alone."""
    install("old", plugins={"old": "old_audit"}, requires=["thena-core<0.1"])
    install("new", plugins={"new": "new_audit"}, files={"new_audit.py": GUARD})
    assert await hooks_of(["old", "new"], on_plugin_error="warn") == ["new_audit"]
