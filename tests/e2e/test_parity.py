#!/usr/bin/env python3
"""One verdict: what the live webhook says through a real API server, ossa-validator says offline.

More than 600 manifests: every corpus file that is a mapping, vectors, and mutations of good documents by a fixed seed; and
TenantQuotas, mutated in the same way.
Each is created with dryRun=All, and all are given to `ossa-validator` as files. Verdict, errors (field and message) and
warnings must be the same. What the API server itself makes different (docs/validator.md) is named here:
  - members that are null are dropped where the CRD knows them, before any webhook: such manifests are left out;
  - the CRD's own types: the API server answers alone, with no webhook asked. Then both refuse, and each field it names
    the validator names too;
  - members are sorted, so the files here have them sorted;
  - warnings are cut to 200 characters and 15 lines: longer lists are compared as far as they go.
Left out on the validator's side: agent/example, which only it judges, and yaml/*, which concern the file.
"""
import copy
import json
import random
import re
import subprocess
import unittest
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import DATA, ROOT, Case, agent, bin_dir, from_yaml
from test_round_trip import as_agent, drop_nulls

ASKED = "?dryRun=All&fieldValidation=Ignore"


def places(value, at=()):
    """The way to every value inside a document."""
    yield at
    if isinstance(value, dict):
        for name, member in value.items():
            yield from places(member, (*at, name))
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield from places(element, (*at, i))


def mutate(document, dice):
    """One change somewhere inside: a member lost, renamed or doubled, a value of another kind, a text or number bent."""
    document = copy.deepcopy(document)
    at = dice.choice([way for way in places(document) if way])
    parent = document
    for step in at[:-1]:
        parent = parent[step]
    last, value = at[-1], parent[at[-1]]
    kind = dice.randrange(6)
    if kind == 0:
        del parent[last]
    elif kind == 1 and isinstance(parent, dict):
        parent[f"{last}s"] = parent.pop(last)
    elif kind == 2 and isinstance(parent, list):
        parent.append(copy.deepcopy(value))
    elif isinstance(value, str):
        parent[last] = dice.choice([value + " ", value.upper(), "", "-" + value, "x" * 70, value + "\n", "ä" + value])
    elif isinstance(value, bool):
        parent[last] = not value
    elif isinstance(value, (int, float)):
        parent[last] = dice.choice([-1, 0, value * 100_000, value + 0.5, 65_536])
    else:
        parent[last] = dice.choice([[], {}, "text", 7, {"unheard": True}])
    return document


def field_and_message(line):
    """'spec.a["b: c"].d: what is wrong' -> its field and its message."""
    field = re.match(r'(?:[^:"]|"(?:[^"\\]|\\.)*")*', line).group()
    return field, line[len(field) + 2:]


def cut(line):
    line = re.sub(r"[\x00-\x1f\x7f]", " ", line)
    return line if len(line) <= 200 else line[:199] + "…"


def without_kind(line):
    """A warning as the webhook sends it: field and text, without the kind of cause and the value that the validator prints
    between."""
    field, message = field_and_message(line)
    return f"{field}: " + re.sub(r'^(Invalid value|Required value|Unsupported value|Duplicate value|Forbidden|Not found): '
                                 r'("(?:[^"\\]|\\.)*": )?', "", message)


def is_said(online, finding):
    """The same error: the webhook may append the hint, which the validator says in a line of its own, and may know a better
    one than a near miss."""
    message = finding["message"]
    return (online in (message, f"{message} ({finding['hint']})")
            or re.fullmatch(re.escape(message) + r' \(did you mean "[^"]*"\?\)', online) is not None)


def is_within(inner, outer):
    return inner == outer or (inner.startswith(outer) and inner[len(outer)] in ".[")


def field_of(cause):
    """The field of a cause of the API server's own; those of the CRD's numbers stand at the end of the message only."""
    if cause["field"] == "<nil>":
        return re.search(r" in (\S+)$", cause["message"]).group(1)
    return cause["field"].removeprefix(".")


QUOTA = {"maxAgents": 10, "maxGPUs": 4, "maxTotalReplicas": 50, "maxReplicasPerAgent": 5,
         "networkPolicy": {"isolate": True, "allowedNamespaces": ["team-a", "team-b"]},
         "resourceQuota": {"requests.cpu": "10", "limits.memory": "64Gi"}}
RESOURCES = {"Agent": "agents", "TenantQuota": "tenantquotas"}


def manifest(kind, number, spec):
    return {"apiVersion": "ossa.ai/v1", "kind": kind, "metadata": {"name": f"parity-{number}", "namespace": "parity"},
            "spec": spec}


class Parity(Case):
    setup_name = "parity"

    def manifests(self):
        corpus = [path for path in sorted((DATA / "corpus").rglob("*")) if path.suffix in (".yaml", ".yml", ".json")]
        specs = []
        for path in corpus:
            text = as_agent(path.read_text(encoding="utf-8"), "x")
            if re.search(r"^  ---", text, re.M):
                continue        # several documents
            try:
                specs.append(from_yaml(self.cluster, input=text)[0]["spec"])
            except (subprocess.CalledProcessError, KeyError):
                continue        # no YAML at all: there is nothing that could be sent
        good = [spec for spec in specs if isinstance(spec, dict) and isinstance(spec.get("agent"), dict)]
        vectors = [json.loads(path.read_text(encoding="utf-8"))["document"]
                   for path in sorted((DATA / "vectors").glob("*.json"))]
        dice = random.Random(20261201)
        mutations = [mutate(dice.choice(good), dice) for _ in range(250)]
        schema = json.loads((ROOT / "schema" / "ossa-1.0.schema.json").read_text(encoding="utf-8"))
        out = []
        for spec in specs + vectors[::2] + mutations:
            without_nulls = copy.deepcopy(spec)
            drop_nulls(schema, without_nulls)
            if isinstance(spec, dict) and without_nulls == spec:
                out.append(manifest("Agent", len(out), spec))
        for _ in range(120):
            spec = QUOTA
            for _ in range(dice.choice([1, 1, 2, 5])):
                spec = mutate(spec, dice)
            out.append(manifest("TenantQuota", len(out), spec))
        return out

    def offline(self, texts):
        """By manifest: the findings of ossa-validator."""
        with TemporaryDirectory(prefix="ossa-parity-") as folder:
            for i, text in enumerate(texts):
                (Path(folder) / f"{i}.json").write_text(text, encoding="utf-8")
            done = subprocess.run([bin_dir() / "ossa-validator", "--no-cross-checks", "--format", "json", folder],
                                  capture_output=True, text=True, timeout=120)
            self.assertIn(done.returncode, (0, 1, 3), done.stderr)
            report = json.loads(done.stdout)
        self.assertEqual(report["summary"]["files"], len(texts))
        self.assertEqual(report["summary"]["judged"], len(texts))
        found = [[] for _ in texts]
        for finding in report["findings"]:
            if finding["rule"] != "agent/example" and not finding["rule"].startswith("yaml/"):
                found[int(Path(finding["file"]).stem)].append(finding)
        return found

    def test_the_webhook_and_the_validator_give_one_verdict(self):
        self.api.namespace("parity")
        items = self.manifests()
        # kubectl's numbers are Decimals. Sorted, since the API server sorts members, and of an inline schema with several
        # faults the first one is named.
        texts = [json.dumps(item, default=float, sort_keys=True) for item in items]
        self.assertGreaterEqual(len(texts), 600)
        offline = self.offline(texts)
        counts = {"allowed": 0, "denied": 0, "by the CRD": 0, "warnings": 0}
        quotas = Counter()
        for item, text, findings in zip(items, texts, offline):
            errors = [f for f in findings if f["severity"] == "error"]
            warnings = [f for f in findings if f["severity"] == "warning"]
            status, headers, body = self.api.raw("POST", self.api.path(RESOURCES[item["kind"]], "parity", query=ASKED),
                                                 text)
            answer = json.loads(body)
            if item["kind"] == "TenantQuota":
                quotas[status] += 1
            with self.subTest(text[:300]):
                if status == 201:
                    counts["allowed"] += 1
                    self.assertEqual(errors, [])
                    self.check_warnings(headers.get_all("Warning") or [], warnings, counts)
                elif "denied the request" in answer["message"]:
                    counts["denied"] += 1
                    self.check_errors(answer["details"]["causes"], errors)
                    self.check_warnings(headers.get_all("Warning") or [], warnings, counts)
                else:
                    counts["by the CRD"] += 1
                    self.assertIn(status, (400, 422), answer)
                    fields = {field_and_message(f["message"])[0] for f in errors}
                    for cause in answer["details"].get("causes", []):
                        field = field_of(cause)
                        self.assertTrue(any(is_within(f, field) or is_within(field, f) for f in fields),
                                        f"only the API server names {cause}; the validator {errors}")
                    self.assertNotEqual(errors, [])
        print(f"parity: {len(texts)} manifests: {counts}; quotas by status: {dict(quotas)}")
        self.assertGreaterEqual(counts["allowed"] + counts["denied"], 400, "most must reach the webhook")
        self.assertGreaterEqual(counts["allowed"], 100)
        self.assertGreaterEqual(counts["denied"], 150)
        self.assertGreaterEqual(counts["warnings"], 50)
        self.assertGreaterEqual(min(quotas[201], quotas[422]), 20)

    def test_a_difference_would_be_seen(self):
        bad = manifest("Agent", 0, {"ossaVersion": "1.0", "agent": {**agent("x")["spec"]["agent"], "role": "x", "version": "one"}})
        self.api.namespace("parity")
        [found] = self.offline([json.dumps(bad)])
        status, _, body = self.api.raw("POST", self.api.path("agents", "parity", query=ASKED), json.dumps(bad))
        self.assertEqual(status, 422)
        causes = json.loads(body)["details"]["causes"]
        errors = [f for f in found if f["severity"] == "error"]
        self.check_errors(causes, errors)
        other = {**causes[0], "message": causes[0]["message"] + " at all"}
        moved = {**causes[0], "field": "spec.agent"}
        for changed in (causes[1:], causes + causes[:1], [other, *causes[1:]], [moved, *causes[1:]], []):
            with self.assertRaises(AssertionError):
                self.check_errors(changed, errors)
        with self.assertRaises(AssertionError):
            self.check_warnings(['299 - "spec.agent: mind the gap"'], [], {"warnings": 0})

    def check_errors(self, causes, errors):
        """The causes are the first hundred of the errors."""
        online = sorted(f"{cause['field']}: {cause['message']}" for cause in causes)
        if len(errors) <= 100:
            self.assertEqual(len(online), len(errors), (online, errors))
        else:
            self.assertEqual(len(online), 100)
        left = list(errors)
        for line in online:
            said = next((error for error in left if is_said(line, error)), None)
            self.assertIsNotNone(said, f"only the webhook says {line}; the validator {errors}")
            left.remove(said)

    def check_warnings(self, headers, warnings, counts):
        online = sorted(json.loads(re.fullmatch(r'299 - (".*")', header).group(1)).encode("latin-1").decode()
                        for header in headers)
        offline = sorted(cut(without_kind(f["message"]) + (f" ({f['hint']})" if f["hint"] else "")) for f in warnings)
        counts["warnings"] += len(online)
        if len(offline) <= 15 and sum(map(len, offline)) < 3500:
            self.assertEqual(online, offline)
        else:
            self.assertLessEqual(set(line for line in online if " more: run ossa-validator" not in line), set(offline))


if __name__ == "__main__":
    unittest.main()
