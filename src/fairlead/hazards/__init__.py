"""The catalogue of hazards: every known way in which a write to a Kubernetes API server goes wrong.

Each hazard has an id that never changes, so that linters, audits and documentation can refer to it.

Example:
    hazard = find_hazard("finalizer-merge-patch-unlocked")
    print(hazard.title, hazard.page)
"""

from fairlead.hazards.catalogue import CATEGORIES, Fix, Hazard, Severity, find_hazard, load_catalogue

__all__ = ["CATEGORIES", "Fix", "Hazard", "Severity", "find_hazard", "load_catalogue"]
