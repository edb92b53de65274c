"""From a definition and an instance to the innermost handler: what `execute` asks for, filled in and called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast, get_origin

from thena_core._render import did_you_mean, type_name
from thena_core.call import Handler, Invocation
from thena_core.calls.declared import ToolSource
from thena_core.calls.observe import join, observe
from thena_core.calls.threads import ThreadPool
from thena_core.definition import ToolDefinition
from thena_core.di.catalog import Lifetime
from thena_core.errors import SignatureError, ThenaError
from thena_core.output import ToolOutput, text_output
from thena_core.schema.model import (
    ArgumentsSchema,
    docstring_arguments,
    is_object_type,
    schema_from_parameters,
    schema_from_type,
)
from thena_core.schema.signature import MISSING, Parameter, Signature, needs_runtime_type, read_signature

Filler = Callable[[Invocation], Any]


class Sources(Protocol):
    """What fills the parameters that are not input: known to the toolset, not to the plan."""

    def filler(self, parameter: Parameter, where: str, problems: list[Exception]) -> tuple[Lifetime, Filler]:
        """Return what fills a parameter, and whether that is the same for the app or fetched (awaited) per call.

        Raises:
            ThenaError: Where nothing can fill it.
        """
        ...

    def provides(self, tp: Any) -> bool:
        """Whether the app's container provides a type."""
        ...


@dataclass(frozen=True, slots=True)
class Inspected:
    """A tool, looked at once: nothing of it is looked at again, neither for another agent nor per call.

    Attributes:
        source: What was declared.
        definition: What everybody sees of it, with its JSON schema and without `execute`.
        signature: The parameters of `execute`.
        schema: What it accepts.
        fillers: Parameter to what fills it when it is called.
        fetched: The parameters that are fetched, and awaited, before it is called.
    """

    source: ToolSource
    definition: ToolDefinition
    signature: Signature
    schema: ArgumentsSchema
    fillers: Mapping[str, Filler]
    fetched: Sequence[tuple[str, Filler]]

    @property
    def filled(self) -> Mapping[str, str]:
        """Say of each parameter where its value comes from."""
        return {parameter.name: _role_text(parameter) for parameter in self.signature.parameters}


def inspect_tool(source: ToolSource, sources: Sources, problems: list[Exception]) -> Inspected | None:
    """Inspect a tool; what is wrong with it is added to `problems`, all of it, and `None` returned."""
    signature = read_signature(
        source.function,
        where=source.where,
        owner=source.cls or (type(source.instance) if source.instance is not None else None),
        local_names=source.local_names,
    )
    unclear = _unclear(signature, source, sources)
    found: list[Exception] = [*signature.problems, *_unresolved(source, signature), *unclear]
    fillers: dict[str, Filler] = {}
    fetched: list[tuple[str, Filler]] = []
    schema: ArgumentsSchema | None = None
    if not found:
        try:
            schema = _schema(source, signature)
        except ThenaError as problem:
            found.append(problem)
    for parameter in signature.parameters:
        try:
            if parameter.role == "input":
                if schema is not None:
                    fillers[parameter.name] = _input_filler(parameter, schema, source)
                continue
            lives, fill = sources.filler(parameter, source.where, found)
        except ThenaError as problem:
            found.append(problem)
            continue
        if lives == "app":
            fillers[parameter.name] = fill
        else:
            fetched.append((parameter.name, fill))
            fillers[parameter.name] = _from_services(parameter.name)
    problems.extend(found)
    if found or schema is None:
        return None
    definition = replace(source.definition, json_schema=schema.json_schema, execute=None)
    return Inspected(source, definition, signature, schema, fillers, tuple(fetched))


def make_handler(tool: Inspected, instance: Any, threads: ThreadPool) -> Handler:
    """Make the innermost handler of a tool, around its instance where it has one."""
    function = tool.source.function if instance is None else instance.execute
    call = _caller(function, tool.signature, tool.fillers, tool.schema)
    direct = function if _all_by_name(tool.signature, tool.schema) else None
    handler = _handler(function, call, direct, tool.definition, threads)
    return _fetching(handler, tool.fetched) if tool.fetched else handler


def _fetching(inner: Handler, fetched: Sequence[tuple[str, Filler]]) -> Handler:
    """Fetch what lives as long as the run or the call, before the tool is called."""

    async def ready(inv: Invocation) -> ToolOutput:
        inv.services = {name: await fetch(inv) for name, fetch in fetched}
        return await inner(inv)

    return ready


def _from_services(name: str) -> Filler:
    return lambda inv: inv.services[name]  # type: ignore[index]  # filled by the handler around


def _unclear(signature: Signature, source: ToolSource, sources: Sources) -> list[SignatureError]:
    """List the inputs of a type that the container provides: a slip, or they need to say that they are none."""
    own = source.definition.schema
    return [
        _say_which(parameter, source.where)
        for parameter in signature.parameters
        if parameter.role == "input"
        and not parameter.marked
        and parameter.type is not own
        and sources.provides(parameter.type)
    ]


def _say_which(parameter: Parameter, where: str) -> SignatureError:
    wanted = type_name(parameter.type)
    return SignatureError(
        where,
        parameter.name,
        f"the container provides {wanted}, and nothing says whether the model or the container fills it. Write one of\n"
        f"  {parameter.name}: Annotated[{wanted}, Inject]   # a service\n"
        f"  {parameter.name}: Annotated[{wanted}, Input]    # the model fills it in",
    )


def _unresolved(source: ToolSource, signature: Signature) -> list[SignatureError]:
    """List the inputs whose types exist only for type checkers; with a schema of their own they are not needed."""
    if source.definition.schema is not None:
        return []
    inputs = [parameter for parameter in signature.parameters if parameter.role == "input"]
    found = [needs_runtime_type(source.where, parameter.name, parameter.annotation) for parameter in inputs]
    return [problem for problem in found if problem is not None]


def _schema(source: ToolSource, signature: Signature) -> ArgumentsSchema:
    definition = source.definition
    strict = bool(definition.strict)
    if definition.schema is not None:
        return schema_from_type(definition.schema, tool=definition.name, strict=strict)
    inputs = [parameter for parameter in signature.parameters if parameter.role == "input"]
    if not inputs and signature.open_ended and not signature.parameters:
        raise SignatureError(
            source.where,
            "*args/**kwargs",
            "nothing says what the model should fill in. If a decorator hides the real signature, let it use "
            "functools.wraps; otherwise name the parameters, or give schema=….",
        )
    if len(inputs) == 1 and is_object_type(inputs[0].type):
        return schema_from_type(inputs[0].type, tool=definition.name, strict=strict)
    docs = docstring_arguments(source.function.__doc__)
    return schema_from_parameters(inputs, tool=definition.name, docs=docs, strict=strict)


def _input_filler(parameter: Parameter, schema: ArgumentsSchema, source: ToolSource) -> Filler:
    """Give a parameter named like a field that field, any other the whole validated object."""
    name = parameter.name
    if not schema.whole:
        return lambda inv: inv.args[name]
    given = source.definition.schema
    if given is None or _same_type(parameter.type, given):
        return lambda inv: inv.args
    python_names = _python_names(schema)
    if name in python_names:
        return _field_filler(parameter, given, optional=schema.fields[python_names[name]], where=source.where)
    if isinstance(given, Mapping) or parameter.type is Any or parameter.type in (dict, object):
        return lambda inv: inv.args
    if is_object_type(parameter.type) and issubclass(given, get_origin(parameter.type) or parameter.type):
        return lambda inv: inv.args
    raise SignatureError(
        source.where,
        name,
        f"`{type_name(parameter.type)}` is neither the schema {type_name(given)} nor one of its fields "
        f"({', '.join(python_names)}).{did_you_mean(name, python_names)}",
    )


def _field_filler(parameter: Parameter, given: Any, *, optional: bool, where: str) -> Filler:
    name = parameter.name
    if not isinstance(given, Mapping) and not hasattr(given, "__required_keys__"):
        return lambda inv: getattr(inv.args, name)
    if not optional:
        return lambda inv: inv.args[name]
    default = parameter.default
    if default is MISSING:
        raise SignatureError(
            where, name, f"the model may leave this field out; give the parameter a default: `{name}=None`."
        )
    return lambda inv: inv.args.get(name, default)


def _python_names(schema: ArgumentsSchema) -> dict[str, str]:
    """Map each field's Python name to its name on the wire."""
    python = {wire: name for name, wire in schema.wire_names.items()}
    return {python.get(wire, wire): wire for wire in schema.fields}


def _same_type(tp: Any, schema: Any) -> bool:
    return tp is schema or (not isinstance(schema, Mapping) and tp == schema)


def _caller(
    function: Callable[..., Any], signature: Signature, fillers: Mapping[str, Filler], schema: ArgumentsSchema
) -> Callable[[Invocation], Any]:
    """Compose the call of `execute`: the two common shapes directly, the rest by a list of fillers."""
    parameters = signature.parameters
    only_input = all(parameter.role == "input" for parameter in parameters)
    if not parameters and signature.open_ended and schema.whole:  # a decorator hides the one parameter
        return lambda inv: function(inv.args)
    if _all_by_name(signature, schema):
        return lambda inv: function(**inv.args)
    if only_input and schema.whole and len(parameters) == 1 and not parameters[0].keyword_only:
        fill = fillers[parameters[0].name]
        return lambda inv: function(fill(inv))
    by_position = tuple(fillers[parameter.name] for parameter in parameters if not parameter.keyword_only)
    by_name = tuple((parameter.name, fillers[parameter.name]) for parameter in parameters if parameter.keyword_only)
    if not by_name:
        return lambda inv: function(*[fill(inv) for fill in by_position])
    return lambda inv: function(*[fill(inv) for fill in by_position], **{name: fill(inv) for name, fill in by_name})


def _all_by_name(signature: Signature, schema: ArgumentsSchema) -> bool:
    """Whether the validated fields are the parameters, all of them: the commonest shape of a tool."""
    parameters = signature.parameters
    return not schema.whole and all(one.role == "input" and not one.positional_only for one in parameters)


def _handler(
    function: Callable[..., Any],
    call: Callable[[Invocation], Any],
    direct: Any,
    definition: ToolDefinition,
    threads: ThreadPool,
) -> Handler:
    limit = definition.max_output_chars

    async def awaited_by_name(inv: Invocation) -> ToolOutput:
        result = await direct(**inv.args)  # without `call` between: this is the commonest shape
        if type(result) is str and 0 < len(result) <= limit:
            return text_output(result)
        return await observe(inv, result, limit)

    async def awaited(inv: Invocation) -> ToolOutput:
        result = await call(inv)
        if type(result) is str and 0 < len(result) <= limit:
            return text_output(result)
        return await observe(inv, result, limit)

    async def in_thread(inv: Invocation) -> ToolOutput:
        def work() -> Any:
            result = call(inv)
            return join(cast("Generator[Any, None, None]", result), limit) if inspect.isgenerator(result) else result

        result = await threads.run(work, lambda: inv.note(abandoned=True))
        return await observe(inv, result, limit)

    async def inline(inv: Invocation) -> ToolOutput:
        return await observe(inv, call(inv), limit)

    plain: Any = inspect.unwrap(function)
    calling = getattr(type(function), "__call__", None)  # noqa: B004 - for an object with `async def __call__`
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(calling):
        handler: Handler = awaited if direct is None else awaited_by_name
    elif definition.blocking and not inspect.isasyncgenfunction(plain) and not inspect.iscoroutinefunction(plain):
        handler = in_thread
    else:
        handler = inline
    return handler


def _role_text(parameter: Parameter) -> str:
    texts = {
        "input": "from the model",
        "context": "the run's Context",
        "state": "the workflow's state",
        "tools": "the agent's other tools",
        "runtime": "the WorkflowRuntime",
    }
    named = f'the service Provide["{parameter.provider_name}"]' if parameter.provider_name else None
    return named or texts.get(parameter.role, f"a service of type {type_name(parameter.type)}")
