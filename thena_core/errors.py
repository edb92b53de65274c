"""The exception tree: data in attributes, text in `__str__`, each message with the way out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thena_core._render import indented, said_by

if TYPE_CHECKING:
    from typing import Self


class ThenaError(Exception):
    """Catch everything that Thena itself raises.

    Attributes:
        run: What the run had produced when the error left it (a `RunResult`), or `None` outside of a run.
    """

    run: Any = None


class EndsRun(ThenaError):
    """Mark what no layer may turn into an observation, at any depth of packing and nesting."""


class FatalToolError(EndsRun):
    """Raise it in a tool for a failure that the model cannot repair; the run ends.

    Only its own message reaches the report; neither `__cause__` nor `__context__` reaches the model, events, log or
    report. Raise it `from err`: whoever catches it around `run` still has the whole chain, masked.
    """


class BudgetExceededError(EndsRun):
    """End a run whose budget says `mode="throw"`.

    Attributes:
        limit: The name of the limit, e.g. `max_tool_calls`.
        allowed: What the limit was.
        used: What had been used.
        stops: Whether the run stops with what it has (`mode="stop"`) rather than raising this to its caller.
    """

    def __init__(self, limit: str, allowed: float, used: float, *, stops: bool = False) -> None:
        super().__init__(f"the budget's {limit} is used up: {used:g} of {allowed:g}")
        self.stops = stops
        self.limit = limit
        self.allowed = allowed
        self.used = used


class HookError(EndsRun):
    """End a run because a hook failed: guards fail closed.

    Attributes:
        hook: The hook's name, e.g. `before_tool`.
        owner: The agent or plugin that it belongs to.
        problem: What went wrong.
        tool: The tool whose call was being guarded, or `None`.
    """

    def __init__(self, hook: str, owner: str, problem: str, tool: str | None = None) -> None:
        where = f' for the tool "{tool}"' if tool else ""
        super().__init__(f"{hook} of {owner} failed{where}: {problem}")
        self.hook = hook
        self.owner = owner
        self.problem = problem
        self.tool = tool


class MiddlewareError(EndsRun):
    """End a run because a middleware raised, called on twice, called on with another call, or returned no output.

    Attributes:
        middleware: The middleware's qualified name.
        step: What it stood around: a tool's name, or `chat`.
    """

    def __init__(self, middleware: str, step: str, problem: str) -> None:
        super().__init__(f'the middleware {middleware} failed around "{step}": {problem}')
        self.middleware = middleware
        self.step = step


class RunAborted(EndsRun):
    """End a run that was told to stop from outside (`handle.abort`) or from inside (`ctx.abort`).

    Attributes:
        reason: The words that were given.
    """

    def __init__(self, reason: str = "aborted") -> None:
        super().__init__(f"the run was aborted: {reason}")
        self.reason = reason


class NestingError(EndsRun):
    """End a run whose workflows start one another too deep; recursion is stopped by the budget before it comes here.

    Attributes:
        depth: How deep it went.
    """

    def __init__(self, depth: int) -> None:
        super().__init__(f"workflows are nested {depth} deep, and no deeper; does one of them start itself?")
        self.depth = depth


class AgentOutputError(ThenaError):
    """Report an answer that does not fit the agent's `output`, also after the model was told what is wrong.

    Attributes:
        agent: Whose answer.
        problem: What does not fit, as the model was told.
        text: What it said.
    """

    def __init__(self, agent: str, problem: str, text: str) -> None:
        super().__init__(f"[thena] The answer of the agent {agent} does not fit its output: {problem}")
        self.agent = agent
        self.problem = problem
        self.text = text


class SignatureError(ThenaError):
    """Report a parameter that cannot be filled: which callable, which parameter, and how to write it."""

    def __init__(self, where: str, parameter: str, problem: str) -> None:
        super().__init__(f"[thena] {where}, parameter `{parameter}`: {problem}")
        self.where = where
        self.parameter = parameter


class ToolDefinitionError(ThenaError):
    """Report a tool that is not one yet: no decorator, no `execute`, a bad name, a schema that cannot be used."""


class AgentDefinitionError(ThenaError):
    """Report an agent that cannot be built: no decorator, a missing prompt file, a wrong hook."""


class WorkflowDefinitionError(ThenaError):
    """Report a workflow that cannot be built: no decorator, no steps, a step that is not one."""


class DependencyError(ThenaError):
    """Report a service that a constructor or `execute` asks for and cannot get."""


class MissingDependencyError(DependencyError):
    """Nothing in the container provides what was asked for."""


class AmbiguousDependencyError(DependencyError):
    """More than one provider answers, and none is nearer than the others."""


class CircularDependencyError(DependencyError):
    """A service needs itself, through others."""


class ScopeError(DependencyError):
    """Something that lives long asks for something that lives shorter."""


class ResourceCloseError(ThenaError):
    """Report run-scoped services that failed to close after a run that had no error of its own.

    Attributes:
        failures: The service's name and its exception, of each.
    """

    def __init__(self, failures: Sequence[tuple[str, BaseException]]) -> None:
        texts = [f'"{name}": {said_by(failure)}' for name, failure in failures]
        super().__init__(f"[thena] The run ended well, but services failed to close: {'; '.join(texts)}")
        self.failures = failures


class PluginLoadError(ThenaError):
    """Report a plugin that cannot be used.

    Attributes:
        plugin: Its name.
        distribution: The installed package that brought it, or `None`.
    """

    def __init__(self, plugin: str, problem: str, distribution: str | None = None) -> None:
        origin = f" (from {distribution})" if distribution else ""
        super().__init__(f'[thena] The plugin "{plugin}"{origin} cannot be loaded: {problem}')
        self.plugin = plugin
        self.distribution = distribution


class ProviderError(ThenaError):
    """Report a model service that did not answer as it should; keys and headers are never in it.

    Attributes:
        provider: Which provider, e.g. `openai`.
        status: The HTTP status, or `None` where no answer came.
        request_id: The service's own id of the request, or `None`.
        attempts: How many times it was tried.
        retry_after: Seconds that the service asks to wait, or `None` where it does not say.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        request_id: str | None = None,
        attempts: int = 1,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.status = status
        self.request_id = request_id
        self.attempts = attempts
        self.retry_after = retry_after

    def __str__(self) -> str:
        facts = [
            f"status {self.status}" if self.status else "",
            f"request {self.request_id}" if self.request_id else "",
            f"{self.attempts} attempts" if self.attempts > 1 else "",
        ]
        known = ", ".join(fact for fact in facts if fact)
        head = f"{self.provider}: {self.message}" if self.provider else self.message
        return f"{head} ({known})" if known else head


class BuildError(EndsRun, ExceptionGroup[Exception]):
    """Report everything that is wrong with an app, at once, before it runs; a group, also for one problem."""

    def __new__(cls, problems: Sequence[Exception]) -> Self:
        """Make the group; `problems` must not be empty."""
        return super().__new__(cls, "the app cannot be built", list(problems))

    def __init__(self, problems: Sequence[Exception]) -> None:
        super().__init__("the app cannot be built", list(problems))

    def derive(self, excs: Sequence[Exception], /) -> BuildError:  # type: ignore[override]
        """Keep the class when the group is split (`except*`, `subgroup`)."""
        return BuildError(excs)

    def __str__(self) -> str:
        if len(self.exceptions) == 1:
            return str(self.exceptions[0])
        head = f"[thena] {len(self.exceptions)} problems were found while building the app:"
        rows = [f"{number}. {indented(str(problem))}" for number, problem in enumerate(self.exceptions, 1)]
        return "\n".join([head, *rows])
