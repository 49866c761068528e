"""The delete and deletecollection handlers: preconditions, propagation, finalizers, grace period."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlead.api.gojson import quote_go
from fairlead.api.times import parse, rfc3339
from fairlead.server.admission.plugin import DELETE, AdmissionAttributes
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import StatusError, bad_request, conflict, not_found
from fairlead.server.golang import encoding
from fairlead.server.http import bodies, negotiation
from fairlead.server.http.messages import Request, Response
from fairlead.server.http.options import invalid_options, parse_boolean, validate_dry_run
from fairlead.server.http.routing import Route
from fairlead.server.registry.resource import Object, Resource
from fairlead.server.schema import builtin, codec
from fairlead.server.schema.metadata_validation import FOREGROUND, ORPHAN
from fairlead.server.storage import versions
from fairlead.server.storage.stored import Stored
from fairlead.server.verbs import deletion_rules, lists
from fairlead.server.write.change_detection import must_rewrite

if TYPE_CHECKING:
    from fairlead.server.app import Server

POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a DELETE. An option that is not set is None."""

    grace: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str | None = None
    orphans_dependents: bool | None = None
    dry_run: bool = False


def read_options(request: Request) -> DeleteOptions:
    """Return the options of a DELETE, from its body or, if it has none, from the query."""
    if request.body:
        fields = _decode_options(bodies.decode_plain(request, "v1", "DeleteOptions"))
        if request.audit is not None:  # A real server logs its internal version.
            request.audit.keep_request({**fields, "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"})
    else:
        fields = {key: request.first(key) for key in ("propagationPolicy",) if key in request.query}
        if request.first("gracePeriodSeconds"):
            fields["gracePeriodSeconds"] = _parse_integer(request.first("gracePeriodSeconds"))
        if "orphanDependents" in request.query:
            fields["orphanDependents"] = parse_boolean(request.first("orphanDependents"))
        fields["dryRun"] = request.query.get("dryRun", [])
        fields["preconditions"] = {key: request.first(key) for key in ("uid", "resourceVersion") if request.first(key)}
    errors = _validate_options(fields)
    if errors:
        raise invalid_options("DeleteOptions", errors)
    preconditions = fields.get("preconditions") or {}
    return DeleteOptions(
        grace=fields.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        propagation=fields.get("propagationPolicy") or None,
        orphans_dependents=fields.get("orphanDependents"),
        dry_run=bool(fields.get("dryRun")),
    )


def _decode_options(value: Any) -> dict[str, Any]:
    """Return a body as the fields of DeleteOptions. Raises 400 for another kind, or for a field of a wrong type."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(bodies.not_an_object(value))
    if problem := bodies.type_meta_error(value):
        raise bad_request(problem)
    kind = value.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        version = value.get("apiVersion") or "meta.k8s.io/v1"
        source_location = "pkg/apis/meta/internalversion/scheme/register.go:27"
        raise bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme "{source_location}"')
    try:
        return codec.decode(builtin.schema_of_type("meta.v1.DeleteOptions"), value).object
    except codec.DecodeError as error:
        raise bad_request(error.message) from None


def _parse_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise bad_request(f"strconv.ParseInt: parsing {quote_go(text)}: invalid syntax") from None


def _validate_options(fields: dict[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = fields.get("propagationPolicy")
    if policy is not None and fields.get("orphanDependents") is not None:
        message = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(field_errors.invalid("propagationPolicy", policy, message))
    if policy is not None and policy not in POLICIES:
        errors.append(field_errors.not_supported("propagationPolicy", policy, (*POLICIES, "nil")))
    return errors + validate_dry_run(fields.get("dryRun") or [])


def delete(server: "Server", request: Request, route: Route) -> Response:
    """Delete the object of the route and return the response."""
    resource = route.resource
    representation = negotiation.negotiate(request, resource, is_list=False)
    options = read_options(request)
    _warn_about_job_pods(request, resource, options)
    namespace = route.namespace if resource.namespaced else ""
    stored = server.table(resource).get(namespace, route.name)
    if stored is None:
        raise not_found(resource, route.name)
    if resource.converter is not None:
        request.remember("fresh", partial(versions.forget_view, resource, stored))
        versions.view(resource, stored)
    admit = partial(_admit_delete, server, request, route, options)
    result, was_removed = delete_object(server, resource, versions.expect_readable(resource, stored), options, admit)
    status = 202 if not was_removed and options.orphans_dependents is False else 200
    if was_removed and not resource.delete_returns_object:
        return Response(status, encoding.encode(success_status(resource, stored.object)), warnings=request.warnings)
    return representation.object_response(status, result, request.warnings)


def _warn_about_job_pods(request: Request, resource: Resource, options: DeleteOptions) -> None:
    """Warn that the Pods of a deleted Job stay, unless the request says what to do with them."""
    if (
        (resource.group, resource.kind) == ("batch", "Job")
        and options.propagation is None
        and options.orphans_dependents is None
    ):
        request.warn(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove "
            "them or set propagationPolicy=Orphan to suppress this warning"
        )


def success_status(resource: Resource, obj: Object) -> dict[str, Any]:
    """Return the Status that a delete of an object without finalizers responds with."""
    details = {"name": obj["metadata"]["name"], "kind": resource.plural, "uid": obj["metadata"]["uid"]}
    if resource.group:
        details["group"] = resource.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def delete_object(
    server: "Server",
    resource: Resource,
    stored: Stored,
    options: DeleteOptions,
    admit: Callable[[Stored], None] | None = None,
) -> tuple[Stored, bool]:
    """Delete an object, or mark it as being deleted. Return its last state, and whether it was removed.

    `admit` may raise StatusError to reject the delete.
    """
    _check_preconditions(resource, stored, options)
    metadata = dict(stored.object["metadata"])
    is_graceful = is_pending = False
    grace = deletion_rules.grace_period(resource, stored.object, options.grace)
    if grace is not None:
        is_graceful, is_pending = _begin_graceful(server, metadata, grace, options.grace)
    if is_pending:
        return stored, False
    if admit is not None:
        admit(stored)
    table = server.table(resource)
    if resource.is_definition and "deletionTimestamp" not in stored.object["metadata"]:
        marked_object = server.definitions.mark_for_deletion(stored.object)
        if options.dry_run:
            return Stored(marked_object, stored.version), False
        marked = server.store.put(table, marked_object)
        server.after_write(resource, stored, marked)
        return marked, False
    if resource.plural == "namespaces" and not resource.group:
        terminating = _terminate_namespace(server, resource, stored, options)
        if terminating is not None:
            return terminating, False
    finalizers = _compute_finalizers(server, resource, metadata.get("finalizers") or [], options)
    if finalizers:
        metadata["finalizers"] = finalizers
    elif metadata.pop("finalizers", None) and not is_graceful:
        if options.dry_run:
            return _build_type_only_object(resource), False
        if options.version:
            raise _build_lost_precondition_error(resource, stored)
    if finalizers and not is_graceful:
        _mark_deleted(server, metadata)
    if finalizers or is_graceful:
        # Like every write through another version than the storage version, this loses the fields unknown to that one.
        returned_object = versions.view(resource, stored).object if resource.custom else stored.object
        marked_object = versions.stored_form(resource, {**returned_object, "metadata": metadata})
        if not must_rewrite(resource, stored) and encoding.exactly_equal(marked_object, stored.object):
            marked = stored
        elif options.dry_run:
            marked = Stored(marked_object, stored.version)
        else:
            marked = server.store.put(table, marked_object)
            server.after_write(resource, stored, marked)
        if finalizers or metadata.get("deletionGracePeriodSeconds"):
            return marked, False
        if options.dry_run:
            return marked, True
        stored = marked
    if not options.dry_run:
        removed = server.store.delete(table, stored)
        server.after_write(resource, stored, removed, is_deleted=True)
        return removed, True
    return stored, True


def _admit_delete(server: "Server", request: Request, route: Route, options: DeleteOptions, stored: Stored) -> None:
    """Raise StatusError if an admission plugin rejects the delete. The name is empty for a deletecollection."""
    resource, old = route.resource, versions.view(route.resource, stored).object
    namespace = old["metadata"].get("namespace", "")
    if resource is server.namespace_resource:
        namespace = old["metadata"]["name"]
    attributes = AdmissionAttributes(DELETE, resource, "", namespace, route.name, None, old, request, options.dry_run)
    server.admission.admit(attributes)
    server.admission.validate(attributes)


def _build_type_only_object(resource: Resource) -> Stored:
    """Return an object with only apiVersion and kind.

    A real server responds with it to a dry run that removes the last finalizers.
    """
    empty = {"apiVersion": resource.api_version, "kind": resource.kind}
    return Stored(empty if resource.custom else codec.decode(resource.schema, empty).object, 0, resource)


def _build_lost_precondition_error(resource: Resource, stored: Stored) -> StatusError:
    """Return the conflict for a delete with a resourceVersion precondition that removes the last finalizers.

    A real server changes the object before it removes it, so that its own precondition fails.
    """
    metadata = stored.object["metadata"]
    key = [resource.group] if resource.custom else []
    key += [resource.plural, *([metadata["namespace"]] if resource.namespaced else []), metadata["name"]]
    detail = "ResourceVersion in precondition: , ResourceVersion in object meta"
    message = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{'/'.join(key)}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {detail}: {stored.version}"
    )
    return conflict(resource, metadata["name"], message)


def _terminate_namespace(server: "Server", resource: Resource, stored: Stored, options: DeleteOptions) -> Stored | None:
    """Mark a Namespace as terminating and return it, or return None if it has no finalizers and can be removed."""
    obj = stored.object
    if "deletionTimestamp" in obj["metadata"]:
        return stored if (obj.get("spec") or {}).get("finalizers") else None
    metadata = {**obj["metadata"], "deletionTimestamp": server.now}
    current_finalizers = metadata.get("finalizers") or []
    if options.orphans_dependents is False:  # only for a Namespace, this means foreground deletion
        options = replace(options, orphans_dependents=None, propagation="Foreground")
    finalizers = _compute_finalizers(server, resource, current_finalizers, options)
    if finalizers != current_finalizers:
        metadata["finalizers"] = list(dict.fromkeys(finalizers))
        if not finalizers:
            del metadata["finalizers"]
    changed_object = {**obj, "metadata": metadata, "status": {**(obj.get("status") or {}), "phase": "Terminating"}}
    if options.dry_run:
        return Stored(changed_object, stored.version)
    marked = server.store.put(server.store.table("", "namespaces"), changed_object)
    server.after_write(resource, stored, marked)
    return marked


def _check_preconditions(resource: Resource, stored: Stored, options: DeleteOptions) -> None:
    metadata = stored.object["metadata"]
    if resource.kind == "Namespace" and not resource.group:
        for field, expected, actual in (
            ("UID", options.uid, metadata["uid"]),
            ("ResourceVersion", options.version, str(stored.version)),
        ):
            if expected not in (None, actual):
                message = f"Precondition failed: {field} in precondition: {expected}, {field} in object meta: {actual}"
                raise conflict(resource, metadata["name"], message)
        return
    if options.uid is not None and options.uid != metadata["uid"]:
        message = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(resource, metadata["name"], message, names_kind=True)
    if options.version is not None and options.version != str(stored.version):
        message = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in record "
            f"({stored.version}). The object might have been modified"
        )
        raise conflict(resource, metadata["name"], message, names_kind=True)


def _begin_graceful(server: "Server", metadata: Object, grace: int, requested: int | None) -> tuple[bool, bool]:
    """Set the deletion fields in `metadata`.

    Returns whether a graceful deletion began now, and whether one was pending already.
    """
    now = server.world.clock.now()
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = rfc3339(now + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            metadata["generation"] += 1
        return True, False
    before = metadata.get("deletionGracePeriodSeconds") or 0
    if not before:
        return False, False
    if requested is None or requested >= before:
        return False, True
    deadline = parse(metadata["deletionTimestamp"]) - before + requested
    if deadline < now:
        deadline, requested = now, 1 if requested else 0
    metadata["deletionTimestamp"] = rfc3339(deadline)
    metadata["deletionGracePeriodSeconds"] = requested
    return True, False


def _mark_deleted(server: "Server", metadata: Object) -> None:
    now = server.world.clock.now()
    if "deletionTimestamp" not in metadata and metadata.get("generation"):
        metadata["generation"] += 1
    if "deletionTimestamp" not in metadata or parse(metadata["deletionTimestamp"]) > now:
        metadata["deletionTimestamp"] = rfc3339(now)
    metadata["deletionGracePeriodSeconds"] = 0


def _compute_finalizers(
    server: "Server", resource: Resource, current_finalizers: list[str], options: DeleteOptions
) -> list[str]:
    """Return the finalizers of an object after a delete with these propagation options."""
    is_orphaning = is_foreground = False
    if not deletion_rules.supports_propagation(resource):
        pass
    elif options.orphans_dependents is not None:
        is_orphaning = options.orphans_dependents
    elif options.propagation is not None:
        is_orphaning, is_foreground = options.propagation == "Orphan", options.propagation == "Foreground"
    elif ORPHAN in current_finalizers:
        is_orphaning = True
    elif FOREGROUND in current_finalizers:
        is_foreground = True
    else:
        is_orphaning = deletion_rules.orphans_dependents_by_default(resource)
    result = [f for f in current_finalizers if f not in (ORPHAN, FOREGROUND)]
    result += [ORPHAN] if is_orphaning else []
    result += [FOREGROUND] if is_foreground else []
    return current_finalizers if set(result) == set(current_finalizers) else result


def delete_collection(server: "Server", request: Request, route: Route) -> Response:
    """Delete the objects that a list with the same query returns, and return that list."""
    resource = route.resource
    representation = negotiation.negotiate(request, resource, is_list=True)
    options = read_options(request)
    page = request.remember("page", lambda: lists.read_page(server, request, route, is_in_pages=True))
    if resource.converter is not None:
        versions.convert_all(resource, page.items)
    _warn_about_job_pods(request, resource, options)
    table = server.table(resource)
    admit = partial(_admit_delete, server, request, route, options)
    deleted: set[int] = request.remember("deleted", set)  # The request may wait for a webhook before each delete.
    for index, item in enumerate(page.items):
        metadata = item.object["metadata"]
        live = table.get(metadata.get("namespace", ""), metadata["name"])
        if live is None or index in deleted:
            continue
        try:
            delete_object(server, resource, live, options, admit)
        except StatusError as error:
            if error.code != 404:
                raise
        deleted.add(index)
    return representation.list_response(200, page, request.warnings)
