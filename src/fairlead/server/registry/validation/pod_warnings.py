"""Warnings about Pods, claims and volumes, as a real server sends them.

The warnings are about selectors that match nothing, deprecated labels and volume sources, fractions of bytes, and list
items that an apply can lose because an earlier item has the same key.
"""

from collections.abc import Callable, Iterator
from typing import Final

from fairlead.api.gojson import quote_go
from fairlead.server.registry.validation.node_labels import DEPRECATED, find_term_warnings
from fairlead.server.registry.validation.rules import Object, Scope, lookup
from fairlead.server.schema import quantity

Warner = Callable[[Object, Object | None], list[str]]
_LATER: Final = "DuringSchedulingIgnoredDuringExecution"
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_OLD_CLASS_WARNING: Final = (
    f'metadata.annotations[{_OLD_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
)
_RECYCLE_WARNING: Final = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach "
    "is to use dynamic provisioning."
)
_OLD_SOURCES: Final = {  # the name in the warning, and the minor versions that deprecated and removed the source
    "photonPersistentDisk": ("photonPersistentDisk", 11, 16),
    "scaleIO": ("scaleIO", 16, 22),
    "flocker": ("flocker", 22, 25),
    "storageos": ("storageOS", 22, 25),
    "quobyte": ("quobyte", 22, 25),
    "glusterfs": ("glusterfs", 25, 26),
    "cephfs": ("cephfs", 28, 31),
    "rbd": ("rbd", 28, 31),
}


def find_pod_warnings(new: Object, old: Object | None) -> list[str]:
    """Return the warnings about a new Pod."""
    return list(_find_spec_warnings(Scope(new).inside("spec"))) if old is None else []


def build_template_warner(*path: str) -> Warner:
    """Return a function for the warnings about the Pod template at a path. It warns only if the generation changed."""

    def warnings(new: Object, old: Object | None) -> list[str]:
        if old is not None and new["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return list(_find_spec_warnings(Scope(new).inside(".".join([*path, "spec"]))))

    return warnings


def _find_spec_warnings(spec: Scope) -> Iterator[str]:
    containers = [c for kind in ("initContainers", "containers", "ephemeralContainers") for c in spec.each(kind)]
    yield from _warn_about_node_selection(spec)
    for volume in spec.each("volumes"):
        yield from _warn_about_volume(volume)
    yield from _warn_about_duplicates(spec, "hostAliases", "ip")
    yield from _warn_about_duplicates(spec, "imagePullSecrets", "name")
    for secret in spec.each("imagePullSecrets"):
        if not secret.get("name"):
            yield f'{secret.path("name")}: invalid empty name ""'
    yield from _warn_about_fractions(spec, "overhead")
    for container in containers:
        yield from _warn_about_fractions(container, "resources.limits")
        yield from _warn_about_fractions(container, "resources.requests")
        yield from _warn_about_hidden_variables(container)
    ports = [port for container in containers for port in container.each("ports")]
    yield from _warn_about_overlapping_ports(ports)
    yield from _warn_about_duplicate_port_names(ports)
    if spec.number("terminationGracePeriodSeconds") < 0:
        message = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{spec.path('terminationGracePeriodSeconds')}: {message}"
    yield from _warn_about_pod_affinity(spec)


def _warn_about_node_selection(spec: Scope) -> Iterator[str]:
    for key in spec.map("nodeSelector"):
        if key in DEPRECATED:
            yield f"{spec.path(f'nodeSelector[{key}]')}: {DEPRECATED[key]}"
    affinity = spec.inside("affinity.nodeAffinity")
    for term in affinity.inside(f"required{_LATER}").each("nodeSelectorTerms"):
        yield from find_term_warnings(term.value, term.path(), checks_values=False)
    for term in affinity.each(f"preferred{_LATER}"):
        yield from find_term_warnings(term.map("preference"), term.path("preference"), checks_values=True)
    for constraint in spec.each("topologySpreadConstraints"):
        key = constraint.text("topologyKey")
        if key in DEPRECATED:
            yield f"{constraint.path('topologyKey')}: {key} is {DEPRECATED[key]}"
        yield from _warn_about_missing_selector(constraint)


def _warn_about_missing_selector(scope: Scope) -> Iterator[str]:
    if scope.get("labelSelector") is None:
        yield f"{scope.path('labelSelector')}: {_NO_SELECTOR}"


def _warn_about_pod_affinity(spec: Scope) -> Iterator[str]:
    for kind in ("affinity.podAffinity", "affinity.podAntiAffinity"):
        affinity = spec.inside(kind)
        for term in affinity.each(f"required{_LATER}"):
            yield from _warn_about_missing_selector(term)
        for term in affinity.each(f"preferred{_LATER}"):
            yield from _warn_about_missing_selector(term.inside("podAffinityTerm"))


def _warn_about_volume(volume: Scope) -> Iterator[str]:
    yield from (f"{volume.path()}.{warning}" for warning in _warn_about_old_sources(volume.value))
    if volume.get("gitRepo") is not None:
        yield f"{volume.path('gitRepo')}: deprecated in v1.11, and disabled by default in v1.33+"
    claim = volume.inside("ephemeral.volumeClaimTemplate.spec")
    yield from _warn_about_fractions(claim, "resources.requests", "storage")
    yield from _warn_about_fractions(claim, "resources.limits", "storage")


def _warn_about_old_sources(volume: Object) -> Iterator[str]:
    """Yield the warnings about deprecated sources of a Pod's volume or a PersistentVolume."""
    for key, (name, deprecated, removed) in _OLD_SOURCES.items():
        if volume.get(key) is not None:
            yield f"{name}: deprecated in v1.{deprecated}, non-functional in v1.{removed}+"


def _warn_about_duplicates(spec: Scope, key: str, field: str) -> Iterator[str]:
    seen_names: set[str] = set()
    for item in spec.each(key):
        value = item.text(field)
        if value in seen_names:
            yield f"{item.path(field)}: duplicate {field} {quote_go(value)}"
        seen_names.add(value)


def _warn_about_fractions(scope: Scope, key: str, *names: str) -> Iterator[str]:
    """Yield a warning for each amount of bytes that is not an integer."""
    for name in names or ("memory", "ephemeral-storage"):
        amount = scope.map(key).get(name)
        if amount is not None and quantity.parse(amount)[0] % 1:
            message = f"fractional byte value {quote_go(amount)} is invalid, must be an integer"
            yield f"{scope.path(f'{key}[{name}]')}: {message}"


def _warn_about_hidden_variables(container: Scope) -> Iterator[str]:
    """Yield a warning for each environment variable that replaces an earlier one without referring to it."""
    names = [variable.get("name") for variable in container.items("env")]
    if len(set(names)) == len(names):
        return  # Most containers have no duplicate names, and some have thousands of variables.
    seen_names: set[str] = set()
    for variable in container.each("env"):
        name, value = variable.text("name"), variable.text("value")
        reference = f"$({name})"
        is_reference = not variable.get("valueFrom") and value != reference and reference in value
        if name in seen_names and not is_reference:
            message = f"hides previous definition of {quote_go(name)}, which may be dropped when using apply"
            yield f"{variable.path()}: {message}"
        seen_names.add(name)


def _warn_about_overlapping_ports(ports: list[Scope]) -> Iterator[str]:
    earlier: dict[tuple[int, str], list[Scope]] = {}
    for port in ports:
        earlier_ports = earlier.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for other in earlier_ports:
            number, other_number = port.number("hostPort"), other.number("hostPort")
            address, other_address = port.text("hostIP"), other.text("hostIP")
            if (address, number) == (other_address, other_number):
                yield f"{port.path()}: duplicate port definition with {other.path()}"
            elif not number or not other_number:
                yield f"{port.path()}: overlapping port definition with {other.path()}"
            elif number == other_number and bool(address) != bool(other_address):
                yield f"{port.path()}: dangerously ambiguous port definition with {other.path()}"
        earlier_ports.append(port)


def _warn_about_duplicate_port_names(ports: list[Scope]) -> Iterator[str]:
    by_name: dict[str, Scope] = {}
    for port in ports:
        name = port.get("name")
        if name and (first := by_name.setdefault(name, port)) is not port:
            ending = f"services and probes that select ports by name will use {first.path()}"
            yield f"{port.path()}: duplicate port name {quote_go(name)} with {first.path()}, {ending}"


def find_claim_warnings(new: Object, old: Object | None) -> list[str]:
    """Return the warnings about a PersistentVolumeClaim."""
    spec = Scope(new).inside("spec")
    return [
        *_warn_about_old_class(new),
        *_warn_about_fractions(spec, "resources.requests", "storage"),
        *_warn_about_fractions(spec, "resources.limits", "storage"),
    ]


def _warn_about_old_class(obj: Object) -> list[str]:
    return [_OLD_CLASS_WARNING] if _OLD_CLASS in (lookup(obj, "metadata.annotations") or {}) else []


def find_volume_warnings(new: Object, old: Object | None) -> list[str]:
    """Return the warnings about a PersistentVolume."""
    spec = Scope(new).inside("spec")
    warnings = _warn_about_old_class(new)
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        warnings.append(_RECYCLE_WARNING)
    for term in spec.inside("nodeAffinity.required").each("nodeSelectorTerms"):
        warnings += find_term_warnings(term.value, term.path(), checks_values=False)
    sources = [
        warning for warning in _warn_about_old_sources(spec.value) if not warning.startswith(("flocker", "quobyte"))
    ]
    return warnings + [f"spec.{warning}" for warning in sources]
