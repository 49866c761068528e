"""`ConversionWebhook`: it converts custom resources between versions by the webhook of their definition."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlead.api.gojson import quote_go
from fairlead.server.errors.statuses import join_errors, unclassified
from fairlead.server.golang import encoding
from fairlead.server.registry.resource import Object
from fairlead.server.schema import metadata_validation
from fairlead.server.webhooks.calls import PendingCall, WebhookCallNeeded, WebhookFailed, current_memory
from fairlead.server.webhooks.replies import check_type, decode_reply
from fairlead.server.webhooks.targets import build_call

if TYPE_CHECKING:
    from fairlead.api.world import World
    from fairlead.server.storage.store import Store

USER_AGENT = "kube-apiserver-admission"  # A real server calls conversion webhooks under the same name.
_TIMEOUT = 30  # seconds
_GROUP = "apiextensions.k8s.io"
_VERSIONS = ("v1", "v1beta1")
_EMPTY_RESPONSE: Object = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}


class ConversionWebhook:
    """The conversion webhook of one CustomResourceDefinition. Implements registry.resource.Converter."""

    def __init__(self, definition: Object, store: "Store", world: "World") -> None:
        self._webhook = definition["spec"]["conversion"]["webhook"]
        self._store = store
        self._world = world

    def convert(self, objects: list[Object], api_version: str) -> list[Object]:
        """Return the objects at another version, by one call. All of them have the same version and kind.

        Raises WebhookCallNeeded if the answer is not known yet, or StatusError if the webhook fails.
        """
        sent = [_remove_resource_version(obj) for obj in objects]
        key = "convert", api_version, encoding.encode(sent)
        memory = current_memory()
        uid = memory.values.setdefault(("review", key), "") or self._world.uid()
        memory.values["review", key] = uid
        reply = memory.answers.get(key)
        version = next((each for each in self._webhook["conversionReviewVersions"] if each in _VERSIONS), "")
        kind = f"{objects[0]['apiVersion']}, Kind={objects[0]['kind']}"
        if reply is None:
            review = {
                "kind": "ConversionReview",
                "apiVersion": f"{_GROUP}/{version}",
                "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": sent},
                "response": _EMPTY_RESPONSE,
            }
            client = self._webhook["clientConfig"]
            call = build_call(self._store, client, encoding.encode(review), _TIMEOUT, USER_AGENT)
            raise WebhookCallNeeded([PendingCall(key, call)])
        try:
            if isinstance(reply, WebhookFailed):
                raise reply
            answer = decode_reply(reply)
            check_type(answer, _GROUP, version, "ConversionReview", _VERSIONS)
            converted = _get_converted(answer, uid, version)
        except WebhookFailed as error:
            raise unclassified(f"conversion webhook for {kind} failed: {error}") from None
        if len(converted) != len(objects):
            message = f"returned {len(converted)} objects, expected {len(objects)}"
            raise unclassified(f"conversion webhook for {kind} {message}")
        return [
            _check_object(original, new, api_version, f"conversion webhook for {kind}")
            for original, new in zip(objects, converted, strict=True)
        ]


def _remove_resource_version(obj: Object) -> Object:
    """Return the object as it is stored in etcd, which keeps the resourceVersion elsewhere."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "resourceVersion"}
    return {**obj, "metadata": metadata}


def _get_converted(review: Object, uid: str, version: str) -> list[Any]:
    """Return the objects in a ConversionReview. Raises WebhookFailed if it reports a failure or is malformed."""
    response = review.get("response")
    if version == "v1":
        api_version, kind = review.get("apiVersion") or "", review.get("kind") or ""
        if (api_version, kind) != (f"{_GROUP}/v1", "ConversionReview"):
            shown = f"{api_version if '/' in api_version else '/' + api_version}, Kind={kind}"
            raise WebhookFailed(f"expected webhook response of {_GROUP}/v1, Kind=ConversionReview, got {shown}")
    if not isinstance(response, dict):
        raise WebhookFailed("no response provided")
    if version == "v1" and (response.get("uid") or "") != uid:
        raise WebhookFailed(f"expected response.uid={quote_go(uid)}, got {quote_go(response.get('uid') or '')}")
    result = response.get("result") or {}
    if result.get("status") != "Success":
        status = result.get("status") or ""
        raise WebhookFailed(result.get("message") or f"response.result.status was '{status}', not 'Success'")
    converted: list[Any] = response.get("convertedObjects") or []
    return converted


def _check_object(original: Object, converted: Any, api_version: str, webhook: str) -> Object:
    """Return a converted object with the metadata of the original. Only labels and annotations may change."""
    if not isinstance(converted, dict):
        converted = {}
    given = converted.get("apiVersion") or ""
    if given != api_version:
        problem = f"invalid groupVersion (expected {api_version}, received {given})"
        raise unclassified(f"{webhook} returned invalid object at index 0: {problem}")
    if converted.get("kind") != original["kind"]:
        problem = f"invalid kind (expected {original['kind']}, received {converted.get('kind') or ''})"
        raise unclassified(f"{webhook} returned invalid object at index 0: {problem}")
    metadata = converted.get("metadata")
    before, after = original.get("metadata") or {}, metadata if isinstance(metadata, dict) else {}
    for key, name in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if (before.get(key) or "") != (after.get(key) or ""):
            problem = f"must have the same {name}: {before.get(key) or ''} != {after.get(key) or ''}"
            raise unclassified(f"{webhook} returned invalid object: {problem}")
    if problem := next(_find_metadata_problems(before, after), ""):
        raise unclassified(f"{webhook} returned invalid metadata: {problem}")
    kept = {key: value for key, value in before.items() if key not in ("labels", "annotations")}
    kept |= {key: after[key] for key in ("labels", "annotations") if after.get(key) is not None}
    if "metadata" not in original and not kept:  # An apply converts parts of objects, too.
        return {key: value for key, value in converted.items() if key != "metadata"}
    return {**converted, "metadata": kept}


def _find_metadata_problems(before: Object, after: Object) -> Iterator[str]:
    for key in ("labels", "annotations"):
        values = after.get(key)
        if values is None or values == before.get(key):
            continue
        if not isinstance(values, dict):
            yield f"invalid metadata.{key} of type {encoding.json_type_name(values)} in converted object"
            continue
        errors = metadata_validation.validate_labels_and_annotations({key: values}, "metadata")
        if errors:
            yield join_errors(errors)
