"""Tests of create_only: it never changes an existing object, and a lost response never creates a second one."""

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.api.errors import UnknownOutcome
from fairlead.writes import ObjectDeleted, create_only


async def test_create_only_leaves_an_existing_object_unchanged(env):
    foreign_object = await env.config_map("shared", data={"x": "theirs"})
    existing = await create_only(env.writer, ConfigMap("shared", env.namespace, data={"x": "ours"}))
    assert existing == foreign_object
    assert await env.get_live(foreign_object) == foreign_object


async def test_create_only_creates_a_missing_object_in_one_request(env):
    created = await create_only(env.writer, ConfigMap("shared", env.namespace, data={"x": "ours"}))
    assert created["data"] == {"x": "ours"}
    assert env.faulty_transport.writes == ["POST"]


async def test_lost_answer_of_a_create_is_looked_up(env):
    env.faulty_transport.lost_responses = 1
    created = await create_only(env.writer, ConfigMap("shared", env.namespace, data={"x": "ours"}))
    assert created["data"] == {"x": "ours"}
    assert [method for method, _, _ in env.faulty_transport.sent_requests] == ["POST", "GET"]


async def test_create_only_reports_an_object_that_is_deleted_meanwhile(env):
    """Tests an object that is deleted before the read. After a lost response, the outcome is unknown."""
    payload = ConfigMap("shared", env.namespace, data={"x": "ours"})

    async def delete_it():
        await env.foreign_client.delete(ConfigMap, "shared", env.namespace)

    await env.foreign_client.create(payload)
    env.faulty_transport.after_writes = [delete_it]
    with pytest.raises(ObjectDeleted):
        await create_only(env.writer, payload)
    env.faulty_transport.after_writes, env.faulty_transport.lost_responses = [delete_it], 1
    with pytest.raises(UnknownOutcome):
        await create_only(env.writer, payload)
