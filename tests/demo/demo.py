#!/usr/bin/env python3
"""What `make demo` does once everything is built.

usage: demo.py up | down

up    a real control plane (build/cluster), ossa-webhook (build/release/bin) in front of it, the samples of manifests/samples
      applied, the good ones and the bad ones; ends with a table. Everything goes on running. Can be run again.
down  ends and removes all of it.

CLUSTER=existing uses the cluster of $KUBECONFIG (or ~/.kube/config) instead of starting one. Its API server must run on this
machine, since it reaches the webhook at 127.0.0.1.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402
from harness import HOST, MANIFESTS, ROOT, Cluster, Webhook, documents, from_yaml, wait_for  # noqa: E402

DEMO = ROOT / "build" / "demo"
SAMPLES = MANIFESTS / "samples"
STATE = DEMO / "state.json"
CONFIGURATIONS = ["validatingwebhookconfiguration/ossa-webhook", "mutatingwebhookconfiguration/ossa-webhook"]
CRDS = ["customresourcedefinition/agents.ossa.ai", "customresourcedefinition/tenantquotas.ossa.ai"]
SHOWN_DEFAULTED = "workload.yaml"
SHOWN_REFUSED = "many-errors.yaml"
LINES_OF_WHY = 3
BEGAN = time.monotonic()


def say(line=""):
    print(line, flush=True)


def step(line):
    say(f"{time.monotonic() - BEGAN:5.1f} s  {line}")


def fail(line):
    sys.exit(f"demo: {line}")


class ExistingCluster:
    """kubectl with the user's own configuration; the few members of Cluster that this program needs."""

    def __init__(self, kubeconfig=None):
        self.program = shutil.which("kubectl")
        if self.program is None:
            self.program = str(Cluster(ROOT / "build" / "cluster").bin_dir / "kubectl")
        self.kubeconfig = kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")

    def kubectl(self, args, input=None, check=False):
        done = subprocess.run([self.program, *args], input=input, text=True, capture_output=True, timeout=120,
                              env=dict(os.environ, KUBECONFIG=self.kubeconfig))
        if check and done.returncode:
            fail(f"kubectl {' '.join(args)} failed:\n{(done.stdout + done.stderr).strip()}")
        return done

    def refuse_what_cannot_work(self, ours):
        shown = self.kubectl(["config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"])
        server = shown.stdout.strip()
        if shown.returncode or not server:
            fail(f"CLUSTER=existing, but {self.kubeconfig} names no API server: set KUBECONFIG")
        address = urlsplit(server).hostname
        if address not in ("127.0.0.1", "localhost", "::1"):
            fail(f"the API server is at {server}, not on this machine, so it cannot reach the webhook at {HOST}.\n"
                 "      There, install ossa-webhook into the cluster: see manifests/ (kubectl apply -k manifests).")
        if not ours and self.kubectl(["get", *CONFIGURATIONS]).stdout:
            fail("this cluster already has webhook configurations named ossa-webhook, and this demo did not make them")
        return server


def has(cluster, *names):
    return cluster.kubectl(["get", *names]).returncode == 0


def up():
    state = json.loads(STATE.read_text()) if STATE.exists() else {}
    program = ROOT / "build" / "release" / "bin" / "ossa-webhook"
    if not program.is_file():
        fail(f"{program.relative_to(ROOT)} is not there: run `make demo`, which builds it")
    DEMO.mkdir(parents=True, exist_ok=True)
    if os.environ.get("CLUSTER") == "existing":
        cluster = ExistingCluster()
        server = cluster.refuse_what_cannot_work(ours=state.get("kubeconfig") == cluster.kubeconfig)
        step(f"using the cluster at {server} ({cluster.kubeconfig})")
        state = {"existing": True, "kubeconfig": cluster.kubeconfig,
                 "crds": state.get("crds", not has(cluster, *CRDS)),
                 "namespace": state.get("namespace", not has(cluster, "namespace/agents"))}
    else:
        cluster = Cluster(ROOT / "build" / "cluster", say=lambda line: step(line.split(" s  ", 1)[-1]))
        step("starting a control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler")
        cluster.up()
        state = {"existing": False, "kubeconfig": cluster.kubeconfig}
    # Before anything is made there, so that `down` knows what to remove whatever happens next.
    STATE.write_text(json.dumps(state) + "\n")

    harness.end_left_behind(DEMO / "run", signal.SIGTERM)
    webhook = Webhook(program.parent, folder=DEMO, arguments=["--drain-seconds=1"], survive=True)
    webhook.log.unlink(missing_ok=True)
    webhook.start()
    step(f"ossa-webhook {version(program)} serves on {HOST}:{webhook.port} (process {webhook.pid})")

    harness.install_crds(cluster)
    step("CRDs installed: Agent and TenantQuota of ossa.ai/v1")
    cluster.kubectl(["apply", "-f", str(SAMPLES / "00-namespace.yaml")], check=True)
    harness.configure(cluster, f"https://{HOST}:{webhook.port}", webhook.certificates / "ca.crt")
    wait_until_asked(cluster, webhook)
    step("webhook configurations installed; the API server asks us about every Agent")

    rows, wrong, defaults = apply_good(cluster)
    step(f"{len(rows)} good objects applied")
    refused, more_wrong = apply_rejected(cluster)
    step(f"{len(refused)} bad ones tried")
    wrong += more_wrong

    show_defaulted(*defaults)
    show_refused(cluster)
    show_table(rows + refused)
    how_to_go_on(webhook, state)
    if wrong:
        say("NOT AS EXPECTED:")
        for line in wrong:
            say(f"  {line}")
        sys.exit(1)
    say(f"All as expected, in {time.monotonic() - BEGAN:.0f} s.")


def version(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip().rpartition(" ")[2]


def wait_until_asked(cluster, webhook):
    """The API server takes new webhook configurations up a moment later."""
    def asked():
        before = webhook.metric("ossa_admission_requests_total")
        cluster.kubectl(["create", "--dry-run=server", "-f", str(SAMPLES / "rejected" / "bad-id.yaml")])
        return webhook.metric("ossa_admission_requests_total") >= before + 2

    wait_for(asked, "the API server to ask the webhook", every_s=0.2)


# --- the good samples ---

def leaves_added(given, stored, at=""):
    """[(field, value)] of what is in `stored` and not in `given`."""
    if isinstance(given, dict) and isinstance(stored, dict):
        return [leaf for key in stored for leaf in
                (leaves_added(given[key], stored[key], f"{at}.{key}") if key in given else [(f"{at}.{key}", stored[key])])]
    if isinstance(given, list) and isinstance(stored, list):
        return [leaf for i, (a, b) in enumerate(zip(given, stored)) for leaf in leaves_added(a, b, f"{at}[{i}]")]
    return []


def apply_good(cluster):
    applied = cluster.kubectl(["apply", "-f", str(SAMPLES)])
    rows, wrong, defaults = [], [], ("", [])
    notes = [f"kubectl apply: {line}" for line in applied.stderr.splitlines() if not line.startswith("Warning")]
    if applied.returncode:
        wrong += notes
    files = sorted(SAMPLES.glob("*.yaml"))
    # One object a file, in the order of the files.
    objects = dict(zip(files, from_yaml(cluster, *files)))
    got = cluster.kubectl(["get", "--ignore-not-found", "-o", "json", "-f", str(SAMPLES)], check=True)
    stored = {(item["kind"], item["metadata"]["name"]): item for item in documents(got.stdout)}
    for file, given in objects.items():
        if given["kind"] == "Namespace":
            continue
        name = given["metadata"]["name"]
        item = stored.get((given["kind"], name))
        if item is None:
            rows.append((file.name, "NOT STORED", ""))
            wrong.append(f"{file.name}: is not stored")
            continue
        added = leaves_added(given["spec"], item["spec"], "spec")
        if file.name == SHOWN_DEFAULTED:
            defaults = (name, added)
        rows.append((file.name, f"stored, {len(added)} field{'s' * (len(added) != 1)} defaulted" if added else "stored",
                     comment_of(file)))
    if not defaults[1]:
        wrong.append(f"{SHOWN_DEFAULTED}: nothing was defaulted")
    for file in sorted((SAMPLES / "create-only").glob("*.yaml")):
        (given,) = from_yaml(cluster, file)
        prefix, namespace = given["metadata"]["generateName"], given["metadata"]["namespace"]
        there = cluster.kubectl(["get", "agents", "-n", namespace, "-o", "name"], check=True).stdout
        found = re.search(rf"/({re.escape(prefix)}\S+)", there)
        if not found:                                    # run again: one is enough
            created = cluster.kubectl(["create", "-f", str(file)])
            found = re.search(rf"/({re.escape(prefix)}\S+)", created.stdout)
        if found:
            rows.append((f"create-only/{file.name}", f"stored as {found.group(1)}", comment_of(file)))
        else:
            wrong.append(f"create-only/{file.name}: {created.stderr.strip()}")
    return rows, wrong, defaults


def comment_of(file):
    """The file's own comment, without what the tests expect."""
    lines = [line[1:].strip() for line in file.read_text().splitlines() if line.startswith("#") and "# expect:" not in line]
    return " ".join(lines)


# --- the rejected ones ---

def apply_rejected(cluster):
    rows, wrong = [], []
    for folder in (SAMPLES / "rejected", SAMPLES / "rejected" / "by-the-api-server"):
        by_us = folder.name == "rejected"
        done = cluster.kubectl(["apply", "-f", str(folder)])
        for file in sorted(folder.glob("*.yaml")):
            label = str(file.relative_to(SAMPLES))
            lines = [line for line in done.stderr.splitlines() if f'"{file}"' in line or f'/{file.name}"' in line]
            # With several files kubectl tells each error on one line and names the file.
            text = lines[0] if lines else ""
            expected = re.findall(r"^# expect: (\S+)", file.read_text(), re.M)
            missing = [field for field in expected if f"{field}: " not in text]
            from_us = "admission webhook" in text
            if not text:
                rows.append((label, "NOT REFUSED", ""))
                wrong.append(f"{label}: was not refused")
                continue
            if missing or from_us != by_us:
                wrong.append(f"{label}: " + (f"no word about {', '.join(missing)}" if missing else
                                             "refused by " + ("the webhook" if from_us else "the API server itself")))
            rows.append((label, "refused" if from_us else "refused by the API server",
                         re.split(r" is invalid: ", text, maxsplit=1)[-1]))
    return rows, wrong


# --- what is shown ---

def show_defaulted(name, added):
    say()
    say(f"== One Agent that was defaulted: {SHOWN_DEFAULTED} ({name})")
    say("   The file leaves these fields out; the stored object has them:")
    for field, value in added:
        say(f"     + {field}: {json.dumps(value)}")


def show_refused(cluster):
    file = SAMPLES / "rejected" / SHOWN_REFUSED
    say()
    say(f"== One refusal, as kubectl shows it: kubectl apply -f {file.relative_to(ROOT)}")
    done = cluster.kubectl(["apply", "-f", str(file)])
    say(textwrap.indent((done.stdout + done.stderr).rstrip(), "     "))


def show_table(rows):
    say()
    wide = max(60, shutil.get_terminal_size((140, 40)).columns)
    widths = [max(len(row[i]) for row in rows + [("file", "what happened", "")]) for i in (0, 1)]
    room = max(30, wide - sum(widths) - 5)
    say(f"{'file':{widths[0]}}  {'what happened':{widths[1]}}  why")
    say("-" * (sum(widths) + 4 + min(room, 60)))
    for file, what, why in rows:
        shown = textwrap.wrap(why, room, max_lines=LINES_OF_WHY, placeholder=" …") or [""]
        say(f"{file:{widths[0]}}  {what:{widths[1]}}  {shown[0]}")
        for line in shown[1:]:
            say(" " * (sum(widths) + 4) + line)
    say()


def how_to_go_on(webhook, state):
    say("Everything goes on running. To go on by hand:")
    if state["existing"]:
        say(f"  export KUBECONFIG={state['kubeconfig']}")
    else:
        say('  eval "$(tests/cluster/cluster env)"      # kubectl of this cluster in this shell; or for a kubectl of yours:')
        say(f"  export KUBECONFIG={state['kubeconfig']}")
    for command in ("kubectl get agents -n agents", "kubectl get agent ticket-chat -n agents -o yaml",
                    "kubectl explain agent.spec.agent.capabilities",
                    "kubectl scale agent compliance-scanner -n agents --replicas=5",
                    "kubectl apply -f manifests/samples/rejected/unknown-role.yaml"):
        say(f"  {command}")
    say(f"Logs: {webhook.log.relative_to(ROOT)}" + ("" if state["existing"] else ", build/cluster/logs/"))
    say(f"Metrics: curl http://{HOST}:{webhook.operations_port}/metrics")
    say("End it: make demo-down")
    say()


def down():
    state = json.loads(STATE.read_text()) if STATE.exists() else {}
    if state.get("existing"):
        cluster = ExistingCluster(state["kubeconfig"])
        # Configurations first: with them and without the webhook, no Agent could be written or changed any more.
        cluster.kubectl(["delete", "--ignore-not-found", *CONFIGURATIONS], check=True)
        if state["crds"]:
            cluster.kubectl(["delete", "--ignore-not-found", *CRDS], check=True)
        if state["namespace"]:
            cluster.kubectl(["delete", "--ignore-not-found", "namespace", "agents"], check=True)
        step("removed from the cluster what the demo had put there")
    ended = harness.end_left_behind(DEMO / "run", signal.SIGTERM)
    if ended:
        step("ossa-webhook has ended")
    if not state.get("existing"):
        cluster = Cluster(ROOT / "build" / "cluster", say=lambda line: step(line.split(" s  ", 1)[-1]))
        step("the control plane has ended, its files are removed" if cluster.down() else "there is no control plane")
    shutil.rmtree(DEMO, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:] not in (["up"], ["down"]):
        sys.exit(__doc__)
    (up if sys.argv[1] == "up" else down)()
