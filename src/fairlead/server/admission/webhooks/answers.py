"""Ask a webhook by an AdmissionReview, and check its answer."""

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.api.gojson import quote_go
from fairlead.server.admission.plugin import AdmissionAttributes
from fairlead.server.admission.review_request import build_request
from fairlead.server.admission.webhooks.hooks import Invocation
from fairlead.server.errors.statuses import StatusError, bad_request, status_error
from fairlead.server.golang import encoding
from fairlead.server.registry.resource import Object
from fairlead.server.webhooks.calls import PendingCall, WebhookFailed
from fairlead.server.webhooks.replies import check_type, decode_reply
from fairlead.server.webhooks.targets import build_call

if TYPE_CHECKING:
    from fairlead.server.app import Server

USER_AGENT = "kube-apiserver-admission"
_VERSIONS = ("v1", "v1beta1")


class CallFailed(Exception):
    """Raised if a webhook gave no usable answer. The failure policy decides what follows."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a webhook."""

    allowed: bool
    patch: bytes = b""
    patch_type: str = ""
    status: Object | None = None
    warnings: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)


def ask(
    server: "Server", invocation: Invocation, attributes: AdmissionAttributes, *, mutating: bool, turn: int
) -> Answer | PendingCall:
    """Return the answer of a webhook, or the call that is needed to get it.

    Raises CallFailed if the call failed, or StatusError if the webhook may not be called in a dry run.
    """
    hook = invocation.hook
    if attributes.dry_run and hook.spec.get("sideEffects") not in ("None", "NoneOnDryRun"):
        raise bad_request(f"admission webhook {quote_go(hook.name)} does not support dry run")
    accepted = hook.spec.get("admissionReviewVersions") or ()
    version = next((each for each in accepted if each in _VERSIONS), "")
    review: Object = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}"}
    request = build_request(attributes, invocation.resource)
    key = hook.uid, turn, encoding.encode(request)
    memory = attributes.request.memory
    uid = memory.values.setdefault(("review", key), None) or server.world.uid()
    memory.values["review", key] = uid
    reply = memory.answers.get(key)
    if reply is None:
        body = encoding.encode({**review, "request": {"uid": uid, **request}})
        timeout = hook.spec.get("timeoutSeconds")
        return PendingCall(key, build_call(server.store, hook.spec["clientConfig"], body, timeout, USER_AGENT))
    try:
        if isinstance(reply, WebhookFailed):
            raise reply
        answer = decode_reply(reply)
        check_type(answer, "admission.k8s.io", version, "AdmissionReview", _VERSIONS)
    except WebhookFailed as error:
        raise CallFailed(f"failed calling webhook {quote_go(hook.name)}: failed to call webhook: {error}") from None
    try:
        return _check_answer(answer, uid, version, mutating=mutating)
    except WebhookFailed as error:
        problem = f"received invalid webhook response: {error}"
        raise CallFailed(f"failed calling webhook {quote_go(hook.name)}: {problem}") from None


def _check_answer(review: Object, uid: str, version: str, *, mutating: bool) -> Answer:
    """Return the answer in an AdmissionReview. Raises WebhookFailed if it breaks a rule of its version."""
    response = review.get("response")
    if not isinstance(response, dict):
        raise WebhookFailed("webhook response was absent")
    patch, patch_type = _decode_patch(response.get("patch")), response.get("patchType")
    if version == "v1":
        _check_v1(review, response, uid)
        if mutating:
            _check_patch(patch, patch_type)
        elif patch:
            raise WebhookFailed("validating webhook may not return response.patch")
        elif patch_type is not None:
            raise WebhookFailed("validating webhook may not return response.patchType")
    else:
        patch, patch_type = (patch, "JSONPatch") if mutating and patch else (b"", "")
    return Answer(
        bool(response.get("allowed")),
        patch,
        patch_type or "",
        response.get("status"),
        tuple(response.get("warnings") or ()),
        response.get("auditAnnotations") or {},
    )


def _check_v1(review: Object, response: Object, uid: str) -> None:
    given = response.get("uid") or ""
    if given != uid:
        raise WebhookFailed(f"expected response.uid={quote_go(uid)}, got {quote_go(given)}")
    api_version, kind = review.get("apiVersion") or "", review.get("kind") or ""
    if (api_version, kind) != ("admission.k8s.io/v1", "AdmissionReview"):
        shown = f"{api_version if '/' in api_version else '/' + api_version}, Kind={kind}"
        raise WebhookFailed(f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {shown}")


def _check_patch(patch: bytes, patch_type: Any) -> None:
    if patch and patch_type is None:
        raise WebhookFailed("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise WebhookFailed("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise WebhookFailed('webhook returned invalid response.patchType of ""')


def _decode_patch(text: Any) -> bytes:
    try:
        return base64.b64decode(text or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        return b""


def build_rejection(name: str, status: Object | None) -> StatusError:
    """Return the error for a write that a webhook rejected: the status of its answer, with a message that names it."""
    result = status or {}
    reason = f"admission webhook {quote_go(name)} denied the request"
    detail = result.get("message") or result.get("reason")
    message = f"{reason}: {detail}" if detail else f"{reason} without explanation"
    error = status_error(max(result.get("code") or 0, 400), result.get("reason") or "", message, result.get("details"))
    if result.get("status") not in (None, "", "Success", "Failure"):
        error.status["status"] = result["status"]
    return error
