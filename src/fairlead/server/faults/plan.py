"""A fault plan: which requests fare badly, and how."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from fairlead.api import documents
from fairlead.server.authorization.attributes import Attributes

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
STATUSES = (409, 410, 429, 500, 503, 504)
DROPS = ("before", "after")
EFFECTS = ("delay", "hold", "drop", "status", "cut", "stale")
APPLICABLE_VERBS = {
    "cut": ("watch",),
    "stale": ("get", "list", "watch"),
    "hold": tuple(verb for verb in VERBS if verb != "watch"),
}
Seconds = tuple[float, float]  # drawn evenly between the two


class PlanError(ValueError):
    """A plan that cannot be followed. The message is one line that says where and why."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One harm, and whom it befalls: every request, unless a verb, a kind or a user agent is named.

    `probability` is drawn anew for each request that matches; `count` bounds how often the fault strikes. Exactly one
    harm: `delay` (seconds before the request is looked at), `hold` (the same, and it is carried out even if its sender
    has hung up by then, as what was sent may be: the network had it), `drop` (the connection breaks before or after
    the request is carried out), `status` (a refusal instead of an answer), `cut` (a watch breaks off after so many
    seconds), `stale` (reads that may be stale, and watches, are answered by a replica that is so many seconds behind).
    """

    delay: float | Seconds | None = None
    hold: float | Seconds | None = None
    drop: str | None = None
    status: int | None = None
    cut: float | Seconds | None = None
    stale: float | None = None
    verb: str | tuple[str, ...] = ()
    kind: str | tuple[str, ...] = ()
    user_agent: str = ""
    probability: float = 1.0
    count: int | None = None

    def __post_init__(self) -> None:
        for name in ("verb", "kind"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        _check(self)

    @property
    def effect(self) -> str:
        """Which of the harms it is."""
        return next(name for name in EFFECTS if getattr(self, name) is not None)

    def matches(self, asked: Attributes, kind: str, agent: str) -> bool:
        """Whether a request is one of those meant. A kind is named ConfigMap, configmaps or widgets.example.com."""
        if self.verb and asked.verb not in self.verb:
            return False
        if self.kind and not {kind, asked.resource, f"{asked.resource}.{asked.group}"} & set(self.kind):
            return False
        if asked.verb not in APPLICABLE_VERBS.get(self.effect, (asked.verb,)):
            return False
        return not self.user_agent or fnmatchcase(agent, self.user_agent)


@dataclass(frozen=True, slots=True)
class Plan:
    """Faults in their order, and the seed that every draw follows from (without one: the server's world)."""

    faults: tuple[Fault, ...] = ()
    seed: int | None = None

    def __init__(self, faults: Iterable[Fault] = (), seed: int | None = None) -> None:
        object.__setattr__(self, "faults", tuple(faults))
        object.__setattr__(self, "seed", seed)

    @classmethod
    def read(cls, text: str) -> "Plan":
        """A plan from YAML or JSON: `seed` and `faults`, each with the fields of `Fault` (userAgent for the agent)."""
        try:
            value = documents.read_one(text)
        except documents.NotYaml as error:
            raise PlanError(str(error)) from None
        if not isinstance(value, dict) or not isinstance(value.get("faults"), list):
            raise PlanError("a plan is a map with a list of faults, as {faults: [{status: 409, verb: update}]}")
        if unknown := ", ".join(sorted(str(key) for key in value.keys() - {"seed", "faults"})):
            raise PlanError(f"a plan has seed and faults, not {unknown}")
        seed = value.get("seed")
        if seed is not None and type(seed) is not int:
            raise PlanError(f"seed: {seed!r} is no integer")
        return cls([_fault(index, item) for index, item in enumerate(value["faults"])], seed)


_FIELDS = {"userAgent" if one.name == "user_agent" else one.name: one.name for one in fields(Fault)}


def _fault(index: int, item: Any) -> Fault:
    where = f"faults[{index}]"
    if not isinstance(item, Mapping):
        raise PlanError(f"{where}: {item!r} is no map, as {{status: 409, verb: update}}")
    if unknown := ", ".join(sorted(str(key) for key in item.keys() - _FIELDS)):
        raise PlanError(f"{where}: a fault has {', '.join(_FIELDS)}, not {unknown}")
    given: dict[str, Any] = {
        _FIELDS[key]: tuple(value) if isinstance(value, list) else value for key, value in item.items()
    }
    try:
        return Fault(**given)
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from None
    except TypeError:
        raise PlanError(f"{where}: {item!r} is no fault") from None


def _check(fault: Fault) -> None:
    harms = [name for name in EFFECTS if getattr(fault, name) is not None]
    if len(harms) != 1:
        told = f"has {' and '.join(harms)}" if harms else "has none"
        raise PlanError(f"a fault does one of {', '.join(EFFECTS)}; this one {told}")
    for name in ("delay", "hold", "cut", "stale"):
        value = getattr(fault, name)
        if value is not None and not _seconds(value, spread=name != "stale"):
            more = ", or [least, most]" if name != "stale" else ""
            raise PlanError(f"{name}: {_shown(value)} is no number of seconds{more}")
    if fault.drop is not None and fault.drop not in DROPS:
        raise PlanError(f"drop: {fault.drop!r} is neither before nor after")
    if fault.status is not None and fault.status not in STATUSES:
        raise PlanError(f"status: {fault.status!r} is none of {', '.join(map(str, STATUSES))}")
    for verb in fault.verb:
        if verb not in VERBS:
            raise PlanError(f"verb: {verb!r} is none of {', '.join(VERBS)}")
    befalls = APPLICABLE_VERBS.get(fault.effect, VERBS)
    if fault.verb and not set(fault.verb) & set(befalls):
        raise PlanError(f"verb: {fault.effect} never befalls {', '.join(fault.verb)}, but {', '.join(befalls)}")
    if not all(isinstance(kind, str) and kind for kind in fault.kind):
        raise PlanError(f"kind: {_shown(fault.kind)} names no kind, as ConfigMap or widgets.example.com")
    if not isinstance(fault.user_agent, str):
        raise PlanError(f"userAgent: {fault.user_agent!r} is no text, as kubectl/*")
    if not _number(fault.probability) or not 0 <= fault.probability <= 1:
        raise PlanError(f"probability: {fault.probability!r} is not between 0 and 1")
    if fault.count is not None and (type(fault.count) is not int or fault.count < 1):
        raise PlanError(f"count: {fault.count!r} is no number of times, from 1 on")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _seconds(value: Any, *, spread: bool) -> bool:
    values = value if spread and isinstance(value, tuple) and len(value) == 2 else (value,)
    return all(_number(one) and 0 <= one < float("inf") for one in values) and list(values) == sorted(values)


def _shown(value: Any) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)
