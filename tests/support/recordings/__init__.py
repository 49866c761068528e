"""Recorded requests to a real kube-apiserver: their file format, how they are played, how responses are compared.

A recording is a list of scenarios. A scenario has a `name`, a list of `steps`, and optionally `why` (what it shows),
`token` (the bearer token of its requests) and `cleanup` (paths to delete at the end). A step is one request with the
normalized response of a real server:

    {"do": "PATCH", "path": "/api/v1/namespaces/{ns}/configmaps/a", "query": {"fieldManager": "m1"},
     "type": "application/apply-patch+yaml", "body": {...}, "expect": {"code": 200, "body": {...}}}

Values in path, query and body may refer to earlier responses:

- `{"$ref": "0.metadata.resourceVersion"}` is replaced by a value of response 0.
- `${0.metadata.uid}` inside a string is replaced by a value of response 0.
- `{"$set": {"from": "0", "a.b": value, "drop": ["c"]}}` is replaced by a changed copy of response 0.
- `{ns}` is the namespace of the scenario, `{id}` is an identifier of the run.

A WATCH step reads a watch until the server ends it. A SETTLE step waits until a GET returns the values in `until`. It
does not wait if the step `after` failed, and it is never compared.

The status code and the whole body are compared. Uids, versions, times and random suffixes differ between servers, so
they are replaced by tokens. Equal values have equal tokens: a no-op write that changes the resourceVersion is detected.
Messages and warnings are compared only on request.

File formats: a `.jsonl` file has one line per step, after one line with the other fields of the scenario. A `.json`
file is an array of scenarios, or one scenario.
"""

from recordings.comparison import Mismatch, find_differences, find_mismatches, format_mismatch
from recordings.files import Scenario, read_scenarios, write_scenarios
from recordings.normalization import Normalizer
from recordings.player import RequestSender, play_scenario, wait_until

__all__ = [
    "Mismatch",
    "Normalizer",
    "RequestSender",
    "Scenario",
    "find_differences",
    "find_mismatches",
    "format_mismatch",
    "play_scenario",
    "read_scenarios",
    "wait_until",
    "write_scenarios",
]
