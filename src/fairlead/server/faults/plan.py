"""Fault plans: which requests a fault affects, and what happens to them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
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
Seconds = tuple[float, float]  # a range to draw from, uniformly


class PlanError(ValueError):
    """Raised for an invalid fault plan. The message is one line that names the place and the problem."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One effect, and the requests to which it applies: all requests, or those with this verb, kind and user agent.

    Each matching request is affected with `probability`. `count` limits how often the fault applies. A fault has
    exactly one effect:

    - `delay`: wait so many seconds before the request is executed.
    - `hold`: like delay, but the request is executed even if the client disconnects meanwhile.
    - `drop`: break the connection `before` or `after` the request is executed.
    - `status`: respond with this error status.
    - `cut`: break a watch after so many seconds.
    - `stale`: serve reads that may be stale, and watches, from a replica that lags so many seconds.
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
        _check_fault(self)

    @property
    def effect(self) -> str:
        """The name of the fault's effect, for example "delay"."""
        return next(name for name in EFFECTS if getattr(self, name) is not None)

    def matches(self, attributes: Attributes, kind: str, agent: str) -> bool:
        """Return whether the fault applies to a request.

        `self.kind` may name a kind as ConfigMap, configmaps or widgets.example.com.
        """
        if self.verb and attributes.verb not in self.verb:
            return False
        if self.kind and not {kind, attributes.resource, f"{attributes.resource}.{attributes.group}"} & set(self.kind):
            return False
        if attributes.verb not in APPLICABLE_VERBS.get(self.effect, (attributes.verb,)):
            return False
        return not self.user_agent or fnmatchcase(agent, self.user_agent)


@dataclass(frozen=True, slots=True)
class Plan:
    """A sequence of faults, and the seed of the random draws. Without a seed, the server's random source is used."""

    faults: tuple[Fault, ...] = ()
    seed: int | None = None

    def __init__(self, faults: Iterable[Fault] = (), seed: int | None = None) -> None:
        object.__setattr__(self, "faults", tuple(faults))
        object.__setattr__(self, "seed", seed)

    @classmethod
    def read(cls, text: str) -> "Plan":
        """Parse a plan from YAML or JSON with the keys `seed` and `faults`. Raises PlanError.

        The keys of a fault are the attributes of `Fault`, but with userAgent in camel case.
        """
        try:
            value = documents.parse_one(text)
        except documents.InvalidYaml as error:
            raise PlanError(str(error)) from None
        if not isinstance(value, dict) or not isinstance(value.get("faults"), list):
            raise PlanError("a plan is a map with a list of faults, like {faults: [{status: 409, verb: update}]}")
        if unknown := ", ".join(sorted(str(key) for key in value.keys() - {"seed", "faults"})):
            raise PlanError(f"a plan has seed and faults, not {unknown}")
        seed = value.get("seed")
        if seed is not None and type(seed) is not int:
            raise PlanError(f"seed: {seed!r} is not an integer")
        return cls([_parse_fault(index, item) for index, item in enumerate(value["faults"])], seed)

    @classmethod
    def from_seed(cls, seed: int) -> "Plan":
        """Return a plan of faults that every correct client survives: those of a busy cluster, repeatable by `seed`.

        Requests are slow, some are throttled, a few writes conflict or are lost on the way, and watches break.
        """
        return cls(
            [
                Fault(delay=(0.0, 0.05), verb=("create", "update", "patch", "delete", "list"), probability=0.2),
                Fault(status=429, verb=("create", "update", "patch", "delete", "list"), probability=0.02),
                Fault(status=409, verb=("update",), probability=0.05),
                Fault(status=503, verb=("update", "patch"), probability=0.01),
                Fault(drop="after", verb=("update", "patch"), probability=0.01),
                Fault(cut=(2.0, 30.0), verb=("watch",), probability=0.5),
            ],
            seed,
        )

    @classmethod
    def load(cls, source: str) -> "Plan":
        """Return the plan of a file, or the plan `from_seed` if `source` is a number.

        Raises PlanError if the file is not a plan, and OSError if it cannot be read.
        """
        if source.isdecimal():
            return cls.from_seed(int(source))
        try:
            return cls.read(Path(source).read_text(encoding="utf-8"))
        except (PlanError, UnicodeDecodeError) as error:
            raise PlanError(f"{source}: {error}") from None


_FIELDS = {"userAgent" if field.name == "user_agent" else field.name: field.name for field in fields(Fault)}


def _parse_fault(index: int, item: Any) -> Fault:
    field = f"faults[{index}]"
    if not isinstance(item, Mapping):
        raise PlanError(f"{field}: {item!r} is not a map like {{status: 409, verb: update}}")
    if unknown := ", ".join(sorted(str(key) for key in item.keys() - _FIELDS)):
        raise PlanError(f"{field}: a fault has {', '.join(_FIELDS)}, not {unknown}")
    arguments: dict[str, Any] = {
        _FIELDS[key]: tuple(value) if isinstance(value, list) else value for key, value in item.items()
    }
    try:
        return Fault(**arguments)
    except PlanError as error:
        raise PlanError(f"{field}: {error}") from None
    except TypeError:
        raise PlanError(f"{field}: {item!r} is not a fault") from None


def _check_fault(fault: Fault) -> None:
    effects = [name for name in EFFECTS if getattr(fault, name) is not None]
    if len(effects) != 1:
        problem = f"has {' and '.join(effects)}" if effects else "has none"
        raise PlanError(f"a fault has one of {', '.join(EFFECTS)}; this one {problem}")
    for name in ("delay", "hold", "cut", "stale"):
        value = getattr(fault, name)
        if value is not None and not _is_duration(value, allow_range=name != "stale"):
            alternative = " or [least, most]" if name != "stale" else ""
            raise PlanError(f"{name}: {_format_setting(value)} is not a number of seconds{alternative}")
    if fault.drop is not None and fault.drop not in DROPS:
        raise PlanError(f"drop: {fault.drop!r} is not before or after")
    if fault.status is not None and fault.status not in STATUSES:
        raise PlanError(f"status: {fault.status!r} is not one of {', '.join(map(str, STATUSES))}")
    for verb in fault.verb:
        if verb not in VERBS:
            raise PlanError(f"verb: {verb!r} is not one of {', '.join(VERBS)}")
    applicable = APPLICABLE_VERBS.get(fault.effect, VERBS)
    if fault.verb and not set(fault.verb) & set(applicable):
        raise PlanError(
            f"verb: {fault.effect} does not apply to {', '.join(fault.verb)}, only to {', '.join(applicable)}"
        )
    if not all(isinstance(kind, str) and kind for kind in fault.kind):
        raise PlanError(
            f"kind: {_format_setting(fault.kind)} does not name a kind like ConfigMap or widgets.example.com"
        )
    if not isinstance(fault.user_agent, str):
        raise PlanError(f"userAgent: {fault.user_agent!r} is not a text like kubectl/*")
    if not _is_number(fault.probability) or not 0 <= fault.probability <= 1:
        raise PlanError(f"probability: {fault.probability!r} is not between 0 and 1")
    if fault.count is not None and (type(fault.count) is not int or fault.count < 1):
        raise PlanError(f"count: {fault.count!r} is not a positive integer")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_duration(value: Any, *, allow_range: bool) -> bool:
    values = value if allow_range and isinstance(value, tuple) and len(value) == 2 else (value,)
    return all(_is_number(number) and 0 <= number < float("inf") for number in values) and list(values) == sorted(
        values
    )


def _format_setting(value: Any) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)
