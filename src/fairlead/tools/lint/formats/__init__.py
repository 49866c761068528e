"""How findings are printed: one module per format, each a function from a report to text."""

from collections.abc import Callable

from fairlead.tools.lint.engine import Report
from fairlead.tools.lint.formats.github_format import to_github
from fairlead.tools.lint.formats.json_format import to_json
from fairlead.tools.lint.formats.sarif_format import to_sarif
from fairlead.tools.lint.formats.text_format import to_text

FORMATS: dict[str, Callable[[Report], str]] = {
    "text": to_text,
    "json": to_json,
    "sarif": to_sarif,
    "github": to_github,
}
