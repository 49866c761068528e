"""Objects and helpers for the Pulsar tests."""

from fairlead.client.client import PatchType
from fairlead_operators.pulsar.fake_pulsar import CLUSTER
from fairlead_operators.pulsar.kinds import (
    Function,
    GeoReplication,
    Namespace,
    NSIsolationPolicy,
    Package,
    Permission,
    Sink,
    Source,
    Tenant,
    Topic,
)

FOREIGN = "example.com/mine"
POLICY = {
    "cluster": CLUSTER,
    "namespaces": ["acme/.*"],
    "primary": ["broker-1.*"],
    "autoFailoverPolicyType": "min_available",
    "autoFailoverPolicyParams": {"min_limit": "1", "usage_threshold": "80"},
}

ECHO = "org.apache.pulsar.functions.api.utils.IdentityFunction"
"""A function in the jar pulsar-functions-api of Pulsar."""

INVALID_SPECS = [
    (Tenant, {"name": "a/b"}, "Invalid", "1 part"),
    (Tenant, {"name": "fine", "allowedClusters": ["nowhere"]}, "Rejected", "Change the spec"),
    (Namespace, {"name": "no-slash"}, "Invalid", "such as acme/orders"),
    (Namespace, {"name": "no-such-tenant/n"}, "Missing", "Create the tenant"),
    (Namespace, {"name": "public/n", "messageTTL": "soon"}, "Invalid", "not a duration"),
    (Topic, {"name": "kafka://a/b/c"}, "Invalid", "persistent://"),
    (Topic, {"name": "a/b/c", "retentionSize": "big"}, "Invalid", "not a size"),
    (Package, {"packageURL": "nonsense", "fileURL": "http://127.0.0.1:1/"}, "Invalid", "name@version"),
    (Package, {"packageURL": "sink://public/default/x@1", "fileURL": "file:///etc/passwd"}, "Invalid", "http"),
    (
        Package,
        {"packageURL": "sink://public/default/x@1", "fileURL": "http://127.0.0.1:1/x"},
        "Unreachable",
        "check",
    ),
    (Function, {"tenant": "public", "namespace": "default", "name": "f"}, "Invalid", "jar"),
    (NSIsolationPolicy, {**POLICY, "name": "p", "cluster": "nowhere"}, "Rejected", "Change the spec"),
    (GeoReplication, {"destinationConnectionRef": {"name": "nowhere"}}, "NoConnection", "create it"),
    (Tenant, {"name": "fine", "connectionRef": {"name": "nowhere"}}, "NoConnection", "create it"),
]
"""Invalid specs, the reason of the condition, and a part of its message that names the remedy."""


def equals(expected):
    return lambda value: value == expected


async def create_topic(env):
    """Create a tenant with the name `env.tenant`, a namespace and a topic, and wait until the topic is ready."""
    await env.create(Tenant, "tenant", name=env.tenant)
    await env.create(Namespace, "namespace", name=f"{env.tenant}/orders")
    await env.create(Topic, "topic", name=f"{env.tenant}/orders/placed")
    await env.wait_until_ready(Topic, "topic")


async def create_all_kinds(env):
    """Create an object of each of the ten kinds, in reverse dependency order. Return their paths in Pulsar by kind."""
    tenant = env.tenant
    location = {"tenant": tenant, "namespace": "orders"}
    await env.connect("far", clusterName=f"far-{tenant}", brokerServiceURL="pulsar://127.0.0.1:1")
    created = {}
    if env.pulsar.runs_functions:
        code = {
            "className": ECHO,
            "inputs": [f"{tenant}/orders/placed"],
            "jar": {"url": f"function://{tenant}/orders/echo@1"},
        }
        await env.create(Function, "function", name="echo", **location, **code)
        created[Function] = f"/v3/functions/{tenant}/orders/echo"
    if not env.pulsar.real:  # it has no built-in connectors
        built_in = {"archive": {"url": "builtin://nothing"}}
        await env.create(Sink, "sink", name="drain", **location, **built_in)
        await env.create(Source, "source", name="well", **location, **built_in)
        created |= {Sink: f"/v3/sinks/{tenant}/orders/drain", Source: f"/v3/sources/{tenant}/orders/well"}
    await env.create(
        Package, "package", packageURL=f"function://{tenant}/orders/echo@1", fileURL=f"{env.pulsar.files}/code.jar"
    )
    grants = {"roles": ["clerk"], "actions": ["produce"]}
    await env.create(Permission, "permission", resourceName=f"{tenant}/orders", resourceType="namespace", **grants)
    await env.create(NSIsolationPolicy, "nsisolationpolicy", name=tenant, **POLICY)
    await env.create(GeoReplication, "georeplication", destinationConnectionRef={"name": "far"})
    await create_topic(env)
    created |= {
        Package: f"/v3/packages/function/{tenant}/orders/echo/1/metadata",
        NSIsolationPolicy: f"/v2/clusters/{CLUSTER}/namespaceIsolationPolicies/{tenant}",
        GeoReplication: f"/v2/clusters/far-{tenant}",
        Topic: f"/v2/persistent/{tenant}/orders/placed/partitions",
        Namespace: f"/v2/namespaces/{tenant}/orders",
        Tenant: f"/v2/tenants/{tenant}",
    }
    return created


def name_of(kind):
    return kind.kind.removeprefix("Pulsar").lower()


async def add_foreign(env, kind, name):
    payload = kind(name, env.namespace)
    payload["metadata"]["finalizers"] = [FOREIGN]
    return await env.client.apply(payload, field_manager="example")


async def remove_foreign(env, kind, name):
    await env.wait_until(kind, name, lambda obj: obj.finalizers == [FOREIGN])
    await env.client.patch(kind, name, env.namespace, {"metadata": {"finalizers": None}}, type=PatchType.MERGE)
