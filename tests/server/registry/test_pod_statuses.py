"""The addresses in the status of a Pod. Each row is true of the embedded and of the real server."""

import pytest

from fairlead.server.registry.validation import statuses

from .objects import MERGE_PATCH, collection_path, field_errors, new_object, send

ADDRESSES = [  # podIPs, and the errors
    ([{"ip": "10.0.0.1"}, {"ip": "2001:db8::1"}], []),
    ([{}], ["Invalid status.podIPs[0]"]),
    ([{"ip": "10.0.0.1"}, {}], ["Invalid status.podIPs[1]", "InternalError status.podIPs", "Invalid status.podIPs"]),
    ([{"ip": "010.0.0.1"}, {"ip": "2001:db8::1"}], ["Invalid status.podIPs[0]"]),
    ([{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], ["Invalid status.podIPs"]),
]


@pytest.mark.parametrize("index", range(len(ADDRESSES)))
async def test_pod_status_has_one_valid_address_per_family(api, index):
    addresses, errors = ADDRESSES[index]
    path = collection_path(api, "pods")
    code, body = await send(api, "POST", path, new_object("pods", "p"))
    assert code == 201, body
    code, body = await send(api, "PATCH", f"{path}/p/status", {"status": {"podIPs": addresses}}, MERGE_PATCH)
    assert (code, field_errors(body)) == (422 if errors else 200, errors), body


def test_stored_addresses_without_ip_are_not_an_internal_error():
    stored = {"status": {"podIPs": [{}, {}]}}
    errors = statuses.pod({"status": {"podIPs": [{}, {}]}}, stored)
    assert [error.field for error in errors] == ["status.podIPs", "status.podIPs"]
