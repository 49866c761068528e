"""The traces of all functions of a tree, and how a call replays the trace of the called function."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterable

from fairlead.tools.lint.analysis.calls import Calls
from fairlead.tools.lint.analysis.places import lineage, reads_itself, retyped
from fairlead.tools.lint.analysis.values import (
    UNKNOWN,
    Arm,
    Changed,
    Condition,
    ErrorOf,
    Event,
    Fact,
    Function,
    Invocation,
    Json,
    Meaning,
    Mutation,
    Nothing,
    Overwrite,
    PatchHelper,
    PatchOf,
    Place,
    Read,
    Region,
    Thing,
    Trace,
    Value,
    Write,
    limit,
    merge,
    normalize,
)
from fairlead.tools.lint.analysis.walker import Walker, numbers
from fairlead.tools.lint.golang.module import SourceTree
from fairlead.tools.lint.golang.parsing import parse_body
from fairlead.tools.lint.golang.syntax import FunctionDecl, Stmt
from fairlead.tools.lint.golang.types import GoType, Named, named
from fairlead.tools.lint.models import Models

MAX_REPLAYED = 120
"""How many events of a called function are replayed: enough for helpers, and a bound for whole subsystems."""
MAX_DEPTH = 40
RECONCILED = re.compile(rb"\.For\(\s*&([\w.]+)\{")
UNIMPORTANT = re.compile(r"(Time|Timestamp|Message|Reason|ObservedGeneration|Name|Namespace|Kind|APIVersion)$")
"""Fields that describe. A condition that compares them does not decide what happens next."""
CHANGES_OTHERS = frozenset({"create", "delete", "create-or-update", "create-or-patch", "apply"})
NOT_A_CONTROLLER = re.compile(r"(^|/)(cmd|hack|tests?|e2e|plugin|cli|\w*ctl|webhooks?|validation)/")


class Program:
    """Traces of functions, each made once."""

    def __init__(self, tree: SourceTree, models: Models) -> None:
        self.tree = tree
        self.models = models
        self.calls = Calls(self)
        self._traces: dict[FunctionDecl, Trace] = {}
        self._bodies: dict[FunctionDecl, list[Stmt]] = {}
        self._effects: dict[FunctionDecl, list[Event]] = {}
        self._depth = 0
        self._gates: dict[tuple[Named, str], tuple[str, int]] = {}
        self._reads: dict[tuple[Named, str], tuple[str, int]] = {}
        self._created: set[tuple[str, str]] = set()
        self._reconciled: set[tuple[str, str]] = set()
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))

    def body(self, decl: FunctionDecl) -> list[Stmt]:
        if decl not in self._bodies:
            self._bodies[decl] = parse_body(decl)
        return self._bodies[decl]

    def trace(self, decl: FunctionDecl) -> Trace:
        """Return what a function does. A function that calls itself sees an empty trace of itself."""
        known = self._traces.get(decl)
        if known is not None:
            return known
        self._traces[decl] = Trace(decl)
        if self._depth >= MAX_DEPTH:
            del self._traces[decl]
            return Trace(decl)
        self._depth += 1
        try:
            trace = Walker(self, decl).run()
        finally:
            self._depth -= 1
        self._traces[decl] = trace
        self._bodies.pop(decl, None)
        return trace

    def effects(self, trace: Trace) -> list[Event]:
        """Return the events that matter to a caller: requests, and changes of objects that the caller can see."""
        known = self._effects.get(trace.decl)
        if known is not None:
            return known
        visible: set[Thing] = set(trace.parameters.values())
        for values in trace.returns:
            for value in values:
                visible.update(place.thing for place in value.places())
        for event in trace.events:
            if isinstance(event, Write):
                visible.add(event.place.thing)
        for thing in list(visible):
            visible.update(lineage(thing))
        by_value = {t for t in trace.parameters.values() if is_passed_by_value(self.tree, t)}
        effects = [
            event
            for event in trace.events
            if not isinstance(event, Mutation | Overwrite)
            or (event.place.thing not in by_value and any(t in visible for t in lineage(event.place.thing)))
        ][:MAX_REPLAYED]
        if trace.is_complete and trace.returns is not None:
            self._effects[trace.decl] = effects
        return effects

    # ---------------------------------------------------------------------------------------------- whole program

    def look_at(self, functions: list[FunctionDecl]) -> None:
        """Trace functions, and note what rules need to know of the whole program."""
        for function in functions:
            trace = self.trace(function)
            self._note_gates(trace)
            for event in trace.events:
                if isinstance(event, Write) and event.verb in (
                    "create",
                    "create-or-update",
                    "create-or-patch",
                    "apply",
                ):
                    kind = named(event.kind)
                    if kind is not None:
                        self._created.add((kind.path, kind.name))
        for package in self.tree.packages.values():
            for file in package.files:
                for function in file.functions:
                    for match in RECONCILED.finditer(function.text):
                        kind = named(self.tree.type_of(match.group(1).decode(), file))
                        if kind is not None:
                            self._reconciled.add((kind.path, kind.name))

    def look_at_conditions(self, functions: Iterable[FunctionDecl]) -> None:
        """Note which fields the conditions of other functions read."""
        for function in functions:
            if not function.file.is_generated:
                self._note_gates(self.trace(function))

    def _note_gates(self, trace: Trace) -> None:
        if NOT_A_CONTROLLER.search(trace.decl.file.path):
            return
        writes = [e for e in trace.events if isinstance(e, Write) and not e.is_status]
        for key, arm, line in trace.gates:
            if UNIMPORTANT.search(key[1]):
                continue
            self._reads.setdefault(key, (trace.decl.file.path, line))
            others = [w for w in writes if w.verb in CHANGES_OTHERS or not is_status_of(key[0], named(w.kind))]
            inside = any(any(a.branch == arm.branch for a in write.arms) for write in others)
            after = bool(arm.ends) and any(write.line > line for write in others)
            if inside or after:
                self._gates.setdefault(key, (trace.decl.file.path, line))

    def decided_by(self, change: Mutation, is_strict: bool) -> tuple[str, int] | None:
        """Return where a condition reads the field that changes, or a field of the struct that is replaced.

        Strict: something else is created, changed or deleted depending on that condition.
        """
        gates = self._gates if is_strict else self._reads
        if change.key is not None:
            if UNIMPORTANT.search(change.key[1]):
                return None
            known = gates.get(change.key)
            if known is not None:
                return known
        replaced = named(change.value_type)
        if replaced is None or replaced.path not in self.tree.packages:
            return None
        return next((gate for (holder, _), gate in gates.items() if holder == replaced), None)

    def is_reconciled(self, kind: GoType | None) -> bool:
        """Return whether a controller of this tree is registered for a kind, with `For(&Kind{})`."""
        found = named(kind)
        return found is not None and (found.path, found.name) in self._reconciled

    def is_created(self, kind: GoType | None) -> bool:
        """Return whether this tree creates objects of a kind itself, so that they are not written by users alone."""
        found = named(kind)
        return found is not None and (found.path, found.name) in self._created

    # ----------------------------------------------------------------------------------------------------- replay

    def replay(
        self, walker: Walker, decl: FunctionDecl, receiver: Value | None, args: list[Value], line: int
    ) -> list[Value]:
        """Record what a called function does, with the caller's objects, and return its results."""
        trace = self.trace(decl)
        substitution = _Substitution(walker, trace, receiver, args, line)
        frames, outer_line = walker.frames, walker.call_line
        for event in self.effects(trace):
            substitution.record(event)
        walker.frames, walker.call_line = frames, outer_line
        return substitution.results()


def is_status_of(holder: Named, kind: Named | None) -> bool:
    """Return whether a struct is the status of a kind."""
    return kind is not None and holder.path == kind.path and holder.name == f"{kind.name}Status"


def is_passed_by_value(tree: SourceTree, thing: Thing) -> bool:
    """Return whether changes of a parameter stay in the function: it is a struct, not a pointer to one."""
    found = tree.declaration(thing.type) if isinstance(thing.type, Named) else None
    return found is not None and found[0].kind == "struct"


class _Substitution:
    """Replace a called function's parameters by the caller's values."""

    def __init__(self, walker: Walker, trace: Trace, receiver: Value | None, args: list[Value], line: int) -> None:
        self.walker = walker
        self.trace = trace
        self.line = walker.call_line or line
        self.frame = next(numbers)
        self.values: dict[Thing, Value] = {}
        self.rest: list[Value] = []
        self.things: dict[Thing, Thing] = {}
        self.arms: dict[Arm, Arm] = {}
        self.branches: dict[int, int] = {}
        self.regions: dict[Region, Region] = {}
        self.frames: dict[int, int] = {}
        self.events: dict[Event, Event] = {}
        self.copied = 0
        decl = trace.decl
        for number, thing in trace.parameters.items():
            if number == -1:
                value = receiver if receiver is not None else UNKNOWN
            elif number < len(args):
                value = args[number]
                if decl.params[number].is_variadic:
                    self.rest = args[number:]
            else:
                value = UNKNOWN
            self.values[thing] = value

    def thing(self, thing: Thing) -> Thing:
        if thing not in self.things:
            clone = copy.copy(thing)
            self.things[thing] = clone
            clone.born = len(self.walker.trace.events)
            clone.parameter = -2
            if thing.copy_of is not None:
                clone.copy_of = self.place(thing.copy_of)
                self.walker.trace.copies.append(clone)
        return self.things[thing]

    def place(self, place: Place) -> Place:
        value = self.values.get(place.thing)
        if value is None:
            return Place(self.thing(place.thing), place.path)
        if value.place is not None:
            return Place(value.place.thing, normalize((*value.place.path, *place.path)))
        return Place(self.thing(place.thing), place.path)

    def places(self, places: frozenset[Place]) -> frozenset[Place]:
        found: set[Place] = set()
        for place in places:
            value = self.values.get(place.thing)
            if value is not None and (value.place is None or value.place.thing.origin in ("result", "item")):
                found |= value.sources
            if value is None or value.place is not None:
                found.add(self.place(place))
        return limit(frozenset(found))

    def value(self, value: Value) -> Value:
        if value.choices:
            return merge([self.value(choice) for choice in value.choices])
        if value.place is not None and not value.place.path and value.place.thing in self.values:
            known = self.values[value.place.thing]
            if value.what is None and (known.place is not None or known.what is not None):
                return known
        place = self.place(value.place) if value.place is not None else None
        if place is not None:
            stored = self.walker.fields.get(place)
            if stored is not None and value.what is None and stored.what is not None:
                return stored
        return Value(value.type, place, self.places(value.sources), self.meaning(value.what), value.texts)

    def meaning(self, what: Meaning | None) -> Meaning | None:
        match what:
            case PatchOf():
                clone = copy.copy(what)
                clone.base = self.place(what.base) if what.base is not None else None
                clone.modified = self.place(what.modified) if what.modified is not None else None
                clone.sources = self.places(what.sources)
                return clone
            case PatchHelper(base, locked):
                return PatchHelper(self.place(base), locked)
            case Json(place):
                return Json(self.place(place))
            case ErrorOf(event):
                mapped = self.events.get(event)
                return ErrorOf(mapped) if mapped is not None else None
            case Condition(true, false):
                return Condition(self.facts(true), self.facts(false))
            case Changed(place):
                return Changed(self.place(place))
            case Function():
                return what if what.closure is None else None
        return what

    def facts(self, facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        found = []
        for kind, subject in facts:
            if isinstance(subject, Event):
                mapped = self.events.get(subject)
                if mapped is not None:
                    found.append(Fact(kind, mapped))
            elif isinstance(subject, Place):
                found.append(Fact(kind, self.place(subject)))
            else:
                found.append(Fact(kind, subject))
        return tuple(found)

    def arm(self, arm: Arm) -> Arm:
        if arm not in self.arms:
            clone = copy.copy(arm)
            self.arms[arm] = clone
            clone.branch = self.branches.setdefault(arm.branch, next(numbers))
            clone.frame = self.frames.setdefault(arm.frame, next(numbers))
            clone.loop = self.arm(arm.loop) if arm.loop is not None else None
            clone.reads = self.places(arm.reads)
        return self.arms[arm]

    def region(self, region: Region) -> Region:
        if region not in self.regions:
            clone = copy.copy(region)
            clone.line = self.line
            self.regions[region] = clone
            self.walker.trace.regions.append(clone)
        return self.regions[region]

    def record(self, event: Event) -> None:
        walker = self.walker
        while self.copied < len(self.trace.copies) and self.trace.copies[self.copied].born <= event.index:
            self.thing(self.trace.copies[self.copied])  # made before this event, so without its change
            self.copied += 1
        frames = (*walker.frames, *(self.frames.setdefault(f, next(numbers)) for f in event.frames))
        arms = (*walker.arms, *(self.arm(a) for a in event.arms))
        regions = (*walker.regions, *(self.region(r) for r in event.regions))
        facts = (*walker.facts, *self.facts(event.facts))
        if isinstance(event, Invocation):
            self.invoke(event, frames, arms, regions, facts)
            return
        clone = copy.copy(event)
        self.events[event] = clone
        clone.place = self.place(event.place)
        clone.line, clone.frames, clone.arms, clone.regions, clone.facts = self.line, frames, arms, regions, facts
        clone.index = len(walker.trace.events)
        clone.is_deferred = walker.in_deferred
        match clone:
            case Mutation():
                clone.value = self.value(clone.value)
                if not clone.is_rmw:
                    clone.is_rmw = reads_itself(clone.place, clone.value.sources, clone.value.place)
                if clone.path_is_list is None:
                    clone.path_is_list = walker.is_list(clone.place, clone.value)
                clone.key = clone.key or walker.field_key(clone.place)
                clone.value_type = clone.value_type or walker.place_type(clone.place)
                walker.fields[clone.place] = clone.value
            case Overwrite():
                clone.source = self.place(clone.source) if clone.source is not None else None
            case Write():
                clone.patch_value = self.value(clone.patch_value)
                if clone.kind is None and clone.place.thing.type is not None:
                    clone.kind = walker.place_type(clone.place)
            case Read():
                pass
        walker.record(clone)

    def invoke(
        self,
        event: Invocation,
        frames: tuple[int, ...],
        arms: tuple[Arm, ...],
        regions: tuple[Region, ...],
        facts: tuple[Fact, ...],
    ) -> None:
        """Run the function that the caller passed, where the called function calls it."""
        walker = self.walker
        parameter = self.trace.parameters.get(event.parameter)
        functions = [self.values.get(parameter, UNKNOWN)] if parameter is not None else []
        if parameter is not None and self.rest and self.trace.decl.params[event.parameter].is_variadic:
            functions = self.rest
        args = [self.value(arg) for arg in event.args]
        saved = (walker.frames, walker.arms, walker.regions, walker.facts)
        walker.frames, walker.arms, walker.regions, walker.facts = frames, arms, regions, facts
        for function in functions:
            walker.program.calls.invoke(walker, function, args, self.line)
        walker.frames, walker.arms, walker.regions, walker.facts = saved

    def results(self) -> list[Value]:
        decl = self.trace.decl
        types = self.walker.tree.result_types(decl)
        found: list[Value] = []
        for number, kind in enumerate(types):
            options = [values[number] for values in self.trace.returns if number < len(values)]
            useful = [o for o in options if not isinstance(o.what, Nothing)]
            if not useful:
                found.append(Value(kind))
                continue
            merged = merge([self.value(option) for option in useful[:6]])
            if merged.type is None:
                merged = retyped(merged, kind)
            found.append(merged)
        return found
