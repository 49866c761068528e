"""Run a real kube-apiserver with etcd on loopback during a test run.

The binaries come from the locations that Go's envtest uses, or from `make real`. This module downloads nothing.
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
"""The release that `make real` builds. The embedded server must behave like it."""

ATTEMPTS = 3
"""Number of start attempts. Another process may take a free port before the server binds it."""

START_SECONDS = 60.0
"""Time limit of one start. 2 to 5 seconds are usual; a busy machine takes longer."""


class RealServerError(UserError):
    """The binaries were not found, or the real server did not start. The message names the fix."""


def cache_folder() -> Path:
    """Return the folder where `make real` stores the binaries."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fairlead" / "real" / VERSION


def find(name: str) -> Path | None:
    """Return the path of a binary (`kube-apiserver`, `etcd`, `kubectl`, ...), or None if it is not installed.

    The search order is that of envtest: TEST_ASSET_<NAME>, $KUBEBUILDER_ASSETS, /usr/local/kubebuilder/bin, then the
    folder of `make real`. A variable that names a missing file raises an error instead of continuing the search.
    """
    variable = "TEST_ASSET_" + name.upper().replace("-", "_")
    if asset := os.environ.get(variable):
        if not os.access(asset, os.X_OK):
            raise RealServerError(f"{variable} names {asset}, which cannot be run: correct or unset it")
        return Path(asset)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for folder in ([Path(assets)] if assets else []) + [Path("/usr/local/kubebuilder/bin"), cache_folder()]:
        path = folder / name
        if os.access(path, os.X_OK):
            return path
    return None


def missing() -> str | None:
    """Return an error message if etcd or kube-apiserver is not installed, else None."""
    absent = [name for name in ("etcd", "kube-apiserver") if find(name) is None]
    remedy = "set KUBEBUILDER_ASSETS (`setup-envtest use -p path` prints it), or `make real` in fairlead's sources"
    return f"{' and '.join(absent)} not found: {remedy}" if absent else None


class RealServer:
    """An etcd and a kube-apiserver process with RBAC, an admin token (system:masters) and TLS with its own CA.

    Guarantees: both processes listen on loopback only. `stop` ends them and removes their folder. The same happens when
    this process dies in any way. After `crash`, `recover` restarts them with the same data, address, CA and token.

    Does not guarantee: garbage collection, namespace deletion or default ServiceAccounts. `start_controllers` runs the
    controllers for the first two. `recover` does not restart them.
    """

    def __init__(
        self, world: World | None = None, *, audit: Path | None = None, audit_policy: Path | None = None
    ) -> None:
        self._audit, self._audit_policy = audit, audit_policy
        self.token = (world or World()).uid()
        self.url = ""
        self.ca_data = b""
        self._folder = Path(tempfile.mkdtemp(prefix="fairlead-real-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._watchdogs: list[subprocess.Popen[bytes]] = []
        self._ports: tuple[int, int, int] = 0, 0, 0  # etcd's client and peer ports, and the server's port
        self._home = self._folder

    def start(self) -> "RealServer":
        """Start etcd and kube-apiserver, and return when the server is ready.

        Raises: RealServerError with the last lines of the log.
        """
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
        """Kill the processes and remove their folder with all data."""
        self.crash()
        shutil.rmtree(self._folder, ignore_errors=True)

    def crash(self) -> None:
        """Kill all processes, like a power failure, and keep the stored data."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._processes.clear()
        for watchdog in self._watchdogs:
            watchdog.kill()
            watchdog.wait()
            assert watchdog.stdin is not None
            watchdog.stdin.close()
        self._watchdogs.clear()

    def recover(self) -> None:
        """Restart the crashed processes and return when the server is ready."""
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
            "--unsafe-no-fsync=true",  # The data does not have to survive a power failure.
        )
        server = self._spawn(
            api,
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={folder / 'certs'}",
            "--disable-admission-plugins=ServiceAccount",  # No controller creates default ServiceAccounts.
            f"--etcd-servers=http://127.0.0.1:{client}",
            f"--secure-port={secure}",
            f"--service-account-issuer=https://127.0.0.1:{secure}/",
            f"--service-account-key-file={self._folder / 'sa.key'}",
            f"--service-account-signing-key-file={self._folder / 'sa.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            *self._build_audit_flags(),
        )
        self.url = f"https://127.0.0.1:{secure}"
        self._wait_until_ready([store, server], folder / "certs" / "apiserver.crt")

    @property
    def data(self) -> Path:
        """The data folder of etcd. Tests may copy or replace the folder after `crash`."""
        return self._home / "etcd"

    def __enter__(self) -> "RealServer":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def request(self, method: str, path: str, body: object = None) -> bytes:
        """Send one request with the admin token and return the response body. For synchronous test setup.

        Raises: OSError; HTTPError if the server rejects the request.
        """
        request = urllib.request.Request(  # noqa: S310 - the https address of this server
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        context = ssl.create_default_context(cadata=self.ca_data.decode())
        with urllib.request.urlopen(request, timeout=30, context=context) as response:  # noqa: S310
            return bytes(response.read())

    @property
    def pids(self) -> list[int]:
        """The process ids of etcd, kube-apiserver and kube-controller-manager, in this order."""
        return [process.pid for process in self._processes]

    def kubeconfig(self) -> Path:
        """Write a kubeconfig for this server with mode 0600 and return its path. `stop` removes it."""
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
        """Run the namespace and garbage-collector controllers until the server stops."""
        binary = find("kube-controller-manager")
        if binary is None:
            raise RealServerError("kube-controller-manager not found: run `make real`")
        self._spawn(
            binary,
            f"--kubeconfig={self.kubeconfig()}",
            "--controllers=namespace-controller,garbage-collector-controller",
            "--bind-address=127.0.0.1",
            f"--secure-port={_find_free_port()}",
            f"--cert-dir={self._folder / 'controllers'}",
            "--leader-elect=false",
        )

    def _start_once(self) -> "RealServer":
        self._ports = _find_free_port(), _find_free_port(), _find_free_port()
        self._home = Path(tempfile.mkdtemp(prefix="start-", dir=self._folder))
        self.recover()
        return self

    def _build_audit_flags(self) -> list[str]:
        if self._audit is None:
            return []
        if self._audit_policy is not None:
            return [f"--audit-policy-file={self._audit_policy}", f"--audit-log-path={self._audit}"]
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
                processes[-1].wait(pause)  # Stop waiting early if the server exits.
            for process in processes:
                if process.poll() is not None:
                    raise RealServerError(
                        f"{_get_binary_name(process)} ended while starting: {self._read_last_log_lines(process)}"
                    )
            if certificate.exists():
                # The server signs its own certificate and appends the CA that it created.
                self.ca_data = b"-----BEGIN" + certificate.read_bytes().rpartition(b"-----BEGIN")[2]
                if self._is_ready():
                    return
        raise RealServerError(
            f"no ready server after {START_SECONDS:.0f} s: {self._read_last_log_lines(processes[-1])}"
        )

    def _is_ready(self) -> bool:
        """Return whether /readyz succeeds and the Service `kubernetes` exists, which is created a moment later."""
        try:
            self.request("GET", "/readyz")
            self.request("GET", "/api/v1/namespaces/default/services/kubernetes")
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
                start_new_session=True,  # Ctrl-C goes to the test run, which calls `stop`.
            )
        self._processes.append(process)
        self._watchdogs.append(_start_watchdog(process.pid, self._folder))
        return process

    def _read_last_log_lines(self, process: subprocess.Popen[bytes]) -> str:
        lines = (self._folder / f"{_get_binary_name(process)}.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-8:])


def _start_watchdog(pid: int, folder: Path) -> subprocess.Popen[bytes]:
    """Start a shell that kills `pid` and removes `folder` when this Python process ends in any way.

    The shell waits for the end of its standard input, which is closed when this process ends.
    """
    script = 'cat >/dev/null; kill -9 "$1"; rm -rf "$2"'
    return subprocess.Popen(  # noqa: S603
        ["/bin/sh", "-c", script, "fairlead-watchdog", str(pid), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _get_binary_name(process: subprocess.Popen[bytes]) -> str:
    assert isinstance(process.args, list)
    return Path(process.args[0]).name


def _find_free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def main() -> None:
    """Run a real server until Ctrl-C, and print the line that sets KUBECONFIG: `python -m fairlead.testing.real`."""
    with RealServer() as server:
        print(f"export KUBECONFIG={server.kubeconfig()}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()


if __name__ == "__main__":
    main()
