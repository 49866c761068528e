"""Tests of kubectl on the embedded server: the current release, and an older one if it is installed."""

import asyncio
import json
from pathlib import Path

import pytest

from fairlead.testing import real

NEW, OLD = real.find("kubectl"), Path("/usr/bin/kubectl")
KUBECTLS = [
    pytest.param(NEW, id="new", marks=pytest.mark.skipif(NEW is None, reason="no kubectl: make real builds one")),
    pytest.param(OLD, id="old", marks=pytest.mark.skipif(not OLD.exists(), reason="no /usr/bin/kubectl")),
]
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "web:1", "env": [{"name": "A", "value": "1"}]}]},
        },
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "A widget of some size.",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer", "description": "How large."},
                                    "ports": {
                                        "type": "array",
                                        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                                    },
                                    "any": {"x-kubernetes-int-or-string": True},
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}


@pytest.fixture(params=KUBECTLS)
def kubectl(request, served):
    async def run(*arguments, obj=None, **run_options):
        return await served.run(request.param, *arguments, stdin=json.dumps(obj) if obj else "", **run_options)

    run.binary = request.param
    return run


def with_spec(**spec):
    return {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], **spec}}


async def test_apply_diff_get_and_describe(kubectl):
    assert await kubectl("apply", "-f", "-", obj=DEPLOYMENT) == "deployment.apps/web created\n"
    assert await kubectl("apply", "-f", "-", obj=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    assert await kubectl("diff", "-f", "-", obj=DEPLOYMENT) == ""
    await kubectl("diff", "-f", "-", obj=with_spec(replicas=3), code=1)
    assert await kubectl("apply", "-f", "-", obj=with_spec(replicas=3)) == "deployment.apps/web configured\n"
    lines = (await kubectl("get", "deployments")).splitlines()
    assert lines[0].split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert lines[1].split()[:4] == ["web", "0/3", "0", "0"]
    assert "CONTAINERS" in await kubectl("get", "deploy/web", "-o", "wide")
    assert (await kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}")) == "3"
    assert json.loads(await kubectl("get", "deploy", "-o", "json"))["kind"] == "List"
    described = await kubectl("describe", "deployment", "web")
    assert "Replicas:" in described
    assert "web:1" in described


async def test_server_side_apply_reports_conflicts_with_other_managers(kubectl):
    output = await kubectl("apply", "--server-side", "-f", "-", obj=DEPLOYMENT)
    assert output == "deployment.apps/web serverside-applied\n"
    other = with_spec(replicas=5)
    rejection = await kubectl("apply", "--server-side", "--field-manager=b", "-f", "-", obj=other, code=1)
    assert ".spec.replicas" in rejection
    assert 'conflict with "kubectl"' in rejection
    await kubectl("apply", "--server-side", "--field-manager=b", "--force-conflicts", "-f", "-", obj=other)
    assert await kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "5"
    assert await kubectl("diff", "--server-side", "--field-manager=b", "-f", "-", obj=other) == ""


async def test_unknown_field_is_refused_before_anything_is_written(kubectl):
    rejection = await kubectl("apply", "-f", "-", obj=with_spec(replica=3), code=1)
    assert 'unknown field "spec.replica"' in rejection
    assert "NotFound" in await kubectl("get", "deploy", "web", code=1)
    await kubectl("apply", "--validate=ignore", "-f", "-", obj=with_spec(replica=3))


async def test_edit_patch_label_annotate_scale_and_set(kubectl, served):
    await kubectl("apply", "-f", "-", obj=DEPLOYMENT)
    editor = served.home / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/replicas: 2/replicas: 7/' \"$1\"\n")
    editor.chmod(0o755)
    assert "edited" in await kubectl("edit", "deployment", "web", KUBE_EDITOR=str(editor), EDITOR=str(editor))
    replicas = ("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}")
    assert await kubectl(*replicas) == "7"
    env = {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}]}]}}}}
    await kubectl("patch", "deploy", "web", "-p", json.dumps(env))
    names = "jsonpath={.spec.template.spec.containers[0].env[*].name}"
    assert set((await kubectl("get", "deploy", "web", "-o", names)).split()) == {"A", "B"}
    await kubectl("patch", "deploy", "web", "--type=merge", "-p", '{"spec":{"paused":true}}')
    await kubectl("patch", "deploy", "web", "--type=json", "-p", '[{"op":"remove","path":"/spec/paused"}]')
    await kubectl("label", "deploy", "web", "tier=front")
    assert "web" in await kubectl("get", "deploy", "-l", "tier=front", "-o", "name")
    await kubectl("label", "deploy", "web", "tier-")
    await kubectl("annotate", "deploy", "web", "note=x")
    assert await kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.annotations.note}") == "x"
    await kubectl("scale", "deploy", "web", "--replicas=1")
    assert await kubectl(*replicas) == "1"
    await kubectl("set", "image", "deploy/web", "c=web:2")


async def test_rollout_status_follows_the_status(kubectl, served):
    await kubectl("apply", "-f", "-", obj=DEPLOYMENT)
    waiting = asyncio.ensure_future(kubectl("rollout", "status", "deploy/web", "--timeout=30s"))
    while served.server.metrics.total(verb="WATCH", resource="deployments") == 0:  # noqa: ASYNC110 - a counter
        await asyncio.sleep(0.02)
    count = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    status = {"status": {"observedGeneration": 1, **count}}
    path = "/apis/apps/v1/namespaces/default/deployments/web/status"
    await served.send("PATCH", path, status, "application/merge-patch+json")
    assert "successfully rolled out" in await waiting


async def test_wait_and_watch_see_changes(kubectl, served):
    await kubectl("apply", "-f", "-", obj=DEPLOYMENT)
    waiting = asyncio.ensure_future(kubectl("wait", "deploy/web", "--for=condition=Available", "--timeout=30s"))
    created = asyncio.ensure_future(kubectl("wait", "configmap/c", "--for=create", "--timeout=30s"))
    watching = asyncio.ensure_future(kubectl("get", "deploy", "--watch", "-o", "name", "--request-timeout=2s", code=0))
    condition = {"status": {"conditions": [{"type": "Available", "status": "True"}]}}
    path = "/apis/apps/v1/namespaces/default/deployments/web/status"
    await served.send("PATCH", path, condition, "application/merge-patch+json")
    await served.send("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})
    assert await waiting == "deployment.apps/web condition met\n"
    assert await created == "configmap/c condition met\n"
    assert (await watching).startswith("deployment.apps/web\n")
    deleted = asyncio.ensure_future(kubectl("delete", "deploy", "web", "--wait"))
    assert await kubectl("wait", "deploy/web", "--for=delete", "--timeout=30s") in (
        "",
        "deployment.apps/web condition met\n",
    )
    assert 'deployment.apps "web" deleted' in await deleted


async def test_custom_resources_are_explained_applied_and_listed(kubectl):
    await kubectl("apply", "-f", "-", obj=DEFINITION)
    assert await kubectl("wait", "crd/widgets.example.com", "--for=condition=Established", "--timeout=30s")
    explained = await kubectl("explain", "widgets", "--recursive")
    assert "A widget of some size." in explained
    for field_text in ("size\t<integer>", "ports\t<[]Object>", "name\t<string>", "metadata\t<ObjectMeta>"):
        assert field_text in explained
    assert "How large." in await kubectl("explain", "widget.spec.size")
    assert await kubectl("apply", "-f", "-", obj=WIDGET) == "widget.example.com/w created\n"
    assert (await kubectl("get", "wd")).splitlines()[1].split() == ["w", "3"]
    larger = {**WIDGET, "spec": {"size": 4}}
    await kubectl("diff", "-f", "-", obj=larger, code=1)
    assert await kubectl("apply", "-f", "-", obj=larger) == "widget.example.com/w configured\n"
    rejection = await kubectl("apply", "-f", "-", obj={**WIDGET, "spec": {"size": "x"}}, code=1)
    assert "must be of type integer" in rejection
    assert "unknown field" in await kubectl("apply", "-f", "-", obj={**WIDGET, "spec": {"size": 1, "zise": 1}}, code=1)
    assert 'widget.example.com "w" deleted' in await kubectl("delete", "widget", "w")


async def test_explain_covers_built_in_kinds_down_to_leaf_fields(kubectl):
    explained = await kubectl("explain", "deployment.spec")
    assert "KIND:       Deployment" in explained
    for line in (
        "replicas\t<integer>",
        "selector\t<LabelSelector> -required-",
        "template\t<PodTemplateSpec> -required-",
    ):
        assert line in explained
    leaf = await kubectl("explain", "deploy.spec.template.spec.containers.ports.containerPort")
    assert "FIELD: containerPort <integer>" in leaf
    assert "maxSurge\t<IntOrString>" in await kubectl("explain", "deploy.spec.strategy", "--recursive")


async def test_api_resources_and_versions(kubectl):
    lines = (await kubectl("api-resources")).splitlines()
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in [line.split() for line in lines]
    assert "apps/v1" in (await kubectl("api-versions")).splitlines()
    assert "v1.36.4" in await kubectl("version")
    names = await kubectl("api-resources", "--namespaced=false", "-o", "name")
    assert "clusterroles.rbac.authorization.k8s.io" in names


async def test_can_i_follows_created_roles(kubectl):
    await kubectl("create", "namespace", "team")
    await kubectl("create", "serviceaccount", "bot", "-n", "team")
    await kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps", "-n", "team")
    await kubectl("create", "rolebinding", "bot", "--role=reader", "--serviceaccount=team:bot", "-n", "team")
    identity_options = ("--as=system:serviceaccount:team:bot", "-n", "team")
    assert await kubectl("auth", "can-i", "list", "configmaps", *identity_options) == "yes\n"
    await kubectl("auth", "can-i", "delete", "configmaps", *identity_options, code=1)
    listed = await kubectl("auth", "can-i", "--list", *identity_options)
    assert "configmaps" in listed
    assert await kubectl("auth", "can-i", "*", "*") == "yes\n"
    assert "admin" in await kubectl("auth", "whoami")
    rejection = await kubectl("get", "secrets", *identity_options, code=1)
    assert 'User "system:serviceaccount:team:bot" cannot list resource "secrets"' in rejection
    token = (await kubectl("create", "token", "bot", "-n", "team")).strip()
    assert token.count(".") == 2


async def test_create_commands_send_protobuf_and_delete_takes_many(kubectl):
    """Tests `kubectl create` commands, which always send protobuf."""
    await kubectl("create", "configmap", "c", "--from-literal=a=1")
    await kubectl("create", "secret", "generic", "s", "--from-literal=p=x")
    await kubectl("create", "deployment", "d", "--image=x:1")
    await kubectl("expose", "deployment", "d", "--port=80")
    assert "service/d" in await kubectl("get", "svc", "-o", "name")
    assert await kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "1"
    await kubectl("create", "quota", "q", "--hard=cpu=500m,pods=2")
    await kubectl("create", "job", "j", "--image=busybox", "--", "true")
    await kubectl("create", "service", "clusterip", "s", "--tcp=80:web")
    assert await kubectl("get", "quota", "q", "-o", "jsonpath={.spec.hard}") == '{"cpu":"500m","pods":"2"}'
    assert await kubectl("get", "service", "s", "-o", "jsonpath={.spec.ports[0].targetPort}") == "web"
    deleted = await kubectl("delete", "cm/c", "secret/s", "deploy/d", "svc/d")
    assert deleted.count("deleted") == 4


async def test_apply_prunes_and_replace_replaces(kubectl):
    first_object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "labels": {"set": "a"}},
        "data": {"k": "1"},
    }
    two = {**first_object, "metadata": {"name": "two", "labels": {"set": "a"}}}
    two_objects = {"apiVersion": "v1", "kind": "List", "items": [first_object, two]}
    await kubectl("apply", "-f", "-", obj=two_objects)
    pruned = await kubectl(
        "apply", "--prune", "-l", "set=a", "--prune-allowlist=core/v1/ConfigMap", "-f", "-", obj=first_object
    )
    assert "configmap/two pruned" in pruned
    await kubectl("replace", "-f", "-", obj={**first_object, "data": {"k": "2"}})
    assert await kubectl("get", "cm", "one", "-o", "jsonpath={.data.k}") == "2"
    await kubectl("replace", "--force", "-f", "-", obj=first_object)
