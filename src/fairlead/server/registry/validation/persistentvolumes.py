"""PersistentVolumes."""

from typing import Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation.paths import without_backsteps
from fairlead.server.registry.validation.placing import node_selector
from fairlead.server.registry.validation.rules import (
    checks,
    choice,
    fixed,
    inside,
    joined,
    needed,
    on_update,
    value,
    words,
)
from fairlead.server.registry.validation.storage import MODES, POSITIVE, accessed
from fairlead.server.registry.validation.vocabulary import IMMUTABLE, Object
from fairlead.server.registry.validation.volumes import NAMED, SOURCES, driver_name
from fairlead.server.schema import quantity
from fairlead.server.write import names

_ELSEWHERE: Final = frozenset(  # what of a volume's spec is not its source
    {
        "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
        "volumeMode", "nodeAffinity", "volumeAttributesClassName",
    }
)  # fmt: skip


def _source(spec: Object) -> Object:
    return {key: given for key, given in spec.items() if key not in _ELSEWHERE and given is not None}


def _sources(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    sources = list(_source(spec))
    if not sources:
        return [field_errors.required(path, "must specify a volume type")]
    told = "may not specify more than 1 volume type"
    found = [field_errors.forbidden(joined(path, key), told) for key in sources[1:]]
    source = sources[0]
    rules = _SOURCES.get(source) or SOURCES.get(source, ())
    found += [c for rule in rules for c in rule(spec[source] or {}, None, f"{path}.{NAMED.get(source, source)}")]
    if source == "local" and spec.get("nodeAffinity") is None:
        found.append(field_errors.required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    return found


def _capacity(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    given, field = spec.get("capacity"), f"{path}.capacity"
    found = [] if given else [field_errors.required(field)]
    if list(given or ()) != ["storage"]:
        found.append(field_errors.not_supported(field, given, ("storage",)))
    return found + [
        field_errors.invalid(f"{field}[{name}]", amount, POSITIVE)
        for name, amount in (given or {}).items()
        if quantity.parse(amount)[0] <= 0
    ]


def _source_kept(new: Object, old: Object | None, path: str) -> list[FieldError]:
    assert old is not None
    told = "spec.persistentvolumesource is immutable after creation"
    same = _source(new.get("spec") or {}) == _source(old.get("spec") or {})
    return [] if same else [field_errors.forbidden("spec.persistentvolumesource", told)]


def _placed(given: Object, old: Object | None, path: str) -> list[FieldError]:
    """Which nodes reach a volume."""
    if given.get("required") is None:
        return [field_errors.required(f"{path}.required", "must specify required node constraints")]
    return node_selector(given["required"], None, f"{path}.required")


def _driven(given: Object, old: Object | None, path: str) -> list[FieldError]:
    found = driver_name(f"{path}.driver", given.get("driver") or "") + needed("volumeHandle")(given, None, path)
    secrets = ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand")
    return found + [c for key in secrets for c in inside(f"{key}SecretRef", *_SECRET)(given, None, path)]


_SECRET: Final = (needed("name", "namespace"),)
_SOURCES: Final = {  # those that a Pod's volume has not, or has otherwise
    "csi": (_driven,),
    "local": (needed("path"), value("path", without_backsteps)),
}


def _nodes_kept(new: Object, old: Object | None, path: str) -> list[FieldError]:
    before = ((old or {}).get("spec") or {}).get("nodeAffinity")
    given = (new.get("spec") or {}).get("nodeAffinity")
    told = f"{IMMUTABLE}, except for updating from beta label to GA"
    return [] if before is None or given == before else [field_errors.invalid("nodeAffinity", given, told)]


_VOLUME: Final = inside(
    "spec",
    needed("accessModes"),
    accessed,
    _capacity,
    choice("persistentVolumeReclaimPolicy", ("Delete", "Recycle", "Retain")),
    inside("nodeAffinity", _placed),
    _sources,
    words("storageClassName", names.subdomain),
    choice("volumeMode", MODES),
    always=True,
)
# an update is told twice what is wrong, as a real server checks it twice
volume: Final = checks(
    _VOLUME,
    on_update(_VOLUME, _source_kept, fixed("spec.volumeMode", named="volumeMode"), _nodes_kept),
)
