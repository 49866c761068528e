"""The symbol table of a source tree: packages by import path, types with fields and methods, functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlead.tools.lint.golang.syntax import FunctionDecl, GoFile, Param, TypeDecl
from fairlead.tools.lint.golang.types import (
    BUILTIN,
    FuncOf,
    GoType,
    ListOf,
    MapOf,
    Named,
    Pointer,
    named,
    parse_type,
)

META = "k8s.io/apimachinery/pkg/apis/meta/v1"
UNSTRUCTURED = "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
STRING = Named("", "string")
OBJECT_META: dict[str, GoType] = {
    "Name": STRING,
    "GenerateName": STRING,
    "Namespace": STRING,
    "UID": STRING,
    "ResourceVersion": STRING,
    "Generation": Named("", "int64"),
    "Finalizers": ListOf(STRING),
    "OwnerReferences": ListOf(Named(META, "OwnerReference")),
    "Labels": MapOf(STRING, STRING),
    "Annotations": MapOf(STRING, STRING),
    "DeletionTimestamp": Pointer(Named(META, "Time")),
    "CreationTimestamp": Named(META, "Time"),
    "ManagedFields": ListOf(Named(META, "ManagedFieldsEntry")),
}
"""The fields of ObjectMeta, which nearly every API type embeds and no repository declares."""


@dataclass(slots=True)
class Package:
    path: str
    name: str = ""
    files: list[GoFile] = field(default_factory=list)
    types: dict[str, tuple[TypeDecl, GoFile]] = field(default_factory=dict)
    functions: dict[str, FunctionDecl] = field(default_factory=dict)
    methods: dict[tuple[str, str], FunctionDecl] = field(default_factory=dict)
    variables: dict[str, tuple[str, str, GoFile]] = field(default_factory=dict)


@dataclass(slots=True)
class Method:
    """A method of a type, and the path of embedded fields that leads to its receiver."""

    decl: FunctionDecl | None
    owner: Named
    through: tuple[str, ...]
    params: tuple[GoType | None, ...]
    results: tuple[GoType | None, ...]


class SourceTree:
    """All packages of the linted folder, addressable by import path."""

    def __init__(self, files: list[GoFile], modules: dict[str, str]) -> None:
        """`modules` maps the folder of each go.mod to its module path."""
        self.packages: dict[str, Package] = {}
        self._modules = dict(sorted(modules.items(), key=lambda item: -len(item[0])))
        for file in files:
            self._add(file)
        self._resolved: dict[tuple[str, str], GoType | None] = {}

    def _add(self, file: GoFile) -> None:
        folder = file.path.rpartition("/")[0]
        file.import_path = self.import_path(folder)
        package = self.packages.setdefault(file.import_path, Package(file.import_path))
        package.name = package.name or file.package
        package.files.append(file)
        for name, decl in file.types.items():
            package.types.setdefault(name, (decl, file))
        for function in file.functions:
            if function.receiver:
                package.methods.setdefault((function.receiver_type, function.name), function)
            else:
                package.functions.setdefault(function.name, function)
        for name, (kind, value) in file.variables.items():
            package.variables.setdefault(name, (kind, value, file))

    def import_path(self, folder: str) -> str:
        for root, module in self._modules.items():
            if root == "":
                return f"{module}/{folder}".rstrip("/")
            if folder == root or folder.startswith(root + "/"):
                return f"{module}{folder[len(root) :]}"
        return folder or "."

    # ------------------------------------------------------------------------------------------------------- types

    def type_of(self, text: str, file: GoFile) -> GoType | None:
        """Return the type that is written in a file, with import paths instead of aliases."""
        if not text:
            return None
        key = (file.path, text)
        if key not in self._resolved:
            self._resolved[key] = self._qualify(parse_type(text), file.imports, file.import_path)
        return self._resolved[key]

    def _qualify(self, kind: GoType | None, imports: dict[str, str], here: str) -> GoType | None:
        match kind:
            case Named(package, name, args):
                qualified = tuple(self._qualify(arg, imports, here) for arg in args)
                if package:
                    return Named(self.find_import(imports, package), name, qualified)
                if name in BUILTIN and not self._declares(here, name):
                    return Named("", name)
                return Named(here, name, qualified)
            case Pointer(to):
                return Pointer(self._qualify(to, imports, here))
            case ListOf(item):
                return ListOf(self._qualify(item, imports, here))
            case MapOf(key, value):
                return MapOf(self._qualify(key, imports, here), self._qualify(value, imports, here))
            case FuncOf(params, results):
                return FuncOf(
                    tuple(self._qualify(p, imports, here) for p in params),
                    tuple(self._qualify(r, imports, here) for r in results),
                )
        return None

    def _declares(self, path: str, name: str) -> bool:
        package = self.packages.get(path)
        return package is not None and name in package.types

    def find_import(self, imports: dict[str, str], alias: str) -> str:
        """Return the import path of an alias. A package of this tree may have another name than its folder."""
        if alias in imports:
            return imports[alias]
        for path in imports.values():
            package = self.packages.get(path)
            if package is not None and package.name == alias:
                return path
        return alias

    def declaration(self, kind: GoType | None) -> tuple[TypeDecl, GoFile] | None:
        """Return the declaration of a named type (also behind pointers) of this tree."""
        target = named(kind)
        if target is None:
            return None
        package = self.packages.get(target.path)
        return package.types.get(target.name) if package else None

    def underlying(self, kind: GoType | None, depth: int = 0) -> GoType | None:
        """Return what a type is, behind aliases and definitions such as `type Conditions []Condition`."""
        if not isinstance(kind, Named) or depth > 5:
            return kind
        found = self.declaration(kind)
        if found is None or found[0].kind in ("struct", "interface"):
            return kind
        decl, file = found
        inner = self.type_of(decl.underlying, file)
        return self.underlying(inner, depth + 1) if inner is not None else kind

    def field_type(self, kind: GoType | None, name: str, depth: int = 0) -> GoType | None:
        """Return the type of a field, also of embedded structs and of ObjectMeta; None if it is not known."""
        target = self.underlying(named(kind))
        target = named(target)
        if target is None or depth > 4:
            return None
        if target.path == META and target.name == "ObjectMeta":
            return OBJECT_META.get(name)
        found = self.declaration(target)
        if found is None:
            return None
        decl, file = found
        for item in decl.fields:
            if item.name == name:
                return self.substitute(self.type_of(item.type, file), decl, target)
        for item in decl.fields:
            if item.is_embedded:
                inner = self.field_type(self.type_of(item.type, file), name, depth + 1)
                if inner is not None:
                    return inner
        return None

    def substitute(self, kind: GoType | None, decl: TypeDecl, target: Named) -> GoType | None:
        """Replace the type parameters of a generic type by its arguments."""
        if not target.args or not decl.type_params:
            return kind
        known = dict(zip(decl.type_params, target.args, strict=False))
        return replace_parameters(kind, known)

    def is_api_object(self, kind: GoType | None) -> bool | None:
        """Return whether a struct of this tree embeds ObjectMeta; None if the type is not of this tree."""
        found = self.declaration(kind)
        if found is None:
            return None
        decl = found[0]
        if decl.kind == "interface":
            return None
        return any(f.is_embedded and f.name == "ObjectMeta" for f in decl.fields)

    # ----------------------------------------------------------------------------------------------------- methods

    def method(self, kind: GoType | None, name: str, depth: int = 0) -> Method | None:
        """Return a method of a type, also one of an embedded field or of an interface."""
        target = named(kind)
        if target is None or depth > 4:
            return None
        package = self.packages.get(target.path)
        if package is None:
            return None
        decl = package.methods.get((target.name, name))
        if decl is not None:
            return self._method(decl, target)
        found = package.types.get(target.name)
        if found is None:
            return None
        kind_decl, file = found
        if kind_decl.kind == "alias" or (kind_decl.kind == "other" and kind_decl.underlying):
            if kind_decl.kind == "alias":
                return self.method(self.type_of(kind_decl.underlying, file), name, depth + 1)
            return None
        if name in kind_decl.methods:
            params, results = kind_decl.methods[name]
            return Method(
                None,
                target,
                (),
                tuple(self.type_of(p.type, file) for p in params),
                tuple(self.type_of(r, file) for r in results),
            )
        for embedded in kind_decl.embeds:
            inner = self.method(self.type_of(embedded, file), name, depth + 1)
            if inner is not None:
                return inner
        for item in kind_decl.fields:
            if item.is_embedded:
                inner = self.method(self.type_of(item.type, file), name, depth + 1)
                if inner is not None:
                    inner.through = (item.name, *inner.through)
                    return inner
        return None

    def _method(self, decl: FunctionDecl, owner: Named) -> Method:
        params = tuple(self.type_of(p.type, decl.file) for p in decl.params)
        return Method(decl, owner, (), params, tuple(self.result_types(decl)))

    def result_types(self, decl: FunctionDecl) -> list[GoType | None]:
        return [self.type_of(result.type, decl.file) for result in decl.results]

    def param_type(self, param: Param, decl: FunctionDecl) -> GoType | None:
        """Return a parameter's type; that of a type parameter is its constraint."""
        kind = self.type_of(param.type, decl.file)
        target = named(kind)
        if target is not None and target.name in decl.type_params and target.path == decl.file.import_path:
            return self.type_of(decl.type_params[target.name], decl.file)
        return ListOf(kind) if param.is_variadic else kind

    def embeds(self, kind: GoType | None, wanted: Named, depth: int = 0) -> tuple[str, ...] | None:
        """Return the path of embedded fields (or interfaces) from a type to `wanted`, or None."""
        target = named(kind)
        if target is None or depth > 4:
            return None
        if target.path == wanted.path and target.name == wanted.name:
            return ()
        found = self.declaration(target)
        if found is None:
            return None
        decl, file = found
        for item in decl.fields:
            if item.is_embedded:
                inner = self.embeds(self.type_of(item.type, file), wanted, depth + 1)
                if inner is not None:
                    return (item.name, *inner)
        for embedded in decl.embeds:
            inner = self.embeds(self.type_of(embedded, file), wanted, depth + 1)
            if inner is not None:
                return inner
        if decl.kind in ("alias", "other") and decl.underlying:
            return self.embeds(self.type_of(decl.underlying, file), wanted, depth + 1)
        return None


def replace_parameters(kind: GoType | None, known: dict[str, GoType | None]) -> GoType | None:
    """Replace type parameters (names) in a type."""
    match kind:
        case Named(_, name, args):
            if name in known:
                return known[name]
            return Named(kind.path, name, tuple(replace_parameters(a, known) for a in args)) if args else kind
        case Pointer(to):
            return Pointer(replace_parameters(to, known))
        case ListOf(item):
            return ListOf(replace_parameters(item, known))
        case MapOf(key, value):
            return MapOf(replace_parameters(key, known), replace_parameters(value, known))
    return kind
