"""Tests of authentication: tokens, certificates, ServiceAccount tokens and impersonation."""

import asyncio
import json
import ssl

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api.requests import HttpRequest
from fairlead.api.world import World
from fairlead.server.app import Server
from fairlead.server.authentication import static_tokens
from fairlead.server.authentication.users import ADMIN, User
from fairlead.server.http.messages import Request
from fairlead.testing import virtual

ME = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
HEADERS = st.sampled_from(["impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-%zz"])


async def ask(transport, method, path, body=None, **headers):
    encoded_body = json.dumps(body).encode() if body is not None else None
    response = await transport.request(
        HttpRequest(method, path, body=encoded_body, headers={k.replace("_", "-"): v for k, v in headers.items()})
    )
    return response.status, json.loads(response.body) if response.body[:1] == b"{" else response.body


async def who(transport, **headers):
    status, body = await ask(transport, "POST", ME, {}, **headers)
    assert status == 201, body
    return body["status"]["userInfo"]


def test_a_token_file_is_parsed_like_on_a_real_server():
    token_file = 'aaa,jane,42,"dev,ops"\n# a comment\nbbb,joe,43\n\nccc\n'
    assert static_tokens.parse_token_file(token_file) == {
        "aaa": User("jane", ("dev", "ops", "system:authenticated"), "42"),
        "bbb": User("joe", ("system:authenticated",), "43"),
        "ccc": ADMIN,
    }


@pytest.mark.parametrize("line", ["a,b", ",user,uid", "token,,uid"])
def test_the_error_names_the_malformed_line_of_a_token_file(line):
    with pytest.raises(ValueError, match="line 2 should be"):
        static_tokens.parse_token_file(f"good\n{line}\n")


async def test_a_static_token_authenticates_its_user():
    server = Server(World(), tokens={"j": User("jane", ("dev",), "42"), "r": ADMIN})
    assert await who(server.transport("j")) == {
        "username": "jane",
        "uid": "42",
        "groups": ["dev", "system:authenticated"],
    }
    status, review = await ask(server.transport("r"), "POST", REVIEW, {"spec": {"token": "j"}})
    assert (status, review["status"]["user"]["username"]) == (201, "jane")


async def test_a_static_token_is_not_valid_for_another_audience(api):
    async def reviewed(*audiences):
        body = {"spec": {"token": api.token, "audiences": list(audiences)}}
        status, review = await ask(api.transport(), "POST", REVIEW, body, content_type="application/json")
        assert status == 201, review
        return review["status"]

    token_review = await reviewed()
    assert token_review["authenticated"]
    (own_audience,) = token_review["audiences"]
    assert await reviewed("elsewhere") == {"user": {}, "error": "invalid bearer token"}
    assert await reviewed("elsewhere", own_audience) == token_review


@pytest.mark.parametrize("authorization", ["AlwaysAllow", "RBAC"])
async def test_without_a_token_only_health_and_version_are_served(authorization):
    server = Server(World(), tokens=["t"], authorization=authorization)
    listening = await server.listen(tls=False)
    codes = {}
    async with aiohttp.ClientSession() as session:
        for path in ("/healthz", "/livez", "/readyz", "/version", "/api/v1/pods", "/apis", "/metrics"):
            async with session.get(listening.url + path) as response:
                codes[path] = response.status
    await listening.close()
    rejection = 401 if authorization == "AlwaysAllow" else 403
    assert codes == {
        **dict.fromkeys(("/healthz", "/livez", "/readyz", "/version"), 200),
        **dict.fromkeys(("/api/v1/pods", "/apis", "/metrics"), rejection),
    }


async def test_impersonation_reads_groups_uid_and_extra_from_repeated_headers():
    server = Server(World(), tokens=["t"], authorization="RBAC")
    listening = await server.listen(tls=False)
    headers = [
        ("Authorization", "Bearer t"), ("Impersonate-User", "jane"), ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b,c"), ("Impersonate-Uid", "7"), ("Impersonate-Extra-Team%2fx", "red"),
        ("Impersonate-Extra-Team%2fx", "blue"),
    ]  # fmt: skip
    async with (
        aiohttp.ClientSession() as session,
        session.post(listening.url + ME, headers=headers, json={}) as response,
    ):
        user_info = (await response.json())["status"]["userInfo"]
    await listening.close()
    assert user_info == {
        "username": "jane",
        "uid": "7",
        "groups": ["a", "b,c", "system:authenticated"],
        "extra": {"team/x": ["red", "blue"]},
    }


async def test_impersonation_needs_access_to_the_user_and_to_each_group():
    server = Server(World(), tokens={"r": ADMIN, "j": User("jane")}, authorization="RBAC")
    admin, jane = server.transport("r"), server.transport("j")
    status, rejection = await ask(jane, "GET", "/version", impersonate_user="bob")
    assert status == 403
    assert rejection["message"] == 'forbidden: User "jane" cannot impersonate-on:user-info:get path "/version"'
    rules = [{"apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate"]}]
    group = "/apis/rbac.authorization.k8s.io/v1"
    await ask(admin, "POST", f"{group}/clusterroles", {"metadata": {"name": "i"}, "rules": rules})
    bound = {
        "metadata": {"name": "i"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "i"},
        "subjects": [{"kind": "User", "name": "jane"}],
    }
    await ask(admin, "POST", f"{group}/clusterrolebindings", bound)
    assert (await who(jane, impersonate_user="bob"))["username"] == "bob"
    assert (await ask(jane, "POST", ME, {}, impersonate_user="eve"))[0] == 403
    masters = {"impersonate_user": "bob", "impersonate_group": "system:masters"}
    assert (await ask(jane, "POST", ME, {}, **masters))[0] == 403
    assert (await ask(jane, "GET", "/version", impersonate_group="g"))[0] == 400


def test_a_service_account_token_is_valid_only_while_its_objects_exist():
    async def main():
        server = Server(virtual.world(), tokens=["t"], authorization="RBAC")
        admin = server.transport()

        async def issued(name, **spec):
            status, body = await ask(admin, "POST", f"{ACCOUNTS}/{name}/token", {"spec": spec})
            assert status == 201, body
            return body["status"]["token"]

        async def good(token):
            return (await ask(server.transport(token), "GET", "/version"))[0] == 200

        for name in ("timed", "deleted", "replaced", "bound"):
            await ask(admin, "POST", ACCOUNTS, {"metadata": {"name": name}})
        await ask(admin, "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
        reference = {"apiVersion": "v1", "kind": "Secret", "name": "s"}
        tokens = {name: await issued(name) for name in ("deleted", "replaced")}
        tokens["bound"] = await issued("bound", boundObjectRef=reference)
        tokens["timed"] = await issued("timed", expirationSeconds=600)
        other_token = await issued("timed", audiences=["elsewhere"])
        assert all([await good(token) for token in tokens.values()])
        assert not await good(other_token)
        assert not await good(tokens["timed"][:-4] + "AAAA")
        for path in (f"{ACCOUNTS}/deleted", f"{ACCOUNTS}/replaced", "/api/v1/namespaces/default/secrets/s"):
            await ask(admin, "DELETE", path)
        await ask(admin, "POST", ACCOUNTS, {"metadata": {"name": "replaced"}})
        await asyncio.sleep(601)
        assert not any([await good(token) for token in tokens.values()])
        _, review = await ask(admin, "POST", REVIEW, {"spec": {"token": tokens["deleted"]}})
        assert review["status"] == {
            "user": {},
            "error": '[invalid bearer token, serviceaccounts "deleted" not found]',
        }

    virtual.run(main())


def certificate(name, groups, ca=None, ca_key=None):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        + [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    )
    import datetime

    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(ca.subject if ca else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=ca is None, path_length=None), critical=True)
        .sign(ca_key or key, hashes.SHA256())
    )
    return certificate, key


def pem(certificate, key):
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


async def test_a_client_certificate_authenticates_its_holder(tmp_path):
    ca, ca_key = certificate("clients", [])
    authority = ca.public_bytes(serialization.Encoding.PEM)
    server = Server(World(), tokens=["t"], authorization="RBAC")
    listening = await server.listen(client_ca=authority)
    (tmp_path / "client.pem").write_bytes(pem(*certificate("jane", ["dev", "ops"], ca, ca_key)))
    context = ssl.create_default_context(cadata=listening.ca.decode())
    context.load_cert_chain(tmp_path / "client.pem")
    async with aiohttp.ClientSession() as session:
        async with session.post(listening.url + ME, json={}, ssl=context) as response:
            user_info = (await response.json())["status"]["userInfo"]
        plain_context = ssl.create_default_context(cadata=listening.ca.decode())
        async with session.get(listening.url + "/version", ssl=plain_context) as response:
            assert response.status == 200  # a certificate is optional
    await listening.close()
    assert user_info == {"username": "jane", "groups": ["dev", "ops", "system:authenticated"]}


@settings(deadline=None)
@given(
    st.text(max_size=60) | st.from_regex(r"[\w\-]{0,40}\.[\w\-]{0,40}\.[\w\-=.]{0,90}"),
    st.dictionaries(HEADERS, st.text(max_size=20)),
)
def test_no_credential_causes_an_internal_error(token, extra_headers):
    server = Server(World(), tokens=["t"], authorization="RBAC")
    account = {"metadata": {"name": "x", "namespace": "default", "uid": "u"}}
    server.service_account_tokens.issue(account, ["a"], 600, {})  # so that there is a key to compare with
    headers = {**extra_headers, "authorization": f"Bearer {token}"}
    _, credential, *_ = [*f"Bearer {token}".strip().split(" "), ""]
    expected = {"t": {200, 400, 403}, "": {400, 403}}.get(credential, {401})
    assert server.respond(Request("GET", "/api/v1/pods", {}, headers)).status in expected
    headers = {**extra_headers, "authorization": "Bearer t"}
    assert server.respond(Request("GET", "/api/v1/pods", {}, headers)).status in (200, 400, 403)
