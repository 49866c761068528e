"""The matchConditions of webhooks and policies: CEL expressions that decide whether a write is seen at all."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.server.admission.plugin import AdmissionAttributes
from fairlead.server.admission.review_request import build_request, show_object
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import cel
from fairlead.server.schema.cel import engine
from fairlead.server.schema.cel.costs import runtime

if TYPE_CHECKING:
    from fairlead.server.app import Server


def matches_conditions(
    server: "Server", conditions: list[Object], attributes: AdmissionAttributes, resource: Resource
) -> tuple[bool, str]:
    """Return whether all conditions are true, and the errors of those that could not be evaluated.

    If a condition is false, errors of other conditions do not count.
    """
    if not cel.is_available():
        return False, "match conditions need the extra `cel`: pip install 'fairlead[cel]'"
    request = build_request(attributes, resource)
    variables = {
        "object": show_object(attributes, attributes.object, resource),
        "oldObject": show_object(attributes, attributes.old, resource),
        "request": {key: value for key, value in request.items() if key not in ("object", "oldObject")},
    }
    errors: list[str] = []
    for condition in conditions:
        result, error = _evaluate(condition["expression"].strip(), variables)
        if error:
            errors.append(error)
        elif result is False:
            return False, ""
    unique = list(dict.fromkeys(errors))
    return not errors, unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]" if unique else ""


def _evaluate(text: str, variables: dict[str, Any]) -> tuple[Any, str]:
    """Return the value of an expression, and an error message or ""."""
    runtime.METER.start()
    try:
        result = _compile(text).eval(data=variables)
    except RuntimeError as error:
        return None, f"expression '{text}' resulted in error: {engine.translate_error(str(error))}"
    if result.type().name() == "ERROR":
        return None, f"expression '{text}' resulted in error: {engine.translate_error(str(result.value()))}"
    return result.value(), ""


@lru_cache(maxsize=256)
def _compile(text: str) -> Any:
    return engine.compile_untyped(text)
