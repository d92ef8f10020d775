#!/usr/bin/env python3
"""Every shared OSSA 1.0 vector through the running server: TLS, HTTP, review, both doors. No API server is involved, so
that documents arrive exactly as written (an API server re-spells numbers and refuses wrong types itself)."""
import json
import re
import unittest
from collections import Counter

from harness import (DATA, MUTATE, VALIDATE, Case, agent_text, apply_patch, causes_of, differences, member_text, patch_of,
                     read_json)

REASONS = {"type": "FieldValueTypeInvalid", "enum": "FieldValueNotSupported", "required": "FieldValueRequired",
           "maxLength": "FieldValueTooLong"}


def field_path(pointer, member=None):
    """A pointer below the document, as a field of the Agent that holds it: /agent/tags/0 -> spec.agent.tags[0]."""
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
    out = "spec"
    for token in tokens + ([member] if member is not None else []):
        if re.fullmatch(r"[0-9]+", token):
            out += f"[{token}]"
        elif re.fullmatch(r"[A-Za-z0-9_-]+", token):
            out += f".{token}"
        else:
            out += f"[{json.dumps(token, ensure_ascii=False)}]"
    return out


def expected_causes(vector):
    return Counter((field_path(error["path"], error.get("property") if error["keyword"] == "required" else None),
                    REASONS.get(error["keyword"], "FieldValueInvalid")) for error in vector["errors"])


class LiveVectors(Case):
    setup_name = "live-vectors"
    with_cluster = False

    def vectors(self, folder, least):
        files = sorted((DATA / folder).glob("*.json"))
        self.assertGreaterEqual(len(files), least)
        return [(file.name, file.read_text(encoding="utf-8")) for file in files]

    def test_every_vector_gets_its_verdict_and_its_causes(self):
        by_rules_alone = 0
        for name, text in self.vectors("vectors", 756):
            with self.subTest(name):
                vector = read_json(text)
                response = self.webhook.review(VALIDATE, agent_text(member_text(text, "document")))
                rules = [rule for rule in response.get("auditAnnotations", {}).get("rules", "").split(",") if rule]
                if response["allowed"]:
                    self.assertTrue(vector["valid"], "allowed, although the vector is invalid")
                    continue
                status = response["status"]
                self.assertEqual((status["code"], status["reason"]), (422, "Invalid"), status)
                found, expected = Counter(causes_of(status)), expected_causes(vector)
                self.assertEqual(expected - found, Counter(), f"causes that are missing; there are {dict(found)}")
                of_schema = [rule for rule in rules if rule.startswith("schema/")]
                self.assertEqual(bool(of_schema), not vector["valid"], rules)
                self.assertEqual({rule.partition("/")[2] for rule in of_schema}, {e["keyword"] for e in vector["errors"]})
                if len(of_schema) == len(rules):
                    self.assertEqual(found, expected, "causes that no vector has, and no rule beyond the schema spoke")
                by_rules_alone += vector["valid"]
        # Rules beyond the schema may refuse what the schema allows, but that is the exception.
        self.assertLess(by_rules_alone, 60)

    def test_defaulting_any_vector_is_clean_and_done_once(self):
        for name, text in self.vectors("vectors", 756):
            with self.subTest(name):
                vector = read_json(text)
                document = member_text(text, "document")
                patch = patch_of(self.webhook.review(MUTATE, agent_text(document)))
                given = {"spec": json.loads(document)}
                patched = apply_patch(given, json.loads(json.dumps(patch, default=float)))
                again = self.webhook.review(MUTATE, agent_text(json.dumps(patched["spec"])))
                self.assertNotIn("patch", again)

    def test_every_default_vector_gets_exactly_its_defaults(self):
        for name, text in self.vectors("default-vectors", 25):
            with self.subTest(name):
                vector = read_json(text)
                response = self.webhook.review(MUTATE, agent_text(member_text(text, "input")))
                self.assertTrue(response["allowed"])
                patched = apply_patch({"spec": vector["input"]}, patch_of(response))
                expected = vector["defaulted"]
                body = expected.get("agent") if isinstance(expected, dict) else None
                if isinstance(body, dict) and isinstance(body.get("runtime"), dict):
                    body["runtime"].setdefault("replicas", 1)     # the operator's own extension
                self.assertEqual(differences(patched["spec"], expected), [])
                again = self.webhook.review(MUTATE, agent_text(json.dumps(patched["spec"], default=float)))
                self.assertTrue(again["allowed"])
                self.assertNotIn("patch", again)
                # The verdict is the same before and after.
                verdicts = [self.webhook.review(VALIDATE, agent_text(t))["allowed"]
                            for t in (member_text(text, "input"), json.dumps(patched["spec"], default=float))]
                self.assertEqual(verdicts[0], verdicts[1])
                if verdicts[0]:
                    self.assertTrue(vector["valid"])

    def test_nothing_of_all_this_was_a_bug(self):
        self.assertEqual(self.webhook.metric("ossa_bug_total"), 0)


if __name__ == "__main__":
    unittest.main()
