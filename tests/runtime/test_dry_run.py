"""A dry run stores nothing for any verb, on both servers."""

import pytest

import fairlead as fl
from fairlead.api.errors import Conflict
from fairlead.client.client import Client, PatchType
from fairlead.runtime.transports import DryRunTransport
from fairlead.writes import Writer, delete


async def test_dry_run_stores_nothing_for_any_verb(api):
    plain = Client(api.transport(), fl.World())
    dry = Client(DryRunTransport(api.transport()), fl.World())
    made = await plain.create(fl.ConfigMap("settings", api.namespace, data={"colour": "red"}))
    await dry.create(fl.ConfigMap("other", api.namespace))
    await dry.replace(fl.Object({**made, "data": {"colour": "blue"}}))
    await dry.patch(fl.ConfigMap, "settings", api.namespace, {"data": None}, type=PatchType.MERGE)
    await dry.apply(fl.ConfigMap("settings", api.namespace, data={"size": "1"}), field_manager="test")
    await dry.delete(fl.ConfigMap, "settings", api.namespace)
    await dry.delete(fl.ConfigMap, "settings", api.namespace, uid=made.uid, resource_version=made.resource_version)
    await delete(Writer(dry, fl.World(), "test"), fl.ConfigMap, made, unchanged=True)
    left = (await plain.list(fl.ConfigMap, api.namespace)).items
    assert [(obj.name, obj.resource_version) for obj in left] == [("settings", made.resource_version)]


async def test_dry_run_checks_preconditions(api):
    plain = Client(api.transport(), fl.World())
    dry = Client(DryRunTransport(api.transport()), fl.World())
    await plain.create(fl.ConfigMap("settings", api.namespace))
    with pytest.raises(Conflict):
        await dry.delete(fl.ConfigMap, "settings", api.namespace, uid="another")
