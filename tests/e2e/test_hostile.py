#!/usr/bin/env python3
"""Worst cases against the running server: each gets an answer or an end in time, others are served meanwhile, nothing
crashes, memory stays within its budget. No API server is involved: it would not let most of this through."""
import contextlib
import json
import pathlib
import resource
import select
import socket
import time
import unittest

import hostile
from harness import MUTATE, QUOTA, SCALE, VALIDATE, Case, agent, agent_text, causes_of, memory, review_text, wait_for

MIB = 1 << 20
INFLIGHT = 64 * MIB
PER_CONNECTION = 64 << 10
ANSWER_S = 5             # the shipped timeoutSeconds: later, the API server has given up
HANDSHAKE_S, READ_S = 5, 10     # net/limits.hpp
SLACK_S = 10             # for a machine whose cores others hold


class Hostile(Case):
    setup_name = "hostile"
    with_cluster = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        content = pathlib.Path(cls.webhook.program).read_bytes()
        cls.sanitized = b"__asan_init" in content or b"__tsan_init" in content

    def setUp(self):
        # A process of its own for each test, so that the peak is that test's. soak.py has one live through everything.
        self.webhook.restart()
        self.webhook.review(VALIDATE, json.dumps(agent("first")))
        self.base = memory(self.webhook.pid)
        self.connections = 4

    def tearDown(self):
        self.assertTrue(self.webhook.is_alive(), self.webhook.log_text()[-2000:])
        self.assertEqual(self.webhook.metric("ossa_bug_total"), 0)
        began = time.monotonic()
        self.assertTrue(self.webhook.review(VALIDATE, json.dumps(agent("other")))["allowed"])
        self.assertLess(time.monotonic() - began, ANSWER_S)
        peak = memory(self.webhook.pid, "VmHWM")
        print(f"hostile: {self._testMethodName}: {self.base / MIB:.1f} MiB at rest, peak {peak / MIB:.1f} MiB", flush=True)
        if not self.sanitized:      # a sanitizer's own memory is no matter of ours
            self.assertLess(peak, self.base + INFLIGHT + self.connections * PER_CONNECTION)

    def in_time(self, began, what):
        # A sanitizer makes everything ten times slower.
        self.assertLess(time.monotonic() - began, ANSWER_S * (10 if self.sanitized else 1), what)

    # --- bodies ---

    def test_huge_but_well_formed_objects(self):
        for what, text in hostile.huge_bodies().items():
            for path in (MUTATE, VALIDATE):
                with self.subTest(f"{what} {path}"):
                    began = time.monotonic()
                    response = self.webhook.review(path, text)
                    self.in_time(began, what)
                    if not response["allowed"]:
                        self.assertLess(len(json.dumps(response["status"]["message"])), 64 << 10)
                        self.assertLessEqual(len(causes_of(response["status"])), 100)

    def test_a_schema_that_is_itself_is_allowed(self):
        response = self.webhook.review(VALIDATE, hostile.with_inline_schema('{"$ref":"#"}'))
        self.assertTrue(response["allowed"], response)

    def test_a_schema_beyond_the_budget_is_said_to_be_unchecked(self):
        item = agent("budget")
        item["spec"]["agent"]["capabilities"] = [
            {"name": f"c{i}", "description": "x", "input_schema": hostile.nested_any_of(13), "output_schema": {}} for i in range(4)]
        began = time.monotonic()
        response = self.webhook.review(VALIDATE, json.dumps(item))
        self.in_time(began, "nested anyOf")
        self.assertTrue(response["allowed"], response)
        self.assertTrue(any("not checked" in warning for warning in response.get("warnings", [])), response)

    def test_numbers_of_every_spelling(self):
        for spelling in hostile.NUMBER_SPELLINGS:
            for member in ("timeout_seconds", "x-unknown"):
                text = json.dumps(agent("numbers")).replace('"output_schema":', f'"{member}": {spelling}, "output_schema":', 1)
                with self.subTest(f"{spelling[:30]} {member}"):
                    response = self.webhook.review(VALIDATE, text)
                    again = json.dumps(response).lower()
                    self.assertNotIn("inf", again.replace("information", ""))
                    try:
                        json.loads(spelling, parse_constant=lambda name: 1 / 0)
                    except (ValueError, ZeroDivisionError):
                        self.assertFalse(response["allowed"], "this is no JSON number")
                    self.webhook.review(MUTATE, text)

    def test_broken_bodies(self):
        for what, body in hostile.broken_bodies():
            for path in (MUTATE, VALIDATE, SCALE, QUOTA):
                with self.subTest(f"{what} {path}"):
                    began = time.monotonic()
                    status, _, text = self.webhook.post(path, body)
                    self.in_time(began, what)
                    self.assertIn(status, (200, 400))
                    response = json.loads(text)["response"]
                    if path == VALIDATE and what != "a byte order mark":      # which a reader may skip (RFC 8259)
                        self.assertFalse(response["allowed"], what)

    # --- requests ---

    def test_bad_requests(self):
        for what, raw in hostile.BAD_REQUESTS.items():
            with self.subTest(what), contextlib.closing(self.webhook.tls(timeout=READ_S + SLACK_S)) as connection:
                with contextlib.suppress(OSError):
                    connection.sendall(raw)
                said = hostile.answer_or_end(connection)
                if said:
                    self.assertRegex(said, rb"^HTTP/1\.1 4\d\d |^HTTP/1\.1 50[135] ")

    def test_a_truncated_body_ends_with_its_connection(self):
        text, _ = review_text(json.dumps(agent("cut")))
        for keep in (0, 1, len(text) // 2, len(text) - 1):
            with contextlib.closing(self.webhook.tls()) as connection:
                connection.sendall(f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                                   f"Content-Length: {len(text)}\r\n\r\n".encode() + text[:keep])
                if keep % 2:
                    with contextlib.suppress(OSError):
                        connection.unwrap()             # a TLS farewell in the middle of a request
                else:
                    hostile.reset(connection)
        wait_for(lambda: self.webhook.metric("ossa_http_requests_in_flight", listener="admission") == 0, "nothing in flight")

    def test_announced_lengths_reserve_nothing(self):
        self.connections += 100
        with contextlib.ExitStack() as stack:
            for _ in range(100):
                connection = stack.enter_context(contextlib.closing(self.webhook.tls()))
                connection.sendall(f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                                   f"Content-Length: {7 * MIB}\r\n\r\n{{".encode())
            self.assertTrue(self.webhook.review(VALIDATE, json.dumps(agent("other")))["allowed"])
            if not self.sanitized:
                self.assertLess(memory(self.webhook.pid) - self.base, 10 * MIB)

    def test_bodies_beyond_the_budget_are_turned_away_and_come_again(self):
        # 16 bodies of 6 MiB, each but for its last byte: more than 64 MiB, so some are refused with 503.
        self.connections += 16
        body = b" " * (6 * MIB)
        head = f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(contextlib.closing(self.webhook.tls(timeout=READ_S + SLACK_S))) for _ in range(16)]
            refused = []
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.sendall(head + body[:-1])
                if select.select([connection], [], [], 0.05)[0]:
                    refused.append(connection)
            self.assertTrue(self.webhook.review(VALIDATE, json.dumps(agent("other")))["allowed"], "small ones still fit")
            answers = [hostile.answer_or_end(connection) for connection in connections]
        busy = [answer for answer in answers if answer.startswith(b"HTTP/1.1 503 ")]
        self.assertTrue(busy, [answer[:40] for answer in answers])
        for answer in busy:
            self.assertRegex(answer, rb"(?i)\r\nretry-after: 1\r\n")
        # Those that fitted ran into the deadline for reading.
        self.assertTrue(all(answer[:13] in (b"HTTP/1.1 503 ", b"HTTP/1.1 408 ", b"") for answer in answers),
                        [answer[:40] for answer in answers])

    # --- clients ---

    def test_slowloris(self):
        """50 clients that send a byte at a time, each differently: cut at the deadline, however busy they look."""
        self.connections += 50
        text, _ = review_text(json.dumps(agent("slow")))
        whole = (f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 f"Content-Length: {len(text)}\r\n\r\n").encode() + text
        with contextlib.ExitStack() as stack:
            clients = {stack.enter_context(contextlib.closing(self.webhook.tls())): i * 7 for i in range(50)}
            began = time.monotonic()
            for connection, at in clients.items():
                connection.sendall(whole[:at + 1])
                clients[connection] = at + 1
            open_ = dict(clients)
            while open_ and time.monotonic() - began < READ_S + SLACK_S:
                readable = select.select(list(open_), [], [], 0.2)[0]
                for connection in readable:
                    said = hostile.answer_or_end(connection)
                    self.assertTrue(said == b"" or said.startswith(b"HTTP/1.1 408 "), said[:100])
                    del open_[connection]
                for connection in list(open_):
                    try:
                        connection.sendall(whole[open_[connection]:open_[connection] + 1])
                        open_[connection] += 1
                    except OSError:
                        del open_[connection]
            self.assertEqual(len(open_), 0, "still open")
            self.assertGreater(time.monotonic() - began, READ_S - 2)

    def test_half_open_connections(self):
        """TCP without TLS, TLS cut in the handshake, writing ended while an answer is due."""
        self.connections += 40
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(contextlib.closing(hostile.connect(self.webhook.port, HANDSHAKE_S + SLACK_S)))
                      for _ in range(20)]
            for connection in silent[10:]:
                connection.sendall(bytes.fromhex("16030100c8010000c40303"))
            for connection in silent:
                self.assertEqual(hostile.answer_or_end(connection), b"")
        text, uid = review_text(json.dumps(agent("half")))
        for _ in range(20):
            with contextlib.closing(self.webhook.tls()) as connection:
                connection.sendall(f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                                   f"Content-Length: {len(text)}\r\n\r\n".encode() + text)
                # The TCP direction ends, without TLS's own farewell.
                socket.socket.shutdown(connection, socket.SHUT_WR)
                said = hostile.answer_or_end(connection)
                self.assertTrue(said == b"" or uid.encode() in said, said[:100])

    def test_garbage_on_the_tls_port(self):
        for raw in hostile.garbage_for_tls():
            for _ in range(3):
                with contextlib.closing(hostile.connect(self.webhook.port, HANDSHAKE_S + SLACK_S)) as connection:
                    with contextlib.suppress(OSError):
                        connection.sendall(raw)
                    said = hostile.answer_or_end(connection)
                    # At most a TLS alert or the beginning of a handshake; never HTTP in the clear.
                    self.assertNotIn(b"HTTP", said)

    def test_a_thousand_idle_connections(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < 2500:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096) if hard > 0 else 4096, hard))
        self.connections += 1000
        before = memory(self.webhook.pid)
        text, uid = review_text(json.dumps(agent("idle")))
        request = (f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(text)}\r\n\r\n").encode() + text
        with contextlib.ExitStack() as stack:
            connections = []
            for i in range(1000):
                connection = stack.enter_context(contextlib.closing(self.webhook.tls()))
                if i % 2:       # half of them have been used
                    connection.sendall(request)
                    self.assertIn(uid.encode(), hostile_answer(connection))
                connections.append(connection)
            self.assertGreaterEqual(self.webhook.metric("ossa_http_connections_open", listener="admission"), 1000)
            grown = memory(self.webhook.pid) - before
            print(f"hostile: 1,000 idle connections: {grown / 1000 / 1024:.1f} KiB each", flush=True)
            if not self.sanitized:
                self.assertLess(grown, 1000 * PER_CONNECTION)
            began = time.monotonic()
            self.assertTrue(self.webhook.review(VALIDATE, json.dumps(agent("other")))["allowed"])
            self.in_time(began, "beside 1,000 idle connections")
            for connection in connections[::100]:
                connection.sendall(request)
                self.assertIn(uid.encode(), hostile_answer(connection))
        wait_for(lambda: self.webhook.metric("ossa_http_connections_open", listener="admission") < 10, "them to be closed")


def hostile_answer(connection):
    """One whole answer of a connection that is kept."""
    said = b""
    while b"\r\n\r\n" not in said:
        said += connection.recv(65536)
    head, _, body = said.partition(b"\r\n\r\n")
    length = int([line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")][0].split(b":")[1])
    while len(body) < length:
        body += connection.recv(65536)
    return body


if __name__ == "__main__":
    unittest.main()
