"""Tests of every verb on the embedded server, in process and over sockets, and on a real server."""

import json
from types import SimpleNamespace

import pytest

from fairlead.api.builtin import ConfigMap, Lease
from fairlead.api.errors import AlreadyExists, Conflict, Invalid, NotFound, Unauthorized
from fairlead.api.kinds import kind
from fairlead.api.world import World
from fairlead.client.access import Cluster
from fairlead.client.client import Client, PatchType
from fairlead.client.credentials import StaticCredentials
from fairlead.client.discovery import NotServed
from fairlead.client.http import HttpTransport

SPECIAL_CHARACTERS = 'x?a=1&b=2 <\u2028> \x7f \x85 \x9f \ufeff é 😀 \\ " \t'


@pytest.fixture
async def clients(api):
    """Return clients of one server: with the server's own transport, over sockets, and with a wrong token."""
    cluster = Cluster(api.url, api.ca_data)
    sockets = HttpTransport(cluster, StaticCredentials.token(api.token))
    wrong_token_transport = HttpTransport(cluster, StaticCredentials.token("wrong"))
    yield SimpleNamespace(
        client=Client(api.transport(), World()),
        socket_client=Client(sockets, World()),
        client_with_wrong_token=Client(wrong_token_transport, World()),
        namespace=api.namespace,
    )
    await sockets.close()
    await wrong_token_transport.close()


async def test_create_get_replace_patch_and_delete(clients):
    client, namespace = clients.client, clients.namespace
    created = await client.create(ConfigMap("a", namespace, data={"k": "1"}))
    assert (created.kind, created.name, created["data"]) == ("ConfigMap", "a", {"k": "1"})
    with pytest.raises(AlreadyExists):
        await client.create(ConfigMap("a", namespace))
    replaced = await client.replace({**created, "data": {"k": "2"}})
    assert replaced.resource_version != created.resource_version
    with pytest.raises(Conflict):
        await client.replace({**created, "data": {"k": "3"}})
    assert await client.get(ConfigMap, "a", namespace) == replaced
    with pytest.raises(Conflict):
        await client.delete(ConfigMap, "a", namespace, uid="not-this-one")
    with pytest.raises(Conflict):
        await client.delete(ConfigMap, "a", namespace, resource_version=created.resource_version)
    assert await client.delete(ConfigMap, "a", namespace, uid=replaced.uid) is None
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "a", namespace)


async def test_delete_returns_the_object_while_a_finalizer_holds_it(clients):
    client, namespace = clients.client, clients.namespace
    obj = ConfigMap("a", namespace)
    obj["metadata"]["finalizers"] = ["example.com/hold"]
    await client.create(obj)
    deleting = await client.delete(ConfigMap, "a", namespace)
    assert deleting is not None
    assert deleting.deleting
    await client.patch(ConfigMap, "a", namespace, {"metadata": {"finalizers": None}}, type=PatchType.MERGE)
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "a", namespace)


async def test_special_characters_survive_every_write_and_json_patch_test(clients):
    client, namespace = clients.client, clients.namespace
    await client.create(ConfigMap("created", namespace, data={"k": SPECIAL_CHARACTERS}))
    applied = await client.apply(ConfigMap("applied", namespace, data={"k": SPECIAL_CHARACTERS}), field_manager="me")
    assert applied["data"] == {"k": SPECIAL_CHARACTERS}
    for name in ("created", "applied"):
        guarded_patch = [
            {"op": "test", "path": "/data/k", "value": SPECIAL_CHARACTERS},
            {"op": "test", "path": "/data", "value": {"k": SPECIAL_CHARACTERS}},
            {"op": "add", "path": "/data/l", "value": SPECIAL_CHARACTERS},
        ]
        patched = await client.patch(ConfigMap, name, namespace, guarded_patch, type=PatchType.JSON)
        assert patched["data"] == {"k": SPECIAL_CHARACTERS, "l": SPECIAL_CHARACTERS}


async def test_a_failed_json_patch_test_raises_invalid_without_causes(clients):
    client, namespace = clients.client, clients.namespace
    await client.create(ConfigMap("a", namespace, data={"k": "1"}))
    with pytest.raises(Invalid) as raised:
        await client.patch(
            ConfigMap, "a", namespace, [{"op": "test", "path": "/data/k", "value": "2"}], type=PatchType.JSON
        )
    assert not raised.value.causes


async def test_apply_sets_the_field_manager_and_conflicts_without_force(clients):
    client, namespace = clients.client, clients.namespace
    await client.apply(ConfigMap("a", namespace, data={"k": "1"}), field_manager="one")
    with pytest.raises(Conflict) as raised:
        await client.apply(ConfigMap("a", namespace, data={"k": "2"}), field_manager="two", force=False)
    assert raised.value.causes[0]["reason"] == "FieldManagerConflict"
    forced = await client.apply(ConfigMap("a", namespace, data={"k": "2"}), field_manager="two")
    assert forced["data"] == {"k": "2"}
    assert "two" in {entry["manager"] for entry in forced.metadata["managedFields"]}


async def test_a_dry_run_changes_nothing(clients):
    client, namespace = clients.client, clients.namespace
    await client.create(ConfigMap("a", namespace), dry_run=True)
    await client.apply(ConfigMap("b", namespace), field_manager="me", dry_run=True)
    existing = await client.create(ConfigMap("c", namespace))
    await client.delete(ConfigMap, "c", namespace, dry_run=True)
    assert [item.name for item in (await client.list(ConfigMap, namespace)).items] == ["c"]
    assert await client.get(ConfigMap, "c", namespace) == existing


async def test_list_supports_pages_and_selectors_and_adds_kinds(clients):
    client, namespace = clients.client, clients.namespace
    for name in "abcde":
        await client.create(ConfigMap(name, namespace, labels={"odd": str(name in "ace")}))
    names, token = [], None
    while True:
        page = await client.list(ConfigMap, namespace, limit=2, continue_=token)
        names += [item.name for item in page.items]
        assert all(item.kind == "ConfigMap" and item.api_version == "v1" for item in page.items)
        token = page.continue_
        if not token:
            break
    assert names == list("abcde")
    assert [obj.name for obj in (await client.list(ConfigMap, namespace, labels="odd=True")).items] == list("ace")
    assert [obj.name for obj in (await client.list(ConfigMap, namespace, fields="metadata.name=b")).items] == ["b"]
    raw_list = await client.list_raw(ConfigMap, namespace)
    assert [json.loads(item)["metadata"]["name"] for item in raw_list.items] == list("abcde")
    assert all(type(item) is bytes for item in raw_list.items)
    all_namespaces = await client.list(ConfigMap)
    assert {(obj.namespace, obj.name) for obj in all_namespaces.items} >= {(namespace, name) for name in "abcde"}


async def test_metadata_only_objects_can_be_requested(clients):
    client, namespace = clients.client, clients.namespace
    await client.create(ConfigMap("a", namespace, data={"k": "1"}))
    page = await client.list(ConfigMap, namespace, metadata_only=True)
    assert [(item.kind, item.name, "data" in item) for item in page.items] == [("PartialObjectMetadata", "a", False)]
    async with client.watch(ConfigMap, namespace, initial_events=True, metadata_only=True) as watch:
        first = json.loads((await anext(watch)).raw)
        assert (first["kind"], "data" in first) == ("PartialObjectMetadata", False)


async def test_a_watch_starts_at_the_version_of_a_list(clients):
    client, namespace = clients.client, clients.namespace
    await client.create(ConfigMap("before", namespace))
    page = await client.list(ConfigMap, namespace)
    async with client.watch(ConfigMap, namespace, resource_version=page.resource_version) as watch:
        await client.create(ConfigMap("a", namespace))
        await client.patch(ConfigMap, "a", namespace, {"data": {"k": "é\x85"}}, type=PatchType.MERGE)
        await client.delete(ConfigMap, "a", namespace)
        frames = [await anext(watch) for _ in range(3)]
    assert [(frame.type, json.loads(frame.raw)["metadata"]["name"]) for frame in frames] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]


async def test_a_bookmark_ends_the_initial_events(clients):
    client, namespace = clients.client, clients.namespace
    for name in "ab":
        await client.create(ConfigMap(name, namespace))
    async with client.watch(ConfigMap, namespace, initial_events=True) as watch:
        frames = [await anext(watch) for _ in range(3)]
    assert [frame.type for frame in frames] == ["ADDED", "ADDED", "BOOKMARK"]
    assert json.loads(frames[2].raw)["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_ends_after_its_timeout(clients):
    async with clients.client.watch(ConfigMap, clients.namespace, resource_version="0", timeout_seconds=1) as watch:
        assert {frame.type async for frame in watch} <= {"BOOKMARK", "ADDED"}


async def test_all_transports_reach_the_same_server(clients):
    async with (
        clients.client.watch(ConfigMap, clients.namespace, initial_events=True) as direct_watch,
        clients.socket_client.watch(ConfigMap, clients.namespace, initial_events=True) as socket_watch,
    ):
        assert [(await anext(watch)).type for watch in (direct_watch, socket_watch)] == ["BOOKMARK", "BOOKMARK"]
        created = await clients.socket_client.create(ConfigMap("a", clients.namespace, data={"k": SPECIAL_CHARACTERS}))
        assert [json.loads((await anext(watch)).raw) for watch in (direct_watch, socket_watch)] == [created, created]
        assert await clients.client.get(ConfigMap, "a", clients.namespace) == created


async def test_a_wrong_token_raises_unauthorized_for_every_verb(clients):
    with pytest.raises(Unauthorized):
        await clients.client_with_wrong_token.get(ConfigMap, "a", clients.namespace)
    clients.client_with_wrong_token._discovery = clients.client._discovery
    with pytest.raises(Unauthorized):
        async with clients.client_with_wrong_token.watch(ConfigMap, clients.namespace):
            pass


async def test_a_custom_kind_is_served_while_its_crd_exists(clients):
    client = clients.client
    Octopus = kind("sea.example/v1", "Octopus")  # noqa: N806 - a kind
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "octopodes.sea.example"},
        "spec": {
            "group": "sea.example",
            "scope": "Namespaced",
            "names": {"plural": "octopodes", "singular": "octopus", "kind": "Octopus"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
    spec = {"arms": 8, "size": 1.5, "tiny": 1e-7, "huge": 1e21, "whole": 2.0, "large": 1e20, "text": SPECIAL_CHARACTERS}
    with pytest.raises(NotServed):
        await client.resolve(Octopus)
    Definition = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", namespaced=False)  # noqa: N806
    await client.create(definition)
    try:
        async with client.watch(
            Definition, fields="metadata.name=octopodes.sea.example", resource_version="0"
        ) as watch:
            async for frame in watch:
                status = json.loads(frame.raw).get("status") or {}
                if any(c["type"] == "Established" and c["status"] == "True" for c in status.get("conditions") or ()):
                    break
        created = None
        for _ in range(100):  # a real server sets Established a moment before it serves the kind
            try:
                created = await client.create(Octopus("a", clients.namespace, spec=spec))
                break
            except (NotServed, NotFound):
                continue
        assert created is not None
        assert (await client.served(Octopus)).subresources == {"status"}
        patched = await client.patch(
            Octopus, "a", clients.namespace, {"status": {"happy": True}}, type=PatchType.MERGE, subresource="status"
        )
        assert patched.status == {"happy": True}
        assert patched.spec == spec
        test_operations = [{"op": "test", "path": f"/spec/{key}", "value": value} for key, value in spec.items()]
        for operations in ([*test_operations], [{"op": "test", "path": "/spec", "value": spec}]):
            await client.patch(Octopus, "a", clients.namespace, operations, type=PatchType.JSON)
    finally:
        await client.delete(Definition, "octopodes.sea.example")


async def test_discovery_corrects_a_wrong_scope(clients):
    wrong_token_transport = kind("v1", "Namespace", plural="spaces", namespaced=True)
    assert (await clients.client.get(wrong_token_transport, clients.namespace)).name == clients.namespace


async def test_invalid_object_names_are_rejected_before_sending(clients):
    client = clients.client
    for name in ("", ".", ".."):
        with pytest.raises(ValueError, match="not the name"):
            await client.get(ConfigMap, name, clients.namespace)
    with pytest.raises(ValueError, match="needs a namespace"):
        await client.create(ConfigMap("a"))
    with pytest.raises(ValueError, match="apiVersion and kind"):
        await client.create({"metadata": {"name": "a"}})
    with pytest.raises(ValueError, match=r"metadata\.name"):
        await client.apply(ConfigMap(None, clients.namespace), field_manager="me")


async def test_a_lease_keeps_its_microseconds(clients):
    lease = Lease("l", clients.namespace, spec={"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.123456Z"})
    created = await clients.client.create(lease)
    assert created.spec["renewTime"] == "2026-01-01T00:00:00.123456Z"
