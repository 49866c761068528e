"""Validation of PriorityClasses, RuntimeClasses and IngressClasses."""

from typing import Final

from fairlead.server.registry.validation.formats import NOT_NEGATIVE, dns_label
from fairlead.server.registry.validation.networking import TYPED_REFERENCE
from fairlead.server.registry.validation.rules import (
    EMPTY,
    NOT_EMPTY,
    SET,
    Errors,
    Scope,
    build_validator,
    each,
    field,
    first_error,
    inside,
    on_create,
    on_update,
    when,
)
from fairlead.server.registry.validation.scheduling import check_toleration
from fairlead.server.registry.validation.selectors import check_labels
from fairlead.server.schema import quantity

_MAX_CONTROLLER_LENGTH: Final = 250
_MAX_PRIORITY: Final = 1_000_000_000


def _check_reserved_name(priority_class: Scope) -> Errors:
    name = priority_class.text("metadata.name")
    if name.startswith("system-"):
        message = "priority class names with 'system-' prefix are reserved for system use only. error: "
        yield priority_class.forbidden("metadata.name", f"{message}{name} is not a known system priority class")


priority_class: Final = build_validator(
    on_create(
        first_error(
            _check_reserved_name,
            field("value").forbidden_if(
                lambda priority_class: priority_class.number("value") > _MAX_PRIORITY,
                f"maximum allowed value of a user defined priority is {_MAX_PRIORITY}",
            ),
            field("preemptionPolicy").enum("PreemptLowerPriority", "Never"),
        )
    ),
    on_update(
        field("value").forbidden_if(
            lambda priority_class: priority_class.number("value") != (priority_class.old_value("value") or 0),
            "may not be changed in an update.",
        ),
        field("preemptionPolicy").immutable(),
    ),
)


def _check_overhead(runtime_class: Scope) -> Errors:
    for name, amount in runtime_class.map("overhead.podFixed").items():
        if quantity.parse(amount)[0] < 0:
            yield runtime_class.invalid(f"overhead.limits[{name}]", NOT_NEGATIVE, amount)


def _check_unique_tolerations(runtime_class: Scope) -> Errors:
    tolerations = runtime_class.items("scheduling.tolerations")
    for index, item in enumerate(tolerations):
        if item in tolerations[:index]:
            yield runtime_class.duplicate(f"scheduling.tolerations[{index}]", item)


runtime_class: Final = build_validator(
    field("handler").required(dns_label),
    _check_overhead,
    check_labels("scheduling.nodeSelector"),
    each("scheduling.tolerations", check_toleration),
    _check_unique_tolerations,
    field("handler").immutable(zero=""),
)
ingress_class: Final = build_validator(
    field("spec.controller").immutable(zero=""),
    inside(
        "spec",
        field("controller").required(),
        field("controller").max_length(_MAX_CONTROLLER_LENGTH),
        when({"controller": NOT_EMPTY}, field("controller").domain_prefixed_path()),
        inside(
            "parameters",
            *TYPED_REFERENCE,
            field("scope").enum("Cluster", "Namespace"),
            field("namespace").required_if(
                {"scope": "Namespace", "namespace": EMPTY}, "`parameters.scope` is set to 'Namespace'"
            ),
            field("namespace").forbidden_if(
                {"scope": "Cluster", "namespace": SET}, "`parameters.scope` is set to 'Cluster'"
            ),
        ),
        always=True,
    ),
)
