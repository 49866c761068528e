"""Tests of TLS: client and server certificates are verified, and an untrusted server receives nothing."""

import asyncio
import contextlib
import dataclasses
import datetime
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fairlead.api.requests import HttpRequest
from fairlead.client.access import Cluster
from fairlead.client.credentials import CredentialsError, Identity, StaticCredentials
from fairlead.client.http import HttpTransport
from fairlead.client.transport import NotSent

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Authority:
    """A certificate authority without key identifiers, like those of old kubeadm versions."""

    def __init__(self, name):
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._certificate = self._sign(self._name, self._key, x509.BasicConstraints(True, None))
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def _sign(self, subject, key, *extensions):
        start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(start).not_valid_after(start.replace(year=2120))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())

    def issue(self, name, address=None, password=None):
        """Return a certificate and its key, both as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(name)] + ([x509.IPAddress(ipaddress.ip_address(address))] if address else [])
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key, x509.SubjectAlternativeName(names))
        encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        )


@pytest.fixture(scope="module")
def authority():
    return Authority("ours")


@pytest.fixture(scope="module")
def untrusted_authority():
    return Authority("theirs")


@pytest.fixture
async def server(raw_server, authority, tmp_path):
    """Start a TLS server for api.example and 127.0.0.1. It returns the common name of the client certificate."""
    certificate, key = authority.issue("api.example", "127.0.0.1")
    for name, content in (("cert", certificate), ("key", key), ("ca", authority.pem)):
        (tmp_path / name).write_bytes(content)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=tmp_path / "ca")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # like servers in Go
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")

    async def handle(raw_server, reader, writer):
        while True:
            await raw_server.request(reader)
            peer_certificate = writer.get_extra_info("peercert")
            name = peer_certificate["subject"][0][0][1] if peer_certificate else "nobody"
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(name)}\r\n\r\n{name}".encode())

    return await raw_server.start(handle, ssl=context)


async def get_body(cluster, identity=None):
    transport = HttpTransport(cluster, StaticCredentials(identity or Identity()))
    try:
        return (await transport.request(HttpRequest("GET", "/"))).body.decode()
    finally:
        await transport.close()


async def test_a_custom_ca_is_trusted(server, authority):
    assert await get_body(Cluster(server.url, authority.pem)) == "nobody"


async def test_a_client_certificate_is_presented(server, authority):
    assert await get_body(Cluster(server.url, authority.pem), Identity(None, *authority.issue("jane"))) == "jane"


async def test_a_renewed_certificate_is_used_for_the_next_request(server, authority):
    class RotatingCredentials(StaticCredentials):
        async def identity(self):
            return Identity(None, *next(certificates))

    first_pair, renewed_pair = authority.issue("jane"), authority.issue("joan")
    certificates = iter([first_pair, first_pair, renewed_pair])
    transport = HttpTransport(Cluster(server.url, authority.pem), RotatingCredentials())
    try:
        common_names = [(await transport.request(HttpRequest("GET", "/"))).body for _ in range(3)]
    finally:
        await transport.close()
    assert common_names == [b"jane", b"jane", b"joan"]
    assert server.connections == 2


@pytest.mark.parametrize("trusted_authority", ["stranger", "system"])
async def test_nothing_is_sent_to_an_untrusted_server(trusted_authority, server, untrusted_authority):
    cluster = Cluster(server.url, untrusted_authority.pem if trusted_authority == "stranger" else None)
    with pytest.raises(NotSent, match="certificate-authority"):
        await get_body(cluster, Identity("Bearer secret"))
    assert not server.requests


async def test_tls_server_name_overrides_the_host(server, authority):
    assert await get_body(Cluster(server.url, authority.pem, tls_server_name="api.example")) == "nobody"
    with pytest.raises(NotSent, match="tls-server-name"):
        await get_body(Cluster(server.url, authority.pem, tls_server_name="other.example"))


async def test_insecure_skip_tls_verify_trusts_any_server(server):
    assert await get_body(Cluster(server.url, insecure=True)) == "nobody"


async def test_invalid_pem_error_names_the_fix(server, authority, untrusted_authority):
    certificate, _ = authority.issue("jane")
    _, other_key = untrusted_authority.issue("jane")
    encrypted_pair = authority.issue("jane", password=b"secret")
    for identity in (
        Identity(None, b"x", b"y"),
        Identity(None, certificate, other_key),
        Identity(None, *encrypted_pair),
    ):
        with pytest.raises(CredentialsError, match="must be PEM, belong together"):
            await get_body(Cluster(server.url, authority.pem), identity)
    with pytest.raises(CredentialsError, match="not PEM certificates"):
        await get_body(Cluster(server.url, b"nonsense"))


class Proxy:
    """An HTTP proxy that accepts every CONNECT request and records its headers."""

    def __init__(self):
        self.request_heads = []
        self._relays = set()

    async def start(self, context):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        scheme = "https" if context else "http"
        return f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader, writer):
        self._relays.add(asyncio.current_task())
        self.request_heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        host, _, port = self.request_heads[-1].split()[1].rpartition(":")
        upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(self._relay(reader, upstream_writer), self._relay(upstream_reader, writer))

    async def _relay(self, reader, writer):
        with contextlib.suppress(OSError):
            while received_bytes := await reader.read(65536):
                writer.write(received_bytes)
        writer.close()

    async def stop(self):
        self._server.close()
        await asyncio.wait(self._relays, timeout=5)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("server_name", [None, "api.example"])
async def test_tls_is_verified_through_a_proxy(server, authority, tmp_path, scheme, server_name):
    context = None
    if scheme == "https":
        certificate, key = authority.issue("api.example", "127.0.0.1")
        (tmp_path / "proxy").write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "proxy")
    proxy = Proxy()
    url = await proxy.start(context)
    certificate, key = authority.issue("somebody")
    identity = Identity("Bearer secret", certificate, key)
    cluster = Cluster(
        server.url, authority.pem, tls_server_name=server_name, proxy_url=url.replace("://", "://me:pass@")
    )
    try:
        assert await get_body(cluster, identity) == "somebody"
        (request_head,) = proxy.request_heads
        assert request_head.startswith(f"CONNECT {server.address} ")
        assert "secret" not in request_head
        with pytest.raises(NotSent, match="is not trusted"):
            await get_body(dataclasses.replace(cluster, ca_data=None), identity)
    finally:
        await proxy.stop()
