"""What a real server warns of in pods: selectors of nothing; variables and ports said twice, which apply may lose."""

from collections.abc import Callable, Iterator
from typing import Any

from fairlead.api.fields.elements import quoted
from fairlead.server.registry.resource import Object


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
        f"{at}.topologySpreadConstraints[{index}].labelSelector: a null labelSelector results in matching no pod"
        for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ())
        if constraint.get("labelSelector") is None
    ]
    out += [text for container, place in containers for text in _hidden(container, place)]
    return out + _ports(containers)


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
            yield (
                f"{at}.env[{index}]: hides previous definition of {quoted(name)}, which may be dropped when using apply"
            )
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
                f"{at}: duplicate port name {quoted(name)} with {first}, "
                f"services and probes that select ports by name will use {first}"
            )
    return out
