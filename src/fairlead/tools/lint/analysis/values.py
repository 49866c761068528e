"""What the analysis knows about a Go value: which object it is, what it was computed from, and what it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead.tools.lint.golang.module import Method
from fairlead.tools.lint.golang.syntax import Closure, FunctionDecl, GoFile
from fairlead.tools.lint.golang.types import GoType, Named

MAX_SOURCES = 16
MAX_CHOICES = 4
ITEM = "[]"
"""The path component of a list's or map's item."""


@dataclass(slots=True, eq=False)
class Thing:
    """An object in memory. Two things are the same only if they are identical."""

    name: str
    origin: str
    """param, receiver, literal, zero, read, lister, event, result, copy, item or global."""
    type: GoType | None = None
    line: int = 0
    copy_of: Place | None = None
    born: int = 0  # the index of the next event when it came into being
    is_live: bool = False  # read from the API server and not from a cache
    is_shared: bool = False  # belongs to a cache that others read
    parameter: int = -2  # -1: the receiver
    frame: int = 0  # of the call in which it came into being
    file: GoFile | None = None

    def __repr__(self) -> str:
        return f"<{self.origin} {self.name}>"


class Place(NamedTuple):
    """A thing, or a field in it."""

    thing: Thing
    path: tuple[str, ...] = ()

    def at(self, *names: str) -> Place:
        return Place(self.thing, (*self.path, *names))

    def __str__(self) -> str:
        return ".".join((self.thing.name, *self.path)).replace("." + ITEM, ITEM)


def normalize(path: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out embedded metadata, so that `x.ObjectMeta.Finalizers` and `x.Finalizers` are the same field."""
    if "ObjectMeta" not in path and "Object" not in path:
        return path
    last = len(path) - 1
    return tuple(name for i, name in enumerate(path) if i == last or name not in ("ObjectMeta", "Object"))


@dataclass(slots=True, eq=False)
class Value:
    type: GoType | None = None
    place: Place | None = None
    sources: frozenset[Place] = frozenset()
    what: Meaning | None = None
    texts: tuple[str, ...] = ()
    choices: tuple[Value, ...] = ()  # a value that depends on a branch

    def options(self) -> Iterator[Value]:
        """Yield the values that this one can be."""
        if self.choices:
            yield from self.choices
        else:
            yield self

    def meanings(self) -> Iterator[Meaning]:
        for option in self.options():
            if option.what is not None:
                yield option.what

    def places(self) -> Iterator[Place]:
        for option in self.options():
            if option.place is not None:
                yield option.place


UNKNOWN = Value()


@dataclass(slots=True, eq=False)
class PackageName:
    path: str


@dataclass(slots=True, eq=False)
class TypeName:
    type: GoType | None


@dataclass(slots=True, eq=False)
class Function:
    """A function value: a declared function, a bound method or a closure."""

    decl: FunctionDecl | None = None
    closure: Closure | None = None
    receiver: Value | None = None
    env: dict[str, Value] = field(default_factory=dict)
    walker: object = None  # the walker in whose function a closure was written
    file: GoFile | None = None


@dataclass(slots=True, eq=False)
class ExternalFunction:
    """A function or variable of a package outside the tree."""

    path: str
    name: str


@dataclass(slots=True, eq=False)
class MethodName:
    """A method that is selected, but not yet called."""

    receiver: Value
    name: str
    method: Method | None


@dataclass(slots=True, eq=False)
class PatchOf:
    """A patch: `client.MergeFrom(base)`, raw bytes, or a server-side apply."""

    kind: str  # merge, strategic, json or apply
    base: Place | None = None
    modified: Place | None = None  # for raw patches that were computed from two objects
    is_locked: bool = False
    texts: tuple[str, ...] = ()
    sources: frozenset[Place] = frozenset()
    line: int = 0
    call: object = None  # the Call, for the replacement text
    file: GoFile | None = None
    function: FunctionDecl | None = None
    is_forced: bool = False
    born: int = 0


@dataclass(slots=True, eq=False)
class PatchHelper:
    """An object that remembers a base and patches later, like Cluster API's patch.Helper."""

    base: Place
    is_locked: bool = False


@dataclass(slots=True, eq=False)
class Json:
    """The JSON of an object."""

    place: Place


@dataclass(slots=True, eq=False)
class ErrorOf:
    """The error that a request returned."""

    event: Event


@dataclass(slots=True, eq=False)
class Client:
    """A client, or its status client."""

    is_live: bool = False
    is_status: bool = False
    is_lister: bool = False


@dataclass(slots=True, eq=False)
class Condition:
    """A boolean: what holds if it is true, and if it is false."""

    true: tuple[Fact, ...] = ()
    false: tuple[Fact, ...] = ()


@dataclass(slots=True, eq=False)
class Nothing:
    """nil."""


@dataclass(slots=True, eq=False)
class Changed:
    """A boolean that says whether a helper changed the object."""

    place: Place


Meaning = (
    PackageName | TypeName | Function | ExternalFunction | MethodName | PatchOf | PatchHelper | Json | ErrorOf | Client
    | Condition | Nothing | Changed
)  # fmt: skip


class Fact(NamedTuple):
    """Something that is known in a branch, for example that a Create failed with AlreadyExists."""

    kind: str  # exists, not-found, conflict, ok, failed, deleting, changed, unchanged
    subject: object  # the Event or the Place


# --------------------------------------------------------------------------------------------------------- events


@dataclass(slots=True, eq=False)
class Arm:
    """One arm of an if, a switch or a loop."""

    branch: int
    number: int
    frame: int
    line: int = 0
    ends: str = ""  # return or jump, if the arm does not fall through
    loop: Arm | None = None  # the innermost loop around it
    is_loop: bool = False
    reads: frozenset[Place] = frozenset()  # the places that the condition reads
    compares: bool = False  # the condition asks whether something changed
    is_static: bool = False


@dataclass(slots=True, eq=False)
class Region:
    """Statements that are run by a helper, for example retry.RetryOnConflict."""

    kind: str  # retry, mutate or other
    line: int
    frame: int
    function: FunctionDecl | None
    has_unknown_write: bool = False
    has_unknown_call: bool = False
    name: str = ""


@dataclass(slots=True, eq=False)
class Event:
    """Something that happens to an object. `line` is in the analysed function, `site` is where it is written."""

    place: Place
    line: int
    index: int
    arms: tuple[Arm, ...]
    frames: tuple[int, ...]
    regions: tuple[Region, ...]
    facts: tuple[Fact, ...]
    site: tuple[GoFile, int]
    is_deferred: bool


@dataclass(slots=True, eq=False)
class Mutation(Event):
    path_is_list: bool | None = None
    is_append: bool = False
    value: Value = UNKNOWN
    is_rmw: bool = False
    helper: str = ""  # the function that changes the field, if it is a known one
    key: tuple[Named, str] | None = None  # the struct that declares the field, and its name
    value_type: GoType | None = None
    is_remove: bool = False


@dataclass(slots=True, eq=False)
class Overwrite(Event):
    """The whole object is replaced by the content of another one."""

    source: Place | None = None


@dataclass(slots=True, eq=False)
class Read(Event):
    is_live: bool = False
    is_list: bool = False
    key: Value = UNKNOWN
    text: str = ""


@dataclass(slots=True, eq=False)
class Write(Event):
    verb: str = ""  # create, update, patch, delete, apply or create-or-update
    is_status: bool = False
    patch_value: Value = UNKNOWN
    has_precondition: bool = False
    is_forced: bool = False
    text: str = ""
    error_is_dropped: bool = False
    kind: GoType | None = None
    client_name: str = ""
    is_typed_client: bool = False
    end_line: int = 0

    @property
    def patches(self) -> list[PatchOf]:
        """Return what the request can send, if it is a patch."""
        return [what for what in self.patch_value.meanings() if isinstance(what, PatchOf)]


@dataclass(slots=True, eq=False)
class Invocation(Event):
    """A function parameter is called."""

    parameter: int = -2
    args: tuple[Value, ...] = ()


@dataclass(slots=True, eq=False)
class Trace:
    """What a function does, in order."""

    decl: FunctionDecl
    events: list[Event] = field(default_factory=list)
    parameters: dict[int, Thing] = field(default_factory=dict)
    returns: list[tuple[Value, ...]] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    gates: list[tuple[tuple[Named, str], Arm, int]] = field(default_factory=list)
    """Fields that conditions read: the struct and the name of the field, the arm and the line."""
    returns_with: list[tuple[int, tuple[Value, ...], tuple[Fact, ...]]] = field(default_factory=list)
    checks: list[tuple[str, Value, int, tuple[Fact, ...]]] = field(default_factory=list)
    """Calls of IsConflict and its like: name, argument, line."""
    is_complete: bool = True
    frame: int = 0
    copies: list[Thing] = field(default_factory=list)
    """The things that are copies of others, in order."""
    literal_fields: dict[Place, Value] = field(default_factory=dict)
    """The values of fields at the end, for example those of composite literals."""


def merge(values: list[Value]) -> Value:
    """Return a value that can be any of `values`."""
    options: list[Value] = []
    for value in values:
        for option in value.options():
            if not any(option is seen or _same(option, seen) for seen in options):
                options.append(option)
    if len(options) == 1:
        return options[0]
    options = options[:MAX_CHOICES]
    sources = limit(frozenset().union(*(option.sources for option in options)))
    kind = next((option.type for option in options if option.type is not None), None)
    texts = tuple(dict.fromkeys(text for option in options for text in option.texts))[:8]
    return Value(kind, options[0].place, sources, None, texts, tuple(options))


def _same(one: Value, other: Value) -> bool:
    if one.place is None or one.place != other.place:
        return False
    return one.what is other.what


def limit(sources: frozenset[Place]) -> frozenset[Place]:
    """Keep the most specific places, in an order that does not depend on memory addresses."""
    if len(sources) <= MAX_SOURCES:
        return sources
    ordered = sorted(sources, key=lambda p: (len(p.path), p.path, p.thing.name, p.thing.line, p.thing.born))
    return frozenset(ordered[-MAX_SOURCES:])
