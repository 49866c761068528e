"""Defaults of the built-in kinds, by Go type: what a server fills in when it decodes an object."""

from fairlead.server.registry.defaults.rules import TEMPLATE_GENERATION
from fairlead.server.registry.defaults.walking import default

__all__ = ["TEMPLATE_GENERATION", "default"]
