#!/usr/bin/env python3
"""ossa-validator reads YAML as this cluster's kubectl reads it.

Each text of tests/data/yaml-vectors is wrapped into an Agent and read by kubectl. The same text, not wrapped, goes through
`ossa-validator convert`, whose output only spells out (in quotes, or as JSON numbers) what was read; kubectl reads that too.
Both specs must be equal: had we read one scalar in another way, they would not be.
"""
import json
import subprocess
import unittest

from harness import ROOT, Case, ClusterError, bin_dir, differences, from_yaml
from test_round_trip import as_agent

VECTORS = ROOT / "tests" / "data" / "yaml-vectors"
# kubectl takes the last of repeated keys and says nothing; a linter must not.
REFUSED_HERE = {"43-duplicate-key": "yaml/duplicate-key", "44-duplicate-key-other-quote": "yaml/duplicate-key"}


def texts_of(text):
    """The documents of a YAML text that hold more than comments."""
    out = [[]]
    for line in text.splitlines():
        if line.rstrip() == "---":
            out.append([])
        else:
            out[-1].append(line)
    return ["\n".join(lines) for lines in out if any(line.strip() and not line.startswith("#") for line in lines)]


class YamlReading(Case):
    setup_name = "yaml-reading"

    def by_kubectl(self, text):
        """The specs as kubectl reads them; None when it cannot read one."""
        try:
            return [from_yaml(self.cluster, input=as_agent(one, "x"))[0]["spec"] for one in texts_of(text)]
        except ClusterError as error:
            self.assertIn("error converting YAML to JSON", str(error))
            return None

    def by_us(self, file):
        done = subprocess.run([bin_dir() / "ossa-validator", "convert", file], capture_output=True, text=True, timeout=60)
        if not done.stdout:
            return done.returncode, None
        return done.returncode, [item["spec"] for item in from_yaml(self.cluster, input=done.stdout)]

    def test_every_vector_is_read_as_kubectl_reads_it(self):
        compared = refused = 0
        for file in sorted(VECTORS.glob("*.yaml")):
            with self.subTest(file.stem):
                theirs = self.by_kubectl(file.read_text(encoding="utf-8"))
                code, ours = self.by_us(file)
                if file.stem in REFUSED_HERE:
                    self.assertIsNotNone(theirs)
                    report = subprocess.run([bin_dir() / "ossa-validator", "--format", "json", file], capture_output=True,
                                            text=True, timeout=60)
                    self.assertEqual((code, ours), (3, None), "a conversion must not pick one of the two either")
                    self.assertIn(REFUSED_HERE[file.stem], [f["rule"] for f in json.loads(report.stdout)["findings"]])
                elif theirs is None:
                    refused += 1
                    self.assertEqual((code, ours), (3, None))
                elif not theirs:
                    self.assertEqual((code, ours), (4, None))
                else:
                    compared += 1
                    self.assertEqual(len(ours or []), len(theirs), ours)
                    for a, b in zip(ours, theirs):
                        self.assertEqual(differences(a, b), [])
        print(f"yaml: {compared} texts read alike, {refused} refused by both")
        self.assertGreaterEqual(compared, 30)
        self.assertGreaterEqual(refused, 2)

    def test_a_difference_would_be_seen(self):
        # The same comparison on a pair that YAML 1.1 and 1.2 read differently.
        [theirs] = self.by_kubectl((VECTORS / "18-name-word-no.yaml").read_text(encoding="utf-8"))
        [other] = self.by_kubectl('agent: {name: "no"}')
        self.assertEqual(differences(theirs["agent"]["name"], other["agent"]["name"]), [": 'False' and 'no'"])


if __name__ == "__main__":
    unittest.main()
