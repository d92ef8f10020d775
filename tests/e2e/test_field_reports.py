#!/usr/bin/env python3
"""Rows of shared/field-reports.md that need a real API server (or a real connection) to be believed. Each test is named
after its row; docs/field-reports.md lists all rows and where each is held. R013 is in test_admission.py.

OSSA_R019_SECONDS (12; 60 for the length that the row names): how long R019 writes.
"""
import base64
import contextlib
import json
import os
import re
import select
import socket
import ssl
import struct
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import harness
from harness import (HOST, MUTATE, QUOTA, SCALE, VALIDATE, Case, Webhook, agent, agent_text, causes_of, differences, from_yaml,
                     memory, read_json, review_text, wait_for)

BUSY_S = 5          # what takes milliseconds when nobody else uses the machine


@contextlib.contextmanager
def accepts_and_never_answers():
    """A port that takes connections and says nothing."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen(128)
        held, over = [], threading.Event()

        def run():
            while not over.is_set():
                if select.select([listener], [], [], 0.1)[0]:
                    held.append(listener.accept()[0])

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join(10)
            for one in held:
                one.close()


class FieldReports(Case):
    setup_name = "field-reports"
    setup_arguments = ("--drain-seconds=1",)

    def setUp(self):
        if not self.webhook.is_alive():
            self.webhook.start()
        self.point_here()
        self.api.clear()

    def tearDown(self):
        # A test may have pointed the API server elsewhere; the next begins from here.
        if self.webhook.is_alive():
            self.assertEqual(self.webhook.metric("ossa_bug_total"), 0)

    def point_here(self):
        """Only when something changed: a configuration takes the API server a moment."""
        port = getattr(type(self), "pointed_at", None)
        if port != (self.webhook.port, self.webhook.pid):
            self.setup_.point_here()
            type(self).pointed_at = (self.webhook.port, self.webhook.pid)

    def point_at(self, port, counted=None):
        type(self).pointed_at = None
        harness.configure(self.cluster, f"https://{HOST}:{port}", self.webhook.certificates / "ca.crt", counted)

    def create(self, item, code=201, **more):
        status, body = self.api.create("agents", item, **more)
        self.assertEqual(status, code, body)
        return body

    # --- the gate and the rest of the cluster ---

    def write_what_is_not_ours(self, mark):
        """Seconds that each write of things outside our rules took."""
        took = {}
        items = {
            "configmaps": ("/api/v1/namespaces/agents/configmaps", {"metadata": {"name": f"free-{mark}"}}),
            "pods": ("/api/v1/namespaces/agents/pods",
                     {"metadata": {"name": f"free-{mark}"}, "spec": {"containers": [{"name": "a", "image": "example.org/a:1"}]}}),
            "leases": ("/apis/coordination.k8s.io/v1/namespaces/agents/leases",
                       {"metadata": {"name": f"free-{mark}"}, "spec": {"holderIdentity": "x"}}),
            "events": ("/api/v1/namespaces/agents/events",
                       {"metadata": {"name": f"free-{mark}"}, "reason": "Test",
                        "involvedObject": {"kind": "Pod", "name": f"free-{mark}", "namespace": "agents"}}),
            "nodes": ("/api/v1/nodes", {"metadata": {"name": f"free-{mark}"}}),
        }
        for kind, (path, item) in items.items():
            began = time.monotonic()
            status, body = self.api.call("POST", path, item)
            took[kind] = time.monotonic() - began
            self.assertEqual(status, 201, body)
            if kind == "nodes":
                status, body = self.api.call("PATCH", f"{path}/free-{mark}/status",
                                             {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
                                             "application/merge-patch+json")
                self.assertEqual(status, 200, body)
        for kind, (path, _) in items.items():
            self.api.call("DELETE", f"{path}/free-{mark}?gracePeriodSeconds=0")
        return took

    def test_R001_a_hook_that_never_answers_costs_only_its_own_timeout(self):
        with accepts_and_never_answers() as port:
            self.point_at(port)
            # The API server has taken this up when a dry run fails by timeout.
            wait_for(lambda: self.api.create("agents", agent("gate"), query="?dryRun=All")[0] >= 500, "the hook to hang",
                     every_s=0.1)
            with ThreadPoolExecutor(1) as pool:
                began = time.monotonic()
                apply = pool.submit(self.kubectl, "apply", "-f", "-", input=json.dumps(agent("gate")))
                slowest = 0
                rounds = 0
                while not apply.done():
                    slowest = max(slowest, *self.write_what_is_not_ours(f"r001-{rounds}").values())
                    rounds += 1
                shown = apply.result()
            took = time.monotonic() - began
        self.assertEqual(shown.returncode, 1)
        self.assertRegex(shown.stderr, r'failed calling webhook "mutate\.agents\.ossa\.ai"')
        self.assertLess(took, 10 + BUSY_S, "the sum of the shipped timeouts, and kubectl's own start")
        self.assertGreater(rounds, 3)
        self.assertLess(slowest, 2.5, "half of a shipped timeout: nothing else waits for the hook")

    def test_R002_the_shipped_rules_name_exactly_our_resources(self):
        hooks = [hook for item in from_yaml(self.cluster, harness.MANIFESTS / "webhook") for hook in item["webhooks"]]
        seen = set()
        for hook in hooks:
            self.assertEqual(hook["failurePolicy"], "Fail")
            self.assertLessEqual(hook["timeoutSeconds"], 5)
            self.assertIn(hook["sideEffects"], ("None", "NoneOnDryRun"))
            self.assertEqual(hook["matchPolicy"], "Equivalent")
            self.assertTrue(hook["namespaceSelector"]["matchExpressions"])
            for rule in hook["rules"]:
                self.assertNotIn("*", json.dumps(rule))
                self.assertEqual(rule["apiGroups"], ["ossa.ai"])
                self.assertEqual(rule["scope"], "Namespaced")
                self.assertLessEqual(set(rule["operations"]), {"CREATE", "UPDATE"})
                seen |= set(rule["resources"])
        self.assertEqual(seen, {"agents", "agents/scale", "tenantquotas"})
        self.webhook.kill()
        self.assertLess(max(self.write_what_is_not_ours("r002").values()), BUSY_S)
        status, body = self.api.create("agents", agent("gate"))
        self.assertGreaterEqual(status, 500, body)

    def test_R004_the_control_plane_starts_without_us(self):
        self.webhook.kill()
        self.cluster.restart("apiserver")
        self.cluster.restart("controller-manager")
        self.assertTrue(all(component.ready for component in self.cluster.status()))
        api = self.api
        name = f"r004-{os.getpid()}"
        api.namespace(name)
        wait_for(lambda: api.call("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200,
                 "the ServiceAccount of a new namespace")
        self.write_what_is_not_ours("r004")
        shown = self.kubectl("apply", "-f", "-", input=json.dumps(agent("gate")))
        self.assertEqual(shown.returncode, 1)
        self.assertRegex(shown.stderr, r'failed calling webhook "mutate\.agents\.ossa\.ai".*refused')
        # Deletion is never asked about, so nothing is stuck either.
        api.call("DELETE", f"/api/v1/namespaces/{name}")
        wait_for(lambda: api.call("GET", f"/api/v1/namespaces/{name}")[0] == 404, "the namespace to go")
        self.webhook.start()
        # Nothing has to be done for the gate to work again.
        wait_for(lambda: self.api.create("agents", agent("gate"), query="?dryRun=All")[0] == 201, "the gate to work again")

    def test_R005_an_agent_that_breaks_todays_rules_can_still_be_deleted(self):
        item = agent("leaving", body={"runtime": {"type": "k8s"}})
        item["metadata"]["finalizers"] = ["example.org/held"]
        stored = self.create(item)
        self.webhook.restart(["--require-image", "--drain-seconds=1"])
        try:
            wait_for(lambda: self.api.create("agents", dict(item, metadata={"name": "other", "namespace": "agents"}),
                                             query="?dryRun=All")[0] == 422, "today's rules")
            # Still there and not in deletion: a change of metadata is judged, and refused by today's rules.
            self.assertEqual(self.api.patch("agents", "leaving", {"metadata": {"labels": {"a": "b"}}})[0], 422)
            began = time.monotonic()
            self.kubectl("delete", "agent", "leaving", "-n", "agents", "--wait=false", check=True)
            before = self.webhook.metric("ossa_admission_requests_total")
            status, body = self.api.patch("agents", "leaving", {"metadata": {"labels": {"a": "b"}}})
            self.assertEqual(status, 200, body)
            status, body = self.api.patch("agents", "leaving", {"status": {"phase": "Pending"}})
            self.assertEqual(status, 200, body)
            status, body = self.api.call("PATCH", self.api.path("agents", name="leaving") + "/status",
                                         {"status": {"phase": "Degraded"}}, "application/merge-patch+json")
            self.assertEqual(status, 200, body)
            # The API server does not even ask.
            self.assertEqual(self.webhook.metric("ossa_admission_requests_total"), before)
            # The rest also without us.
            self.webhook.kill()
            status, body = self.api.patch("agents", "leaving", {"metadata": {"finalizers": None}})
            self.assertEqual(status, 200, body)
            wait_for(lambda: self.api.read("agents", "leaving")[0] == 404, "the Agent to go", 30)
            self.assertLess(time.monotonic() - began, 30)
            self.assertEqual(stored["metadata"]["generation"], 1)
        finally:
            self.webhook.restart(["--drain-seconds=1"])

    def test_R010_dry_runs_are_judged_and_leave_nothing(self):
        quota = {"apiVersion": "ossa.ai/v1", "kind": "TenantQuota", "metadata": {"name": "tight"}, "spec": {"maxAgents": 1}}
        status, quota = self.api.create("tenantquotas", quota)
        self.assertEqual(status, 201, quota)

        def one(i):
            good = i % 2 == 0
            item = agent(f"dry-{i}", **({} if good else {"body": {"role": "boss"}}))
            status, body = self.api.create("agents", item, query="?dryRun=All")
            return good, status, body if good else causes_of(body)

        with ThreadPoolExecutor(8) as pool:
            for good, status, body in pool.map(one, range(1000)):
                self.assertEqual(status, 201 if good else 422, body)
                if good:
                    self.assertEqual(body["spec"]["agent"]["capabilities"][0]["timeout_seconds"], 300)
                else:
                    self.assertEqual(body, [("spec.agent.role", "FieldValueNotSupported")])
        self.assertEqual(self.api.call("GET", self.api.path("agents"))[1]["items"], [])
        _, after = self.api.read("tenantquotas", "tight")
        self.assertEqual(after["metadata"]["resourceVersion"], quota["metadata"]["resourceVersion"])
        self.assertEqual(after.get("status"), quota.get("status"))
        self.create(agent("real"))

    # --- shapes of reviews ---

    def test_R008_a_scale_is_judged_as_a_scale(self):
        self.create(agent("scaled"))
        path = self.api.path("agents", name="scaled") + "/scale"
        for replicas, code in ((7, 200), (0, 200), (10000, 200), (10001, 422)):
            status, body = self.api.call("PATCH", path, {"spec": {"replicas": replicas}}, "application/merge-patch+json")
            self.assertEqual(status, code, body)
        self.assertEqual(causes_of(body), [("spec.replicas", "FieldValueInvalid")])
        # A subresource that nobody has told us about: refused with a reason, never an error.
        for resource, allowed in (("agents/status", True), ("agents/ephemeral", False)):
            response = self.webhook.review(VALIDATE, json.dumps(agent("scaled")), resource=resource, operation="UPDATE")
            self.assertEqual(response["allowed"], allowed)
            if not allowed:
                self.assertEqual(response["status"]["code"], 400)

    def test_R009_reviews_that_lack_what_others_have(self):
        bare = json.dumps({"apiVersion": "ossa.ai/v1", "kind": "Agent"})
        for path in (MUTATE, VALIDATE, SCALE, QUOTA):
            for operation, object_text, old in (("DELETE", "null", agent_text("{}")), ("CONNECT", "null", "null"),
                                                ("UPDATE", agent_text("{}"), "null"), ("CREATE", "null", "null"),
                                                ("CREATE", bare, "null"), ("UPDATE", "null", "null"),
                                                ("CREATE", "[]", "7"), ("CREATE", '{"metadata":null,"spec":null}', "null")):
                with self.subTest(f"{path} {operation} {object_text[:20]}"):
                    resource = {SCALE: "agents/scale", QUOTA: "tenantquotas"}.get(path, "agents")
                    response = self.webhook.review(path, object_text, old_text=old, operation=operation, resource=resource)
                    if operation in ("DELETE", "CONNECT"):
                        self.assertTrue(response["allowed"])
                    if object_text == "null":
                        self.assertNotIn("patch", response)
            for body in (b"", b"null", b"[]", b"{}", b'{"request":null}', b'{"kind":"AdmissionReview","request":{"uid":"u"}}',
                         b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}'):
                status, _, text = self.webhook.post(path, body)
                self.assertIn(status, (200, 400))
                self.assertEqual(json.loads(text)["kind"], "AdmissionReview")
                self.assertFalse(json.loads(text)["response"]["allowed"])
        self.assertTrue(self.webhook.is_alive())
        # And the real thing: the API server does not ask about deletions, and they work.
        self.create(agent("gone"))
        before = self.webhook.metric("ossa_admission_requests_total")
        self.assertEqual(self.api.delete("agents", "gone")[0], 200)
        self.assertEqual(self.webhook.metric("ossa_admission_requests_total"), before)

    def test_R018_agents_without_a_name_and_namespace_are_judged(self):
        def one(_):
            item = agent("nameless")
            item["metadata"] = {"generateName": "nameless-"}
            return self.api.create("agents", item)

        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(one, range(10)))
        self.assertEqual([status for status, _ in answers], [201] * 10, answers[0])
        self.assertEqual(len({body["metadata"]["name"] for _, body in answers}), 10)
        for _, body in answers:
            self.assertEqual(body["metadata"]["namespace"], "agents")
            self.assertEqual(body["spec"]["agent"]["runtime"]["replicas"], 1)
        item = agent("nameless", body={"role": "boss"})
        item["metadata"] = {"generateName": "nameless-"}
        status, body = self.api.create("agents", item)
        self.assertEqual((status, causes_of(body)), (422, [("spec.agent.role", "FieldValueNotSupported")]))
        self.assertIn("nameless-", body["details"]["name"])
        item = agent("nameless")
        item["metadata"] = {"generateName": "n" * 46}
        status, body = self.api.create("agents", item)
        self.assertEqual(status, 422, body)

    # --- what is written ---

    def test_R011_patches_need_no_member_that_is_not_there(self):
        item = agent("sparse", body={"policies": {}, "monitoring": {}, "integration": {}}, workload={}, rollout={})
        del item["metadata"]["namespace"]
        stored = self.create(item)
        self.assertNotIn("labels", stored["metadata"])
        self.assertEqual(stored["spec"]["agent"]["policies"]["encryption"], True)
        self.assertEqual(stored["spec"]["workload"]["port"], 8080)
        item = agent("annotated")
        item["metadata"]["annotations"] = {"example.org/a_b": "x", "ossa.ai/of-mine": "y"}
        item["spec"]["agent"]["x/of~mine"] = {"a/b": 1}
        stored = self.create(item)
        self.assertEqual(stored["metadata"]["annotations"], item["metadata"]["annotations"])
        self.assertEqual(stored["spec"]["agent"]["x/of~mine"], {"a/b": 1})

    def test_R012_numbers_are_stored_as_without_us(self):
        # kube-system is outside of our webhooks' namespaceSelector: there the same create goes past us.
        text = json.dumps(agent("numbers", namespace="@@")).replace(
            '"input_schema": {"type": "object"}',
            '"input_schema": {"maximum": 9007199254740993, "a": -9223372036854775808, "b": 18446744073709551615, "c": 0.1, '
            '"d": 1e21, "e": 123456789012345678901234567890, "f": 1E2, "g": -0.0, "h": 1.10}')
        specs = {}
        for namespace in ("agents", "kube-system"):
            status, _, body = self.api.raw("POST", self.api.path("agents", namespace), text.replace("@@", namespace))
            self.assertEqual(status, 201, body)
            specs[namespace] = self.api.raw("GET", self.api.path("agents", namespace, "numbers"))[2].decode()
        self.api.delete("agents", "numbers", "kube-system")
        schemas = {k: re.search(r'"input_schema":(\{.*?\})', v).group(1) for k, v in specs.items()}
        self.assertEqual(schemas["agents"], schemas["kube-system"])
        self.assertIn("9007199254740993", schemas["agents"])
        ours, theirs = (read_json(specs[k])["spec"] for k in ("agents", "kube-system"))
        self.assertEqual(differences(ours, theirs), ["/agent/capabilities/0/timeout_seconds only on the left",
                                                     "/agent/runtime/replicas only on the left"])
        # Beyond what any reader can hold: refused cleanly, by the API server and by us.
        beyond = text.replace("@@", "agents").replace("9007199254740993", "1E400")
        self.assertEqual(self.api.raw("POST", self.api.path("agents"), beyond)[0], 400)
        for path in (MUTATE, VALIDATE):
            response = self.webhook.review(path, beyond)
            self.assertNotIn("inf", json.dumps(response))
            if path == VALIDATE:
                self.assertFalse(response["allowed"])

    def test_R014_what_we_wrote_is_written_once_and_later_hooks_are_followed(self):
        item = agent("settled", workload={"resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}})
        item["spec"]["agent"]["runtime"]["resources"] = {"cpu": "1000m", "memory": "0.5Gi"}
        stored = self.create(item)
        self.assertEqual(stored["spec"]["workload"]["resources"]["requests"], {"cpu": "1000m", "memory": "1024Mi"})
        self.assertEqual(stored["spec"]["agent"]["runtime"]["resources"], {"cpu": "1000m", "memory": "0.5Gi"})
        self.assertNotIn("patch", self.webhook.review(MUTATE, json.dumps(stored), operation="UPDATE", old_text=json.dumps(stored)))
        status, again = self.api.call("PUT", self.api.path("agents", name="settled"), stored)
        self.assertEqual(again["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"])

        # Another mutating webhook, asked after ours, adds what lacks defaults again.
        with later_hook(self.webhook, [{"op": "add", "path": "/spec/agent/capabilities/-", "value": {
                "name": "added", "description": "by a later hook", "input_schema": {}, "output_schema": {}}}]) as hook:
            later = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                     "metadata": {"name": "zz-later"}, "webhooks": [{
                         "name": "later.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                         "failurePolicy": "Fail", "timeoutSeconds": 5,
                         "rules": [{"apiGroups": ["ossa.ai"], "apiVersions": ["v1"], "resources": ["agents"],
                                    "operations": ["CREATE"]}],
                         "clientConfig": {"url": f"https://{HOST}:{hook.server_port}/later",
                                          "caBundle": hook.ca_bundle}}]}
            path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
            try:
                self.assertEqual(self.api.call("POST", path, later)[0], 201)
                wait_for(lambda: self.api.create("agents", agent("both"), query="?dryRun=All") and hook.asked, "the later hook")
                before = self.webhook.metric("ossa_admission_requests_total", path=MUTATE)
                stored = self.create(agent("both"))
                self.assertEqual(self.webhook.metric("ossa_admission_requests_total", path=MUTATE), before + 2)
            finally:
                self.api.call("DELETE", f"{path}/zz-later")
        self.assertEqual([c["timeout_seconds"] for c in stored["spec"]["agent"]["capabilities"]], [300, 300])

    def test_R023_a_repeated_member_is_judged_as_it_is_stored(self):
        text = json.dumps(agent("twice"))
        good, bad = '"role": "custom"', '"role": "boss"'
        for first, last, code in ((bad, good, 201), (good, bad, 422)):
            # Told not to mind, the API server takes the last one; it must be the one that we judge.
            status, _, body = self.api.raw("POST", self.api.path("agents", query="?fieldValidation=Ignore"),
                                           text.replace(good, f"{first}, {last}"))
            self.assertEqual(status, code, body)
        self.assertEqual(self.api.read("agents", "twice")[1]["spec"]["agent"]["role"], "custom")
        status, _, _ = self.api.raw("POST", self.api.path("agents", query="?fieldValidation=Strict"),
                                    text.replace(good, f"{bad}, {good}").replace('"twice"', '"other"'))
        self.assertEqual(status, 400)
        for member in ('"runtime": {"type": "edge"}, "runtime":', '"runtime":'), ('"ossaVersion": "2.0", "ossaVersion":', '"ossaVersion":'):
            for path in (MUTATE, VALIDATE):
                response = self.webhook.review(path, text.replace(member[1], member[0], 1))
                self.assertFalse(response["allowed"], "the raw text reached us with a member twice")

    # --- sizes ---

    def test_R015_large_bodies_have_a_ceiling_and_two_objects_fit_below_it(self):
        self.webhook.review(VALIDATE, json.dumps(agent("small")))
        before = memory(self.webhook.pid)
        with contextlib.closing(self.webhook.tls()) as connection:
            connection.sendall(f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n".encode())
            sent, chunk, said = 0, b"10000\r\n" + b" " * 0x10000 + b"\r\n", b""
            gone = False
            while sent < 64 << 20 and not said and not gone:
                try:
                    connection.sendall(chunk)
                    sent += 0x10000
                except OSError:
                    gone = True                # it has ended the connection; the answer may still lie here
                # Not select(): TLS sends things of its own, which are no answer.
                connection.settimeout(0)
                with contextlib.suppress(ssl.SSLWantReadError):
                    said = connection.recv(100)
                connection.settimeout(BUSY_S)
            self.assertTrue(said.startswith(b"HTTP/1.1 413 "), said)
        # What was sent also fills the sockets' buffers, which are not our memory.
        self.assertLess(sent, 16 << 20)
        self.assertLess(memory(self.webhook.pid) - before, 16 << 20)

        filler = "x" * 1500
        item = agent("large")
        item["spec"]["agent"]["capabilities"] = [
            {"name": f"c-{i}", "description": "large", "input_schema": {"description": filler}, "output_schema": {"type": "object"}}
            for i in range(850)]
        stored = self.create(item)
        self.assertGreater(len(json.dumps(stored)), 1 << 20)
        status, body = self.api.patch("agents", "large", {"spec": {"agent": {"role": "boss"}}})
        self.assertEqual((status, causes_of(body)), (422, [("spec.agent.role", "FieldValueNotSupported")]))
        text = json.dumps(dict(item, metadata={"name": "large", "padding": "y" * 200_000}))
        response = self.webhook.review(VALIDATE, text, old_text=text, operation="UPDATE")
        self.assertTrue(response["allowed"], response)

    def test_R016_depth_is_refused_quickly(self):
        for depth in (1_000, 10_000, 200_000):
            for opening, closing in (('{"a":', "}"), ("[", "]")):
                text = json.dumps(agent("deep")).replace('{"type": "object"}', opening * depth + "1" + closing * depth, 1)
                best = BUSY_S
                for _ in range(3):
                    began = time.monotonic()
                    response = self.webhook.review(VALIDATE, text)
                    best = min(best, time.monotonic() - began)
                self.assertFalse(response["allowed"])
                self.assertIn("deep", response["status"]["message"])
                if not is_sanitized(self.webhook):
                    self.assertLess(best, 0.25, f"depth {depth}")
                self.assertFalse(self.webhook.review(MUTATE, text)["allowed"])
        # Through the API server, whose own limit is higher than ours.
        text = json.dumps(agent("deep")).replace('{"type": "object"}', '{"a":' * 1000 + "1" + "}" * 1000, 1)
        status, _, body = self.api.raw("POST", self.api.path("agents"), text)
        self.assertEqual(status, 422, body[:300])

    # --- connections ---

    def test_R021_clients_that_leave_in_the_middle_of_an_answer(self):
        item = agent("many")
        item["spec"]["agent"]["capabilities"] = [{"name": f"c{i}"} for i in range(300)]
        text, _ = review_text(json.dumps(item))
        head = f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        files = self.webhook.open_files()
        log_at = self.webhook.log.stat().st_size
        reset = struct.pack("ii", 1, 0)

        def leave(i):
            with contextlib.suppress(OSError, ssl.SSLError):
                connection = self.webhook.tls()
                try:
                    # So small that the answer cannot fit and the server is in the middle of it.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                    connection.sendall(head.encode() + text)
                    if i % 4 < 2:
                        connection.recv(1)
                    if i % 2:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                finally:
                    connection.close()

        with ThreadPoolExecutor(8) as pool:
            work = [pool.submit(leave, i) for i in range(1000)]
            while not all(one.done() for one in work):
                # Others are served as ever.
                self.assertTrue(self.webhook.review(VALIDATE, json.dumps(agent("other")))["allowed"])
        for one in work:
            one.result()
        wait_for(lambda: self.webhook.open_files() <= files + 2, "the sockets to be closed")
        lines = self.webhook.log_text(log_at).splitlines()
        self.assertLessEqual(len(lines), 1000 + 10)
        self.assertTrue(self.webhook.is_alive())

    def test_R019_restarts_behind_a_balancer_lose_no_write(self):
        seconds = float(os.environ.get("OSSA_R019_SECONDS", "12"))
        replicas = [Webhook(name=f"field-reports-replica-{i}", arguments=["--drain-seconds=2"],
                            kubeconfig=self.cluster.kubeconfig) for i in (1, 2)]
        with contextlib.ExitStack() as stack:
            for replica in replicas:
                stack.callback(replica.kill)
                replica.log.unlink(missing_ok=True)
                replica.start()
            balancer = stack.enter_context(Balancer(replicas))
            self.point_at(balancer.port, lambda: sum(r.metric("ossa_admission_requests_total") for r in replicas))
            self.create(agent("busy"))
            failed, written = [], [0]
            over = threading.Event()

            def write(worker):
                rate_s, count = 5 / 50, 0
                next_at = time.monotonic()
                while not over.is_set():
                    count += 1
                    status, body = self.api.patch("agents", "busy", {"metadata": {"annotations": {f"w{worker}": str(count)}}})
                    written[0] += 1
                    if status != 200:
                        failed.append((status, body))
                    next_at = max(next_at + rate_s, time.monotonic() - 1)
                    over.wait(max(0.0, next_at - time.monotonic()))

            threads = [threading.Thread(target=write, args=(i,)) for i in range(5)]
            for thread in threads:
                thread.start()
            began = time.monotonic()
            try:
                restarts = 0
                # A busy machine writes slowly; then it takes longer to see as much.
                while restarts < 6 or time.monotonic() - began < min(seconds if written[0] > 15 * seconds else 5 * seconds, 120):
                    replica = replicas[restarts % 2]
                    self.assertEqual(replica.stop(), 0, "a drain ends with exit code 0")
                    replica.start()
                    balancer.wait_ready(replica)
                    restarts += 1
            finally:
                over.set()
                for thread in threads:
                    thread.join(harness.PATIENCE_S)
            took = time.monotonic() - began
        self.assertEqual(failed[:3], [], f"{len(failed)} of {written[0]} writes failed")
        self.assertGreater(written[0], 40, "too few writes to mean anything")
        print(f"R019: {written[0]} writes in {took:.0f} s, {restarts} restarts, none failed", flush=True)


def is_sanitized(webhook):
    with open(webhook.program, "rb") as file:
        content = file.read()
    return b"__asan_init" in content or b"__tsan_init" in content


class Balancer:
    """What a Service does: each new connection goes to a ready replica, and stays there until somebody ends it."""

    def __init__(self, replicas):
        self.replicas = replicas
        self.ready = set()
        self.turn = 0
        self.over = threading.Event()
        self.sockets, self.pumps = [], []      # written by the accepting thread only

    def __enter__(self):
        self.listener = socket.create_server((HOST, 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.look()
        self.threads = [threading.Thread(target=self.accept, daemon=True), threading.Thread(target=self.watch, daemon=True)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        for thread in self.threads:
            thread.join(10)
        self.listener.close()
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for pump in self.pumps:
            pump.join(10)
        for one in self.sockets:
            one.close()

    def look(self):
        self.ready = {replica for replica in self.replicas if replica.is_ready()}

    def watch(self):
        while not self.over.wait(0.1):
            self.look()

    def wait_ready(self, replica):
        wait_for(lambda: replica in self.ready, f"the balancer to see {replica.name}")

    def accept(self):
        while not self.over.is_set():
            if not select.select([self.listener], [], [], 0.1)[0]:
                continue
            front, _ = self.listener.accept()
            back = None
            for _ in self.replicas:
                self.turn += 1
                candidates = sorted(self.ready, key=lambda replica: replica.name)
                if not candidates:
                    break
                with contextlib.suppress(OSError):
                    back = socket.create_connection((HOST, candidates[self.turn % len(candidates)].port), timeout=5)
                    back.settimeout(None)
                    break
            if back is None:
                front.close()
                continue
            self.sockets += [front, back]
            for source, target in ((front, back), (back, front)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                thread = threading.Thread(target=self.pump, args=(source, target), daemon=True)
                thread.start()
                self.pumps.append(thread)

    def pump(self, source, target):
        """One direction. Its end is passed on as an end of writing, so that what flows the other way still arrives."""
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def later_hook(webhook, patch):
    """A mutating webhook of somebody else, with our test certificate."""
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            names = [c["name"] for c in review["request"]["object"]["spec"]["agent"]["capabilities"]]
            response = {"uid": review["request"]["uid"], "allowed": True}
            if "added" not in names:
                response.update(patchType="JSONPatch", patch=base64.b64encode(json.dumps(patch).encode()).decode())
            server.asked = True
            body = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads = True
    server.asked = False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(webhook.certificates / "tls.crt", webhook.certificates / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.ca_bundle = base64.b64encode((webhook.certificates / "ca.crt").read_bytes()).decode()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


if __name__ == "__main__":
    unittest.main()
