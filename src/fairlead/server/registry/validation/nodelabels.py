"""Labels of nodes that have a new name, and warnings of their use."""

from collections.abc import Iterator
from typing import Final

from fairlead.server.registry.resource import Object
from fairlead.server.write import names

_RENAMED: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": ('deprecated since v1.17; use "topology.kubernetes.io/region" instead'),
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def told(key: str) -> str:
    """What to use instead of a label, or ""."""
    return _RENAMED.get(key, "")


def of_term(term: Object, at: str, *, values: bool) -> Iterator[str]:
    """Warnings of a term that selects nodes; `values`: of those that no label can have, too."""
    for index, one in enumerate(term.get("matchExpressions") or ()):
        here, key = f"{at}.matchExpressions[{index}]", one.get("key") or ""
        if told(key):
            yield f"{here}.key: {key} is {told(key)}"
        for place, text in enumerate(one.get("values") or () if values else ()):
            yield from (f"{here}.values[{place}]: {text} is invalid, {wrong}" for wrong in names.label_value(text))
