#!/usr/bin/env python3
"""Measures ossa-webhook against the limit: a tuned bare Beast TLS server that reads the body and gives a fixed answer.

Reviews (CREATE) of three sizes, at 1, 16 and 64 connections. Server on one core, load generator on another, which never
sleeps in the closed loop, so that no server pays for waking it. Runs are interleaved (mutate, its limit, validate, its
limit, and again), where the gate is even in slices of half a second, since the speed of a shared machine changes from
second to second; medians of the runs count:
  closed loop  requests a second, and the server's CPU time (user and system) per request
  open loop    latency at a fixed offered load, half of what the limit reached; latency counts from the due time
The limit's answer is as large as the webhook's own to the same request.

Writes build/bench/admission.json: a list of {size, connections, server, rps, p50_us, p99_us, p999_us, cpu_us_per_request,
rss_mib} and more numbers. Exits 1 when CPU per request at 16 connections is beyond the targets.
"""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PATHS = {"mutate": "/mutate-ossa-ai-v1-agent", "validate": "/validate-ossa-ai-v1-agent"}
# size -> (bytes, capabilities, CPU per request against the limit)
SIZES = {"small": (1800, 1, 1.25), "typical": (4000, 5, 1.5), "large": (61000, 100, 2.0)}
GATE_CONNECTIONS = 16
SLICES = 6  # of each run where the gate is; each lasts a third of a run
RSS_IDLE_MIB, RSS_PEAK_MIB = 12, 30
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
WORDS = ("looks through the repository for breaches of the chosen compliance rules and reports every finding with its file "
         "line rule severity and a hint how to mend it so that the next release can go out in time ").split()


def prose(words, start):
    return " ".join(WORDS[(start + i) % len(WORDS)] for i in range(words))


def capability(index, words):
    out = {"name": f"scan_codebase_{index}" if index else "scan_codebase", "description": prose(words, index * 7)}
    kind = index % 3
    out["input_schema"] = {
        "type": "object", "required": ["repository"],
        "properties": {"repository": {"type": "string", "description": prose(4, index)},
                       "branch": {"type": "string", "default": "main"}}}
    if kind != 1:
        out["input_schema"]["properties"]["frameworks"] = {"type": "array", "items": {"type": "string"}}
    out["output_schema"] = {
        "type": "object", "required": ["passed"],
        "properties": {"passed": {"type": "boolean"},
                       "findings": {"type": "array", "items": {"type": "object",
                                                               "properties": {"line": {"type": "integer", "minimum": 1}}}}}}
    if kind == 2:
        out["output_schema"]["additionalProperties"] = False
    return out


def review(bytes_wanted, capabilities):
    """A CREATE review as the API server sends it, filled up with prose to the byte."""
    kind = {"group": "ossa.ai", "version": "v1", "kind": "Agent"}
    resource = {"group": "ossa.ai", "version": "v1", "resource": "agents"}

    def build(words, fill):
        agent = {
            "apiVersion": "ossa.ai/v1", "kind": "Agent",
            "metadata": {"name": "compliance-scanner", "namespace": "agents", "uid": "1bd3c0f2-0d6b-4f7c-9a53-6a1f5a6de001",
                         "generation": 1, "creationTimestamp": "2024-06-01T12:00:00Z",
                         "labels": {"app.kubernetes.io/part-of": "compliance"}},
            "spec": {"ossaVersion": "1.0", "agent": {
                "id": "compliance-scanner", "name": "Compliance Scanner", "version": "1.2.0", "role": "compliance",
                "description": "x" * fill,
                "runtime": {"type": "k8s", "image": "registry.example.org/agents/compliance-scanner:1.2.0", "replicas": 3,
                            "resources": {"cpu": "500m", "memory": "512Mi"}},
                "capabilities": [capability(i, words) for i in range(capabilities)]}}}
        return json.dumps({
            "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": UID, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
                "name": "compliance-scanner", "namespace": "agents", "operation": "CREATE",
                "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
                "object": agent, "oldObject": None, "dryRun": False,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1",
                            "fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict"}}},
            separators=(",", ":")).encode()

    words = 1
    while len(build(words + 1, 0)) <= bytes_wanted:
        words += 1
    text = build(words, bytes_wanted - len(build(words, 0)))
    assert len(text) == bytes_wanted, f"cannot build a review of {bytes_wanted} bytes: {len(text)}"
    return text


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def ask(port, path, body):
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
    connection.request("POST", path + "?timeout=5s", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


def make_certificate(folder):
    certificate, key = folder / "tls.crt", folder / "tls.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=ossa-bench",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return certificate, key


def joined(parts):
    """One run out of slices of equal length."""
    requests = sum(part["rps"] for part in parts)
    return {"rps": requests / len(parts),
            "cpu_us_per_request": sum(part["cpu_us_per_request"] * part["rps"] for part in parts) / requests,
            "p99_us": statistics.median(part["p99_us"] for part in parts)}


class Server:
    def __init__(self, name, command, port, core):
        self.name, self.port = name, port
        self.process = subprocess.Popen(pinned(core, command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.stop()
        sys.exit(f"{name} did not start: {' '.join(map(str, command))}")

    def mib(self, field):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field + ":"))

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


def pinned(core, command):
    return ["taskset", "-c", str(core), *map(str, command)] if core is not None else list(map(str, command))


class Bench:
    def __init__(self, options):
        self.options = options
        self.servers = []
        cores = sorted(os.sched_getaffinity(0))
        pin = len(cores) > 1 and shutil.which("taskset")
        if not pin:
            print("warning: server and client share a core, or taskset is missing: ratios only roughly right")
        self.server_core, self.client_core = (cores[0], cores[1]) if pin else (None, None)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ossa-bench-"))

    def start(self, name, command, port):
        server = Server(name, command, port, self.server_core)
        self.servers.append(server)
        return server

    def load(self, server, path, body, connections, seconds, rate=0.0):
        command = [self.options.bin / "admission_load", "--target", f"127.0.0.1:{server.port}", "--path", path, "--body", body,
                   "--connections", connections, "--seconds", seconds, "--warmup", 0.3, "--rate", rate,
                   "--pid", server.process.pid]
        done = subprocess.run(pinned(self.client_core, command), capture_output=True, text=True, timeout=seconds + 60)
        if done.returncode != 0:
            sys.exit(f"load on {server.name} failed: {done.stderr}{done.stdout}")
        return json.loads(done.stdout)

    def run(self):
        options = self.options
        certificate, key = make_certificate(self.folder)
        port = free_port()
        webhook = self.start("webhook", [options.webhook, "--tls-cert-file", certificate, "--tls-key-file", key,
                                         "--listen-tls", f"127.0.0.1:{port}", "--listen-http", f"127.0.0.1:{free_port()}",
                                         "--workers", 1, "--log-level", "warn"] if not options.net_server else
                             [options.bin / "net_server", "--tls-cert-file", certificate, "--tls-key-file", key,
                              "--listen-tls", f"127.0.0.1:{port}"], port)
        idle = webhook.mib("VmRSS")
        results = []
        for size, (wanted, capabilities, _) in SIZES.items():
            body = self.folder / f"{size}.json"
            body.write_bytes(review(wanted, capabilities))
            pairs = []  # (server name, server, path)
            for kind, path in PATHS.items():
                status, text = ask(webhook.port, path, body.read_bytes())
                if status != 200 or (not options.net_server and not json.loads(text)["response"]["allowed"]):
                    sys.exit(f"{path} refuses the {size} review: HTTP {status} {text[:600]!r}")
                limit_port = free_port()
                limit = self.start(f"limit-{kind}", [options.bin / "limit_server", "--port", limit_port, "--cert", certificate,
                                                     "--key", key, "--answer-bytes", max(36, len(text))], limit_port)
                pairs += [(kind, webhook, path), (f"limit-{kind}", limit, path)]
            for connections in options.connections:
                results += self.measure(size, connections, pairs, body)
            for name, server, _ in pairs:
                if name.startswith("limit"):
                    server.stop()
        return results, idle, webhook.mib("VmHWM")

    def measure(self, size, connections, pairs, body):
        options = self.options
        closed = {name: [] for name, _, _ in pairs}
        opened = {name: [] for name, _, _ in pairs}
        slices, seconds = (SLICES, options.seconds / 3) if connections == GATE_CONNECTIONS else (1, options.seconds)
        for _ in range(options.rounds):
            parts = {name: [] for name, _, _ in pairs}
            for turn in range(slices):
                for name, server, path in pairs if turn % 2 == 0 else reversed(pairs):
                    parts[name].append(self.load(server, path, body, connections, seconds))
            for name in parts:
                closed[name].append(joined(parts[name]))
        offered = {}
        for kind in PATHS:
            offered[kind] = statistics.median(run["rps"] for run in closed[f"limit-{kind}"]) / 2
        for _ in range(options.open_rounds):
            for name, server, path in pairs:
                rate = offered[name.removeprefix("limit-")]
                opened[name].append(self.load(server, path, body, connections, options.seconds, rate))
        out = []
        for name, server, _ in pairs:
            median = lambda runs, key: round(statistics.median(run[key] for run in runs), 2)  # noqa: E731
            p99 = [run["p99_us"] for run in opened[name]]
            cpu = [run["cpu_us_per_request"] for run in closed[name]]
            out.append({
                "size": size, "connections": connections, "server": name,
                "rps": median(closed[name], "rps"),
                "p50_us": median(opened[name], "p50_us"), "p99_us": median(opened[name], "p99_us"),
                "p999_us": median(opened[name], "p999_us"),
                "cpu_us_per_request": median(closed[name], "cpu_us_per_request"),
                "rss_mib": round(server.mib("VmRSS"), 1),
                "offered_rps": round(offered[name.removeprefix("limit-")], 1),
                "p99_us_spread": [min(p99), max(p99)], "cpu_us_spread": [min(cpu), max(cpu)],
                "closed_p99_us": median(closed[name], "p99_us")})
        for name in PATHS:
            ours = next(it for it in out if it["server"] == name)
            limit = next(it for it in out if it["server"] == f"limit-{name}")
            # Ratio round by round, so that other load on the machine hits both sides.
            ours["cpu_ratio"] = round(statistics.median(
                a["cpu_us_per_request"] / b["cpu_us_per_request"] for a, b in zip(closed[name], closed[f"limit-{name}"])), 3)
            ours["cpu_ratio_of_medians"] = round(ours["cpu_us_per_request"] / limit["cpu_us_per_request"], 3)
            self.print_row(size, connections, name, ours, limit)
        return out

    @staticmethod
    def print_row(size, connections, name, ours, limit):
        print(f"{size:8}{connections:5} {name:9}"
              f"{ours['rps']:9.0f} /{limit['rps']:8.0f}"
              f"{ours['cpu_us_per_request']:9.2f} /{limit['cpu_us_per_request']:7.2f} = {ours['cpu_ratio']:5.2f}"
              f"  (target {SIZES[size][2]:.2f})"
              f"{ours['p50_us']:9.0f} /{limit['p50_us']:6.0f}"
              f"{ours['p99_us']:9.0f} /{limit['p99_us']:6.0f}"
              f"{ours['p999_us']:9.0f} /{limit['p999_us']:6.0f}", flush=True)

    def close(self):
        for server in self.servers:
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--webhook", type=pathlib.Path, help="the program (default: ossa-webhook in --bin)")
    parser.add_argument("--net-server", action="store_true", help="measure net_server, our HTTP server with an empty handler")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/bench/admission.json")
    parser.add_argument("--quick", action="store_true", help="one number of connections, short runs: a rough look")
    parser.add_argument("--seconds", type=float, help="of each run")
    parser.add_argument("--rounds", type=int, help="closed-loop runs of each server")
    options = parser.parse_args()
    options.webhook = options.webhook or options.bin / "ossa-webhook"
    options.connections = [GATE_CONNECTIONS] if options.quick else [1, GATE_CONNECTIONS, 64]
    options.rounds = options.rounds or (3 if options.quick else 5)
    options.open_rounds = 1 if options.quick else 3
    options.seconds = options.seconds or (0.7 if options.quick else 1.5)

    print("ours / limit; CPU in microseconds a request; latencies in microseconds at half of the limit's requests/s")
    print(f"{'size':8}{'conn':>5} {'path':9}{'requests/s':>19}{'CPU':>25}{'':16}{'p50':>16}{'p99':>16}{'p99.9':>16}")
    bench = Bench(options)
    try:
        results, idle, peak = bench.run()
    finally:
        bench.close()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")

    failed = [f"{it['size']} {it['server']}: {it['cpu_ratio']:.2f} times the limit, target {SIZES[it['size']][2]:.2f}"
              for it in results if it["connections"] == GATE_CONNECTIONS and it["server"] in PATHS
              and it["cpu_ratio"] > SIZES[it["size"]][2]]
    print(f"RSS {idle:.1f} MiB idle (target {RSS_IDLE_MIB}), {peak:.1f} MiB peak (target {RSS_PEAK_MIB}); "
          f"load average {os.getloadavg()[0]:.1f}; written to {options.out}")
    for line in failed:
        print("beyond the target: " + line)
    print("CPU gate: " + ("failed" if failed else "passed"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
