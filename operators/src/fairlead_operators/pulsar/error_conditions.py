"""Convert errors of Pulsar to conditions that name the fix, and to retries with a growing delay."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import fairlead as fl
from fairlead_operators.pulsar.admin import NotPulsarError, PulsarError
from fairlead_operators.pulsar.kinds import Connection
from fairlead_operators.pulsar.resources import Invalid

# Most outages last minutes. The delay grows from MIN_RETRY to MAX_RETRY seconds: many objects may be waiting, and a
# broker is busy when it starts again.
MIN_RETRY = 30.0
# Also the delay for errors that a user has to fix first. A change of the object triggers a reconcile without a delay.
MAX_RETRY = 300.0


@contextmanager
def report_errors(obj: fl.Object, connection: fl.Object, ctx: fl.Context) -> Iterator[None]:
    """Convert errors of the `with` block to a condition that names the fix, and to a later retry."""
    try:
        yield
    except Invalid as error:
        raise fl.Terminal("Invalid", str(error)) from error
    except PulsarError as error:
        reason, remedy, delay = _remedy(error.status, obj.deleting)
        message = f"Pulsar returned: {error}. {remedy.format(name=connection.name)}{deletion_hint(obj)}"
        raise fl.Wait(reason, message, after=retry_delay(obj, ctx, delay)) from error
    except NotPulsarError as error:
        raise fl.Wait(
            "NotPulsar",
            f"this is not Pulsar's admin API ({error}): check the address in PulsarConnection {connection.name}"
            f"{deletion_hint(obj)}",
            after=retry_delay(obj, ctx, MIN_RETRY),
        ) from error
    except OSError as error:
        raise fl.Wait(
            "Unreachable",
            f"cannot reach Pulsar ({error}): check the address in PulsarConnection {connection.name}, and that"
            f" Pulsar is up{deletion_hint(obj)}",
            after=retry_delay(obj, ctx, MIN_RETRY),
        ) from error


def deletion_hint(obj: fl.Object) -> str:
    """Return a text for a condition that says how to delete the object without Pulsar, or "" if it is not deleted."""
    if not obj.deleting or obj.kind == Connection.kind:
        return ""
    return "; or set spec.lifecyclePolicy to KeepAfterDeletion to delete only this object and keep the data in Pulsar"


def retry_delay(obj: fl.Object, ctx: fl.Context, minimum: float) -> float:
    """Return the seconds until the next retry: as long as the object has not been Ready, within limits.

    The delay doubles with each retry, also across restarts of the operator.
    """
    ready_condition = obj.condition("Ready") or {}
    if ready_condition.get("status") != "False":
        return minimum
    since = datetime.fromisoformat(ready_condition["lastTransitionTime"]).timestamp()
    return min(MAX_RETRY, max(minimum, ctx.world.clock.now() - since))


def _remedy(status: int, is_deleting: bool) -> tuple[str, str, float]:
    match status:
        case 301 | 302 | 307 | 308:
            return (
                "Redirected",
                "Set the address of PulsarConnection {name} to Pulsar's proxy instead of a broker",
                MAX_RETRY,
            )
        case 401 | 403:
            return "Forbidden", "Check the token of PulsarConnection {name} and its permissions", MAX_RETRY
        case 404:
            return "Missing", "Create the tenant, namespace or cluster that it belongs to", MIN_RETRY
        case 409:
            return "InUse", "Delete its contents first", MIN_RETRY
        case 412 if is_deleting:
            return "InUse", "Stop the producers and consumers that use it", MIN_RETRY
        case _ if status >= 500:
            return "Failing", "Check the log of the broker", MIN_RETRY
        case _:
            return "Rejected", "Change the spec", MAX_RETRY
