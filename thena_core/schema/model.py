"""From parameters or a type to a held validator and the JSON schema that the model sees; both made once, at build."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, cast

import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, PydanticOmit, SchemaValidator

from thena_core._render import type_name
from thena_core.errors import ToolDefinitionError
from thena_core.schema.describe import describe
from thena_core.schema.dictionary import dictionary_type
from thena_core.schema.signature import MISSING, Parameter
from thena_core.schema.strict import strict_schema

_CLOSED = {"model", "dataclass", "typed-dict"}


@dataclass(frozen=True, slots=True)
class ArgumentsSchema:
    """What a tool accepts.

    Attributes:
        validate_json: Model text to arguments, in one step.
        validate_python: A mapping to arguments.
        json_schema: What the model sees.
        fields: Each top-level field's name on the wire and whether it may be left out.
        whole: Whether the validated object is the author's own (a model, dataclass, dict), or a dict of parameters.
        wire_names: Python name to name on the wire, where any differ.
        strict: Whether the model must send every field, `null` for a default.
    """

    validate_json: Callable[[str | bytes], Any]
    validate_python: Callable[[Any], Any]
    json_schema: Mapping[str, Any]
    fields: Mapping[str, bool]
    whole: bool
    wire_names: Mapping[str, str]
    strict: bool

    def mapping(self, args: Any) -> Mapping[str, Any]:
        """Show validated arguments under their names on the wire."""
        if isinstance(args, BaseModel):
            found: Mapping[str, Any] = {**args.__dict__, **(args.__pydantic_extra__ or {})}
        elif dataclasses.is_dataclass(args):
            found = {field.name: getattr(args, field.name) for field in dataclasses.fields(args)}
        elif isinstance(args, Mapping):
            found = cast("Mapping[str, Any]", args)
        else:
            return MappingProxyType({"value": args})
        names = self.wire_names
        return {names.get(name, name): value for name, value in found.items()} if names else found

    def check(self, arguments: Mapping[str, Any]) -> Any:
        """Validate a mapping at once; what is wrong is a `ValueError` naming each field."""
        try:
            return self.validate_python(dict(arguments))
        except ValidationError as error:
            raise ValueError(describe(error.errors(include_url=False), self.fields)) from None


def schema_from_type(schema: Any, *, tool: str, strict: bool = False) -> ArgumentsSchema:
    """Make the schema from what the author gave: a model, dataclass, TypedDict, or a JSON Schema as a `dict`.

    Raises:
        ToolDefinitionError: Where it is none of them, or cannot be a schema.
    """
    if isinstance(schema, Mapping):
        given = cast("Mapping[str, Any]", schema)
        tp, json_schema = dictionary_type(given, tool)
        validator = TypeAdapter[Any](tp).validator
        finished = _finished(json_schema, tool, strict=strict)
        fields = _fields_of(json_schema)
        return _assemble(validator, finished, fields, whole=True, wire_names={}, strict=strict)
    if not is_object_type(schema):
        raise ToolDefinitionError(
            f'[thena] The schema of the tool "{tool}" is {type_name(schema)}: give a pydantic model, a dataclass, '
            f"a TypedDict, or a JSON Schema as a dict."
        )
    core = _closed(_adapter(schema, tool).core_schema)
    json_schema = _json_schema(core, tool)
    finished = _finished(json_schema, tool, strict=strict)
    fields, wire_names = _fields_of(json_schema), _wire_names(schema)
    return _assemble(_validator(core), finished, fields, whole=True, wire_names=wire_names, strict=strict)


def schema_from_parameters(
    parameters: Sequence[Parameter], *, tool: str, docs: Mapping[str, str], strict: bool = False
) -> ArgumentsSchema:
    """Make the schema from the input parameters of `execute`: one field each.

    A TypedDict carries them, since its keys may be any name (`schema`, `model_dump`, `_id`), as a model's may not.
    """
    fields: dict[str, Any] = {}
    wire_names: dict[str, str] = {}
    optional: dict[str, bool] = {}
    for parameter in parameters:
        alias = parameter.marker.alias if parameter.marker is not None else None
        wire = alias or _own_alias(parameter.annotation) or parameter.name
        own = parameter.default if isinstance(parameter.default, FieldInfo) else None
        has_default = parameter.default is not MISSING and (own is None or not own.is_required())
        wanted: Any = parameter.annotation if own is None else Annotated[parameter.annotation, own]
        annotation: Any = Annotated[wanted, _field(parameter, docs, alias)]
        fields[parameter.name] = typing_extensions.NotRequired[annotation] if has_default else annotation
        optional[wire] = has_default
        if wire != parameter.name:
            wire_names[parameter.name] = wire
    make_typed_dict: Any = typing_extensions.TypedDict  # checkers allow only a literal dict here
    carrier = make_typed_dict("Arguments", fields)
    carrier.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    core = _closed(_adapter(carrier, tool).core_schema)
    json_schema = _finished(_json_schema(core, tool), tool, strict=strict)
    return _assemble(_validator(core), json_schema, optional, whole=False, wire_names=wire_names, strict=strict)


def is_object_type(tp: Any) -> bool:
    """Whether a type describes named fields, so that it can be a tool's whole schema."""
    cls: Any = typing_extensions.get_origin(tp) or tp
    if typing_extensions.is_typeddict(cls):
        return True
    return inspect.isclass(cls) and (issubclass(cls, BaseModel) or dataclasses.is_dataclass(cast("type", cls)))


def docstring_arguments(docstring: str | None) -> dict[str, str]:
    """Read the `Args:` lines of a Google-style docstring: parameter to text, continuation lines joined."""
    section = re.search(r"^[ \t]*(?:Args|Arguments|Parameters):[ \t]*\n(.*)", docstring or "", re.DOTALL | re.MULTILINE)
    found: dict[str, str] = {}
    name, margin = "", None
    for line in section.group(1).splitlines() if section else ():
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        margin = indent if margin is None else margin
        if indent < margin:
            break
        entry = re.match(r"\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)", line) if indent == margin else None
        if entry:
            name, found[entry[1]] = entry[1], entry[2].strip()
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _field(parameter: Parameter, docs: Mapping[str, str], alias: str | None) -> FieldInfo:
    settings: dict[str, Any] = {}
    if parameter.default is not MISSING and not isinstance(parameter.default, FieldInfo):
        settings["default"] = parameter.default
    if alias:
        settings["alias"] = alias
    text = parameter.marker.description if parameter.marker is not None else None
    text = text or (None if _own_description(parameter) else docs.get(parameter.name))
    if text:
        settings["description"] = text
    info: FieldInfo = Field(**settings)
    return info


def _own_field(annotation: Any) -> FieldInfo | None:
    for item in typing_extensions.get_args(annotation)[1:]:
        if isinstance(item, FieldInfo):
            return item
    return None


def _own_description(parameter: Parameter) -> str | None:
    own = parameter.default if isinstance(parameter.default, FieldInfo) else _own_field(parameter.annotation)
    return own.description if own is not None else None


def _own_alias(annotation: Any) -> str | None:
    info = _own_field(annotation)
    return info.alias if info is not None else None


def _adapter(tp: Any, tool: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(tp)
    except (PydanticUserError, TypeError, NameError) as error:
        raise ToolDefinitionError(
            f'[thena] No schema can be made for the tool "{tool}": {str(error).splitlines()[0]}'
        ) from error


def _fields_of(json_schema: Mapping[str, Any]) -> dict[str, bool]:
    """List the top-level fields under their names on the wire, and whether each may be left out."""
    required = cast("Sequence[str]", json_schema.get("required", ()))
    return {name: name not in required for name in cast("Mapping[str, Any]", json_schema.get("properties", {}))}


def _wire_names(tp: Any) -> dict[str, str]:
    """Map each field whose name on the wire differs: Python name to wire name."""
    cls: Any = typing_extensions.get_origin(tp) or tp
    if not issubclass(cls, BaseModel):
        return {}
    aliases = {name: _wire_alias(info) for name, info in cls.model_fields.items()}
    return {name: alias for name, alias in aliases.items() if alias is not None and alias != name}


def _wire_alias(info: FieldInfo) -> str | None:
    return info.validation_alias if isinstance(info.validation_alias, str) else info.alias


def _assemble(
    validator: Any,
    json_schema: Mapping[str, Any],
    fields: Mapping[str, bool],
    *,
    whole: bool,
    wire_names: Mapping[str, str],
    strict: bool,
) -> ArgumentsSchema:
    if wire_names:

        def validate_python(value: Any) -> Any:
            return validator.validate_python(value, by_alias=True, by_name=True)
    else:
        validate_python = validator.validate_python
    return ArgumentsSchema(validator.validate_json, validate_python, json_schema, fields, whole, wire_names, strict)


def _closed(schema: Any) -> Any:
    """Refuse unknown fields, and `NaN`, which is no JSON, at every depth, except where the author allows them."""
    if isinstance(schema, dict):
        node = cast("dict[str, Any]", schema)
        copy: dict[str, Any] = {
            # `cls`, defaults and functions are the author's own objects, not parts of the schema
            key: value if key in {"cls", "default", "metadata", "expected"} else _closed(value)
            for key, value in node.items()
        }
        if copy.get("type") in _CLOSED and "extra" not in _config(copy):
            copy["config"] = {**copy.get("config", {}), "extra_fields_behavior": "forbid"}
            if copy["type"] == "typed-dict":
                copy["extra_behavior"] = "forbid"
        if copy.get("type") == "float":
            copy.setdefault("allow_inf_nan", False)
        return copy
    if isinstance(schema, list):
        return [_closed(part) for part in cast("list[Any]", schema)]
    if type(schema) is tuple:
        return tuple(_closed(part) for part in cast("tuple[Any, ...]", schema))
    return schema


def _config(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the author's class configures: a model's, or a dataclass's or TypedDict's."""
    cls = schema.get("cls")
    return getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}


def _validator(core: CoreSchema) -> SchemaValidator:
    # a model's own compiled validator would be taken in place of the closed schema
    return SchemaValidator(core, _use_prebuilt=False)


class _ForModels(GenerateJsonSchema):
    """Say `additionalProperties: false` where unknown fields are refused, and leave out titles nobody wrote."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        return self._trimmed(schema, super().model_schema(schema))

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        return self._trimmed(schema, super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        return self._trimmed(schema, super().typed_dict_schema(schema))

    def enum_schema(self, schema: Any) -> dict[str, Any]:
        found = super().enum_schema(schema)
        found.pop("title", None)
        return found

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def _trimmed(self, schema: Any, found: dict[str, Any]) -> dict[str, Any]:
        if schema.get("config", {}).get("extra_fields_behavior") == "forbid" and "properties" in found:
            found.setdefault("additionalProperties", False)
        if found.get("title") != _config(schema).get("title"):
            found.pop("title", None)
        return found


def _json_schema(core: CoreSchema, tool: str) -> dict[str, Any]:
    try:
        found = _ForModels().generate(core)
    except (PydanticUserError, PydanticOmit) as error:
        raise ToolDefinitionError(
            f'[thena] The arguments of the tool "{tool}" have no JSON schema, so no model can fill them: '
            f"{str(error).splitlines()[0]}"
        ) from error
    if "$ref" in found:  # a model that contains itself: services want the object at the top
        definitions = cast("Mapping[str, Any]", found["$defs"])
        top = cast("Mapping[str, Any]", definitions[found["$ref"].rsplit("/", 1)[-1]])
        return {**top, "$defs": definitions}
    return found


def _finished(json_schema: Mapping[str, Any], tool: str, *, strict: bool) -> Mapping[str, Any]:
    found = dict(json_schema)
    found.setdefault("type", "object")
    found.setdefault("properties", {})
    if not found["properties"]:
        found.setdefault("additionalProperties", False)
    return strict_schema(found, tool) if strict else found
