"""Measure requests per second over HTTPS with wrk, on both servers: `python bench/wrk.py`.

The requests use 64 ConfigMaps with ten keys in turn. `--seconds` sets the duration of each measurement.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile

from support.server_pair import start_servers

from fairlead.testing.real import VERSION
from support import recording

SCRIPT = """
local what, token = "%s", "%s"
local count = 0
local data = {}
for i = 1, 9 do data[i] = '"key-' .. i .. '":"value ' .. i .. '"' end
request = function()
  count = count + 1
  local name = "a" .. count %% 64
  local path = "/api/v1/namespaces/bench/configmaps/" .. name
  local headers = {["Authorization"] = "Bearer " .. token}
  if what == "get" then return wrk.format("GET", path, headers) end
  headers["Content-Type"] = "application/apply-patch+yaml"
  local last = what == "changing" and count or 0
  local body = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"' .. name .. '"},"data":{' ..
    table.concat(data, ",") .. ',"n":"' .. last .. '"}}'
  return wrk.format("PATCH", path .. "?fieldManager=bench&force=true", headers, body)
end
"""


def rate(running_server, request_type, connections, seconds):
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(SCRIPT % (request_type, running_server.token))
        script.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", script.name, running_server.url]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in output, output
    return float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--save", action="store_true", help="keep the figures for docs/benchmarks.md")
    options = parser.parse_args()
    seconds = options.seconds
    if shutil.which("wrk") is None:
        sys.exit("bench/wrk.py needs wrk: apt-get install wrk")
    with start_servers() as servers:
        print(
            f"{'':20}{'connections':>12}"
            + "".join(f"{running_server.name:>12}" for running_server in servers)
            + "       ratio"
        )
        figures = {running_server.name: {} for running_server in servers}
        for request_type, label in (
            ("changing", "applies that change"),
            ("unchanged", "applies that don't"),
            ("get", "GETs"),
        ):
            for running_server in servers:
                rate(running_server, request_type, 16, seconds)  # warm
            for connections in (1, 16):
                rates = [rate(running_server, request_type, connections, seconds) for running_server in servers]
                printed_rates = "".join(f"{rate_of_server:>12,.0f}" for rate_of_server in rates)
                ratio = f"{rates[0] / rates[1]:>11.2f}×" if len(rates) > 1 else ""
                print(f"{label:20}{connections:>12}{printed_rates}{ratio}", flush=True)
                line = f"{label}, {connections} connection{'s' * (connections > 1)}, a second"
                for running_server, rate_of_server in zip(servers, rates, strict=True):
                    figures[running_server.name][line] = rate_of_server
    if options.save:
        recording.save("wrk", {"seconds": seconds, "version": VERSION, "rows": figures})


if __name__ == "__main__":
    main()
