"""The objects of a new server: the same as on a real one, built on first use, and kept in a data directory."""

import asyncio
import json
from ipaddress import IPv4Network

import pytest
from tests.support.waiting import PATIENCE

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.server.initial_objects import InitialObjects, parse_service_range

RANGE = IPv4Network("10.0.0.0/24")
PLACES = {
    "services": "/api/v1/namespaces/default/services/kubernetes",
    "endpoints": "/api/v1/namespaces/default/endpoints/kubernetes",
    "endpointslices": "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
    "servicecidrs": "/apis/networking.k8s.io/v1/servicecidrs/kubernetes",
    "ipaddresses": "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1",
    "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
    "levels": "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/workload-low",
    "flowschemas": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all",
    "configmaps": "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking",
    "apiservices": "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps",
    "roles": "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:job-controller",
}


async def get(transport, path):
    response = await transport.request(HttpRequest("GET", path))
    return response.status, json.loads(response.body)


@pytest.mark.rbac
@pytest.mark.parametrize("path", PLACES.values(), ids=PLACES)
async def test_a_new_server_has_the_object(api, path):
    status, obj = await get(api.transport(), path)
    assert status == 200
    assert obj["metadata"]["uid"]
    assert int(obj["metadata"]["resourceVersion"]) > 1


def without_variable_parts(obj):
    """Return an object without the values that differ in every cluster."""
    text = json.dumps(obj)
    metadata = json.loads(text)["metadata"]
    for entry in metadata["managedFields"]:
        del entry["time"]
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        del metadata[key]
    rest = {key: value for key, value in json.loads(text).items() if key not in ("metadata", "description", "subsets")}
    rest.pop("endpoints", None)
    rest.get("data", {}).pop("since", None)
    for condition in (rest.get("status") or {}).get("conditions", ()):
        del condition["lastTransitionTime"]
    for port in (*(rest.get("spec") or {}).get("ports", ()), *rest.get("ports", ())):
        port.pop("targetPort", None)
        port.pop("port" if "ports" in rest else "", None)
    return {**rest, "metadata": metadata}


@pytest.mark.only("real", reason="the test compares both servers")
async def test_initial_objects_are_those_of_a_real_server(api):
    differences, transport = [], api.transport()
    initial = InitialObjects(World(), RANGE, rbac=True)
    async with asyncio.timeout(PATIENCE):
        while not (await get(transport, PLACES["flowschemas"]))[1]["status"]:  # noqa: ASYNC110 (nothing signals it)
            await asyncio.sleep(0.1)  # a real server writes the statuses a moment later
    for group, plural in initial.tables():
        for obj in initial.build(group, plural):
            root = f"/apis/{obj['apiVersion']}" if group else "/api/v1"
            space = f"/namespaces/{obj['metadata']['namespace']}" if "namespace" in obj["metadata"] else ""
            _, real = await get(transport, f"{root}{space}/{plural}/{obj['metadata']['name']}")
            if without_variable_parts(real) != without_variable_parts(obj):
                differences.append((real, obj))
    assert not differences


async def test_initial_objects_come_from_the_service_range():
    transport = Server(World(), service_range="10.96.0.0/16").transport()
    _, service = await get(transport, PLACES["services"])
    assert service["spec"]["clusterIP"] == "10.96.0.1"
    _, cidr = await get(transport, PLACES["servicecidrs"])
    assert cidr["spec"]["cidrs"] == ["10.96.0.0/16"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("10.0.0.0/31", "use a prefix of at most /30"),
        ("fd00::/108", "is not an IPv4 network"),
        ("10.0.0.1/24", "has host bits set"),
        ("nope", "is not an IPv4 network"),
    ],
)
def test_a_wrong_service_range_is_an_error(text, error):
    with pytest.raises(ValueError, match=error):
        parse_service_range(text)


def test_an_initial_object_keeps_its_uid_whatever_is_read_first():
    initial = InitialObjects(World(), RANGE, rbac=False)
    first = initial.build("", "services")
    initial.build("", "namespaces")
    assert initial.build("", "services") == first


def test_the_start_builds_no_initial_objects():
    server = Server(World(), authorization="RBAC")
    assert not any(table.objects for _, table in server.store.tables())


async def test_a_watch_from_the_version_of_an_initial_object_continues():
    server = Server(World())
    table = server.store.table("", "services")
    version = int(table.get("default", "kubernetes").object["metadata"]["resourceVersion"])
    assert table.compacted_version <= version
    assert table.events_after(version) == []


async def test_initial_objects_survive_a_restart_with_their_uids(tmp_path):
    uids = []
    for _ in range(2):
        server = Server(World(), data=tmp_path)
        _, service = await get(server.transport(), PLACES["services"])
        uids.append(service["metadata"]["uid"])
        server.close()
    assert uids[0] == uids[1]


async def test_a_dependent_of_an_initial_object_is_not_collected():
    server = Server(World(), controllers=["gc"])
    transport = server.transport()
    _, owner = await get(transport, PLACES["services"])
    reference = {"apiVersion": "v1", "kind": "Service", "name": "kubernetes", "uid": owner["metadata"]["uid"]}
    for name, uid in (("kept", reference["uid"]), ("orphan", "gone")):
        metadata = {"name": name, "ownerReferences": [{**reference, "uid": uid}]}
        await transport.request(
            HttpRequest(
                "POST", "/api/v1/namespaces/default/configmaps", body=json.dumps({"metadata": metadata}).encode()
            )
        )
    await transport.request(HttpRequest("GET", "/healthz"))
    names = [key for key, _ in server.store.table("", "configmaps").scan("default")]
    assert names == ["default/kept"]


@pytest.mark.parametrize("starts", [1, 2])
async def test_the_ca_of_client_certificates_is_published(starts, tmp_path):
    for number in range(starts):
        server = Server(World(), data=tmp_path)
        ca = f"certificate {number}".encode()
        server._publish_client_ca(ca)
        _, published = await get(
            server.transport(), "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        )
        server.close()
        assert published["data"] == {"client-ca-file": ca.decode()}
