"""The parts of a Go program that the rules look at, without anything of tree-sitter.

A function's body is a list of statements. Expressions keep their line, because findings point there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(slots=True)
class Name:
    name: str
    line: int


@dataclass(slots=True)
class Select:
    """`base.name`: a field, a method, or a name of another package."""

    base: Expr
    name: str
    line: int


@dataclass(slots=True)
class Call:
    func: Expr
    args: list[Expr]
    line: int
    end_line: int
    type_args: tuple[str, ...] = ()
    start: int = 0  # byte offsets in the function's text, for replacement texts
    end: int = 0


@dataclass(slots=True)
class Literal:
    """A number, a string without its quotes, `nil`, `true`, …"""

    text: str
    is_string: bool
    line: int


@dataclass(slots=True)
class Composite:
    """`T{key: value, …}`. A positional item has the key None."""

    type: str
    items: list[tuple[Expr | None, Expr]]
    line: int


@dataclass(slots=True)
class Closure:
    params: list[Param]
    results: list[str]
    body: list[Stmt]
    line: int
    end_line: int


@dataclass(slots=True)
class Unary:
    op: str
    operand: Expr
    line: int


@dataclass(slots=True)
class Binary:
    op: str
    left: Expr
    right: Expr
    line: int


@dataclass(slots=True)
class Index:
    """`base[index]`, or the start of a slice expression if `is_slice`."""

    base: Expr
    index: Expr | None
    line: int
    is_slice: bool = False


@dataclass(slots=True)
class Assertion:
    """`base.(type)`."""

    base: Expr
    type: str
    line: int


@dataclass(slots=True)
class Conversion:
    """`[]T(x)` and other conversions to types that are not names."""

    type: str
    operand: Expr
    line: int


@dataclass(slots=True)
class Opaque:
    """An expression that the rules do not look into, for example one that could not be parsed."""

    line: int


Expr: TypeAlias = (
    Name | Select | Call | Literal | Composite | Closure | Unary | Binary | Index | Assertion | Conversion | Opaque
)


@dataclass(slots=True)
class Assign:
    """`targets op values`; `op` is `=`, `:=`, `+=`, …"""

    targets: list[Expr]
    op: str
    values: list[Expr]
    line: int


@dataclass(slots=True)
class Declare:
    """`var names type = values`."""

    names: list[str]
    type: str
    values: list[Expr]
    line: int


@dataclass(slots=True)
class Do:
    """An expression as a statement."""

    value: Expr
    line: int


@dataclass(slots=True)
class If:
    init: Stmt | None
    cond: Expr
    then: list[Stmt]
    otherwise: list[Stmt] | None
    line: int


@dataclass(slots=True)
class Loop:
    init: Stmt | None
    cond: Expr | None
    post: Stmt | None
    body: list[Stmt]
    line: int


@dataclass(slots=True)
class Range:
    targets: list[Expr]
    defines: bool
    over: Expr
    body: list[Stmt]
    line: int


@dataclass(slots=True)
class Case:
    """One arm of a switch. The default arm has no values. `types` are those of a type switch."""

    values: list[Expr]
    types: list[str]
    is_default: bool
    body: list[Stmt]


@dataclass(slots=True)
class Switch:
    init: Stmt | None
    tag: Expr | None
    binding: str
    cases: list[Case]
    line: int


@dataclass(slots=True)
class Return:
    values: list[Expr]
    line: int


@dataclass(slots=True)
class Defer:
    call: Expr
    line: int
    is_go: bool = False


@dataclass(slots=True)
class Block:
    body: list[Stmt]
    line: int


@dataclass(slots=True)
class Jump:
    """`break`, `continue` or `goto`."""

    kind: str
    line: int


Stmt: TypeAlias = Assign | Declare | Do | If | Loop | Range | Switch | Return | Defer | Block | Jump


@dataclass(slots=True)
class Param:
    name: str
    type: str
    is_variadic: bool = False


@dataclass(slots=True)
class Field:
    """A field of a struct. An embedded type has its own name as the field's name."""

    name: str
    type: str
    is_embedded: bool
    tag: str


@dataclass(slots=True)
class TypeDecl:
    name: str
    kind: str  # struct, interface, alias or other
    line: int
    underlying: str = ""
    fields: list[Field] = field(default_factory=list)
    methods: dict[str, tuple[list[Param], list[str]]] = field(default_factory=dict)  # of an interface
    embeds: list[str] = field(default_factory=list)  # of an interface
    type_params: tuple[str, ...] = ()


@dataclass(slots=True)
class FunctionDecl:
    """A function or method. Its body is parsed when it is first needed."""

    name: str
    receiver: Param | None
    params: list[Param]
    results: list[Param]
    type_params: dict[str, str]
    line: int
    text: bytes
    file: GoFile

    @property
    def receiver_type(self) -> str:
        """Return the name of the receiver's type without `*` and type parameters, or ""."""
        return self.receiver.type.lstrip("*").partition("[")[0] if self.receiver else ""

    @property
    def last_line(self) -> int:
        return self.line + self.text.count(b"\n")

    @property
    def title(self) -> str:
        """Return the function's name as Go programmers write it, `Type.Method` or `function`."""
        return f"{self.receiver_type}.{self.name}" if self.receiver else self.name

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@dataclass(slots=True)
class GoFile:
    """The declarations of one file."""

    path: str  # relative to the linted folder, with /
    package: str
    imports: dict[str, str]  # alias -> import path
    types: dict[str, TypeDecl]
    functions: list[FunctionDecl]
    variables: dict[str, tuple[str, str]]  # name -> (type, text of the value)
    lines: int
    errors: int  # places that the grammar does not understand
    is_generated: bool
    suppressions: list[tuple[int, str]] = field(default_factory=list)  # comments that name this linter
    import_path: str = ""  # of the package, set by the module index
