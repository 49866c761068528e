"""The rules for Python, on small modules of the client libraries."""

import pytest

from fairlead.tools.lint.python_rules import lint_python

CASES = {
    "official client, custom object": (
        """
import kubernetes
def add(api, name):
    patch = {"metadata": {"finalizers": ["mine"]}}
    api.patch_namespaced_custom_object("g", "v1", "ns", "carts", name, patch)
""",
        ["W201"],
    ),
    "official client, built-in kind: a strategic merge patch keeps the others": (
        """
import kubernetes
def add(api, name):
    api.patch_namespaced_pod(name, "ns", body={"metadata": {"finalizers": ["mine"]}})
""",
        [],
    ),
    "official client, with a version": (
        """
import kubernetes
def add(api, obj):
    patch = {"metadata": {"finalizers": ["mine"], "resourceVersion": obj["metadata"]["resourceVersion"]}}
    api.patch_namespaced_custom_object("g", "v1", "ns", "carts", "a", patch)
""",
        [],
    ),
    "a wrapper in the same module": (
        """
import kubernetes
class Cart:
    def _patch(self, name, patch):
        return self.api.patch_namespaced_custom_object("g", "v1", "ns", "carts", name, body=patch)
    def add(self, fin):
        patch = {"metadata": {"finalizers": [f for f in self.finalizers if f != fin]}}
        self._patch("a", patch)
""",
        ["W201"],
    ),
    "kr8s sends merge patches": (
        """
import kr8s
async def add(cart):
    await cart.patch({"metadata": {"finalizers": ["mine"]}})
""",
        ["W201"],
    ),
    "lightkube, merge and strategic": (
        """
from lightkube import Client
from lightkube.types import PatchType
def add(client: Client):
    client.patch(Cart, "a", {"metadata": {"finalizers": ["mine"]}}, patch_type=PatchType.MERGE)
    client.patch(Pod, "a", {"metadata": {"finalizers": ["mine"]}}, patch_type=PatchType.STRATEGIC)
""",
        ["W201"],
    ),
    "fairlead's raw client": (
        """
import fairlead as fl
async def add(ctx, cart):
    patch = {"metadata": {"finalizers": [*cart.finalizers, "mine"]}}
    await ctx.unguarded.patch(Cart, cart.name, cart.namespace, patch, type=PatchType.MERGE)
""",
        ["W201"],
    ),
    "fairlead's guarded writes": (
        """
import fairlead as fl
async def reconcile(ctx, cart):
    await ctx.apply(child)
    await ctx.delete(Kind, child)
""",
        [],
    ),
    "create, then replace without a version": (
        """
import fairlead as fl
async def ensure(client, obj):
    try:
        await client.create(obj)
    except AlreadyExists:
        await client.replace(obj)
""",
        ["W101"],
    ),
    "create, then read and replace": (
        """
import fairlead as fl
async def ensure(client, obj):
    try:
        await client.create(obj)
    except AlreadyExists:
        live = await client.get(Kind, obj.name)
        await client.replace(change(live))
""",
        [],
    ),
    "create, then skip": (
        """
import kubernetes
def ensure(api, body):
    try:
        api.create_namespaced_secret("ns", body)
    except ApiException as error:
        if error.status != 409:
            raise
""",
        ["W105"],
    ),
    "exists, then create": (
        """
import kr8s
async def ensure(secret):
    if not await secret.exists():
        await secret.create()
""",
        ["W105"],
    ),
    "any error is taken for absence": (
        """
import kubernetes
def ensure(api, name, body):
    try:
        api.read_namespaced_secret(name, "ns")
    except ApiException:
        api.create_namespaced_secret("ns", body)
""",
        ["W501"],
    ),
    "only 404 is absence": (
        """
import kubernetes
def ensure(api, name, body):
    try:
        api.read_namespaced_secret(name, "ns")
    except ApiException as error:
        if error.status != 404:
            raise
        api.create_namespaced_secret("ns", body)
""",
        [],
    ),
    "a status that decides": (
        """
import kubernetes
def plan(api, cart):
    if cart.status is None:
        api.patch_namespaced_custom_object_status("g", "v1", "ns", "carts", "a", {"status": {"plan": 1}})
""",
        ["W204"],
    ),
    "the error of a status write is swallowed": (
        """
import kubernetes
def report(api, body):
    try:
        api.replace_namespaced_custom_object_status("g", "v1", "ns", "carts", "a", body)
    except Exception:
        pass
""",
        ["W205", "W502"],
    ),
    "another use of the same names": (
        """
import kubernetes
def text(path):
    return path.replace("a", "b")
""",
        [],
    ),
    "no Kubernetes library: nothing is judged": (
        """
def add(api):
    api.patch_namespaced_custom_object("g", "v1", "ns", "carts", "a", {"metadata": {"finalizers": ["kubernetes"]}})
""",
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_python_requests_are_judged_by_what_they_send(name):
    source, wanted = CASES[name]
    findings, _, _, note = lint_python("module.py", source)
    assert note == ""
    assert sorted(f.rule.code for f in findings if f.rule.code != "W701") == wanted


def test_a_broken_module_is_noted():
    findings, _, _, note = lint_python("module.py", "import kubernetes\ndef (")
    assert findings == []
    assert note.startswith("module.py: skipped, it is not valid Python")
