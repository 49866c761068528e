"""The list handler: selectors, pages of a consistent snapshot, and resourceVersion in the query."""

import base64
import json
import posixpath
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from fairlead.api import gojson, selectors
from fairlead.api.gojson import quote_go
from fairlead.server.errors import field_errors
from fairlead.server.errors.statuses import StatusError, bad_request, expired, status_error, unclassified
from fairlead.server.golang import encoding
from fairlead.server.http import negotiation
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import int64_option, integer_syntax_error, invalid_options
from fairlead.server.http.representations import Page
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Resource
from fairlead.server.schema import names
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs import field_selectors

if TYPE_CHECKING:
    from fairlead.server.app import Server


@dataclass(frozen=True, slots=True)
class Selection:
    """The namespace and the selectors of a list or watch."""

    resource: Resource
    labels: selectors.LabelSelector
    fields: selectors.FieldSelector

    def __bool__(self) -> bool:
        return bool(self.labels or self.fields)

    def matches(self, stored: Stored) -> bool:
        obj = versions.view(self.resource, stored).object
        if self.labels and not self.labels.matches(obj["metadata"].get("labels")):
            return False
        return not self.fields or self.fields.matches(lambda path: field_selectors.value(self.resource, obj, path))


def parse_selection(server: "Server", request: Request, route: Route) -> Selection:
    """Return the namespace and selectors of a request. Raises 400 for a malformed selector or an unsupported field."""
    labels, fields = parse_selectors(request)
    allowed = field_selectors.list_selectable_fields(route.resource)
    for condition in fields.conditions:
        if condition.path not in allowed:
            raise bad_request(field_selectors.unsupported_field_message(route.resource, condition.path))
    if route.name:  # a watch of one object by its path
        fields = selectors.FieldSelector((*fields.conditions, selectors.FieldCondition("metadata.name", route.name)))
    return Selection(route.resource, labels, fields)


def parse_selectors(request: Request) -> tuple[selectors.LabelSelector, selectors.FieldSelector]:
    """Return the label and field selectors of a request. Raises 400 for a malformed selector.

    A real server parses the selectors before the other options, and checks their field names after those.
    """
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
    """Return the response to a list request."""
    representation = negotiation.negotiate(request, route.resource, is_list=True)
    page = read_page(server, request, route)
    if route.resource.converter is not None:
        versions.convert_all(route.resource, page.items)
    return representation.list_response(200, page, request.warnings)


def read_page(server: "Server", request: Request, route: Route, *, is_in_pages: bool = False) -> Page:
    """Return the page that a list request asks for. `is_in_pages`: read like a paginated list, even without a limit."""
    resource = route.resource
    limit = int64_option(request, "limit") or 0
    token = request.first("continue")
    requested_version = request.first("resourceVersion")
    match = request.first("resourceVersionMatch")
    parse_selectors(request)
    int64_option(request, "timeoutSeconds")
    _check_version_match(match, requested_version, token, "sendInitialEvents" in request.query)
    selected = parse_selection(server, request, route)
    pages = limit > 0 or is_in_pages
    if requested_version == "0":
        limit = 0  # a real server returns a list from its watch cache whole
    table = server.table(resource)
    namespace = (route.namespace or None) if resource.namespaced else ""
    start = ""
    if token:
        version, start = _decode_token(token, requested_version)
        if version < 0:  # ANY, or a forged token
            version = server.store.version
        elif version < table.compacted_version:
            error = expired(CONTINUE_EXPIRED)
            error.status["metadata"] = {"continue": _encode_token(ANY, start)}
            raise error
        _reject_future_version(version, server.store.version)
    elif requested_version not in ("", "0") and (match == "Exact" or (not match and (limit > 0 or is_in_pages))):
        version = parse_version(requested_version, "list")
        if version < table.compacted_version:
            raise expired("The resourceVersion for the provided list is too old.")
        _reject_future_version(version, server.store.version)
    else:
        version = max(read_version(server, request, requested_version, reading="list"), table.compacted_version)
    prefix = f"{namespace}/" if namespace else ""  # continue tokens hold keys without the namespace of the list
    entries = table.snapshot(namespace, version, prefix + start if start else "")
    if removed := server.definitions.find_removed_version(resource):
        if not pages:
            raise versions.build_unreadable_list_error(resource, removed)
        entries = ((key, versions.expect_readable(resource, stored)) for key, stored in entries)
    if resource.converter is not None and selected:
        scanned = list(entries)
        versions.convert_all(resource, [stored for _, stored in scanned])
        entries = iter(scanned)
    matching = (entry for entry in entries if selected.matches(entry[1])) if selected else entries
    if limit <= 0:
        return Page([stored for _, stored in matching], version)
    entries_of_page = list(islice(matching, limit))
    items = [stored for _, stored in entries_of_page]
    if (
        len(entries_of_page) < limit or next(entries, None) is None
    ):  # another page follows if any object is left, selected or not
        return Page(items, version)
    next_key = entries_of_page[-1][0] + "\0"
    remaining = None if selected else table.count(namespace, version, next_key)
    return Page(items, version, _encode_token(version, next_key.removeprefix(prefix)), remaining)


_ENCODING_VERSION = "meta.k8s.io/v1"  # the version of the token format
ANY = -1  # the version in a token that continues with the current objects
CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def parse_version(version: str, reading: str) -> int:
    if version.isascii() and version.isdigit() and len(version) < 21 and int(version) < 2**64:
        return int(version)
    problem = f"strconv.ParseUint: parsing {quote_go(version)}: {integer_syntax_error(version, is_signed=False)}"
    message = f"resourceVersion: Invalid value: {quote_go(version)}: {problem}"
    if reading == "list":
        raise bad_request(f"invalid resource version: {message}")
    raise unclassified(message)


def read_version(server: "Server", request: Request, version: str, *, reading: str) -> int:
    """Return the version at which to serve a read. It is at least the requested resourceVersion.

    Raises 504 for a version in the future. A request without a resourceVersion is never served from a stale replica.
    """
    current_version = server.store.version if request.replica is None or not version else request.replica.version
    if version not in ("", "0"):
        _reject_future_version(parse_version(version, reading), current_version)
    return current_version


def _reject_future_version(version: int, current_version: int) -> None:
    if version > current_version:
        raise version_too_large(version, current_version)


def version_too_large(version: int, current: int) -> StatusError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return status_error(504, "Timeout", f"Timeout: Too large resource version: {version}, current: {current}", details)


def _check_version_match(match: str, version: str, token: str, is_initial: bool) -> None:
    field = "resourceVersionMatch"
    errors = []
    if match:
        if not version:
            errors.append(
                field_errors.forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if token:
            errors.append(field_errors.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(field_errors.not_supported(field, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and version == "0":
            errors.append(
                field_errors.forbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if is_initial:
        errors.append(field_errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if errors:
        raise invalid_options("ListOptions", errors)


def _encode_token(version: int, start: str) -> str:
    token_json = json.dumps({"v": _ENCODING_VERSION, "rv": version, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(token_json.encode()).decode().rstrip("=")


def _decode_token(token: str, requested_version: str) -> tuple[int, str]:
    """Return the version and the key at which a continue token resumes a list. Raises 400 if it is malformed."""
    try:
        encoded, version, start = _decode_token_fields(token)
        if encoded != _ENCODING_VERSION:
            raise _BadToken(f"server does not recognize this encoded version {encoded}")
        if version == 0:
            raise _BadToken(f"incorrect encoded start resourceVersion (version {_ENCODING_VERSION})")
        if not start:
            raise _BadToken(f"encoded start key empty (version {_ENCODING_VERSION})")
        path = start if start[0] == "/" else f"/{start}"
        if posixpath.normpath(f"/{start.lstrip('/')}") != path:
            raise _BadToken(start)
    except _BadToken as problem:
        raise bad_request(f"invalid continue token: continue key is not valid: {problem}") from None
    if requested_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    return version, path[1:]


_OUTSIDE_BASE64 = re.compile("[^A-Za-z0-9_-]")
_TYPES: dict[str, tuple[type, str]] = {"v": (str, "string"), "rv": (int, "int64"), "start": (str, "string")}


class _BadToken(Exception):
    """Raised for a malformed continue token. The message is that of the Go decoder that fails first."""


def _decode_token_fields(token: str) -> tuple[str, int, str]:
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
    fields = {key: item for key, item in (value or {}).items() if key in _TYPES and item is not None}
    for key, item in fields.items():
        kind, name = _TYPES[key]
        if type(item) is not kind:
            token_text = (
                f"number {gojson.format_number(item)}"
                if isinstance(item, float) and kind is int
                else encoding.json_type_name(item)
            )
            into = f"Go struct field continueToken.{key} of type {name}"
            raise _BadToken(f"json: cannot unmarshal {token_text} into {into}")
    return fields.get("v", ""), fields.get("rv", 0), fields.get("start", "")
