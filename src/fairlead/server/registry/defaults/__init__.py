"""Default values of the built-in kinds, by Go type. A server sets them when it decodes an object."""

from fairlead.server.registry.defaults.apply import apply_defaults
from fairlead.server.registry.defaults.computed import TEMPLATE_GENERATION

__all__ = ["TEMPLATE_GENERATION", "apply_defaults"]
