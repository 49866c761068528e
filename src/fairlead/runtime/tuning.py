"""The settings of a controller that a user can tune: their defaults with reasons, their limits and precedence."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairlead.queue.queue import ERROR_BASE, ERROR_CAP
from fairlead.runtime.sources import DeclarationError

# The reason of each default is in its row of the tables below, which are also a page of the reference.
CONCURRENCY = 32
RATE_LIMIT = math.inf
RESYNC = 36_000.0
TIMEOUT = 300.0
REQUEST_TIMEOUT = 30.0
SHUTDOWN_TIMEOUT = 25.0
BRAKE_AFTER = 20
BRAKE_BASE = 10.0
BRAKE_MAX = 60.0


class Setting(NamedTuple):
    """One setting, with the reason of its default."""

    default: float
    help: str
    reason: str
    rule: str  # what a valid value is, for the error message
    is_valid: Callable[[float], bool]


def _is_positive(value: float) -> bool:
    return 0 < value < math.inf


_SECONDS = "a number of seconds greater than 0"

SETTINGS: dict[str, Setting] = {
    "concurrency": Setting(
        CONCURRENCY,
        "How many objects are reconciled at the same time.",
        "A pass mostly waits for the network. At 10 ms from a server, 32 passes at a time finish a burst at least five "
        "times as fast as one, and 64 gain nothing more. A server that answers 429 lowers the number.",
        "a whole number of at least 1",
        lambda value: isinstance(value, int) and value >= 1,
    ),
    "rate_limit": Setting(
        RATE_LIMIT,
        "How many passes start per second, on average. inf means no limit.",
        "A limit would delay every start with many objects. Changes of one object are merged, errors back off, and a "
        "429 lowers the concurrency, so only something else needs a limit: an external service with a quota.",
        "a number greater than 0, or inf for no limit",
        lambda value: value > 0,
    ),
    "resync": Setting(
        RESYNC,
        "Seconds after which every object is reconciled again.",
        "The default of controller-runtime. It is a safety net against missed changes, so rare that it costs nothing.",
        _SECONDS,
        _is_positive,
    ),
    "timeout": Setting(
        TIMEOUT,
        "Seconds after which a pass fails.",
        "Longer than any honest pass, and shorter than it takes somebody to notice that an object is stuck.",
        _SECONDS,
        _is_positive,
    ),
    "backoff_base": Setting(
        ERROR_BASE,
        "Seconds before the first retry after an error. The wait doubles with each error.",
        "Many errors are over in a moment.",
        _SECONDS,
        _is_positive,
    ),
    "backoff_max": Setting(
        ERROR_CAP,
        "The longest wait in seconds between two retries.",
        "One pass every half minute costs a server nothing, and an object recovers within half a minute after the "
        "cause is gone.",
        _SECONDS,
        _is_positive,
    ),
    "brake_after": Setting(
        BRAKE_AFTER,
        "After how many passes in a row that rewrite the same field an object is in a write loop, and delayed. inf "
        "disables the brake.",
        "An object is done after two or three passes. Twenty are no coincidence, and take less than a second.",
        "a whole number of at least 2, or inf for no brake",
        lambda value: value == math.inf or (isinstance(value, int) and value >= 2),
    ),
    "brake_base": Setting(
        BRAKE_BASE,
        "Seconds between the passes over an object in a write loop. The wait doubles with each pass. Passes that are "
        "further apart are not a loop.",
        "Every kubelet writes its Lease every ten seconds, so a cluster bears one more writer like that.",
        _SECONDS,
        _is_positive,
    ),
    "brake_max": Setting(
        BRAKE_MAX,
        "The longest wait in seconds between the passes over an object in a write loop.",
        "One pass per minute costs a server nothing, and another change of the object is seen within a minute.",
        _SECONDS,
        _is_positive,
    ),
}
"""The settings of each controller."""

RUN_SETTINGS: dict[str, Setting] = {
    "request_timeout": Setting(
        REQUEST_TIMEOUT,
        "Seconds after which a request to the server fails.",
        "Half of the server's own limit, so that the client gives up first. The requests of a Lease have shorter "
        "limits of their own, and a watch has none.",
        _SECONDS,
        _is_positive,
    ),
    "shutdown_timeout": Setting(
        SHUTDOWN_TIMEOUT,
        "Seconds after which the process has ended, counted from SIGTERM or Ctrl-C.",
        "A pod has 30 seconds by default, then the kubelet kills it without a word. The passes that have started get "
        "55 % of the time. The rest is for the lease, Events and shutdown hooks.",
        _SECONDS,
        _is_positive,
    ),
}
"""The settings of a whole run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The settings of one controller in one run. `SETTINGS` explains each."""

    concurrency: int = CONCURRENCY
    rate_limit: float = RATE_LIMIT
    resync: float = RESYNC
    timeout: float = TIMEOUT
    backoff_base: float = ERROR_BASE
    backoff_max: float = ERROR_CAP
    brake_after: float = BRAKE_AFTER
    brake_base: float = BRAKE_BASE
    brake_max: float = BRAKE_MAX


def find_problem(name: str, value: object) -> str | None:
    """Return what is wrong with the value of that setting, in one sentence with the remedy; None if it is valid."""
    setting = SETTINGS.get(name) or RUN_SETTINGS[name]
    if isinstance(value, int | float) and not isinstance(value, bool) and setting.is_valid(value):
        return None
    return f"{name} is {setting.rule}; got {value!r}"


def check_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not None. Raises ValueError if one is not valid, or if two contradict each other."""
    values = {name: value for name, value in values.items() if value is not None}
    for name, value in values.items():
        if problem := find_problem(name, value):
            raise ValueError(problem)
    for name in ("backoff", "brake"):
        base, maximum = values.get(f"{name}_base"), values.get(f"{name}_max")
        if base is not None and maximum is not None and base > maximum:
            raise ValueError(f"{name}_base ({base:g}) is greater than {name}_max ({maximum:g}): raise {name}_max")
    return values


def resolve(
    declared: Mapping[str, Mapping[str, Any]], operator: Mapping[str, Any], overrides: Mapping[str, Mapping[str, Any]]
) -> dict[str, Tuning]:
    """Return the settings of each controller, from those that it declares, by its name.

    The first of these that sets a value decides: the override of this controller, its declaration, the override of all
    controllers (name ""), the operator. Raises DeclarationError if an override names something that does not exist, or
    if the result is not valid.
    """
    for controller, values in overrides.items():
        if controller and controller not in declared:
            known = ", ".join(sorted(declared)) or "none: the operator has no controllers"
            raise DeclarationError(f"there is no controller {controller!r}; the controllers are {known}")
        for name in values.keys() - SETTINGS.keys():
            raise DeclarationError(f"there is no setting {name!r}: use one of {', '.join(SETTINGS)}")
    tunings = {}
    for controller, settings in declared.items():
        values = {**operator, **overrides.get("", {}), **settings, **overrides.get(controller, {})}
        try:
            tunings[controller] = Tuning(**check_settings(values))
        except ValueError as error:
            raise DeclarationError(f"controller {controller}: {error}") from None
    return tunings
