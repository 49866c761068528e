"""Validation of Leases."""

from typing import Final

from fairlead.server.registry.validation.rules import field, inside, validator

lease: Final = validator(
    inside(
        "spec",
        field("leaseDurationSeconds").at_least(1, message="must be greater than 0"),
        field("leaseTransitions").at_least(0),
    )
)
