"""Call the webhooks that want to see a write: mutating ones in order, validating ones at the same time."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.api.gojson import quote_go
from fairlead.server.admission.plugin import AdmissionAttributes
from fairlead.server.admission.review_request import show_object
from fairlead.server.admission.webhooks.answers import Answer, CallFailed, ask, build_rejection
from fairlead.server.admission.webhooks.hooks import Hook, Invocation, find_invocation, list_hooks
from fairlead.server.errors.statuses import StatusError, internal_error_message, unclassified
from fairlead.server.golang import encoding
from fairlead.server.golang.encoding import exactly_equal
from fairlead.server.patches import json_patch
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import codec, defaulting
from fairlead.server.storage import versions
from fairlead.server.storage.store import ObjectTable
from fairlead.server.webhooks.calls import PendingCall, WebhookCallNeeded

if TYPE_CHECKING:
    from fairlead.server.app import Server


@dataclass(slots=True)
class _Reinvocation:
    """Which webhooks were called, and which of them are called a second time because a later one changed the object."""

    output: Object | None = None
    invoked: set[str] = field(default_factory=set)
    due: set[str] = field(default_factory=set)

    def require(self) -> None:
        self.due |= self.invoked
        self.invoked = set()


def mutate(server: "Server", configurations: ObjectTable, attributes: AdmissionAttributes) -> None:
    """Change the object of a write as the mutating webhooks say. Raises StatusError if one of them rejects the write.

    Raises WebhookCallNeeded until the answers of all webhooks are known.
    """
    state = attributes.state.setdefault("MutatingAdmissionWebhook", _Reinvocation())
    if attributes.is_reinvocation and not exactly_equal(state.output, attributes.object):
        state.require()  # Another plugin changed the object in its second run.
    for index, hook in enumerate(list_hooks(configurations)):
        invocation = find_invocation(server, hook, attributes)
        if invocation is None or (attributes.is_reinvocation and hook.uid not in state.due):
            continue
        if _call_mutating(server, invocation, attributes, index):
            state.require()
            attributes.should_reinvoke = True
        if hook.spec.get("reinvocationPolicy") == "IfNeeded":
            state.invoked.add(hook.uid)
    state.output = attributes.object


def _call_mutating(server: "Server", invocation: Invocation, attributes: AdmissionAttributes, index: int) -> bool:
    """Call a webhook, and return whether it changed the object. Raises StatusError if it rejects the write."""
    hook, turn = invocation.hook, int(attributes.is_reinvocation)
    place = f"round_{turn}_index_{index}"
    has_changed = False
    try:
        answer = ask(server, invocation, attributes, mutating=True, turn=turn)
        if isinstance(answer, PendingCall):
            raise WebhookCallNeeded([answer])
        _note_answer(hook, answer, attributes)
        has_changed = _apply_patch(invocation, answer, attributes)
    except CallFailed as error:
        if not hook.ignores_failures:
            raise internal_error_message(str(error)) from None
        attributes.annotate(f"failed-open.mutation.webhook.admission.k8s.io/{place}", hook.name)
    finally:
        mutation = {"configuration": hook.configuration, "webhook": hook.name, "mutated": has_changed}
        attributes.annotate(f"mutation.webhook.admission.k8s.io/{place}", encoding.encode(mutation).decode())
    return has_changed


def validate(server: "Server", configurations: ObjectTable, attributes: AdmissionAttributes) -> None:
    """Raise StatusError if a validating webhook rejects a write.

    Raises WebhookCallNeeded until the answers of all webhooks are known.
    """
    found = (find_invocation(server, hook, attributes) for hook in list_hooks(configurations))
    invocations = [invocation for invocation in found if invocation is not None]
    results = [_ask_validating(server, invocation, attributes) for invocation in invocations]
    if pending := [result for result in results if isinstance(result, PendingCall)]:
        raise WebhookCallNeeded(pending)  # A real server makes these calls at the same time, too.
    errors: list[StatusError] = []
    for index, (invocation, result) in enumerate(zip(invocations, results, strict=True)):
        hook = invocation.hook
        if isinstance(result, StatusError):
            errors.append(result)
        elif isinstance(result, CallFailed):
            if hook.ignores_failures:
                key = f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}"
                attributes.annotate(key, hook.name)
            else:
                errors.append(internal_error_message(str(result)))
        elif isinstance(result, Answer):
            try:
                _note_answer(hook, result, attributes)
            except StatusError as error:
                errors.append(error)
    if errors:
        raise errors[0]


def _ask_validating(
    server: "Server", invocation: Invocation, attributes: AdmissionAttributes
) -> Answer | PendingCall | CallFailed | StatusError:
    try:
        return ask(server, invocation, attributes, mutating=False, turn=0)
    except (CallFailed, StatusError) as error:
        return error


def _note_answer(hook: Hook, answer: Answer, attributes: AdmissionAttributes) -> None:
    """Pass on the warnings and audit annotations of an answer. Raises StatusError if it is a rejection."""
    for key, value in answer.annotations.items():
        attributes.annotate(f"{hook.name}/{key}", value)
    for warning in answer.warnings:
        attributes.warn(warning)
    if not answer.allowed:
        raise build_rejection(hook.name, answer.status)


def _apply_patch(invocation: Invocation, answer: Answer, attributes: AdmissionAttributes) -> bool:
    """Change the object as the answer says, and return whether it changed."""
    hook, resource = invocation.hook, invocation.resource
    if not answer.patch:
        return False
    try:
        operations = json_patch.decode(answer.patch)
    except encoding.BadJSON as error:
        problem = f"received undecodable patch in webhook response: {error}"
        raise CallFailed(f"failed calling webhook {quote_go(hook.name)}: {problem}") from None
    if not operations:
        return False
    if attributes.object is None:
        problem = "attempted to modify the object, which is not supported for this operation"
        raise internal_error_message(f"admission webhook {quote_go(hook.name)} {problem}")
    if answer.patch_type != "JSONPatch":
        problem = f"unsupported patch type {quote_go(answer.patch_type)}"
        raise CallFailed(f"failed calling webhook {quote_go(hook.name)}: {problem}")
    before = show_object(attributes, attributes.object, resource)
    assert before is not None
    try:
        after = _decode(attributes, resource, json_patch.apply(before, operations))
    except (json_patch.CannotApply, encoding.BadJSON) as error:
        raise internal_error_message(str(error)) from None
    except codec.DecodeError as error:
        raise internal_error_message(error.message) from None
    has_changed = not exactly_equal(before, after)
    if has_changed:
        after = _set_defaults(attributes, resource, after)
        is_other_version = attributes.kind is None and resource is not attributes.resource
        attributes.object = versions.convert_unpruned(attributes.resource, after) if is_other_version else after
    return has_changed


def _decode(attributes: AdmissionAttributes, resource: Resource, patched: Object) -> Object:
    if resource.custom:
        return patched
    kind = attributes.kind or resource
    if (patched.get("apiVersion"), patched.get("kind")) != (kind.api_version, kind.kind):
        given = f"{str(patched.get('apiVersion')).rpartition('/')[2]}.{patched.get('kind')}"
        internal = f"{kind.group.partition('.')[0] or 'core'}.{kind.kind}"
        raise unclassified(f"converting ({given}) to ({internal}): unknown conversion")
    return codec.decode(kind.schema, patched).object


def _set_defaults(attributes: AdmissionAttributes, resource: Resource, obj: Object) -> Object:
    if resource.custom:
        defaulted: Object = defaulting.apply_defaults(resource.schema, obj)
        return defaulted
    if attributes.kind is not None or resource.default is None:
        return obj
    return resource.default(obj)
