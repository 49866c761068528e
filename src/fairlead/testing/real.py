"""A real kube-apiserver with its etcd, on loopback, for the length of a test run: the ground truth.

Binaries are found where Go's envtest finds them, then where `make real` builds them. Nothing is downloaded.
"""

import base64
import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from fairlead.api.errors import UserError
from fairlead.api.world import World

VERSION = "v1.36.4"
"""The release that `make real` builds and that the embedded server is held against."""

ATTEMPTS = 3
"""Starts before giving up: a port that was free may be taken before the server binds it."""

START_SECONDS = 60.0
"""How long one start may take; 2 to 5 seconds are usual, a busy machine takes longer."""


class RealServerError(UserError):
    """A real server could not be found or started; the message says what to do."""


def cache_folder() -> Path:
    """Where `make real` puts its binaries."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fairlead" / "real" / VERSION


def find(name: str) -> Path | None:
    """The binary of that name (`kube-apiserver`, `etcd`, `kubectl`, ...), looked up as envtest does, or None.

    TEST_ASSET_<NAME>, then $KUBEBUILDER_ASSETS, /usr/local/kubebuilder/bin and the folder of `make real`. A variable
    that names a missing file is an error rather than a silent step to the next place.
    """
    variable = "TEST_ASSET_" + name.upper().replace("-", "_")
    if named := os.environ.get(variable):
        if not os.access(named, os.X_OK):
            raise RealServerError(f"{variable} names {named}, which cannot be run: correct or unset it")
        return Path(named)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for folder in ([Path(assets)] if assets else []) + [Path("/usr/local/kubebuilder/bin"), cache_folder()]:
        path = folder / name
        if os.access(path, os.X_OK):
            return path
    return None


def missing() -> str | None:
    """Why no real server can be started here, or None."""
    absent = [name for name in ("etcd", "kube-apiserver") if find(name) is None]
    remedy = "set KUBEBUILDER_ASSETS (`setup-envtest use -p path` prints it), or `make real` in fairlead's sources"
    return f"{' and '.join(absent)} not found: {remedy}" if absent else None


class RealServer:
    """etcd and kube-apiserver, running: RBAC on, one token of system:masters, TLS with a CA of its own.

    Guarantees: loopback only; both processes and their folder are gone after `stop`, and also when this process dies
    in any way. There is no controller manager until `start_controllers`: nothing collects garbage, deletes what is in
    a namespace, or makes default ServiceAccounts. After `crash`, `recover` brings it back with what was stored, at the
    same address, with the same CA and token; the controllers do not come back by themselves.
    """

    def __init__(self, world: World | None = None, *, audit: Path | None = None) -> None:
        self._audit = audit
        self.token = (world or World()).uid()
        self.url = ""
        self.ca_data = b""
        self._folder = Path(tempfile.mkdtemp(prefix="fairlead-real-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._keepers: list[subprocess.Popen[bytes]] = []
        self._ports: tuple[int, int, int] = 0, 0, 0  # etcd's two, and the server's
        self._home = self._folder

    def start(self) -> "RealServer":
        """Start both and return when the server is ready. Raises RealServerError with the end of the log."""
        if reason := missing():
            self.stop()
            raise RealServerError(reason)
        self._write_credentials()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._start_once()
            except RealServerError:
                self.crash()
                if attempt == ATTEMPTS:
                    self.stop()
                    raise
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """Kill both (their data is thrown away, so there is nothing to shut down in order) and remove their folder."""
        self.crash()
        shutil.rmtree(self._folder, ignore_errors=True)

    def crash(self) -> None:
        """Kill everything at once, as a power cut does, and keep what was stored."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._processes.clear()
        for keeper in self._keepers:
            keeper.kill()
            keeper.wait()
            assert keeper.stdin is not None
            keeper.stdin.close()
        self._keepers.clear()

    def recover(self) -> None:
        """Start again what crashed, and return when it is ready."""
        client, peer, secure = self._ports
        folder = self._home
        etcd, api = find("etcd"), find("kube-apiserver")
        assert etcd is not None
        assert api is not None
        store = self._spawn(
            etcd,
            f"--data-dir={self.data}",
            f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync=true",  # the data need not outlive the machine
        )
        server = self._spawn(
            api,
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={folder / 'certs'}",
            "--disable-admission-plugins=ServiceAccount",  # nothing makes default ServiceAccounts here
            f"--etcd-servers=http://127.0.0.1:{client}",
            f"--secure-port={secure}",
            f"--service-account-issuer=https://127.0.0.1:{secure}/",
            f"--service-account-key-file={self._folder / 'sa.key'}",
            f"--service-account-signing-key-file={self._folder / 'sa.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            *self._audit_flags(),
        )
        self.url = f"https://127.0.0.1:{secure}"
        self._wait_until_ready([store, server], folder / "certs" / "apiserver.crt")

    @property
    def data(self) -> Path:
        """The folder where etcd keeps everything. While crashed it can be copied, and a copy put in its place."""
        return self._home / "etcd"

    def __enter__(self) -> "RealServer":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def request(self, method: str, path: str, body: object = None) -> bytes:
        """One request as the admin, for set-up from code that is not async. Raises OSError (HTTPError on a refusal)."""
        request = urllib.request.Request(  # noqa: S310 - our own https address
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        context = ssl.create_default_context(cadata=self.ca_data.decode())
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:  # noqa: S310
            return bytes(answer.read())

    @property
    def pids(self) -> list[int]:
        """Its processes, etcd's first."""
        return [process.pid for process in self._processes]

    def kubeconfig(self) -> Path:
        """A kubeconfig for this server, mode 0600, removed with it. Written as JSON, which is YAML."""
        path = self._folder / "kubeconfig"
        cluster = {"server": self.url, "certificate-authority-data": base64.b64encode(self.ca_data).decode()}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
            "current-context": "real",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path

    def start_controllers(self) -> None:
        """Run the namespace and garbage-collector controllers beside the server, until it stops."""
        binary = find("kube-controller-manager")
        if binary is None:
            raise RealServerError("kube-controller-manager not found: run `make real`")
        self._spawn(
            binary,
            f"--kubeconfig={self.kubeconfig()}",
            "--controllers=namespace-controller,garbage-collector-controller",
            "--bind-address=127.0.0.1",
            f"--secure-port={_free_port()}",
            f"--cert-dir={self._folder / 'controllers'}",
            "--leader-elect=false",
        )

    def _start_once(self) -> "RealServer":
        self._ports = _free_port(), _free_port(), _free_port()
        self._home = Path(tempfile.mkdtemp(prefix="start-", dir=self._folder))
        self.recover()
        return self

    def _audit_flags(self) -> list[str]:
        if self._audit is None:
            return []
        policy = self._folder / "audit.yaml"
        policy.write_text(
            json.dumps(
                {
                    "apiVersion": "audit.k8s.io/v1",
                    "kind": "Policy",
                    "omitStages": ["RequestReceived"],
                    "rules": [{"level": "Metadata"}],
                }
            )
        )
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self._audit}"]

    def _write_credentials(self) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        tokens = self._folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f"{self.token},admin,admin,system:masters\n")
        key = self._folder / "sa.key"
        key.touch(mode=0o600)
        pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        key.write_bytes(pem)

    def _wait_until_ready(self, processes: Sequence[subprocess.Popen[bytes]], certificate: Path) -> None:
        pause = 0.05
        for _ in range(int(START_SECONDS / pause)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                processes[-1].wait(pause)  # a pause that ends early when the server does
            for process in processes:
                if process.poll() is not None:
                    raise RealServerError(f"{_name(process)} ended while starting: {self._log_end(process)}")
            if certificate.exists():
                # The server signs its own certificate and appends the CA that it made for it.
                self.ca_data = b"-----BEGIN" + certificate.read_bytes().rpartition(b"-----BEGIN")[2]
                if self._is_ready():
                    return
        raise RealServerError(f"no ready server after {START_SECONDS:.0f} s: {self._log_end(processes[-1])}")

    def _is_ready(self) -> bool:
        """Whether it says so, and the default namespace (made a moment later) is there."""
        try:
            self.request("GET", "/readyz")
            self.request("GET", "/api/v1/namespaces/default")
        except OSError:
            return False
        return True

    def _spawn(self, binary: Path, *flags: str) -> subprocess.Popen[bytes]:
        log = self._folder / f"{binary.name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(  # noqa: S603
                [binary, *flags],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C is for the test run; it stops us in order
            )
        self._processes.append(process)
        self._keepers.append(_keep(process.pid, self._folder))
        return process

    def _log_end(self, process: subprocess.Popen[bytes]) -> str:
        lines = (self._folder / f"{_name(process)}.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-8:])


def _keep(pid: int, folder: Path) -> subprocess.Popen[bytes]:
    """A shell that outlives us only to kill `pid`: its standard input ends when this process does, however it dies."""
    script = 'cat >/dev/null; kill -9 "$1"; rm -rf "$2"'
    return subprocess.Popen(  # noqa: S603
        ["/bin/sh", "-c", script, "fairlead-keeper", str(pid), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _name(process: subprocess.Popen[bytes]) -> str:
    assert isinstance(process.args, list)
    return Path(process.args[0]).name


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def main() -> None:
    """`python -m fairlead.testing.real`: run one until Ctrl-C and say how to reach it."""
    with RealServer() as server:
        print(f"export KUBECONFIG={server.kubeconfig()}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()


if __name__ == "__main__":
    main()
