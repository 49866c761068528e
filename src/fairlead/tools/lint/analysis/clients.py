"""Recognize requests to the API server, by the type of the client or by the shape of the call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairlead.tools.lint.analysis.values import (
    UNKNOWN,
    Client,
    ErrorOf,
    ExternalFunction,
    PatchOf,
    Place,
    Read,
    Value,
    Write,
)
from fairlead.tools.lint.golang import syntax as go
from fairlead.tools.lint.golang.module import META
from fairlead.tools.lint.golang.render import render
from fairlead.tools.lint.golang.types import FuncOf, GoType, ListOf, Named, Pointer, named

if TYPE_CHECKING:
    from fairlead.tools.lint.analysis.walker import Walker

CLIENT = "sigs.k8s.io/controller-runtime/pkg/client"
ERROR = Named("", "error")
CLIENT_TYPES = (
    "Client",
    "WithWatch",
    "Writer",
    "Reader",
    "StatusClient",
    "StatusWriter",
    "SubResourceWriter",
    "SubResourceClient",
)
STATUS_TYPES = ("StatusWriter", "SubResourceWriter", "SubResourceClient")
CLIENT_NAME = re.compile(r"(?i)(client|clnt|^c$|^cl$|^cli$|^kc$|^k8s$|kube|^crcli$|writer$|apiserver)")
LIVE_NAME = re.compile(r"(?i)(apireader|uncached|livereader|liveclient|directclient|nocache|non-?cached)")
LISTER_NAME = re.compile(r"(?i)(lister$|^lister)")
INDEXER_NAME = re.compile(r"(?i)(indexer|informer\w*store|^store$)")
VERSIONED = re.compile(r"V\d+((alpha|beta)\d+)?$")
VERBS = {
    "Create": "create", "Update": "update", "UpdateStatus": "update", "Patch": "patch", "Delete": "delete",
    "DeleteAllOf": "delete", "DeleteCollection": "delete", "Apply": "apply", "ApplyStatus": "apply", "Get": "get",
    "List": "list",
}  # fmt: skip


def is_context(walker: Walker, value: Value, expression: go.Expr) -> bool:
    """Return whether an argument is a context.Context."""
    kind = value.type
    if isinstance(kind, Named) and kind.path == "context":
        return True
    match expression:
        case go.Name(name, _):
            return bool(re.search(r"(?i)ctx|context", name))
        case go.Call(go.Select(go.Name("context", _), _, _)):
            return True
        case go.Select(_, name, _):
            return bool(re.search(r"(?i)^(ctx|context)$", name))
        case go.Call(go.Select(_, name, _)):
            return name in ("Context", "TODO", "Background")
    return False


def client_of(walker: Walker, value: Value, expression: go.Expr | None = None) -> Client | None:
    """Return what is known about a client, if a value is one."""
    for what in value.meanings():
        if isinstance(what, Client):
            return what
    kind = named(value.type)
    name = last_name(expression) if expression is not None else ""
    if kind is not None:
        if kind.path == CLIENT or kind.path.endswith("controller-runtime/pkg/client"):
            if kind.name in CLIENT_TYPES:
                return Client(is_live=bool(LIVE_NAME.search(name)), is_status=kind.name in STATUS_TYPES)
            return None
        for wanted in ("Client", "WithWatch", "Writer", "Reader"):
            through = walker.tree.embeds(kind, Named(CLIENT, wanted))
            if through is not None:
                return Client(is_live=bool(LIVE_NAME.search(name)))
    return None


def lister_of(walker: Walker, value: Value, expression: go.Expr) -> bool:
    """Return whether a value is a lister of client-go, whose objects belong to the informer's cache."""
    for what in value.meanings():
        if isinstance(what, Client):
            return what.is_lister
    kind = named(value.type)
    if kind is not None and (kind.name.endswith("Lister") or "/listers/" in kind.path):
        return True
    return bool(LISTER_NAME.search(last_name(expression))) and walker.tree.declaration(value.type) is None


def last_name(expression: go.Expr | None) -> str:
    match expression:
        case go.Name(name, _):
            return name
        case go.Select(_, name, _):
            return name
        case go.Call(func):
            return last_name(func)
        case go.Index(base) | go.Unary(_, base, _) | go.Assertion(base, _, _):
            return last_name(base)
    return ""


def request_of(walker: Walker, call: go.Call, receiver: Value, name: str, args: list[Value]) -> list[Value] | None:
    """Record the request that a method call sends, and return its results; None if it is not a request."""
    if not isinstance(call.func, go.Select):
        return None  # a method value that was stored in a variable
    base = call.func.base
    if name in ("GetClient", "GetRuntimeClient") and not args:
        return [Value(Named(CLIENT, "Client"), None, frozenset(), Client())]
    if name in ("GetAPIReader", "APIReader") and len(args) <= 1:
        return [Value(Named(CLIENT, "Reader"), None, frozenset(), Client(is_live=True))]
    shared = _from_lister(walker, call, receiver, name, args)
    if shared is not None:
        return shared
    client = client_of(walker, receiver, base)
    if name == "Status" and not args and (client is not None or CLIENT_NAME.search(last_name(base))):
        is_live = client.is_live if client is not None else False
        return [Value(Named(CLIENT, "SubResourceWriter"), None, frozenset(), Client(is_live=is_live, is_status=True))]
    if name == "SubResource" and client is not None and args:
        return [Value(None, None, frozenset(), Client(is_live=client.is_live, is_status="status" in args[0].texts))]
    verb = VERBS.get(name)
    if verb is None or not args:
        return None
    options = next((kind for arg in args if (kind := options_type(arg))), "")
    with_context = is_context(walker, args[0], call.args[0])
    if options and client is None:
        return _typed(walker, call, base, name, verb, args, with_context)
    if client is None and not with_context:
        chain = versioned_chain(base)
        if chain and verb in ("update", "create", "patch", "delete"):
            return _typed(walker, call, base, name, verb, args, with_context=False)
        return None
    if client is None and not _looks_like_client(walker, call, receiver, name, args):
        return None
    return _generic(
        walker, call, base, name, verb, args, client or Client(is_live=bool(LIVE_NAME.search(last_name(base))))
    )


OPTIONS = {"CreateOption": "create", "UpdateOption": "update", "PatchOption": "patch", "DeleteOption": "delete"}


def function_request(walker: Walker, call: go.Call, callee: Value, args: list[Value]) -> list[Value] | None:
    """A function value with the signature of a client's method, for example a field that tests replace."""
    if not isinstance(callee.type, FuncOf):
        return None
    kinds = [kind.item if isinstance(kind, ListOf) else kind for kind in callee.type.params]
    options = [kind.name for kind in kinds if isinstance(kind, Named) and kind.path == CLIENT and kind.name in OPTIONS]
    if not options:
        return None
    verb = OPTIONS[options[0]]
    return _generic(walker, call, call.func, verb.capitalize(), verb, args, Client())


def options_type(value: Value) -> str:
    kind = named(value.type)
    if kind is not None and kind.path == META and kind.name.endswith("Options"):
        return kind.name
    return ""


def versioned_chain(expression: go.Expr) -> bool:
    """Return whether an expression is `client.CoreV1().Secrets(…)`."""
    if isinstance(expression, go.Call) and isinstance(expression.func, go.Select):
        inner = expression.func.base
        return (
            isinstance(inner, go.Call) and isinstance(inner.func, go.Select) and bool(VERSIONED.search(inner.func.name))
        )
    return False


def _looks_like_client(walker: Walker, call: go.Call, receiver: Value, name: str, args: list[Value]) -> bool:
    """Judge a call whose receiver has no known type, by its arguments."""
    if name == "Patch" and len(args) >= 3 and any(isinstance(what, PatchOf) for what in args[2].meanings()):
        return True
    kind = named(receiver.type)
    if kind is not None and kind.path in walker.tree.packages:
        return False  # a type of this tree without such a method that leads to a client
    if kind is not None and not any(word in kind.path for word in ("client", "controller-runtime", "kube")):
        return False
    assert isinstance(call.func, go.Select)
    if not CLIENT_NAME.search(last_name(call.func.base)):
        return False
    wanted = {"Get": 3, "List": 2, "Create": 2, "Update": 2, "Delete": 2, "Patch": 3}.get(name)
    if wanted is None or len(args) < wanted:
        return False
    target = args[2] if name == "Get" else args[1]
    return target.place is not None and walker.tree.is_api_object(target.type) is not False


def _record(walker: Walker, call: go.Call, verb: str, place: Place, base: go.Expr, value: Value) -> Write:
    event = Write(**walker.context(place, call.line), verb=verb, text=render(call.func), end_line=call.end_line)
    event.kind = value.type if value.type is not None else walker.place_type(place)
    event.client_name = last_name(base)
    written = " ".join(render(arg) for arg in call.args)
    event.has_precondition = "recondition" in written
    event.is_forced = "ForceOwnership" in written or "Force" in written
    walker.record(event)
    return event


def _generic(
    walker: Walker, call: go.Call, base: go.Expr, name: str, verb: str, args: list[Value], client: Client
) -> list[Value] | None:
    """A call of controller-runtime's client."""
    position = 2 if verb == "get" else 1
    if len(args) <= position:
        return None
    target = args[position]
    place = target.place
    if place is None:
        place = Place(walker.thing("value", "result", target.type, call.line))
    if verb in ("get", "list"):
        read = Read(**walker.context(place, call.line), is_live=client.is_live, is_list=verb == "list")
        read.key = args[1] if verb == "get" else UNKNOWN
        read.text = render(call.func)
        walker.record(read)
        if not place.path:
            place.thing.is_live = client.is_live
            if place.thing.origin in ("zero", "literal"):
                place.thing.origin = "read"
        return [Value(ERROR, what=ErrorOf(read))]
    event = _record(walker, call, verb, place, base, target)
    event.is_status = client.is_status
    if verb == "patch" and len(args) > 2:
        event.patch_value = _as_patch(walker, call, args[2])
        if any(isinstance(w, PatchOf) and w.kind == "apply" for w in event.patch_value.meanings()):
            event.verb = "apply"
    if not event.has_precondition:
        event.has_precondition = any(_has_precondition(walker, arg) for arg in args[2:])
    return [Value(ERROR, what=ErrorOf(event))]


def _as_patch(walker: Walker, call: go.Call, value: Value) -> Value:
    if isinstance(value.what, ExternalFunction) and value.what.name in ("Apply", "Merge"):
        return Value(what=PatchOf("apply" if value.what.name == "Apply" else "merge", line=call.line))
    return value


def _has_precondition(walker: Walker, value: Value) -> bool:
    kind = named(value.type)
    if kind is not None and kind.name == "Preconditions":
        return True
    place = value.place
    return place is not None and any(
        known.thing is place.thing and "Preconditions" in known.path for known in walker.fields
    )


def _typed(
    walker: Walker, call: go.Call, base: go.Expr, name: str, verb: str, args: list[Value], with_context: bool
) -> list[Value] | None:
    """A call of a typed client set or of the dynamic client."""
    position = 1 if with_context else 0
    if len(args) <= position:
        return None
    target = args[position]
    result = Value(None)
    if verb in ("get", "list"):
        thing = walker.thing("value", "read", None, call.line, is_live=True)
        read = Read(**walker.context(Place(thing), call.line), is_live=True, is_list=verb == "list", key=target)
        read.text = render(call.func)
        walker.record(read)
        return [Value(None, Place(thing)), Value(ERROR, what=ErrorOf(read))]
    place = target.place if verb != "patch" and verb != "delete" else None
    if place is None:
        source = next(iter(sorted(target.sources, key=lambda p: len(p.path))), None)
        thing = walker.thing("value", "result", None, call.line)
        place = Place(source.thing, ()) if source is not None and verb in ("patch", "delete") else Place(thing)
        target = Value(place.thing.type, place)
    event = _record(walker, call, verb, place, base, target)
    event.is_typed_client = True
    event.is_status = name.endswith("Status") or any("status" in arg.texts for arg in args[position + 3 :])
    if verb == "patch" and len(args) > position + 2:
        event.patch_value = walker.program.calls.raw_patch(walker, call, args[position + 1], args[position + 2])
        if any(isinstance(w, PatchOf) and w.kind == "apply" for w in event.patch_value.meanings()):
            event.verb = "apply"
    if not event.has_precondition:
        event.has_precondition = any(_has_precondition(walker, arg) for arg in args[position + 1 :])
    failure = Value(ERROR, what=ErrorOf(event))
    if verb == "delete":
        return [failure]
    if verb in ("create", "update") and target.place is not None:
        updated = walker.thing("value", "result", target.type, call.line, is_live=True)
        result = Value(target.type, Place(updated))
    return [result, failure]


def _from_lister(walker: Walker, call: go.Call, receiver: Value, name: str, args: list[Value]) -> list[Value] | None:
    """A call of a lister or an indexer: the result belongs to the cache."""
    assert isinstance(call.func, go.Select)
    base = call.func.base
    if name == "Lister" and len(args) <= 1:
        return [Value(None, None, frozenset(), Client(is_lister=True))]
    is_lister = lister_of(walker, receiver, base)
    if is_lister and len(args) <= 1 and name not in ("Get", "List"):
        return [Value(None, None, frozenset(), Client(is_lister=True))]
    is_indexer = name in ("GetByKey", "ByIndex", "GetIndexer") and bool(INDEXER_NAME.search(last_name(base)))
    if not is_lister and not is_indexer:
        return None
    if args and is_context(walker, args[0], call.args[0]):
        return None
    if name in ("Get", "GetByKey") and len(args) == 1:
        thing = walker.thing("value", "lister", None, call.line, is_shared=True)
        read = Read(**walker.context(Place(thing), call.line), key=args[0])
        walker.record(read)
        results = [Value(thing.type, Place(thing)), Value(ERROR, what=ErrorOf(read))]
        return results if name == "Get" else [results[0], Value(Named("", "bool")), results[1]]
    if name in ("List", "ByIndex"):
        kind: GoType | None = ListOf(Pointer(None))
        thing = walker.thing("value", "lister", kind, call.line, is_shared=True)
        read = Read(**walker.context(Place(thing), call.line), is_list=True)
        walker.record(read)
        return [Value(kind, Place(thing)), Value(ERROR, what=ErrorOf(read))]
    return None
