"""The resources of the fake Pulsar, and the handlers of its admin API."""

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


class ErrorResponse(Exception):
    """Raised by a handler to return an error response with this status code and reason."""

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
class Request:
    """A parsed request to the fake admin API. `names` are the names in the path."""

    method: str
    names: tuple[str, ...]
    query: Mapping[str, str]
    body: bytes | None
    content_type: str

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    def form(self) -> dict[str, bytes]:
        """Return the parts of a multipart form by name."""
        boundary = self.content_type.partition("boundary=")[2].encode()
        form_parts = {}
        for form_part in (self.body or b"").split(b"--" + boundary)[1:-1]:
            part_headers, _, content = form_part.partition(b"\r\n\r\n")
            match = re.search(rb'name="([^"]+)"', part_headers)
            assert match
            form_parts[match[1].decode()] = content.removesuffix(b"\r\n")
        return form_parts


class PulsarState:
    """The tenants, namespaces, topics and other objects of one Pulsar."""

    def __init__(self) -> None:
        self.clusters: dict[str, Any] = {CLUSTER: {"serviceUrl": "http://127.0.0.1:8080"}}
        self.tenants: dict[str, Any] = {"public": {"adminRoles": [], "allowedClusters": [CLUSTER]}}
        self.namespaces: dict[str, Namespace] = {}
        self.topics: dict[str, Topic] = {}
        self.isolation: dict[tuple[str, str], Any] = {}
        self.packages: dict[tuple[str, ...], tuple[Any, bytes]] = {}
        self.components: dict[tuple[str, ...], Any] = {}

    def handle(self, method: str, path: str, query: Mapping[str, str], content_type: str, body: bytes | None) -> Any:
        """Handle a request and return the response body: a JSON value or bytes. Raises ErrorResponse."""
        for pattern, handler in _ROUTES:
            if match := re.fullmatch(pattern, path):
                names = tuple(unquote(name) for name in match.groups())
                return getattr(self, f"_{handler}")(Request(method, names, query, body, content_type))
        raise ErrorResponse(404, "")

    def _clusters(self, request: Request) -> Any:
        return sorted(self.clusters)

    def _cluster(self, request: Request) -> Any:
        return _handle_object(self.clusters, request.names[0], request, "cluster")

    def _tenant(self, request: Request) -> Any:
        (name,) = request.names
        if request.method in ("PUT", "POST"):
            _check(bool(_NAME.fullmatch(name)), 412, "the tenant's name is not valid")
            clusters = request.json.get("allowedClusters")
            _check(bool(clusters), 412, "clusters cannot be empty")
            _check(all(cluster in self.clusters for cluster in clusters), 412, "clusters do not exist")
        if request.method == "DELETE":
            _check(not any(n.startswith(f"{name}/") for n in self.namespaces), 409, "the tenant has namespaces")
        return _handle_object(self.tenants, name, request, "tenant")

    def _namespace(self, request: Request) -> Any:
        tenant, local = request.names
        name = f"{tenant}/{local}"
        if request.method == "PUT":
            _check(tenant in self.tenants, 404, "the tenant does not exist")
            _check(bool(_NAME.fullmatch(local)), 412, "the namespace's name is not valid")
            _check(name not in self.namespaces, 409, "the namespace exists")
            self.namespaces[name] = Namespace({"replication": [CLUSTER], **(request.json or {})})
            return None
        existing = _get_existing(self.namespaces, name, "namespace")
        if request.method == "DELETE":
            _check(not any(t.partition("/")[2].startswith(f"{name}/") for t in self.topics), 409, "it is not empty")
            del self.namespaces[name]
            return None
        return {"replication_clusters": existing.settings["replication"]}

    def _namespace_setting(self, request: Request) -> Any:
        tenant, local, name = request.names
        existing = _get_existing(self.namespaces, f"{tenant}/{local}", "namespace")
        if name == "replication" and request.method == "POST":
            _check(all(c in self.clusters for c in request.json), 403, "invalid cluster id")
        _check(name in NAMESPACE_SETTINGS or (name == "replication" and request.method != "DELETE"), 412, "not valid")
        _check(name != "messageTTL" or not request.body or request.json >= 0, 412, "the TTL is not valid")
        return _handle_setting(existing.settings, name, request)

    def _namespace_permissions(self, request: Request) -> Any:
        return dict(_get_existing(self.namespaces, "/".join(request.names), "namespace").permissions)

    def _namespace_permission(self, request: Request) -> Any:
        *names, role = request.names
        permissions = _get_existing(self.namespaces, "/".join(names), "namespace").permissions
        if request.method == "POST":
            permissions[role] = sorted(request.json)
        else:
            permissions.pop(role, None)

    def _topic(self, request: Request) -> Any:
        name = "/".join(request.names)
        if request.method == "PUT":
            return self._create_topic(name, 0)
        _check(request.method == "DELETE", 405, "not allowed")
        _check("/".join(request.names[1:3]) in self.namespaces, 500, "no policies")  # as Pulsar does
        existing = _get_existing(self.topics, name, "topic")
        _check(not existing.partitions, 409, "it is a partitioned topic")
        _check(not self._components_reading(name), 412, "Topic has 1 connected producers/consumers")
        del self.topics[name]
        return None

    def _components_reading(self, topic: str) -> list[Any]:
        """Return the configurations of the functions and sinks that read a topic."""
        topic_name = topic.partition("/")[2]
        names = {topic_name, f"persistent://{topic_name}"}
        return [config for config in self.components.values() if names & {*(config.get("inputs") or ())}]

    def _partitions(self, request: Request) -> Any:
        name = "/".join(request.names)
        if request.method == "PUT":
            _check(request.json > 0, 406, "the number of partitions must be more than 0")
            return self._create_topic(name, request.json)
        existing = _get_existing(self.topics, name, "topic")
        if request.method == "GET":
            return {"partitions": existing.partitions, "deleted": False}
        _check(bool(existing.partitions), 409, "it is not a partitioned topic")
        if request.method == "DELETE":
            del self.topics[name]
        else:
            _check(request.json >= existing.partitions, 422, f"partitions cannot shrink from {existing.partitions}")
            existing.partitions = request.json
        return None

    def _create_topic(self, name: str, partitions: int) -> None:
        _check(name.partition("/")[2].rpartition("/")[0] in self.namespaces, 404, "the namespace does not exist")
        _check(name not in self.topics, 409, "the topic exists")
        self.topics[name] = Topic(partitions)

    def _topic_setting(self, request: Request) -> Any:
        *names, name = request.names
        existing = _get_existing(self.topics, "/".join(names), "topic")
        _check(name in TOPIC_SETTINGS, 405, "not allowed")
        if name == "messageTTL" and request.method == "POST":
            request.body = request.query["messageTTL"].encode()
        return _handle_setting(existing.settings, name, request)

    def _topic_permissions(self, request: Request) -> Any:
        existing = _get_existing(self.topics, "/".join(request.names), "topic")
        return {**self.namespaces["/".join(request.names[1:3])].permissions, **existing.permissions}

    def _topic_permission(self, request: Request) -> Any:
        *names, role = request.names
        permissions = _get_existing(self.topics, "/".join(names), "topic").permissions
        if request.method == "POST":
            permissions[role] = sorted(request.json)
        else:
            _check(role in permissions, 412, "permissions are not set at the topic level")
            del permissions[role]

    def _isolation_policy(self, request: Request) -> Any:
        cluster, name = request.names
        _check(cluster in self.clusters, 412, "the cluster does not exist")
        if request.method == "POST":
            policy = request.json
            is_complete = policy.get("namespaces") and policy.get("primary") and policy.get("auto_failover_policy")
            _check(bool(is_complete), 400, "the policy is not valid")
            self.isolation[cluster, name] = policy
        elif request.method == "DELETE":
            self.isolation.pop((cluster, name), None)
        else:
            return _get_existing(self.isolation, (cluster, name), "policy")
        return None

    def _package(self, request: Request) -> Any:
        if request.method == "POST":
            _check(request.names not in self.packages, 404, "the package's metadata exists")  # as Pulsar does
            form = request.form()
            self.packages[request.names] = json.loads(form["metadata"]), form["file"]
            return None
        if request.method == "DELETE":
            _check(request.names in self.packages, 500, "failed to delete the file")
            del self.packages[request.names]
            return None
        return _get_existing(self.packages, request.names, "package")[1]

    def _package_metadata(self, request: Request) -> Any:
        existing = _get_existing(self.packages, request.names, "package")
        if request.method == "PUT":
            self.packages[request.names] = request.json, existing[1]
            return None
        return existing[0]

    def _component(self, request: Request) -> Any:
        plural, tenant, namespace, _ = request.names
        if request.method in ("POST", "PUT"):
            form = request.form()
            config = json.loads(form[f"{plural[:-1]}Config"])
            _check(f"{tenant}/{namespace}" in self.namespaces, 400, "the namespace does not exist")
            url = form.get("url", b"").decode()
            _check(
                not url.startswith("builtin:"), 400, "Function Package url is not valid.supported url (http/https/file)"
            )
            if match := re.fullmatch(r"(\w+)://([^/]+)/([^/]+)/([^@]+)@(.+)", url):
                _check(match.groups() in self.packages, 400, "HTTP 404 Not Found")
            _check((request.method == "POST") is (request.names not in self.components), 400, "exists, or doesn't")
            _check(self.components.get(request.names) != config, 400, "Update contains no change")
            self.components[request.names] = config
            return None
        existing = _get_existing(self.components, request.names, plural[:-1])
        if request.method == "DELETE":
            del self.components[request.names]
            return None
        return existing


def _check(is_allowed: bool, status: int, reason: str) -> None:
    if not is_allowed:
        raise ErrorResponse(status, reason)


def _get_existing(objects: Mapping[Any, Any], name: Any, resource_name: str) -> Any:
    _check(name in objects, 404, f"the {resource_name} does not exist")
    return objects[name]


def _handle_object(objects: dict[str, Any], name: str, request: Request, resource_name: str) -> Any:
    """Handle a request for one resource: PUT creates it, POST changes it, GET returns it, DELETE removes it."""
    if request.method == "PUT":
        _check(name not in objects, 409, f"the {resource_name} exists")
        objects[name] = request.json
        return None
    existing = _get_existing(objects, name, resource_name)
    if request.method == "POST":
        objects[name] = request.json
    elif request.method == "DELETE":
        del objects[name]
    else:
        return existing
    return None


def _handle_setting(settings: dict[str, Any], name: str, request: Request) -> Any:
    if request.method == "GET":
        return settings.get(name)
    if request.method == "POST":
        settings[name] = request.json
    else:
        settings.pop(name, None)
    return None


_N = "([^/]+)"
_TOPIC = f"/admin/v2/((?:non-)?persistent)/{_N}/{_N}/{_N}"
_ROUTES = [  # path pattern, and the suffix of the handler method
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
