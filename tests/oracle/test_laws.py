"""Laws of merging that hold for every schema and every history.

Payloads here hold no empty containers: on a real server too, `spec: {}` after `spec: {x: 1}` becomes null, and an empty
keyed list is owned by no one (the recordings have both). Nor does a place change between map and scalar: there an
unforced apply replaces a map, without a conflict, whose parts another owns.
"""

import contextlib
import copy
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.server import ownership
from fairlead.server.ownership.comparing import compare
from fairlead.server.ownership.schemas import shape_at

from .histories import Schemas, Values
from .test_differential import Kind

API_VERSION = "example.com/v1"
seeds = st.integers(min_value=0, max_value=2**32)


class World:
    """A random kind, and one object of it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.model = Schemas(self.chance, loose=False).root()
        self.schemas = Kind({"v1": self.model})
        self.live: Any = None
        self.managed = ownership.NOTHING

    def config(self) -> dict[str, Any]:
        return full(Values(self.chance).object(self.model, "v1"))

    def nothing(self) -> dict[str, Any]:
        return {"apiVersion": API_VERSION, "kind": "Widget", "metadata": {"name": "w"}}

    def apply(self, manager: str, config: dict[str, Any], *, force: bool = False) -> None:
        made = ownership.apply(
            self.live,
            self.managed,
            config,
            manager=manager,
            force=force,
            api_version=API_VERSION,
            schemas=self.schemas,
            now="2026-01-01T00:00:00Z",
        )
        self.live, self.managed = made.object, made.managed

    def write(self, manager: str, new: dict[str, Any]) -> None:
        self.managed = ownership.update(
            self.live,
            self.managed,
            new,
            manager=manager,
            api_version=API_VERSION,
            schemas=self.schemas,
            now="2026-01-01T00:00:00Z",
        )
        self.live = new

    def owned(self, manager: str) -> Any:
        return {entry.identity: entry.fields for entry in self.managed if entry.manager == manager}

    def differs(self, old: Any) -> bool:
        """Whether the object is another than `old`, the order of lists' items aside."""
        shape = shape_at(self.schemas, API_VERSION)
        assert shape is not None
        return bool(compare(shape, old, self.live))


def full(value: Any) -> Any:
    """`value` without its empty containers and nulls."""
    if isinstance(value, dict):
        return {name: kept for name, below in value.items() if (kept := full(below)) not in ({}, [], None)}
    if isinstance(value, list):
        return [kept for item in value if (kept := full(item)) not in ({}, [], None)]
    return value


@given(seeds)
@settings(deadline=None)
def test_an_apply_repeated_is_no_write(seed: int) -> None:
    world = World(seed)
    world.apply("a", world.config())
    world.apply("b", world.config(), force=True)
    config = world.config()
    world.apply("a", config, force=True)
    live, managed = world.live, world.managed
    world.apply("a", config)
    assert world.live is live
    assert ownership.same_but_times(world.managed, ownership.encode(managed))


@given(seeds)
@settings(deadline=None)
def test_giving_everything_up_leaves_what_another_applier_owns(seed: int) -> None:
    world = World(seed)
    theirs = world.config()
    world.apply("a", world.config())
    world.apply("b", theirs, force=True)
    owned = world.owned("b")
    world.apply("a", world.nothing())
    assert not world.owned("a")
    assert world.owned("b") == owned
    live = world.live
    world.apply("b", theirs)  # would conflict with no one, and restores nothing
    assert not world.differs(live)


@given(seeds)
@settings(deadline=None)
def test_no_unforced_apply_changes_what_only_another_owns(seed: int) -> None:
    world = World(seed)
    theirs = world.config()
    world.apply("a", theirs)
    if world.chance.random() < 0.5:
        world.write("w", {**world.config(), "metadata": {"name": "w", "uid": "u"}})
        theirs = world.config()
        world.apply("a", theirs, force=True)
    owned = world.owned("a")
    with contextlib.suppress(ownership.FieldConflict):
        world.apply("x", world.config())
    assert world.owned("a") == owned
    live = world.live
    world.apply("a", theirs)
    assert not world.differs(live)


@given(seeds)
@settings(deadline=None)
def test_managed_fields_survive_the_wire(seed: int) -> None:
    world = World(seed)
    world.apply("a", world.config())
    world.write("w", {**world.config(), "metadata": {"name": "w"}})
    read = ownership.decode(ownership.encode(world.managed))
    assert ownership.same_but_times(read, ownership.encode(world.managed))
    assert ownership.encode(read) == ownership.encode(world.managed)


@given(seeds)
@settings(deadline=None)
def test_no_write_changes_what_it_was_given(seed: int) -> None:
    world = World(seed)
    world.apply("a", world.config())
    live, config = world.live, world.config()
    kept = copy.deepcopy([live, config, ownership.encode(world.managed)])
    managed = world.managed
    world.apply("a", config, force=True)
    world.write("w", {**world.config(), "metadata": {"name": "w"}})
    assert [live, config, ownership.encode(managed)] == kept
