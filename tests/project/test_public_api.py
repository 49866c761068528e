"""Tests that the public names of fairlead are typed, listed and documented, and that unknown names are rejected."""

import ast
import importlib
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
MODULES = ("fairlead", "fairlead.errors", "fairlead.testing", "fairlead.writes")
LAZY_PACKAGES = ("fairlead", "fairlead.testing")

MISTAKES = """
import fairlead as fl
import fairlead.testing

op = fl.Operator("tester")
Thing = fl.kind("test.example.com/v1", "Thing")
{line}
"""
CORRECT = "thing: fl.Object = fl.ConfigMap('name', data={})"
WRONG = {
    "a misspelt built-in kind": "fl.ConfigMpa('name')",
    "a misspelt exception": "fl.errors.NotFond",
    "a misspelt testing name": "fairlead.testing.Clutser",
    "an unknown keyword of the decorator": "op.reconcile(Thing, own=[fl.ConfigMap])",
    "a handler that returns its outcome": """
@op.reconcile(Thing)
async def reconcile(obj: fl.Object, ctx: fl.Context) -> fl.RequeueAfter:
    return fl.RequeueAfter(5)
""",
    "a handler without a context": """
@op.reconcile(Thing)
async def reconcile(obj: fl.Object) -> None: ...
""",
    "a write that is not awaited": """
@op.reconcile(Thing)
async def reconcile(obj: fl.Object, ctx: fl.Context) -> None:
    ctx.apply(fl.ConfigMap("child"))
""",
}


def pyright():
    installed = ROOT / ".venv" / "pyright" / "node_modules" / ".bin" / "pyright"
    return str(installed) if installed.is_file() else shutil.which("pyright")


def run_mypy(*arguments):
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", *map(str, arguments)]
    environment = {**os.environ, "MYPYPATH": f"{ROOT / 'src'}{os.pathsep}{EXAMPLES}"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)


def run_pyright(tmp_path, *arguments):
    if pyright() is None:
        pytest.skip("pyright is not installed: make pyright")
    environment = Path(sys.prefix)
    config = {
        "extraPaths": [str(ROOT / "src"), str(EXAMPLES)],
        "pythonVersion": "3.11",
        "venvPath": str(environment.parent),
        "venv": environment.name,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [pyright(), "--project", str(tmp_path), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)


def public_names():
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            yield pytest.param(module, name, id=f"{module}.{name}")


@pytest.mark.parametrize(("module", "name"), list(public_names()))
def test_public_name_exists_and_has_a_docstring(module, name):
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        inherited = {base.__doc__ for base in value.__mro__[1:]} if inspect.isclass(value) else set()
        assert value.__doc__, f"{module}.{name} needs a docstring"
        assert value.__doc__ not in inherited, f"{module}.{name} needs a docstring of its own"


@pytest.mark.parametrize("package", LAZY_PACKAGES)
def test_exports_are_the_same_for_type_checkers_and_at_run_time(package):
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__).read_text())
    (branch,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {alias.name for node in branch.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    listed = set(module.__all__) - {"__version__"}
    assert typed == listed
    assert listed <= set(dir(module))


@pytest.mark.parametrize("package", LAZY_PACKAGES)
def test_completion_sees_every_name_before_it_is_loaded(package):
    code = f"import {package} as package; print(*(set(package.__all__) - set(dir(package))))"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == ""


def test_every_exception_of_the_public_packages_is_in_errors():
    import fairlead as fl
    from fairlead import writes

    raised = {name for module in (fl, writes) for name in module.__all__ if _is_exception(getattr(module, name))}
    assert raised <= set(fl.errors.__all__)


def _is_exception(value):
    return inspect.isclass(value) and issubclass(value, BaseException)


def test_every_builtin_kind_is_exported():
    import fairlead as fl
    from fairlead.api.builtin import BUILTIN

    assert BUILTIN.keys() <= set(fl.__all__)


def test_builtin_kinds_have_the_fields_of_the_servers_schema():
    from fairlead.api.builtin import BUILTIN

    schema = json.loads((ROOT / "src/fairlead/server/schema/builtin.json").read_text())
    for kind in BUILTIN.values():
        if root := schema["roots"].get(f"{kind.api_version}/{kind.kind}"):
            fields = {field.get("n") for field in schema["types"][root]["f"]} - {None, "apiVersion", "kind", "metadata"}
            assert kind.fields == fields, kind


def test_mypy_accepts_the_examples():
    completed = run_mypy(*sorted(EXAMPLES.glob("*.py")))
    assert completed.returncode == 0, completed.stdout


def test_mypy_rejects_mistakes(tmp_path):
    files = _write_mistakes(tmp_path)
    completed = run_mypy(*files.values())
    reported = {Path(line.partition(":")[0]).name for line in completed.stdout.splitlines() if ": error:" in line}
    assert {name for name, file in files.items() if file.name in reported} == set(WRONG), completed.stdout


def test_pyright_accepts_the_examples(tmp_path):
    completed = run_pyright(tmp_path, *sorted(EXAMPLES.glob("*.py")))
    assert completed.returncode == 0, completed.stdout


def test_pyright_rejects_mistakes(tmp_path):
    files = _write_mistakes(tmp_path)
    completed = run_pyright(tmp_path, *files.values())
    reported = {
        Path(line.strip().partition(":")[0]).name for line in completed.stdout.splitlines() if " - error:" in line
    }
    assert {name for name, file in files.items() if file.name in reported} == set(WRONG), completed.stdout


def _write_mistakes(folder):
    """Write one file per mistake, and one correct file."""
    files = {}
    for number, (name, line) in enumerate({"correct": CORRECT, **WRONG}.items()):
        files[name] = folder / f"mistake_{number}.py"
        files[name].write_text(MISTAKES.format(line=line))
    return files
