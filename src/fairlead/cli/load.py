"""Load an operator from a file, a module or a directory."""

import importlib
import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from fairlead.api.errors import UserError
from fairlead.api.source_locations import is_fairlead
from fairlead.runtime.operator import Operator

THIRD_PARTY_DIRECTORIES = re.compile(r"\..+|__pycache__|node_modules|site-packages")
"""Directories beside an operator that hold other people's code, such as a virtual environment."""

CONVENTIONAL_FILE = "controller.py"
"""The file that is loaded from a directory or a package."""


class OperatorNotFound(UserError):
    """The file, module or directory defines no operator or cannot be loaded. The message is one line with the fix."""


def load(target: str) -> Operator:
    """Return the Operator that a file, a module (`package.module`) or a directory (with controller.py) defines."""
    operators = {id(value): value for value in vars(_load_module(target)).values() if isinstance(value, Operator)}
    if not operators:
        raise OperatorNotFound(f"{target} defines no operator: add a line such as op = fairlead.Operator('greeter')")
    if len(operators) > 1:
        names = ", ".join(sorted(op.name for op in operators.values()))
        raise OperatorNotFound(f"{target} defines several operators ({names}): give each a file of its own")
    return next(iter(operators.values()))


def unload_modules(target: str) -> None:
    """Remove the modules in the operator's directory from sys.modules, so that they are imported again."""
    directory = directory_of(target)
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/").resolve()
        if name == "__main__" or directory is None or not file.is_relative_to(directory):
            continue
        if not any(THIRD_PARTY_DIRECTORIES.fullmatch(part) for part in file.relative_to(directory).parts):
            del sys.modules[name]
    importlib.invalidate_caches()


def directory_of(target: str) -> Path | None:
    """Return the directory with the operator's code, or None if `target` is a module that is not imported yet."""
    path = Path(target)
    if path.is_dir():
        return path.resolve()
    if path.is_file():
        return path.resolve().parent
    module = sys.modules.get(target)
    return Path(module.__file__).resolve().parent if module is not None and module.__file__ else None


def _load_module(target: str) -> ModuleType:
    path = Path(target)
    if path.is_dir():
        path = path / CONVENTIONAL_FILE
        if not path.is_file():
            raise OperatorNotFound(_describe_missing_file(target))
    try:
        if path.is_file():
            return _load_file(path.resolve())
        if path.suffix == ".py" or "/" in target:
            raise OperatorNotFound(f"there is no file {target}")
        sys.path.insert(0, str(Path.cwd()))
        conventional = f"{target}.{Path(CONVENTIONAL_FILE).stem}"
        is_package = hasattr(importlib.import_module(target), "__path__")
        return importlib.import_module(
            conventional if is_package and importlib.util.find_spec(conventional) else target
        )
    except UserError:
        raise  # Its message names the file and the line already.
    except ModuleNotFoundError as error:
        if error.name and (target == error.name or target.startswith(f"{error.name}.")):
            raise OperatorNotFound(f"there is neither a file nor a module {target}") from error
        raise OperatorNotFound(f"{target} imports {error.name}, which is not installed: pip install it") from error
    except Exception as error:
        raise OperatorNotFound(
            f"{target} cannot be loaded: {_format_error_location(error)}{type(error).__name__}: {error}"
        ) from error


def _describe_missing_file(target: str) -> str:
    if (Path(target) / "operator.py").is_file():
        return (
            f"{target} has an operator.py, a name that shadows Python's own module: "
            f"rename it to {CONVENTIONAL_FILE}, or name the file"
        )
    return f"{target} has no {CONVENTIONAL_FILE}: name the file that defines the operator"


def _load_file(path: Path) -> ModuleType:
    # A file in a package is imported as part of that package, so that its relative imports work.
    names, directory = [path.stem], path.parent
    while (directory / "__init__.py").is_file():
        names.insert(0, directory.name)
        directory = directory.parent
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    if len(names) > 1:
        return importlib.import_module(".".join(names))
    name = f"fairlead_run_{path.stem}"  # a name of its own, so that it shadows no other module
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OperatorNotFound(f"{path.name} is not a Python file: name the .py file of an operator, or its directory")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _format_error_location(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return ""  # Its message has the place already.
    frames = list(traceback.walk_tb(error.__traceback__))
    # The line of the user's code that failed, not the line of fairlead that it called.
    user_frames = [(frame, line) for frame, line in frames if not is_fairlead(frame.f_globals.get("__name__", ""))]
    if not user_frames:
        return ""
    frame, line = user_frames[-1]
    return f"{Path(frame.f_code.co_filename).name}, line {line}: "
