"""prune deletes only children that we applied for this owner and that have not changed since they were read."""

import pytest

from fairlead.api.builtin import ConfigMap
from fairlead.writes import Writer, apply, prune


@pytest.fixture
async def owner(bench):
    return await bench.widget("owner", spec={"size": 1})


async def children(bench, owner, *names):
    return [await apply(bench.writer, ConfigMap(name, data={"x": "y"}), owner=owner) for name in names]


async def test_prune_deletes_only_unneeded_children(bench, owner):
    a, b = await children(bench, owner, "a", "b")
    pruned = await prune(bench.writer, owner, ConfigMap, [a, b], [(bench.namespace, "a")])
    assert pruned == [b]
    assert await bench.exists(a)
    assert not await bench.exists(b)


async def test_prune_keeps_children_of_another_owner(bench, owner):
    """Guard: the owner's uid."""
    other = await bench.widget("other")
    theirs = await children(bench, other, "a")
    assert await prune(bench.writer, owner, ConfigMap, theirs, []) == []
    assert await bench.exists(theirs[0])


async def test_prune_keeps_children_that_we_did_not_apply(bench, owner):
    """Guard: our Apply entry."""
    by_another = await apply(Writer(bench.other, bench.world, "theirs"), ConfigMap("a"), owner=owner)
    plain = ConfigMap("b", bench.namespace)
    plain["metadata"]["ownerReferences"] = by_another.metadata["ownerReferences"]
    by_hand = await bench.other.create(plain, field_manager=bench.writer.manager)
    assert await prune(bench.writer, owner, ConfigMap, [by_another, by_hand], []) == []
    assert await bench.exists(by_another)
    assert await bench.exists(by_hand)


async def test_prune_keeps_a_child_that_changed(bench, owner):
    """Guard: the resourceVersion. Someone may have taken the child over."""
    [child] = await children(bench, owner, "a")
    await bench.merge(child, {"metadata": {"ownerReferences": None}})
    assert await prune(bench.writer, owner, ConfigMap, [child], []) == []
    assert await bench.exists(child)


async def test_prune_keeps_a_recreated_child(bench, owner):
    """Guard: the uid."""
    [child] = await children(bench, owner, "a")
    new = await bench.recreate(child)
    await prune(bench.writer, owner, ConfigMap, [child], [])
    assert await bench.exists(new)
