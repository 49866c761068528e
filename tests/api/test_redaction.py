"""The values of Secrets appear in nothing that fairlead prints: logs, field changes, blame, and errors of a server."""

import base64
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.errors import ApiError
from fairlead.api.field_changes import find_changes
from fairlead.api.redaction import redact, redact_message
from fairlead.api.world import World
from fairlead.runtime import logs
from fairlead.tools.blame import blame

KEYS = st.text("abcdefgh", min_size=1, max_size=4)
# Letters that no key, name or message of the test contains, so that a leak is a substring.
VALUES = st.text("VWXYZ", min_size=6, max_size=12)
SECRETS = st.builds(
    lambda plain, text, name: {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"stringData": text})},
        },
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()},
        "stringData": text,
    },
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=3),
    st.dictionaries(KEYS, VALUES, max_size=3),
    KEYS,
)


def values_of(secret):
    """Return each value as it is stored, and each stored value as plain text."""
    plain_values = [base64.b64decode(value).decode() for value in secret["data"].values()]
    return [*secret["data"].values(), *secret["stringData"].values(), *plain_values]


def nested(secret):
    """Return a strategy of values that contain the Secret."""
    return st.sampled_from(
        [
            secret,
            [secret],
            {"object": secret},
            {"kind": "List", "items": [secret]},
            {"kind": "SecretList", "items": [{key: secret[key] for key in ("metadata", "data", "stringData")}]},
            {"old": None, "new": [{"child": secret}]},
        ]
    )


def log_line(log_format, message, *args):
    record = logging.LogRecord("fairlead.test", logging.INFO, __file__, 1, message, args, None)
    return logs.Formatter(World(), log_format).format(record)


def blame_lines(value):
    return "\n".join(line.text for line in blame(value if isinstance(value, dict) else {"items": value}))


PRINTERS = {
    "text log, argument": lambda value: log_line("text", "%s", value),
    "text log, two arguments": lambda value: log_line("text", "%s %s", 1, value),
    "text log, tuple": lambda value: log_line("text", "%s %s", (value, 1), 2),
    "text log, message": lambda value: log_line("text", value),
    "text log, map of arguments": lambda value: log_line("text", "%(it)s", {"it": value}),
    "json log": lambda value: log_line("json", "%s", value),
    "json log, message": lambda value: log_line("json", value),
    "blame": blame_lines,
}


@pytest.mark.parametrize("printer", PRINTERS.values(), ids=PRINTERS)
@given(data=st.data())
def test_no_printer_shows_a_value_of_a_secret(printer, data):
    secret = data.draw(SECRETS)
    printed = printer(data.draw(nested(secret)))
    assert [value for value in values_of(secret) if value in printed] == []


@given(old=SECRETS, new=SECRETS)
def test_no_field_change_shows_a_value_of_a_secret(old, new):
    new["metadata"]["name"] = old["metadata"]["name"]
    printed = repr([find_changes(old, new), find_changes(None, new)])
    assert [value for value in values_of(old) + values_of(new) if value in printed] == []


@given(secret=SECRETS, body_form=st.sampled_from(["object", "json patch"]))
def test_answer_of_a_server_that_quotes_what_it_rejects_is_redacted(secret, body_form):
    values = values_of(secret)
    quoted = " ".join(f'got "{value}".' for value in values)
    status = {"message": quoted, "details": {"causes": [{"field": "data", "message": quoted}]}}
    written_body = secret if body_form == "object" else [{"op": "add", "path": "/data", "value": values}]
    error = ApiError.of(redact_message(status, written_body), 422)
    printed = str(error) + json.dumps(error.status)
    assert [value for value in values if value in printed] == []
    assert "got" in str(error)


def test_short_value_is_redacted_as_a_word_only():
    status = {"message": "a bad value: got a, want text"}
    assert redact_message(status, {"data": {"k": "bad"}}) == {"message": "a <redacted> value: got a, want text"}
    assert redact_message(status, {"data": {"k": "al"}}) == status


def test_other_kinds_and_keys_stay():
    config = {"kind": "ConfigMap", "data": {"colour": "blue"}}
    assert redact(config) == config
    assert redact({"kind": "Secret", "data": {"user": "x"}}) == {"kind": "Secret", "data": {"user": "<redacted>"}}
