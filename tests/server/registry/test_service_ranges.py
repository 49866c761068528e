"""Validation of IPAddresses and ServiceCIDRs. The same on both servers."""

import json

import pytest

from fairlead.api.requests import HttpRequest

ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
RANGES = "/apis/networking.k8s.io/v1/servicecidrs"
PARENT = {"resource": "pods", "namespace": "default", "name": "someone"}
MERGE = {"Content-Type": "application/merge-patch+json"}


async def send(api, method, path, body=None, headers=None):
    """Return the status code, and the causes if the server rejects the object."""
    headers = headers or {"Content-Type": "application/json"}
    response = await api.transport().request(HttpRequest(method, path, headers=headers, body=json.dumps(body).encode()))
    causes = (json.loads(response.body).get("details") or {}).get("causes") or ()
    return response.status, [(cause["field"], cause["message"]) for cause in causes]


@pytest.mark.parametrize("name", ["192.0.2.7", "fe80::7", "2001:db8::7:0"])
async def test_an_address_is_named_by_its_canonical_form(api, name):
    assert await send(api, "POST", ADDRESSES, {"metadata": {"name": name}, "spec": {"parentRef": PARENT}}) == (201, [])
    changed = {"spec": {"parentRef": {"name": "other"}}}
    shown = '{"Group":"","Resource":"pods","Namespace":"default","Name":"other"}'
    cause = ("spec.parentRef", f"Invalid value: {shown}: field is immutable")
    assert await send(api, "PATCH", f"{ADDRESSES}/{name}", changed, MERGE) == (422, [cause])
    await send(api, "DELETE", f"{ADDRESSES}/{name}")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("192.0.2.077", "must not have leading 0s"),
        ("192.0.2", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ("FE80::2", 'must be in canonical form ("fe80::2")'),
        ("fe80:0::3", 'must be in canonical form ("fe80::3")'),
        ("::ffff:192.0.2.9", "must not be an IPv4-mapped IPv6 address"),
    ],
)
async def test_another_name_of_an_address_is_rejected(api, name, problem):
    answer = await send(api, "POST", ADDRESSES, {"metadata": {"name": name}, "spec": {"parentRef": PARENT}})
    assert answer == (422, [("metadata.name", f'Invalid value: "{name}": {problem}')])


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({}, ["spec.parentRef"]),
        ({"parentRef": {}}, ["spec.parentRef.resource", "spec.parentRef.name"]),
    ],
)
async def test_an_address_needs_a_parent(api, spec, fields):
    answer = await send(api, "POST", ADDRESSES, {"metadata": {"name": "192.0.2.8"}, "spec": spec})
    assert answer == (422, [(field, "Required value") for field in fields])


ONE_PER_FAMILY = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


@pytest.mark.parametrize(
    ("cidrs", "cause"),
    [
        ([], ("spec.cidrs", "Required value: at least one CIDR required")),
        (
            ["192.0.2.1/24"],
            ("spec.cidrs[0]", 'Invalid value: "192.0.2.1/24": must not have bits set beyond the prefix length'),
        ),
        (
            ["x"],
            ("spec.cidrs[0]", 'Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'),
        ),
        (
            ["192.0.2.0/25", "192.0.2.128/25"],
            ("spec.cidrs", f'Invalid value: ["192.0.2.0/25","192.0.2.128/25"]: {ONE_PER_FAMILY}'),
        ),
        (["a", "b", "c"], ("spec.cidrs", 'Invalid value: {"CIDRs":["a","b","c"]}: may only hold up to 2 values')),
    ],
)
async def test_a_wrong_service_range_is_rejected(api, cidrs, cause):
    answer = await send(api, "POST", RANGES, {"metadata": {"name": "wrong"}, "spec": {"cidrs": cidrs}})
    assert answer == (422, [cause])


async def test_a_service_range_is_immutable(api):
    cause = ("spec.cidrs[0]", 'Invalid value: "10.0.0.0/16": field is immutable')
    patch = {"spec": {"cidrs": ["10.0.0.0/16"]}}
    assert await send(api, "PATCH", f"{RANGES}/kubernetes", patch, MERGE) == (422, [cause])


@pytest.mark.parametrize(("others", "status"), [("", 406), (",application/json", 201)])
async def test_a_review_has_no_table(api, others, status):
    accept = f"application/json;as=Table;g=meta.k8s.io;v=v1{others}"
    headers = {"Content-Type": "application/json", "Accept": accept}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert (await send(api, "POST", path, {}, headers))[0] == status
