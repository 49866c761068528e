"""The built-in kinds as Resources: names and verbs from the extracted table, flags and hooks from STRATEGIES."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final

from fairlead.server.authentication.users import User
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry import autoscaling, certificate_requests, defaults, events, prepare
from fairlead.server.registry.resource import MetadataRepetition, Object, Resource
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
    service_ranges,
    services,
    statuses,
    storage,
    webhooks,
    workloads,
)
from fairlead.server.registry.validation import events as event_rules
from fairlead.server.schema import builtin
from fairlead.server.schema.nodes import Node

_REVIEW_GROUPS: Final = ("authentication.k8s.io", "authorization.k8s.io")
_REPLICAS: Final = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


@dataclass(frozen=True, slots=True)
class Strategy:
    """The flags and hooks of a built-in kind, like a real server's strategy. Most kinds use the default values."""

    generation: tuple[str, ...] = ()  # the fields that change the generation; empty: the kind has no generation
    generation_counts_empty: bool = False  # a new empty list or map changes the generation too
    validates_empty: bool = False  # validation distinguishes an empty list or map from an absent one
    allows_unconditional_update: bool = True
    metadata_repetition: MetadataRepetition = "twice"
    status_metadata_repetition: MetadataRepetition = "once"
    bytes_differ: Callable[[Object], bool] | None = None  # of a new object: its first update is always stored
    creates_on_update: bool = False
    delete_returns_object: bool = False
    keeps_status_on_create: bool = False
    status_immutable_metadata: tuple[str, ...] = ()  # the metadata fields that /status cannot change
    reset_fields: tuple[str, ...] = ()  # the fields that an update never changes: no field manager owns them
    prepare_for_user: Callable[[Object, User], None] | None = None  # sets who created the object
    prepare_create: Callable[[Object], None] | None = None
    prepare_update: Callable[[Object, Object], None] | None = None
    set_update_time: Callable[[Object, Object, str], None] | None = None
    validate: Callable[[Object, Object | None], list[FieldError]] | None = None
    validate_status: Callable[[Object, Object | None], list[FieldError]] | None = None
    warn: Callable[[Object, Object | None], list[str]] | None = None
    deprecation: str = ""  # the warning of every response


_SPEC: Final = ("spec",)
_WEBHOOKS: Final = Strategy(
    generation=("webhooks",),
    generation_counts_empty=True,
    allows_unconditional_update=False,
    validate=webhooks.configuration,
)
_POLICY: Final = Strategy(generation=_SPEC, allows_unconditional_update=False)
_WITH_GENERATION: Final = Strategy(generation=_SPEC)
_RETURNED_ON_DELETE: Final = Strategy(delete_returns_object=True)
_DEFAULT_STRATEGY: Final = Strategy()

_TEMPLATE: Final = pod_warnings.build_template_warner("spec", "template")

STRATEGIES: Final[dict[tuple[str, str], Strategy]] = {
    ("", "ConfigMap"): Strategy(validate=config.config_map),
    ("", "Secret"): Strategy(validate=config.secret),
    ("", "Namespace"): Strategy(
        delete_returns_object=True, prepare_create=prepare.prepare_namespace, validate=namespaces.namespace
    ),
    ("", "Pod"): Strategy(
        generation=_SPEC,
        status_immutable_metadata=("ownerReferences", "deletionTimestamp"),
        delete_returns_object=True,
        prepare_create=prepare.prepare_pod,
        prepare_update=prepare.prepare_pod_update,
        validate=pods.validate_pod,
        validate_status=statuses.pod,
        warn=pod_warnings.find_pod_warnings,
    ),
    ("", "Service"): Strategy(
        metadata_repetition="once",
        creates_on_update=True,
        delete_returns_object=True,
        prepare_create=prepare.prepare_service,
        prepare_update=prepare.prepare_service_update,
        validate=services.validate_service,
        validate_status=statuses.service,
        warn=services.find_service_warnings,
    ),
    ("", "ServiceAccount"): Strategy(
        delete_returns_object=True,
        prepare_create=prepare.drop_secret_details,
        prepare_update=prepare.drop_secret_details,
    ),
    ("", "PersistentVolumeClaim"): Strategy(
        bytes_differ=lambda claim: True,
        delete_returns_object=True,
        prepare_create=prepare.prepare_claim,
        prepare_update=prepare.prepare_claim_update,
        validate=storage.claim,
        warn=pod_warnings.find_claim_warnings,
    ),
    ("", "PersistentVolume"): Strategy(
        metadata_repetition="as new twice",
        delete_returns_object=True,
        prepare_create=prepare.prepare_volume,
        set_update_time=prepare.set_volume_phase_time,
        validate=persistent_volumes.volume,
        warn=pod_warnings.find_volume_warnings,
    ),
    ("", "PodTemplate"): Strategy(
        metadata_repetition="once",
        generation=("template",),
        delete_returns_object=True,
        validate=pods.pod_template_kind,
        warn=pod_warnings.build_template_warner("template"),
    ),
    ("", "ResourceQuota"): Strategy(
        metadata_repetition="once", delete_returns_object=True, validate=quotas.resource_quota
    ),
    ("", "LimitRange"): Strategy(metadata_repetition="as new", creates_on_update=True, validate=quotas.limit_range),
    ("", "Event"): Strategy(metadata_repetition="never", creates_on_update=True, validate=event_rules.event),
    ("", "Endpoints"): Strategy(creates_on_update=True, validate=endpoints.endpoints, deprecation=endpoints.DEPRECATED),
    ("", "Node"): Strategy(keeps_status_on_create=True, prepare_create=prepare.prepare_node, validate=nodes.node),
    ("certificates.k8s.io", "CertificateSigningRequest"): Strategy(
        reset_fields=_SPEC,
        prepare_for_user=prepare.set_certificate_requester,
        prepare_update=prepare.keep_certificate_request,
        set_update_time=certificate_requests.set_condition_times,
        validate=certificates.request,
        validate_status=certificates.request_status,
    ),
    ("", "ReplicationController"): Strategy(
        metadata_repetition="once",
        generation=_SPEC,
        validate=workloads.replication_controller,
        validate_status=statuses.replication_controller,
        warn=workloads.find_replication_controller_warnings,
    ),
    ("events.k8s.io", "Event"): Strategy(
        metadata_repetition="once", creates_on_update=True, validate=event_rules.validate_strict_event
    ),
    ("apps", "Deployment"): Strategy(
        metadata_repetition="once",
        generation=("spec", "metadata.annotations"),
        status_immutable_metadata=("labels",),
        validate=workloads.deployment,
        validate_status=statuses.deployment,
        warn=_TEMPLATE,
    ),
    ("apps", "ControllerRevision"): Strategy(validate=workloads.controller_revision),
    ("apps", "ReplicaSet"): Strategy(
        metadata_repetition="once",
        generation=_SPEC,
        validate=workloads.replica_set,
        validate_status=statuses.replica_set,
        warn=_TEMPLATE,
    ),
    ("apps", "StatefulSet"): Strategy(
        metadata_repetition="once",
        generation=_SPEC,
        prepare_create=prepare.drop_max_unavailable,
        prepare_update=prepare.drop_max_unavailable,
        validate=workloads.stateful_set,
        validate_status=statuses.stateful_set,
        warn=workloads.find_stateful_set_warnings,
    ),
    ("apps", "DaemonSet"): Strategy(
        metadata_repetition="once",
        generation=_SPEC,
        prepare_create=prepare.prepare_daemon_set,
        prepare_update=prepare.prepare_daemon_set_update,
        validate=workloads.daemon_set,
        validate_status=statuses.daemon_set,
        warn=_TEMPLATE,
    ),
    ("batch", "Job"): Strategy(
        generation=_SPEC,
        bytes_differ=prepare.job_gets_labels_on_read,
        prepare_create=prepare.prepare_job,
        validate=batch.job,
        validate_status=job_statuses.validate_job,
        warn=_TEMPLATE,
    ),
    ("batch", "CronJob"): Strategy(
        metadata_repetition="once",
        status_metadata_repetition="never",
        generation=_SPEC,
        validate=batch.cron_job,
        warn=pod_warnings.build_template_warner("spec", "jobTemplate", "spec", "template"),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Strategy(
        metadata_repetition="once", validate=autoscaling_rules.autoscaler, validate_status=statuses.autoscaler
    ),
    ("rbac.authorization.k8s.io", "Role"): Strategy(creates_on_update=True, validate=rbac.role),
    ("rbac.authorization.k8s.io", "ClusterRole"): Strategy(creates_on_update=True, validate=rbac.cluster_role),
    ("rbac.authorization.k8s.io", "RoleBinding"): Strategy(creates_on_update=True, validate=rbac.role_binding),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): Strategy(
        creates_on_update=True, validate=rbac.cluster_role_binding
    ),
    ("coordination.k8s.io", "Lease"): Strategy(
        metadata_repetition="loosely",
        allows_unconditional_update=False,
        creates_on_update=True,
        prepare_create=prepare.drop_leader_election_fields,
        prepare_update=prepare.drop_leader_election_fields,
        validate=leases.lease,
    ),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(
        metadata_repetition="as new",
        generation=("addressType", "endpoints", "ports", "metadata.labels"),
        validate=endpoints.validate_endpoint_slice,
        prepare_create=prepare.drop_deprecated_topology,
        warn=endpoints.find_slice_warnings,
    ),
    ("networking.k8s.io", "Ingress"): Strategy(
        generation=_SPEC,
        validate=networking.ingress,
        validate_status=statuses.ingress,
        warn=networking.find_ingress_warnings,
    ),
    ("networking.k8s.io", "NetworkPolicy"): Strategy(
        metadata_repetition="once", generation=_SPEC, generation_counts_empty=True, validate=networking.network_policy
    ),
    ("networking.k8s.io", "IPAddress"): Strategy(validate=service_ranges.address),
    ("networking.k8s.io", "ServiceCIDR"): Strategy(validate=service_ranges.service_range),
    ("networking.k8s.io", "IngressClass"): Strategy(generation=_SPEC, validate=classes.ingress_class),
    ("policy", "PodDisruptionBudget"): Strategy(
        metadata_repetition="never",
        status_metadata_repetition="never",
        generation=_SPEC,
        allows_unconditional_update=False,
        validate=workloads.disruption_budget,
        validate_status=statuses.disruption_budget,
    ),
    ("scheduling.k8s.io", "PriorityClass"): Strategy(
        metadata_repetition="once", generation=("value",), validate=classes.priority_class
    ),
    ("storage.k8s.io", "StorageClass"): Strategy(delete_returns_object=True, validate=storage.storage_class),
    ("storage.k8s.io", "CSIDriver"): Strategy(
        metadata_repetition="once",
        allows_unconditional_update=False,
        delete_returns_object=True,
        prepare_update=prepare.update_driver_generation,
        validate=storage.driver,
    ),
    ("storage.k8s.io", "CSINode"): Strategy(allows_unconditional_update=False, delete_returns_object=True),
    ("storage.k8s.io", "CSIStorageCapacity"): Strategy(allows_unconditional_update=False),
    ("storage.k8s.io", "VolumeAttachment"): Strategy(allows_unconditional_update=False, delete_returns_object=True),
    ("storage.k8s.io", "VolumeAttributesClass"): Strategy(
        delete_returns_object=True, prepare_create=prepare.protect_attributes_class
    ),
    ("node.k8s.io", "RuntimeClass"): Strategy(
        allows_unconditional_update=False, creates_on_update=True, validate=classes.runtime_class
    ),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _POLICY,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _POLICY,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _POLICY,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _POLICY,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _WITH_GENERATION,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _WITH_GENERATION,
    ("resource.k8s.io", "DeviceClass"): Strategy(generation=_SPEC, delete_returns_object=True),
    ("resource.k8s.io", "ResourceClaim"): _RETURNED_ON_DELETE,
    ("resource.k8s.io", "ResourceClaimTemplate"): _RETURNED_ON_DELETE,
    ("resource.k8s.io", "ResourceSlice"): Strategy(generation=_SPEC, delete_returns_object=True),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Strategy(
        generation=_SPEC,
        validates_empty=True,
        allows_unconditional_update=False,
        prepare_create=prepare.prepare_definition,
        prepare_update=prepare.prepare_definition_update,
        validate=definitions.validate_definition,
        validate_status=definitions.validate_status,
        warn=definitions.find_warnings,
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
    """Return the Resources of all built-in kinds that the server serves.

    The preferred version of a kind comes first.
    """
    table = builtin.table()
    result: list[Resource] = []
    for group in ({"name": "", "versions": ["v1"]}, *table["groups"]):
        name = group["name"]
        for version in group["versions"]:
            facts = table["kinds"].get(f"{name}/{version}" if name else version, [])
            paths = {fact["name"] for fact in facts}
            kinds = [fact for fact in facts if "/" not in fact["name"] and _is_served(name, set(fact["verbs"]))]
            result += [_build_resource(name, version, fact, paths) for fact in kinds]
    return tuple(_set_storage_versions(result))


def _is_served(group: str, verbs: set[str]) -> bool:
    """Return whether the server serves a kind with these verbs: one that can be listed and created, or a review."""
    return {"list", "create"} <= verbs or (group in _REVIEW_GROUPS and verbs == {"create"})


def _set_storage_versions(resources: list[Resource]) -> Iterator[Resource]:
    """Yield the resources with `storage` set: the first version of a kind is the storage version of the others."""
    first: dict[tuple[str, str], Resource] = {}
    for resource in resources:
        group = "" if resource.kind == "Event" else resource.group  # Events of both groups are stored in the core group
        storage = first.setdefault((group, resource.kind), resource)
        yield resource if storage is resource else replace(resource, storage=storage)


def _build_resource(group: str, version: str, fact: dict[str, Any], paths: set[str]) -> Resource:
    kind, plural = fact["kind"], fact["name"]
    strategy = STRATEGIES.get((group, kind), _DEFAULT_STRATEGY)
    schema = builtin.schema_of_kind(group, version, kind)
    has_status = f"{plural}/status" in paths
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
        has_status=has_status,
        status_immutable_metadata=strategy.status_immutable_metadata,
        scale=_REPLICAS if f"{plural}/scale" in paths else None,
        has_generation=bool(strategy.generation),
        generation_fields=strategy.generation or _SPEC,
        generation_counts_empty=strategy.generation_counts_empty,
        validates_empty=strategy.validates_empty,
        allows_unconditional_update=strategy.allows_unconditional_update,
        metadata_repetition=strategy.metadata_repetition,
        status_metadata_repetition=strategy.status_metadata_repetition,
        bytes_differ=strategy.bytes_differ,
        creates_on_update=strategy.creates_on_update,
        delete_returns_object=strategy.delete_returns_object,
        verbs=tuple(fact["verbs"]),
        storage_version_hash=fact.get("storageVersionHash", ""),
        convert=_CONVERSIONS.get((group, version, kind)),
        default=partial(defaults.apply_defaults, schema),
        reset_fields=strategy.reset_fields,
        prepare_for_user=strategy.prepare_for_user,
        prepare_create=_prepare_create(strategy, schema, has_status=has_status),
        prepare_update=strategy.prepare_update,
        set_update_time=strategy.set_update_time,
        validate=strategy.validate,
        validate_status=strategy.validate_status or strategy.validate,
        warn=strategy.warn,
        deprecation=strategy.deprecation,
    )


def _prepare_create(strategy: Strategy, schema: Node, *, has_status: bool) -> Callable[[Object], None] | None:
    """Return the hook that prepares a new object of a kind. It clears the status first if the kind has /status."""
    if not has_status or strategy.keeps_status_on_create:
        return strategy.prepare_create
    clear_status = prepare.build_status_clearer(schema)
    if strategy.prepare_create is None:
        return clear_status

    def prepare_create(obj: Object) -> None:
        clear_status(obj)
        assert strategy.prepare_create is not None
        strategy.prepare_create(obj)

    return prepare_create
