"""TLS: the server's own certificate authority, stored with its state, and a new server certificate at each start."""

import datetime
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairlead.server.authentication.users import User

LIFETIME = datetime.timedelta(days=365)
AUTHORITY_LIFETIME = 10 * LIFETIME  # the CA is kept in the data directory, the certificates are not


@dataclass(frozen=True, slots=True)
class Identity:
    """The TLS identity of a listener: the SSL context of its sockets, and the CA (PEM) that clients must trust."""

    context: ssl.SSLContext
    ca: bytes


def create_authority(now: float) -> bytes:
    """Create a certificate authority. Return its key and its certificate as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fairlead")])
    ca = (
        _build_certificate(name, name, key, _compute_validity_start(now), AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_build_key_usage(can_sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _encode_pem(key) + ca.public_bytes(serialization.Encoding.PEM)


def create_identity(hosts: list[str], now: float, authority: bytes) -> Identity:
    """Create a server certificate for `hosts` that is valid for a year, signed by a CA from `create_authority`."""
    ca_key = serialization.load_pem_private_key(authority, None)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
    ca = x509.load_pem_x509_certificate(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    certificate = (
        _build_certificate(name, ca.subject, key, _compute_validity_start(now), LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_build_key_usage(can_sign_certificates=False), critical=True)
        .add_extension(x509.SubjectAlternativeName([_to_general_name(h) for h in hosts]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:  # the ssl module reads keys only from files
        chain = Path(folder) / "server.pem"
        chain.touch(mode=0o600)
        chain.write_bytes(_encode_pem(key) + certificate.public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(chain)
    return Identity(context, ca.public_bytes(serialization.Encoding.PEM))


def load_identity(certificate: Path, key: Path) -> Identity:
    """Return the identity whose certificate and key are in PEM files. Clients must trust the signer or the certificate.

    Raises ValueError if the files are not a certificate and its key, and OSError if one cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        reason = error.reason or error
        raise ValueError(f"{certificate} and {key} are not a certificate and its key in PEM format: {reason}") from None
    return Identity(context, certificate.read_bytes())


def trust_clients(context: ssl.SSLContext, ca: bytes) -> None:
    """Make the TLS context ask clients for a certificate and accept those signed by `ca` (PEM).

    A client without a certificate is accepted too.
    """
    try:
        context.load_verify_locations(cadata=ca.decode())
    except (ssl.SSLError, ValueError):
        raise ValueError("the client CA is not a certificate authority in PEM format") from None
    context.verify_mode = ssl.CERT_OPTIONAL


def user_from_certificate(certificate: dict[str, Any] | None) -> User | None:
    """Return the user of a verified client certificate, or None. CN is the name, each O is a group."""
    attributes = [pair for name_part in (certificate or {}).get("subject", ()) for pair in name_part]
    name = next((value for key, value in attributes if key == "commonName"), "")
    groups = tuple(value for key, value in attributes if key == "organizationName")
    return User(name, groups).with_authenticated_group() if name else None


def _compute_validity_start(now: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(now, datetime.UTC) - datetime.timedelta(hours=1)


def _encode_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _build_certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    start: datetime.datetime,
    lifetime: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + lifetime)
    )


def _build_key_usage(*, can_sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=can_sign_certificates,
        crl_sign=can_sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _to_general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
