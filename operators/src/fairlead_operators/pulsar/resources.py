"""The table: what each of the ten kinds is in Pulsar. Pure reading of specs, and the few calls that differ."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import fairlead as fl
from fairlead_operators.pulsar.admin import Admin, Part, Refused, at

GROUP = "resource.streamnative.io/v1alpha1"
FINALIZER = "cloud.streamnative.io/finalizer"

Connection = fl.kind(GROUP, "PulsarConnection")
Tenant = fl.kind(GROUP, "PulsarTenant")
Namespace = fl.kind(GROUP, "PulsarNamespace")
Topic = fl.kind(GROUP, "PulsarTopic")
Permission = fl.kind(GROUP, "PulsarPermission")
GeoReplication = fl.kind(GROUP, "PulsarGeoReplication")
Package = fl.kind(GROUP, "PulsarPackage")
Function = fl.kind(GROUP, "PulsarFunction")
Sink = fl.kind(GROUP, "PulsarSink")
Source = fl.kind(GROUP, "PulsarSource")
NSIsolationPolicy = fl.kind(GROUP, "PulsarNSIsolationPolicy")

Spec = Mapping[str, Any]
Settings = dict[str, Any]
"""What is set on a resource: the path below it, and the body. Each can be set again, and deleted singly."""


class Invalid(ValueError):
    """The spec asks for something that cannot be; says what to change."""


@dataclass(frozen=True)
class Order:
    """What is to be in Pulsar: the spec, and what it refers to."""

    spec: Spec
    local: str = ""
    """This cluster's name, where it is known."""
    far: tuple[str, ...] = ()
    """Names of the clusters behind geoReplicationRefs."""
    destination: Spec = field(default_factory=dict)
    """The spec of the connection that destinationConnectionRef names."""
    fetch: Callable[[str], Awaitable[bytes]] | None = None

    @property
    def here(self) -> str:
        if not self.local:
            raise Invalid("Pulsar knows several clusters: say in the PulsarConnection's clusterName which one it is")
        return self.local

    @property
    def clusters(self) -> list[str]:
        return sorted({self.here, *self.far, *(self.spec.get("replicationClusters") or ())})


@dataclass(frozen=True)
class Resource:
    """One kind. Everything but `path` and `make` has a default that is right for most."""

    kind: fl.Kind
    path: Callable[[Order], str]
    """Where it is in the admin API; raises Invalid."""
    make: Callable[[Admin, str, Order], Awaitable[None]] | None
    """Make it so, from whatever is there; None where there is nothing besides the settings."""
    needs: Callable[[Spec], Iterable[str]] = lambda spec: ()
    """The paths of what must be in Pulsar first."""
    settings: Callable[[Order], Settings] = lambda order: {}
    moves: bool = False
    """Whether it may go to another path: nobody's data hangs on it."""
    gone: int = 404
    """What a deletion answers, besides 404, when there is nothing to delete."""
    probe: str = ""
    """Where below the path a look tells whether it is there."""

    def digest(self, server: str, order: Order) -> str:
        """Tells whether anything that matters has changed since it was last brought into Pulsar."""
        said = [server, self.path(order), dict(order.spec), order.far, dict(order.destination)]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]

    async def apply(self, admin: Admin, order: Order, dropped: Iterable[str]) -> None:
        """Bring it about, without the settings that were dropped. These go first: one may stand in another's way."""
        path = self.path(order)
        if self.make is not None:
            await self.make(admin, path, order)
        for name in dropped:
            await self._unset(admin, path, name, order)
        for name, body in self.settings(order).items():
            await admin.post(f"{path}/{name}", body)

    async def remove(self, admin: Admin, path: str, settings: Iterable[str]) -> None:
        """Away with what an object has put there. Already gone is success."""
        if self.make is None:
            for name in settings:
                await self._unset(admin, path, name)
        elif self.kind is Topic and ((await admin.get(f"{path}/partitions")) or {}).get("partitions"):
            await admin.delete(f"{path}/partitions")
        else:
            await admin.delete(path, unset=self.gone, seen_at=path + self.probe)

    async def _unset(self, admin: Admin, path: str, name: str, order: Order | None = None) -> None:
        if order is not None and self.kind is Namespace and name == "replication":  # has no DELETE
            await admin.post(f"{path}/{name}", [order.here])
        else:
            await admin.delete(f"{path}/{name}", unset=412)  # "not set at the topic level"


# Where things are


def tenant_path(name: str) -> str:
    return at("/v2/tenants", *_parts(name, 1, "acme"))


def namespace_path(name: str) -> str:
    return at("/v2/namespaces", *_parts(name, 2, "acme/orders"))


def topic_path(name: str, *, persistent: bool = True) -> str:
    scheme, _, rest = name.rpartition("://")
    domain = scheme or ("persistent" if persistent else "non-persistent")
    if domain not in ("persistent", "non-persistent"):
        raise Invalid(f"{name!r} is no topic: it begins with persistent:// or non-persistent://, or with its tenant")
    return at(f"/v2/{domain}", *_parts(rest, 3, "acme/orders/placed"))


def package_path(url: str) -> str:
    found = re.fullmatch(r"(function|sink|source)://([^/@]+)/([^/@]+)/([^/@]+)@([^/@]+)", url)
    if not found:
        raise Invalid(
            f"{url!r} is no package: it is type://tenant/namespace/name@version, of a function, sink or source"
        )
    return at("/v3/packages", *found.groups())


def _parts(name: str, count: int, such_as: str) -> list[str]:
    parts = name.split("/")
    if len(parts) != count or not all(parts) or any(part in (".", "..") for part in parts):
        raise Invalid(f"{name!r} must have {count} part{'s' * (count > 1)} between slashes, such as {such_as}")
    return parts


def _granted_on(spec: Spec) -> str:
    return (namespace_path if spec["resourceType"] == "namespace" else topic_path)(spec["resourceName"])


def _in_namespace(path: str) -> str:
    """The namespace of a topic or package, from its path."""
    parts = path.split("/")
    return "/".join(["/v2/namespaces", *(parts[4:6] if parts[2] == "packages" else parts[3:5])])


# How they are made, where a PUT is not all


def _upsert(body: Callable[[Order], Any]) -> Callable[[Admin, str, Order], Awaitable[None]]:
    async def make(admin: Admin, path: str, order: Order) -> None:
        if not await admin.put(path, body(order)):
            await admin.post(path, body(order))

    return make


def _tenant(order: Order) -> Any:
    allowed = {*(order.spec.get("allowedClusters") or [order.here]), *order.far}
    return {"adminRoles": order.spec.get("adminRoles") or [], "allowedClusters": sorted(allowed)}


def _cluster_path(order: Order) -> str:
    if not order.destination.get("clusterName"):
        raise Invalid("the connection of the far cluster must say its clusterName")
    if order.destination["clusterName"] == order.local:  # and would be deleted with the object
        raise Invalid(f"{order.local} is this cluster itself: let destinationConnectionRef name another cluster's")
    return at("/v2/clusters", order.destination["clusterName"])


def _cluster(order: Order) -> Any:
    names = {
        "serviceUrl": "adminServiceURL",
        "serviceUrlTls": "adminServiceSecureURL",
        "brokerServiceUrl": "brokerServiceURL",
        "brokerServiceUrlTls": "brokerServiceSecureURL",
    }
    return {name: order.destination[told] for name, told in names.items() if order.destination.get(told)}


async def _namespace(admin: Admin, path: str, order: Order) -> None:
    bundles = order.spec.get("bundles")
    await admin.put(path, {"bundles": {"numBundles": bundles}} if bundles else {})


async def _topic(admin: Admin, path: str, order: Order) -> None:
    wanted = order.spec.get("partitions") or 0
    if not wanted:
        await admin.put(path)
    elif not await admin.put(f"{path}/partitions", wanted):
        there = (await admin.get(f"{path}/partitions") or {}).get("partitions")
        if there != wanted:
            await admin.post(f"{path}/partitions", wanted)


async def _isolation(admin: Admin, path: str, order: Order) -> None:
    spec = order.spec
    failover = {"policy_type": spec["autoFailoverPolicyType"], "parameters": spec["autoFailoverPolicyParams"]}
    brokers = {"primary": spec["primary"], "secondary": spec.get("secondary") or []}
    await admin.post(path, {"namespaces": spec["namespaces"], **brokers, "auto_failover_policy": failover})


async def _package(admin: Admin, path: str, order: Order) -> None:
    """A version's content never changes, so it is uploaded once, and remembers where it came from."""
    spec, file_url = order.spec, order.spec["fileURL"]
    if not file_url.startswith(("http://", "https://")):
        raise Invalid(f"fileURL is {file_url!r}: files of the operator's own machine are not for sending, use http(s)")
    metadata = {
        "description": spec.get("description") or "",
        "contact": spec.get("contact") or "",
        "properties": {**(spec.get("properties") or {}), "fileURL": file_url},
    }
    there = await admin.get(f"{path}/metadata")
    if there is not None:
        uploaded = (there.get("properties") or {}).get("fileURL", file_url)
        if uploaded != file_url:
            raise Invalid(f"this version was uploaded from {uploaded}: give new content a new version in packageURL")
        await admin.call("PUT", f"{path}/metadata", metadata)
        return
    assert order.fetch is not None
    content = await order.fetch(file_url)
    described = Part("metadata", "application/json", json.dumps(metadata).encode())
    await admin.form("POST", path, [described, Part("file", "application/octet-stream", content)])


_CODE = ("jar", "py", "go", "archive")
_NOT_CONFIG = {"connectionRef", "lifecyclePolicy", *_CODE}


def _code(spec: Spec) -> tuple[str, str]:
    for name in _CODE:
        if url := (spec.get(name) or {}).get("url"):
            return name, url
    raise Invalid("it has no code: give the url of its jar, py or go (a function) or archive (a sink or source)")


def _component(what: str) -> "Resource":
    """Functions, sinks and sources differ in a word."""

    async def make(admin: Admin, path: str, order: Order) -> None:
        name, url = _code(order.spec)
        config = {key: value for key, value in order.spec.items() if key not in _NOT_CONFIG}
        encoded = json.dumps({**config, name: url}).encode()
        parts = [Part(f"{what}Config", "application/json", encoded)]
        if not url.startswith("builtin://"):  # what is built in is in the config alone
            parts.append(Part("url", "text/plain", url.encode()))
        method = "POST" if await admin.get(path) is None else "PUT"
        try:
            await admin.form(method, path, parts)
        except Refused as error:
            # What Pulsar answers to an update that would change nothing.
            if "Update contains no change" not in str(error):
                raise

    def needs(spec: Spec) -> Iterable[str]:
        yield namespace_path(f"{spec['tenant']}/{spec['namespace']}")
        if (url := _code(spec)[1]).startswith(("function://", "sink://", "source://")):
            yield package_path(url)
        for topic in (*(spec.get("inputs") or ()), spec.get("output"), spec.get("topicName")):
            if topic:
                yield topic_path(topic)

    def path(order: Order) -> str:
        return at(f"/v3/{what}s", *(order.spec[part] for part in ("tenant", "namespace", "name")))

    return Resource(fl.kind(GROUP, f"Pulsar{what.capitalize()}"), path, make, needs)


# What is set on them


def _policies(order: Order) -> Settings:
    """What namespaces and topics have in common."""
    spec = order.spec
    settings: Settings = {}
    if "retentionTime" in spec or "retentionSize" in spec:
        minutes, megabytes = seconds(spec.get("retentionTime", "-1")), size(spec.get("retentionSize", "-1"))
        settings["retention"] = {
            "retentionTimeInMinutes": minutes if minutes < 0 else minutes // 60,
            "retentionSizeInMB": megabytes if megabytes < 0 else megabytes // 2**20,
        }
    if "backlogQuotaRetentionPolicy" in spec:
        kind = spec.get("backlogQuotaType", "destination_storage")
        settings[f"backlogQuota?backlogQuotaType={kind}"] = {
            "limitSize": size(spec.get("backlogQuotaLimitSize", "-1")),
            "limitTime": seconds(spec.get("backlogQuotaLimitTime", "-1")),
            "policy": spec["backlogQuotaRetentionPolicy"],
        }
    if order.far or spec.get("replicationClusters"):
        settings["replication"] = order.clusters
    return settings


def _namespace_settings(order: Order) -> Settings:
    spec, settings = order.spec, _policies(order)
    if "messageTTL" in spec:
        settings["messageTTL"] = seconds(spec["messageTTL"])
    for name in ("deduplication", "maxProducersPerTopic", "maxConsumersPerTopic", "maxConsumersPerSubscription"):
        if name in spec:
            settings[name] = spec[name]
    if creation := spec.get("topicAutoCreationConfig"):
        names = {"allowAutoTopicCreation": "allow", "topicType": "type", "defaultNumPartitions": "partitions"}
        settings["autoTopicCreation"] = {name: creation[told] for name, told in names.items() if told in creation}
    return settings


def _topic_settings(order: Order) -> Settings:
    spec, settings = order.spec, _policies(order)
    if "messageTTL" in spec:
        settings[f"messageTTL?messageTTL={seconds(spec['messageTTL'])}"] = None
    names = {"maxProducers": "maxProducers", "maxConsumers": "maxConsumers", "deduplicationEnabled": "deduplication"}
    for name, told in {**names, "compactionThreshold": "compactionThreshold"}.items():
        if told in spec:
            settings[name] = spec[told]
    return settings


def _grants(order: Order) -> Settings:
    return {at("permissions", role): order.spec.get("actions") or [] for role in order.spec["roles"]}


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def seconds(text: str) -> int:
    """A duration such as 90s, 1h30m or 3d; -1 is without end."""
    if text == "-1":
        return -1
    if not re.fullmatch(r"(\d+[smhdw])+", text):
        raise Invalid(f"{text!r} is no duration: it is written as 90s, 1h30m, 3d, or -1 for without end")
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+)([smhdw])", text))


def size(value: str | int) -> int:
    """A size in bytes such as 500Mi or 10Gi; -1 is without limit."""
    found = re.fullmatch(r"(-1|\d+)([kMGT]i?|Ki)?", str(value))
    if not found or (found[2] or "") not in _BYTES:
        raise Invalid(f"{value!r} is no size: it is written as 500Mi, 10Gi, or -1 for without limit")
    return int(found[1]) if found[1] == "-1" else int(found[1]) * _BYTES[found[2] or ""]


def _topic_of(order: Order) -> str:
    return topic_path(order.spec["name"], persistent=order.spec.get("persistent", True))


RESOURCES: tuple[Resource, ...] = (
    Resource(GeoReplication, _cluster_path, _upsert(_cluster), moves=True),
    Resource(Tenant, lambda order: tenant_path(order.spec["name"]), _upsert(_tenant)),
    Resource(
        Namespace,
        lambda order: namespace_path(order.spec["name"]),
        _namespace,
        needs=lambda spec: [tenant_path(spec["name"].split("/")[0])],
        settings=_namespace_settings,
    ),
    Resource(
        Topic,
        _topic_of,
        _topic,
        needs=lambda spec: [_in_namespace(_topic_of(Order(spec)))],
        settings=_topic_settings,
        probe="/partitions",  # of a topic whose namespace is gone Pulsar answers 500, and 405 to a look at its path
    ),
    Resource(
        Permission,
        lambda order: _granted_on(order.spec),
        None,
        needs=lambda spec: [_granted_on(spec)],
        settings=_grants,
        moves=True,
    ),
    Resource(
        Package,
        lambda order: package_path(order.spec["packageURL"]),
        _package,
        needs=lambda spec: [_in_namespace(package_path(spec["packageURL"]))],
        probe="/metadata",
    ),
    _component("function"),
    _component("sink"),
    _component("source"),
    Resource(
        NSIsolationPolicy,
        lambda order: at(at("/v2/clusters", order.spec["cluster"]), "namespaceIsolationPolicies", order.spec["name"]),
        _isolation,
        moves=True,
        gone=412,  # the cluster does not exist
    ),
)
"""In an order in which each stands on those before it."""
