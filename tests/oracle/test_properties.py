"""Tests of properties of apply and update that hold for every schema and every history.

The generated configurations contain no empty maps or lists. On a real server, too, `spec: {}` after `spec: {x: 1}`
becomes null, and an empty keyed list has no owner (the recordings show both). No value changes between map and scalar:
an apply without force then replaces a map whose parts another manager owns, without a conflict.
"""

import contextlib
import copy
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.server import ownership
from fairlead.server.ownership.comparison import compare
from fairlead.server.ownership.kind_versions import find_merge_schema

from .histories import SchemaGenerator, ValueGenerator
from .test_differential import NOW, Kind

API_VERSION = "example.com/v1"
seeds = st.integers(min_value=0, max_value=2**32)


class RandomObject:
    """One object of a random kind."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.model = SchemaGenerator(self.rng, loose=False).root()
        self.kind = Kind({"v1": self.model})
        self.live: Any = None
        self.managed = ownership.NO_MANAGED_FIELDS

    def generate_config(self) -> dict[str, Any]:
        return remove_empty(ValueGenerator(self.rng).object(self.model, "v1"))

    def empty_config(self) -> dict[str, Any]:
        return {"apiVersion": API_VERSION, "kind": "Widget", "metadata": {"name": "w"}}

    def apply(self, manager: str, config: dict[str, Any], *, force: bool = False) -> None:
        write = ownership.FieldWrite(manager, API_VERSION, self.kind, NOW)
        result = ownership.apply(self.live, self.managed, config, write, force=force)
        self.live, self.managed = result.object, result.managed

    def write(self, manager: str, new: dict[str, Any]) -> None:
        write = ownership.FieldWrite(manager, API_VERSION, self.kind, NOW)
        self.managed = ownership.update(self.live, self.managed, new, write)
        self.live = new

    def entries_of(self, manager: str) -> Any:
        return {entry.identity: entry.fields for entry in self.managed if entry.manager == manager}

    def differs(self, old: Any) -> bool:
        """Return whether the object differs from `old`. The order of list items is ignored."""
        schema = find_merge_schema(self.kind, API_VERSION)
        assert schema is not None
        return bool(compare(schema, old, self.live))


def remove_empty(value: Any) -> Any:
    """Return `value` without empty maps, empty lists and nulls."""
    if isinstance(value, dict):
        return {name: child for name, item in value.items() if (child := remove_empty(item)) not in ({}, [], None)}
    if isinstance(value, list):
        return [child for item in value if (child := remove_empty(item)) not in ({}, [], None)]
    return value


@given(seeds)
@settings(deadline=None)
def test_repeated_apply_changes_nothing(seed: int) -> None:
    obj = RandomObject(seed)
    obj.apply("a", obj.generate_config())
    obj.apply("b", obj.generate_config(), force=True)
    config = obj.generate_config()
    obj.apply("a", config, force=True)
    live, managed_fields = obj.live, obj.managed
    obj.apply("a", config)
    assert obj.live is live
    assert ownership.equal_except_times(obj.managed, ownership.encode(managed_fields))


@given(seeds)
@settings(deadline=None)
def test_empty_apply_keeps_the_fields_of_another_applier(seed: int) -> None:
    obj = RandomObject(seed)
    config = obj.generate_config()
    obj.apply("a", obj.generate_config())
    obj.apply("b", config, force=True)
    owned_entries = obj.entries_of("b")
    obj.apply("a", obj.empty_config())
    assert not obj.entries_of("a")
    assert obj.entries_of("b") == owned_entries
    live = obj.live
    obj.apply("b", config)  # It conflicts with no one and restores nothing.
    assert not obj.differs(live)


@given(seeds)
@settings(deadline=None)
def test_unforced_apply_changes_no_field_of_another_manager(seed: int) -> None:
    obj = RandomObject(seed)
    config = obj.generate_config()
    obj.apply("a", config)
    if obj.rng.random() < 0.5:
        obj.write("w", {**obj.generate_config(), "metadata": {"name": "w", "uid": "u"}})
        config = obj.generate_config()
        obj.apply("a", config, force=True)
    owned_entries = obj.entries_of("a")
    with contextlib.suppress(ownership.FieldConflict):
        obj.apply("x", obj.generate_config())
    assert obj.entries_of("a") == owned_entries
    live = obj.live
    obj.apply("a", config)
    assert not obj.differs(live)


@given(seeds)
@settings(deadline=None)
def test_managed_fields_are_equal_after_encoding_and_decoding(seed: int) -> None:
    obj = RandomObject(seed)
    obj.apply("a", obj.generate_config())
    obj.write("w", {**obj.generate_config(), "metadata": {"name": "w"}})
    read = ownership.decode(ownership.encode(obj.managed))
    assert ownership.equal_except_times(read, ownership.encode(obj.managed))
    assert ownership.encode(read) == ownership.encode(obj.managed)


@given(seeds)
@settings(deadline=None)
def test_writes_do_not_change_their_arguments(seed: int) -> None:
    obj = RandomObject(seed)
    obj.apply("a", obj.generate_config())
    live, config = obj.live, obj.generate_config()
    copies = copy.deepcopy([live, config, ownership.encode(obj.managed)])
    managed_fields = obj.managed
    obj.apply("a", config, force=True)
    obj.write("w", {**obj.generate_config(), "metadata": {"name": "w"}})
    assert [live, config, ownership.encode(managed_fields)] == copies
