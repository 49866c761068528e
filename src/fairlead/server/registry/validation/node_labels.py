"""Deprecated node labels, and the warnings about them."""

from collections.abc import Iterator
from typing import Final

from fairlead.server.registry.resource import Object
from fairlead.server.registry.validation.formats import label_value

DEPRECATED: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": ('deprecated since v1.17; use "topology.kubernetes.io/region" instead'),
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def find_term_warnings(term: Object, path: str, *, checks_values: bool) -> Iterator[str]:
    """Yield the warnings about a node selector term. `checks_values`: also warn about values that no label can have."""
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        field, key = f"{path}.matchExpressions[{index}]", requirement.get("key") or ""
        if key in DEPRECATED:
            yield f"{field}.key: {key} is {DEPRECATED[key]}"
        for position, value in enumerate(requirement.get("values") or () if checks_values else ()):
            yield from (f"{field}.values[{position}]: {value} is invalid, {problem}" for problem in label_value(value))
