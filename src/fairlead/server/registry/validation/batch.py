"""Jobs and CronJobs."""

from typing import Any, Final

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.registry.validation import schedules
from fairlead.server.registry.validation.jobpolicies import INDEXED, failing, succeeding
from fairlead.server.registry.validation.pods import pod_template
from fairlead.server.registry.validation.rules import at_least, checks, choice, fixed, inside, joined, needed, value
from fairlead.server.registry.validation.vocabulary import IMMUTABLE, Object, at, domain_path, selector, selects

_MODES: Final = ("NonIndexed", "Indexed")
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_SCHEDULING: Final = frozenset({"nodeSelector", "tolerations", "schedulingGates"})
_MOST_INDEXED: Final = 100_000
_MOST_OF_MANY: Final = 10_000  # where there are more indexes than that
_LONGEST_NAME: Final = 63
_LONGEST_CRON: Final = 52  # a Job's name is the CronJob's and eleven letters


def job(new: Object, old: Object | None) -> list[FieldError]:
    """On update the spec is told of twice, as a real server does."""
    found = _generated(new) + _whole(new, old, "spec")
    if old is not None:
        found += _whole(new, old, "spec") + _kept(new, old)
    return found


def _generated(new: Object) -> list[FieldError]:
    """The selector and labels that a Job is given by its uid stay."""
    spec, metadata = new["spec"], new["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    uid, name = metadata.get("uid") or "", metadata.get("name") or ""
    wanted = {
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    }
    labels = at(spec, "template.metadata.labels") or {}
    found = []
    for key, text in wanted.items():
        field = "spec.template.metadata.labels"
        if key not in labels:
            found.append(field_errors.required(f"{field}[{key}]", f"must be '{text}'"))
        elif labels[key] != text:
            found.append(field_errors.invalid(f"{field}[{key}]", labels, f"must be '{text}'"))
    if not selector("spec.selector", spec["selector"]) and not selects(spec["selector"], wanted):
        found.append(field_errors.invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return found


def _whole(new: Object, old: Object | None, path: str) -> list[FieldError]:
    spec = at(new, path) or {}
    found = _spec(spec, old, path)
    chosen, labels = spec.get("selector"), at(spec, "template.metadata.labels")
    wrong = selector(f"{path}.selector", chosen)
    found += wrong if chosen is not None else [field_errors.required(f"{path}.selector")]
    everything = chosen is not None and not any(chosen.values())
    if not wrong and not everything and not selects(chosen, labels or {}):
        told = "`selector` does not match template `labels`"
        found.append(field_errors.invalid(f"{path}.template.metadata.labels", labels, told))
    return found


def _completion(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    mode, most = spec.get("completionMode"), spec.get("maxFailedIndexes")
    if mode != "Indexed":
        keys = ("backoffLimitPerIndex", "maxFailedIndexes") if mode in (None, "NonIndexed") else ()
        return [
            field_errors.invalid(joined(path, key), spec[key], INDEXED) for key in keys if spec.get(key) is not None
        ]
    found = []
    if spec.get("completions") is None:
        found.append(field_errors.required(f"{path}.completions", "when completion mode is Indexed"))
    if (spec.get("parallelism") or 0) > _MOST_INDEXED:
        told = f"must be less than or equal to {_MOST_INDEXED} when completion mode is Indexed"
        found.append(field_errors.invalid(f"{path}.parallelism", spec["parallelism"], told))
    if most is not None and spec.get("completions") is not None and most > spec["completions"]:
        found.append(
            field_errors.invalid(f"{path}.maxFailedIndexes", most, "must be less than or equal to completions")
        )
    if most is not None and most > _MOST_INDEXED:
        told = f"must be less than or equal to {_MOST_INDEXED}"
        found.append(field_errors.invalid(f"{path}.maxFailedIndexes", most, told))
    return found + _many(spec, path)


def _many(spec: Object, path: str) -> list[FieldError]:
    """Of very many indexes that may each fail, fewer run and fail at once."""
    if (spec.get("completions") or 0) <= _MOST_INDEXED or spec.get("backoffLimitPerIndex") is None:
        return []
    found: list[FieldError] = []
    if spec.get("maxFailedIndexes") is None:
        told = f"must be specified when completions is above {_MOST_INDEXED}"
        found.append(field_errors.required(f"{path}.maxFailedIndexes", told))
    told = f"must be less than or equal to {_MOST_OF_MANY} when completions are above {_MOST_INDEXED} and used with "
    over = [key for key in ("parallelism", "maxFailedIndexes") if (spec.get(key) or 0) > _MOST_OF_MANY]
    return found + [field_errors.invalid(f"{path}.{key}", spec[key], f"{told}backoff limit per index") for key in over]


def _replacement(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    allowed = _REPLACEMENTS[:1] if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
    return choice("podReplacementPolicy", allowed)(spec, old, path)


def _template(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    pod = at(spec, "template.spec") or {}
    found = pod_template(spec.get("template") or {}, f"{path}.template")
    policy, field = pod.get("restartPolicy"), f"{path}.template.spec.restartPolicy"
    if policy in (None, "", "Always"):
        found.append(field_errors.required(field, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        found.append(field_errors.not_supported(field, policy, ("OnFailure", "Never")))
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        told = 'only "Never" is supported when podFailurePolicy is specified'
        found.append(field_errors.invalid(field, policy, told))
    return found


def _limit_without_backoff(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    if spec.get("maxFailedIndexes") is None or spec.get("backoffLimitPerIndex") is not None:
        return []
    return [field_errors.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")]


def _managed(field: str, text: str) -> list[FieldError]:
    return domain_path(field, text) + (
        [field_errors.too_long(field, _LONGEST_NAME)] if len(text) > _LONGEST_NAME else []
    )


_NUMBERS: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_RULES: Final = (
    at_least(0, *_NUMBERS),
    _limit_without_backoff,
    value("managedBy", _managed),
    choice("completionMode", _MODES),
    _completion,
    failing,
    succeeding,
    _replacement,
    _template,
)


def _spec(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    return [cause for rule in _RULES for cause in rule(spec, None, path)]


def _kept(new: Object, old: Object) -> list[FieldError]:
    """What of a Job's spec no update changes."""
    spec, was = new["spec"], old["spec"]
    found: list[FieldError] = []
    if spec.get("completionMode") != "Indexed":
        found += fixed("spec.completions")(new, old, "")
    elif spec.get("completions") not in (None, was.get("completions"), spec.get("parallelism")):
        told = "can only be modified in tandem with spec.parallelism"
        found.append(field_errors.invalid("spec.completions", spec["completions"], told))
    found += fixed("spec.selector")(new, old, "")
    found += _template_kept(spec.get("template") or {}, was.get("template") or {}, old)
    rest = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
    return found + fixed(*(f"spec.{key}" for key in rest))(new, old, "")


def _template_kept(template: Object, was: Object, old: Object) -> list[FieldError]:
    """While a Job is suspended and no Pod of it runs, where its Pods will run and what they get is free."""
    status = old.get("status") or {}
    held = [c.get("status") for c in status.get("conditions") or () if c.get("type") == "Suspended"]
    stopped = not status.get("startTime") or "True" in held
    if not (old["spec"].get("suspend") and stopped and not status.get("active")):
        return [] if template == was else [field_errors.invalid("spec.template", template, IMMUTABLE)]
    spec, before = template.get("spec") or {}, was.get("spec") or {}
    if _fixed_part(spec, before) == _fixed_part(before, before):
        return []
    return [field_errors.invalid("spec.template.spec", spec, IMMUTABLE)]


def _fixed_part(spec: Object, was: Object) -> Object:
    """A Pod's spec without what is free: the resources of containers that kept their place, and scheduling."""
    kept = {key: given for key, given in spec.items() if key not in _SCHEDULING}
    kept["affinity"] = {key: given for key, given in (spec.get("affinity") or {}).items() if key != "nodeAffinity"}
    for key in ("containers", "initContainers"):
        given, before = spec.get(key) or [], was.get(key) or []
        if len(given) == len(before):
            paired = zip(given, before, strict=True)
            kept[key] = [{**new, "resources": None} if new["name"] == old["name"] else new for new, old in paired]
    return kept


def _schedule(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    text, field = spec.get("schedule") or "", f"{path}.schedule"
    if not text:
        return []
    found = [field_errors.invalid(field, text, wrong)] if (wrong := schedules.wrong(text)) else []
    zoned = "TZ" in ((old or {}).get("schedule") or "")
    if "TZ" in text and not zoned:
        told = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        found.append(field_errors.invalid(field, text, told))
    elif "TZ" in text and spec.get("timeZone") is not None:
        told = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        found.append(field_errors.invalid(field, text, told))
    return found


def _zone(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    zone: Any = spec.get("timeZone")
    if zone is None or (old is not None and old.get("timeZone") == zone):
        return []
    return [field_errors.invalid(f"{path}.timeZone", zone, wrong)] if (wrong := schedules.wrong_zone(zone)) else []


def _generated_selector(spec: Object, old: Object | None, path: str) -> list[FieldError]:
    found = []
    if spec.get("selector") is not None:
        found.append(field_errors.invalid(f"{path}.selector", spec["selector"], "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        found.append(field_errors.not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    return found


def _short_name(new: Object, old: Object | None, path: str) -> list[FieldError]:
    name = new["metadata"].get("name") or ""
    if old is not None or len(name) <= _LONGEST_CRON:
        return []
    return [field_errors.invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON} characters")]


cron_job: Final = checks(
    inside(
        "spec",
        needed("schedule"),
        _schedule,
        at_least(0, "startingDeadlineSeconds"),
        _zone,
        choice("concurrencyPolicy", ("Allow", "Forbid", "Replace"), always=True),
        inside("jobTemplate.spec", _spec, _generated_selector, always=True),
        at_least(0, "successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
        always=True,
    ),
    _short_name,
)
