#!/usr/bin/env python3
"""ossa-validator through its command line: the field reports R099-R110, formats, exit codes, bounds.

Usage: validator_test.py --bin PATH [unittest arguments]     (or OSSA_VALIDATOR=PATH)
"""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests/data"
SANITIZED = "OSSA_SLOW_BUILD" in os.environ
BIN = os.environ.get("OSSA_VALIDATOR", str(ROOT / "build/dev/bin/ossa-validator"))

AGENT = """\
apiVersion: ossa.ai/v1
kind: Agent
metadata:
  name: {name}
  namespace: {namespace}
spec:
  ossaVersion: "1.0"
  agent:
    id: {id}
    name: Test
    version: 1.0.0
    role: custom
    runtime:
      type: k8s
      image: registry.example/a:1.0.0
    capabilities:
      - name: x
        description: does x
        input_schema: {{type: object}}
        output_schema: {{type: object}}
{more}"""


def agent(name="a", namespace="team", id=None, more=""):
    return AGENT.format(name=name, namespace=namespace, id=id or name, more=more)


BARE = """\
ossaVersion: "1.0"
agent:
  id: a
  name: Test
  version: 1.0.0
  role: custom
  runtime: {type: local}
  capabilities: [{name: x, description: does x, input_schema: {type: object}, output_schema: {type: object}}]
"""


class Run:
    def __init__(self, *arguments, stdin="", cwd=None, env=None, bounded=False):
        def limit():
            if bounded and not SANITIZED:   # the sanitizers map terabytes
                resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        start = time.perf_counter()
        done = subprocess.run([BIN, *map(str, arguments)], input=stdin.encode() if isinstance(stdin, str) else stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, check=False,
                              env=dict(os.environ, **(env or {})), preexec_fn=limit if bounded else None, timeout=120)
        self.seconds = time.perf_counter() - start
        self.code = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def findings(self):
        return self.json["findings"]

    def rules(self, severity=None):
        return [f["rule"] for f in self.findings if severity in (None, f["severity"])]


def judge(text, *arguments, **more):
    return Run("-", "--format", "json", *arguments, stdin=text, **more)


class Base(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.dir = pathlib.Path(self.folder.name)

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


class R099_EveryFindingSaysWhere(Base):
    def test_line_column_document_and_pointer_in_every_format(self):
        good = agent()
        bad = agent("c").replace("version: 1.0.0", "version: one")
        text = f"{good}---\n{agent('b')}---\n{bad}"
        line = text.splitlines().index("    version: one") + 1
        file = self.write("three.yaml", text)
        run = Run(file, "--format", "json")
        self.assertEqual(run.code, 1)
        [finding] = run.findings
        self.assertEqual((finding["file"], finding["document"], finding["line"], finding["column"]), (str(file), 3, line, 14))
        self.assertEqual((finding["pointer"], finding["rule"]), ("/spec/agent/version", "schema/pattern"))
        self.assertIn(f"{file}:{line}:14: error: ", Run(file).out)
        sarif = json.loads(Run(file, "--format", "sarif").out)["runs"][0]["results"][0]
        self.assertEqual(sarif["locations"][0]["physicalLocation"]["region"]["startLine"], line)
        self.assertEqual(sarif["properties"], {"document": 3, "pointer": "/spec/agent/version"})

    def test_names_with_dots_and_slashes_are_unambiguous(self):
        run = judge(agent(more='  workload: {podLabels: {"a.b/c": 5}}\n'))
        [finding] = [f for f in run.findings if f["severity"] == "error"]
        self.assertEqual(finding["pointer"], "/spec/workload/podLabels/a.b~1c")
        self.assertIn('["a.b/c"]', finding["message"])


class R100_NothingToCheckIsNoSuccess(Base):
    def test_empty_input(self):
        for text in ("", "\n\n", "# only a comment\n", "---\n---\n"):
            self.assertEqual(judge(text).code, 4, text)
            self.assertEqual(judge(text, "--allow-empty").code, 0)

    def test_folder_and_pattern_without_hits(self):
        self.write("readme.txt", "no manifest")
        self.assertEqual(Run(self.dir).code, 4)
        run = Run(self.dir / "*.yaml")
        self.assertEqual(run.code, 4)
        self.assertIn("no *.yaml", run.err)

    def test_what_cannot_be_parsed_or_read_has_its_own_code(self):
        self.assertEqual(judge("a: [1\n").code, 3)
        self.assertEqual(Run(self.dir / "missing.yaml").code, 3)
        self.assertEqual(judge(agent() + "---\na: [\n").code, 3)

    def test_usage(self):
        self.assertEqual(Run().code, 2)
        self.assertEqual(Run("--no-such-option").code, 2)
        self.assertEqual(Run("x.yaml", "--format", "xml").code, 2)
        self.assertEqual(Run("--help").code, 0)


class R101_UnknownKindsAndVersions(Base):
    def test_near_misses_are_errors(self):
        self.assertEqual(judge(agent().replace("ossa.ai/v1", "ossa.ai/v9")).rules(), ["input/api-version"])
        run = judge(agent().replace("kind: Agent", "kind: Agentt"))
        self.assertEqual((run.code, run.rules()), (1, ["input/kind"]))
        self.assertIn("Agent", run.findings[0]["hint"])
        run = judge(BARE.replace('"1.0"', '"2.0"'))
        self.assertEqual((run.code, run.rules("error")), (1, ["schema/enum"]))

    def test_foreign_kinds_are_skipped_and_counted(self):
        foreign = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
        run = judge(foreign + "---\n" + agent())
        self.assertEqual((run.code, run.json["summary"]["skipped"], run.json["summary"]["judged"]), (0, 1, 1))
        self.assertEqual(run.json["skipped"][0]["what"], "kind ConfigMap of v1")
        self.assertEqual(judge(foreign + "---\n" + agent(), "--strict").code, 1)
        self.assertEqual(judge(foreign).code, 4)

    def test_other_agent_formats_are_named(self):
        for text, word in (("apiVersion: ossa/v0.3.6\nkind: Agent\n", "OSSA v0.3.6"),
                           ('{"name": "x", "url": "https://x", "skills": []}', "A2A agent card"),
                           ("apiVersion: agentrax.io/v1alpha1\nkind: AgentDeployment\n", "ossa-validator convert")):
            self.assertIn(word, judge(text).json["skipped"][0]["what"])


class R102_EmptyDocuments(Base):
    def test_empties_are_passed_over_and_lines_stay_right(self):
        bad = agent().replace("role: custom", "role: customs")
        text = "\ufeff# made by a chart\n---\n---\n# nothing here\n---\n" + bad + "...\n---\n"
        line = text.split("\n").index("    role: customs") + 1
        for made in (text, text.replace("\n", "\r\n")):
            run = judge(made)
            self.assertEqual(run.code, 1)
            self.assertEqual(run.json["summary"]["documents"], 1)
            self.assertEqual([(f["line"], f["document"]) for f in run.findings], [(line, 1)])

    def test_a_document_behind_dots_is_never_applied(self):
        run = judge(agent() + "...\n" + agent("b"))
        self.assertEqual((run.code, run.rules()), (1, ["yaml/ignored-document"]))


class R104_EveryDocumentIsJudged(Base):
    def test_the_last_of_three(self):
        run = judge(agent("a") + "---\n" + agent("b") + "---\n" + agent("c").replace("1.0.0\n", "1\n", 1))
        self.assertEqual((run.code, [f["document"] for f in run.findings]), (1, [3]))
        self.assertEqual(run.json["summary"]["judged"], 3)

    def test_a_list(self):
        def item(text):
            return "- " + text.replace("\n", "\n  ").rstrip() + "\n"
        text = "apiVersion: v1\nkind: List\nitems:\n" + item(agent("a")) + item(agent("b").replace("role: custom", "role: x"))
        run = judge(text)
        self.assertEqual((run.code, run.json["summary"]["judged"]), (1, 2))
        self.assertEqual(run.findings[0]["pointer"], "/items/1/spec/agent/role")
        self.assertEqual(text.splitlines()[run.findings[0]["line"] - 1].strip(), "role: x")

    def test_a_stream_of_300(self):
        text = "---\n".join(agent(f"a{i}").replace("role: custom", "role: x" if i % 3 == 0 else "role: chat") for i in range(300))
        run = judge(text)
        self.assertEqual((run.json["summary"]["judged"], run.json["summary"]["invalid"], len(run.findings)), (300, 100, 100))


class R105_RepeatedKeys(Base):
    def test_yaml_and_json_name_both_lines(self):
        text = agent().replace("      image: registry.example/a:1.0.0\n",
                               "      image: NOT GOOD\n      image: registry.example/a:1.0.0\n")
        run = judge(text)
        self.assertEqual((run.code, run.rules()), (1, ["yaml/duplicate-key"]))
        first = text.splitlines().index("      image: NOT GOOD") + 1
        self.assertIn(f"line {first} and line {first + 1}", run.findings[0]["message"])
        run = judge('{"ossaVersion": "1.0",\n "agent": {"name": "a",\n "name": "b"}}')
        self.assertIn("yaml/duplicate-key", run.rules())
        self.assertIn("line 2 and line 3", [f for f in run.findings if f["rule"] == "yaml/duplicate-key"][0]["message"])

    def test_merge_keys_are_fine(self):
        text = BARE.replace("  capabilities: [{name: x, description: does x, input_schema: {type: object}, "
                            "output_schema: {type: object}}]\n",
                            "  capabilities:\n  - &one\n    name: x\n    description: d\n    input_schema: {type: object}\n"
                            "    output_schema: {type: object}\n  - <<: *one\n    name: y_\n")
        run = judge(text)
        self.assertEqual((run.code, run.findings), (0, []))


class R106_UnquotedValues(Base):
    def test_types_are_kubectls_and_hints_say_how_to_write_it(self):
        text = ('ossaVersion: 1.0\nagent:\n  id: a\n  name: x\n  version: 1.10\n  role: custom\n  tags: [on, 5e2]\n'
                '  runtime: {type: local, health_check: {initial_delay_seconds: 010}}\n  metadata: {author: no}\n'
                '  capabilities: [{name: x, description: d, input_schema: {}, output_schema: {}}]\n')
        run = judge(text)
        hints = {f["pointer"]: f["hint"] for f in run.findings if f["rule"] == "schema/type"}
        self.assertEqual(hints["/ossaVersion"], 'put it in quotes: ossaVersion: "1.0"')
        self.assertEqual(hints["/agent/version"], 'put it in quotes: version: "1.10"')
        self.assertEqual(hints["/agent/metadata/author"], 'kubectl reads no as false; put it in quotes: author: "no"')
        self.assertEqual(hints["/agent/tags/0"], 'kubectl reads on as true; put it in quotes: - "on"')
        self.assertEqual(hints["/agent/tags/1"], 'put it in quotes: - "5e2"')
        odd = [f for f in run.findings if f["rule"] == "yaml/odd-number"]
        self.assertEqual([(f["line"], "010 as 8" in f["message"]) for f in odd], [(8, True)])

    def test_keys_that_become_booleans(self):
        run = judge(BARE + "y: 1\n")
        self.assertIn("yaml/boolean-key", run.rules("warning"))


class R107_QuotedStaysText(Base):
    def test_quoted_values_stay_strings(self):
        text = BARE.replace("id: a", 'id: "123"').replace("runtime: {type: local}",
               'runtime: {type: local, requirements: {python: "3.10"}, resources: {cpu: "2"}}')
        for word in ("null", "~", "true", "1.0"):
            run = judge(text.replace("name: Test", f'name: Test\n  description: "{word}"'))
            self.assertEqual((run.code, run.findings), (0, []), word)
        self.assertEqual(judge(BARE.replace("id: a", "id: 123")).rules("error"), ["schema/type"])

    def test_emitted_documents_parse_to_the_same_values(self):
        text = BARE.replace("name: Test", 'name: "null"\n  description: "~"\n  tags: ["on", "010", "1e3", ": x", "#", "- a", ""]')
        run = Run("-", "--show-defaults=document", stdin=text)
        self.assertEqual(judge(run.out).code, 0, run.out)


class R108_Sarif(Base):
    def check(self, text):
        validator = sarif_validator()
        validator.validate(json.loads(text))
        return json.loads(text)["runs"][0]

    def test_clean_warning_and_error_runs(self):
        clean = self.write("folder with blanks/größe.yaml", agent())
        run = self.check(Run("folder with blanks", "--format", "sarif", cwd=self.dir).out)
        self.assertEqual(run["results"], [])
        del clean
        self.write("folder with blanks/größe.yaml", agent(more="  workloads: {}\n"))
        run = self.check(Run("folder with blanks", "--format", "sarif", cwd=self.dir).out)
        [result] = run["results"]
        self.assertEqual(result["level"], "warning")
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        self.assertEqual(uri, "folder%20with%20blanks/gr%C3%B6%C3%9Fe.yaml")
        self.write("bad.yaml", "a: [\n")
        run = self.check(Run("bad.yaml", "missing.yaml", "--format", "sarif", cwd=self.dir).out)
        self.assertEqual(len(run["results"]), 2)
        for result in run["results"]:
            self.assertGreaterEqual(result["locations"][0]["physicalLocation"]["region"]["startLine"], 1)
            self.assertEqual(run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], result["ruleId"])


class R109_OneMessageForAlternatives(Base):
    def test_one_line_each_and_always_in_the_same_order(self):
        text = BARE.replace("input_schema: {type: object}, output_schema: {type: object}",
                            'input_schema: 5, output_schema: "not a uri"') + "  bridge: {mcp: {server_type: http}}\n"
        first = judge(text)
        self.assertEqual(first.rules("error"), ["schema/oneOf", "schema/oneOf", "schema/enum"])
        self.assertIn("an object or an absolute URI", first.findings[0]["message"])
        self.assertIn("5", first.findings[0]["message"])
        for _ in range(3):
            self.assertEqual(judge(text).out, first.out)


class R110_SameVerdictWithoutACluster(Base):
    def test_600_files_within_a_second(self):
        # The comparison with the live webhook is tests/e2e/parity; here: no network, and fast.
        for i in range(300):
            self.write(f"good/{i}.yaml", agent(f"a{i}"))
            self.write(f"bad/{i}.yaml", agent(f"b{i}").replace("role: custom", "role: x"))
        run = Run(self.dir, "--format", "json")
        self.assertEqual((run.json["summary"]["judged"], run.json["summary"]["invalid"], run.code), (600, 300, 1))
        if not SANITIZED:
            self.assertLess(run.seconds, 3)   # on a busy machine; the benchmark holds the promise


class CrossChecks(Base):
    def test_duplicate_ids_per_namespace(self):
        self.write("a.yaml", agent("a", id="same"))
        self.write("b.yaml", agent("b", id="same"))
        self.write("c.yaml", agent("c", namespace="other", id="same"))
        run = Run(self.dir, "--format", "json")
        self.assertEqual([(pathlib.Path(f["file"]).name, f["rule"]) for f in run.findings], [("b.yaml", "agent/duplicate-id")])
        self.assertIn("a.yaml", run.findings[0]["message"])
        self.assertEqual(Run(self.dir, "--no-cross-checks").code, 0)

    def test_cycles_show_the_way_and_missing_ones_warn(self):
        def needs(name, *others):
            entries = ", ".join(f"{{agent_id: {o}, min_version: 1.0.0}}" for o in others)
            return agent(name, more=f"    dependencies: {{required: [{entries}]}}\n")
        text = "---\n".join([needs("a", "b"), needs("b", "c"), needs("c", "a"), needs("d", "e")])
        run = judge(text)
        self.assertEqual(sorted(run.rules()), ["agent/dependency-cycle", "agent/dependency-missing"])
        self.assertIn("a -> b -> c -> a", run.findings[0]["message"])
        self.assertEqual(run.findings[0]["document"], 3)

    def test_quota_totals(self):
        quota = ("apiVersion: ossa.ai/v1\nkind: TenantQuota\nmetadata: {name: q, namespace: team}\n"
                 "spec:\n  maxAgents: 1\n  maxTotalReplicas: 5\n  maxReplicasPerAgent: 3\n")
        text = quota + "---\n" + agent("a", more="  scaling: {minReplicas: 1, maxReplicas: 4, metric: queueDepth, target: 1}\n")
        text += "---\n" + agent("b") + "---\n" + agent("c", namespace="elsewhere")
        run = judge(text)
        self.assertEqual(run.rules("error"), ["tenantquota/exceeded", "tenantquota/replicas-per-agent"])
        self.assertEqual(run.findings[0]["pointer"], "/spec/maxAgents")
        self.assertIn("declare 2", run.findings[0]["message"])


class Formats(Base):
    def test_junit_and_github(self):
        bad = self.write("a,b.yaml", agent().replace("role: custom", "role: x"))
        good = self.write("good.yaml", agent("b"))
        tree = xml.etree.ElementTree.fromstring(Run(bad, good, "--format", "junit").out)
        suite = tree.find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "1"))
        line = Run(bad, "--format", "github").out
        self.assertRegex(line, r"^::error file=.*a%2Cb\.yaml,line=\d+,col=\d+,title=schema/enum::")

    def test_human_excerpt_caret_colour_and_quiet(self):
        bad = self.write("a.yaml", agent().replace("role: custom", "role: customs"))
        lines = Run(bad).out.splitlines()
        self.assertEqual(lines[1].index("customs"), lines[2].index("^^^^^^^"))
        self.assertIn('hint: did you mean "custom"?', lines[3])
        self.assertNotIn("\x1b", Run(bad).out)
        self.assertIn("\x1b[", Run(bad, "--color", "always").out)
        self.assertEqual(len(Run(bad, "--quiet").out.splitlines()), 1)

    def test_no_control_character_of_a_document_reaches_the_terminal(self):
        run = Run("-", stdin=BARE.replace("role: custom", 'role: "a\\e[31mred\\x9b"'))
        self.assertNotIn("\x1b", run.out)

    def test_output_file_and_environment(self):
        out = self.dir / "report.json"
        run = Run("-", stdin=agent(), env={"OSSA_FORMAT": "json", "OSSA_OUTPUT": str(out)})
        self.assertEqual((run.code, run.out), (0, ""))
        self.assertEqual(json.loads(out.read_text())["findings"], [])

    def test_commands(self):
        rules = Run("rules").out
        listed = [line.split()[0] for line in rules.splitlines()]
        self.assertEqual(listed, sorted(listed))
        for rule in listed:
            self.assertEqual(Run("explain", rule).code, 0)
        self.assertEqual(Run("explain", "no/rule").code, 2)
        self.assertEqual(json.loads(Run("schema").out)["type"], "object")
        self.assertEqual(Run("crds").out.count("kind: CustomResourceDefinition"), 2)
        self.assertRegex(Run("--version").out, r"^ossa-validator \d")
        self.assertIn("timeout_seconds: 300", Run("-", "--show-defaults", stdin=agent()).out)

    def test_man_page_and_completions_know_every_option(self):
        options = set(re.findall(r"^  (--[a-z-]+)", Run("--help").out, re.M)) | {"--help"}
        self.assertGreater(len(options), 10)
        for name in ("ossa-validator.1", "completions/ossa-validator.bash", "completions/_ossa-validator",
                     "completions/ossa-validator.fish"):
            text = (ROOT / "validator" / name).read_text().replace("\\-", "-")
            for option in options:
                wanted = option[2:] if name.endswith(".fish") else option
                self.assertIn(wanted, text, f"{name}: {option}")


class Docs(Base):
    def test_the_example_is_what_the_program_prints(self):
        text = (ROOT / "docs/validator.md").read_text()
        block = re.search(r"```console\n\$ cat agent.yaml\n(.*?)\$ ossa-validator agent.yaml\n(.*?)\$ echo \$\?\n(\d+)\n", text, re.S)
        self.write("agent.yaml", block[1])
        run = Run("agent.yaml", cwd=self.dir)
        self.assertEqual((run.out, run.code), (block[2], int(block[3])))

    def test_the_modeline_is_only_a_comment(self):
        self.assertEqual(judge("# yaml-language-server: $schema=./ossa-1.0.schema.json\n" + BARE).code, 0)


class ContinuousIntegration(Base):
    """The snippets of docs/validator.md are run as they stand there, on a good and on a bad folder."""

    def snippet(self, word):
        text = (ROOT / "docs/validator.md").read_text()
        [block] = [b for b in re.findall(r"```yaml\n(.*?)```", text, re.S) if word in b]
        return yaml.safe_load(block)

    def shell(self, line):
        """The exit code on a folder `agents` with a good Agent, and with a bad one."""
        codes = []
        for role in ("custom", "none"):
            self.write("agents/a.yaml", agent().replace("role: custom", f"role: {role}"))
            env = dict(os.environ, PATH=f"{pathlib.Path(BIN).parent}:{os.environ['PATH']}")
            codes.append(subprocess.run(line, shell=True, cwd=self.dir, env=env, capture_output=True, timeout=60).returncode)
        return codes

    def test_github(self):
        [step] = self.snippet("--format github")
        self.assertEqual(self.shell(step["run"]), [0, 1])

    def test_gitlab(self):
        job = self.snippet("--format junit")["agents"]
        [line] = job["script"]
        self.assertEqual(self.shell(line), [0, 1])
        tree = xml.etree.ElementTree.parse(self.dir / job["artifacts"]["reports"]["junit"]).getroot()
        self.assertEqual(tree.find("testsuite").get("failures"), "1")

    def test_pre_commit(self):
        [repository] = self.snippet("hooks:")["repos"]
        hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
        [wanted] = repository["hooks"]
        hook = hooks[wanted["id"]]
        self.assertEqual(hook["language"], "system")
        # pre-commit appends the names of the changed files.
        self.assertEqual(self.shell(hook["entry"] + " agents/a.yaml"), [0, 1])
        self.write("other.yaml", "kind: ConfigMap\napiVersion: v1\n")
        self.assertEqual(self.shell(hook["entry"] + " other.yaml"), [0, 0])


class Convert(Base):
    def test_agent_deployment_and_quota(self):
        text = """\
apiVersion: agentrax.io/v1alpha1
kind: AgentDeployment
metadata: {name: search, namespace: ml}
spec:
  image: registry.example/search:v1.4.2
  port: 9000
  tenantRef: team-search
  replicas: {min: 1, max: 4, metric: queueDepth, target: 10}
  rollout:
    strategy: Canary
    steps: [{setWeight: 20}, {pause: 5m}, {setWeight: 100}]
    rollback: {maxErrorRate: "2%", maxP99LatencyMs: 800, minRequestSample: 100}
  mcp: {expose: true, tools: [find, rank]}
  env: [{name: MODE, value: "on"}]
  args: ["--x"]
---
apiVersion: agentrax.io/v1alpha1
kind: TenantQuota
metadata: {name: team-search, namespace: ml}
spec: {maxAgents: 6, maxGPUs: 4, maxTotalReplicas: 12, maxReplicasPerAgent: 6}
"""
        run = Run("convert", "-", stdin=text)
        self.assertEqual(run.code, 0, run.err)
        self.assertIn("agent.role is custom", run.err)
        self.assertIn('version: "1.4.2"', run.out)
        judged = judge(run.out)
        self.assertEqual((judged.code, judged.findings, judged.json["summary"]["judged"]), (0, [], 2), run.out)

    def test_bare_documents_of_the_corpus_become_good_agents(self):
        files = sorted((DATA / "ossa-1.0/corpus/files").glob("00[3-8]*.yaml"))
        run = Run("convert", *files, "--namespace", "agents", "--tenant", "t")
        self.assertEqual(run.code, 0, run.err)
        before = Run(*files, "--format", "json", "--no-cross-checks")
        after = judge(run.out, "--no-cross-checks")
        self.assertEqual(sorted("/spec" + f["pointer"] + f["rule"] for f in before.findings),
                         sorted(f["pointer"] + f["rule"] for f in after.findings))
        self.assertEqual(Run("convert", "-", stdin="a: 1\n").code, 4)


    def test_what_a_conversion_would_lose_is_named_instead(self):
        lossy = {"cost: .inf": "kubectl refuses .inf", "role: x": "the key \"role\" stands twice"}
        for line, said in lossy.items():
            text = BARE.replace("  role: custom\n", f"  role: custom\n  {line}\n")
            run = Run("convert", "-", stdin=text + "---\n" + BARE)
            self.assertEqual(run.code, 3, run.err)
            self.assertRegex(run.err, rf"-:7:\d+: not converted: {re.escape(said)}")
            self.assertEqual(run.out.count("kind: Agent"), 1, "the good document is still converted")


class Bounds(Base):
    def test_alias_bomb(self):
        lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
        for letter, before in zip("bcdefghi", "abcdefgh"):
            lines.append(f"{letter}: &{letter} [" + ", ".join([f"*{before}"] * 10) + "]")
        run = judge("\n".join(lines) + "\n", bounded=True)
        self.assertEqual((run.code, run.rules()), (3, ["yaml/alias"]))

    def test_long_text_repeated_by_aliases(self):
        text = "a: &a " + "x" * 1_000_000 + "\nb: [" + ", ".join(["*a"] * 90) + "]\n"
        run = judge(text, bounded=True)
        self.assertEqual((run.code, run.rules()), (3, ["yaml/size"]))

    def test_deep_nesting(self):
        for depth in (10_000, 1_000_000):
            for text in ("a: " + "[" * depth, "a: " + "{a: " * depth, "- " * depth, '{"a":' * depth, "[" * depth,
                         '{"a":' + "[" * depth + "]" * depth + "}"):
                run = judge(text, bounded=True)
                self.assertEqual(run.code, 3, text[:20])
                self.assertIn(run.rules()[0], ("yaml/depth", "yaml/syntax", "yaml/size"))
                self.assertLess(run.seconds, 20)
        nested = "\n".join(" " * i + "a:" for i in range(3000))
        self.assertEqual(judge(nested, bounded=True).rules(), ["yaml/depth"])

    def test_50_mb_in_one_document_and_in_many(self):
        run = judge("a: " + "x" * 50_000_000, bounded=True)
        self.assertEqual((run.code, run.rules()), (3, ["yaml/size"]))
        one = agent() + "---\n"
        run = judge(one * (50_000_000 // len(one)), "--no-cross-checks", bounded=True)
        self.assertEqual(run.code, 0)

    def test_100_000_documents(self):
        run = judge("---\n".join(agent(f"a{i}") for i in range(100_000)), bounded=True)
        self.assertEqual((run.code, run.json["summary"]["judged"]), (0, 100_000))

    def test_not_utf8(self):
        for text in (b"a: \xff\n", "a: b\n".encode("utf-16"), b"a: \x01\n", b"a: \xc3"):
            run = judge(text)
            self.assertEqual((run.code, run.rules()), (3, ["yaml/encoding"]), text)

    def test_unreadable_things(self):
        self.assertEqual(Run("/proc/self/mem").code, 3)
        self.assertEqual(Run(self.write("a.yaml", "x"), "--output", "/no/such/folder/x").code, 3)


class Corpus(Base):
    def test_each_file_has_the_listed_verdict_and_number_of_errors(self):
        rows = (DATA / "ossa-1.0/corpus/index.tsv").read_text().splitlines()
        head = rows[0].split("\t")
        wrong = []
        for row in rows[1:]:
            entry = dict(zip(head, row.split("\t")))
            run = Run(DATA / "ossa-1.0/corpus" / entry["file"], "--format", "json", "--no-cross-checks")
            summary = run.json["summary"]
            if summary["skipped"] and not summary["judged"]:
                # Another format: said in one line instead of judged by a schema that it does not follow.
                ok = entry["verdict"] == "invalid" and run.code == 4
            elif any(rule.startswith("input/") for rule in run.rules("error")):
                # Of our group, but of a kind or version that nobody serves.
                ok = entry["verdict"] == "invalid" and run.code == 1
            else:
                errors = [f for f in run.findings if f["severity"] == "error" and f["rule"].startswith("schema/")]
                others = [f["rule"] for f in run.findings if f["severity"] == "error" and not f["rule"].startswith("schema/")]
                ok = len(errors) == int(entry["n_errors"])
                ok = ok and (run.code == 0 if entry["verdict"] == "valid" and not others else run.code == 1)
            if not ok:
                wrong.append((entry["file"], entry["verdict"], entry["n_errors"], run.code, run.rules("error")))
        self.assertEqual(wrong, [])


def leaves(findings):
    """The schema errors as the vectors list them: (pointer, keyword, missing property)."""
    out = []
    for finding in findings:
        if finding["rule"].startswith("schema/"):
            keyword = finding["rule"].removeprefix("schema/")
            missing = re.search(r"([^.:\]]+): Required value", finding["message"]) if keyword == "required" else None
            out.append((finding["pointer"], keyword, missing.group(1) if missing else ""))
    return sorted(out)


def listed(errors, below=""):
    return sorted((below + e["path"], e["keyword"], e.get("property", "")) for e in errors)


class JsonVectors(Base):
    def judge_all(self, wrap):
        """By name: the vector and its findings, of one run over all that `wrap` gives a text for."""
        vectors = {path.stem: json.loads(path.read_text()) for path in (DATA / "ossa-1.0/vectors").glob("*.json")}
        self.assertEqual(len(vectors), 756)
        texts = {name: wrap(vector["document"]) for name, vector in vectors.items()}
        for name, text in texts.items():
            if text is not None:
                self.write(f"{name}.json", text)
        report = Run(self.dir, "--format", "json", "--no-cross-checks").json
        judged = {name: (vectors[name], []) for name, text in texts.items() if text is not None}
        self.assertEqual(report["summary"]["judged"], len(judged))
        for finding in report["findings"]:
            judged[pathlib.Path(finding["file"]).stem][1].append(finding)
        return judged

    def check(self, judged, below):
        for name, (vector, findings) in judged.items():
            with self.subTest(name):
                self.assertEqual(leaves(findings), listed(vector["errors"], below))
                self.assertEqual(any(f["rule"].startswith("schema/") for f in findings), not vector["valid"])

    def test_every_vector_as_an_agent(self):
        self.check(self.judge_all(lambda document: json.dumps(
            {"apiVersion": "ossa.ai/v1", "kind": "Agent", "metadata": {"name": "x"}, "spec": document})), "/spec")

    def test_every_vector_that_says_what_it_is(self):
        judged = self.judge_all(lambda document: json.dumps(document)
                                if isinstance(document, dict) and "ossaVersion" in document and "kind" not in document else None)
        self.assertGreater(len(judged), 700)
        self.check(judged, "")


class YamlVectors(Base):
    def test_kubectls_reading(self):
        kubectl = json.loads((DATA / "yaml-vectors/kubectl.json").read_text())
        for path in sorted((DATA / "yaml-vectors").glob("*.yaml")):
            expect = json.loads(path.with_name(path.stem + ".expect.json").read_text())
            reading = kubectl.get(path.stem, expect["yaml11"])
            run = Run(path, "--format", "json", "--no-cross-checks")
            with self.subTest(path.name):
                if reading.get("load_error"):
                    self.assertNotEqual(run.code, 0)
                    self.assertTrue(any(r.startswith("yaml/") for r in run.rules("error")), run.out)
                    continue
                for number, document in enumerate(reading["documents"], 1):
                    found = [f for f in run.findings if f["document"] == number]
                    self.assertEqual(leaves(found), listed(document["errors"]))
                self.assertLessEqual(max((f["document"] for f in run.findings), default=0), len(reading["documents"]))


def sarif_validator():
    schema = json.loads((DATA / "sarif/sarif-schema-2.1.0.json").read_text())
    return jsonschema.Draft4Validator(schema)


if __name__ == "__main__":
    if "--bin" in sys.argv:
        at = sys.argv.index("--bin")
        BIN = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    BIN = str(pathlib.Path(BIN).resolve())
    unittest.main()
