"""Let only those call a tool who may, as middleware.

Holds against: calls for nobody (a run without `data`); tools that say nothing about themselves (they count as
destructive); arguments that a hook changed after a look at them (middleware sees those that run); ways around: packed
calls, nested runs and `app.call` all come by here.

Does not hold against: what a tool does beyond its declaration. What may be done with *which* row is the service's to
check: it gets the same user.

Add it last with `app.use(tool=authorize)`: the last one added stands next to the tool, so nothing that comes by a
cache or a plugin before it is asked less. A cache outside of it must keep users apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from thena_core import CallNext, ToolCall, ToolOutput

WORST = "destructive"
WRAPPERS = frozenset({"parallel"})  # they do nothing but call others, and each of those comes by here


@dataclass(frozen=True, slots=True)
class User:
    """Who a run works for: `app.run("…", data=User("ana", frozenset({"read"})))`.

    Attributes:
        name: For the report.
        may: Effects (`read`, `write`, `destructive`) and the permissions that tools ask for by
            `@tool(metadata={"permission": "refund"})`.
    """

    name: str
    may: frozenset[str]


async def authorize(call: ToolCall, call_next: CallNext) -> ToolOutput:
    """Refuse a call whose effect or permission the user does not have."""
    user: object = call.ctx.data
    if not isinstance(user, User):
        return ToolOutput(f"Not allowed: {call.name}. Nobody is signed in.", is_error=True)
    call.meta(user=user.name)
    definition = call.definition
    effect = WORST if definition is None or definition.effect is None else definition.effect
    permission = None if definition is None or definition.metadata is None else definition.metadata.get("permission")
    needed = {effect} if permission is None else {effect, permission}
    if not needed <= user.may and call.name not in WRAPPERS:
        return ToolOutput(f"Not allowed: {call.name}.", is_error=True)
    return await call_next(call)
