"""Tests that a dry run stores nothing for any verb, on both servers."""

import pytest

import fairlead as fl
from fairlead.api.errors import Conflict
from fairlead.client.client import Client, PatchType
from fairlead.runtime.transports import DryRunTransport
from fairlead.writes import Writer, delete


async def test_dry_run_stores_nothing_for_any_verb(api):
    stored_client = Client(api.transport(), fl.World())
    dry_run_client = Client(DryRunTransport(api.transport()), fl.World())
    created = await stored_client.create(fl.ConfigMap("settings", api.namespace, data={"colour": "red"}))
    await dry_run_client.create(fl.ConfigMap("other", api.namespace))
    await dry_run_client.replace(fl.Object({**created, "data": {"colour": "blue"}}))
    await dry_run_client.patch(fl.ConfigMap, "settings", api.namespace, {"data": None}, type=PatchType.MERGE)
    await dry_run_client.apply(fl.ConfigMap("settings", api.namespace, data={"size": "1"}), field_manager="test")
    await dry_run_client.delete(fl.ConfigMap, "settings", api.namespace)
    await dry_run_client.delete(
        fl.ConfigMap, "settings", api.namespace, uid=created.uid, resource_version=created.resource_version
    )
    await delete(Writer(dry_run_client, fl.World(), "test"), fl.ConfigMap, created, unchanged=True)
    remaining = (await stored_client.list(fl.ConfigMap, api.namespace)).items
    assert [(obj.name, obj.resource_version) for obj in remaining] == [("settings", created.resource_version)]


async def test_dry_run_checks_preconditions(api):
    stored_client = Client(api.transport(), fl.World())
    dry_run_client = Client(DryRunTransport(api.transport()), fl.World())
    await stored_client.create(fl.ConfigMap("settings", api.namespace))
    with pytest.raises(Conflict):
        await dry_run_client.delete(fl.ConfigMap, "settings", api.namespace, uid="another")
