"""Check one Python module: the requests of each function, what they send, and how their errors are handled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from fairlead.tools.lint.findings import Confidence, Finding, Level, Step
from fairlead.tools.lint.python_rules.calls import Request, request_of, uses_a_client, wrappers_of
from fairlead.tools.lint.python_rules.table import PYTHON_RULES

Function = ast.FunctionDef | ast.AsyncFunctionDef
EXISTS = ("AlreadyExists", "ConflictError")
BROAD = ("Exception", "BaseException", "ApiException", "ApiError", "HTTPError")
NOT_FOUND = re.compile(r"404|NotFound|not_found|\.status\b|\.code\b|reason")
FINALIZERS = re.compile(r"finalizer", re.IGNORECASE)
SUPPRESSION = re.compile(r"#\s*(fairlead:.*)$")


def lint_python(path: str, source: str) -> tuple[list[Finding], list[tuple[int, str]], list[tuple[int, int]], str]:
    """Return the findings of a module, its suppression comments, its functions' lines, and a note if it is broken."""
    if "fairlead:" not in source and not re.search(r"kopf|kubernetes|lightkube|kr8s|pykube|fairlead", source):
        return [], [], [], ""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        return [], [], [], f"{path}: skipped, it is not valid Python: {error}"
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    lines = [(node.lineno, node.end_lineno or node.lineno) for node in functions]
    comments = [
        (number, match.group(1))
        for number, line in enumerate(source.splitlines(), 1)
        if (match := SUPPRESSION.search(line))
    ]
    if not uses_a_client(tree):
        return [], comments, lines, ""
    module = _Module(path, tree)
    return [finding for function in functions for finding in module.check(function)], comments, lines, ""


class _Module:
    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        self.wrappers = wrappers_of(tree)
        self.awaited = {n.value for n in ast.walk(tree) if isinstance(n, ast.Await) and isinstance(n.value, ast.Call)}
        self.decides = any(
            isinstance(node, ast.If | ast.IfExp)
            and "status" in {n.attr for n in ast.walk(node.test) if isinstance(n, ast.Attribute)}
            for node in ast.walk(tree)
        )

    def check(self, function: Function) -> Iterator[Finding]:
        nodes = list(own_nodes(function))
        requests = [r for n in nodes if isinstance(n, ast.Call) and (r := request_of(n, self.awaited, self.wrappers))]
        values = assigned_values(nodes)
        for request in requests:
            yield from self.check_request(function, request, values)
        for node in nodes:
            if isinstance(node, ast.Try):
                yield from self.check_try(function, node)
            elif isinstance(node, ast.If):
                yield from self.check_exists(function, node)

    def check_request(self, function: Function, request: Request, values: dict[str, ast.expr]) -> Iterator[Finding]:
        body = resolve(request.body, values)
        at = body if isinstance(body, ast.Dict) else request.call
        if request.verb == "patch" and request.is_merge and isinstance(body, ast.Dict) and not has_version(body):
            metadata = value_of(body, "metadata")
            finalizers = value_of(metadata, "finalizers") if isinstance(metadata, ast.Dict) else None
            if finalizers is not None and not is_empty(finalizers):
                yield self.finding(
                    "W201", function, at, "the patch replaces the whole list of finalizers, also those of others"
                )
            status = value_of(body, "status")
            if status is not None:
                yield self.check_status_patch(function, request, status, values)
        elif request.verb == "replace":
            yield from self.check_replace(function, request, body)
        elif request.verb == "create-or-update":
            yield self.finding("W104", function, request.call, "the child is read from the cache, changed and replaced")
        elif request.verb == "delete" and not request.is_conditional:
            yield self.finding("W701", function, request.call, "the delete addresses the object by its name only")

    def check_status_patch(
        self, function: Function, request: Request, status: ast.expr, values: dict[str, ast.expr]
    ) -> Finding:
        conditions = value_of(resolve(status, values), "conditions")
        if conditions is not None:
            text = ast.unparse(conditions)
            if "condition" in text and not text.startswith("[]") and "status" in text:
                return self.finding("W203", function, request.call, "the patch replaces the whole list of conditions")
        finding = self.finding("W204", function, request.call, "the status is patched without a resourceVersion")
        if not self.decides:
            finding.level, finding.confidence = Level.INFO, Confidence.LOW
        return finding

    def check_replace(self, function: Function, request: Request, body: ast.expr | None) -> Iterator[Finding]:
        text = ast.unparse(body) if body is not None else ""
        if request.is_status:
            yield self.finding("W205", function, request.call, "the status of a copy is replaced")
        elif FINALIZERS.search(text):
            yield self.finding("W206", function, request.call, "a finalizer is written by replacing the whole object")
        elif isinstance(body, ast.Dict) and not has_version(body):
            yield self.finding("W103", function, request.call, "the object that is sent has no resourceVersion")

    # ---------------------------------------------------------------------------------------------------- errors

    def requests_in(self, nodes: list[ast.stmt]) -> list[Request]:
        calls = [n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Call)]
        return [r for call in calls if (r := request_of(call, self.awaited, self.wrappers))]

    def check_try(self, function: Function, node: ast.Try) -> Iterator[Finding]:
        tried = self.requests_in(node.body)
        creates = [r for r in tried if r.verb == "create"]
        reads = [r for r in tried if r.verb in ("get", "read")]
        for handler in node.handlers:
            caught = ast.unparse(handler.type) if handler.type is not None else "Exception"
            handled = self.requests_in(handler.body)
            text = "\n".join(ast.unparse(statement) for statement in handler.body)
            is_exists = any(name in caught for name in EXISTS) or (bool(creates) and "409" in text)
            if creates and is_exists:
                yield from self.check_exists_handler(function, handler, creates[0], handled, text)
            elif reads and caught.rpartition(".")[2] in BROAD and not NOT_FOUND.search(text):
                changes = [r for r in handled if r.verb in ("create", "delete")]
                if changes and "raise" not in text:
                    yield self.finding("W501", function, handler, f"a {changes[0].verb} follows any error of a read")
            is_status = any(r.is_status for r in tried)
            is_silent = all(isinstance(s, ast.Pass | ast.Continue) or is_log(s) for s in handler.body)
            if is_status and caught.rpartition(".")[2] in BROAD and is_silent:
                yield self.finding("W502", function, handler, "the error of the status write is dropped")

    def check_exists_handler(
        self, function: Function, handler: ast.ExceptHandler, create: Request, handled: list[Request], text: str
    ) -> Iterator[Finding]:
        sent = ast.unparse(create.body) if create.body is not None else ""
        replaces = [r for r in handled if r.verb == "replace"]
        if any(r.body is not None and ast.unparse(r.body) == sent for r in replaces) and "resource" not in text.lower():
            yield self.finding(
                "W101", function, replaces[0].call, "the object that could not be created replaces the existing one"
            )
        elif not handled:
            yield self.finding("W105", function, handler, "AlreadyExists is taken for success")

    def check_exists(self, function: Function, node: ast.If) -> Iterator[Finding]:
        """`if not obj.exists(): obj.create()`: a second run between the two fails, or creates a duplicate."""
        if "exists()" in ast.unparse(node.test) and any(r.verb == "create" for r in self.requests_in(node.body)):
            yield self.finding("W105", function, node, "the object may be created between the check and the create")

    def finding(self, code: str, function: Function, node: ast.AST, text: str) -> Finding:
        rule = PYTHON_RULES[code]
        line = getattr(node, "lineno", function.lineno)
        finding = Finding(rule, self.path, line, f"{rule.title}: {text}", level=rule.level)
        finding.confidence = Confidence.MEDIUM
        finding.steps = [Step(self.path, line, text)]
        finding.function = function.name
        finding.subject = text
        return finding


# -------------------------------------------------------------------------------------------------------- helpers


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions inside it."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            stack += reversed(list(ast.iter_child_nodes(node)))


def assigned_values(nodes: list[ast.AST]) -> dict[str, ast.expr]:
    """Return the last value of each variable that is assigned once or more."""
    values: dict[str, ast.expr] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            values[node.target.id] = node.value
    return values


def resolve(node: ast.expr | None, values: dict[str, ast.expr]) -> ast.expr | None:
    return values.get(node.id, node) if isinstance(node, ast.Name) else node


def value_of(node: ast.expr | None, key: str) -> ast.expr | None:
    """Return the value of a key of a dictionary literal."""
    if not isinstance(node, ast.Dict):
        return None
    for name, value in zip(node.keys, node.values, strict=True):
        if isinstance(name, ast.Constant) and name.value == key:
            return value
    return None


def has_version(node: ast.Dict) -> bool:
    return "resourceVersion" in ast.unparse(node) or "resource_version" in ast.unparse(node)


def is_empty(node: ast.expr) -> bool:
    """Return whether a value removes the whole list on purpose: None or []."""
    return (isinstance(node, ast.Constant) and node.value is None) or (isinstance(node, ast.List) and not node.elts)


def is_log(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and "log" in ast.unparse(node.value.func).lower()
    )
