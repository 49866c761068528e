"""Read Go with tree-sitter: the declarations of a file at once, the body of a function when a rule needs it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from fairlead.api.errors import UserError
from fairlead.tools.lint.golang import syntax as go

GENERATED = re.compile(rb"(?m)^// Code generated .* DO NOT EDIT\.$")
SUPPRESSION = re.compile(rb"(?m)^(.*?)//\s*((?:fairlead|nolint)[:\s].*)$")
PACKAGE_LINE = b"package p;"
NEW_OF_VALUE = re.compile(rb"\bnew\((?!\[|map\[|struct\b|func\b|chan\b|interface\b)")
"""Go 1.26 allows `new(value)`. The grammar knows only `new(type)`, so these calls are read as calls of `NEW`."""
NEW = "neu"  # as long as "new", so that positions stay right

Node = Any  # tree-sitter's Node: typed as Any, because the package is an extra


@functools.cache
def go_parser() -> Any:
    """Return the parser. Raise UserError if the extra is not installed."""
    try:
        import tree_sitter
        import tree_sitter_go
    except ImportError:
        raise UserError("reading Go needs the extra 'lint': pip install 'fairlead[lint]'") from None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_go.language()))


def text_of(node: Node) -> str:
    return node.text.decode("utf-8", "replace") if node is not None else ""


def type_text(node: Node) -> str:
    """Return a type as it is written, without line breaks and comments."""
    if node is None:
        return ""
    text = text_of(node)
    if "\n" in text or "\t" in text:
        text = re.sub(r"//[^\n]*", "", text)
        text = " ".join(text.split())
    return text


def line_of(node: Node) -> int:
    return int(node.start_point[0]) + 1


# --------------------------------------------------------------------------------------------------- declarations


def parse_file(path: str, source: bytes) -> go.GoFile:
    """Return the declarations of a file. Places that the grammar does not understand are counted and skipped."""
    root = go_parser().parse(source).root_node
    if root.has_error and b"new(" in source:
        root = go_parser().parse(NEW_OF_VALUE.sub(NEW.encode() + b"(", source)).root_node
    file = go.GoFile(
        path=path,
        package="",
        imports={},
        types={},
        functions=[],
        variables={},
        lines=source.count(b"\n") + 1,
        errors=count_errors(root) if root.has_error else 0,
        is_generated=GENERATED.search(source[:4096]) is not None,
    )
    if b"fairlead" in source or b"nolint" in source:
        for match in SUPPRESSION.finditer(source):
            line = source.count(b"\n", 0, match.start(2)) + 1
            file.suppressions.append((line, match.group(2).decode("utf-8", "replace")))
    for node in root.named_children:
        kind = node.type
        if kind == "function_declaration" or kind == "method_declaration":
            read_function(node, file)
        elif kind == "type_declaration":
            read_types(node, file)
        elif kind == "import_declaration":
            read_imports(node, file)
        elif kind == "package_clause":
            file.package = text_of(node.named_children[0]) if node.named_children else ""
        elif kind in ("var_declaration", "const_declaration"):
            read_variables(node, file)
    return file


def count_errors(root: Node) -> int:
    """Count the places that could not be parsed, without going into the parts that could."""
    count, stack = 0, [root]
    while stack:
        node = stack.pop()
        for child in node.children:
            if child.is_error or child.is_missing:
                count += 1
            elif child.has_error:
                stack.append(child)
    return count


def read_imports(node: Node, file: go.GoFile) -> None:
    specs = [n for n in node.named_children if n.type == "import_spec"]
    for child in node.named_children:
        if child.type == "import_spec_list":
            specs += [n for n in child.named_children if n.type == "import_spec"]
    for spec in specs:
        path = text_of(spec.child_by_field_name("path")).strip('"`')
        alias = text_of(spec.child_by_field_name("name"))
        if alias not in ("_", "."):
            file.imports[alias or default_alias(path)] = path


def default_alias(path: str) -> str:
    """Return the name by which a package is usually known: the last part of its path that is not a version."""
    parts = [p for p in path.split("/") if p]
    while len(parts) > 1 and re.fullmatch(r"v\d+", parts[-1]):
        parts.pop()
    name = re.sub(r"\.v\d+$", "", parts[-1]) if parts else path
    return name.removeprefix("go-").removesuffix("-go").replace("-", "_") if "-" in name else name


def read_params(node: Node) -> list[go.Param]:
    params: list[go.Param] = []
    if node is None:
        return params
    if node.type != "parameter_list":  # a single result type
        return [go.Param("", type_text(node))]
    for child in node.named_children:
        variadic = child.type == "variadic_parameter_declaration"
        if child.type != "parameter_declaration" and not variadic:
            continue
        written = type_text(child.child_by_field_name("type"))
        names = child.children_by_field_name("name")
        if names:
            params += [go.Param(text_of(name), written, variadic) for name in names]
        else:
            params.append(go.Param("", written, variadic))
    return params


def read_function(node: Node, file: go.GoFile) -> None:
    receiver = read_params(node.child_by_field_name("receiver")) if node.type == "method_declaration" else []
    type_params: dict[str, str] = {}
    declared = node.child_by_field_name("type_parameters")
    if declared is not None:
        for child in declared.named_children:
            constraint = type_text(child.child_by_field_name("type"))
            for name in child.children_by_field_name("name"):
                type_params[text_of(name)] = constraint
    file.functions.append(
        go.FunctionDecl(
            name=text_of(node.child_by_field_name("name")),
            receiver=receiver[0] if receiver else None,
            params=read_params(node.child_by_field_name("parameters")),
            results=read_params(node.child_by_field_name("result")),
            type_params=type_params,
            line=line_of(node),
            text=node.text,
            file=file,
        )
    )


def read_types(node: Node, file: go.GoFile) -> None:
    for spec in node.named_children:
        if spec.type not in ("type_spec", "type_alias"):
            continue
        name = text_of(spec.child_by_field_name("name"))
        definition = spec.child_by_field_name("type")
        if definition is None:
            continue
        declared = spec.child_by_field_name("type_parameters")
        type_params: list[str] = []
        if declared is not None:
            for child in declared.named_children:
                type_params += [text_of(n) for n in child.children_by_field_name("name")]
        decl = go.TypeDecl(name, "alias" if spec.type == "type_alias" else "other", line_of(spec))
        decl.type_params = tuple(type_params)
        if definition.type == "struct_type":
            decl.kind, decl.fields = "struct", read_fields(definition)
        elif definition.type == "interface_type":
            decl.kind = "interface"
            for child in definition.named_children:
                if child.type == "method_elem":
                    results = [p.type for p in read_params(child.child_by_field_name("result"))]
                    decl.methods[text_of(child.child_by_field_name("name"))] = (
                        read_params(child.child_by_field_name("parameters")),
                        results,
                    )
                elif child.type == "type_elem":
                    decl.embeds.append(type_text(child))
        else:
            decl.underlying = type_text(definition)
        file.types[name] = decl


def read_fields(struct: Node) -> list[go.Field]:
    fields: list[go.Field] = []
    for body in struct.named_children:
        if body.type != "field_declaration_list":
            continue
        for node in body.named_children:
            if node.type != "field_declaration":
                continue
            kind = node.child_by_field_name("type")
            written = type_text(kind)
            tag = text_of(node.child_by_field_name("tag")).strip('`"')
            names = node.children_by_field_name("name")
            if names:
                fields += [go.Field(text_of(name), written, False, tag) for name in names]
            else:
                is_pointer = any(child.type == "*" for child in node.children)
                short = written.rpartition(".")[2].partition("[")[0].lstrip("*")
                fields.append(go.Field(short, f"*{written}" if is_pointer else written, True, tag))
    return fields


def read_variables(node: Node, file: go.GoFile) -> None:
    specs = list(node.named_children)
    for child in node.named_children:
        if child.type == "var_spec_list":
            specs += child.named_children
    for spec in specs:
        if spec.type not in ("var_spec", "const_spec"):
            continue
        value = spec.child_by_field_name("value")
        text = text_of(value) if value is not None and value.end_byte - value.start_byte < 400 else ""
        for name in spec.children_by_field_name("name"):
            file.variables[text_of(name)] = (type_text(spec.child_by_field_name("type")), text)


# --------------------------------------------------------------------------------------------------------- bodies


def parse_body(function: go.FunctionDecl) -> list[go.Stmt]:
    """Return the statements of a function's body."""
    source = PACKAGE_LINE + function.text
    root = go_parser().parse(source).root_node
    lowering = _Lowering(function.line - 1, len(PACKAGE_LINE))
    for node in root.named_children:
        if node.type in ("function_declaration", "method_declaration"):
            body = node.child_by_field_name("body")
            return lowering.block(body) if body is not None else []
    return []


class _Lowering:
    """Turn tree-sitter's nodes into statements and expressions."""

    def __init__(self, line_offset: int, byte_offset: int) -> None:
        self._line_offset = line_offset
        self._byte_offset = byte_offset

    def line(self, node: Node) -> int:
        return int(node.start_point[0]) + 1 + self._line_offset

    def block(self, node: Node | None) -> list[go.Stmt]:
        statements: list[go.Stmt] = []
        if node is None:
            return statements
        for child in node.named_children:
            if child.type == "statement_list":
                return self.block(child)
            statement = self.stmt(child)
            if statement is not None:
                statements.append(statement)
        return statements

    def stmt(self, node: Node | None) -> go.Stmt | None:
        if node is None:
            return None
        lower = _STATEMENTS.get(node.type)
        return lower(self, node) if lower else None

    def expr(self, node: Node | None) -> go.Expr:
        if node is None:
            return go.Opaque(0)
        lower = _EXPRESSIONS.get(node.type)
        return lower(self, node) if lower else go.Opaque(self.line(node))

    def exprs(self, node: Node | None) -> list[go.Expr]:
        if node is None:
            return []
        if node.type == "expression_list":
            return [self.expr(child) for child in node.named_children if child.type != "comment"]
        return [self.expr(node)]

    # ---------------------------------------------------------------------------------------------- statements

    def assign(self, node: Node) -> go.Stmt:
        operator = node.child_by_field_name("operator")
        op = text_of(operator) if operator is not None else ":="
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        return go.Assign(self.exprs(left), op, self.exprs(right), self.line(node))

    def declare(self, node: Node) -> go.Stmt | None:
        declared: list[go.Stmt] = []
        specs = list(node.named_children)
        for child in node.named_children:
            if child.type == "var_spec_list":
                specs += child.named_children
        for spec in specs:
            if spec.type in ("var_spec", "const_spec"):
                names = [text_of(name) for name in spec.children_by_field_name("name")]
                kind = type_text(spec.child_by_field_name("type"))
                values = self.exprs(spec.child_by_field_name("value"))
                declared.append(go.Declare(names, kind, values, self.line(spec)))
        if len(declared) == 1:
            return declared[0]
        return go.Block(declared, -self.line(node)) if declared else None  # negative: no scope of its own

    def do(self, node: Node) -> go.Stmt:
        return go.Do(self.expr(node.named_children[0] if node.named_children else None), self.line(node))

    def if_(self, node: Node) -> go.Stmt:
        alternative = node.child_by_field_name("alternative")
        otherwise: list[go.Stmt] | None = None
        if alternative is not None:
            is_chain = alternative.type == "if_statement"
            otherwise = [self.if_(alternative)] if is_chain else self.block(alternative)
        return go.If(
            self.stmt(node.child_by_field_name("initializer")),
            self.expr(node.child_by_field_name("condition")),
            self.block(node.child_by_field_name("consequence")),
            otherwise,
            self.line(node),
        )

    def for_(self, node: Node) -> go.Stmt:
        body = self.block(node.child_by_field_name("body"))
        for child in node.named_children:
            if child.type == "range_clause":
                left = child.child_by_field_name("left")
                defines = any(c.type == ":=" for c in child.children)
                over = self.expr(child.child_by_field_name("right"))
                return go.Range(self.exprs(left), defines, over, body, self.line(node))
            if child.type == "for_clause":
                return go.Loop(
                    self.stmt(child.child_by_field_name("initializer")),
                    self.expr(child.child_by_field_name("condition")),
                    self.stmt(child.child_by_field_name("update")),
                    body,
                    self.line(node),
                )
        conditions = [c for c in node.named_children if c.type not in ("block", "comment")]
        return go.Loop(None, self.expr(conditions[0]) if conditions else None, None, body, self.line(node))

    def switch(self, node: Node) -> go.Stmt:
        cases: list[go.Case] = []
        for child in node.named_children:
            if child.type in ("expression_case", "type_case", "default_case", "communication_case"):
                values: list[go.Expr] = []
                types: list[str] = []
                skip: set[int] = set()
                if child.type == "expression_case":
                    value = child.child_by_field_name("value")
                    values = self.exprs(value)
                    skip = {value.id} if value is not None else set()
                elif child.type == "type_case":
                    listed = child.children_by_field_name("type")
                    types, skip = [type_text(t) for t in listed], {t.id for t in listed}
                body: list[go.Stmt] = []
                for inner in child.named_children:
                    if inner.id in skip:
                        continue
                    if inner.type == "statement_list":
                        body += self.block(inner)
                    elif (statement := self.stmt(inner)) is not None:
                        body.append(statement)
                cases.append(go.Case(values, types, child.type == "default_case", body))
        binding = ""
        alias = node.child_by_field_name("alias")
        if alias is not None:
            binding = text_of(alias)
        tag_node = node.child_by_field_name("value")
        tag = self.expr(tag_node) if tag_node is not None else None
        return go.Switch(self.stmt(node.child_by_field_name("initializer")), tag, binding, cases, self.line(node))

    def return_(self, node: Node) -> go.Stmt:
        values = [child for child in node.named_children if child.type != "comment"]
        return go.Return(self.exprs(values[0]) if values else [], self.line(node))

    def defer(self, node: Node) -> go.Stmt:
        call = node.named_children[0] if node.named_children else None
        return go.Defer(self.expr(call), self.line(node), node.type == "go_statement")

    def inner_block(self, node: Node) -> go.Stmt:
        return go.Block(self.block(node), self.line(node))

    def labeled(self, node: Node) -> go.Stmt | None:
        return self.stmt(node.named_children[-1]) if len(node.named_children) > 1 else None

    def jump(self, node: Node) -> go.Stmt:
        return go.Jump(node.type.partition("_")[0], self.line(node))

    def step(self, node: Node) -> go.Stmt:
        operand = node.named_children[0] if node.named_children else None
        one = go.Literal("1", False, self.line(node))
        return go.Assign([self.expr(operand)], "+=", [one], self.line(node))

    # --------------------------------------------------------------------------------------------- expressions

    def name(self, node: Node) -> go.Expr:
        name = text_of(node)
        return go.Name("new" if name == NEW else name, self.line(node))

    def select(self, node: Node) -> go.Expr:
        field = node.child_by_field_name("field")
        line = int(field.start_point[0]) + 1 + self._line_offset if field is not None else self.line(node)
        return go.Select(self.expr(node.child_by_field_name("operand")), text_of(field), line)

    def qualified(self, node: Node) -> go.Expr:
        package, name = node.child_by_field_name("package"), node.child_by_field_name("name")
        return go.Select(self.name(package), text_of(name), self.line(node))

    def call(self, node: Node) -> go.Expr:
        function = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        args: list[go.Expr] = []
        for child in arguments.named_children if arguments is not None else []:
            if child.type == "comment":
                continue
            if child.type in _TYPE_NODES:
                args.append(go.Conversion(type_text(child), go.Opaque(self.line(child)), self.line(child)))
            else:
                args.append(self.expr(child))
        type_arguments = node.child_by_field_name("type_arguments")
        type_args = tuple(type_text(t) for t in type_arguments.named_children) if type_arguments is not None else ()
        callee = self.expr(function)
        if function is not None and function.type == "index_expression":
            # `f[T](x)`: the grammar reads the type argument as an index.
            type_args = (type_text(function.child_by_field_name("index")),)
            callee = self.expr(function.child_by_field_name("operand"))
        elif function is not None and function.type == "type_instantiation_expression":
            parts = function.named_children
            type_args = tuple(type_text(t) for t in parts[1:])
            callee = self.qualified(parts[0]) if parts[0].type == "qualified_type" else self.name(parts[0])
        line = callee.line if isinstance(callee, go.Select) else self.line(node)
        return go.Call(
            callee,
            args,
            line,
            int(node.end_point[0]) + 1 + self._line_offset,
            type_args,
            node.start_byte - self._byte_offset,
            node.end_byte - self._byte_offset,
        )

    def string(self, node: Node) -> go.Expr:
        return go.Literal(text_of(node)[1:-1], True, self.line(node))

    def literal(self, node: Node) -> go.Expr:
        return go.Literal(text_of(node), False, self.line(node))

    def composite(self, node: Node) -> go.Expr:
        kind = type_text(node.child_by_field_name("type"))
        return go.Composite(kind, self.items(node.child_by_field_name("body"), kind), self.line(node))

    def items(self, body: Node | None, kind: str) -> list[tuple[go.Expr | None, go.Expr]]:
        found: list[tuple[go.Expr | None, go.Expr]] = []
        inner = _element_type(kind)
        for child in body.named_children if body is not None else []:
            if child.type == "keyed_element":
                parts = [p for p in child.named_children if p.type != "comment"]
                if len(parts) == 2:
                    found.append((self.element(parts[0], ""), self.element(parts[1], inner)))
            elif child.type == "literal_element":
                found.append((None, self.element(child, inner)))
        return found

    def element(self, node: Node, kind: str) -> go.Expr:
        inner = node.named_children[0] if node.type == "literal_element" and node.named_children else node
        if inner.type == "literal_value":  # `{…}` whose type is that of the list's items
            return go.Composite(kind, self.items(inner, kind), self.line(inner))
        return self.expr(inner)

    def closure(self, node: Node) -> go.Expr:
        return go.Closure(
            read_params(node.child_by_field_name("parameters")),
            [p.type for p in read_params(node.child_by_field_name("result"))],
            self.block(node.child_by_field_name("body")),
            self.line(node),
            int(node.end_point[0]) + 1 + self._line_offset,
        )

    def unary(self, node: Node) -> go.Expr:
        operator = text_of(node.child_by_field_name("operator"))
        return go.Unary(operator, self.expr(node.child_by_field_name("operand")), self.line(node))

    def binary(self, node: Node) -> go.Expr:
        operator = text_of(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        return go.Binary(operator, self.expr(left), self.expr(right), self.line(node))

    def index(self, node: Node) -> go.Expr:
        base, index = node.child_by_field_name("operand"), node.child_by_field_name("index")
        return go.Index(self.expr(base), self.expr(index), self.line(node))

    def slice(self, node: Node) -> go.Expr:
        return go.Index(self.expr(node.child_by_field_name("operand")), None, self.line(node), is_slice=True)

    def assertion(self, node: Node) -> go.Expr:
        kind = type_text(node.child_by_field_name("type"))
        return go.Assertion(self.expr(node.child_by_field_name("operand")), kind, self.line(node))

    def conversion(self, node: Node) -> go.Expr:
        kind = type_text(node.child_by_field_name("type"))
        return go.Conversion(kind, self.expr(node.child_by_field_name("operand")), self.line(node))

    def parentheses(self, node: Node) -> go.Expr:
        return self.expr(node.named_children[0] if node.named_children else None)


def _element_type(kind: str) -> str:
    """Return the type of the items in a literal of that type, for items that are written without their type."""
    if kind.startswith("[") and "]" in kind:
        return kind[kind.index("]") + 1 :]
    if kind.startswith("map["):
        depth = 0
        for position, character in enumerate(kind[3:], 3):
            depth += {"[": 1, "]": -1}.get(character, 0)
            if depth == 0:
                return kind[position + 1 :]
    return ""


_TYPE_NODES = {"slice_type", "map_type", "pointer_type", "array_type", "channel_type", "function_type", "generic_type",
               "qualified_type", "interface_type", "struct_type"}  # fmt: skip

_STATEMENTS: dict[str, Callable[[_Lowering, Node], go.Stmt | None]] = {
    "assignment_statement": _Lowering.assign,
    "short_var_declaration": _Lowering.assign,
    "var_declaration": _Lowering.declare,
    "const_declaration": _Lowering.declare,
    "expression_statement": _Lowering.do,
    "if_statement": _Lowering.if_,
    "for_statement": _Lowering.for_,
    "expression_switch_statement": _Lowering.switch,
    "type_switch_statement": _Lowering.switch,
    "select_statement": _Lowering.switch,
    "return_statement": _Lowering.return_,
    "defer_statement": _Lowering.defer,
    "go_statement": _Lowering.defer,
    "block": _Lowering.inner_block,
    "labeled_statement": _Lowering.labeled,
    "break_statement": _Lowering.jump,
    "continue_statement": _Lowering.jump,
    "goto_statement": _Lowering.jump,
    "inc_statement": _Lowering.step,
    "dec_statement": _Lowering.step,
}

_EXPRESSIONS: dict[str, Callable[[_Lowering, Node], go.Expr]] = {
    "identifier": _Lowering.name,
    "type_identifier": _Lowering.name,
    "field_identifier": _Lowering.name,
    "package_identifier": _Lowering.name,
    "blank_identifier": _Lowering.name,
    "selector_expression": _Lowering.select,
    "qualified_type": _Lowering.qualified,
    "call_expression": _Lowering.call,
    "interpreted_string_literal": _Lowering.string,
    "raw_string_literal": _Lowering.string,
    "int_literal": _Lowering.literal,
    "float_literal": _Lowering.literal,
    "rune_literal": _Lowering.literal,
    "nil": _Lowering.literal,
    "true": _Lowering.literal,
    "false": _Lowering.literal,
    "iota": _Lowering.literal,
    "composite_literal": _Lowering.composite,
    "func_literal": _Lowering.closure,
    "unary_expression": _Lowering.unary,
    "binary_expression": _Lowering.binary,
    "index_expression": _Lowering.index,
    "slice_expression": _Lowering.slice,
    "type_assertion_expression": _Lowering.assertion,
    "type_conversion_expression": _Lowering.conversion,
    "parenthesized_expression": _Lowering.parentheses,
    "literal_element": _Lowering.parentheses,
}
