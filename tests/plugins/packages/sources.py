"""The files of three packages, as their authors would publish them: a good one, a broken one, one for another version."""

from __future__ import annotations

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
dependencies = ["{requires}"]
"""

GOOD = {
    "pyproject.toml": PROJECT.format(name="thena-good", version="1.4.0", requires="thena-core>=0.1,<1")
    + """
[project.entry-points."thena.plugins"]
good = "thena_good.plugin"

[project.entry-points."thena.tools"]
good_clock = "thena_good.tools:ClockTool"
""",
    "thena_good/__init__.py": '"""A package with one of everything."""\n',
    "thena_good/clock.py": '''\
class Clock:
    """A service."""

    def now(self, zone: str) -> str:
        return f"noon in {zone}"
''',
    "thena_good/tools.py": """\
from typing import Annotated

from thena_core import Inject, tool
from thena_good.clock import Clock


@tool(name="good_clock", description="Tells the time of a zone.", effect="read")
class ClockTool:
    async def execute(self, zone: str, clock: Annotated[Clock, Inject]) -> str:
        return clock.now(zone)
""",
    "thena_good/plugin.py": """\
from dependency_injector import containers, providers

from thena_core import hookimpl
from thena_good.clock import Clock

seen = []


class Services(containers.DeclarativeContainer):
    clock = providers.Singleton(Clock)


async def shout(call, call_next):
    output = await call_next(call)
    seen.append(f"around {call.name}")
    return output


@hookimpl
def services():
    return Services()


@hookimpl
async def before_tool(call, ctx):
    seen.append(f"before {call.name}")
    return call.replace(arguments={"zone": call.arguments["zone"].upper()})


@hookimpl
def after_tool(result):
    seen.append(f"after {result.call.name}")
    return result.output.content + "!"


@hookimpl
def tool_middleware(tool):
    return shout if tool.effect == "read" else None


@hookimpl
def on_event(event):
    seen.append(f"{event.phase} {event.name}")


@hookimpl
async def startup(app):
    seen.append("startup")


@hookimpl
def shutdown():
    seen.append("shutdown")
""",
}

BROKEN = {
    "pyproject.toml": PROJECT.format(name="thena-broken", version="0.9.1", requires="thena-core")
    + """
[project.entry-points."thena.plugins"]
b-import = "thena_broken.importing"
b-syntax = "thena_broken.syntax"
b-exit = "thena_broken.exiting"
b-argument = "thena_broken.argument"
b-misspelt = "thena_broken.misspelt"
b-attribute = "thena_broken:plugin"

[project.entry-points."thena.tools"]
broken_clock = "thena_broken.exiting:ClockTool"
""",
    "thena_broken/__init__.py": '"""A package in which nothing works."""\n',
    "thena_broken/importing.py": "import a_driver_that_nobody_has\n",
    "thena_broken/syntax.py": "def broken(:\n",
    "thena_broken/exiting.py": "import sys\nsys.exit('no licence')\n",
    "thena_broken/argument.py": """\
from thena_core import hookimpl

@hookimpl
def startup():
    raise SystemError("half registered")

@hookimpl
def before_tool(call, context):
    pass
""",
    "thena_broken/misspelt.py": """\
from thena_core import hookimpl

@hookimpl
def startup():
    raise SystemError("half registered")

@hookimpl
def befor_tool(call, ctx):
    pass
""",
}

FUTURE = {
    "pyproject.toml": PROJECT.format(name="thena-future", version="3.0", requires="thena-core>=99")
    + """
[project.entry-points."thena.plugins"]
future = "thena_future"
""",
    "thena_future/__init__.py": "raise SystemError('imported before its version was looked at')\n",
}
