#!/usr/bin/env python3
"""TenantQuotas on a real API server: what a review may take, what it is told, and that no interleaving takes more."""
import concurrent.futures
import json
import pathlib
import re
import unittest

import harness
from harness import Case, Webhook, agent, wait_for


def quota(name, namespace, **spec):
    return {"apiVersion": "ossa.ai/v1", "kind": "TenantQuota", "metadata": {"name": name, "namespace": namespace},
            "spec": spec}


def sized(name, namespace, replicas=1, tenant=None, gpu=False, **spec):
    runtime = {"type": "k8s", "image": f"registry.example.org/agents/{name}:1.0.0", "replicas": replicas}
    if gpu:
        runtime["resources"] = {"gpu": True}
    if tenant:
        spec["tenantRef"] = tenant
    return agent(name, namespace, body={"runtime": runtime}, **spec)


class Quota(Case):
    setup_name = "quota"

    def setUp(self):
        self.namespace = "q-" + re.sub(r"[^a-z0-9]+", "-", self._testMethodName.lower())[:50].strip("-")
        self.api.namespace(self.namespace)
        self.addCleanup(self.api.clear, self.namespace)

    def make_quota(self, name="team", **spec):
        status, body = self.api.create("tenantquotas", quota(name, self.namespace, **spec), self.namespace)
        self.assertEqual(status, 201, body)

    def create(self, name, replicas=1, query="", **more):
        return self.api.create("agents", sized(name, self.namespace, replicas, **more), self.namespace, query)

    def created(self, name, replicas=1, **more):
        status, body = self.create(name, replicas, **more)
        self.assertEqual(status, 201, body)
        return body

    def refused(self, answer, text, code=403):
        status, body = answer
        self.assertEqual(status, code, body)
        self.assertIn(text, body["message"])
        return body

    def books(self, name="team"):
        status, body = self.api.read("tenantquotas", name, self.namespace)
        self.assertEqual(status, 200, body)
        return body

    def reserved(self, name="team"):
        return self.books(name).get("status", {}).get("reservations") or []

    # what is counted

    def test_the_limit_holds_and_the_denial_has_the_numbers(self):
        self.make_quota(maxTotalReplicas=15)
        self.created("a", 12, tenant="team")
        self.created("b", 2, tenant="team")
        body = self.refused(self.create("c", 4, tenant="team"),
                            'quota "team": maxTotalReplicas 15 would be exceeded: used 0, reserved 14, requested +4')
        self.assertEqual(body["reason"], "Forbidden")
        self.assertNotIn("causes", body.get("details") or {})
        self.created("c", 1, tenant="team")
        self.assertEqual(sorted((r["name"], r["replicas"]) for r in self.reserved()), [("a", 12), ("b", 2), ("c", 1)])

    def test_agents_that_were_there_before_the_quota_are_counted_first(self):
        for i in range(3):
            self.created(f"old-{i}", 2)
        self.make_quota(maxAgents=4, maxTotalReplicas=9)
        for i in range(3):
            self.assertEqual(self.api.patch("agents", f"old-{i}", {"spec": {"tenantRef": "team"}}, self.namespace)[0], 200)
        self.refused(self.create("new", 4, tenant="team"), "maxTotalReplicas 9 would be exceeded: used 0, reserved 6, requested +4")
        self.created("new", 3, tenant="team")
        self.refused(self.create("last", 0, tenant="team"), "maxAgents 4 would be exceeded")

    def test_gpus_count_per_replica(self):
        self.make_quota(maxGPUs=5)
        self.created("a", 3, gpu=True, tenant="team")
        self.refused(self.create("b", 3, gpu=True, tenant="team"), "maxGPUs 5 would be exceeded: used 0, reserved 3, requested +3")
        self.created("b", 2, gpu=True, tenant="team")

    def test_one_agent_has_at_most_so_many_replicas(self):
        self.make_quota(maxReplicasPerAgent=3)
        self.refused(self.create("a", 4, tenant="team"), "maxReplicasPerAgent 3 would be exceeded: requested 4")
        self.created("a", 3, tenant="team")

    def test_an_update_is_charged_what_it_raises(self):
        self.make_quota(maxTotalReplicas=10)
        self.created("a", 6, tenant="team")
        raise_to = lambda n: self.api.patch("agents", "a", {"spec": {"agent": {"runtime": {"replicas": n}}}}, self.namespace)
        self.refused(raise_to(11), "maxTotalReplicas 10 would be exceeded: used 0, reserved 6, requested +5")
        self.assertEqual(raise_to(10)[0], 200)
        self.assertEqual(raise_to(2)[0], 200, "less is always possible")

    def test_a_lowered_limit_refuses_rises_only(self):
        self.make_quota(maxTotalReplicas=10, maxAgents=5)
        self.created("a", 10, tenant="team")
        self.assertEqual(self.api.patch("tenantquotas", "team", {"spec": {"maxTotalReplicas": 3}}, self.namespace)[0], 200)
        self.created("idle", 0, tenant="team")
        status, body = self.api.patch("agents", "a", {"spec": {"agent": {"runtime": {"replicas": 9}}}}, self.namespace)
        self.assertEqual(status, 200, body)

    def test_a_move_charges_the_whole_at_the_new_tenant(self):
        self.make_quota("one", maxTotalReplicas=5)
        self.make_quota("two", maxTotalReplicas=3)
        self.created("a", 4, tenant="one")
        move = {"spec": {"tenantRef": "two"}}
        self.refused(self.api.patch("agents", "a", move, self.namespace), 'quota "two": maxTotalReplicas 3 would be exceeded')
        move["spec"]["agent"] = {"runtime": {"replicas": 3}}
        self.assertEqual(self.api.patch("agents", "a", move, self.namespace)[0], 200)

    def test_scale_is_counted_and_an_autoscaled_agent_cannot_be_scaled(self):
        self.make_quota(maxTotalReplicas=8)
        self.created("a", 3, tenant="team")
        self.created("auto", 1, tenant="team", scaling={"minReplicas": 1, "maxReplicas": 2,
                                                        "metric": "queueDepth", "target": 5})
        scale = lambda name, n: self.kubectl("scale", "agent", name, "-n", self.namespace, f"--replicas={n}")
        done = scale("a", 7)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("maxTotalReplicas 8 would be exceeded: used 0, reserved 5, requested +4", done.stderr)
        self.assertEqual(scale("a", 6).returncode, 0)
        self.assertEqual(scale("a", 0).returncode, 0)
        done = scale("auto", 2)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("autoscaler owns the replicas (1 to 2)", done.stderr)

    # whose they are

    def test_the_only_quota_is_the_default_and_several_must_be_named(self):
        self.assertNotIn("tenantRef", self.created("free")["spec"])
        self.make_quota("one", maxAgents=9)
        self.assertEqual(self.created("a")["spec"]["tenantRef"], "one")
        self.make_quota("two", maxAgents=9)
        self.refused(self.create("b"), "several TenantQuotas: name one of them in spec.tenantRef (one, two)")
        self.refused(self.create("b", tenant="three"), 'no such TenantQuota; it has one, two')
        self.created("b", tenant="two")
        status, body = self.api.patch("agents", "a", {"spec": {"tenantRef": None}}, self.namespace)
        self.assertEqual((status, body["spec"].get("tenantRef")), (200, "one"), "a tenant is not lost by leaving it out")

    # what is written

    def test_a_dry_run_is_judged_and_writes_nothing(self):
        self.make_quota(maxTotalReplicas=4)
        before = self.books()["metadata"]["resourceVersion"]
        self.assertEqual(self.create("a", 4, "?dryRun=All", tenant="team")[0], 201)
        self.refused(self.create("a", 5, "?dryRun=All", tenant="team"), "requested +5")
        self.assertEqual(self.books()["metadata"]["resourceVersion"], before)

    def test_what_the_schema_refuses_is_not_charged(self):
        self.make_quota(maxAgents=1)
        bad = sized("a", self.namespace, 1, "team")
        bad["spec"]["agent"]["version"] = "one"
        self.assertEqual(self.api.create("agents", bad, self.namespace)[0], 422)
        self.assertEqual(self.reserved(), [])
        self.created("a", tenant="team")

    def test_a_quota_is_held_while_something_is_reserved(self):
        self.make_quota(maxAgents=5)
        self.created("a", tenant="team")
        self.assertEqual(self.books()["metadata"]["finalizers"], ["ossa.ai/reservations"])
        self.api.delete("tenantquotas", "team", self.namespace)
        self.refused(self.create("b", tenant="team"), "is being deleted and takes nothing more")

    # R007, R033, R035: several replicas, many clients, one limit

    def test_r033_two_webhooks_and_many_clients_never_take_more_than_the_limit(self):
        other = Webhook(name="quota-other", kubeconfig=self.cluster.kubeconfig, arguments=["--drain-seconds=0"]).start()
        self.addCleanup(other.stop, True)
        self.make_quota(maxAgents=25, maxTotalReplicas=40)
        codes = []
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            # Half goes through the API server to our webhook; half straight to the other replica, as a second API
            # server would ask it.
            def through_api(i):
                return self.create(f"a-{i}", 1 + i % 3, tenant="team")[0]

            def beside(i):
                item = sized(f"b-{i}", self.namespace, 1 + i % 3, "team")
                item["metadata"]["uid"] = f"00000000-0000-4000-8000-{i:012d}"
                answer = other.review(harness.VALIDATE, json.dumps(item), name=item["metadata"]["name"],
                                      namespace=self.namespace)
                return 201 if answer["allowed"] else answer["status"]["code"]

            jobs = [pool.submit(job, i) for i in range(60) for job in (through_api, beside)]
            codes = [job.result() for job in jobs]
        self.assertLessEqual(set(codes), {201, 403}, "nobody is told to come again, nobody hangs")
        held = self.reserved()
        self.assertEqual(len(held), codes.count(201))
        replicas = sum(r["replicas"] for r in held)
        self.assertLessEqual(replicas, 40)
        self.assertLessEqual(len(held), 25)
        self.assertTrue(len(held) == 25 or replicas >= 38, f"{len(held)} agents, {replicas} replicas: room was left")

    def test_r035_a_webhook_that_is_killed_forgets_nothing(self):
        self.make_quota(maxAgents=2)
        self.created("a", tenant="team")
        self.webhook.restart()
        self.created("b", tenant="team")
        self.refused(self.create("c", tenant="team"), "maxAgents 2 would be exceeded: used 0, reserved 2, requested +1")

    def test_without_the_api_server_the_answer_is_try_again_and_in_time(self):
        self.make_quota(maxAgents=2)
        lost = Webhook(name="quota-lost", kubeconfig=self.unreachable(), arguments=["--drain-seconds=0"]).start()
        self.addCleanup(lost.stop, True)
        item = sized("a", self.namespace, 1, "team")
        item["metadata"]["uid"] = "00000000-0000-4000-8000-000000000001"
        answer = lost.review(harness.VALIDATE, json.dumps(item), name=item["metadata"]["name"],
                                      namespace=self.namespace)
        self.assertFalse(answer["allowed"])
        self.assertEqual(answer["status"]["code"], 429)
        self.assertEqual(answer["status"]["details"]["retryAfterSeconds"], 1)

    def unreachable(self):
        text = pathlib.Path(self.cluster.kubeconfig).read_text(encoding="utf-8")
        file = harness.WORK / "unreachable.kubeconfig"
        file.write_text(re.sub(r"server: .*", "server: https://127.0.0.1:1", text))
        return file


if __name__ == "__main__":
    unittest.main()
