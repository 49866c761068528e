"""Validation of Jobs and CronJobs."""

from typing import Final

from fairlead.server.registry.validation import cron
from fairlead.server.registry.validation.job_policies import NEEDS_INDEXED, check_success_policy, failure_policy
from fairlead.server.registry.validation.pods import check_pod_template
from fairlead.server.registry.validation.rules import (
    IMMUTABLE,
    SET,
    UNSET,
    Errors,
    Object,
    Scope,
    build_validator,
    field,
    inside,
    on_create,
    on_update,
    when,
)
from fairlead.server.registry.validation.selectors import check_label_selector, selects

_LABELS: Final = "template.metadata.labels"
_SCHEDULING: Final = frozenset({"nodeSelector", "tolerations", "schedulingGates"})
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_RESTARTS: Final = ("OnFailure", "Never")
_MAX_INDEXES: Final = 100_000
_MAX_OF_MANY_INDEXES: Final = 10_000  # if a Job has more than _MAX_INDEXES completions
_MAX_MANAGER_LENGTH: Final = 63
_MAX_CRON_JOB_NAME: Final = 52  # a CronJob names its Jobs after itself and adds eleven characters
_SELECTOR: Final = check_label_selector("selector")


def _check_generated_selector(job: Scope) -> Errors:
    """Require the labels and the selector that the server generates from the uid of a Job."""
    spec = job.inside("spec")
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    uid, name = job.text("metadata.uid"), job.text("metadata.name")
    generated = {
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    }
    labels = spec.map(_LABELS)
    for key, value in generated.items():
        if key not in labels:
            yield spec.required(f"{_LABELS}[{key}]", f"must be '{value}'")
        elif labels[key] != value:
            yield spec.invalid(f"{_LABELS}[{key}]", f"must be '{value}'", labels)
    if not _SELECTOR(spec) and not selects(spec.get("selector"), generated):
        yield spec.invalid("selector", "`selector` not auto-generated")


def _check_selector(spec: Scope) -> Errors:
    selector, errors = spec.get("selector"), _SELECTOR(spec)
    if selector is None:
        yield spec.required("selector")
    yield from errors
    is_empty = selector is not None and not any(selector.values())
    if not errors and not is_empty and not selects(selector, spec.map(_LABELS)):
        yield spec.invalid(_LABELS, "`selector` does not match template `labels`")


def _check_not_indexed(spec: Scope) -> Errors:
    for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(key) is not None:
            yield spec.invalid(key, NEEDS_INDEXED)


def _check_many_indexes(spec: Scope) -> Errors:
    """Require smaller limits for parallelism and failed indexes if an indexed Job has very many completions."""
    if spec.number("completions") <= _MAX_INDEXES or spec.get("backoffLimitPerIndex") is None:
        return
    if spec.get("maxFailedIndexes") is None:
        yield spec.required("maxFailedIndexes", f"must be specified when completions is above {_MAX_INDEXES}")
    for key in ("parallelism", "maxFailedIndexes"):
        if spec.number(key) > _MAX_OF_MANY_INDEXES:
            limit = f"must be less than or equal to {_MAX_OF_MANY_INDEXES} when completions are above {_MAX_INDEXES}"
            yield spec.invalid(key, f"{limit} and used with backoff limit per index")


_INDEXED: Final = (
    field("completions").required(detail="when completion mode is Indexed", allow_empty=True),
    field("parallelism").at_most(
        _MAX_INDEXES, f"must be less than or equal to {_MAX_INDEXES} when completion mode is Indexed"
    ),
    when(
        {"maxFailedIndexes": SET, "completions": SET},
        field("maxFailedIndexes").invalid_if(
            lambda spec: spec.get("maxFailedIndexes") > spec.get("completions"),
            "must be less than or equal to completions",
        ),
    ),
    field("maxFailedIndexes").at_most(_MAX_INDEXES),
    _check_many_indexes,
)


def _check_restart_policy(spec: Scope) -> Errors:
    key, policy = "template.spec.restartPolicy", spec.text("template.spec.restartPolicy")
    if policy in ("", "Always"):
        yield spec.required(key, 'valid values: "OnFailure", "Never"')
    elif policy not in _RESTARTS:
        yield spec.not_supported(key, _RESTARTS)
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        yield spec.invalid(key, 'only "Never" is supported when podFailurePolicy is specified')


_SPEC: Final = (
    field("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished").at_least(0),
    field("backoffLimitPerIndex", "maxFailedIndexes").at_least(0),
    when(
        {"maxFailedIndexes": SET},
        field("backoffLimitPerIndex").required(detail="when maxFailedIndexes is specified", allow_empty=True),
    ),
    when({"managedBy": SET}, field("managedBy").domain_prefixed_path().max_length(_MAX_MANAGER_LENGTH)),
    field("completionMode").enum("NonIndexed", "Indexed"),
    when({"completionMode": (None, "NonIndexed")}, _check_not_indexed),
    when({"completionMode": "Indexed"}, *_INDEXED),
    failure_policy,
    check_success_policy,
    when({"podFailurePolicy": SET}, field("podReplacementPolicy").enum(*_REPLACEMENTS[:1])),
    when({"podFailurePolicy": UNSET}, field("podReplacementPolicy").enum(*_REPLACEMENTS)),
    inside("template", check_pod_template, always=True),
    _check_restart_policy,
)


def _check_immutable_completions(job: Scope) -> Errors:
    """Reject a change of the completions. An indexed Job may change them together with its parallelism."""
    spec = job.inside("spec")
    assert spec.old is not None
    if spec.get("completionMode") != "Indexed":
        yield from field("completions").immutable()(spec)
    elif spec.get("completions") not in (None, spec.old_value("completions"), spec.get("parallelism")):
        yield spec.invalid("completions", "can only be modified in tandem with spec.parallelism")


def _check_immutable_template(job: Scope) -> Errors:
    """Reject a change of the Pod template. A suspended Job without Pods may change scheduling and resources."""
    status, template = job.old_value("status") or {}, job.inside("spec").inside("template")
    suspended = [item.get("status") for item in status.get("conditions") or () if item.get("type") == "Suspended"]
    has_stopped = not status.get("startTime") or "True" in suspended
    if not (job.old_value("spec.suspend") and has_stopped and not status.get("active")):
        if template.value != template.old:
            yield template.invalid("", IMMUTABLE)
        return
    spec = template.inside("spec")
    old = spec.old or {}
    if _drop_mutable_fields(spec.value, old) != _drop_mutable_fields(old, old):
        yield spec.invalid("", IMMUTABLE)


def _drop_mutable_fields(spec: Object, old: Object) -> Object:
    """Return a Pod spec without the fields that a suspended Job may change.

    These are the scheduling fields, and the resources of containers that kept their position and name.
    """
    immutable_spec = {key: value for key, value in spec.items() if key not in _SCHEDULING}
    immutable_spec["affinity"] = {
        key: value for key, value in (spec.get("affinity") or {}).items() if key != "nodeAffinity"
    }
    for key in ("containers", "initContainers"):
        containers, old_containers = spec.get(key) or [], old.get(key) or []
        if len(containers) == len(old_containers):
            immutable_spec[key] = [
                {**new, "resources": None} if new["name"] == before["name"] else new
                for new, before in zip(containers, old_containers, strict=True)
            ]
    return immutable_spec


_JOB: Final = inside("spec", *_SPEC, _check_selector, always=True)
job: Final = build_validator(
    _check_generated_selector,
    _JOB,
    on_update(  # a real server checks the spec twice, and reports its errors twice
        _JOB,
        _check_immutable_completions,
        field("spec.selector").immutable(),
        _check_immutable_template,
        field(
            "spec.completionMode",
            "spec.podFailurePolicy",
            "spec.backoffLimitPerIndex",
            "spec.managedBy",
            "spec.successPolicy",
        ).immutable(),
    ),
)


def _check_schedule(spec: Scope) -> Errors:
    schedule = spec.text("schedule")
    if not schedule:
        yield spec.required("schedule")
        return
    if problem := cron.find_schedule_problem(schedule):
        yield spec.invalid("schedule", problem)
    if "TZ" not in schedule:
        return
    if "TZ" not in (spec.old_value("schedule") or ""):
        yield spec.invalid("schedule", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif spec.get("timeZone") is not None:
        yield spec.invalid("schedule", "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def _check_time_zone(spec: Scope) -> Errors:
    zone = spec.get("timeZone")
    if zone is None or (spec.old is not None and spec.old_value("timeZone") == zone):
        return
    if problem := cron.find_time_zone_problem(zone):
        yield spec.invalid("timeZone", problem)


def _check_no_selector(spec: Scope) -> Errors:
    if spec.get("selector") is not None:
        yield spec.invalid("selector", "`selector` will be auto-generated")
    if spec.get("manualSelector"):
        yield spec.not_supported("manualSelector", ("nil", "false"))


cron_job: Final = build_validator(
    inside(
        "spec",
        _check_schedule,
        field("startingDeadlineSeconds").at_least(0),
        _check_time_zone,
        field("concurrencyPolicy").enum("Allow", "Forbid", "Replace", always=True),
        inside("jobTemplate.spec", *_SPEC, _check_no_selector, always=True),
        field("successfulJobsHistoryLimit", "failedJobsHistoryLimit").at_least(0),
        always=True,
    ),
    on_create(
        field("metadata.name").invalid_if(
            lambda job: len(job.text("metadata.name")) > _MAX_CRON_JOB_NAME,
            f"must be no more than {_MAX_CRON_JOB_NAME} characters",
        )
    ),
)
