"""The built-in kinds as Resources: names and verbs from the table of facts, flags and hooks from one entry a kind."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final

from fairlead.server.authentication.users import User
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry import autoscaling, defaults, events, preparing
from fairlead.server.registry.resource import Object, Resource, Retold
from fairlead.server.registry.validation import (
    autoscaling as autoscaling_rules,
)
from fairlead.server.registry.validation import (
    batch,
    certificates,
    classes,
    config,
    definitions,
    endpoints,
    job_statuses,
    leases,
    namespaces,
    networking,
    nodes,
    persistent_volumes,
    pod_warnings,
    pods,
    quotas,
    rbac,
    services,
    statuses,
    storage,
    webhooks,
    workloads,
)
from fairlead.server.registry.validation import events as event_rules
from fairlead.server.schema import builtin
from fairlead.server.schema.nodes import Node

_REVIEWING: Final = ("authentication.k8s.io", "authorization.k8s.io")
_REPLICAS: Final = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


@dataclass(frozen=True, slots=True)
class Entry:
    """What a real server's strategy for a kind decides, where it differs from the common case."""

    generation: tuple[str, ...] = ()  # what moves the generation; none: the kind has no generation
    counts_empty: bool = False  # the generation moves for what is given empty too
    minds_empty: bool = False  # validation tells what is given empty from what is not given
    unconditional_update: bool = True
    metadata_retold: Retold = "twice"
    status_metadata_retold: Retold = "once"
    bytes_differ: Callable[[Object], bool] | None = None  # of a new object: its first update is always stored
    create_on_update: bool = False
    delete_answers_object: bool = False
    keeps_status: bool = False  # a status given on create is kept
    status_keeps: tuple[str, ...] = ()  # what of the metadata /status may not change
    resets: tuple[str, ...] = ()  # what an update never changes, and so nobody owns
    prepare_for: Callable[[Object, User], None] | None = None  # of a new one: what it says of who asked for it
    prepare_create: Callable[[Object], None] | None = None
    prepare_update: Callable[[Object, Object], None] | None = None
    stamp_update: Callable[[Object, Object, str], None] | None = None  # what it says of when it was changed
    validate: Callable[[Object, Object | None], list[FieldError]] | None = None
    validate_status: Callable[[Object, Object | None], list[FieldError]] | None = None
    warn: Callable[[Object, Object | None], list[str]] | None = None
    deprecation: str = ""  # what every answer warns of


_SPEC: Final = ("spec",)
_WEBHOOKS: Final = Entry(
    generation=("webhooks",), counts_empty=True, unconditional_update=False, validate=webhooks.configuration
)
_POLICY: Final = Entry(generation=_SPEC, unconditional_update=False)
_GENERATED: Final = Entry(generation=_SPEC)
_ANSWERED: Final = Entry(delete_answers_object=True)
_COMMON: Final = Entry()

_TEMPLATE: Final = pod_warnings.template("spec", "template")

ENTRIES: Final[dict[tuple[str, str], Entry]] = {
    ("", "ConfigMap"): Entry(validate=config.config_map),
    ("", "Secret"): Entry(validate=config.secret),
    ("", "Namespace"): Entry(
        delete_answers_object=True, prepare_create=preparing.namespace, validate=namespaces.namespace
    ),
    ("", "Pod"): Entry(
        generation=_SPEC,
        status_keeps=("ownerReferences", "deletionTimestamp"),
        delete_answers_object=True,
        prepare_create=preparing.pod,
        prepare_update=preparing.pod_update,
        validate=pods.pod,
        validate_status=statuses.pod,
        warn=pod_warnings.pod,
    ),
    ("", "Service"): Entry(
        metadata_retold="once",
        create_on_update=True,
        delete_answers_object=True,
        prepare_create=preparing.service,
        prepare_update=preparing.kept_addresses,
        validate=services.service,
        validate_status=statuses.service,
        warn=services.service_warnings,
    ),
    ("", "ServiceAccount"): Entry(
        delete_answers_object=True,
        prepare_create=preparing.service_account,
        prepare_update=preparing.service_account,
    ),
    ("", "PersistentVolumeClaim"): Entry(
        bytes_differ=lambda claim: True,
        delete_answers_object=True,
        prepare_create=preparing.claim,
        prepare_update=preparing.claim_update,
        validate=storage.claim,
        warn=pod_warnings.claim,
    ),
    ("", "PersistentVolume"): Entry(
        metadata_retold="as new twice",
        delete_answers_object=True,
        prepare_create=preparing.volume,
        stamp_update=preparing.volume_phase,
        validate=persistent_volumes.volume,
        warn=pod_warnings.volume,
    ),
    ("", "PodTemplate"): Entry(
        metadata_retold="once",
        generation=("template",),
        delete_answers_object=True,
        validate=pods.pod_template_kind,
        warn=pod_warnings.template("template"),
    ),
    ("", "ResourceQuota"): Entry(metadata_retold="once", delete_answers_object=True, validate=quotas.resource_quota),
    ("", "LimitRange"): Entry(metadata_retold="as new", create_on_update=True, validate=quotas.limit_range),
    ("", "Event"): Entry(metadata_retold="never", create_on_update=True, validate=event_rules.event),
    ("", "Endpoints"): Entry(create_on_update=True, validate=endpoints.endpoints, deprecation=endpoints.DEPRECATED),
    ("", "Node"): Entry(keeps_status=True, prepare_create=preparing.node, validate=nodes.node),
    ("certificates.k8s.io", "CertificateSigningRequest"): Entry(
        resets=_SPEC,
        prepare_for=preparing.asked_for_certificate,
        prepare_update=preparing.certificate_request_update,
        validate=certificates.request,
    ),
    ("", "ReplicationController"): Entry(
        metadata_retold="once",
        generation=_SPEC,
        validate=workloads.replication_controller,
        validate_status=statuses.replication_controller,
        warn=workloads.replication_controller_warnings,
    ),
    ("events.k8s.io", "Event"): Entry(metadata_retold="once", create_on_update=True, validate=event_rules.strict_event),
    ("apps", "Deployment"): Entry(
        metadata_retold="once",
        generation=("spec", "metadata.annotations"),
        status_keeps=("labels",),
        validate=workloads.deployment,
        validate_status=statuses.deployment,
        warn=_TEMPLATE,
    ),
    ("apps", "ControllerRevision"): Entry(validate=workloads.controller_revision),
    ("apps", "ReplicaSet"): Entry(
        metadata_retold="once",
        generation=_SPEC,
        validate=workloads.replica_set,
        validate_status=statuses.replica_set,
        warn=_TEMPLATE,
    ),
    ("apps", "StatefulSet"): Entry(
        metadata_retold="once",
        generation=_SPEC,
        prepare_create=preparing.stateful_set,
        prepare_update=preparing.stateful_set,
        validate=workloads.stateful_set,
        validate_status=statuses.stateful_set,
        warn=workloads.stateful_set_warnings,
    ),
    ("apps", "DaemonSet"): Entry(
        metadata_retold="once",
        generation=_SPEC,
        prepare_create=preparing.daemon_set,
        prepare_update=preparing.daemon_set_update,
        validate=workloads.daemon_set,
        validate_status=statuses.daemon_set,
        warn=_TEMPLATE,
    ),
    ("batch", "Job"): Entry(
        generation=_SPEC,
        bytes_differ=preparing.labels_job_anew,
        prepare_create=preparing.job,
        validate=batch.job,
        validate_status=job_statuses.job,
        warn=_TEMPLATE,
    ),
    ("batch", "CronJob"): Entry(
        metadata_retold="once",
        status_metadata_retold="never",
        generation=_SPEC,
        validate=batch.cron_job,
        warn=pod_warnings.template("spec", "jobTemplate", "spec", "template"),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Entry(
        metadata_retold="once", validate=autoscaling_rules.autoscaler, validate_status=statuses.autoscaler
    ),
    ("rbac.authorization.k8s.io", "Role"): Entry(create_on_update=True, validate=rbac.role),
    ("rbac.authorization.k8s.io", "ClusterRole"): Entry(create_on_update=True, validate=rbac.cluster_role),
    ("rbac.authorization.k8s.io", "RoleBinding"): Entry(create_on_update=True, validate=rbac.role_binding),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): Entry(
        create_on_update=True, validate=rbac.cluster_role_binding
    ),
    ("coordination.k8s.io", "Lease"): Entry(
        metadata_retold="loosely",
        unconditional_update=False,
        create_on_update=True,
        prepare_create=preparing.lease,
        prepare_update=preparing.lease,
        validate=leases.lease,
    ),
    ("discovery.k8s.io", "EndpointSlice"): Entry(
        metadata_retold="as new",
        generation=("addressType", "endpoints", "ports", "metadata.labels"),
        validate=endpoints.endpoint_slice,
        prepare_create=preparing.endpoint_slice,
        warn=endpoints.slice_warnings,
    ),
    ("networking.k8s.io", "Ingress"): Entry(
        generation=_SPEC,
        validate=networking.ingress,
        validate_status=statuses.ingress,
        warn=networking.ingress_warnings,
    ),
    ("networking.k8s.io", "NetworkPolicy"): Entry(
        metadata_retold="once", generation=_SPEC, counts_empty=True, validate=networking.network_policy
    ),
    ("networking.k8s.io", "IngressClass"): Entry(generation=_SPEC, validate=classes.ingress_class),
    ("policy", "PodDisruptionBudget"): Entry(
        metadata_retold="never",
        status_metadata_retold="never",
        generation=_SPEC,
        unconditional_update=False,
        validate=workloads.disruption_budget,
        validate_status=statuses.disruption_budget,
    ),
    ("scheduling.k8s.io", "PriorityClass"): Entry(
        metadata_retold="once", generation=("value",), validate=classes.priority_class
    ),
    ("storage.k8s.io", "StorageClass"): Entry(delete_answers_object=True, validate=storage.storage_class),
    ("storage.k8s.io", "CSIDriver"): Entry(
        metadata_retold="once",
        unconditional_update=False,
        delete_answers_object=True,
        prepare_update=preparing.driver_update,
        validate=storage.driver,
    ),
    ("storage.k8s.io", "CSINode"): Entry(unconditional_update=False, delete_answers_object=True),
    ("storage.k8s.io", "CSIStorageCapacity"): Entry(unconditional_update=False),
    ("storage.k8s.io", "VolumeAttachment"): Entry(unconditional_update=False, delete_answers_object=True),
    ("storage.k8s.io", "VolumeAttributesClass"): Entry(
        delete_answers_object=True, prepare_create=preparing.attributes_class
    ),
    ("node.k8s.io", "RuntimeClass"): Entry(
        unconditional_update=False, create_on_update=True, validate=classes.runtime_class
    ),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _POLICY,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _POLICY,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _POLICY,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _POLICY,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _GENERATED,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _GENERATED,
    ("resource.k8s.io", "DeviceClass"): Entry(generation=_SPEC, delete_answers_object=True),
    ("resource.k8s.io", "ResourceClaim"): _ANSWERED,
    ("resource.k8s.io", "ResourceClaimTemplate"): _ANSWERED,
    ("resource.k8s.io", "ResourceSlice"): Entry(generation=_SPEC, delete_answers_object=True),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Entry(
        generation=_SPEC,
        minds_empty=True,
        unconditional_update=False,
        prepare_create=preparing.definition,
        prepare_update=preparing.stored_versions,
        validate=definitions.definition,
        validate_status=definitions.status,
        warn=definitions.warnings,
    ),
}

_CONVERSIONS = {
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): autoscaling.to_v1,
    ("autoscaling", "v2", "HorizontalPodAutoscaler"): autoscaling.to_v2,
    ("", "v1", "Event"): events.to_core,
    ("events.k8s.io", "v1", "Event"): events.to_events,
}


@cache
def resources() -> tuple[Resource, ...]:
    """Every built-in kind that the server stores or answers, the preferred version of each first."""
    table = builtin.table()
    made: list[Resource] = []
    for served in ({"name": "", "versions": ["v1"]}, *table["groups"]):
        for version in served["versions"]:
            group = served["name"]
            listed = table["kinds"].get(f"{group}/{version}" if group else version, [])
            below = {fact["name"] for fact in listed}
            kinds = [fact for fact in listed if "/" not in fact["name"] and _served(group, set(fact["verbs"]))]
            made += [_resource(group, version, fact, below) for fact in kinds]
    return tuple(_versioned(made))


def _served(group: str, verbs: set[str]) -> bool:
    """What is stored, and the reviews, which are only ever created."""
    return {"list", "create"} <= verbs or (group in _REVIEWING and verbs == {"create"})


def _versioned(made: list[Resource]) -> Iterator[Resource]:
    """Each kind's other versions bound to the first one, where its objects are kept."""
    first: dict[tuple[str, str], Resource] = {}
    for resource in made:
        group = "" if resource.kind == "Event" else resource.group  # the core group keeps those of events.k8s.io
        kept = first.setdefault((group, resource.kind), resource)
        yield resource if kept is resource else replace(resource, storage=kept)


def _resource(group: str, version: str, fact: dict[str, Any], below: set[str]) -> Resource:
    kind, plural = fact["kind"], fact["name"]
    entry = ENTRIES.get((group, kind), _COMMON)
    schema = builtin.schema_of_kind(group, version, kind)
    status = f"{plural}/status" in below
    return Resource(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=fact["singularName"],
        namespaced=fact["namespaced"],
        schema=schema,
        list_kind=f"{kind}List",
        short_names=tuple(fact.get("shortNames", ())),
        categories=tuple(fact.get("categories", ())),
        status=status,
        status_keeps=entry.status_keeps,
        scale=_REPLICAS if f"{plural}/scale" in below else None,
        has_generation=bool(entry.generation),
        generation_of=entry.generation or _SPEC,
        counts_empty=entry.counts_empty,
        minds_empty=entry.minds_empty,
        unconditional_update=entry.unconditional_update,
        metadata_retold=entry.metadata_retold,
        status_metadata_retold=entry.status_metadata_retold,
        bytes_differ=entry.bytes_differ,
        create_on_update=entry.create_on_update,
        delete_answers_object=entry.delete_answers_object,
        verbs=tuple(fact["verbs"]),
        storage_version_hash=fact.get("storageVersionHash", ""),
        convert=_CONVERSIONS.get((group, version, kind)),
        default=partial(defaults.default, schema),
        resets=entry.resets,
        prepare_for=entry.prepare_for,
        prepare_create=_created(entry, schema, status),
        prepare_update=entry.prepare_update,
        stamp_update=entry.stamp_update,
        validate=entry.validate,
        validate_status=entry.validate_status or entry.validate,
        warn=entry.warn,
        deprecation=entry.deprecation,
    )


def _created(entry: Entry, schema: Node, status: bool) -> Callable[[Object], None] | None:
    if not status or entry.keeps_status:
        return entry.prepare_create
    clear = preparing.cleared_status(schema)
    if entry.prepare_create is None:
        return clear

    def prepare(obj: Object) -> None:
        clear(obj)
        assert entry.prepare_create is not None
        entry.prepare_create(obj)

    return prepare
