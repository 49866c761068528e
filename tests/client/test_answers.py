"""Tests of answers that are not what was requested: none of them is an empty list, or the absence of an object."""

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import ApiError, NotFound, UnknownOutcome
from fairlead.api.kinds import kind
from fairlead.api.world import World
from fairlead.client.client import Client, PatchType
from fairlead.client.discovery import NotServed
from fairlead.testing import virtual

LIST = {"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"}, "items": []}
SUCCESS = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success"}
ABSENT = {"apiVersion": "v1", "kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": "a"}}
METADATA = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList"}


def without(*keys):
    return {key: value for key, value in LIST.items() if key not in keys}


NOT_LISTS = {
    "an empty object": (200, {}),
    "without items": (200, without("items")),
    "without a version": (200, LIST | {"metadata": {}}),
    "with an empty version": (200, LIST | {"metadata": {"resourceVersion": ""}}),
    "without metadata": (200, without("metadata")),
    "without a kind": (200, without("kind")),
    "without an apiVersion": (200, without("apiVersion")),
    "a Status of success": (200, SUCCESS),
    "a Status of absence": (200, ABSENT),
    "a list of another kind": (200, LIST | {"kind": "SecretList"}),
    "a list of another group": (200, LIST | {"apiVersion": "example.com/v1"}),
    "one object": (200, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": "7"}}),
    "a table": (200, {"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": {"resourceVersion": "7"}}),
    "metadata that was not requested": (200, LIST | METADATA),
    "transformed by a proxy": (203, LIST),
    "no content": (204, None),
    "a part": (206, LIST),
}


@pytest.mark.parametrize("case", NOT_LISTS)
def test_an_answer_that_is_not_a_list_is_an_error_and_never_empty(case, scripted_client, response):
    code, body = NOT_LISTS[case]
    client, transport = scripted_client(response(code, json=body))
    with pytest.raises(ApiError) as raised:
        virtual.run(client.list(ConfigMap, "n"))
    assert not isinstance(raised.value, NotFound)
    assert raised.value.code == code
    assert len(transport.requests) == 1


def test_the_error_names_the_request_the_difference_and_what_to_check(scripted_client, response):
    client, _ = scripted_client(response(json=LIST | {"kind": "SecretList"}))
    with pytest.raises(ApiError) as raised:
        virtual.run(client.list(ConfigMap, "n"))
    assert str(raised.value).startswith(
        "GET /api/v1/namespaces/n/configmaps: HTTP 200, and the answer is not what was requested (it is a SecretList "
        "of v1, not a ConfigMapList of v1): check the server's address and the proxies on the way"
    )


def test_a_list_may_have_null_items(scripted_client, response):
    client, _ = scripted_client(response(json=LIST | {"items": None}))
    assert virtual.run(client.list(ConfigMap, "n")).items == []


def test_a_list_of_metadata_has_its_own_kind(scripted_client, response):
    client, _ = scripted_client(response(json=LIST | METADATA), response(json=LIST))

    async def main():
        assert (await client.list(ConfigMap, "n", metadata_only=True)).resource_version == "7"
        with pytest.raises(ApiError, match="not a PartialObjectMetadataList"):
            await client.list(ConfigMap, "n", metadata_only=True)

    virtual.run(main())


def aggregate(*resources):
    version = {"version": "v1", "resources": list(resources)}
    return {
        "kind": "APIGroupDiscoveryList",
        "items": [{"metadata": {"name": "metrics.example"}, "versions": [version]}],
    }


def resource(name, plural, *verbs):
    return {"resource": plural, "responseKind": {"kind": name}, "scope": "Namespaced", "verbs": list(verbs)}


def test_a_kind_without_watch_may_list_without_a_version(scripted_client, response):
    """The lists of metrics have no resourceVersion."""
    usage = {"apiVersion": "metrics.example/v1", "kind": "UsageList", "metadata": {}, "items": []}
    client, _ = scripted_client(
        response(json=aggregate(resource("Usage", "usages", "list"))), response(json=usage), answers_discovery=False
    )
    assert virtual.run(client.list(kind("metrics.example/v1", "Usage"), "n")).items == []


def test_a_custom_kind_may_choose_its_list_kind_but_no_other_kinds_list(scripted_client, response):
    discovery = aggregate(resource("Octopus", "octopodes", "watch"), resource("Squid", "squids", "watch"))
    octopodes = LIST | {"apiVersion": "metrics.example/v1", "kind": "Octopodes"}
    client, _ = scripted_client(
        response(json=discovery),
        response(json=octopodes),
        response(json=octopodes | {"kind": "SquidList"}),
        answers_discovery=False,
    )
    octopus = kind("metrics.example/v1", "Octopus")

    async def main():
        assert (await client.list(octopus, "n")).items == []
        with pytest.raises(ApiError, match="SquidList"):
            await client.list(octopus, "n")

    virtual.run(main())


# 404

FOR_OTHERS = {
    "another name": {"name": "b", "kind": "configmaps"},
    "another kind": {"name": "a", "kind": "secrets"},
    "another group": {"name": "a", "kind": "configmaps", "group": "example.com"},
    "a namespace that was not requested": {"name": "m", "kind": "namespaces"},
}
CALLS = {
    "get": lambda client: client.get(ConfigMap, "a", "n"),
    "patch": lambda client: client.patch(ConfigMap, "a", "n", {}, type=PatchType.MERGE),
    "delete": lambda client: client.delete(ConfigMap, "a", "n"),
}


@pytest.mark.parametrize("case", FOR_OTHERS)
@pytest.mark.parametrize("verb", CALLS)
def test_a_404_that_names_another_object_is_not_absence(verb, case, scripted_client, error_response):
    client, _ = scripted_client(error_response(404, "NotFound", "not here", **FOR_OTHERS[case]))
    with pytest.raises(ApiError, match="says nothing about ConfigMap a") as raised:
        virtual.run(CALLS[verb](client))
    assert not isinstance(raised.value, NotFound | NotServed)
    assert raised.value.code == 404


@pytest.mark.parametrize("verb", CALLS)
def test_the_404_page_of_a_proxy_is_not_absence(verb, scripted_client, response):
    client, _ = scripted_client(response(404, body=b"<html>no such site</html>"))
    with pytest.raises(ApiError, match="HTTP 404, not from an API server: <html>") as raised:
        virtual.run(CALLS[verb](client))
    assert not isinstance(raised.value, NotFound | NotServed)


def test_the_404_page_of_a_proxy_at_discovery_is_not_a_missing_kind(scripted_client, response):
    client, _ = scripted_client(response(404, body=b"<html>no such site</html>"), answers_discovery=False)
    with pytest.raises(ApiError) as raised:
        virtual.run(client.resolve(kind("example.com/v1", "Octopus")))
    assert not isinstance(raised.value, NotFound | NotServed)


@pytest.mark.parametrize("details", [{"name": "a"}, {"name": "a", "kind": "configmaps"}, {"name": "a", "group": ""}])
@pytest.mark.parametrize("verb", CALLS)
def test_a_404_that_names_the_object_is_absence(verb, details, scripted_client, error_response):
    client, _ = scripted_client(error_response(404, "NotFound", **details))
    with pytest.raises(NotFound):
        virtual.run(CALLS[verb](client))


def test_a_write_answered_with_206_may_have_happened(scripted_client, response):
    client, _ = scripted_client(response(206, json={"apiVersion": "v1", "kind": "ConfigMap"}))
    with pytest.raises(UnknownOutcome):
        virtual.run(client.create(ConfigMap("a", "n")))


# Real answers


async def test_real_answers_pass_the_checks(api):
    client, namespace = Client(api.transport(), World()), api.namespace
    for verb in CALLS.values():
        with pytest.raises(NotFound):
            await verb(_Renamed(client, namespace))
    with pytest.raises(NotFound) as raised:
        await client.create(ConfigMap("a", "no-such-namespace"))
    assert raised.value.details == {"name": "no-such-namespace", "kind": "namespaces"}
    for served_kind in await client.kinds():
        if "watch" in served_kind.verbs:
            assert (await client.list(served_kind.kind, limit=1)).resource_version
            assert (await client.list(served_kind.kind, limit=1, metadata_only=True)).resource_version


@pytest.mark.only("real", reason="the embedded server does not list component statuses")
async def test_a_kind_without_watch_lists_without_a_version_on_a_server(api):
    page = await Client(api.transport(), World()).list(kind("v1", "ComponentStatus", namespaced=False))
    assert page.resource_version == ""
    assert page.items


class _Renamed:
    """A client for which the namespace `n` is another one."""

    def __init__(self, client, namespace):
        self._client, self._namespace = client, namespace

    def __getattr__(self, verb):
        return lambda kind, name, _, *args, **options: getattr(self._client, verb)(
            kind, name, self._namespace, *args, **options
        )
