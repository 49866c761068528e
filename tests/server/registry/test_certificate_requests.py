"""/approval and /status of a CertificateSigningRequest: what each may change. The same on both servers."""

import base64
import datetime
import json

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fairlead.api.requests import HttpRequest

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE = {"Content-Type": "application/merge-patch+json"}
APPROVED = {"type": "Approved", "status": "True", "reason": "Checked", "message": "by hand"}
DENIED = {"type": "Denied", "status": "True"}
FAILED = {"type": "Failed", "status": "True"}
KEY = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "someone")])


def encode(document):
    return base64.b64encode(document).decode()


def create_certificate():
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(NAME).issuer_name(NAME).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start + datetime.timedelta(days=365))
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


CERTIFICATE = create_certificate()
REQUEST = (
    x509.CertificateSigningRequestBuilder()
    .subject_name(NAME)
    .sign(KEY, hashes.SHA256())
    .public_bytes(serialization.Encoding.PEM)
)


async def send(api, method, path, body, headers=None):
    headers = headers or {"Content-Type": "application/json"}
    response = await api.transport().request(HttpRequest(method, path, headers=headers, body=json.dumps(body).encode()))
    return response.status, json.loads(response.body)


@pytest.fixture
async def path(api):
    """The path of a new request."""
    name = f"request-{api.namespace}"
    spec = {"request": encode(REQUEST), "signerName": "example.com/signer", "usages": ["client auth"]}
    status, body = await send(api, "POST", PATH, {"metadata": {"name": name}, "spec": spec})
    assert status == 201, body
    yield f"{PATH}/{name}"
    await api.transport().request(HttpRequest("DELETE", f"{PATH}/{name}"))


async def patch(api, path, status, **other):
    """Merge-patch the status and return the new status, or the causes of the rejection."""
    code, body = await send(api, "PATCH", path, {"status": status, **other}, MERGE)
    if code == 200:
        return body["status"]
    assert code == 422, body
    return [(cause["field"], cause["message"]) for cause in body["details"]["causes"]]


def remove(kind):
    return ("status.conditions", f'Forbidden: updates may not remove a condition of type "{kind}"')


def add(kind):
    return ("status.conditions", f'Forbidden: updates may not add a condition of type "{kind}"')


def exclusive(kind):
    message = "Approved and Denied conditions are mutually exclusive"
    return ("status.conditions", f'Invalid value: "{kind}": {message}')


async def test_approval_adds_a_condition_with_times_and_changes_nothing_else(api, path):
    metadata = {"labels": {"a": "b"}}
    written = await patch(
        api,
        f"{path}/approval",
        {"conditions": [APPROVED], "certificate": encode(CERTIFICATE)},
        metadata=metadata,
        spec={"usages": ["server auth"]},
    )
    (condition,) = written["conditions"]
    assert {key: condition[key] for key in APPROVED} == APPROVED
    assert condition["lastUpdateTime"] == condition["lastTransitionTime"]
    assert "certificate" not in written
    _, obj = await send(api, "GET", f"{path}/approval", None)
    assert (obj["spec"]["usages"], obj["metadata"]["labels"]) == (["client auth"], {"a": "b"})


async def test_a_transition_time_stays_while_the_status_stays(api, path):
    old_time = "2020-01-01T00:00:00Z"
    await patch(api, f"{path}/approval", {"conditions": [{**DENIED, "lastTransitionTime": old_time}]})
    written = await patch(api, f"{path}/approval", {"conditions": [{**DENIED, "message": "again"}]})
    assert written["conditions"][0]["lastTransitionTime"] == old_time
    assert written["conditions"][0]["lastUpdateTime"] > old_time


async def test_status_issues_the_certificate_once_and_keeps_the_decision(api, path):
    await patch(api, f"{path}/approval", {"conditions": [APPROVED]})
    changed = {**APPROVED, "message": "other"}
    written = await patch(api, f"{path}/status", {"conditions": [changed], "certificate": encode(CERTIFICATE)})
    assert written["conditions"][0]["message"] == APPROVED["message"]
    assert written["certificate"] == encode(CERTIFICATE)
    fixed = [("status.certificate", "Forbidden: updates may not modify existing certificate content")]
    assert await patch(api, f"{path}/status", {"certificate": None}) == fixed
    assert await patch(api, f"{path}/status", {"certificate": encode(CERTIFICATE + b"\n")}) == fixed


REJECTED = [
    # conditions before, subresource, conditions, causes
    ([], "status", [APPROVED], [add("Approved")]),
    ([], "approval", [APPROVED, DENIED], [exclusive("Denied")]),
    ([], "approval", [DENIED, APPROVED], [exclusive("Approved")]),
    ([APPROVED], "approval", [], [remove("Approved")]),
    ([APPROVED], "status", [], [remove("Approved")]),
    ([FAILED], "approval", [DENIED], [remove("Failed")]),
    ([FAILED], "status", [APPROVED], [remove("Failed"), add("Approved")]),
    (
        [],
        "approval",
        [{**APPROVED, "status": "False"}, {"type": "Q"}, {"status": "True"}],
        [
            ("status.conditions[0].status", 'Unsupported value: "False": supported values: "True"'),
            ("status.conditions[1].status", "Required value"),
            ("status.conditions[2].type", "Required value"),
        ],
    ),
    (
        [],
        "status",
        [{"type": "Q", "status": "maybe"}, {"type": "Q", "status": "True"}],
        [
            ("status.conditions[0].status", 'Unsupported value: "maybe": supported values: "False", "True", "Unknown"'),
            ("status.conditions[1].type", 'Duplicate value: "Q"'),
        ],
    ),
    (
        [APPROVED],
        "status",
        [APPROVED, DENIED, APPROVED],
        [
            exclusive("Denied"),
            exclusive("Approved"),
            ("status.conditions[2].type", 'Duplicate value: "Approved"'),
            add("Approved"),
            add("Denied"),
        ],
    ),
]


@pytest.mark.parametrize(("before", "subresource", "conditions", "causes"), REJECTED)
async def test_a_wrong_condition_is_rejected(api, path, before, subresource, conditions, causes):
    if before:
        await patch(api, f"{path}/approval", {"conditions": before})
    assert await patch(api, f"{path}/{subresource}", {"conditions": conditions}) == causes


BAD = b"-----BEGIN CERTIFICATE-----\nbm9wZQ==\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("certificate", "message"),
    [
        (b"nope", "must contain at least one CERTIFICATE PEM block"),
        (REQUEST, 'only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"'),
        (CERTIFICATE + REQUEST, 'only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"'),
        (CERTIFICATE.replace(b"E-----\n", b"E-----\nA: b\n\n", 1), "no PEM block headers are permitted"),
        (BAD, "x509: malformed certificate"),
    ],
)
async def test_a_wrong_certificate_is_rejected(api, path, certificate, message):
    causes = [("status.certificate", f'Invalid value: "<certificate data>": {message}')]
    assert await patch(api, f"{path}/status", {"certificate": encode(certificate)}) == causes


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_approval_cannot_be_created_or_deleted(api, path, method):
    assert (await send(api, method, f"{path}/approval", {}))[0] == 405


async def test_approval_of_a_missing_request_is_a_404(api):
    assert (await send(api, "GET", f"{PATH}/missing/approval", None))[0] == 404
