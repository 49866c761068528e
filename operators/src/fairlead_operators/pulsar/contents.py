"""What a Pulsar keeps, and how the parts of its admin API read and change it: the stand-in without its door."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

CLUSTER = "standalone"
_NAME = re.compile(r"[-=:.\w]+")

NAMESPACE_SETTINGS = {
    "messageTTL",
    "retention",
    "backlogQuota",
    "deduplication",
    "maxProducersPerTopic",
    "maxConsumersPerTopic",
    "maxConsumersPerSubscription",
    "autoTopicCreation",
}
TOPIC_SETTINGS = {
    "messageTTL",
    "retention",
    "backlogQuota",
    "maxProducers",
    "maxConsumers",
    "deduplicationEnabled",
    "replication",
    "compactionThreshold",
}


class Failure(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class Namespace:
    settings: dict[str, Any] = field(default_factory=dict)
    permissions: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Topic:
    partitions: int
    settings: dict[str, Any] = field(default_factory=dict)
    permissions: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Call:
    """One request, taken apart."""

    method: str
    names: tuple[str, ...]
    query: Mapping[str, str]
    body: bytes | None
    content_type: str

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    def form(self) -> dict[str, bytes]:
        """The parts of a multipart form, by name."""
        boundary = self.content_type.partition("boundary=")[2].encode()
        parts = {}
        for part in (self.body or b"").split(b"--" + boundary)[1:-1]:
            head, _, content = part.partition(b"\r\n\r\n")
            found = re.search(rb'name="([^"]+)"', head)
            assert found
            parts[found[1].decode()] = content.removesuffix(b"\r\n")
        return parts


class Contents:
    """One Pulsar's tenants, namespaces, topics and so on, in memory."""

    def __init__(self) -> None:
        self.clusters: dict[str, Any] = {CLUSTER: {"serviceUrl": "http://127.0.0.1:8080"}}
        self.tenants: dict[str, Any] = {"public": {"adminRoles": [], "allowedClusters": [CLUSTER]}}
        self.namespaces: dict[str, Namespace] = {}
        self.topics: dict[str, Topic] = {}
        self.isolation: dict[tuple[str, str], Any] = {}
        self.packages: dict[tuple[str, ...], tuple[Any, bytes]] = {}
        self.components: dict[tuple[str, ...], Any] = {}

    def ask(self, method: str, path: str, query: Mapping[str, str], content_type: str, body: bytes | None) -> Any:
        """What the part of the API behind a path says: JSON to be, or bytes. Raises Failure."""
        for pattern, part in _ROUTES:
            if found := re.fullmatch(pattern, path):
                names = tuple(unquote(name) for name in found.groups())
                return getattr(self, f"_{part}")(Call(method, names, query, body, content_type))
        raise Failure(404, "")

    def _clusters(self, call: Call) -> Any:
        return sorted(self.clusters)

    def _cluster(self, call: Call) -> Any:
        return _kept(self.clusters, call.names[0], call, "cluster")

    def _tenant(self, call: Call) -> Any:
        (name,) = call.names
        if call.method in ("PUT", "POST"):
            _check(bool(_NAME.fullmatch(name)), 412, "the tenant's name is not valid")
            clusters = call.json.get("allowedClusters")
            _check(bool(clusters), 412, "clusters cannot be empty")
            _check(all(cluster in self.clusters for cluster in clusters), 412, "clusters do not exist")
        if call.method == "DELETE":
            _check(not any(n.startswith(f"{name}/") for n in self.namespaces), 409, "the tenant has namespaces")
        return _kept(self.tenants, name, call, "tenant")

    def _namespace(self, call: Call) -> Any:
        tenant, local = call.names
        name = f"{tenant}/{local}"
        if call.method == "PUT":
            _check(tenant in self.tenants, 404, "the tenant does not exist")
            _check(bool(_NAME.fullmatch(local)), 412, "the namespace's name is not valid")
            _check(name not in self.namespaces, 409, "the namespace exists")
            self.namespaces[name] = Namespace({"replication": [CLUSTER], **(call.json or {})})
            return None
        there = _there(self.namespaces, name, "namespace")
        if call.method == "DELETE":
            _check(not any(t.partition("/")[2].startswith(f"{name}/") for t in self.topics), 409, "it is not empty")
            del self.namespaces[name]
            return None
        return {"replication_clusters": there.settings["replication"]}

    def _namespace_setting(self, call: Call) -> Any:
        tenant, local, name = call.names
        there = _there(self.namespaces, f"{tenant}/{local}", "namespace")
        if name == "replication" and call.method == "POST":
            _check(all(c in self.clusters for c in call.json), 403, "invalid cluster id")
        _check(name in NAMESPACE_SETTINGS or (name == "replication" and call.method != "DELETE"), 412, "not valid")
        _check(name != "messageTTL" or not call.body or call.json >= 0, 412, "the TTL is not valid")
        return _set(there.settings, name, call)

    def _namespace_permissions(self, call: Call) -> Any:
        return dict(_there(self.namespaces, "/".join(call.names), "namespace").permissions)

    def _namespace_permission(self, call: Call) -> Any:
        *names, role = call.names
        permissions = _there(self.namespaces, "/".join(names), "namespace").permissions
        if call.method == "POST":
            permissions[role] = sorted(call.json)
        else:
            permissions.pop(role, None)

    def _topic(self, call: Call) -> Any:
        name = "/".join(call.names)
        if call.method == "PUT":
            return self._make_topic(name, 0)
        _check(call.method == "DELETE", 405, "not allowed")
        _check("/".join(call.names[1:3]) in self.namespaces, 500, "no policies")  # that is what Pulsar answers
        there = _there(self.topics, name, "topic")
        _check(not there.partitions, 409, "it is a partitioned topic")
        _check(not self._readers(name), 412, "Topic has 1 connected producers/consumers")
        del self.topics[name]
        return None

    def _readers(self, topic: str) -> list[Any]:
        """The components whose input that is."""
        short = topic.partition("/")[2]
        names = {short, f"persistent://{short}"}
        return [config for config in self.components.values() if names & {*(config.get("inputs") or ())}]

    def _partitions(self, call: Call) -> Any:
        name = "/".join(call.names)
        if call.method == "PUT":
            _check(call.json > 0, 406, "the number of partitions must be more than 0")
            return self._make_topic(name, call.json)
        there = _there(self.topics, name, "topic")
        if call.method == "GET":
            return {"partitions": there.partitions, "deleted": False}
        _check(bool(there.partitions), 409, "it is not a partitioned topic")
        if call.method == "DELETE":
            del self.topics[name]
        else:
            _check(call.json >= there.partitions, 422, f"partitions cannot shrink from {there.partitions}")
            there.partitions = call.json
        return None

    def _make_topic(self, name: str, partitions: int) -> None:
        _check(name.partition("/")[2].rpartition("/")[0] in self.namespaces, 404, "the namespace does not exist")
        _check(name not in self.topics, 409, "the topic exists")
        self.topics[name] = Topic(partitions)

    def _topic_setting(self, call: Call) -> Any:
        *names, name = call.names
        there = _there(self.topics, "/".join(names), "topic")
        _check(name in TOPIC_SETTINGS, 405, "not allowed")
        if name == "messageTTL" and call.method == "POST":
            call.body = call.query["messageTTL"].encode()
        return _set(there.settings, name, call)

    def _topic_permissions(self, call: Call) -> Any:
        there = _there(self.topics, "/".join(call.names), "topic")
        return {**self.namespaces["/".join(call.names[1:3])].permissions, **there.permissions}

    def _topic_permission(self, call: Call) -> Any:
        *names, role = call.names
        permissions = _there(self.topics, "/".join(names), "topic").permissions
        if call.method == "POST":
            permissions[role] = sorted(call.json)
        else:
            _check(role in permissions, 412, "permissions are not set at the topic level")
            del permissions[role]

    def _isolation_policy(self, call: Call) -> Any:
        cluster, name = call.names
        _check(cluster in self.clusters, 412, "the cluster does not exist")
        if call.method == "POST":
            wanted = call.json
            given = wanted.get("namespaces") and wanted.get("primary") and wanted.get("auto_failover_policy")
            _check(bool(given), 400, "the policy is not valid")
            self.isolation[cluster, name] = wanted
        elif call.method == "DELETE":
            self.isolation.pop((cluster, name), None)
        else:
            return _there(self.isolation, (cluster, name), "policy")
        return None

    def _package(self, call: Call) -> Any:
        if call.method == "POST":
            _check(call.names not in self.packages, 404, "the package's metadata exists")  # that is what Pulsar answers
            form = call.form()
            self.packages[call.names] = json.loads(form["metadata"]), form["file"]
            return None
        if call.method == "DELETE":
            _check(call.names in self.packages, 500, "failed to delete the file")
            del self.packages[call.names]
            return None
        return _there(self.packages, call.names, "package")[1]

    def _package_metadata(self, call: Call) -> Any:
        there = _there(self.packages, call.names, "package")
        if call.method == "PUT":
            self.packages[call.names] = call.json, there[1]
            return None
        return there[0]

    def _component(self, call: Call) -> Any:
        what, tenant, namespace, _ = call.names
        if call.method in ("POST", "PUT"):
            form = call.form()
            config = json.loads(form[f"{what[:-1]}Config"])
            _check(f"{tenant}/{namespace}" in self.namespaces, 400, "the namespace does not exist")
            url = form.get("url", b"").decode()
            _check(
                not url.startswith("builtin:"), 400, "Function Package url is not valid.supported url (http/https/file)"
            )
            if found := re.fullmatch(r"(\w+)://([^/]+)/([^/]+)/([^@]+)@(.+)", url):
                _check(found.groups() in self.packages, 400, "HTTP 404 Not Found")
            _check((call.method == "POST") is (call.names not in self.components), 400, "exists, or doesn't")
            _check(self.components.get(call.names) != config, 400, "Update contains no change")
            self.components[call.names] = config
            return None
        there = _there(self.components, call.names, what[:-1])
        if call.method == "DELETE":
            del self.components[call.names]
            return None
        return there


def _check(holds: bool, status: int, reason: str) -> None:
    if not holds:
        raise Failure(status, reason)


def _there(kept: Mapping[Any, Any], name: Any, what: str) -> Any:
    _check(name in kept, 404, f"the {what} does not exist")
    return kept[name]


def _kept(kept: dict[str, Any], name: str, call: Call, what: str) -> Any:
    """Made by PUT, changed by POST, and the rest."""
    if call.method == "PUT":
        _check(name not in kept, 409, f"the {what} exists")
        kept[name] = call.json
        return None
    there = _there(kept, name, what)
    if call.method == "POST":
        kept[name] = call.json
    elif call.method == "DELETE":
        del kept[name]
    else:
        return there
    return None


def _set(settings: dict[str, Any], name: str, call: Call) -> Any:
    if call.method == "GET":
        return settings.get(name)
    if call.method == "POST":
        settings[name] = call.json
    else:
        settings.pop(name, None)
    return None


_N = "([^/]+)"
_TOPIC = f"/admin/v2/((?:non-)?persistent)/{_N}/{_N}/{_N}"
_ROUTES = [  # a path, and the method of Contents that answers for it
    ("/admin/v2/clusters", "clusters"),
    (f"/admin/v2/clusters/{_N}", "cluster"),
    (f"/admin/v2/clusters/{_N}/namespaceIsolationPolicies/{_N}", "isolation_policy"),
    (f"/admin/v2/tenants/{_N}", "tenant"),
    (f"/admin/v2/namespaces/{_N}/{_N}", "namespace"),
    (f"/admin/v2/namespaces/{_N}/{_N}/permissions", "namespace_permissions"),
    (f"/admin/v2/namespaces/{_N}/{_N}/permissions/{_N}", "namespace_permission"),
    (f"/admin/v2/namespaces/{_N}/{_N}/{_N}", "namespace_setting"),
    (_TOPIC, "topic"),
    (f"{_TOPIC}/partitions", "partitions"),
    (f"{_TOPIC}/permissions", "topic_permissions"),
    (f"{_TOPIC}/permissions/{_N}", "topic_permission"),
    (f"{_TOPIC}/{_N}", "topic_setting"),
    (f"/admin/v3/packages/{_N}/{_N}/{_N}/{_N}/{_N}", "package"),
    (f"/admin/v3/packages/{_N}/{_N}/{_N}/{_N}/{_N}/metadata", "package_metadata"),
    (f"/admin/v3/(functions|sinks|sources)/{_N}/{_N}/{_N}", "component"),
]
