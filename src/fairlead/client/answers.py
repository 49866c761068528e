"""Check that a response answers the request. A proxy or a wrong address can send any body with status 200 or 404."""

from collections.abc import Callable
from typing import Any

import msgspec

from fairlead.api.errors import ApiError, NotFound
from fairlead.api.kinds import Kind

SUCCESS = frozenset({200, 201, 202})
"""The success codes of an API server. Any other 2xx, such as 203 and 206, means that something changed the answer."""


class UnexpectedAnswer(msgspec.DecodeError):
    """The response is valid JSON, but does not answer the request."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListAnswer(msgspec.Struct, rename="camel"):
    """A list response whose items are not decoded yet."""

    kind: str
    api_version: str
    metadata: _Metadata
    items: list[msgspec.Raw] | None  # The server may write an empty list as null. A list without the key is rejected.


_decode = msgspec.json.Decoder(ListAnswer).decode


def list_decoder(
    kind: Kind, *, metadata_only: bool, can_be_watched: bool, list_kinds_of_others: Callable[[], set[str]]
) -> Callable[[bytes], ListAnswer]:
    """Return a function that decodes the response of a list request for the kind.

    The function raises msgspec.DecodeError for everything else: an answer without items, resourceVersion, kind or
    apiVersion, a Status, or a list of another kind. None of them is an empty list. Kinds that cannot be watched, such
    as metrics, have lists without a resourceVersion.

    A CustomResourceDefinition may choose another list kind than `<kind>List`, and discovery does not report it. So a
    custom kind accepts every list kind of its group and version that is not the list kind of another kind.
    """
    expected = (
        ("meta.k8s.io/v1", "PartialObjectMetadataList") if metadata_only else (kind.api_version, f"{kind.kind}List")
    )

    def decode(body: bytes) -> ListAnswer:
        answer = _decode(body)
        if (answer.api_version, answer.kind) != expected:
            is_own_name = "." in kind.group and not metadata_only and answer.api_version == expected[0]
            if not is_own_name or answer.kind in list_kinds_of_others():
                raise UnexpectedAnswer(
                    f"it is a {answer.kind} of {answer.api_version}, not a {expected[1]} of {expected[0]}"
                )
        if can_be_watched and not answer.metadata.resource_version:
            raise UnexpectedAnswer("it has no metadata.resourceVersion")
        return answer

    return decode


def names_object(error: NotFound, kind: Kind, namespace: str | None, name: str | None) -> bool:
    """Return whether a 404 response names the requested object, or the namespace of that object.

    Without `name`, for a create, every object counts: a 404 never means that the created object is absent.
    """
    details = error.details
    if name is None:
        return True
    if (details.get("kind"), details.get("name")) == ("namespaces", namespace):
        return True
    has_name = details.get("name") == name
    has_kind = details.get("kind") in (None, "", kind.plural, kind.kind)
    return has_name and has_kind and details.get("group") in (None, "", kind.group)


def of_another_object(error: NotFound, kind: Kind, name: str | None) -> ApiError:
    """Return the error for a 404 response that names another object than the requested one."""
    details: dict[str, Any] = error.details
    other = " ".join(str(details[key]) for key in ("kind", "name") if details.get(key))
    message = (
        f"the answer to a request for {kind.kind} {name} is that {other} is not found, so it says nothing about "
        f"{kind.kind} {name}: check the webhooks and proxies on the way ({error.message})"
    )
    return ApiError({**error.status, "reason": "", "message": message}, error.code)
