"""The program `kube-apiserver`: it sends its flags to the program `etcd`, which serves the API until this one ends.

It runs as a file, without fairlead and without site-packages, so that it starts in a few milliseconds.
"""

import json
import os
import signal
import socket
import sys
from types import FrameType

DEFAULT_PORT = "2379"
PREFIXES = ("FAIRLEAD_", "ENVTEST_", "KUBE_API_TEST_")  # of the variables that `etcd` reads


def socket_path(port: str) -> str:
    """Return the path of the Unix socket of the program `etcd` that listens on a port."""
    # Not in the data directory, which kube-apiserver does not know. The folder is only accessible to this user.
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", f"fairlead-{os.getuid()}", f"etcd-{port}")  # noqa: PTH118, S108


def find_etcd_port(arguments: list[str]) -> str:
    """Return the port in --etcd-servers=http://HOST:PORT."""
    port = DEFAULT_PORT
    for index, argument in enumerate(arguments):
        name, equals, value = argument.lstrip("-").partition("=")
        if name == "etcd-servers":
            servers = value if equals else " ".join(arguments[index + 1 : index + 2])
            port = servers.split(",")[0].rstrip("/").rpartition(":")[2]
    return port


def main(arguments: list[str]) -> int:
    """Run until SIGTERM, SIGINT or the end of the program `etcd`. Return the exit status."""
    port = find_etcd_port(arguments)
    connection = socket.socket(socket.AF_UNIX)

    def stop(number: int, frame: FrameType | None) -> None:
        try:
            connection.shutdown(socket.SHUT_WR)  # `etcd` stops serving, and then closes the connection
        except OSError:
            sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        connection.connect(socket_path(port))
    except OSError:
        print(f"kube-apiserver: no etcd of fairlead listens on port {port}: start the etcd of this folder first, "
              "and name it with --etcd-servers", file=sys.stderr)  # fmt: skip
        return 1
    settings = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": settings}  # noqa: PTH109
    connection.sendall(json.dumps(request).encode() + b"\n")
    status = 1  # `etcd` ended without a word
    for line in connection.makefile("r", encoding="utf-8"):
        kind, _, text = line.partition(" ")
        if kind == "exit":
            status = int(text)
        else:
            print(text, end="", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
