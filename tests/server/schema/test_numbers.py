"""Tests of the text of numbers in custom resources. The expected responses are a real server's."""

import asyncio
import json
import re

import pytest

from fairlead.api.requests import HttpRequest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FIELDS = {
    "integer": {"type": "integer"},
    "int32": {"type": "integer", "format": "int32"},
    "number": {"type": "number"},
    "either": {"x-kubernetes-int-or-string": True},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
}
WRITTEN = {
    "1.0": "1",
    "-0": "0",
    "-0.0": "0",
    "1E5": "100000",
    "100e-2": "1",
    "1e-6": "0.000001",
    "1e-7": "1e-7",
    "1e-400": "0",
    "1e20": "100000000000000000000",
    "1e21": "1e+21",
    "123456789012345678901": "123456789012345680000",
    "99999999999999999999": "100000000000000000000",
    "9007199254740993": "9007199254740993",
    "9007199254740993.0": "9007199254740992",
    "9223372036854775808": "9223372036854776000",
    "-9223372036854775809": "-9223372036854776000",
    "18446744073709551616": "18446744073709552000",
    "1.5e300": "1.5e+300",
}
WHOLE = "spec.integer in body must be of type integer"
CHECKED = "Checked value must be of type integer (default format) in spec.integer"
REJECTED = {
    ("integer", "1e-10"): [WHOLE, CHECKED],
    ("integer", "5e-324"): [WHOLE, CHECKED],
    ("integer", "1.9999999999"): [WHOLE, CHECKED],
    ("integer", "-1.0000000001"): [WHOLE, CHECKED],
    ("integer", "9223372036854775808"): [WHOLE, CHECKED],
    ("integer", "-9223372036854775809"): [WHOLE, CHECKED],
    ("integer", "9007199254740993.0"): [WHOLE],
    ("int32", "9223372036854775808"): [
        "spec.int32 in body must be of type int32",
        "Checked value must be of type integer with format int32 in spec.int32",
    ],
    ("either", "99999999999999999999"): ["spec.either in body must be of type integer,string"],
    ("either", "5e-324"): ["spec.either in body must be of type integer,string"],
}
MERGE, JSON, APPLY = (f"application/{name}" for name in ("merge-patch+json", "json-patch+json", "apply-patch+yaml"))


class Widgets:
    """A custom resource with a field of each type, in its own API group."""

    def __init__(self, api):
        self._transport = api.transport()
        self.group = f"{api.namespace}.example.com"
        self.path = f"/apis/{self.group}/v1/widgets"

    async def __aenter__(self):
        spec = {"type": "object", "properties": FIELDS}
        version = {"name": "v1", "served": True, "storage": True}
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{self.group}"},
            "spec": {"group": self.group, "scope": "Cluster", "names": names, "versions": [version]},
        }
        assert (await self._request("POST", DEFINITIONS, json.dumps(body)))[0] == 201
        for _ in range(600):  # A real server serves a new kind with a delay.
            if (await self._request("GET", self.path))[0] == 200:
                break
            await asyncio.sleep(0.05)
        return self

    async def __aexit__(self, *_):
        await self._request("DELETE", f"{DEFINITIONS}/widgets.{self.group}")

    async def _request(self, method, path, body="", media="application/json", query=None):
        headers = {"Content-Type": media} if body else {}
        response = await self._transport.request(
            HttpRequest(method, path, body=body.encode() or None, headers=headers, query=query)
        )
        return response.status, response.body.decode()

    async def create(self, name, spec):
        return await self._request("POST", self.path, self.object(name, spec))

    async def patch(self, name, body, media):
        query = {"fieldManager": "m"} if media == APPLY else None
        return await self._request("PATCH", f"{self.path}/{name}", body, media, query)

    async def get(self, name):
        return await self._request("GET", f"{self.path}/{name}")

    def object(self, name, spec):
        type_and_name = f'"apiVersion":"{self.group}/v1","kind":"Widget","metadata":{{"name":"{name}"}}'
        return f'{{{type_and_name},"spec":{spec}}}'


def number_text(answer, field):
    return re.search(rf'"{field}":\s*([^,}}\s]+)', answer[1])[1]


@pytest.mark.parametrize("field", ["number", "any"])
async def test_number_is_written_as_go_writes_it(api, field):
    async with Widgets(api) as widgets:
        results = {}
        for index, number in enumerate(WRITTEN):
            spec, created, patched = f'{{"{field}":{number}}}', f"c{index}", f"p{index}"
            answers = [await widgets.create(created, spec), await widgets.get(created)]
            answers.append(await widgets.patch(f"a{index}", widgets.object(f"a{index}", spec), APPLY))
            await widgets.create(patched, "{}")
            answers.append(await widgets.patch(patched, f'{{"spec":{spec}}}', MERGE))
            operation = f'{{"op":"add","path":"/spec/{field}","value":{number}}}'
            answers.append(await widgets.patch(patched, f"[{operation}]", JSON))
            texts = {number_text(answer, field) for answer in answers}
            results[number] = texts.pop() if len(texts) == 1 else texts
        assert results == WRITTEN


async def test_non_integer_is_rejected_for_an_integer_field(api):
    async with Widgets(api) as widgets:
        results = {}
        for field, number in REJECTED:
            status, body = await widgets.create("w", f'{{"{field}":{number}}}')
            causes = [cause["message"] for cause in json.loads(body)["details"]["causes"]] if status == 422 else body
            results[field, number] = [re.sub(r'^Invalid value: "\w*": |: "\w+"$', "", cause) for cause in causes]
        assert {key: sorted(causes) for key, causes in results.items()} == {
            key: sorted(causes) for key, causes in REJECTED.items()
        }


async def test_number_too_large_for_a_float_is_rejected(api):
    async with Widgets(api) as widgets:
        status, body = await widgets.create("w", '{"any":1e400}')
        message = "json: cannot unmarshal number 1e400 into Go {} of type float64"
        handled = 'Widget in version "v1" cannot be handled as a Widget'
        assert (status, json.loads(body)["message"]) == (400, f"{handled}: {message.format('value')}")
        await widgets.create("w", "{}")
        status, body = await widgets.patch("w", '[{"op":"add","path":"/spec/any","value":1e400}]', JSON)
        field = message.format("struct field jsonPatchOp.value")
        assert (status, json.loads(body)["message"]) == (400, f"error decoding patch: {field}")


@pytest.mark.parametrize(
    ("stored", "tested", "status"),
    [
        ("1", "1", 200),
        ("1", "1.0", 422),
        ("1.0", "1", 200),
        ("1e20", "100000000000000000000", 200),
        ("1e20", "1e20", 422),
    ],
)
async def test_json_patch_test_compares_the_written_number(api, stored, tested, status):
    async with Widgets(api) as widgets:
        await widgets.create("w", f'{{"any":{stored}}}')
        assert (await widgets.patch("w", f'[{{"op":"test","path":"/spec/any","value":{tested}}}]', JSON))[0] == status
