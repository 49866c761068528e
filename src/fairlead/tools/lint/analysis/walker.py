"""Walk a function's statements in order, keep track of what each variable is, and record the events."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairlead.tools.lint.analysis.places import drop_error, facts_of, is_alias, object_depth, reads_itself, retyped
from fairlead.tools.lint.analysis.values import (
    ITEM,
    UNKNOWN,
    Arm,
    Changed,
    Condition,
    ErrorOf,
    Event,
    ExternalFunction,
    Fact,
    Function,
    MethodName,
    Mutation,
    Nothing,
    Overwrite,
    PackageName,
    Place,
    Region,
    Thing,
    Trace,
    TypeName,
    Value,
    limit,
    merge,
    normalize,
)
from fairlead.tools.lint.golang import syntax as go
from fairlead.tools.lint.golang.module import OBJECT_META
from fairlead.tools.lint.golang.render import call_name, is_append_of
from fairlead.tools.lint.golang.types import BUILTIN, FuncOf, GoType, ListOf, MapOf, Named, Pointer, named

if TYPE_CHECKING:
    from fairlead.tools.lint.analysis.program import Program

ENDING_CALLS = frozenset({"panic", "os.Exit", "log.Fatal", "log.Fatalf", "klog.Fatal", "klog.Fatalf"})
EVENT_PATHS = ("sigs.k8s.io/controller-runtime/pkg/event",)
HANDLER_KEYS = frozenset({"AddFunc", "UpdateFunc", "DeleteFunc", "FilterFunc"})
MAX_EVENTS = 1500
ERROR = Named("", "error")
BOOL = Named("", "bool")
numbers = itertools.count(1)


class Walker:
    """The walk of one function."""

    def __init__(self, program: Program, decl: go.FunctionDecl) -> None:
        self.program = program
        self.tree = program.tree
        self.decl = decl
        self.file = decl.file
        self.trace = Trace(decl)
        self.trace.literal_fields = {}
        self.env: dict[str, Value] = {}
        self.fields: dict[Place, Value] = {}
        self.asserted: dict[Place, GoType] = {}  # types of interface fields that were asserted
        self.called: dict[int, Value] = {}  # the result of each call expression
        self.arms: tuple[Arm, ...] = ()
        self.frames: tuple[int, ...] = (next(numbers),)
        self.regions: tuple[Region, ...] = ()
        self.facts: tuple[Fact, ...] = ()
        self.deferred: list[tuple[go.Expr, tuple[Arm, ...], dict[str, Value]]] = []
        self.in_deferred = False
        self.call_line = 0  # the line of the outermost call whose events are replayed
        self.depth = 0
        self.returns: list[tuple[Value, ...]] | None = None  # of a closure that is being walked
        self.trace.frame = self.frames[0]
        self.trace.literal_fields = self.fields

    # ------------------------------------------------------------------------------------------------------ start

    def run(self) -> Trace:
        decl = self.decl
        if decl.receiver is not None:
            self._bind_parameter(decl.receiver, -1, "receiver")
        for number, param in enumerate(decl.params):
            self._bind_parameter(param, number, "param")
        for result in decl.results:
            if result.name and result.name != "_":
                kind = self.tree.type_of(result.type, self.file)
                thing = Thing(result.name, "zero", kind, decl.line)
                self.env[result.name] = Value(kind, Place(thing))
        self.block(self.program.body(decl))
        for call, arms, _ in reversed(self.deferred):
            self._run_deferred(call, arms)
        return self.trace

    def _run_deferred(self, call: go.Expr, arms: tuple[Arm, ...]) -> None:
        self.arms, self.facts, self.in_deferred = arms, (), True
        self.eval(call)
        self.in_deferred = False

    def _bind_parameter(self, param: go.Param, number: int, origin: str) -> None:
        kind = self.tree.param_type(param, self.decl)
        is_event = isinstance(t := named(kind), Named) and t.path in EVENT_PATHS
        thing = Thing(param.name or f"arg{number}", "event" if is_event else origin, kind, self.decl.line)
        thing.parameter = number
        thing.is_shared = is_event
        self.trace.parameters[number] = thing
        if param.name and param.name != "_":
            self.env[param.name] = Value(kind, Place(thing))

    # ----------------------------------------------------------------------------------------------------- events

    def record(self, event: Event) -> None:
        if len(self.trace.events) < MAX_EVENTS:
            self.trace.events.append(event)
        else:
            self.trace.is_complete = False

    def context(self, place: Place, line: int) -> dict[str, Any]:
        """Return the fields that all events share."""
        return {
            "place": Place(place.thing, normalize(place.path)),
            "line": self.call_line or line,
            "index": len(self.trace.events),
            "arms": self.arms,
            "frames": self.frames,
            "regions": self.regions,
            "facts": self.facts,
            "site": (self.file, line),
            "is_deferred": self.in_deferred,
        }

    def thing(self, name: str, origin: str, kind: GoType | None, line: int, **extra: Any) -> Thing:
        born = len(self.trace.events)
        thing = Thing(name, origin, kind, line, born=born, frame=self.frames[-1], file=self.file, **extra)
        if thing.copy_of is not None:
            self.trace.copies.append(thing)
        return thing

    def mutate(
        self,
        place: Place,
        line: int,
        value: Value = UNKNOWN,
        is_list: bool | None = None,
        is_rmw: bool = False,
        helper: str = "",
        is_append: bool = False,
        is_remove: bool = False,
    ) -> None:
        """Record that a field changes."""
        if not place.path:
            return
        event = Mutation(**self.context(place, line), value=value, helper=helper)
        event.is_append = is_append
        event.is_remove = is_remove
        event.path_is_list = is_list if is_list is not None else self.is_list(event.place, value)
        event.key = self.field_key(event.place)
        event.value_type = self.place_type(event.place) or value.type
        event.is_rmw = is_rmw or reads_itself(event.place, value.sources, value.place)
        self.record(event)

    def is_list(self, place: Place, value: Value) -> bool | None:
        """Return whether a place is a list, or inside a list's item; None if its type is not known."""
        path = place.path
        if ITEM in path[object_depth(path) :]:
            container = self.place_type(Place(place.thing, path[: path.index(ITEM, object_depth(path))]))
            container = self.tree.underlying(container)
            if isinstance(container, ListOf):
                return True
            return False if isinstance(container, MapOf) else None
        kind = self.tree.underlying(self.place_type(place) or value.type)
        if isinstance(kind, ListOf):
            return not isinstance(kind.item, Named) or kind.item.name not in ("byte", "uint8")
        if isinstance(kind, MapOf):
            return False
        if path and path[-1] in ("Finalizers", "OwnerReferences"):
            return True
        return None if kind is None else False

    def place_type(self, place: Place) -> GoType | None:
        """Return the type of a place, as far as the fields on its path are declared in this tree."""
        kind = place.thing.type
        for number, name in enumerate(place.path):
            if self.asserted:
                kind = self.asserted.get(Place(place.thing, place.path[:number]), kind)
            if name == ITEM:
                inner = self.tree.underlying(kind)
                kind = inner.item if isinstance(inner, ListOf) else inner.value if isinstance(inner, MapOf) else None
            else:
                next_kind = self.tree.field_type(kind, name)
                if next_kind is None and name in ("Finalizers", "OwnerReferences", "Labels", "Annotations"):
                    next_kind = OBJECT_META[name]
                kind = next_kind
            if kind is None:
                return None
        return kind

    # ------------------------------------------------------------------------------------------------- statements

    def block(self, statements: Sequence[go.Stmt]) -> str:
        """Walk statements in a scope of their own. Return how they end: "", "return" or "jump"."""
        outer = set(self.env)
        shadowed: dict[str, Value] = {}
        facts = self.facts
        ends = ""
        for statement in statements:
            ends = self.statement(statement, shadowed, outer)
            if ends:
                break
        for name in list(self.env):
            if name not in outer:
                del self.env[name]
        self.env.update(shadowed)
        if not ends:
            self.facts = facts
        self.facts = facts
        return ends

    def statement(self, statement: go.Stmt, shadowed: dict[str, Value], outer: set[str]) -> str:
        match statement:
            case go.Assign():
                self.assign(statement, shadowed, outer)
            case go.Do(value, _):
                drop_error(self.eval(value))
                if isinstance(value, go.Call) and call_name(value) in ENDING_CALLS:
                    return "return"
            case go.If():
                return self.if_(statement)
            case go.Return(values, line):
                return self.return_(values, line)
            case go.Declare():
                self.declare(statement, shadowed, outer)
            case go.Range():
                self.range_(statement)
            case go.Loop():
                self.loop(statement)
            case go.Switch():
                return self.switch(statement)
            case go.Defer(call, _, is_go):
                if is_go or self.returns is not None:
                    self.eval(call)
                else:
                    self.deferred.append((call, self.arms, dict(self.env)))
            case go.Block(body, line):
                if line < 0:
                    for inner in body:
                        self.statement(inner, shadowed, outer)
                else:
                    return self.block(body)
            case go.Jump():
                return "jump"
        return ""

    def bind(
        self, name: str, value: Value, shadowed: dict[str, Value], outer: set[str], defines: bool, line: int
    ) -> None:
        if name == "_":
            return
        if defines and name in outer and name not in shadowed:
            shadowed[name] = self.env[name]
        if value.place is not None and value.place.thing.name in ("", "value"):
            value.place.thing.name = name
        elif value.place is None and value.what is None and not value.choices:
            value = Value(
                value.type, Place(self.thing(name, "result", value.type, line)), value.sources, None, value.texts
            )
        self.env[name] = value

    def declare(self, statement: go.Declare, shadowed: dict[str, Value], outer: set[str]) -> None:
        kind = self.tree.type_of(statement.type, self.file)
        values = self.eval_many(statement.values, len(statement.names)) if statement.values else []
        for number, name in enumerate(statement.names):
            if values:
                value = values[number] if number < len(values) else UNKNOWN
                if kind is not None and value.type is None:
                    value = retyped(value, kind)
            else:
                value = Value(kind, Place(self.thing(name, "zero", kind, statement.line)))
            self.bind(name, value, shadowed, outer, True, statement.line)

    def assign(self, statement: go.Assign, shadowed: dict[str, Value], outer: set[str]) -> None:
        values = self.eval_many(statement.values, len(statement.targets))
        defines = statement.op == ":="
        for number, target in enumerate(statement.targets):
            value = values[number] if number < len(values) else UNKNOWN
            if isinstance(target, go.Name) and target.name == "_":
                drop_error(value)
            written = statement.values[number] if len(statement.values) == len(statement.targets) else None
            source = value.place
            is_copied = isinstance(written, go.Unary) and written.op == "*"
            if isinstance(written, go.Select) and isinstance(target, go.Name):
                is_copied = self.is_struct(value.type)
            if is_copied and source is not None:
                copied = self.thing("value", "copy", value.type, statement.line, copy_of=source)
                value = Value(value.type, Place(copied), value.sources)
            if isinstance(target, go.Name):
                known = self.env.get(target.name)
                if value.type is None and known is not None and not defines:
                    value = retyped(value, known.type)
                if statement.op not in ("=", ":="):
                    value = Value(
                        known.type if known else None, None, (known.sources if known else frozenset()) | value.sources
                    )
                elif value is UNKNOWN:
                    value = Value(known.type if known and not defines else None)
                self.bind(target.name, value, shadowed, outer, defines, statement.line)
            elif isinstance(target, go.Unary) and target.op == "*":
                holder = self.eval(target.operand)
                for place in holder.places():
                    if place.path:
                        self.mutate(place, statement.line, value)
                    else:
                        event = Overwrite(**self.context(place, statement.line), source=source)
                        self.record(event)
            else:
                self.store(target, value, statement)

    def is_struct(self, kind: GoType | None) -> bool:
        """Return whether a type is a struct, so that an assignment copies it."""
        found = self.tree.declaration(kind) if isinstance(kind, Named) else None
        return found is not None and found[0].kind == "struct"

    def give_back(self, place: Place, value: Value, line: int) -> None:
        """A changed copy is stored where it came from: its changes are changes of that place."""
        copied = value.place
        if copied is None or copied.path or copied.thing.copy_of is None:
            return
        if Place(copied.thing.copy_of.thing, normalize(copied.thing.copy_of.path)) != place:
            return
        for event in list(self.trace.events):
            if isinstance(event, Mutation) and event.place.thing is copied.thing:
                target = Place(place.thing, normalize((*place.path, *event.place.path)))
                self.mutate(
                    target,
                    line,
                    event.value,
                    event.path_is_list,
                    event.is_rmw,
                    event.helper,
                    event.is_append,
                    event.is_remove,
                )

    def store(self, target: go.Expr, value: Value, statement: go.Assign) -> None:
        """Assign to a field or to an item."""
        holder = self.eval_target(target)
        for place in holder.places():
            if not place.path:
                continue
            place = Place(place.thing, normalize(place.path))
            if statement.op != "=" and place in self.fields:
                value = merge([self.fields[place], value])
            self.fields[place] = value
            self.adopt(place, value)
            self.give_back(place, value, statement.line)
            appended = len(statement.values) == 1 and is_append_of(statement.values[0], target)
            copied = value.place if value.place is not None else None
            if copied is not None and normalize(copied.path) == place.path and copied.thing is place.thing:
                continue
            is_list = True if appended else None
            self.mutate(place, statement.line, value, is_list=is_list, is_append=appended)

    def adopt(self, place: Place, value: Value) -> None:
        """Know the fields of a literal also below the field that it is stored in."""
        inner = value.place
        if inner is not None and inner.thing.origin == "literal":
            for known, stored in list(self.fields.items()):
                if known.thing is inner.thing and known.path[: len(inner.path)] == inner.path:
                    rest = known.path[len(inner.path) :]
                    self.fields[Place(place.thing, normalize((*place.path, *rest)))] = stored

    def eval_target(self, target: go.Expr) -> Value:
        """Evaluate the left side of an assignment: the place, not what is stored there."""
        match target:
            case go.Select(base, name, _):
                holder = self.eval(base)
                kind = self.tree.field_type(holder.type, name)
                places = [place.at(name) for place in holder.places()]
            case go.Index(base, _, _):
                holder = self.eval(base)
                container = self.tree.underlying(holder.type)
                kind = container.item if isinstance(container, ListOf) else None
                places = [place.at(ITEM) for place in holder.places()]
                if target.index is not None:
                    self.eval(target.index)
            case _:
                return self.eval(target)
        if len(places) == 1:
            return Value(kind, places[0])
        return merge([Value(kind, place) for place in places]) if places else UNKNOWN

    def return_(self, values: list[go.Expr], line: int) -> str:
        results = [self.eval(value) for value in values]
        if len(results) == 1 and isinstance(values[0], go.Call):
            many = self.last_results
            if many is not None and len(many) > 1:
                results = list(many)
        if not values and self.returns is None:
            results = [self.env.get(result.name, UNKNOWN) for result in self.decl.results]
        if self.returns is not None:
            self.returns.append(tuple(results))
        else:
            self.trace.returns.append(tuple(results))
            self.trace.returns_with.append((line, tuple(results), self.facts))
        return "return"

    # --------------------------------------------------------------------------------------------------- branches

    @contextmanager
    def arm(self, branch: int, number: int, line: int, facts: tuple[Fact, ...], cond: Value | None) -> Iterator[Arm]:
        loop = next((a for a in reversed(self.arms) if a.is_loop), None)
        arm = Arm(branch, number, self.frames[-1], line, loop=loop)
        if cond is not None:
            arm.reads = cond.sources
            arm.compares = any(isinstance(what, Changed) for what in cond.meanings()) or any(
                fact.kind in ("changed", "unchanged") for fact in facts
            )
        arms, known = self.arms, self.facts
        self.arms = (*arms, arm)
        self.facts = (*known, *facts)
        yield arm
        self.arms, self.facts = arms, known

    def if_(self, statement: go.If) -> str:
        outer = set(self.env)
        shadowed: dict[str, Value] = {}
        if statement.init is not None:
            self.statement(statement.init, shadowed, outer)
        cond = self.eval(statement.cond)
        true, false = facts_of(cond)
        branch = next(numbers)
        before = dict(self.env)
        with self.arm(branch, 0, statement.line, true, cond) as arm:
            self.gate(self.direct_reads(statement.cond), arm, statement.line)
            arm.ends = ends_then = self.block(statement.then)
        env_then, self.env = self.env, before.copy()
        ends_else = ""
        with self.arm(branch, 1, statement.line, false, cond) as other:
            if statement.otherwise is not None:
                other.ends = ends_else = self.block(statement.otherwise)
        env_else = self.env
        self.join([(env_then, ends_then), (env_else, ends_else)])
        for name in list(self.env):
            if name not in outer:
                del self.env[name]
        self.env.update(shadowed)
        if ends_then and not ends_else:
            self.facts = (*self.facts, *false)
        elif ends_else and not ends_then:
            self.facts = (*self.facts, *true)
        return (ends_then if ends_then == ends_else else "jump") if ends_then and ends_else else ""

    def direct_reads(self, expression: go.Expr) -> frozenset[Place]:
        """Return the fields that a condition reads itself, or through a predicate. Errors do not count."""
        match expression:
            case go.Binary(_, left, right, _):
                return self.direct_reads(left) | self.direct_reads(right)
            case go.Unary(_, operand, _):
                return self.direct_reads(operand)
            case go.Select():
                value = self.eval(expression)
                return frozenset(value.places()) if value.type != ERROR else frozenset()
            case go.Name(name, _):
                known = self.env.get(name)
                if (
                    known is not None
                    and known.type == BOOL
                    and not any(self.is_fact_of_error(w) for w in known.meanings())
                ):
                    return known.sources
            case go.Call(func, args):
                value = self.called.get(id(expression), UNKNOWN)
                if value.type == BOOL:
                    return value.sources
                if isinstance(func, go.Name) and func.name == "len":
                    return self.direct_reads(args[0]) if args else frozenset()
        return frozenset()

    @staticmethod
    def is_fact_of_error(what: object) -> bool:
        return isinstance(what, Condition) and any(isinstance(f.subject, Event) for f in (*what.true, *what.false))

    def gate(self, reads: frozenset[Place], arm: Arm, line: int) -> None:
        for source in reads:
            key = self.field_key(source)
            if key is not None:
                self.trace.gates.append((key, arm, line))

    def field_key(self, place: Place) -> tuple[Named, str] | None:
        """Return the struct that declares a field, and the field's name."""
        path = place.path
        if not path or path[-1] == ITEM:
            return None
        holder = named(self.place_type(Place(place.thing, path[:-1])))
        if holder is None or holder.path not in self.tree.packages:
            return None
        return holder, path[-1]

    def join(self, arms: list[tuple[dict[str, Value], str]]) -> None:
        live = [env for env, ends in arms if not ends]
        if not live:
            self.env = arms[0][0]
            return
        if len(live) == 1:
            self.env = live[0]
            return
        first, rest = live[0], live[1:]
        joined = dict(first)
        for name, value in first.items():
            others = [env.get(name, value) for env in rest]
            if any(other is not value for other in others):
                joined[name] = merge([value, *others])
        for env in rest:
            for name, value in env.items():
                joined.setdefault(name, value)
        self.env = joined

    def switch(self, statement: go.Switch) -> str:
        outer = set(self.env)
        shadowed: dict[str, Value] = {}
        if statement.init is not None:
            self.statement(statement.init, shadowed, outer)
        tag = self.eval(statement.tag) if statement.tag is not None else None
        branch = next(numbers)
        before, known = dict(self.env), self.facts
        results: list[tuple[dict[str, Value], str]] = []
        negated: tuple[Fact, ...] = ()
        ended: tuple[Fact, ...] = ()
        has_default = False
        for number, case in enumerate(statement.cases):
            self.env = before.copy()
            true: tuple[Fact, ...] = ()
            false: tuple[Fact, ...] = ()
            reads = tag.sources if tag is not None else frozenset()
            conds = [self.eval(value) for value in case.values]
            if tag is None and len(conds) == 1:
                true, false = facts_of(conds[0])
            for cond in conds:
                reads |= cond.sources
            has_default |= case.is_default
            if statement.binding and tag is not None:
                kind = self.tree.type_of(case.types[0], self.file) if len(case.types) == 1 else None
                self.env[statement.binding] = retyped(tag, kind) if kind is not None else tag
            merged = Value(None, None, reads)
            with self.arm(branch, number, statement.line, (*negated, *true), merged) as arm:
                if conds and any(isinstance(w, Changed) for c in conds for w in c.meanings()):
                    arm.compares = True
                direct = [statement.tag] if statement.tag is not None else case.values
                self.gate(frozenset().union(*map(self.direct_reads, direct)), arm, statement.line)
                arm.ends = ends = self.block(case.body)
                if (
                    arm.ends == "jump"
                    and case.body
                    and isinstance(case.body[-1], go.Jump)
                    and case.body[-1].kind == "break"
                ):
                    arm.ends = ends = ""
            results.append((self.env, ends))
            negated = (*negated, *false)
            if ends:
                ended = (*ended, *false)
        if not has_default:
            results.append((before, ""))
        self.join(results or [(before, "")])
        for name in list(self.env):
            if name not in outer:
                del self.env[name]
        self.env.update(shadowed)
        self.facts = (*known, *ended)
        return "return" if results and all(ends for _, ends in results) else ""

    def range_(self, statement: go.Range) -> None:
        over = self.eval(statement.over)
        kind_over = over.type.to if isinstance(over.type, Pointer) else over.type
        container = self.tree.underlying(kind_over)
        item = (
            container.item
            if isinstance(container, ListOf)
            else container.value
            if isinstance(container, MapOf)
            else None
        )
        sources = over.sources | (frozenset(over.places()))
        shadowed: dict[str, Value] = {}
        outer = set(self.env)
        before = dict(self.env)
        for number, target in enumerate(statement.targets):
            if not isinstance(target, go.Name):
                continue
            if number == 0:
                value = Value(container.key if isinstance(container, MapOf) else None, None, limit(sources))
            else:
                value = self.item_of(over, item, limit(sources), statement.line)
            self.bind(target.name, value, shadowed, outer, statement.defines, statement.line)
        branch = next(numbers)
        with self.arm(branch, 0, statement.line, (), None) as arm:
            arm.is_loop = True
            self.block(statement.body)
        self.join([(self.env, ""), (before, "")])
        self.env.update(shadowed)

    def item_of(self, over: Value, item: GoType | None, sources: frozenset[Place], line: int) -> Value:
        """Return the loop variable: a pointer to a shared item, or a copy of the item."""
        place = over.place
        if place is not None and (isinstance(item, Pointer) or place.thing.is_shared):
            return Value(item, place.at(ITEM), sources)
        copied = self.thing("value", "item", item, line, copy_of=place.at(ITEM) if place else None)
        copied.is_live = place.thing.is_live if place else False
        return Value(item, Place(copied), sources)

    def loop(self, statement: go.Loop) -> None:
        outer = set(self.env)
        shadowed: dict[str, Value] = {}
        if statement.init is not None:
            self.statement(statement.init, shadowed, outer)
        cond = self.eval(statement.cond) if statement.cond is not None else None
        before = dict(self.env)
        with self.arm(next(numbers), 0, statement.line, (), cond) as arm:
            arm.is_loop = True
            self.block(statement.body)
            if statement.post is not None:
                self.statement(statement.post, {}, set(self.env))
        self.join([(self.env, ""), (before, "")])
        for name in list(self.env):
            if name not in outer:
                del self.env[name]
        self.env.update(shadowed)

    # ------------------------------------------------------------------------------------------------ expressions

    last_results: list[Value] | None = None
    """The results of the last call, for `a, err := f()`."""

    def eval_many(self, expressions: Sequence[go.Expr], wanted: int) -> list[Value]:
        if len(expressions) == 1 and wanted > 1:
            self.last_results = None
            first = self.eval(expressions[0])
            if isinstance(expressions[0], go.Call) and self.last_results is not None:
                return list(self.last_results)
            ok = Value(Named("", "bool"), None, first.sources)
            return [first, ok, *([UNKNOWN] * (wanted - 2))]
        return [self.eval(expression) for expression in expressions]

    def eval(self, expression: go.Expr) -> Value:
        match expression:
            case go.Name():
                return self.name(expression)
            case go.Select():
                return self.select(expression)
            case go.Call():
                value = self.program.calls.call(self, expression)
                self.called[id(expression)] = value
                return value
            case go.Literal(text, is_string, _):
                if text == "nil" and not is_string:
                    return Value(what=Nothing())
                return Value(Named("", "string") if is_string else None, texts=(text,) if is_string else ())
            case go.Unary(op, operand, _):
                return self.unary(op, operand)
            case go.Binary():
                return self.binary(expression)
            case go.Composite():
                return self.composite(expression)
            case go.Closure():
                what = Function(closure=expression, env=dict(self.env), walker=self, file=self.file)
                params = tuple(self.tree.type_of(p.type, self.file) for p in expression.params)
                return Value(FuncOf(params, ()), what=what)
            case go.Index():
                return self.index(expression)
            case go.Assertion(base, kind, _):
                return self.with_type(self.eval(base), self.tree.type_of(kind, self.file))
            case go.Conversion(kind, operand, _):
                return retyped(self.eval(operand), self.tree.type_of(kind, self.file))
        return UNKNOWN

    def with_type(self, value: Value, kind: GoType | None) -> Value:
        """Return a value of an interface type with the type that it really has."""
        if kind is not None:
            for place in value.places():
                self.asserted[place] = kind
        return retyped(value, kind)

    def name(self, expression: go.Name) -> Value:
        name = expression.name
        known = self.env.get(name)
        if known is not None:
            return known
        package = self.tree.packages.get(self.file.import_path)
        if package is not None:
            found = self.package_member(package.path, name)
            if found is not None:
                return found
        if name in self.file.imports or self.tree.find_import(self.file.imports, name) != name:
            return Value(what=PackageName(self.tree.find_import(self.file.imports, name)))
        if name in BUILTIN:
            return Value(what=TypeName(Named("", name)))
        return UNKNOWN

    def package_member(self, path: str, name: str) -> Value | None:
        package = self.tree.packages.get(path)
        if package is None:
            return None
        if name in package.functions:
            return Value(what=Function(decl=package.functions[name]))
        if name in package.types:
            return Value(what=TypeName(Named(path, name)))
        if name in package.variables:
            kind, text, file = package.variables[name]
            value = Value(self.tree.type_of(kind, file))
            if len(text) > 1 and text[0] in '"`':
                value.texts = (text[1:-1],)
            return value
        return None

    def select(self, expression: go.Select) -> Value:
        base = self.eval(expression.base)
        name = expression.name
        if isinstance(base.what, PackageName):
            found = self.package_member(base.what.path, name)
            if found is not None:
                return found
            what = ExternalFunction(base.what.path, name)
            return Value(Named(base.what.path, name), what=what)
        results = [self.member(option, name, expression.line) for option in base.options()]
        return results[0] if len(results) == 1 else merge(results)

    def member(self, base: Value, name: str, line: int) -> Value:
        kind = self.tree.field_type(base.type, name)
        if kind is None:
            method = self.tree.method(base.type, name)
            if method is not None:
                return Value(what=MethodName(base, name, method))
        place = base.place.at(name) if base.place is not None else None
        if place is not None:
            stored = self.fields.get(Place(place.thing, normalize(place.path)))
            if stored is not None and (stored.what is not None or is_alias(stored) or stored.choices):
                return stored if stored.type is not None else retyped(stored, kind)
        sources = limit(base.sources | {place}) if place is not None else base.sources
        what = MethodName(base, name, None) if kind is None else None
        return Value(kind, place, sources, what)

    def unary(self, op: str, operand: go.Expr) -> Value:
        value = self.eval(operand)
        if op == "&":
            pointer = Pointer(value.type) if value.type is not None else None
            return Value(pointer, value.place, value.sources, value.what, value.texts, value.choices)
        if op == "*":
            kind = value.type.to if isinstance(value.type, Pointer) else value.type
            return Value(kind, value.place, value.sources, value.what, value.texts, value.choices)
        if op == "!":
            true, false = facts_of(value)
            changed = next((w for w in value.meanings() if isinstance(w, Changed)), None)
            if changed is not None and not true and not false:
                return Value(Named("", "bool"), None, value.sources, changed)
            return Value(Named("", "bool"), None, value.sources, Condition(false, true))
        return Value(None, None, value.sources)

    def binary(self, expression: go.Binary) -> Value:
        left, right = self.eval(expression.left), self.eval(expression.right)
        sources = limit(left.sources | right.sources | frozenset(left.places()) | frozenset(right.places()))
        op = expression.op
        if op in ("&&", "||"):
            lt, lf = facts_of(left)
            rt, rf = facts_of(right)
            condition = Condition((*lt, *rt), ()) if op == "&&" else Condition((), (*lf, *rf))
            changed = next((w for v in (left, right) for w in v.meanings() if isinstance(w, Changed)), None)
            if changed is not None:
                condition = Condition((*condition.true, Fact("changed", changed.place)), condition.false)
            return Value(Named("", "bool"), None, sources, condition)
        if op in ("==", "!="):
            true, false = self.compare(left, right)
            condition = Condition(true, false) if op == "==" else Condition(false, true)
            if not true and not false:
                condition = Condition((Fact("changed", None),), (Fact("changed", None),))
            return Value(Named("", "bool"), None, sources, condition)
        if op == "+":
            return Value(left.type or right.type, None, sources, None, (*left.texts, *right.texts)[:8])
        if op in ("<", ">", "<=", ">="):
            return Value(Named("", "bool"), None, sources)
        return Value(left.type, None, sources)

    def compare(self, left: Value, right: Value) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
        """Return what holds if two values are equal, and if not. Only comparisons of errors with nil say something."""
        for one, other in ((left, right), (right, left)):
            if isinstance(other.what, Nothing):
                errors = [what for what in one.meanings() if isinstance(what, ErrorOf)]
                if errors:
                    return tuple(Fact("ok", e.event) for e in errors), tuple(Fact("failed", e.event) for e in errors)
                if isinstance(one.what, Condition):
                    return one.what.false, one.what.true
                place = one.place
                if place is not None and place.path and place.path[-1] == "DeletionTimestamp":
                    return (Fact("not-deleting", place),), (Fact("deleting", place),)
                if place is not None:
                    return (Fact("nil", place),), (Fact("not-nil", place),)
        return (), ()

    def composite(self, expression: go.Composite) -> Value:
        kind = self.tree.type_of(expression.type, self.file)
        literal = self.thing("value", "literal", kind, expression.line)
        place = Place(literal)
        sources: frozenset[Place] = frozenset()
        texts: list[str] = []
        for key, item in expression.items:
            if isinstance(key, go.Literal):
                texts.append(key.text)
            is_handler = isinstance(key, go.Name) and key.name in HANDLER_KEYS and isinstance(item, go.Closure)
            value = self.eval(item)
            if is_handler or (isinstance(item, go.Closure) and self.takes_event(item)):
                self.program.calls.run_handler(self, value, is_shared=True)
            elif isinstance(item, go.Closure):
                self.program.calls.run_handler(self, value, is_shared=False)
            if key is not None and not isinstance(key, go.Name | go.Literal):
                texts += self.eval(key).texts
            if isinstance(key, go.Name):
                self.fields[place.at(key.name)] = value
                self.adopt(place.at(key.name), value)
            sources |= value.sources | frozenset(value.places())
            texts += value.texts
        return Value(kind, place, limit(sources), None, tuple(texts[:24]))

    def takes_event(self, closure: go.Closure) -> bool:
        return any(
            isinstance(kind := named(self.tree.type_of(param.type, self.file)), Named) and kind.path in EVENT_PATHS
            for param in closure.params
        )

    def index(self, expression: go.Index) -> Value:
        base = self.eval(expression.base)
        if expression.is_slice:
            return Value(base.type, base.place, limit(base.sources | frozenset(base.places())), base.what, base.texts)
        if expression.index is not None:
            self.eval(expression.index)
        container = self.tree.underlying(base.type)
        kind = (
            container.item
            if isinstance(container, ListOf)
            else container.value
            if isinstance(container, MapOf)
            else None
        )
        place = base.place.at(ITEM) if base.place is not None else None
        sources = limit(base.sources | ({place} if place is not None else frozenset()))
        return Value(kind, place, sources)
