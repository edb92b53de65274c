"""What is broken on purpose: one edit each, which drops, reorders or weakens a layer around a call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TOOLSET = "thena_core/calls/compose.py"
LAYERS = "thena_core/calls/layers.py"
POLICY = "thena_core/calls/policy.py"
AROUND = "thena_core/hooks/around.py"
CHAT = "thena_core/providers/chat.py"
TURNS = "thena_core/turns.py"

AFTER = """        if after:
            handler = layers.after_hooks(handler, after[::-1])
"""
BEFORE = """        if before:
            handler = layers.before_hooks(handler, before)
"""
MIDDLEWARE = """        for _, function in reversed(around):
            handler = layers.middleware(handler, function)
"""
VALIDATE = "        handler = layers.validate(handler, definition, tool.schema, word)\n"
INNER = "        handler = layers.budget(policy.error_policy(handler, word))\n"
RECORDED = "recorded = {name: layers.record(handler) for name, handler in plain.items()}"
UNKNOWN = "        unknown = layers.after_hooks(unknown, after[::-1]) if after else unknown\n"
PLUGINS_THEN_APP = "[*self.plugin_middleware(definition), *((qualified_name(fn), fn) for fn in self.middleware)]"
ENDS_RUN_PASSES = """        except EndsRun as error:
            inv.run.end(error)
            raise
"""
ANY_FAILURE = "        except (Exception, BaseExceptionGroup) as error:"


LOOKED_AT_FIRST = {
    "after-hooks": "tests/hooks/test_after_tool.py",
    "before-hooks": "tests/hooks/test_before_tool.py",
    "middleware may": "tests/hooks/test_broken_middleware.py",
    "middleware's failure": "tests/hooks/test_broken_middleware.py",
    "middleware": "tests/test_middleware.py",
    "chat": "tests/test_middleware.py",
    "budget": "tests/test_middleware.py",
    "error policy": "tests/calls/test_failure.py",
    "output": "tests/calls/test_cleaned.py",
    "an interrupted call": "tests/test_history.py",
    "tools that write": "tests/calls/test_batch.py",
    "a tool may keep": "tests/hooks/test_after_tool.py",
    "a tool may call": "tests/calls/test_toolset.py",
    "": "tests/calls/test_layers.py",
}
"""How a mutation's name begins, to the tests that should notice it soonest; all others run after them."""


class StaleMutationError(Exception):
    """An edit does not fit the source any more."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break the product.

    Attributes:
        name: What is broken, for the table.
        file: Where, from the project's root.
        old: The text that is replaced; it stands there exactly once.
        new: What takes its place.
        also: Another text and what takes its place, where one edit alone changes nothing.
    """

    name: str
    file: str
    old: str
    new: str
    also: tuple[str, str] | None = None

    @property
    def looked_at_first(self) -> str:
        """The file of tests to begin with, to be done sooner."""
        return next(file for start, file in LOOKED_AT_FIRST.items() if self.name.startswith(start))

    def applied(self, root: Path) -> str:
        """Return the broken source.

        Raises:
            StaleMutationError: Where the text is not there, or more than once.
        """
        source = (root / self.file).read_text(encoding="utf-8")
        for old, new in ((self.old, self.new), *([self.also] if self.also is not None else [])):
            found = source.count(old)
            if found != 1:
                raise StaleMutationError(f'the mutation "{self.name}" finds its text {found} times in {self.file}')
            source = source.replace(old, new)
        return source


MUTATIONS = (
    Mutation("record dropped", TOOLSET, RECORDED, "recorded = dict(plain)"),
    Mutation(
        "record inside after-hooks",
        TOOLSET,
        RECORDED,
        "recorded = {name: layers.after_hooks(layers.record(self._wrap(plan, before, ())[0]), after[::-1]) if after"
        " else layers.record(plain[name]) for name, (_, plan) in plans.items()}",
    ),
    Mutation("after-hooks dropped", TOOLSET, AFTER, ""),
    Mutation("after-hooks inside validate", TOOLSET, VALIDATE + AFTER, AFTER + VALIDATE),
    Mutation("after-hooks in the order of the way in", TOOLSET, AFTER, AFTER.replace("after[::-1]", "after")),
    Mutation(
        "after-hooks twice",
        LAYERS,
        "result = ToolResult(call, output, inv.outcome)\n        for function, is_async, hook in prepared:",
        "result = ToolResult(call, output, inv.outcome)\n        for function, is_async, hook in [*prepared, *prepared]:",
    ),
    Mutation(
        "after-hooks fail open",
        LAYERS,
        'raise _hook_failed("after_tool", hook, inv, error) from error',
        "answer = None",
    ),
    Mutation(
        "validate dropped: what the model sent goes on as it is",
        LAYERS,
        "inv.args = validate_json(raw)",
        'inv.args = __import__("json").loads(raw)',
        ("inv.args = validate_python(raw)", "inv.args = dict(raw)"),
    ),
    Mutation(
        "validate without repair",
        LAYERS,
        "found = recover(schema, inv.raw, error)",
        'found = "invalid arguments"',
    ),
    Mutation("before-hooks dropped", TOOLSET, BEFORE, ""),
    Mutation("before-hooks outside validate", TOOLSET, BEFORE + VALIDATE, VALIDATE + BEFORE),
    Mutation("before-hooks inside middleware", TOOLSET, MIDDLEWARE + BEFORE, BEFORE + MIDDLEWARE),
    Mutation(
        "before-hooks in reverse", TOOLSET, BEFORE, BEFORE.replace("(handler, before)", "(handler, before[::-1])")
    ),
    Mutation(
        "before-hooks: the plugins' before the agent's",
        TOOLSET,
        '[hooks.get("before_tool"), *self.plugin_before]',
        '[*self.plugin_before, hooks.get("before_tool")]',
    ),
    Mutation(
        "before-hooks fail open",
        LAYERS,
        'raise _hook_failed("before_tool", hook, inv, error) from error',
        "continue",
    ),
    Mutation("before-hooks cannot answer", LAYERS, "return _answered(inv, answer, hook.owner)", "continue"),
    Mutation(
        "before-hooks cannot rewrite",
        LAYERS,
        "answer.arguments)\n    return answer",
        "answer.arguments)\n    return call",
    ),
    Mutation("middleware dropped", TOOLSET, MIDDLEWARE, ""),
    Mutation("middleware in reverse", TOOLSET, MIDDLEWARE, MIDDLEWARE.replace("reversed(around)", "around")),
    Mutation(
        "middleware: the plugins' inside the app's",
        TOOLSET,
        PLUGINS_THEN_APP,
        "[*((qualified_name(fn), fn) for fn in self.middleware), *self.plugin_middleware(definition)]",
    ),
    Mutation("middleware may go on twice", AROUND, "if self.went_on:", "if False:"),
    Mutation("middleware may pass on another call", AROUND, "if passed is not self._call:", "if False:"),
    Mutation("middleware may return anything", AROUND, "if not isinstance(output, middleware.kind):", "if False:"),
    Mutation("middleware's failure leaves as it is", AROUND, "raise fail(said_by(error)) from error", "raise"),
    Mutation(
        "middleware may keep a run alive",
        AROUND,
        "if run.ended is not None:",
        "if False:",
    ),
    Mutation(
        "a refusal is not told from a failure",
        LAYERS,
        'an error is a refusal."""\n    if output.is_error:',
        'an error is a refusal."""\n    if False:',
    ),
    Mutation("budget dropped", TOOLSET, INNER, "        handler = policy.error_policy(handler, word)\n"),
    Mutation(
        "budget outside middleware",
        TOOLSET,
        INNER + MIDDLEWARE,
        "        handler = policy.error_policy(handler, word)\n"
        + MIDDLEWARE
        + "        handler = layers.budget(handler)\n",
    ),
    Mutation("error policy dropped", TOOLSET, INNER, "        handler = layers.budget(handler)\n"),
    Mutation(
        "error policy outside middleware",
        TOOLSET,
        INNER + MIDDLEWARE,
        "        handler = layers.budget(handler)\n"
        + MIDDLEWARE
        + "        handler = policy.error_policy(handler, word)\n",
    ),
    Mutation(
        "error policy keeps what ends the run",
        POLICY,
        ENDS_RUN_PASSES + ANY_FAILURE,
        ANY_FAILURE,
        also=("passing = decisive(failure)", "passing = None"),
    ),
    Mutation(
        "error policy keeps what ends the run inside a group", POLICY, "passing = decisive(failure)", "passing = None"
    ),
    Mutation(
        "error policy keeps a cancellation",
        POLICY,
        "    if being_cancelled():\n        raise asyncio.CancelledError\n    inv.outcome",
        "    inv.outcome",
    ),
    Mutation(
        "a tool may keep a run alive",
        POLICY,
        "if inv.run.ended is not None:  # the tool caught what must end the run",
        "if False:",
    ),
    Mutation("a time-out is told as the tool's own", POLICY, "if not limit.expired():", "if True:"),
    Mutation("unknown tool without after-hooks", TOOLSET, UNKNOWN, ""),
    Mutation("unknown tool without record", TOOLSET, "unknown, layers.record(unknown))", "unknown, unknown)"),
    Mutation(
        "outcome not settled",
        "thena_core/call.py",
        '"""Make the outcome agree with what the model is going to read."""\n',
        '"""Do nothing."""\n    return\n',
    ),
    Mutation("output not cleaned", TURNS, "clean(output.content)", "output.content"),
    Mutation("output not cut", "thena_core/calls/observe.py", "if len(text) <= limit:", "if True:"),
    Mutation(
        "an interrupted call has no result in the history",
        TURNS,
        "            except BaseException:\n                history.append(_answer(request, inv.output))\n                raise\n",
        "            except BaseException:\n                raise\n",
    ),
    Mutation("a tool may call itself", "thena_core/calls/toolset.py", "if name == outer.name:", "if False:"),
    Mutation(
        "tools that write run beside each other",
        "thena_core/calls/batch.py",
        'call[2].effect in ("write", "destructive")]',
        "False]",
    ),
    Mutation("chat middleware dropped", CHAT, "        handler = middleware(handler, function)\n", "        pass\n"),
    Mutation("chat middleware in reverse", CHAT, "for function in reversed(around):", "for function in around:"),
    Mutation("chat record dropped", CHAT, "return handler, record(handler)", "return handler, handler"),
)
