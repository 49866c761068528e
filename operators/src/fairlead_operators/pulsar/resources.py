"""The table RESOURCES: how to create, change and delete the Pulsar resource of each of the ten kinds."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import fairlead as fl
from fairlead_operators.pulsar.admin import Admin, Part, PulsarError, join_path
from fairlead_operators.pulsar.kinds import (
    GROUP,
    GeoReplication,
    Namespace,
    NSIsolationPolicy,
    Package,
    Permission,
    Tenant,
    Topic,
)

Spec = Mapping[str, Any]
Settings = dict[str, Any]
"""The settings of a resource: the path below the resource, and the body. Each one can be set and deleted."""


class Invalid(ValueError):
    """The spec of an object is invalid. The message names the field and the fix."""


@dataclass(frozen=True)
class ResolvedSpec:
    """The spec of an object, with values from the objects that it refers to."""

    spec: Spec
    local_cluster: str = ""
    """The name of this Pulsar cluster, or "" if it is not known."""
    remote_clusters: tuple[str, ...] = ()
    """The names of the clusters in geoReplicationRefs."""
    destination: Spec = field(default_factory=dict)
    """The spec of the PulsarConnection in destinationConnectionRef."""
    fetch: Callable[[str], Awaitable[bytes]] | None = None

    @property
    def cluster(self) -> str:
        if not self.local_cluster:
            raise Invalid("Pulsar has several clusters: set spec.clusterName of the PulsarConnection")
        return self.local_cluster

    @property
    def replication_clusters(self) -> list[str]:
        return sorted({self.cluster, *self.remote_clusters, *(self.spec.get("replicationClusters") or ())})


@dataclass(frozen=True)
class Resource:
    """How to create, change and delete the Pulsar resource of one kind. Most kinds set only two of the fields."""

    kind: fl.Kind
    path: Callable[[ResolvedSpec], str]
    """Returns the path in the admin API. Raises Invalid."""
    create_or_update: Callable[[Admin, str, ResolvedSpec], Awaitable[None]] | None
    """Creates or updates it in Pulsar. None for a kind that consists of settings only."""
    required_paths: Callable[[Spec], Iterable[str]] = lambda spec: ()
    """Returns the paths of the resources that must exist first."""
    settings: Callable[[ResolvedSpec], Settings] = lambda resolved: {}
    can_move: bool = False
    """Whether it may be deleted and created at another path. False for kinds that hold data."""
    missing_status: int = 404
    """The status code, besides 404, of a DELETE if it does not exist."""
    probe_suffix: str = ""
    """The suffix of the path where a GET shows whether it exists."""

    def digest(self, server: str, resolved: ResolvedSpec) -> str:
        """Return a hash of everything that is sent to Pulsar. It changes if the resource has to be sent again."""
        values = [
            server,
            self.path(resolved),
            dict(resolved.spec),
            resolved.remote_clusters,
            dict(resolved.destination),
        ]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

    async def apply(self, admin: Admin, resolved: ResolvedSpec, dropped: Iterable[str]) -> None:
        """Create or update the resource and its settings in Pulsar. Delete the `dropped` settings first."""
        path = self.path(resolved)
        if self.create_or_update is not None:
            await self.create_or_update(admin, path, resolved)
        for name in dropped:
            await self._unset(admin, path, name, resolved)
        for name, body in self.settings(resolved).items():
            await admin.post(f"{path}/{name}", body)

    async def remove(self, admin: Admin, path: str, settings: Iterable[str]) -> None:
        """Delete the resource, or its settings, from Pulsar. A missing resource is not an error."""
        if self.create_or_update is None:
            for name in settings:
                await self._unset(admin, path, name)
        elif self.kind is Topic and ((await admin.get(f"{path}/partitions")) or {}).get("partitions"):
            await admin.delete(f"{path}/partitions")
        else:
            await admin.delete(path, missing_status=self.missing_status, probe_path=path + self.probe_suffix)

    async def _unset(self, admin: Admin, path: str, name: str, resolved: ResolvedSpec | None = None) -> None:
        if resolved is not None and self.kind is Namespace and name == "replication":  # Pulsar has no DELETE for it
            await admin.post(f"{path}/{name}", [resolved.cluster])
        else:
            await admin.delete(f"{path}/{name}", missing_status=412)  # "not set at the topic level"


# Paths


def tenant_path(name: str) -> str:
    return join_path("/v2/tenants", *_split_name(name, 1, "acme"))


def namespace_path(name: str) -> str:
    return join_path("/v2/namespaces", *_split_name(name, 2, "acme/orders"))


def topic_path(name: str, *, is_persistent: bool = True) -> str:
    scheme, _, path_in_scheme = name.rpartition("://")
    domain = scheme or ("persistent" if is_persistent else "non-persistent")
    if domain not in ("persistent", "non-persistent"):
        raise Invalid(f"{name!r} is not a topic: it must start with persistent://, non-persistent:// or the tenant")
    return join_path(f"/v2/{domain}", *_split_name(path_in_scheme, 3, "acme/orders/placed"))


def package_path(url: str) -> str:
    match = re.fullmatch(r"(function|sink|source)://([^/@]+)/([^/@]+)/([^/@]+)@([^/@]+)", url)
    if not match:
        raise Invalid(
            f"{url!r} is not a package URL: write type://tenant/namespace/name@version, with function, sink or source"
        )
    return join_path("/v3/packages", *match.groups())


def _split_name(name: str, count: int, example: str) -> list[str]:
    parts = name.split("/")
    if len(parts) != count or not all(parts) or any(part in (".", "..") for part in parts):
        raise Invalid(f"{name!r} must have {count} part{'s' * (count > 1)} separated by slashes, such as {example}")
    return parts


def _permission_path(spec: Spec) -> str:
    return (namespace_path if spec["resourceType"] == "namespace" else topic_path)(spec["resourceName"])


def _namespace_of(path: str) -> str:
    """Return the admin path of the namespace that a topic or package belongs to."""
    parts = path.split("/")
    return "/".join(["/v2/namespaces", *(parts[4:6] if parts[2] == "packages" else parts[3:5])])


# Create or update


def _upsert(body: Callable[[ResolvedSpec], Any]) -> Callable[[Admin, str, ResolvedSpec], Awaitable[None]]:
    async def create_or_update(admin: Admin, path: str, resolved: ResolvedSpec) -> None:
        if not await admin.put(path, body(resolved)):
            await admin.post(path, body(resolved))

    return create_or_update


def _tenant(resolved: ResolvedSpec) -> Any:
    allowed = {*(resolved.spec.get("allowedClusters") or [resolved.cluster]), *resolved.remote_clusters}
    return {"adminRoles": resolved.spec.get("adminRoles") or [], "allowedClusters": sorted(allowed)}


def _cluster_path(resolved: ResolvedSpec) -> str:
    if not resolved.destination.get("clusterName"):
        raise Invalid("the PulsarConnection of the destination has no clusterName: set it")
    if resolved.destination["clusterName"] == resolved.local_cluster:  # its deletion would delete this cluster
        raise Invalid(f"{resolved.local_cluster} is this cluster itself: set destinationConnectionRef to another one")
    return join_path("/v2/clusters", resolved.destination["clusterName"])


def _cluster(resolved: ResolvedSpec) -> Any:
    names = {
        "serviceUrl": "adminServiceURL",
        "serviceUrlTls": "adminServiceSecureURL",
        "brokerServiceUrl": "brokerServiceURL",
        "brokerServiceUrlTls": "brokerServiceSecureURL",
    }
    return {name: resolved.destination[key] for name, key in names.items() if resolved.destination.get(key)}


async def _namespace(admin: Admin, path: str, resolved: ResolvedSpec) -> None:
    bundles = resolved.spec.get("bundles")
    await admin.put(path, {"bundles": {"numBundles": bundles}} if bundles else {})


async def _topic(admin: Admin, path: str, resolved: ResolvedSpec) -> None:
    partitions = resolved.spec.get("partitions") or 0
    if not partitions:
        await admin.put(path)
    elif not await admin.put(f"{path}/partitions", partitions):
        current = (await admin.get(f"{path}/partitions") or {}).get("partitions")
        if current != partitions:
            await admin.post(f"{path}/partitions", partitions)


async def _isolation(admin: Admin, path: str, resolved: ResolvedSpec) -> None:
    spec = resolved.spec
    failover = {"policy_type": spec["autoFailoverPolicyType"], "parameters": spec["autoFailoverPolicyParams"]}
    brokers = {"primary": spec["primary"], "secondary": spec.get("secondary") or []}
    await admin.post(path, {"namespaces": spec["namespaces"], **brokers, "auto_failover_policy": failover})


async def _package(admin: Admin, path: str, resolved: ResolvedSpec) -> None:
    """Upload a package unless Pulsar has it already. The content of a package version never changes."""
    spec, file_url = resolved.spec, resolved.spec["fileURL"]
    if not file_url.startswith(("http://", "https://")):
        raise Invalid(f"fileURL is {file_url!r}: local files of the operator cannot be uploaded, use http(s)")
    metadata = {
        "description": spec.get("description") or "",
        "contact": spec.get("contact") or "",
        "properties": {**(spec.get("properties") or {}), "fileURL": file_url},
    }
    existing = await admin.get(f"{path}/metadata")
    if existing is not None:
        uploaded = (existing.get("properties") or {}).get("fileURL", file_url)
        if uploaded != file_url:
            raise Invalid(f"this version was uploaded from {uploaded}: set a new version in packageURL for new content")
        await admin.call("PUT", f"{path}/metadata", metadata)
        return
    assert resolved.fetch is not None
    content = await resolved.fetch(file_url)
    metadata_part = Part("metadata", "application/json", json.dumps(metadata).encode())
    await admin.form("POST", path, [metadata_part, Part("file", "application/octet-stream", content)])


_CODE = ("jar", "py", "go", "archive")
_NOT_CONFIG = {"connectionRef", "lifecyclePolicy", *_CODE}


def _code(spec: Spec) -> tuple[str, str]:
    for name in _CODE:
        if url := (spec.get(name) or {}).get("url"):
            return name, url
    raise Invalid("it has no code: set the url of jar, py or go (for a function) or archive (for a sink or source)")


def _component(component: str) -> "Resource":
    """Return the Resource for a kind of component: function, sink or source."""

    async def create_or_update(admin: Admin, path: str, resolved: ResolvedSpec) -> None:
        name, url = _code(resolved.spec)
        config = {key: value for key, value in resolved.spec.items() if key not in _NOT_CONFIG}
        encoded = json.dumps({**config, name: url}).encode()
        form_parts = [Part(f"{component}Config", "application/json", encoded)]
        if not url.startswith("builtin://"):  # a built-in URL is a part of the config only
            form_parts.append(Part("url", "text/plain", url.encode()))
        method = "POST" if await admin.get(path) is None else "PUT"
        try:
            await admin.form(method, path, form_parts)
        except PulsarError as error:
            # Pulsar rejects an update without changes with this message.
            if "Update contains no change" not in str(error):
                raise

    def required_paths(spec: Spec) -> Iterable[str]:
        yield namespace_path(f"{spec['tenant']}/{spec['namespace']}")
        if (url := _code(spec)[1]).startswith(("function://", "sink://", "source://")):
            yield package_path(url)
        for topic in (*(spec.get("inputs") or ()), spec.get("output"), spec.get("topicName")):
            if topic:
                yield topic_path(topic)

    def path(resolved: ResolvedSpec) -> str:
        return join_path(
            f"/v3/{component}s", *(resolved.spec[field_name] for field_name in ("tenant", "namespace", "name"))
        )

    return Resource(fl.kind(GROUP, f"Pulsar{component.capitalize()}"), path, create_or_update, required_paths)


# Settings


def _policies(resolved: ResolvedSpec) -> Settings:
    """Return the settings of a spec that namespaces and topics have in common, by path."""
    spec = resolved.spec
    settings: Settings = {}
    if "retentionTime" in spec or "retentionSize" in spec:
        minutes, megabytes = (
            parse_duration(spec.get("retentionTime", "-1")),
            parse_size(spec.get("retentionSize", "-1")),
        )
        settings["retention"] = {
            "retentionTimeInMinutes": minutes if minutes < 0 else minutes // 60,
            "retentionSizeInMB": megabytes if megabytes < 0 else megabytes // 2**20,
        }
    if "backlogQuotaRetentionPolicy" in spec:
        kind = spec.get("backlogQuotaType", "destination_storage")
        settings[f"backlogQuota?backlogQuotaType={kind}"] = {
            "limitSize": parse_size(spec.get("backlogQuotaLimitSize", "-1")),
            "limitTime": parse_duration(spec.get("backlogQuotaLimitTime", "-1")),
            "policy": spec["backlogQuotaRetentionPolicy"],
        }
    if resolved.remote_clusters or spec.get("replicationClusters"):
        settings["replication"] = resolved.replication_clusters
    return settings


def _namespace_settings(resolved: ResolvedSpec) -> Settings:
    spec, settings = resolved.spec, _policies(resolved)
    if "messageTTL" in spec:
        settings["messageTTL"] = parse_duration(spec["messageTTL"])
    for name in ("deduplication", "maxProducersPerTopic", "maxConsumersPerTopic", "maxConsumersPerSubscription"):
        if name in spec:
            settings[name] = spec[name]
    if creation := spec.get("topicAutoCreationConfig"):
        names = {"allowAutoTopicCreation": "allow", "topicType": "type", "defaultNumPartitions": "partitions"}
        settings["autoTopicCreation"] = {name: creation[key] for name, key in names.items() if key in creation}
    return settings


def _topic_settings(resolved: ResolvedSpec) -> Settings:
    spec, settings = resolved.spec, _policies(resolved)
    if "messageTTL" in spec:
        settings[f"messageTTL?messageTTL={parse_duration(spec['messageTTL'])}"] = None
    names = {"maxProducers": "maxProducers", "maxConsumers": "maxConsumers", "deduplicationEnabled": "deduplication"}
    for name, key in {**names, "compactionThreshold": "compactionThreshold"}.items():
        if key in spec:
            settings[name] = spec[key]
    return settings


def _grants(resolved: ResolvedSpec) -> Settings:
    return {join_path("permissions", role): resolved.spec.get("actions") or [] for role in resolved.spec["roles"]}


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def parse_duration(text: str) -> int:
    """Parse a duration such as 90s, 1h30m or 3d to seconds. -1 means unlimited."""
    if text == "-1":
        return -1
    if not re.fullmatch(r"(\d+[smhdw])+", text):
        raise Invalid(f"{text!r} is not a duration: write 90s, 1h30m, 3d, or -1 for unlimited")
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+)([smhdw])", text))


def parse_size(value: str | int) -> int:
    """Parse a size such as 500Mi or 10Gi to bytes. -1 means unlimited."""
    match = re.fullmatch(r"(-1|\d+)([kMGT]i?|Ki)?", str(value))
    if not match or (match[2] or "") not in _BYTES:
        raise Invalid(f"{value!r} is not a size: write 500Mi, 10Gi, or -1 for unlimited")
    return int(match[1]) if match[1] == "-1" else int(match[1]) * _BYTES[match[2] or ""]


def _topic_of(resolved: ResolvedSpec) -> str:
    return topic_path(resolved.spec["name"], is_persistent=resolved.spec.get("persistent", True))


RESOURCES: tuple[Resource, ...] = (
    Resource(GeoReplication, _cluster_path, _upsert(_cluster), can_move=True),
    Resource(Tenant, lambda resolved: tenant_path(resolved.spec["name"]), _upsert(_tenant)),
    Resource(
        Namespace,
        lambda resolved: namespace_path(resolved.spec["name"]),
        _namespace,
        required_paths=lambda spec: [tenant_path(spec["name"].split("/")[0])],
        settings=_namespace_settings,
    ),
    Resource(
        Topic,
        _topic_of,
        _topic,
        required_paths=lambda spec: [_namespace_of(_topic_of(ResolvedSpec(spec)))],
        settings=_topic_settings,
        # If the namespace does not exist, Pulsar returns 500 for a DELETE and 405 for a GET of the topic.
        probe_suffix="/partitions",
    ),
    Resource(
        Permission,
        lambda resolved: _permission_path(resolved.spec),
        None,
        required_paths=lambda spec: [_permission_path(spec)],
        settings=_grants,
        can_move=True,
    ),
    Resource(
        Package,
        lambda resolved: package_path(resolved.spec["packageURL"]),
        _package,
        required_paths=lambda spec: [_namespace_of(package_path(spec["packageURL"]))],
        probe_suffix="/metadata",
    ),
    _component("function"),
    _component("sink"),
    _component("source"),
    Resource(
        NSIsolationPolicy,
        lambda resolved: join_path(
            join_path("/v2/clusters", resolved.spec["cluster"]), "namespaceIsolationPolicies", resolved.spec["name"]
        ),
        _isolation,
        can_move=True,
        missing_status=412,  # the cluster does not exist
    ),
)
"""In dependency order: each kind may depend on the kinds before it."""
