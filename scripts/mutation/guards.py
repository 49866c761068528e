"""The mutants: each removes one guard, by replacing a piece of source text."""

from typing import NamedTuple


class Mutant(NamedTuple):
    guard: str
    file: str  # Below src/fairlead.
    old: str  # Occurs once in the file.
    new: str


MUTANTS = [
    Mutant("decide: uid", "writes/guarded_patch.py", "tests = [_test(uid, value_at(base, uid)), *", "tests = [*"),
    Mutant("decide: a value that was read", "writes/guarded_patch.py", "if access is Access.VALUE:", "if False:"),
    Mutant(
        "decide: an absence that was read", "writes/guarded_patch.py", "elif access is Access.ABSENT:", "elif False:"
    ),
    Mutant(
        "decide: a value that is replaced",
        "writes/guarded_patch.py",
        "guards.require_value(path)\n            if new is DELETED:",
        "if new is DELETED:",
    ),
    Mutant(
        "decide: a value that is removed",
        "writes/guarded_patch.py",
        "guards.require_value(path)\n            if new is DELETED:",
        "if new is not DELETED:\n                guards.require_value(path)\n            if new is DELETED:",
    ),
    Mutant(
        "decide: a value that already is the new one",
        "writes/guarded_patch.py",
        "guards.require_value(path)\n            if new is DELETED:",
        "if not json_equal(old, new):\n                guards.require_value(path)\n            if new is DELETED:",
    ),
    Mutant("decide: an absence that is filled", "writes/guarded_patch.py", "guards.require_gap(first)\n", "pass\n"),
    Mutant(
        "decide: the first missing parent",
        "writes/guarded_patch.py",
        "for end in range(1, len(path)):",
        "for end in ():",
    ),
    Mutant("decide: the item that gets a field", "writes/guarded_patch.py", "if indexes:", "if False:"),
    Mutant("decide: the length of a list", "writes/guarded_patch.py", "elif access is Access.LENGTH:", "elif False:"),
    Mutant(
        "decide: the length of a list that is appended to",
        "writes/guarded_patch.py",
        "guards.require_length(first[:-1])\n",
        "pass\n",
    ),
    Mutant(
        "decide: the marker that tests a length",
        "writes/guarded_patch.py",
        "[add, _test(last, marker), {",
        "[add, {",
    ),
    Mutant("decide: random delays between many writers", "writes/decide.py", "if run > 1:", "if False:"),
    Mutant(
        "decide: no test of a list that contains null",
        "writes/guarded_patch.py",
        "item is None or _has_null",
        "_has_null",
    ),
    Mutant(
        "decide: an answer that is lost twice is raised",
        "writes/decide.py",
        "if lost_answers == MAX_LOST_ANSWERS:",
        "if False:",
    ),
    Mutant(
        "decide: server-managed fields cannot change",
        "writes/decide.py",
        "if path in _IDENTITY or path[:2] in _SERVER_MANAGED:",
        "if False:",
    ),
    Mutant("every write: the object has a uid", "writes/writer.py", "    if not obj.uid:\n", "    if False:\n"),
    Mutant("decide: the existence of a map", "writes/guarded_patch.py", "if access is Access.PRESENT}", "if False}"),
    Mutant("decide: that a map is not empty", "writes/guarded_patch.py", "if access is Access.NON_EMPTY}", "if False}"),
    Mutant(
        "decide: the whole list if items move",
        "writes/tracked.py",
        "self.log.record(self.path, Access.VALUE)\n        if self._items",
        "if self._items",
    ),
    Mutant(
        "decide: values that the function returns",
        "writes/purity.py",
        "    result = _untrack(result)\n",
        "",
    ),
    Mutant(
        "decide: a live read after a failed test",
        "writes/decide.py",
        "base, base_is_live = live, True",
        "base, base_is_live = base, True",
    ),
    Mutant(
        "decide: a failed test that should pass",
        "writes/decide.py",
        "if base_is_live and live",
        "if False and live",
    ),
    Mutant("decide: a schema error is not a conflict", "writes/decide.py", "return not error.causes", "return True"),
    Mutant("decide: declared fields only", "writes/decide.py", "if allowed is None:", "if True:"),
    Mutant("decide: status at its own endpoint", "writes/decide.py", 'return "status"', "return None"),
    Mutant(
        "decide: purity, same changes",
        "writes/purity.py",
        "if not json_equal(second_patch.ops, patch.ops):",
        "if False:",
    ),
    Mutant("decide: purity, captured state", "writes/purity.py", "if changed_names:", "if False:"),
    Mutant(
        "every write: one at a time per object", "writes/writer.py", "async with lock:\n                yield", "yield"
    ),
    Mutant("every write: a live read compares the uid", "writes/writer.py", "if live.uid != obj.uid:", "if False:"),
    Mutant("every write: a removed object is forgotten", "writes/writer.py", "if is_removed(obj):", "if False:"),
    Mutant(
        "every write: a cached object with another uid is ignored",
        "writes/writer.py",
        "if cached is None or cached.uid != obj.uid:",
        "if cached is None:",
    ),
    Mutant(
        "every write: a newer copy is preferred to the cache",
        "writes/writer.py",
        "return obj if as_integer(obj.resource_version) > as_integer(cached.resource_version) else cached",
        "return cached",
    ),
    Mutant(
        "status: the generation of a condition never decreases",
        "writes/status.py",
        'if reported > condition["observedGeneration"]:',
        "if False:",
    ),
    Mutant(
        "migrate: entries of subresources",
        "writes/migrate.py",
        'if not is_source or entry.get("subresource"):',
        "if not is_source:",
    ),
    Mutant(
        "apply: create only if no object exists", "writes/apply.py", "self.send(resourceVersion=version)", "self.send()"
    ),
    Mutant("apply: uid", "writes/apply.py", "self.send(uid=uid)", "self.send()"),
    Mutant(
        "apply: an object that is not ours",
        "writes/apply.py",
        "raise ForeignObject(self.target, describe_controller(live))\n            return",
        "pass\n            return",
    ),
    Mutant(
        "apply: adopt never takes from a controller",
        "writes/apply.py",
        "(self.adopt and controller_of(obj) is None)",
        "self.adopt",
    ),
    Mutant(
        "apply: adopt only the cached version of an object",
        "writes/apply.py",
        "self.send(resourceVersion=version)",
        "self.send(**({} if version != _CREATE_ONLY_VERSION else {'resourceVersion': _CREATE_ONLY_VERSION}))",
    ),
    Mutant(
        "apply: a child without fields and owner",
        "writes/apply.py",
        "if not (self.owner_controls or self.adopt or self.has_fields()):",
        "if False:",
    ),
    Mutant(
        "recreate: only own or adoptable objects",
        "writes/apply.py",
        "raise ForeignObject(self.target, describe_controller(live))\n        await",
        "pass\n        await",
    ),
    Mutant(
        "apply: a lost answer is looked up",
        "writes/apply.py",
        "except (Conflict, UnknownOutcome) as",
        "except Conflict as",
    ),
    Mutant("apply: payload from scratch", "writes/payload.py", "if metadata.get(field) is not None:", "if False:"),
    Mutant(
        "apply: no part of a draft in a payload",
        "writes/payload.py",
        "if isinstance(value, TrackedMap | TrackedList):",
        "if False:",
    ),
    Mutant("apply: nulls are removed", "writes/payload.py", "if item is not None}", "}"),
    Mutant("apply: stringData becomes data", "writes/payload.py", '"stringData" in body:', '"stringData" in ():'),
    Mutant(
        "apply: only an immutable field is ImmutableField",
        "writes/apply.py",
        "if error.causes and all(",
        "if False and all(",
    ),
    Mutant("no-op: our Apply entry", "writes/no_op.py", "if entry is None or", "if False or"),
    Mutant(
        "no-op: the order of keyed items",
        "writes/no_op.py",
        "for item in value:\n        if any",
        "for item in sorted(value, key=str):\n        if any",
    ),
    Mutant("no-op: omitted fields", "writes/no_op.py", "payload.keys() | owned_fields.keys()", "payload.keys()"),
    Mutant("no-op: added fields", "writes/no_op.py", "payload.keys() | owned_fields.keys()", "owned_fields.keys()"),
    Mutant(
        "no-op: what the server made of a payload",
        "writes/apply.py",
        "if not is_known_outcome and not is_no_op(",
        "if not is_no_op(",
    ),
    Mutant(
        "no-op: an unchanged version",
        "writes/apply.py",
        "if not is_known_outcome and not is_no_op(",
        "if is_known_outcome or not is_no_op(",
    ),
    Mutant("delete: uid", "writes/delete.py", "uid=obj.uid,", ""),
    Mutant("delete: resourceVersion", "writes/delete.py", "obj.resource_version if unchanged else None", "None"),
    Mutant("prune: owner", "writes/prune.py", "return has_owner and writer.has_applied", "return writer.has_applied"),
    Mutant(
        "prune: our Apply entry",
        "writes/prune.py",
        "return has_owner and writer.has_applied(child)",
        "return has_owner",
    ),
    Mutant("prune: resourceVersion", "writes/prune.py", "unchanged=True", "unchanged=False"),
    Mutant("prune: needed children", "writes/prune.py", "if is_needed or", "if"),
    Mutant("finalizer: not while deleting", "writes/finalizers.py", "if draft.deleting:", "if False:"),
    Mutant(
        "finalizer: only our own entry",
        "writes/finalizers.py",
        "[other for other in finalizers if other != finalizer]",
        "[]",
    ),
    Mutant(
        "status: observedGeneration never decreases",
        "writes/status.py",
        "if reported > report.generation:",
        "if False:",
    ),
    Mutant(
        "status: the time changes only on a transition",
        "writes/status.py",
        'if existing.get("status") != condition["status"]:',
        "if True:",
    ),
    Mutant("status: an unchanged report", "writes/status.py", "if last and (last.uid", "if False and (last.uid"),
    Mutant(
        "migrate: resourceVersion",
        "writes/migrate.py",
        '{"op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version},',
        "",
    ),
    Mutant(
        "migrate: declared fields", "writes/migrate.py", "union(select_fields(", "owned_fields or union(select_fields("
    ),
    Mutant("migrate: named managers", "writes/migrate.py", ' and entry.get("manager") in managers', ""),
    Mutant(
        "apply: without a watch, only to the object that was seen",
        "writes/apply.py",
        "return await self.apply_to_uid(last.uid)",
        "pass",
    ),
    Mutant(
        "apply: a watched object that does not exist is created",
        "writes/apply.py",
        "elif last is not None and not cache.covers(self.kind, self.namespace):",
        "elif last is not None:",
    ),
    Mutant("cache: only a watch without selectors covers a kind", "cache/cache.py", "and scope.is_unfiltered\n", "\n"),
    Mutant(
        "cache: a deleted object stays hidden",
        "cache/overlay.py",
        "return None if entry is not None and entry.uid in self._tombstones else entry",
        "return entry",
    ),
    Mutant(
        "cache: a late answer does not bring a deleted object back",
        "cache/overlay.py",
        "if self.disabled or entry.version <= position or self._is_stale(write, entry.uid):",
        "if self.disabled:",
    ),
    Mutant(
        "cache: a tombstone stays until the deletion event",
        "cache/overlay.py",
        "if uid not in uids and version <= position:",
        "if True:",
    ),
    Mutant(
        "order: the finalizer is added before the first side effect",
        "runtime/controller.py",
        """        if cleanup is not None:
            try:
                await finalizers.add(self._writer, declared.kind, obj, cleanup.finalizer)
            except ObjectDeleting:
                return NOTHING_TO_REPORT  # Nothing was done yet, so there is nothing to clean up.
        result = RECONCILED
        try:
            await self._call(declared.reconcile, obj, ctx)
        except RequeueAfter as later:
            result = pass_results.from_error(later)
""",
        """        result = RECONCILED
        try:
            await self._call(declared.reconcile, obj, ctx)
        except RequeueAfter as later:
            result = pass_results.from_error(later)
        if cleanup is not None:
            try:
                await finalizers.add(self._writer, declared.kind, obj, cleanup.finalizer)
            except ObjectDeleting:
                return NOTHING_TO_REPORT  # Nothing was done yet, so there is nothing to clean up.
""",
    ),
    Mutant(
        "order: the finalizer is removed after the cleanup",
        "runtime/controller.py",
        """            try:
                await self._call_cleanup(cleanup, obj, ctx)
""",
        """            await finalizers.remove(self._writer, declared.kind, obj, cleanup.finalizer)
            try:
                await self._call_cleanup(cleanup, obj, ctx)
""",
    ),
    Mutant(
        "prune: only by an explicit statement",
        "runtime/controller.py",
        "        self._warn_about_unpruned(key, ctx)\n",
        "        await ctx.prune()\n        self._warn_about_unpruned(key, ctx)\n",
    ),
    Mutant(
        "prune: a complete set without an error",
        "runtime/context.py",
        """        live = await run_concurrently(
            [self._apply(kind, payload, owner, adopt=adopt, recreate=recreate) for kind, payload in resolved]
        )
        if complete:
            await self._prune(())
""",
        """        try:
            live = await run_concurrently(
                [self._apply(kind, payload, owner, adopt=adopt, recreate=recreate) for kind, payload in resolved]
            )
        finally:
            if complete:
                await self._prune(())
""",
    ),
    Mutant(
        "prune: kinds that hold data must be named", "runtime/context.py", "if not must_be_named(kind)]", "if True]"
    ),
    Mutant(
        "prune: no apply after the statement",
        "runtime/context.py",
        "is_late = kind.group_kind in self._pruned_kinds",
        "is_late = False",
    ),
    Mutant(
        "errors: the text of an unexpected exception is not shown",
        "runtime/pass_results.py",
        "    if is_known:\n",
        "    if True:\n",
    ),
    Mutant(
        "clean-up: a read that is not watched does not block it",
        "runtime/controller.py",
        "if not await ctx.copy_live(missing):",
        "if True:",
    ),
    Mutant(
        "pause: no pass over a paused object", "runtime/controller.py", "if self._is_paused(key, obj):", "if False:"
    ),
    Mutant(
        "unknown outcome: read live before anything else",
        "runtime/controller.py",
        "if key in self._unknown_writes:",
        "if False:",
    ),
    Mutant(
        "deletion: a deleting object is not reconciled",
        "runtime/controller.py",
        "        if obj.deleting:\n",
        "        if False:\n",
    ),
    Mutant(
        "predicate: a deletion is never hidden",
        "runtime/predicates.py",
        "if not new.deleting and not is_pause",
        "if not is_pause",
    ),
    Mutant(
        "early look: our own change does not cut a wait",
        "runtime/early_looks.py",
        "and not wake.is_own ",
        "",
    ),
    Mutant(
        "early look: an event before its answer may be our own",
        "runtime/early_looks.py",
        "wake.change.call_when_answered(decide)",
        "decide()",
    ),
    Mutant(
        "early look: a status does not cut a wait",
        "runtime/early_looks.py",
        "and is_possible_remedy(wake)",
        "",
    ),
    Mutant(
        "early look: a change during the failing pass counts",
        "runtime/controller.py",
        "                    self._early_looks.on_error(key)\n",
        "",
    ),
    Mutant(
        "loops: a plan of many steps is not a loop",
        "runtime/write_loops.py",
        "if any(field not in self.fields for field in writes.changes):",
        "if False:",
    ),
    Mutant(
        "loops: a pass with another reason starts again",
        "runtime/write_loops.py",
        "if woken_by is WokenBy.OTHER or len(self.fields) > _MAX_FIELDS:",
        "if len(self.fields) > _MAX_FIELDS:",
    ),
    Mutant(
        "loops: a reaction to others is not counted",
        "runtime/write_loops.py",
        "if rewrites.count == 0 or woken_by is not WokenBy.UNCLEAR:",
        "if True:",
    ),
    Mutant(
        "loops: a field that has converged starts again",
        "runtime/write_loops.py",
        "if rewrites.has_converged and not is_revert:",
        "if False:",
    ),
    Mutant(
        "loops: only echoes of this object's passes count",
        "runtime/write_loops.py",
        "if (cause.object, cause.version) in self._versions or",
        "if cause.is_own or",
    ),
    Mutant(
        "loops: fields that others changed during a write do not count",
        "cache/recording.py",
        "select_sent(fields, self._body) if fields else",
        "fields or",
    ),
    Mutant(
        "brake: a new generation and a deletion do not wait",
        "runtime/brake.py",
        "if watched.loop is not None and _is_exempt(wake, watched):",
        "if False:",
    ),
    Mutant(
        "brake: a new generation of the loop itself waits",
        "runtime/brake.py",
        "        Field(primary, each.path) not in watched.streak.fields\n",
        "        primary is not None\n",
    ),
    Mutant(
        "brake: clean-up does not wait",
        "runtime/brake.py",
        "if primary is None or primary.deleting:",
        "if primary is None:",
    ),
    Mutant(
        "brake: a pass with another reason does not wait",
        "runtime/brake.py",
        "if woken_by is not WokenBy.LOOP:",
        "if False:",
    ),
    Mutant(
        "brake: a pass that leaves the field unchanged ends the wait",
        "runtime/brake.py",
        "if not any(field in writes.changes for field in loop.fields):",
        "if False:",
    ),
    Mutant(
        "queue: one worker per key",
        "queue/queue.py",
        "if state.in_progress_since is not None:\n            state.rerun_priority",
        "if False:\n            state.rerun_priority",
    ),
    Mutant(
        "queue: an add during a run causes another run",
        "queue/queue.py",
        "            self._make_ready(key, state, rerun_priority)\n",
        "            pass\n",
    ),
    Mutant(
        "queue: several adds cause one run",
        "queue/ready.py",
        "if key in keys[Priority.FRESH]:\n            return",
        "if False:\n            return",
    ),
    Mutant(
        "queue: fresh before resync",
        "queue/ready.py",
        "return self._take(Priority.FRESH, now) or self._take(Priority.RESYNC, now)",
        "return self._take(Priority.RESYNC, now) or self._take(Priority.FRESH, now)",
    ),
    Mutant("queue: first come, first served", "queue/ready.py", "keys.popitem(last=False)", "keys.popitem(last=True)"),
    Mutant(
        "queue: lanes alternate",
        "queue/ready.py",
        "            del self._rotation[turn]\n            self._rotation.append(lane)\n",
        "",
    ),
    Mutant(
        "queue: a resync is not starved", "queue/ready.py", "if self._fresh_in_a_row >= RESYNC_TURN - 1:", "if False:"
    ),
    Mutant(
        "queue: overdue resyncs starve nobody",
        "queue/ready.py",
        "if self._fresh_in_a_row >= RESYNC_TURN - 1:",
        "if True:",
    ),
    Mutant(
        "queue: the limit of a lane",
        "queue/ready.py",
        "if self.limit is not None and self.in_progress >= self.limit:",
        "if False:",
    ),
    Mutant(
        "queue: the total limit",
        "queue/ready.py",
        "return self._limit is not None and self._in_progress >= self._limit",
        "return False",
    ),
    Mutant("queue: the rate of a lane", "queue/ready.py", "lane.rate.take(now)", "pass"),
    Mutant(
        "queue: a key that waits for the rate is handed out",
        "queue/queue.py",
        "            self._wake_for_rate()\n",
        "",
    ),
    Mutant("queue: the backoff grows with each error", "queue/queue.py", "state.errors += 1", "state.errors = 1"),
    Mutant(
        "queue: success resets the backoff of errors",
        "queue/queue.py",
        "state.errors = state.conflicts = 0",
        "state.conflicts = 0",
    ),
    Mutant(
        "queue: success resets the backoff of conflicts",
        "queue/queue.py",
        "state.errors = state.conflicts = 0",
        "state.errors = 0",
    ),
    Mutant(
        "queue: a conflict is not an error",
        "queue/queue.py",
        "state.conflicts += 1",
        "state.conflicts += 1\n        state.errors += 1",
    ),
    Mutant(
        "queue: adds do not shorten the backoff",
        "queue/queue.py",
        "elif state.backing_off_until is not None:\n",
        "elif False:\n",
    ),
    Mutant(
        "queue: adds do not extend the backoff",
        "queue/queue.py",
        "            state.priority = max(priority, state.priority)\n        else:",
        "            self._back_off(key, state, ERROR_CAP)\n        else:",
    ),
    Mutant(
        "queue: an add during a run waits for the backoff",
        "queue/queue.py",
        "state.priority, state.rerun_priority = max(state.rerun_priority, state.priority), None\n",
        "self._make_ready(key, state, state.rerun_priority)\n",
    ),
    Mutant(
        "queue: early looks are limited",
        "queue/queue.py",
        "        state.early_looks.take(when)\n",
        "",
    ),
    Mutant(
        "queue: a wait after a conflict is not cut",
        "queue/queue.py",
        "state.backing_off_until is not None and state.can_be_cut",
        "state.backing_off_until is not None",
    ),
    Mutant(
        "queue: an early look does not extend the backoff",
        "queue/queue.py",
        "if when >= state.backing_off_until:",
        "if False:",
    ),
    Mutant(
        "queue: the earliest delayed add counts",
        "queue/queue.py",
        "if state.delayed_until is None or when < state.delayed_until:",
        "if True:",
    ),
    Mutant(
        "queue: an add does not replace a delayed one",
        "queue/queue.py",
        "        else:\n            self._request_run(key, state, priority)\n",
        "        else:\n            state.delayed_until = None\n            self._request_run(key, state, priority)\n",
    ),
    Mutant(
        "queue: nothing makes a held key ready",
        "queue/queue.py",
        "if state.held_until is not None:\n            state.held_priority = ",
        "if False:\n            state.held_priority = ",
    ),
    Mutant(
        "queue: a hold forgets nothing",
        "queue/queue.py",
        "        if priority is not None:\n            self._make_ready(key, state, priority)\n        self._drop",
        "        self._drop",
    ),
    Mutant(
        "queue: a hold ends",
        "queue/queue.py",
        "if state.held_until == when:",
        "if False:",
    ),
    Mutant(
        "queue: a held key frees its worker",
        "queue/queue.py",
        "        if not state.ready:\n            self._wake_getter()",
        "        if not state.ready and state.held_priority is None:\n            self._wake_getter()",
    ),
    Mutant("queue: a drain waits for running keys", "queue/queue.py", "await self._drained.wait()", "pass"),
    Mutant(
        "queue: a drain still hands out ready keys",
        "queue/queue.py",
        "            if not drain:\n                state.rerun_priority, state.ready = None, False\n",
        "            state.rerun_priority, state.ready = None, False\n",
    ),
    Mutant(
        "queue: a drain accepts no new keys", "queue/queue.py", "        if self._closed:\n            return\n", ""
    ),
    Mutant(
        "queue: a drain does not wait for delayed keys",
        "queue/queue.py",
        "        if self._closed:\n            self._finish_run(key, state)\n            return\n",
        "",
    ),
    Mutant(
        "queue: a cancelled wake-up is passed on",
        "queue/queue.py",
        "self._wake_getter()  # pass on the wake-up that this getter cannot use",
        "pass",
    ),
    Mutant(
        "queue: a key is returned once",
        "queue/queue.py",
        "if state is None or state.in_progress_since is None:\n",
        "if state is None:\n",
    ),
    Mutant(
        "defaults: only missing fields",
        "writes/tracked.py",
        "if self._current(key)[0] is MISSING:\n            self[key] = value",
        "if True:\n            self[key] = value",
    ),
    Mutant("defaults: an explicit null stays", "writes/defaults.py", "and not target.is_null(key)", ""),
    Mutant(
        "orphans: a live read before each deletion",
        "tools/orphans/deletion.py",
        "verdict = await self._judge(current, ambiguous)",
        "verdict = item.verdict",
    ),
    Mutant(
        "orphans: uid and resourceVersion",
        "tools/orphans/deletion.py",
        "await delete(self._writer, kind, obj, unchanged=True)",
        "await self._fleet.downstream.client.delete(kind, obj.name, obj.namespace)",
    ),
    Mutant("orphans: resourceVersion", "tools/orphans/deletion.py", "obj, unchanged=True)", "obj)"),
    Mutant("orphans: the cluster that was seen first", "tools/orphans/looks.py", "known_uid != uid:", "False:"),
    Mutant(
        "orphans: no cluster under two names",
        "tools/orphans/ambiguous_clusters.py",
        "if len(cluster_names) > 1:",
        "if False:",
    ),
    Mutant(
        "orphans: no cluster under a name that was shared",
        "tools/orphans/ambiguous_clusters.py",
        "if not unreachable:",
        "if True:",
    ),
    Mutant("orphans: grace", "tools/orphans/verdicts.py", "if age >= grace:", "if True:"),
    Mutant(
        "orphans: the grace period restarts when a parent returns",
        "tools/orphans/evidence.py",
        ".absent.pop(parent, None)",
        ".absent.get(parent)",
    ),
    Mutant("orphans: unknown is not absent", "tools/orphans/verdicts.py", "if unknown:", "if False:"),
    Mutant(
        "orphans: the parent that disappeared last",
        "tools/orphans/verdicts.py",
        "max(absent_since)",
        "min(absent_since)",
    ),
    Mutant(
        "orphans: recorded evidence is loaded", "tools/orphans/collector.py", "await self._store.load(evidence)", "pass"
    ),
    Mutant(
        "client: a list answer has the requested kind",
        "client/answers.py",
        "if (answer.api_version, answer.kind) != expected:",
        "if False:",
    ),
    Mutant(
        "client: a list answer has a resourceVersion",
        "client/answers.py",
        "if can_be_watched and not answer.metadata.resource_version:",
        "if False:",
    ),
    Mutant(
        "client: a 404 for another object is not absence",
        "client/client.py",
        "if answers.names_object(error, kind, namespace, name):",
        "if True:",
    ),
    Mutant(
        "client: the 404 page of a proxy is not absence",
        "client/exchange.py",
        'if response.body.strip() == b"404 page not found":',
        "if response.status == 404:",
    ),
    Mutant(
        "client: 203 and 206 are not successes",
        "client/exchange.py",
        "if response.status in SUCCESS:",
        "if response.status < 300:",
    ),
    Mutant("client: a body has a largest size", "client/http.py", "if size > MAX_BODY:", "if False:"),
    Mutant(
        "client: a frame has a largest size", "client/watching.py", "if self._partial_size > MAX_FRAME:", "if False:"
    ),
    Mutant("client: no compressed answers", "client/http.py", 'if encoding.lower() != "identity":', "if False:"),
    Mutant("client: an unusable answer is not requested again", "client/exchange.py", " | UnusableAnswer)", ")"),
    Mutant(
        "client: no credentials for a proxy on another host",
        "client/http.py",
        "if identity.authorization and self._shows_proxy:",
        "if False:",
    ),
    Mutant(
        "lease: checked again at the socket write",
        "client/http.py",
        'if check is not None and self.method != "CONNECT":',
        "if False:",
    ),
    Mutant(
        "lease: no write while the holder is uncertain",
        "runtime/leases.py",
        "if self._changes != self._changes_before_write:",
        "if False:",
    ),
    Mutant(
        "lease: a standby waits before it creates a missing lease",
        "runtime/leases.py",
        "return self._seen is None or self._world",
        "return True or self._world",
    ),
    Mutant(
        "history: our own writes are recognized as causes",
        "runtime/wakes.py",
        "return self.change is not None and self.change.is_own",
        "return False",
    ),
    Mutant(
        "history: a repeated error is logged with its traceback once",
        "runtime/history_log.py",
        "if known is None:",
        "if True:",
    ),
    Mutant(
        "shutdown: hooks have a time limit",
        "runtime/shutdown.py",
        "timeout=max(0.0, self._deadline - loop.time())",
        "timeout=None",
    ),
    Mutant(
        "cache: the server's version is checked after an outage",
        "cache/reflector.py",
        "elif self._state.phase is Phase.RESUME and self._is_in_doubt():",
        "elif False:",
    ),
]
