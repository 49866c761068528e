"""Nodes: taints, ranges of their Pods' addresses, what they hold."""

import ipaddress
from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.rules import Rule, checks, inside, on_update
from fairlead.server.registry.validation.vocabulary import Object, block, go_shape, qualified
from fairlead.server.schema import quantity
from fairlead.server.write import names

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_HELD: Final = ("capacity", "allocatable")
_NEGATIVE: Final = "must be greater than or equal to 0"
_FAMILIES: Final = "may specify no more than one CIDR for each IP family"


def _taints(new: Object, old: Object | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate((new.get("spec") or {}).get("taints") or ()):
        here = f"metadata.taints[{index}]"  # as a real server has it
        key, text, effect = (taint.get(part) or "" for part in ("key", "value", "effect"))
        found += qualified(f"{here}.key", key)
        if told := names.label_value(text):
            found.append(field_errors.invalid(f"{here}.value", text, ";".join(told)))
        if effect not in _EFFECTS:
            wrong = field_errors.not_supported(f"{here}.effect", effect, _EFFECTS)
            found.append(wrong if effect else field_errors.required(f"{here}.effect"))
        if (key, effect) in seen:
            shown = go_shape({"Key": key, "Value": text, "Effect": effect, "TimeAdded": taint.get("timeAdded")})
            told_of = f"Duplicate value: {shown}: taints must be unique by key and effect pair"
            found.append(FieldError("FieldValueDuplicate", here, told_of))
        seen.add((key, effect))
    return found * 2 if old is not None else found  # a real server looks twice then


def _amounts(new: Object, old: Object | None, path: str) -> list[FieldError]:
    given = [(f"{path}.{key}.{name}", text) for key in _HELD for name, text in (new.get(key) or {}).items()]
    return [field_errors.invalid(field, text, _NEGATIVE) for field, text in given if quantity.parse(text)[0] < 0]


def _blocks(new: Object, old: Object | None, path: str) -> list[FieldError]:
    given = new.get("podCIDRs") or []
    found = [cause for index, text in enumerate(given) for cause in block(f"{path}.podCIDRs[{index}]", text)]
    if len(given) > 1 and (found or len({ipaddress.ip_network(text).version for text in given}) < 2 or len(given) > 2):
        found.append(field_errors.invalid(f"{path}.podCIDRs", given, _FAMILIES))
    return found


def _kept(key: str, named: str) -> Rule:
    told = f'node updates may not change {named} except from "" to valid'
    return lambda new, old, path: (
        [field_errors.forbidden(f"{path}.{key}", told)] if old and old.get(key) and old[key] != new.get(key) else []
    )


node = checks(
    _taints,
    inside("status", _amounts),
    inside("spec", _blocks, on_update(_kept("podCIDRs", "podCIDR"), _kept("providerID", "providerID")), always=True),
)
