"""What a real server warns of in pods, claims and volumes.

Selectors of nothing, old labels and sources, parts of bytes; and what is said twice, which apply may lose.
"""

from collections.abc import Callable, Iterator
from typing import Any

from fairlead.api.fields.path_elements import quote_go
from fairlead.server.registry.resource import Object
from fairlead.server.registry.validation import nodelabels
from fairlead.server.schema import quantity


def pod(new: Object, old: Object | None) -> list[str]:
    """Of a Pod, when it is new."""
    return _warnings(new.get("spec") or {}, "spec") if old is None else []


def template(*path: str) -> Callable[[Object, Object | None], list[str]]:
    """Of the pod template at this path, whenever what is wanted changed."""

    def warnings(new: Object, old: Object | None) -> list[str]:
        if old is not None and new["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        found: Any = new
        for word in path:
            found = (found or {}).get(word)
        return _warnings((found or {}).get("spec") or {}, ".".join([*path, "spec"]))

    return warnings


def _warnings(spec: Object, at: str) -> list[str]:
    containers = list(_containers(spec, at))
    out = [
        *_placed(spec, at),
        *_volumes(spec, at),
        *_twice(spec, at),
        *_fractions(spec.get("overhead"), f"{at}.overhead"),
    ]
    for container, place in containers:
        for part in ("limits", "requests"):
            out += _fractions((container.get("resources") or {}).get(part), f"{place}.resources.{part}")
        out += _hidden(container, place)
    out += _ports(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        told = "must be >= 0; negative values are invalid and will be treated as 1"
        out.append(f"{at}.terminationGracePeriodSeconds: {told}")
    return [*out, *_beside(spec, at)]


def _placed(spec: Object, at: str) -> Iterator[str]:
    """Where Pods run: old labels of nodes, and constraints that hold for no Pod."""
    for key in spec.get("nodeSelector") or ():
        if nodelabels.told(key):
            yield f"{at}.nodeSelector[{key}]: {nodelabels.told(key)}"
    nodes, here = (spec.get("affinity") or {}).get("nodeAffinity") or {}, f"{at}.affinity.nodeAffinity"
    required = (nodes.get(f"required{_LATER}") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(required):
        yield from nodelabels.of_term(term, f"{here}.required{_LATER}.nodeSelectorTerms[{index}]", values=False)
    for index, term in enumerate(nodes.get(f"preferred{_LATER}") or ()):
        place = f"{here}.preferred{_LATER}[{index}].preference"
        yield from nodelabels.of_term(term.get("preference") or {}, place, values=True)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        place, key = f"{at}.topologySpreadConstraints[{index}]", constraint.get("topologyKey") or ""
        if nodelabels.told(key):
            yield f"{place}.topologyKey: {key} is {nodelabels.told(key)}"
        if constraint.get("labelSelector") is None:
            yield f"{place}.labelSelector: {_NONE}"


def _beside(spec: Object, at: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms, here = (spec.get("affinity") or {}).get(kind) or {}, f"{at}.affinity.{kind}"
        for index, term in enumerate(terms.get(f"required{_LATER}") or ()):
            if term.get("labelSelector") is None:
                yield f"{here}.required{_LATER}[{index}].labelSelector: {_NONE}"
        for index, term in enumerate(terms.get(f"preferred{_LATER}") or ()):
            if (term.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{here}.preferred{_LATER}[{index}].podAffinityTerm.labelSelector: {_NONE}"


def _volumes(spec: Object, at: str) -> Iterator[str]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        here = f"{at}.volumes[{index}]"
        yield from (f"{here}.{text}" for text in old_sources(volume))
        if volume.get("gitRepo") is not None:
            yield f"{here}.gitRepo: deprecated in v1.11, and disabled by default in v1.33+"
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}
        for part in ("requests", "limits"):
            amounts = ((claim.get("spec") or {}).get("resources") or {}).get(part)
            place = f"{here}.ephemeral.volumeClaimTemplate.spec.resources.{part}"
            yield from _fractions(amounts, place, ("storage",))


def old_sources(volume: Object) -> Iterator[str]:
    """Sources that are gone, of a Pod's volume or a volume of its own."""
    for key, (called, since, until) in _OLD.items():
        if volume.get(key) is not None:
            yield f"{called}: deprecated in v1.{since}, non-functional in v1.{until}+"


def _twice(spec: Object, at: str) -> Iterator[str]:
    for key, field in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        given = [one.get(field) or "" for one in spec.get(key) or ()]
        for index, text in enumerate(given):
            if text in given[:index]:
                yield f"{at}.{key}[{index}].{field}: duplicate {field} {quote_go(text)}"
        if key == "imagePullSecrets":
            empty = [index for index, text in enumerate(given) if not text]
            yield from (f'{at}.{key}[{index}].name: invalid empty name ""' for index in empty)


def _fractions(amounts: Object | None, at: str, of: tuple[str, ...] = ("memory", "ephemeral-storage")) -> Iterator[str]:
    """Parts of bytes."""
    for name in of:
        amount = (amounts or {}).get(name)
        if amount is not None and quantity.parse(amount)[0] % 1:
            yield f"{at}[{name}]: fractional byte value {quote_go(amount)} is invalid, must be an integer"


def claim(new: Object, old: Object | None) -> list[str]:
    """Of a claim: the class by its old name, and parts of bytes."""
    key = "volume.beta.kubernetes.io/storage-class"
    named = key in (new["metadata"].get("annotations") or {})
    told = 'deprecated since v1.8; use "storageClassName" attribute instead'
    out = [f"metadata.annotations[{key}]: {told}"] if named else []
    resources = (new.get("spec") or {}).get("resources") or {}
    for part in ("requests", "limits"):
        out += _fractions(resources.get(part), f"spec.resources.{part}", ("storage",))
    return out


def volume(new: Object, old: Object | None) -> list[str]:
    """Of a volume: what is old about it."""
    key, spec = "volume.beta.kubernetes.io/storage-class", new.get("spec") or {}
    named = key in (new["metadata"].get("annotations") or {})
    told = 'deprecated since v1.8; use "storageClassName" attribute instead'
    out = [f"metadata.annotations[{key}]: {told}"] if named else []
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        out.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLED}")
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        out += nodelabels.of_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]", values=False)
    return out + [f"spec.{text}" for text in old_sources(spec) if not text.startswith(("flocker", "quobyte"))]


_RECYCLED = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
)
_LATER = "DuringSchedulingIgnoredDuringExecution"
_NONE = "a null labelSelector results in matching no pod"
_OLD = {  # what it is called, since when it is deprecated, and when it went
    "photonPersistentDisk": ("photonPersistentDisk", 11, 16),
    "scaleIO": ("scaleIO", 16, 22),
    "flocker": ("flocker", 22, 25),
    "storageos": ("storageOS", 22, 25),
    "quobyte": ("quobyte", 22, 25),
    "glusterfs": ("glusterfs", 25, 26),
    "cephfs": ("cephfs", 28, 31),
    "rbd": ("rbd", 28, 31),
}


def _containers(spec: Object, at: str) -> Iterator[tuple[Object, str]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield container, f"{at}.{kind}[{index}]"


def _hidden(container: Object, at: str) -> Iterator[str]:
    """Variables that hide an earlier one and do not build on it."""
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        builds_on = not variable.get("valueFrom") and value != reference and reference in value
        if name in seen and not builds_on:
            hidden = f"hides previous definition of {quote_go(name)}, which may be dropped when using apply"
            yield f"{at}.env[{index}]: {hidden}"
        seen.add(name)


def _ports(containers: list[tuple[Object, str]]) -> list[str]:
    out: list[str] = []
    taken: dict[tuple[Any, Any], list[tuple[str, Object]]] = {}
    ports = [(port, f"{at}.ports[{i}]") for each, at in containers for i, port in enumerate(each.get("ports") or ())]
    for port, at in ports:
        others = taken.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for place, other in others:
            here, there = port.get("hostPort") or 0, other.get("hostPort") or 0
            address, another = port.get("hostIP") or "", other.get("hostIP") or ""
            if (address, here) == (another, there):
                out.append(f"{at}: duplicate port definition with {place}")
            elif not here or not there:
                out.append(f"{at}: overlapping port definition with {place}")
            elif here == there and bool(address) != bool(another):
                out.append(f"{at}: dangerously ambiguous port definition with {place}")
        others.append((at, port))
    named: dict[str, str] = {}
    for port, at in ports:
        name = port.get("name")
        if name and (first := named.setdefault(name, at)) is not at:
            out.append(
                f"{at}: duplicate port name {quote_go(name)} with {first}, "
                f"services and probes that select ports by name will use {first}"
            )
    return out
