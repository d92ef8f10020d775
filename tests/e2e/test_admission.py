#!/usr/bin/env python3
"""The main job: kubectl and a real API server, with our webhook as manifests/ install it."""
import json
import re
import unittest

import harness
from harness import MANIFESTS, Case, agent, causes_of, from_yaml, read_json, wait_for

SAMPLES = MANIFESTS / "samples"
GOOD = sorted(SAMPLES.glob("*.yaml"))
REJECTED = sorted((SAMPLES / "rejected").glob("*.yaml"))
BY_THE_API_SERVER = sorted((SAMPLES / "rejected" / "by-the-api-server").glob("*.yaml"))


def expected_causes(file):
    return sorted(tuple(line.split()[2:4]) for line in file.read_text().splitlines() if line.startswith("# expect: "))


def path_of(item):
    resource = {"Agent": "agents", "TenantQuota": "tenantquotas"}[item["kind"]]
    return resource, item["metadata"]["namespace"]


class Admission(Case):
    setup_name = "admission"

    # Against one sample folder each.

    def test_every_rejected_sample_is_refused_with_exactly_its_causes(self):
        self.assertGreaterEqual(len(REJECTED), 25)
        for file in REJECTED:
            with self.subTest(file.name):
                (item,) = from_yaml(self.cluster, file)
                resource, namespace = path_of(item)
                before = self.reviews()
                status, body = self.api.create(resource, item, namespace)
                self.assertEqual(status, 422, body)
                self.assertEqual(body["reason"], "Invalid")
                self.assertEqual(causes_of(body), expected_causes(file))
                self.assertGreater(self.reviews(), before, "the webhook was not asked")
                self.assertRegex(body["message"], r'admission webhook "validate\.\w+\.ossa\.ai" denied the request')
                self.assertEqual(body["details"]["name"], item["metadata"]["name"])
                self.assertEqual(body["details"]["kind"], item["kind"])
                self.assertEqual(body["details"]["group"], "ossa.ai")
                self.assertNotIn("\n", body["message"])
                for field, _ in expected_causes(file):
                    self.assertIn(field, body["message"])
                self.assertEqual(self.api.read(resource, item["metadata"]["name"], namespace)[0], 404)

    def test_wrong_types_are_refused_by_the_api_server_itself(self):
        self.assertGreaterEqual(len(BY_THE_API_SERVER), 4)
        for file in BY_THE_API_SERVER:
            with self.subTest(file.name):
                (item,) = from_yaml(self.cluster, file)
                before = self.reviews("validated")
                status, body = self.api.create(*path_of(item)[:1], item, path_of(item)[1])
                self.assertEqual((status, body["reason"]), (422, "Invalid"), body)
                self.assertEqual(causes_of(body), expected_causes(file))
                self.assertNotIn("admission webhook", body["message"])
                # Schema errors come after the mutating and before the validating webhooks.
                self.assertEqual(self.reviews("validated"), before)

    def test_good_samples_are_stored_with_their_defaults(self):
        self.kubectl("apply", "-f", str(SAMPLES), check=True)
        for item in from_yaml(self.cluster, *GOOD):
            if item["kind"] == "Namespace":
                continue
            with self.subTest(item["metadata"]["name"]):
                resource, namespace = path_of(item)
                status, stored = self.api.read(resource, item["metadata"]["name"], namespace)
                self.assertEqual(status, 200)
                if resource == "agents":
                    body = stored["spec"]["agent"]
                    wanted = [c.get("timeout_seconds", 300) for c in item["spec"]["agent"]["capabilities"]]
                    self.assertEqual([c["timeout_seconds"] for c in body["capabilities"]], wanted)
                    self.assertEqual(body["runtime"]["replicas"], item["spec"]["agent"]["runtime"].get("replicas", 1))
                    if "workload" in item["spec"]:
                        self.assertEqual(stored["spec"]["workload"]["port"], item["spec"]["workload"].get("port", 8080))
                # What the user wrote is all still there.
                self.assertEqual(missing_from(stored["spec"], item["spec"]), [])
        created = self.kubectl("create", "-f", str(SAMPLES / "create-only"), check=True)
        self.assertRegex(created.stdout, r"agent\.ossa\.ai/night-audit-\w+ created")

    # kubectl, as a user sees it.

    def test_a_dry_run_and_a_diff_have_no_side_effect(self):
        file = str(SAMPLES / "compliance-scanner.yaml")
        self.api.clear()
        dry = self.kubectl("apply", "--dry-run=server", "-o", "json", "-f", file, check=True)
        self.assertEqual(read_json(dry.stdout)["spec"]["agent"]["capabilities"][0]["timeout_seconds"], 300)
        diff = self.kubectl("diff", "-f", file)
        self.assertEqual(diff.returncode, 1, diff.stderr)
        self.assertIn("+    capabilities:", diff.stdout)
        self.assertEqual(self.api.read("agents", "compliance-scanner")[0], 404)
        bad = self.kubectl("apply", "--dry-run=server", "-f", str(SAMPLES / "rejected" / "bad-id.yaml"))
        self.assertEqual(bad.returncode, 1)
        self.assertIn("spec.agent.id", bad.stderr)
        # On what is stored: a diff of a change shows it and changes nothing.
        self.kubectl("apply", "-f", file, check=True)
        version = self.version("compliance-scanner")
        changed = (SAMPLES / "compliance-scanner.yaml").read_text().replace("replicas: 3", "replicas: 4")
        diff = self.kubectl("diff", "-f", "-", input=changed)
        self.assertEqual(diff.returncode, 1, diff.stderr)
        self.assertIn("replicas: 4", diff.stdout)
        self.kubectl("apply", "--dry-run=server", "-f", "-", input=changed, check=True)
        self.assertEqual(self.version("compliance-scanner"), version)

    def test_a_second_apply_changes_nothing_and_the_diff_is_empty(self):
        self.api.clear()
        self.kubectl("apply", "-f", str(SAMPLES), check=True)
        before = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in self.agents()}
        # kubectl may say "configured": its patch repeats a list whose items were defaulted, and the webhook fills them again.
        self.kubectl("apply", "-f", str(SAMPLES), check=True)
        self.assertEqual({item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in self.agents()}, before)
        diff = self.kubectl("diff", "-f", str(SAMPLES))
        self.assertEqual((diff.returncode, diff.stdout), (0, ""), diff.stderr)

    def test_explain_knows_the_fields(self):
        for path, word in (("agent.spec.agent.capabilities", "input_schema"), ("agent.spec.agent.runtime", "health_check"),
                           ("agent.spec.workload", "terminationGracePeriodSeconds"), ("tenantquota.spec", "maxGPUs")):
            # The API server's own OpenAPI document follows the CRD a moment later.
            shown = wait_for(lambda: (d := self.kubectl("explain", path)).returncode == 0 and d.stdout, f"explain {path}")
            self.assertIn(word, shown)
            self.assertIn("DESCRIPTION", shown)
            self.assertNotIn("<empty>", shown.split("FIELDS")[0])

    def test_get_agents_shows_the_printer_columns(self):
        self.api.clear()
        self.kubectl("apply", "-f", str(SAMPLES / "compliance-scanner.yaml"), check=True)
        shown = self.kubectl("get", "agt", "-n", "agents", check=True).stdout.splitlines()
        self.assertEqual(shown[0].split(), ["NAME", "ROLE", "VERSION", "PHASE", "READY", "IMAGE", "TENANT", "MCP", "AGE"])
        row = shown[1].split()
        self.assertEqual(row[:3], ["compliance-scanner", "compliance", "1.2.0"])
        self.assertIn("registry.example.org/agents/compliance-scanner:1.2.0", row)

    def test_scale_works_within_its_bounds(self):
        self.api.clear()
        self.kubectl("apply", "-f", str(SAMPLES / "compliance-scanner.yaml"), check=True)
        done = self.kubectl("scale", "agent", "compliance-scanner", "-n", "agents", "--replicas=5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.api.read("agents", "compliance-scanner")[1]["spec"]["agent"]["runtime"]["replicas"], 5)
        self.kubectl("scale", "agent", "compliance-scanner", "-n", "agents", "--replicas=0", check=True)
        stored = self.api.read("agents", "compliance-scanner")[1]
        self.assertEqual(stored["spec"]["agent"]["runtime"].get("replicas", 0), 0)
        before = self.reviews()
        refused = self.kubectl("scale", "agent", "compliance-scanner", "-n", "agents", "--replicas=10001")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("10000", refused.stderr)
        self.assertGreater(self.reviews(), before)
        self.assertEqual(self.version("compliance-scanner"), stored["metadata"]["resourceVersion"])

    def test_one_failing_object_shows_its_causes(self):
        shown = self.kubectl("apply", "-f", str(SAMPLES / "rejected" / "many-errors.yaml"))
        self.assertEqual(shown.returncode, 1)
        for field, _ in expected_causes(SAMPLES / "rejected" / "many-errors.yaml"):
            # kubectl lists the causes as "* field: message" behind the message.
            self.assertRegex(shown.stderr, rf"(?m)^\s*\* .*{re.escape(field)}: ")

    def test_several_failing_objects_show_every_finding_in_their_messages(self):
        shown = self.kubectl("apply", "-f", str(SAMPLES / "rejected"))
        self.assertEqual(shown.returncode, 1)
        lines = [line for line in shown.stderr.splitlines() if line.startswith("Error from server")]
        self.assertEqual(len(lines), len(REJECTED), shown.stderr)
        for file in REJECTED:
            of_file = [line for line in lines if f"{file.name}" in line]
            self.assertEqual(len(of_file), 1, f"{file.name}: {shown.stderr}")
            for field, _ in expected_causes(file):
                self.assertIn(f"{field}: ", of_file[0])

    def test_more_than_twenty_findings_are_counted(self):
        item = agent("many")
        item["spec"]["agent"]["capabilities"] = [{"name": f"c{i}"} for i in range(10)]
        status, body = self.api.create("agents", item)
        self.assertEqual(status, 422)
        self.assertEqual(len(causes_of(body)), 30)
        self.assertIn("and 10 more", body["message"])

    def test_warnings_reach_the_user(self):
        self.api.clear()
        item = agent("warned", body={"runtime": {"type": "k8s"}})
        item["spec"]["agent"]["monitorin"] = {}
        item["spec"]["workload"] = {"env": [{"name": "API_TOKEN", "value": "not-a-real-one"}]}
        shown = self.kubectl("apply", "-f", "-", input=json.dumps(item))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        warnings = [line for line in shown.stderr.splitlines() if line.startswith("Warning: ")]
        self.assertGreaterEqual(len(warnings), 3, shown.stderr)
        text = "\n".join(warnings)
        for word in ("spec.workload.env[0]", "image", "monitorin", "monitoring"):
            self.assertIn(word, text)
        # What leaks comes first, and no warning shows it.
        self.assertIn("spec.workload.env[0]", warnings[0])
        self.assertNotIn("not-a-real-one", text)
        self.assertNotIn("not-a-real-one", self.webhook.log_text())
        for line in warnings:
            self.assertLessEqual(len(line), 200 + len("Warning: "))

    def test_R013_a_second_manager_with_equal_values_has_no_conflict(self):
        self.api.clear()
        item = agent("shared", workload={"port": 8080})
        item["spec"]["agent"]["capabilities"][0]["timeout_seconds"] = 1000000
        text = json.dumps(item)
        self.kubectl("apply", "--server-side", "--field-manager=first", "-f", "-", input=text, check=True)
        raw = self.api.raw("GET", self.api.path("agents", name="shared"))[2].decode()
        self.assertIn('"timeout_seconds":1000000', raw)
        self.assertIn('"port":8080', raw)
        version = self.version("shared")
        second = self.kubectl("apply", "--server-side", "--field-manager=second", "-f", "-", input=text)
        self.assertEqual(second.returncode, 0, second.stderr)
        # And one that also states what we have defaulted.
        item["spec"]["agent"]["runtime"]["replicas"] = 1
        third = self.kubectl("apply", "--server-side", "--field-manager=third", "-f", "-", input=json.dumps(item))
        self.assertEqual(third.returncode, 0, third.stderr)
        self.assertNotEqual(self.version("shared"), version, "managedFields must name the new managers")
        self.kubectl("apply", "--server-side", "--field-manager=first", "-f", "-", input=text, check=True)

    def test_nothing_of_all_this_was_a_bug(self):
        self.assertEqual(self.webhook.metric("ossa_bug_total"), 0)

    # Small helpers.

    def version(self, name):
        return self.api.read("agents", name)[1]["metadata"]["resourceVersion"]

    def agents(self):
        return self.api.call("GET", self.api.path("agents"))[1]["items"]

    def reviews(self, which="all"):
        paths = {"all": [None], "validated": [harness.VALIDATE, harness.QUOTA, harness.SCALE]}[which]
        return sum(self.webhook.metric("ossa_admission_requests_total", **({"path": path} if path else {}))
                   for path in paths)


def missing_from(stored, given, at=""):
    """Pointers of what `given` has and `stored` has not, or has otherwise."""
    if isinstance(given, dict) and isinstance(stored, dict):
        return [line for key in given for line in
                (missing_from(stored[key], given[key], f"{at}/{key}") if key in stored else [f"{at}/{key}"])]
    if isinstance(given, list) and isinstance(stored, list) and len(given) == len(stored):
        return [line for i, pair in enumerate(zip(stored, given)) for line in missing_from(*pair, f"{at}/{i}")]
    return [] if harness.same(stored, given) else [at]


if __name__ == "__main__":
    unittest.main()
