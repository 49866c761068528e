"""Tests that prune deletes only children that we applied for this owner and that are unchanged since the read."""

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.writes import Writer, apply, prune


@pytest.fixture
async def owner(env):
    return await env.widget("owner", spec={"size": 1})


async def apply_children(env, owner, *names):
    return [await apply(env.writer, ConfigMap(name, data={"x": "y"}), owner=owner) for name in names]


async def test_prune_deletes_only_unneeded_children(env, owner):
    child_a, child_b = await apply_children(env, owner, "a", "b")
    pruned = await prune(env.writer, owner, ConfigMap, [child_a, child_b], [(env.namespace, "a")])
    assert pruned == [child_b]
    assert await env.exists(child_a)
    assert not await env.exists(child_b)


async def test_prune_keeps_children_of_another_owner(env, owner):
    """Tests the guard of the owner's uid."""
    other = await env.widget("other")
    foreign_children = await apply_children(env, other, "a")
    assert await prune(env.writer, owner, ConfigMap, foreign_children, []) == []
    assert await env.exists(foreign_children[0])


async def test_prune_keeps_children_that_we_did_not_apply(env, owner):
    """Tests the guard of our Apply entry."""
    by_another = await apply(Writer(env.foreign_client, env.world, "theirs"), ConfigMap("a"), owner=owner)
    unapplied_child = ConfigMap("b", env.namespace)
    unapplied_child["metadata"]["ownerReferences"] = by_another.metadata["ownerReferences"]
    by_hand = await env.foreign_client.create(unapplied_child, field_manager=env.writer.manager)
    assert await prune(env.writer, owner, ConfigMap, [by_another, by_hand], []) == []
    assert await env.exists(by_another)
    assert await env.exists(by_hand)


async def test_prune_keeps_a_child_that_changed(env, owner):
    """Tests the resourceVersion guard: another writer may have adopted the child."""
    [child] = await apply_children(env, owner, "a")
    await env.merge_patch(child, {"metadata": {"ownerReferences": None}})
    assert await prune(env.writer, owner, ConfigMap, [child], []) == []
    assert await env.exists(child)


async def test_prune_keeps_a_recreated_child(env, owner):
    """Tests the uid guard."""
    [child] = await apply_children(env, owner, "a")
    new = await env.recreate(child)
    await prune(env.writer, owner, ConfigMap, [child], [])
    assert await env.exists(new)
