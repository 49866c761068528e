"""What goes wrong with Pulsar, as a condition that says what to do and a look that comes later and later."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import fairlead as fl
from fairlead_operators.pulsar.admin import NotPulsar, Refused
from fairlead_operators.pulsar.resources import Connection, Invalid

# An outage is over within minutes as a rule. As long as it lasts we look ever less often, from the first to the second:
# many objects may be waiting, and a broker that comes up again has enough to do.
SOON = 30.0
# Also for what somebody has to put right first; what they do to our own objects wakes us at once.
LATER = 300.0


@contextmanager
def explained(obj: fl.Object, connection: fl.Object, ctx: fl.Context) -> Iterator[None]:
    """What goes wrong with Pulsar, as a condition that says what to do, and a look later: never a hot retry."""
    try:
        yield
    except Invalid as error:
        raise fl.Terminal("Invalid", str(error)) from error
    except Refused as error:
        reason, remedy, least = _remedy(error.status, obj.deleting)
        said = f"Pulsar says: {error}. {remedy.format(name=connection.name)}{way_out(obj)}"
        raise fl.Wait(reason, said, after=backed_off(obj, ctx, least)) from error
    except NotPulsar as error:
        raise fl.Wait(
            "NotPulsar",
            f"this is not Pulsar's admin API ({error}): check the address in PulsarConnection {connection.name}"
            f"{way_out(obj)}",
            after=backed_off(obj, ctx, SOON),
        ) from error
    except OSError as error:
        raise fl.Wait(
            "Unreachable",
            f"cannot reach Pulsar ({error}): check the address in PulsarConnection {connection.name}, and that"
            f" Pulsar is up{way_out(obj)}",
            after=backed_off(obj, ctx, SOON),
        ) from error


def way_out(obj: fl.Object) -> str:
    """What somebody can do who wants the object gone, whatever Pulsar says."""
    if not obj.deleting or obj.kind == Connection.kind:
        return ""
    return "; or set spec.lifecyclePolicy to KeepAfterDeletion, to let this object go and leave in Pulsar what is there"


def backed_off(obj: fl.Object, ctx: fl.Context, least: float) -> float:
    """As long again as the object has not been Ready already, within bounds: the time doubles, also over a restart."""
    ready = obj.condition("Ready") or {}
    if ready.get("status") != "False":
        return least
    since = datetime.fromisoformat(ready["lastTransitionTime"]).timestamp()
    return min(LATER, max(least, ctx.world.clock.now() - since))


def _remedy(status: int, deleting: bool) -> tuple[str, str, float]:
    match status:
        case 301 | 302 | 307 | 308:
            return "Redirected", "Let PulsarConnection {name} point at Pulsar's proxy, not at one of its brokers", LATER
        case 401 | 403:
            return "Forbidden", "Check the token of PulsarConnection {name}, and what it may do", LATER
        case 404:
            return "Missing", "Create what this is in, or wait until it is there", SOON
        case 409:
            return "InUse", "Remove what is still in it", SOON
        case 412 if deleting:
            return "InUse", "Stop what still uses it", SOON
        case _ if status >= 500:
            return "Failing", "See the broker's log", SOON
        case _:
            return "Refused", "Change the spec accordingly", LATER
