"""list: selectors, pages over a consistent snapshot, and what a resourceVersion in the query means."""

import base64
import json
import posixpath
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from fairlead.api import gojson, selectors
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import quote_go
from fairlead.server.errors.statuses import StatusError, bad_request, expired, status_error, unclassified
from fairlead.server.golang import encoding
from fairlead.server.http import representations
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import int64_option, integer_syntax_error, invalid_options
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Resource
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs import field_selectors
from fairlead.server.write import names

if TYPE_CHECKING:
    from fairlead.server.app import Server


@dataclass(slots=True)
class Page:
    """Part of a list, and how to go on."""

    items: list[Stored]
    version: int
    continue_: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a list or a watch is about."""

    resource: Resource
    labels: selectors.Labels
    fields: selectors.Fields

    def __bool__(self) -> bool:
        return bool(self.labels or self.fields)

    def matches(self, stored: Stored) -> bool:
        obj = versions.view(self.resource, stored).object
        if self.labels and not self.labels.matches(obj["metadata"].get("labels")):
            return False
        return not self.fields or self.fields.matches(lambda path: field_selectors.value(self.resource, obj, path))


def selection(server: "Server", request: Request, route: Route) -> Selection:
    """The selection of a request. Refuses with 400 what does not parse or what the kind cannot select by."""
    labels, fields = parsed_selectors(request)
    allowed = field_selectors.selectable(route.resource)
    for condition in fields.conditions:
        if condition.path not in allowed:
            raise bad_request(field_selectors.refusal(route.resource, condition.path))
    if route.name:  # an object's own path
        fields = selectors.Fields((*fields.conditions, selectors.Field("metadata.name", route.name)))
    return Selection(route.resource, labels, fields)


def parsed_selectors(request: Request) -> tuple[selectors.Labels, selectors.Fields]:
    """Those of a request. To be refused before options that do not fit, which come before unknown fields."""
    try:
        labels = selectors.parse_labels(request.first("labelSelector"), _check_label)
    except selectors.SelectorError as error:
        raise bad_request(str(error)) from None
    try:
        return labels, selectors.parse_fields(request.first("fieldSelector"))
    except selectors.SelectorError as error:
        raise bad_request(str(error)) from None


def _check_label(key: str, value: str | None) -> str | None:
    if value is None:
        problems = names.qualified(key)
        return f"<nil>: Invalid value: {quote_go(key)}: {'; '.join(problems)}" if problems else None
    problems = names.label_value(value)
    return f"values[0][{key}]: Invalid value: {quote_go(value)}: {'; '.join(problems)}" if problems else None


def list_objects(server: "Server", request: Request, route: Route) -> Response:
    representation = representations.negotiate(request, route.resource, listing=True)
    return representation.list_response(200, page(server, request, route), request.warnings)


def page(server: "Server", request: Request, route: Route, *, in_pages: bool = False) -> Page:
    """The page that a list request asks for. `in_pages`: without a limit, all of them, at the version of the first."""
    resource = route.resource
    limit = int64_option(request, "limit") or 0
    token = request.first("continue")
    asked = request.first("resourceVersion")
    match = request.first("resourceVersionMatch")
    parsed_selectors(request)
    int64_option(request, "timeoutSeconds")
    _check_match(match, asked, token, "sendInitialEvents" in request.query)
    chosen = selection(server, request, route)
    pages = limit > 0 or in_pages
    if asked == "0":
        limit = 0  # what a real server has in memory it tells whole
    table = server.table(resource)
    namespace = (route.namespace or None) if resource.namespaced else ""
    start = ""
    if token:
        version, start = _decode_token(token, asked)
        if version < 0:  # ANY, or what nobody but a forger says
            version = server.store.version
        elif version < table.floor:
            refusal = expired(CONTINUE_EXPIRED)
            refusal.status["metadata"] = {"continue": _encode_token(ANY, start)}
            raise refusal
        _not_in_the_future(version, server.store.version)
    elif asked not in ("", "0") and (match == "Exact" or (not match and (limit > 0 or in_pages))):
        version = parse_version(asked, "list")
        if version < table.floor:
            raise expired("The resourceVersion for the provided list is too old.")
        _not_in_the_future(version, server.store.version)
    else:
        version = max(at_least(server, request, asked, reading="list"), table.floor)
    inside = f"{namespace}/" if namespace else ""  # tokens name places within what is listed
    entries = table.snapshot(namespace, version, inside + start if start else "")
    if lost := server.definitions.lost(resource):
        if not pages:
            raise versions.not_listed(resource, lost)
        entries = ((key, versions.expect_readable(resource, stored)) for key, stored in entries)
    matching = (entry for entry in entries if chosen.matches(entry[1])) if chosen else entries
    if limit <= 0:
        return Page([stored for _, stored in matching], version)
    found = list(islice(matching, limit))
    items = [stored for _, stored in found]
    if len(found) < limit or next(entries, None) is None:  # a page follows where there is anything, chosen or not
        return Page(items, version)
    rest = found[-1][0] + "\0"
    remaining = None if chosen else table.count(namespace, version, rest)
    return Page(items, version, _encode_token(version, rest.removeprefix(inside)), remaining)


_ENCODED = "meta.k8s.io/v1"  # how tokens are encoded
ANY = -1  # in a token: go on with whatever is there by then
CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def parse_version(text: str, reading: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 21 and int(text) < 2**64:
        return int(text)
    problem = f"strconv.ParseUint: parsing {quote_go(text)}: {integer_syntax_error(text, signed=False)}"
    named = f"resourceVersion: Invalid value: {quote_go(text)}: {problem}"
    if reading == "list":
        raise bad_request(f"invalid resource version: {named}")
    raise unclassified(named)


def at_least(server: "Server", request: Request, text: str, *, reading: str) -> int:
    """The version to read at: not older than the one asked for, or a 504. Who asks for none never gets a stale one."""
    present = server.store.version if request.replica is None or not text else request.replica.version
    if text not in ("", "0"):
        _not_in_the_future(parse_version(text, reading), present)
    return present


def _not_in_the_future(version: int, present: int) -> None:
    if version > present:
        raise too_large(version, present)


def too_large(version: int, current: int) -> StatusError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return status_error(504, "Timeout", f"Timeout: Too large resource version: {version}, current: {current}", details)


def _check_match(match: str, version: str, token: str, initial: bool) -> None:
    field = "resourceVersionMatch"
    found = []
    if match:
        if not version:
            found.append(
                field_errors.forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if token:
            found.append(field_errors.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            found.append(field_errors.not_supported(field, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and version == "0":
            found.append(
                field_errors.forbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if initial:
        found.append(field_errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if found:
        raise invalid_options("ListOptions", found)


def _encode_token(version: int, start: str) -> str:
    text = json.dumps({"v": _ENCODED, "rv": version, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode_token(token: str, asked: str) -> tuple[int, str]:
    """Where a list goes on: the version, and the place within what is listed."""
    try:
        encoded, version, start = _fields(token)
        if encoded != _ENCODED:
            raise _BadToken(f"server does not recognize this encoded version {encoded}")
        if version == 0:
            raise _BadToken(f"incorrect encoded start resourceVersion (version {_ENCODED})")
        if not start:
            raise _BadToken(f"encoded start key empty (version {_ENCODED})")
        path = start if start[0] == "/" else f"/{start}"
        if posixpath.normpath(f"/{start.lstrip('/')}") != path:
            raise _BadToken(start)
    except _BadToken as problem:
        raise bad_request(f"invalid continue token: continue key is not valid: {problem}") from None
    if asked not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    return version, path[1:]


_OUTSIDE_BASE64 = re.compile("[^A-Za-z0-9_-]")
_TYPES: dict[str, tuple[type, str]] = {"v": (str, "string"), "rv": (int, "int64"), "start": (str, "string")}


class _BadToken(Exception):
    """A token is none; the message is that of the decoder that gives up on it first."""


def _fields(token: str) -> tuple[str, int, str]:
    if outside := _OUTSIDE_BASE64.search(token):
        raise _BadToken(f"illegal base64 data at input byte {outside.start()}")
    try:
        value, _ = encoding.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except encoding.BadJSON as error:
        raise _BadToken(str(error)) from None
    except ValueError:
        raise _BadToken(f"illegal base64 data at input byte {len(token) // 4 * 4}") from None
    if not isinstance(value, dict | None):
        raise _BadToken(
            f"json: cannot unmarshal {encoding.json_type_name(value)} into Go value of type storage.continueToken"
        )
    given = {key: item for key, item in (value or {}).items() if key in _TYPES and item is not None}
    for key, item in given.items():
        kind, name = _TYPES[key]
        if type(item) is not kind:
            shown = (
                f"number {gojson.number(item)}"
                if isinstance(item, float) and kind is int
                else encoding.json_type_name(item)
            )
            into = f"Go struct field continueToken.{key} of type {name}"
            raise _BadToken(f"json: cannot unmarshal {shown} into {into}")
    return given.get("v", ""), given.get("rv", 0), given.get("start", "")
