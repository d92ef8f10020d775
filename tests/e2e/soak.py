#!/usr/bin/env python3
"""A minute of everything at once against one webhook, meant for the sanitizer builds: good, bad and hostile requests from
several connections. No API server.

usage: soak.py --bin build/asan/bin [--seconds 60] [--connections 8] [--seed N]

Fails when an answer is missing, wrong or for another review; when the process ends, writes a sanitizer's report or counts a
bug of its own; when it does not drain; when its memory goes on growing.
"""
import argparse
import collections
import contextlib
import json
import random
import sys
import tempfile
import threading
import time

import hostile
from harness import MUTATE, QUOTA, SCALE, VALIDATE, Webhook, agent, memory, review_text, wait_for

REPORTS = ("AddressSanitizer", "ThreadSanitizer", "LeakSanitizer", "UndefinedBehaviorSanitizer", "runtime error:", "terminate called",
           "Assertion", "this is a bug of ours")
ANSWER_S = 60


class Client(threading.Thread):
    """One client: chooses at random, does it, checks what comes back. The first thing that is wrong ends it."""

    def __init__(self, webhook, seed, over):
        super().__init__()
        self.webhook, self.chance, self.over = webhook, random.Random(seed), over
        self.done = collections.Counter()
        self.wrong = None
        quota = {"apiVersion": "ossa.ai/v1", "kind": "TenantQuota", "metadata": {"name": "q"}, "spec": {"maxAgents": 5}}
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "s"}, "spec": {"replicas": 5}}
        bad = agent("bad", body={"role": "boss", "version": "one"})
        large = agent("large")
        large["spec"]["agent"]["capabilities"] *= 200
        for i, capability in enumerate(large["spec"]["agent"]["capabilities"]):
            large["spec"]["agent"]["capabilities"][i] = dict(capability, name=f"work-{i}")
        # what, path, object, resource, the expected verdict
        self.reviews = [("good", MUTATE, agent("good"), "agents", True), ("good", VALIDATE, agent("good"), "agents", True),
                        ("bad", MUTATE, bad, "agents", True), ("bad", VALIDATE, bad, "agents", False),
                        ("large", MUTATE, large, "agents", True), ("large", VALIDATE, large, "agents", True),
                        ("quota", QUOTA, quota, "tenantquotas", True), ("scale", SCALE, scale, "agents/scale", True),
                        ("bad scale", SCALE, dict(scale, spec={"replicas": -1}), "agents/scale", False)]
        self.huge = list(hostile.huge_bodies().items())
        self.broken = list(hostile.broken_bodies())

    def run(self):
        try:
            while not self.over.is_set():
                what, act = self.chance.choices(
                    [("review", self.review), ("huge", self.huge_body), ("broken", self.broken_body),
                     ("bad request", self.bad_request), ("garbage", self.garbage), ("leave", self.leave)],
                    (80, 4, 6, 4, 3, 3))[0]
                act()
                self.done[what] += 1
        except Exception as error:          # whatever it is, it is told at the end
            self.wrong = f"{what}: {type(error).__name__}: {error}"
            self.over.set()

    def review(self):
        what, path, item, resource, allowed = self.chance.choice(self.reviews)
        response = self.webhook.review(path, json.dumps(item), resource=resource, timeout=ANSWER_S)
        if response["allowed"] != allowed:
            raise AssertionError(f"{what} at {path}: {response}")

    def huge_body(self):
        what, text = self.chance.choice(self.huge)
        self.webhook.review(self.chance.choice((MUTATE, VALIDATE)), text, timeout=ANSWER_S)

    def broken_body(self):
        what, body = self.chance.choice(self.broken)
        status, _, text = self.webhook.post(VALIDATE, body, timeout=ANSWER_S)
        if status == 503:
            return
        # A byte order mark may be skipped (RFC 8259).
        if status not in (200, 400) or (json.loads(text)["response"]["allowed"] and what != "a byte order mark"):
            raise AssertionError(f"{what}: {status} {text[:200]}")

    def bad_request(self):
        what, raw = self.chance.choice(list(hostile.BAD_REQUESTS.items()))
        with contextlib.closing(self.webhook.tls(timeout=ANSWER_S)) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(raw)
            if self.chance.random() < 0.5:
                hostile.reset(connection)
            else:
                hostile.answer_or_end(connection)

    def garbage(self):
        with contextlib.closing(hostile.connect(self.webhook.port, ANSWER_S)) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(self.chance.choice(hostile.garbage_for_tls()))
            if self.chance.random() < 0.5:
                hostile.answer_or_end(connection)

    def leave(self):
        """Ends its connection in the middle of a request or of an answer."""
        text, _ = review_text(json.dumps(self.chance.choice(self.reviews)[2]))
        with contextlib.closing(self.webhook.tls(timeout=ANSWER_S)) as connection:
            head = f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
            whole = head.encode() + text
            with contextlib.suppress(OSError):
                connection.sendall(whole[:self.chance.randrange(1, len(whole) + 1)])
            if self.chance.random() < 0.5:
                hostile.reset(connection)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", required=True)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--connections", type=int, default=8)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    arguments = options.parse_args()
    print(f"soak: {arguments.bin}, {arguments.seconds:.0f} s, {arguments.connections} clients, --seed {arguments.seed}", flush=True)

    with tempfile.TemporaryDirectory(prefix="ossa-soak-") as folder:
        webhook = Webhook(arguments.bin, name="soak", folder=folder, arguments=["--drain-seconds=1"]).start()
        over = threading.Event()
        clients = [Client(webhook, arguments.seed + i, over) for i in range(arguments.connections)]
        began = time.monotonic()
        for client in clients:
            client.start()
        half, early = arguments.seconds / 2, 0
        while not over.wait(0.5) and time.monotonic() - began < arguments.seconds:
            if not webhook.is_alive():
                over.set()
            elif time.monotonic() - began < half:
                early = max(early, memory(webhook.pid))
        late = memory(webhook.pid) if webhook.is_alive() else 0
        over.set()
        for client in clients:
            client.join(ANSWER_S + 10)

        webhook.connections.close()
        wrong = [client.wrong for client in clients if client.wrong]
        wrong += [f"client {i} does not end" for i, client in enumerate(clients) if client.is_alive()]
        if webhook.is_alive():
            bugs = webhook.metric("ossa_bug_total")
            wrong += [f"ossa_bug_total is {bugs:.0f}"] if bugs else []
            with contextlib.suppress(AssertionError):
                wait_for(lambda: webhook.metric("ossa_http_connections_open", listener="admission") == 0, "connections to end", 15)
            left = webhook.metric("ossa_http_connections_open", listener="admission")
            wrong += [f"{left:.0f} connections are still open"] if left else []
            code = webhook.stop()
            wrong += [f"exit code {code}"] if code else []
        else:
            wrong.append(f"the webhook ended with {webhook.process.returncode}")
        log = webhook.log_text()
        wrong += [f"the log says {word!r}" for word in REPORTS if word in log]
        # Sanitizers keep freed memory for a while, so only a clear rise in the second half counts.
        if late > early * 1.3 + (64 << 20):
            wrong.append(f"memory grew from {early >> 20} MiB in the first half to {late >> 20} MiB")
        done = sum((client.done for client in clients), collections.Counter())
        print(f"soak: {dict(done)}, memory {early >> 20} MiB, at the end {late >> 20} MiB", flush=True)
        if wrong:
            print(log[-3000:])
            sys.exit("soak: FAILED\n  " + "\n  ".join(wrong))
        print("soak: clean")


if __name__ == "__main__":
    main()
