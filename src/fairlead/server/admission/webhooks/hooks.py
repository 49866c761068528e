"""The webhooks of all stored configurations, and which writes each of them wants to see."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from fairlead.server.admission.match_conditions import matches_conditions
from fairlead.server.admission.plugin import AdmissionAttributes
from fairlead.server.errors.statuses import forbidden, not_found
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.registry.validation.selectors import is_empty_selector, selects
from fairlead.server.storage.store import ObjectTable

if TYPE_CHECKING:
    from fairlead.server.app import Server


class Hook(NamedTuple):
    """One webhook of a configuration."""

    uid: str  # configuration, name and how many webhooks of the configuration have the same name before it
    configuration: str
    spec: Object

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def ignores_failures(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


class Invocation(NamedTuple):
    """A webhook to call, and the resource that its rules name: an equivalent one, or that of the write."""

    hook: Hook
    resource: Resource


def list_hooks(configurations: ObjectTable) -> list[Hook]:
    """Return the webhooks of all configurations, sorted by the names of the configurations."""
    return list(_read_hooks(stored.object for _, stored in configurations.scan("")))


def _read_hooks(configurations: Iterator[Object]) -> Iterator[Hook]:
    for configuration in configurations:
        name, counts = configuration["metadata"]["name"], dict[str, int]()
        for spec in configuration.get("webhooks") or ():
            number = counts[spec["name"]] = counts.get(spec["name"], -1) + 1
            yield Hook(f"{name}/{spec['name']}/{number}", name, spec)


def find_invocation(server: "Server", hook: Hook, attributes: AdmissionAttributes) -> Invocation | None:
    """Return how to call a webhook for a write, or None if the webhook does not want to see the write.

    Raises StatusError if that cannot be decided.
    """
    labels = _find_namespace_labels(server, hook, attributes)
    if labels is not None and not _selects(hook.spec.get("namespaceSelector"), labels):
        return None
    if not _selects_object(hook.spec.get("objectSelector"), attributes):
        return None
    resource = _find_matching_resource(server, hook, attributes)
    if resource is None:
        return None
    if labels is None and not is_empty_selector(hook.spec.get("namespaceSelector")) and attributes.namespace:
        raise not_found(server.namespace_resource, attributes.namespace)
    conditions = hook.spec.get("matchConditions")
    if conditions:
        matches, error = matches_conditions(server, conditions, attributes, resource)
        if error and not hook.ignores_failures:
            raise forbidden(attributes.resource, attributes.name, error)
        if error or not matches:
            return None
    return Invocation(hook, resource)


def _find_namespace_labels(server: "Server", hook: Hook, attributes: AdmissionAttributes) -> Object | None:
    """Return the labels of the namespace of a write, or None if no namespace selector applies to the write."""
    is_namespace = attributes.resource.plural == "namespaces" and not attributes.resource.group
    if is_empty_selector(hook.spec.get("namespaceSelector")) or not (attributes.namespace or is_namespace):
        return None
    if is_namespace and not attributes.subresource and attributes.object is not None:
        return attributes.object["metadata"].get("labels") or {}
    stored = server.store.table("", "namespaces").get("", attributes.namespace)
    return (stored.object["metadata"].get("labels") or {}) if stored is not None else None


def _selects(selector: Object | None, labels: Object) -> bool:
    return is_empty_selector(selector) or selects(selector, labels)


def _selects_object(selector: Object | None, attributes: AdmissionAttributes) -> bool:
    """Return whether a selector matches the labels of the new or of the old object."""
    if is_empty_selector(selector):
        return True
    objects = (obj for obj in (attributes.object, attributes.old) if obj is not None)
    return any(selects(selector, (obj.get("metadata") or {}).get("labels") or {}) for obj in objects)


def _find_matching_resource(server: "Server", hook: Hook, attributes: AdmissionAttributes) -> Resource | None:
    """Return the resource of the write, or an equivalent one, for which a webhook has a rule."""
    rules = hook.spec.get("rules") or ()
    if any(matches_rule(rule, attributes, attributes.resource) for rule in rules):
        return attributes.resource
    if hook.spec.get("matchPolicy") == "Exact":
        return None
    equivalents = list(server.registry.equivalents(attributes.resource))
    return next((each for rule in rules for each in equivalents if matches_rule(rule, attributes, each)), None)


def matches_rule(rule: Object, attributes: AdmissionAttributes, resource: Resource) -> bool:
    """Return whether a rule names a write, if the write is seen as one of `resource`."""
    scope = rule.get("scope") or "*"
    return (
        (scope == "*" or (scope == "Namespaced") == resource.namespaced)
        and not {"*", attributes.operation}.isdisjoint(rule.get("operations") or ())
        and not {"*", resource.group}.isdisjoint(rule.get("apiGroups") or ())
        and not {"*", resource.version}.isdisjoint(rule.get("apiVersions") or ())
        and any(_names_resource(item, resource, attributes.subresource) for item in rule.get("resources") or ())
    )


def _names_resource(item: str, resource: Resource, subresource: str) -> bool:
    plural, _, sub = item.partition("/")
    return plural in ("*", resource.plural) and sub in ("*", subresource)
