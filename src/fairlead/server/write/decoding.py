"""From JSON values to an object of a kind: types checked, unknown fields reported and dropped, defaults filled in."""

import re
from collections.abc import Callable
from typing import Any

from fairlead.server.errors.field_errors import FieldError, quote_go
from fairlead.server.errors.statuses import bad_request, invalid_kind
from fairlead.server.golang import encoding
from fairlead.server.http import bodies
from fairlead.server.http.exchange import Request
from fairlead.server.registry.defaults import TEMPLATE_GENERATION
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec, defaulting, empty_values, pruning
from fairlead.server.storage import versions


def read(request: Request, resource: Resource, validation: str) -> Object:
    """The request's body as an object of the kind. Refuses with 400 what is not one."""
    value, duplicates = bodies.read_object(request, resource)
    try:
        obj, unknown = decoded(resource, value)
    except codec.DecodeError as error:
        raise bad_request(f"{_handled(resource, value)}: {error.message}") from None
    _note_empty(request, resource, value)
    problems = _read_problems(request, resource, unknown, duplicates)
    if problems and validation == "Strict":
        if duplicates and bodies.media_type(request) == "yaml":
            lines = "".join(f"\n  {line}" for line in duplicates)
            problems = [f"yaml: unmarshal errors:{lines}", *problems[len(duplicates) :]]
        raise bad_request(f"{_handled(resource, value)}: strict decoding error: {', '.join(problems)}")
    if validation == "Warn":
        for problem in problems:
            request.warn(problem)
    return filled(resource, obj)


Shown = Callable[[Any], str]  # how a refusal shows a patched document


def patched(
    request: Request, resource: Resource, value: Any, validation: str, duplicates: list[str], shown: Shown
) -> Object:
    """A patched document as an object of the kind. Refuses with 422 on the field `patch` what is not one."""
    if not isinstance(value, dict):
        raise _invalid_patch(shown(value), "couldn't get version/kind; json parse error")
    if wrong := bodies.untyped(value) or (bodies.foreign(value, resource, patched=True) if not resource.custom else ""):
        raise _invalid_patch(shown(value), wrong)
    if resource.custom:
        if not value.get("kind"):
            raise _invalid_patch(shown(value), f"Object 'Kind' is missing in '{shown(value)}'")
        if "apiVersion" in value and value["apiVersion"] is None:
            told = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
            raise _invalid_patch(shown(value), told)
    elif not value.get("kind"):
        value = {**value, "kind": resource.kind}
    try:
        if resource.custom and not _of_kind(resource, value):
            return pruning.typed_metadata(value)  # by no schema; it is refused once it is known whose it is
        # Without a version a built-in object is read as the internal type, which shares no field with the others.
        nameless = not resource.custom and not value.get("apiVersion")
        obj, unknown = ({}, sorted(value.keys() - {"apiVersion", "kind"})) if nameless else decoded(resource, value)
    except codec.DecodeError as error:
        document = shown(value)
        raise _invalid_patch(document, _first_error(resource, document) or error.message) from None
    _note_empty(request, resource, value)
    _strictly(request, [*duplicates, *_problems(unknown, [])], validation, lambda: shown(value))
    return filled(resource, obj) if obj else obj


def _of_kind(resource: Resource, value: Object) -> bool:
    group, _, _ = str(value.get("apiVersion") or "").rpartition("/")
    return (group, value.get("kind")) == (resource.group, resource.kind)


def _first_error(resource: Resource, document: str) -> str:
    """What a decoder meets first in a document, whose fields may stand in another order than those of the object."""
    try:
        decoded(resource, encoding.decode(document.encode())[0])
    except codec.DecodeError as error:
        return error.message
    return ""


def restored(
    request: Request, resource: Resource, value: Object, validation: str, duplicates: list[str], shown: Shown
) -> Object:
    """As `patched`, for a map that is made into an object as it is, whatever kind and version it says."""
    try:
        for key in ("apiVersion", "kind"):
            codec.text(value.get(key) or "")
        named = {**value, "apiVersion": resource.api_version, "kind": resource.kind}
        obj, unknown = decoded(resource, named)
    except codec.DecodeError as error:
        raise _invalid_patch(shown(value), error.restored) from None
    _note_empty(request, resource, value)
    _strictly(request, [*duplicates, *_problems(unknown, [])], validation, lambda: shown(value))
    return filled(resource, obj)


def _note_empty(request: Request, resource: Resource, value: Object) -> None:
    """Note what a kind counts as a change although it is not stored, and what is stored otherwise than it is read."""
    for key in ("data", "binaryData") if resource.kind in ("Secret", "ConfigMap") and not resource.custom else ():
        field = resource.schema.fields.get(key)
        if field is not None and field.values is not None and field.values.go.kind == "bytes":
            request.unwritten = request.unwritten or None in (value.get(key) or {}).values()
    if resource.counts_empty:
        keys = resource.generation_of
        request.hollow = any(empty_values.has_omitted(resource.schema.fields[key], value.get(key)) for key in keys)


def _strictly(request: Request, problems: list[str], validation: str, shown: Callable[[], str]) -> None:
    if problems and validation == "Strict":
        raise _invalid_patch(shown(), f"strict decoding error: {', '.join(problems)}")
    if validation == "Warn":
        for problem in problems:
            request.warn(problem)


def applied(request: Request, resource: Resource, value: Object) -> Object:
    """An applied object as the kind's type holds it; what does not fit was refused by the merge already.

    Nulls that a merge leaves in a custom resource stay, for validation to refuse.
    """
    try:
        obj = pruning.typed_metadata(value) if resource.custom else decoded(resource, value)[0]
    except codec.DecodeError as error:
        raise bad_request(error.message) from None
    _note_empty(request, resource, value)
    return filled(resource, obj)


def decoded(resource: Resource, value: Object) -> tuple[Object, list[str]]:
    """The object as its type holds it, and the paths of what the type does not have. Raises codec.DecodeError."""
    if resource.custom:
        obj, unknown = pruning.prune(resource.schema, value)
    else:
        made = codec.decode(resource.schema, value)
        obj, unknown = made.object, made.unknown
        if (value.get("metadata") or {}).get("managedFields") == []:  # not the same as none: it asks for a reset
            obj = {**obj, "metadata": {**obj["metadata"], "managedFields": []}}
        if (resource.group, resource.kind) == ("apps", "DaemonSet"):
            _expect_number((obj.get("metadata") or {}).get("annotations") or {})
    return obj, unknown


def _expect_number(annotations: Object) -> None:
    """A DaemonSet's annotation that was a field once is still read as its number."""
    text = annotations.get(TEMPLATE_GENERATION, "0")
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise codec.DecodeError(f"strconv.ParseInt: parsing {quote_go(text)}: invalid syntax")


def filled(resource: Resource, obj: Object) -> Object:
    """The object with its kind's defaults."""
    if resource.custom:
        made: Object = defaulting.default(resource.schema, obj)
        return made
    made = resource.default(obj) if resource.default else obj
    # A real server looks at every version by way of an internal one, which may say more.
    return versions.convert(resource, versions.stored_form(resource, made)) if resource.storage else made


def _read_problems(request: Request, resource: Resource, unknown: list[str], duplicates: list[str]) -> list[str]:
    """In the order of a real server: of a built-in kind as they come, of a custom one or in YAML duplicates first."""
    if bodies.media_type(request) == "yaml":
        return [*duplicates, *_problems(unknown, [])]
    if resource.custom or not (unknown and duplicates):
        return _problems([], duplicates) + _problems(unknown, [])
    place = encoding.places(request.body)
    return sorted(_problems(unknown, duplicates), key=lambda told: place.get(told, len(place)))


def _problems(unknown: list[str], duplicates: list[str]) -> list[str]:
    return [f'unknown field "{path}"' for path in unknown] + [f'duplicate field "{path}"' for path in duplicates]


def _handled(resource: Resource, value: Object) -> str:
    kind = value.get("kind") or resource.kind
    return f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}'


def _invalid_patch(shown: str, message: str) -> Exception:
    told = f"Invalid value: {quote_go(shown)}: {message}"
    return invalid_kind("", "", "", [FieldError("FieldValueInvalid", "patch", told)])
