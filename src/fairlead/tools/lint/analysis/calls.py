"""Calls: requests to the API server, known helpers, closures, functions of the tree, and everything else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairlead.tools.lint.analysis.clients import function_request, is_context, request_of
from fairlead.tools.lint.analysis.places import METADATA, retyped
from fairlead.tools.lint.analysis.values import (
    ITEM,
    UNKNOWN,
    Changed,
    Client,
    Condition,
    ErrorOf,
    Event,
    ExternalFunction,
    Fact,
    Function,
    Invocation,
    Json,
    MethodName,
    Nothing,
    Overwrite,
    PatchHelper,
    PatchOf,
    Place,
    Read,
    Region,
    TypeName,
    Value,
    Write,
    limit,
    merge,
)
from fairlead.tools.lint.analysis.walker import Walker, numbers
from fairlead.tools.lint.golang import syntax as go
from fairlead.tools.lint.golang.render import render
from fairlead.tools.lint.golang.types import FuncOf, GoType, ListOf, Named, Pointer, named
from fairlead.tools.lint.models import FunctionModel

if TYPE_CHECKING:
    from fairlead.tools.lint.analysis.program import Program

ERROR = Named("", "error")
BOOL = Named("", "bool")
CLIENT = "sigs.k8s.io/controller-runtime/pkg/client"
CHANGING_NAME = re.compile(r"(?i)^(set|add|remove|delete|append|upsert|update|mark|ensure|insert|put)")
CONDITION_NAME = re.compile(r"(?i)condition")
WRAPPING_NAME = re.compile(r"(?i)(errorf|wrap|aggregate|join|withstack|ignore)")
PATCH_TYPES = {
    "MergePatchType": "merge",
    "StrategicMergePatchType": "strategic",
    "JSONPatchType": "json",
    "ApplyPatchType": "apply",
    "ApplyYAMLPatchType": "apply",
}
MERGE_PATCH_FUNCTIONS = {
    "CreateMergePatch": "merge",
    "CreateTwoWayMergePatch": "strategic",
    "CreateThreeWayJSONMergePatch": "merge",
    "CreateThreeWayMergePatch": "strategic",
}
ERROR_CHECKS = {"IsAlreadyExists": "exists", "IsNotFound": "not-found", "IsConflict": "conflict"}
MAX_CLOSURE_DEPTH = 12


class Calls:
    """How calls are understood."""

    def __init__(self, program: Program) -> None:
        self.program = program

    # --------------------------------------------------------------------------------------------------- dispatch

    def call(self, walker: Walker, call: go.Call) -> Value:
        """Evaluate a call, record what it does, and return its first result."""
        walker.last_results = None
        if isinstance(call.func, go.Name) and call.func.name not in walker.env:
            built_in = self.built_in(walker, call)
            if built_in is not None:
                walker.last_results = None
                return built_in
        callee = walker.eval(call.func)
        if isinstance(callee.what, TypeName):
            args = [walker.eval(arg) for arg in call.args]
            walker.last_results = None
            return retyped(args[0], callee.what.type) if args else Value(callee.what.type)
        results = self.dispatch(walker, call, callee)
        walker.last_results = results
        return results[0] if results else UNKNOWN

    def dispatch(self, walker: Walker, call: go.Call, callee: Value) -> list[Value]:
        args = [walker.eval(arg) for arg in call.args]
        for what in callee.meanings():
            match what:
                case ExternalFunction(path, name):
                    return self.external(walker, call, path, name, args)
                case Function():
                    return self.invoke(walker, callee, args, call.line, call)
                case MethodName():
                    return self.method(walker, call, what, callee, args)
        request = function_request(walker, call, callee, args)
        if request is not None:
            return request
        parameter = parameter_number(callee)
        if parameter is not None:
            return self.call_parameter(walker, call, callee, parameter, args)
        name = call.func.name if isinstance(call.func, go.Name | go.Select) else ""
        return self.unknown(walker, call, name, args)

    def call_parameter(
        self, walker: Walker, call: go.Call, callee: Value, parameter: int, args: list[Value]
    ) -> list[Value]:
        assert callee.place is not None
        event = Invocation(**walker.context(callee.place, call.line), parameter=parameter, args=tuple(args))
        walker.record(event)
        kind = callee.type
        results = kind.results if isinstance(kind, FuncOf) else ()
        sources = joined(args)
        return [Value(result, None, sources) for result in results] or [Value(None, None, sources)]

    # --------------------------------------------------------------------------------------------------- built-in

    def built_in(self, walker: Walker, call: go.Call) -> Value | None:
        name = call.func.name if isinstance(call.func, go.Name) else ""
        match name:
            case "append":
                args = [walker.eval(arg) for arg in call.args]
                base = args[0] if args else UNKNOWN
                return Value(
                    base.type or ListOf(None), None, joined(args), None, tuple(t for a in args for t in a.texts)[:8]
                )
            case "make":
                kind = call.args[0] if call.args else None
                written = walker.tree.type_of(kind.type, walker.file) if isinstance(kind, go.Conversion) else None
                if written is None and isinstance(kind, go.Name | go.Select):
                    written = walker.tree.type_of(render(kind), walker.file)
                return Value(written)
            case "new":
                argument = call.args[0] if call.args else None
                kind_of: GoType | None = None
                if isinstance(argument, go.Conversion):
                    kind_of = walker.tree.type_of(argument.type, walker.file)
                elif isinstance(argument, go.Name | go.Select):
                    kind_of = walker.tree.type_of(render(argument), walker.file)
                elif argument is not None:
                    return walker.eval(argument)
                return Value(Pointer(kind_of), Place(walker.thing("value", "zero", Pointer(kind_of), call.line)))
            case "delete":
                args = [walker.eval(arg) for arg in call.args]
                for place in args[0].places() if args else ():
                    walker.mutate(place.at(ITEM), call.line, is_list=False, helper="delete")
                return UNKNOWN
            case "copy" | "clear":
                args = [walker.eval(arg) for arg in call.args]
                for place in args[0].places() if args else ():
                    walker.mutate(place, call.line, Value(None, None, joined(args[1:])), helper=name)
                return UNKNOWN
            case "len" | "cap" | "min" | "max":
                return Value(Named("", "int"), None, joined([walker.eval(arg) for arg in call.args]))
            case "panic" | "print" | "println" | "recover" | "close":
                for arg in call.args:
                    walker.eval(arg)
                return UNKNOWN
        return None

    # --------------------------------------------------------------------------------------------------- external

    def external(self, walker: Walker, call: go.Call, path: str, name: str, args: list[Value]) -> list[Value]:
        """A function of a package outside the tree."""
        model = self.program.models.find(path, name)
        if model is not None:
            return self.apply(walker, call, model, args)
        if self.program.models.changes_conditions(path) and CHANGING_NAME.match(name) and args:
            for place in args[0].places():
                walker.mutate(place.at("Status", "Conditions"), call.line, is_list=True, is_rmw=True, helper=name)
            return [UNKNOWN]
        special = self.special(walker, call, path, name, args)
        return special if special is not None else self.unknown(walker, call, name, args)

    def special(self, walker: Walker, call: go.Call, path: str, name: str, args: list[Value]) -> list[Value] | None:
        if name in ERROR_CHECKS and args:
            return [self.error_check(walker, call, name, args[0])]
        if path == CLIENT or path.endswith("controller-runtime/pkg/client"):
            found = self.client_function(walker, call, name, args)
            if found is not None:
                return found
        if name == "IgnoreNotFound" and args:
            return [self.ignoring(args[0], "not-found")]
        if path == "encoding/json" and name in ("Marshal", "MarshalIndent") and args:
            place = args[0].place
            what = Json(place) if place is not None else None
            return [Value(None, None, joined(args[:1]), what, args[0].texts), Value(ERROR)]
        if path == "encoding/json" and name == "Unmarshal":
            for place in args[1].places() if len(args) > 1 else ():
                event = Overwrite(**walker.context(place, call.line), source=json_place(args[0]))
                walker.record(event)
                if any(isinstance(what, PatchOf) for what in args[0].meanings()):
                    walker.fields[place] = args[0]
            return [Value(ERROR)]
        if name in MERGE_PATCH_FUNCTIONS and len(args) >= 2:
            patch = PatchOf(MERGE_PATCH_FUNCTIONS[name], json_place(args[0]), json_place(args[1]), line=call.line)
            patch.texts = tuple(t for a in args for t in a.texts)
            return [Value(None, None, joined(args), patch, patch.texts), Value(ERROR)]
        if name in ("DeepEqual", "DeepDerivative", "Equal", "DeepEqualWithNilDifferentFromEmpty") and len(args) >= 2:
            return [comparison(args)]
        if path == "fmt" and name in ("Sprintf", "Sprint"):
            texts = tuple(t for a in args for t in a.texts)[:16]
            return [Value(Named("", "string"), None, joined(args), None, texts)]
        if path in ("slices", "golang.org/x/exp/slices", "github.com/samber/lo", "sort"):
            for arg in args[1:]:
                self.run_closures(walker, [arg], call, "other")
            kind = args[0].type if args else None
            if path != "sort" and name in ("Contains", "ContainsFunc", "Index", "IndexFunc", "Equal"):
                return [Value(BOOL, None, joined(args))]
            return [Value(kind or ListOf(None), None, joined(args))]
        if path == "k8s.io/utils/ptr" and name == "To" and args:
            return [args[0]]
        if path == "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured" and name.startswith(
            ("SetNested", "RemoveNested")
        ):
            self.set_nested(walker, call, name, args)
            return [Value(ERROR)]
        if path == "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured" and name.startswith("Nested") and len(args) > 1:
            fields = tuple(t for a in args[1:] for t in a.texts)
            for place in args[0].places():
                target = place.at(*(f[:1].upper() + f[1:] for f in fields))
                return [Value(None, target, limit(args[0].sources | {target})), Value(BOOL), Value(ERROR)]
        return None

    def set_nested(self, walker: Walker, call: go.Call, name: str, args: list[Value]) -> None:
        first = 2 if name.startswith("Set") else 1
        fields = tuple(f[:1].upper() + f[1:] for a in args[first:] for f in a.texts)
        value = args[1] if first == 2 and len(args) > 1 else UNKNOWN
        for place in args[0].places() if args else ():
            walker.mutate(place.at(*fields), call.line, value, is_list=True if "Slice" in name else None)

    def error_check(self, walker: Walker, call: go.Call, name: str, error: Value) -> Value:
        kind = ERROR_CHECKS[name]
        events = [what.event for what in error.meanings() if isinstance(what, ErrorOf)]
        walker.trace.checks.append((name, error, walker.call_line or call.line, walker.facts))
        true = tuple(Fact(kind, event) for event in events)
        false = tuple(Fact(f"not-{kind}", event) for event in events)
        return Value(BOOL, None, error.sources, Condition(true, false))

    def ignoring(self, error: Value, kind: str) -> Value:
        events = [what.event for what in error.meanings() if isinstance(what, ErrorOf)]
        true = tuple(Fact("failed", event) for event in events)
        false = tuple(Fact(f"ok-or-{kind}", event) for event in events)
        return Value(ERROR, None, error.sources, Condition(true, false))

    def client_function(self, walker: Walker, call: go.Call, name: str, args: list[Value]) -> list[Value] | None:
        """A function of controller-runtime's client package."""
        if name in ("MergeFromWithOptions", "StrategicMergeFrom") and args:
            locked = len(call.args) > 1
            kind = "merge" if name.startswith("Merge") else "strategic"
            return [self.patch(walker, call, kind, args[0], locked)]
        if name == "RawPatch" and len(args) >= 2:
            return [self.raw_patch(walker, call, args[0], args[1])]
        if name == "ObjectKeyFromObject" and args:
            return [Value(None, None, joined(args))]
        if name in ("New", "NewWithWatch"):
            return [Value(Named(CLIENT, "Client"), what=Client(is_live=True)), Value(ERROR)]
        if name == "IgnoreNotFound" and args:
            return [self.ignoring(args[0], "not-found")]
        if name == "IgnoreAlreadyExists" and args:
            return [self.ignoring(args[0], "exists")]
        if name in ("NewNamespacedClient", "NewDryRunClient") and args:
            return [args[0]]
        return None

    def patch(self, walker: Walker, call: go.Call, kind: str, base: Value, locked: bool) -> Value:
        what = PatchOf(kind, base.place, is_locked=locked, line=call.line, call=call, file=walker.file)
        what.function = walker.decl
        what.sources = base.sources
        what.born = len(walker.trace.events)
        return Value(Named(CLIENT, "Patch"), None, base.sources, what)

    def raw_patch(self, walker: Walker, call: go.Call, kind: Value, data: Value) -> Value:
        name = kind.what.name if isinstance(kind.what, ExternalFunction) else ""
        parts = [data, *(walker.fields[source] for source in data.sources if source in walker.fields)]
        computed = next((what for part in parts for what in part.meanings() if isinstance(what, PatchOf)), None)
        what = PatchOf(PATCH_TYPES.get(name, "unknown"), line=call.line, file=walker.file, function=walker.decl)
        if computed is not None:
            what.base, what.modified = computed.base, computed.modified
        stored = (*data.texts, *texts_below(walker, data))
        what.texts = stored
        what.sources = limit(data.sources | frozenset(data.places()))
        what.is_locked = any("resourceVersion" in text for text in stored) or (
            what.kind == "json" and any('"test"' in text or text == "test" for text in stored)
        )
        what.born = len(walker.trace.events)
        return Value(Named(CLIENT, "Patch"), None, what.sources, what)

    # ----------------------------------------------------------------------------------------------------- models

    def apply(self, walker: Walker, call: go.Call, model: FunctionModel, args: list[Value]) -> list[Value]:
        """Do what a model says."""

        def argument(spec: dict[str, object]) -> Value:
            number = spec.get("arg", 0)
            return args[number] if isinstance(number, int) and number < len(args) else UNKNOWN

        name = model.name.rpartition(".")[2]
        region: Region | None = None
        if model.runs is not None and model.runs.get("as") in ("retry", "mutate"):
            region = Region(
                str(model.runs["as"]), walker.call_line or call.line, walker.frames[-1], walker.decl, name=name
            )
            walker.trace.regions.append(region)
        regions = walker.regions
        if region is not None:
            walker.regions = (*regions, region)
        if model.reads is not None:
            for place in argument(model.reads).places():
                walker.record(
                    Read(**walker.context(place, call.line), is_live=bool(model.reads.get("live")), text=name)
                )
        base_copy: Place | None = None
        if model.writes is not None:
            for place in argument(model.writes).places():
                copied = walker.thing(
                    f"{place.thing.name} before {name}", "copy", place.thing.type, call.line, copy_of=place
                )
                base_copy = Place(copied)
                break
        for spec in model.mutates:
            for place in argument(spec).places():
                fields = str(spec["field"]).split(".")
                is_list = fields[-1] not in ("Annotations", "Labels")
                walker.mutate(
                    place.at(*fields),
                    call.line,
                    is_list=is_list,
                    is_rmw=True,
                    helper=name,
                    is_remove=bool(spec.get("remove")),
                )
        if model.runs is not None:
            function = argument(model.runs)
            passed = [args[n] for n in model.runs.get("with") or () if n < len(args)]
            self.invoke(walker, function, passed, call.line)
        results: list[Value] = [Value(ERROR)]
        if model.writes is not None:
            events = [
                self.write_by_model(walker, call, model, place, base_copy) for place in argument(model.writes).places()
            ]
            results = [Value(ERROR, what=ErrorOf(event)) for event in events[:1]] or results
            if name.startswith(("CreateOr", "GetAndCreateOr")):
                results = [Value(None), *results]
        walker.regions = regions
        base = args[model.base] if model.base < len(args) else UNKNOWN
        match model.returns:
            case "changed":
                changed = Changed(base.place) if base.place is not None else None
                return [Value(BOOL, None, base.sources, changed)]
            case "merge-patch":
                return [self.patch(walker, call, "merge", base, locked=False)]
            case "locked-merge-patch":
                return [self.patch(walker, call, "merge", base, locked=True)]
            case "strategic-patch":
                return [self.patch(walker, call, "strategic", base, locked=len(args) > 1)]
            case "patch-helper":
                if base.place is None:
                    return [UNKNOWN, Value(ERROR)]
                copied = walker.thing("base of the patch helper", "copy", base.type, call.line, copy_of=base.place)
                return [Value(None, None, frozenset(), PatchHelper(Place(copied))), Value(ERROR)]
            case "copy":
                return [Value(base.type, None, joined(args))]
        return results

    def write_by_model(
        self, walker: Walker, call: go.Call, model: FunctionModel, place: Place, base: Place | None
    ) -> Event:
        assert model.writes is not None
        verb = str(model.writes.get("verb", "update"))
        event = Write(**walker.context(place, call.line), verb=verb, text=render(call.func), end_line=call.end_line)
        event.is_status = bool(model.writes.get("status"))
        event.kind = walker.place_type(place)
        if verb in ("patch", "create-or-patch"):
            patch = PatchOf("merge", base, is_locked=bool(model.writes.get("locked")), line=call.line)
            event.patch_value = Value(what=patch)
        walker.record(event)
        return event

    # ---------------------------------------------------------------------------------------------------- methods

    def method(
        self, walker: Walker, call: go.Call, selected: MethodName, callee: Value, args: list[Value]
    ) -> list[Value]:
        receiver, name, method = selected.receiver, selected.name, selected.method
        universal = self.object_method(
            walker, call, receiver, name, args, method is not None and method.decl is not None
        )
        if universal is not None:
            return universal
        if (isinstance(receiver.what, PatchHelper) and name == "Patch") or (
            name == "Patch" and self.helper_of(walker, receiver)
        ):
            return self.helper_patch(walker, call, receiver, args)
        if method is not None and method.decl is not None and not method.decl.file.is_generated:
            owner = receiver
            if method.through and receiver.place is not None:
                owner = Value(method.owner, receiver.place.at(*method.through), receiver.sources)
            return self.program.replay(walker, method.decl, owner, args, call.line)
        request = request_of(walker, call, receiver, name, args)
        if request is not None:
            return request
        if method is not None:
            results = [Value(kind, None, joined(args)) for kind in method.results]
            self.unknown(walker, call, name, args)
            return results or [UNKNOWN]
        kind = named(receiver.type)
        if kind is not None:
            model = self.program.models.find(kind.path, f"{kind.name}.{name}")
            if model is not None:
                return self.apply(walker, call, model, args)
        return self.unknown(walker, call, name, args, receiver)

    def helper_of(self, walker: Walker, receiver: Value) -> PatchHelper | None:
        return next((what for what in receiver.meanings() if isinstance(what, PatchHelper)), None)

    def helper_patch(self, walker: Walker, call: go.Call, receiver: Value, args: list[Value]) -> list[Value]:
        helper = self.helper_of(walker, receiver)
        target = args[1].place if len(args) > 1 else None
        if helper is None or target is None:
            return [Value(ERROR)]
        event = Write(**walker.context(target, call.line), verb="patch", text=render(call.func), end_line=call.end_line)
        patch = PatchOf("merge", helper.base, is_locked=helper.is_locked, line=call.line)
        event.patch_value = Value(what=patch)
        event.kind = walker.place_type(target)
        event.client_name = "patch helper"
        walker.record(event)
        return [Value(ERROR, what=ErrorOf(event))]

    def object_method(
        self, walker: Walker, call: go.Call, receiver: Value, name: str, args: list[Value], is_declared: bool
    ) -> list[Value] | None:
        """Methods that every API object has."""
        if name in ("DeepCopy", "DeepCopyObject") and not call.args:
            if receiver.place is None:
                return [
                    Value(
                        receiver.type, Place(walker.thing("value", "copy", receiver.type, call.line)), receiver.sources
                    )
                ]
            copied = walker.thing("value", "copy", receiver.type, call.line, copy_of=receiver.place)
            copied.is_live = receiver.place.thing.is_live
            return [Value(receiver.type, Place(copied), receiver.sources)]
        if name == "DeepCopyInto" and len(args) == 1:
            for place in args[0].places():
                walker.record(Overwrite(**walker.context(place, call.line), source=receiver.place))
            return [UNKNOWN]
        if name == "IsZero" and receiver.place is not None and receiver.place.path[-1:] == ("DeletionTimestamp",):
            place = Place(receiver.place.thing, receiver.place.path[:-1])
            return [
                Value(
                    BOOL, None, receiver.sources, Condition((Fact("not-deleting", place),), (Fact("deleting", place),))
                )
            ]
        if name in ("DeepEqual", "DeepDerivative") and len(args) >= 2:
            return [comparison(args)]
        if name == "Equal" and len(args) == 1:
            return [comparison([receiver, *args])]
        if is_declared:
            return None
        if name.startswith("Get") and name[3:] in METADATA and not call.args:
            return [walker.member(receiver, name[3:], call.line)]
        if name.startswith("Set") and name[3:] in METADATA and len(args) == 1:
            for place in receiver.places():
                target = place.at(name[3:])
                is_list = name[3:] in ("Finalizers", "OwnerReferences")
                current = args[0].place
                if current is not None and current.path == target.path and current.thing is target.thing:
                    continue
                walker.mutate(target, call.line, args[0], is_list=is_list)
                walker.fields[Place(target.thing, target.path)] = args[0]
            return [UNKNOWN]
        if name == "Error" and not call.args:
            return [Value(Named("", "string"), None, receiver.sources)]
        return None

    # -------------------------------------------------------------------------------------------------- functions

    def invoke(
        self, walker: Walker, function: Value, args: list[Value], line: int, call: go.Call | None = None
    ) -> list[Value]:
        """Call a function value: a closure of the walked function, or a declared function."""
        results: list[Value] | None = None
        for what in function.meanings():
            if isinstance(what, Function):
                if what.closure is not None:
                    results = self.run_closure(walker, what, args)
                elif what.decl is not None and not what.decl.file.is_generated:
                    if call is not None and call.type_args:
                        results = self.generic(walker, what.decl, call, args)
                    else:
                        results = self.program.replay(walker, what.decl, what.receiver, args, line)
            elif isinstance(what, MethodName) and what.method is not None and what.method.decl is not None:
                results = self.program.replay(walker, what.method.decl, what.receiver, args, line)
        if results is None:
            parameter = parameter_number(function)
            if parameter is not None and function.place is not None:
                event = Invocation(**walker.context(function.place, line), parameter=parameter, args=tuple(args))
                walker.record(event)
        return results if results is not None else [Value(None, None, joined(args))]

    def generic(self, walker: Walker, decl: go.FunctionDecl, call: go.Call, args: list[Value]) -> list[Value]:
        """Call `f[T](…)`: results of type T get the type that is written."""
        results = self.program.replay(walker, decl, None, args, call.line)
        known = {
            name: walker.tree.type_of(text, walker.file)
            for name, text in zip(decl.type_params, call.type_args, strict=False)
        }
        typed: list[Value] = []
        for value, result in zip(results, decl.results, strict=False):
            kind = known.get(result.type.lstrip("*"))
            if kind is not None and value.place is None:
                value = Value(kind, Place(walker.thing("value", "result", kind, call.line)), value.sources)
            typed.append(walker.with_type(value, kind))
        return typed or results

    def run_closure(
        self, walker: Walker, function: Function, args: list[Value], is_shared: bool = False
    ) -> list[Value] | None:
        """Walk a closure's body where it is called."""
        closure = function.closure
        if closure is None or function.walker is not walker or walker.depth >= MAX_CLOSURE_DEPTH:
            return None
        saved_env: dict[str, Value] = {}
        added: list[str] = []
        for number, param in enumerate(closure.params):
            if not param.name or param.name == "_":
                continue
            kind = walker.tree.type_of(param.type, walker.file)
            value = args[number] if number < len(args) else UNKNOWN
            if value.place is None and value.what is None:
                thing = walker.thing(param.name, "event" if is_shared else "param", kind, closure.line)
                thing.is_shared = is_shared
                value = Value(kind, Place(thing), value.sources)
            elif value.type is None or (kind is not None and walker.tree.declaration(value.type) is None):
                if (
                    value.place is not None
                    and not value.place.path
                    and walker.tree.declaration(value.place.thing.type) is None
                ):
                    value.place.thing.type = kind  # a type parameter gets the type that the closure declares
                value = retyped(value, kind)
            if param.name in walker.env:
                saved_env[param.name] = walker.env[param.name]
            else:
                added.append(param.name)
            walker.env[param.name] = value
        for name, value in function.env.items():
            if name not in walker.env:
                walker.env[name] = value
                added.append(name)
        outer = (walker.returns, walker.call_line, walker.frames)
        walker.returns, walker.call_line = [], 0
        walker.frames = (*walker.frames, next(numbers))
        walker.depth += 1
        walker.block(closure.body)
        walker.depth -= 1
        returned = walker.returns or []
        walker.returns, walker.call_line, walker.frames = outer
        for name in added:
            walker.env.pop(name, None)
        walker.env.update(saved_env)
        results: list[Value] = []
        for number in range(max((len(r) for r in returned), default=0)):
            options = [r[number] for r in returned if number < len(r) and not isinstance(r[number].what, Nothing)]
            results.append(merge(options) if options else UNKNOWN)
        return results or [UNKNOWN]

    def run_handler(self, walker: Walker, function: Value, is_shared: bool) -> None:
        """Walk a closure that somebody else calls, for example an event handler."""
        if isinstance(function.what, Function):
            facts, arms = walker.facts, walker.arms
            walker.facts = ()
            with walker.arm(next(numbers), 0, 0, (), None):
                self.run_closure(walker, function.what, [], is_shared)
            walker.facts, walker.arms = facts, arms

    def run_closures(self, walker: Walker, args: list[Value], call: go.Call, kind: str) -> None:
        for arg in args:
            for what in arg.meanings():
                if isinstance(what, Function) and what.closure is not None:
                    with walker.arm(next(numbers), 0, call.line, (), None):
                        self.run_closure(walker, what, [])

    def unknown(
        self, walker: Walker, call: go.Call, name: str, args: list[Value], receiver: Value | None = None
    ) -> list[Value]:
        """A function of which only the name is known. Closures may run, and lists passed by pointer may change."""
        if name in ERROR_CHECKS and args:
            return [self.error_check(walker, call, name, args[-1])]
        changed: Place | None = None
        for expression, arg in zip(call.args, args, strict=False):
            if isinstance(expression, go.Unary) and expression.op == "&" and arg.place is not None and arg.place.path:
                kind = walker.tree.underlying(arg.type.to if isinstance(arg.type, Pointer) else arg.type)
                is_list = isinstance(kind, ListOf) or (kind is None and bool(CONDITION_NAME.search(arg.place.path[-1])))
                if is_list and CHANGING_NAME.match(name):
                    walker.mutate(
                        arg.place,
                        call.line,
                        is_list=True,
                        is_rmw=True,
                        helper=name,
                        is_remove=name.startswith(("Remove", "Delete")),
                    )
                    changed = arg.place
        self.run_closures(walker, args, call, "other")
        if (
            walker.regions
            and is_write_like(name)
            and args
            and any(is_context(walker, a, e) for a, e in zip(args[:1], call.args[:1], strict=False))
        ):
            for region in walker.regions:
                region.has_unknown_write = True
        if walker.regions and args and is_context(walker, args[0], call.args[0]):
            for region in walker.regions:
                region.has_unknown_call = True
        sources = joined(args)
        if receiver is not None:
            sources = limit(sources | receiver.sources | frozenset(receiver.places()))
        if WRAPPING_NAME.search(name):
            errors = [what for arg in args for what in arg.meanings() if isinstance(what, ErrorOf)]
            if errors:
                return [Value(ERROR, None, sources, errors[0])]
        if changed is not None:
            return [Value(BOOL, None, sources, Changed(changed))]
        texts = tuple(t for a in args for t in a.texts)[:8]
        return [Value(None, None, sources, None, texts)]


def is_write_like(name: str) -> bool:
    return bool(re.match(r"(?i)^(update|patch|apply|create|save|persist|write|store|replace)", name))


def parameter_number(value: Value) -> int | None:
    """Return which parameter a function value is, or None."""
    if value.place is None:
        return None
    thing = value.place.thing
    if thing.parameter >= 0 and not value.place.path:
        return thing.parameter
    if thing.origin == "item" and thing.copy_of is not None and thing.copy_of.thing.parameter >= 0:
        return thing.copy_of.thing.parameter if thing.copy_of.path == (ITEM,) else None
    return None


def joined(values: list[Value]) -> frozenset[Place]:
    """Return everything that values were computed from."""
    found: frozenset[Place] = frozenset()
    for value in values:
        found |= value.sources
        found |= frozenset(value.places())
    return limit(found)


def json_place(value: Value) -> Place | None:
    return next((what.place for what in value.meanings() if isinstance(what, Json)), None)


def texts_below(walker: Walker, value: Value) -> list[str]:
    """Return the string literals in the fields of the object whose JSON a value is."""
    place = json_place(value) or value.place
    if place is None:
        return []
    texts: list[str] = []
    for known, stored in walker.fields.items():
        if known.thing is place.thing:
            texts += known.path
            texts += stored.texts
    return texts


def comparison(args: list[Value]) -> Value:
    place = next((arg.place for arg in args if arg.place is not None), None)
    return Value(BOOL, None, joined(args), Condition((Fact("unchanged", place),), (Fact("changed", place),)))
