"""Validation of Leases."""

from typing import Final

from fairlead.server.registry.validation.rules import build_validator, field, inside

lease: Final = build_validator(
    inside(
        "spec",
        field("leaseDurationSeconds").at_least(1, message="must be greater than 0"),
        field("leaseTransitions").at_least(0),
    )
)
