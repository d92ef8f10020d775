#!/usr/bin/env python3
"""Real OSSA documents through the real API server and back: nothing of them is lost or changed, defaults are added.

kubectl reads each file as the YAML that it is, `kubectl create` posts it as an Agent, and what is stored is compared with
what kubectl read. What may differ is said in api.md: the spelling of numbers (values are compared, so 30.0 is 30), and
members that are null, which are dropped where the CRD knows them.
"""
import json
import unittest
from collections import Counter

from harness import DATA, ROOT, Case, differences, from_yaml


def valid_files():
    rows = [line.split("\t") for line in (DATA / "corpus" / "index.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    return [row[0] for row in rows if row[1] == "valid"]


def as_agent(text, name):
    """The document indented below `spec`: YAML and JSON alike, comments and block scalars included."""
    lines = text.lstrip("\ufeff").splitlines()
    body = "\n".join("  " + line if line.strip() else line for line in lines)
    return f"apiVersion: ossa.ai/v1\nkind: Agent\nmetadata:\n  name: {name}\nspec:\n{body}\n"


def fill(schema, value):
    """Defaults by the plain reading of the schema: an absent member that has a default gets it, in objects that are there."""
    if isinstance(value, dict):
        for name, sub in schema.get("properties", {}).items():
            if name not in value and "default" in sub:
                value[name] = sub["default"]
            elif name in value:
                fill(sub, value[name])
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for element in value:
            fill(schema["items"], element)


def drop_nulls(schema, value):
    """What the API server does before any webhook: null members that the CRD knows are dropped."""
    if isinstance(value, dict):
        for name, sub in schema.get("properties", {}).items():
            if name in value and value[name] is None:
                del value[name]
            elif name in value:
                drop_nulls(sub, value[name])
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for element in value:
            drop_nulls(schema["items"], element)


class RoundTrip(Case):
    setup_name = "round-trip"

    def test_every_valid_document_comes_back_whole_plus_defaults(self):
        schema = json.loads((ROOT / "schema" / "ossa-1.0.schema.json").read_text())
        self.assertNotIn("$ref", json.dumps(schema["properties"]), "fill() above follows no references")
        files = valid_files()
        self.assertEqual(len(files), 108)
        texts = {f"doc-{i}": as_agent((DATA / "corpus" / file).read_text(encoding="utf-8"), f"doc-{i}")
                 for i, file in enumerate(files)}
        read = from_yaml(self.cluster, input="\n---\n".join(texts.values()))
        self.assertEqual(len(read), len(files))

        # The same agent was found several times under one id; a namespace holds an id once.
        seen, places = Counter(), {}
        for item in read:
            places[item["metadata"]["name"]] = f"round-trip-{seen[item['spec']['agent']['id']]}"
            seen[item["spec"]["agent"]["id"]] += 1
        for namespace in sorted(set(places.values())):
            self.api.namespace(namespace)
            self.api.clear(namespace)
        placed = [text.replace(f"  name: {name}\n", f"  name: {name}\n  namespace: {places[name]}\n", 1)
                  for name, text in texts.items()]
        created = self.kubectl("create", "-f", "-", input="\n---\n".join(placed))
        self.assertEqual(created.returncode, 0, created.stderr)

        stored = {item["metadata"]["name"]: item for item in self.api.call("GET", "/apis/ossa.ai/v1/agents")[1]["items"]
                  if item["metadata"]["namespace"].startswith("round-trip-")}
        self.assertEqual(len(stored), len(files))
        for file, item in zip(files, read):
            with self.subTest(file):
                expected = item["spec"]
                drop_nulls(schema, expected)
                fill(schema, expected)
                expected["agent"]["runtime"].setdefault("replicas", 1)
                self.assertEqual(differences(stored[item["metadata"]["name"]]["spec"], expected), [])
        for namespace in sorted(set(places.values())):
            self.api.clear(namespace)

    def test_the_listed_differences_are_the_only_ones(self):
        spec = ('{"ossaVersion":"1.0","agent":{"id":"numbers","name":"Numbers","version":"1.0.0","role":"custom",'
                '"runtime":{"type":"edge"},"capabilities":[{"name":"a","description":"b","input_schema":'
                '{"spelled":[30.0,3e1,-0.0,18446744073709551616,0.1,9223372036854775807],"none":null},'
                '"output_schema":{"type":"object"},"timeout_seconds":3e1}],"monitoring":null,"x-of-mine":null}}')
        text = f'{{"apiVersion":"ossa.ai/v1","kind":"Agent","metadata":{{"name":"numbers"}},"spec":{spec}}}'
        status, _, _ = self.api.raw("POST", self.api.path("agents"), text)
        self.assertEqual(status, 201)
        raw = self.api.raw("GET", self.api.path("agents", name="numbers"))[2].decode()
        self.assertIn('"spelled":[30,30,0,18446744073709552000,0.1,9223372036854775807]', raw)
        self.assertIn('"timeout_seconds":30', raw)
        self.assertIn('"none":null', raw)             # inside what is untyped, a null stays
        self.assertIn('"x-of-mine":null', raw)        # an unknown member's null stays as well
        self.assertNotIn('"monitoring"', raw)         # a known member's null is dropped
        for number, code in (("9223372036854775808", 422), ("1e400", 400)):
            broken = text.replace('"timeout_seconds":3e1', f'"timeout_seconds":{number}').replace('"numbers"', '"more"')
            status, _, body = self.api.raw("POST", self.api.path("agents"), broken)
            self.assertEqual(status, code, body)


if __name__ == "__main__":
    unittest.main()
