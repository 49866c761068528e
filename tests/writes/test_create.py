"""create_only: an existing object is never changed, and a lost answer never creates two."""

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import UnknownOutcome
from fairlead.writes import ObjectDeleted, create_only


async def test_create_only_leaves_an_existing_object_unchanged(bench):
    theirs = await bench.config_map("shared", data={"x": "theirs"})
    existing = await create_only(bench.writer, ConfigMap("shared", bench.namespace, data={"x": "ours"}))
    assert existing == theirs
    assert await bench.live(theirs) == theirs


async def test_create_only_creates_a_missing_object_in_one_request(bench):
    created = await create_only(bench.writer, ConfigMap("shared", bench.namespace, data={"x": "ours"}))
    assert created["data"] == {"x": "ours"}
    assert bench.wire.writes == ["POST"]


async def test_lost_answer_of_a_create_is_looked_up(bench):
    bench.wire.lost = 1
    created = await create_only(bench.writer, ConfigMap("shared", bench.namespace, data={"x": "ours"}))
    assert created["data"] == {"x": "ours"}
    assert [method for method, _, _ in bench.wire.sent] == ["POST", "GET"]


async def test_create_only_reports_an_object_that_is_deleted_meanwhile(bench):
    """If someone else created it, it was deleted. If our own answer was lost, the outcome is unknown."""
    payload = ConfigMap("shared", bench.namespace, data={"x": "ours"})

    async def delete_it():
        await bench.other.delete(ConfigMap, "shared", bench.namespace)

    await bench.other.create(payload)
    bench.wire.then = [delete_it]
    with pytest.raises(ObjectDeleted):
        await create_only(bench.writer, payload)
    bench.wire.then, bench.wire.lost = [delete_it], 1
    with pytest.raises(UnknownOutcome):
        await create_only(bench.writer, payload)
