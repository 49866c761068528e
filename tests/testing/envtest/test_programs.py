"""The programs of `fairlead envtest`, started in the way of envtest: `etcd`, then `kube-apiserver`."""

import datetime
import ipaddress
import json
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fairlead.testing.envtest import folder as assets

SECONDS = 30.0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def wait_for(check: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return check()
        except (OSError, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def expect_refused(port: int) -> None:
    with socket.socket() as sock:
        assert sock.connect_ex(("127.0.0.1", port)) != 0, "the port is still served"


class Authority:
    """A certificate authority, like the one that envtest creates in memory."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "envtest-environment")])
        self.certificate = self._sign(self.name, self.key, is_authority=True)

    def issue(self, folder: Path, name: str, subject: list[x509.NameAttribute[str]]) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(x509.Name(subject), key, is_authority=False)
        paths = folder / f"{name}.crt", folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pkcs8 = serialization.PrivateFormat.PKCS8
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, pkcs8, serialization.NoEncryption()))
        return paths

    def write(self, path: Path) -> None:
        path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self.key, hashes.SHA256())
        )


class ControlPlane:
    """Starts and stops the two programs with the flags of envtest."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.binaries, self.folder = binaries, folder
        self.etcd_port, self.port = free_port(), free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        serving, clients = Authority(), Authority()
        serving.issue(folder, "apiserver", [x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        serving.issue(folder, "sa-signer", [x509.NameAttribute(NameOID.COMMON_NAME, "sa")])
        serving.write(folder / "serving-ca.crt")
        clients.write(folder / "client-cert-auth-ca.crt")
        self.admin = clients.issue(
            folder,
            "admin",
            [
                x509.NameAttribute(NameOID.COMMON_NAME, "admin"),
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
            ],
        )

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen([self.binaries / name, *arguments], stdout=log, stderr=log, process_group=0)
        self.processes.append(process)
        return process

    def start_etcd(self) -> subprocess.Popen[bytes]:
        url = f"http://127.0.0.1:{self.etcd_port}"
        flags = [f"--data-dir={self.folder}", f"--listen-client-urls={url}", "--unsafe-no-fsync=true"]
        process = self.start("etcd", f"--advertise-client-urls={url}", *flags)
        wait_for(lambda: urllib.request.urlopen(f"{url}/health").read())
        return process

    def start_apiserver(self, *more: str) -> subprocess.Popen[bytes]:
        folder, url = self.folder, f"https://127.0.0.1:{self.port}/"
        process = self.start(
            "kube-apiserver",
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={folder}",
            f"--client-ca-file={folder}/client-cert-auth-ca.crt",
            "--disable-admission-plugins=ServiceAccount",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--secure-port={self.port}",
            f"--service-account-issuer={url}",
            f"--service-account-key-file={folder}/sa-signer.crt",
            f"--service-account-signing-key-file={folder}/sa-signer.key",
            "--service-cluster-ip-range=10.0.0.0/24",
            *more,
        )
        wait_for(lambda: self.request("GET", "/healthz", anonymous=True))
        return process

    def request(
        self, method: str, path: str, body: Any = None, *, anonymous: bool = False, token: str = ""
    ) -> dict[str, Any]:
        context = ssl.create_default_context(cafile=str(self.folder / "serving-ca.crt"))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not anonymous:
            context.load_cert_chain(*self.admin)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=context) as response:
                content = response.read()
        except urllib.error.HTTPError as error:
            error.close()
            raise
        return {} if content == b"ok" else json.loads(content)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def stop(self, process: subprocess.Popen[bytes]) -> int:
        os.killpg(process.pid, signal.SIGTERM)
        return process.wait(SECONDS)


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assets")
    assets.write_folder(folder)
    return folder


@pytest.fixture
def control_plane(binaries: Path, tmp_path: Path) -> Iterator[ControlPlane]:
    plane = ControlPlane(binaries, tmp_path)
    yield plane
    for process in plane.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_certificates_of_envtest_are_used(control_plane: ControlPlane) -> None:
    control_plane.start_etcd()
    control_plane.start_apiserver()
    # The client verifies the serving certificate, and its own certificate makes it an administrator.
    review = control_plane.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert review["status"]["userInfo"]["username"] == "admin"
    assert "system:masters" in review["status"]["userInfo"]["groups"]
    assert control_plane.request("GET", "/api/v1/namespaces/default")["metadata"]["name"] == "default"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        control_plane.request("GET", "/api/v1/namespaces", anonymous=True)


def test_tokens_are_signed_with_the_given_key_and_issuer(control_plane: ControlPlane) -> None:
    control_plane.start_etcd()
    control_plane.start_apiserver()
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    control_plane.request("POST", accounts, {"metadata": {"name": "robot"}})
    answer = control_plane.request("POST", f"{accounts}/robot/token", {"spec": {}})
    assert answer["spec"]["audiences"] == [f"https://127.0.0.1:{control_plane.port}/"]
    review = control_plane.request(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {},
        anonymous=True,
        token=answer["status"]["token"],
    )
    assert review["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"


def test_state_survives_a_restart_of_the_api_server_alone(control_plane: ControlPlane) -> None:
    control_plane.start_etcd()
    first = control_plane.start_apiserver()
    maps = "/api/v1/namespaces/default/configmaps"
    created = control_plane.request("POST", maps, {"metadata": {"name": "kept"}, "data": {"a": "1"}})
    definition = {
        "metadata": {"name": "kites.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "kites", "kind": "Kite"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    control_plane.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert control_plane.stop(first) == 0
    with pytest.raises(OSError, match="refused"):
        control_plane.request("GET", "/healthz", anonymous=True)
    control_plane.start_apiserver("--enable-admission-plugins=AlwaysPullImages")
    assert control_plane.request("GET", f"{maps}/kept") == created
    assert control_plane.request("GET", "/apis/example.com/v1/kites")["items"] == []
    later = control_plane.request("POST", maps, {"metadata": {"name": "later"}})
    assert int(later["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


def test_killed_programs_leave_nothing_behind(control_plane: ControlPlane) -> None:
    etcd = control_plane.start_etcd()
    first = control_plane.start_apiserver()
    first.kill()
    first.wait()
    wait_for(lambda: expect_refused(control_plane.port))
    second = control_plane.start_apiserver()
    etcd.kill()
    etcd.wait()
    assert second.wait(SECONDS) == 1
    expect_refused(control_plane.port)


def test_programs_end_when_the_suite_is_gone(binaries: Path) -> None:
    port = free_port()
    # The shell is the suite: it starts etcd, and ends without stopping it.
    script = '"$0" --listen-client-urls=http://127.0.0.1:$1 >/dev/null 2>&1 & sleep 2'
    suite = subprocess.Popen(["/bin/sh", "-c", script, str(binaries / "etcd"), str(port)])
    wait_for(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/health").read())
    assert suite.wait(SECONDS) == 0

    wait_for(lambda: expect_refused(port))


def test_sigterm_ends_both_programs_in_any_order(control_plane: ControlPlane) -> None:
    etcd = control_plane.start_etcd()
    apiserver = control_plane.start_apiserver()
    assert control_plane.stop(etcd) == 0
    assert apiserver.wait(SECONDS) == 0


def test_faults_are_injected_and_reported_at_the_end(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, report = control_plane.folder / "plan.yaml", control_plane.folder / "report.txt"
    plan.write_text("faults: [{status: 409, verb: update, kind: ConfigMap, count: 1}]")
    monkeypatch.setenv("FAIRLEAD_FAULTS", str(plan))
    monkeypatch.setenv("FAIRLEAD_REPORT", str(report))
    control_plane.start_etcd()
    server = control_plane.start_apiserver()
    maps = "/api/v1/namespaces/default/configmaps"
    control_plane.request("POST", maps, {"metadata": {"name": "a"}})
    with pytest.raises(urllib.error.HTTPError, match="409"):
        control_plane.request("PUT", f"{maps}/a", {"metadata": {"name": "a"}, "data": {"k": "v"}})
    control_plane.request("PUT", f"{maps}/a", {"metadata": {"name": "a"}, "data": {"k": "v"}})
    control_plane.request("PUT", f"{maps}/a", {"metadata": {"name": "a"}, "data": {"k": "v"}})
    control_plane.stop(server)
    injected, header, client = report.read_text().splitlines()
    assert injected == "injected faults: 1 x status 409"
    assert header.split()[:4] == ["client", "requests", "writes", "conflicts"]
    assert client.split()[1:] == ["4", "4", "1", "0", "1"]
    assert injected in control_plane.log("kube-apiserver")


def test_unreadable_fault_plan_ends_the_program_with_a_reason(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_FAULTS", "/nonexistent/plan.yaml")
    control_plane.start_etcd()
    process = control_plane.start("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{control_plane.etcd_port}")
    assert process.wait(SECONDS) == 1
    assert "/nonexistent/plan.yaml" in control_plane.log("kube-apiserver")


def test_unknown_flags_are_accepted_with_a_note(control_plane: ControlPlane) -> None:
    control_plane.start_etcd()
    control_plane.start_apiserver("--configure-called=true", "--feature-gates=Foo=true", "--v=4")
    log = control_plane.log("kube-apiserver")
    assert "ignores --configure-called" in log
    assert "ignores --feature-gates=Foo=true" in log
    assert "--v" not in log


def test_wrong_flags_end_the_program_with_a_reason(control_plane: ControlPlane) -> None:
    control_plane.start_etcd()
    etcd = f"--etcd-servers=http://127.0.0.1:{control_plane.etcd_port}"
    process = control_plane.start("kube-apiserver", etcd, "--client-ca-file=/nonexistent/ca.crt")
    assert process.wait(SECONDS) == 1
    assert "--client-ca-file: cannot read /nonexistent/ca.crt" in control_plane.log("kube-apiserver")


def test_api_server_without_our_etcd_names_the_remedy(binaries: Path) -> None:
    command = [binaries / "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{free_port()}"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert completed.returncode == 1
    assert "start the etcd of this folder first" in completed.stderr


def test_socket_folder_of_other_users_is_refused(binaries: Path, tmp_path: Path) -> None:
    (tmp_path / f"fairlead-{os.getuid()}").mkdir(mode=0o755)
    command = [binaries / "etcd", f"--listen-client-urls=http://127.0.0.1:{free_port()}"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    completed = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS, check=False)
    assert completed.returncode == 1
    assert "is accessible to other users: remove it, or set TMPDIR" in completed.stderr


def test_help_is_what_envtest_looks_for(binaries: Path) -> None:
    etcd = subprocess.run([binaries / "etcd", "--help"], capture_output=True, text=True, check=True).stdout
    assert any(line.lstrip().startswith("--unsafe-no-fsync") for line in etcd.splitlines())
    server = subprocess.run([binaries / "kube-apiserver", "--help"], capture_output=True, text=True, check=True).stdout
    assert not any(line.lstrip().startswith("--insecure-port") for line in server.splitlines())
