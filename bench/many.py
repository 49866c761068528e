"""Measure 100,000 ConfigMaps on both servers with the same client: `python bench/many.py [--objects N]`.

The program creates 2,000 objects one at a time and the others over eight connections, and lists all in pages of 500.
Then it writes 2,000 more while 100 watchers, in their own process, read every event. It prints each rate with the
server's CPU time, which does not depend on other load of the machine.
"""

import argparse
import http.client
import json
import multiprocessing
import selectors
import socket
import time

from support.server_pair import UNCHECKED, start_servers

import report
from fairlead.testing.real import VERSION
from support import recording

SAMPLE, WATCHERS, SIDE_BY_SIDE = 2_000, 100, 8  # so many one at a time, and as many while there are watchers
PATIENCE = 300  # seconds for one answer, or for the last of all events
MAPS = "/api/v1/namespaces/bench/configmaps"


class Connection:
    """A raw HTTP/1.1 connection. A client library would distort the measurement."""

    def __init__(self, running_server):
        host, port = running_server.url.removeprefix("https://").split(":")
        self.socket = UNCHECKED.wrap_socket(socket.create_connection((host, int(port)), timeout=PATIENCE))
        self.head = f"Host: bench\r\nAuthorization: Bearer {running_server.token}\r\n"

    def send(self, method, path, body=b"", media="application/json"):
        request_head = f"{method} {path} HTTP/1.1\r\n{self.head}Content-Type: {media}\r\nContent-Length: {len(body)}"
        self.socket.sendall(request_head.encode() + b"\r\n\r\n" + body)

    def answer(self):
        received_bytes = self.until(b"\r\n\r\n")
        response_head, _, body = received_bytes.partition(b"\r\n\r\n")
        assert response_head.split()[1] in (b"200", b"201"), received_bytes
        length = next(line for line in response_head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        remaining = int(length.split(b":")[1]) - len(body)
        while remaining > 0:
            remaining -= len(self.received(remaining))

    def until(self, end):
        """Read until `end` has arrived, and return everything that was read."""
        received_bytes = b""
        while end not in received_bytes:
            received_bytes += self.received(65536)
        return received_bytes

    def received(self, maximum):
        if chunk := self.socket.recv(maximum):
            return chunk
        raise ConnectionError("the server closed the connection")


def config_map(index):
    data = {f"key-{i}": f"value {i} of {index}" for i in range(10)}
    compact = (",", ":")  # as client-go writes it
    return json.dumps({"metadata": {"name": f"c{index:06}"}, "data": data}, separators=compact).encode()


def create(connections, indexes):
    """Create the objects over all connections concurrently, and return the rate per second."""
    bodies = [config_map(index) for index in indexes]
    start = time.perf_counter()
    for at in range(0, len(bodies), len(connections)):
        busy = list(zip(connections, bodies[at : at + len(connections)], strict=False))
        for connection, body in busy:
            connection.send("POST", MAPS, body)
        for connection, _ in busy:
            connection.answer()
    return len(bodies) / (time.perf_counter() - start)


def measure_list(running_server):
    """List all objects in pages. Return the seconds and the number of objects."""
    host, port = running_server.url.removeprefix("https://").split(":")
    connection = http.client.HTTPSConnection(host, int(port), context=UNCHECKED)
    start, token, listed_count = time.perf_counter(), "", 0
    while True:
        path = f"{MAPS}?limit=500" + (f"&continue={token}" if token else "")
        connection.request("GET", path, headers={"Authorization": f"Bearer {running_server.token}"})
        body = connection.getresponse().read()
        page = json.loads(body)
        listed_count += len(page["items"])
        token = page["metadata"].get("continue", "")
        if not token:
            return time.perf_counter() - start, listed_count


def watch(running_server, version, expected, ready_event, finished_at):
    """Run watchers that count events until all events have arrived."""
    selector, counts, last = selectors.DefaultSelector(), {}, {}
    for _ in range(WATCHERS):
        connection = Connection(running_server)
        connection.send("GET", f"{MAPS}?watch=1&resourceVersion={version}")
        connection.socket.setblocking(False)
        selector.register(connection.socket, selectors.EVENT_READ)
        counts[connection.socket], last[connection.socket] = 0, b""
    ready_event.set()
    remaining = WATCHERS
    while remaining:
        for key, _ in selector.select():
            sock = key.fileobj
            try:
                while chunk := sock.recv(262144):
                    counts[sock] += (last[sock] + chunk).count(b"}\n")
                    last[sock] = chunk[-1:]  # an end may be cut in two
            except OSError:  # nothing more for now
                pass
            if counts[sock] >= expected:
                selector.unregister(sock)
                remaining -= 1
    finished_at.value = time.perf_counter()


def measure_events(running_server, objects, sample):
    """Write objects over one connection. Return the events per second that were delivered to all watchers."""
    version = json.loads(running_server.send("GET", f"{MAPS}?limit=1"))["metadata"]["resourceVersion"]
    ready_event, finished_at = multiprocessing.Event(), multiprocessing.Value("d", 0.0)
    reader = multiprocessing.Process(
        target=watch, args=(running_server, version, sample, ready_event, finished_at), daemon=True
    )
    reader.start()
    ready_event.wait(PATIENCE)
    start = time.perf_counter()
    create([Connection(running_server)], range(objects, objects + sample))
    reader.join(PATIENCE)
    assert finished_at.value, "not all events came"
    return sample * WATCHERS / (finished_at.value - start)


class PrintedFigures(dict):
    """Prints each figure when it is measured, because a run with 100,000 objects takes minutes."""

    def __init__(self, running_server):
        super().__init__()
        self.served = running_server

    def report(self, line, figure):
        self[line] = figure
        print(f"{self.served.name:10}{line:46}{figure:>14,.2f}", flush=True)

    def rate(self, line, of, measure):
        before = self.served.processor()
        self.report(f"{line}, a second", measure())
        self.report(f"{line}, processor µs each", (self.served.processor() - before) / of * 1e6)


def measured(running_server, objects):
    figures, memory_when_empty = PrintedFigures(running_server), running_server.memory()
    one_connection, many_connections = (
        [Connection(running_server)],
        [Connection(running_server) for _ in range(SIDE_BY_SIDE)],
    )
    sample = min(SAMPLE, objects // 2)
    figures.rate("creates one at a time", sample, lambda: create(one_connection, range(sample)))
    remaining_indexes = range(sample, objects)
    figures.rate("creates eight at a time", len(remaining_indexes), lambda: create(many_connections, remaining_indexes))
    full = running_server.memory()
    figures.report("memory, MB", full)
    figures.report("memory per object, kB", (full - memory_when_empty) / objects * 1024)
    before = running_server.processor()
    seconds, listed_count = measure_list(running_server)
    assert listed_count == objects
    figures.report("list in pages of 500, s", seconds)
    figures.report("list in pages of 500, processor s", running_server.processor() - before)
    figures.rate(
        f"events to {WATCHERS} watchers", sample * WATCHERS, lambda: measure_events(running_server, objects, sample)
    )
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--save", action="store_true", help="write the section of docs/benchmarks.md")
    options = parser.parse_args()
    with start_servers() as servers:
        figures = {running_server.name: measured(running_server, options.objects) for running_server in servers}
    if options.save:
        recording.save("many", {"objects": options.objects, "version": VERSION, "rows": figures})
        report.main()


if __name__ == "__main__":
    main()
