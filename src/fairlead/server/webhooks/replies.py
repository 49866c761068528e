"""Decode the replies of webhooks, with the errors of a real server's client."""

from typing import Any

from fairlead.api.gojson import quote_go
from fairlead.server.golang import encoding
from fairlead.server.registry.resource import Object
from fairlead.server.webhooks.calls import WebhookFailed, WebhookReply

_MAX_TEXT = 2048  # bytes of a text reply that an error message shows
_MESSAGES = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def decode_reply(reply: WebhookReply) -> Object:
    """Return the JSON object in a reply. Raises WebhookFailed for an error status, or if the body is not an object."""
    if not 200 <= reply.status <= 206:
        raise WebhookFailed(_describe_status(reply))
    if not reply.body:
        content_type = reply.content_type or "application/json"
        raise WebhookFailed(f"0-length response with status code: {reply.status} and content type: {content_type}")
    try:
        value = _decode_json_or_yaml(reply.body)
    except encoding.BadJSON as error:
        raise WebhookFailed(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(value, dict):
        found = f"json: cannot unmarshal {encoding.json_type_name(value)} into Go value of type struct"
        fields = '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        raise WebhookFailed(f"couldn't get version/kind; json parse error: {found} {fields}")
    return value


def check_type(review: Object, group: str, version: str, kind: str, known: tuple[str, ...]) -> None:
    """Raise WebhookFailed if a reply has another kind or version than was sent. It may omit them."""
    given_version, given_kind = review.get("apiVersion") or f"{group}/{version}", review.get("kind") or kind
    given_group, _, given = given_version.rpartition("/")
    if (given_group, given_kind) != (group, kind) or given not in known:
        scheme = "pkg/runtime/scheme.go:111"
        raise WebhookFailed(f'no kind "{given_kind}" is registered for version "{given_version}" in scheme "{scheme}"')
    if given != version:
        raise WebhookFailed(f"converting ({given}.{kind}) to ({version}.{kind}): unknown conversion")


def _decode_json_or_yaml(body: bytes) -> Any:
    try:
        return encoding.decode(body)[0]
    except encoding.BadJSON:
        from fairlead.server.golang import yaml

        return yaml.read(body)[0]


def _describe_status(reply: WebhookReply) -> str:
    is_text = reply.content_type.startswith("text/")
    text = reply.body[:_MAX_TEXT].decode(errors="replace").strip() if is_text else "unknown"
    if reply.status in (403, 406, 415):
        return text
    if reply.status in _MESSAGES:
        return _MESSAGES[reply.status]
    if reply.status >= 500:
        return f"an error on the server ({quote_go(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {reply.status} but did not return more information"
