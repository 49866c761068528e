"""Start the embedded server and a real server (etcd and kube-apiserver) for one benchmark run."""

import contextlib
import json
import os
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from fairlead.testing.real import RealServer, missing


@dataclass
class RunningServer:
    name: str
    url: str
    token: str
    pids: list
    kubeconfig: Path

    @classmethod
    def of(cls, real):
        """Return a running real server."""
        return cls("real", real.url, real.token, real.pids, real.kubeconfig())

    def memory(self):
        """Return the memory of the server's processes in megabytes."""
        lines = "".join(Path(f"/proc/{pid}/status").read_text() for pid in self.pids).splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def processor(self):
        """Return the CPU seconds that the server's processes have used."""
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids]
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")

    def send(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        encoded_body = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data=encoded_body, headers=headers, method=method)
        with urllib.request.urlopen(request, context=UNCHECKED) as response:
            return response.read()


class Clock:
    """Reads the CPU time of a process from /proc."""

    def __init__(self, *pids):
        self.pids = pids

    def cpu(self):
        ticks = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in self.pids]
        return sum(int(tick) for user_and_system in ticks for tick in user_and_system) / os.sysconf("SC_CLK_TCK")

    def peak(self):
        lines = Path(f"/proc/{self.pids[0]}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


UNCHECKED = ssl.create_default_context()
UNCHECKED.check_hostname, UNCHECKED.verify_mode = False, ssl.CERT_NONE  # our own servers, on loopback


@contextlib.contextmanager
def embedded(*flags):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "fairlead", "serve", "--write-kubeconfig", f"{folder}/config", *flags]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            url = [process.stdout.readline() for _ in range(2)][1].split()[-1]
            token = json.loads(Path(folder, "config").read_text())["users"][0]["user"]["token"]
            yield RunningServer("embedded", url, token, [process.pid], Path(folder, "config"))
            process.terminate()


@contextlib.contextmanager
def start_servers():
    """Return both servers. If no real server can be started, print the reason and return only the embedded one."""
    with contextlib.ExitStack() as stack:
        figures = [stack.enter_context(embedded())]
        if reason := missing():
            print(f"the real pair is left out: {reason}")
        else:
            real = stack.enter_context(RealServer())
            figures.append(RunningServer.of(real))
        for running_server in figures:
            running_server.send("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores before the run")
        yield figures
