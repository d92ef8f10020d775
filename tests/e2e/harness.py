"""What the end-to-end tests share: the cluster, our webhook in front of it, and clients for both.

    from harness import Setup
    with Setup() as setup:                      # cluster up, CRDs there, webhook running and asked by the API server
        setup.api.create("agents", agent("x"))  # (status code, parsed body), through the real API server
        setup.webhook.review("/validate-…", …)  # straight to the TLS port

The cluster lies in build/e2e/cluster and is shared by all modules; `run.py up` and `run.py down` bracket them, and a
module that runs alone starts it and leaves it (the next one is quicker). Webhooks end with their test program; what a
killed run left behind is ended by the next one. Standard library only.
"""

import atexit
import base64
import contextlib
import copy
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest
import uuid
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from cluster_lib import Cluster, ClusterError  # noqa: E402

DATA = ROOT / "tests" / "data" / "ossa-1.0"
MANIFESTS = ROOT / "manifests"
WORK = ROOT / "build" / "e2e"
LOGS = WORK / "logs"
MUTATE = "/mutate-ossa-ai-v1-agent"
VALIDATE = "/validate-ossa-ai-v1-agent"
SCALE = "/validate-ossa-ai-v1-agent-scale"
QUOTA = "/validate-ossa-ai-v1-tenantquota"
HOST = "127.0.0.1"
# How long anything may take that takes milliseconds on an idle machine: compilers may hold the cores.
PATIENCE_S = 60


def bin_dir():
    """Where the programs are: OSSA_BIN (ctest sets it), else the newest of the usual build folders."""
    given = os.environ.get("OSSA_BIN")
    if given:
        return Path(given).resolve()
    found = [ROOT / "build" / preset / "bin" for preset in ("dev", "release")]
    found = [folder for folder in found if (folder / "ossa-webhook").is_file()]
    if not found:
        sys.exit("no ossa-webhook in build/dev/bin or build/release/bin: run `make dev`, or set OSSA_BIN")
    return max(found, key=lambda folder: (folder / "ossa-webhook").stat().st_mtime)


def wait_for(condition, what, deadline_s=PATIENCE_S, every_s=0.02):
    """Returns the first true result of condition(); an AssertionError names what was waited for."""
    end = time.monotonic() + deadline_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline_s} s in vain for {what}")
        time.sleep(every_s)


# --- processes ---

def _started(pid):
    """The kernel's start time of a process, which tells it from a later one of the same number; None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]      # a zombie is only waited for by its parent


def end_left_behind(run_folder, how=signal.SIGKILL, deadline_s=PATIENCE_S):
    """Ends the webhooks whose pid files lie there, unless the program that started one still runs and sees to it itself.
    A number that belongs to another process by now is let be. Returns how many were ended."""
    ended = 0
    for file in Path(run_folder).glob("*.pid"):
        with contextlib.suppress(ValueError, FileNotFoundError):
            pid, started, owner, owner_started = file.read_text().split()
            if _started(int(owner)) == owner_started:
                continue
            if _started(int(pid)) == started:
                os.kill(int(pid), how)
                wait_for(lambda: _started(int(pid)) != started, f"process {pid} of an earlier run to end", deadline_s)
                ended += 1
        file.unlink(missing_ok=True)
    return ended


def memory(pid, field="VmRSS"):
    """VmRSS (now) or VmHWM (highest since reset_peak) of a process, in bytes."""
    found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    return int(found.group(1)) * 1024


def reset_peak(pid):
    Path(f"/proc/{pid}/clear_refs").write_text("5")


# --- certificates ---

def make_certificates(folder):
    """A throw-away CA and a serving certificate of it, by the openssl program: ca.crt, tls.crt, tls.key."""
    folder = Path(folder)
    if all((folder / name).exists() for name in ("ca.crt", "tls.crt", "tls.key")):
        valid = subprocess.run(["openssl", "x509", "-in", folder / "tls.crt", "-noout", "-checkend", "86400"],
                               capture_output=True)
        if valid.returncode == 0:
            return folder
    if shutil.which("openssl") is None:
        raise SystemExit("the program openssl is missing: apt-get install openssl")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    names = "IP:127.0.0.1,DNS:localhost,DNS:ossa-webhook.ossa-system.svc"
    (folder / "leaf.ext").write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for command in (
            ["req", "-x509", *curve, "-days", "30", "-subj", "/CN=ossa throw-away CA", "-keyout", "ca.key", "-out", "ca.crt"],
            ["req", *curve, "-subj", "/CN=ossa-webhook.ossa-system.svc", "-keyout", "tls.key", "-out", "tls.csr"],
            ["x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
             "-extfile", "leaf.ext", "-out", "tls.crt"]):
        done = subprocess.run(["openssl", *command], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"openssl {' '.join(command)} failed:\n{done.stderr}")
    return folder


# --- the webhook ---

class Connections:
    """A kept-alive connection for each thread, made by `make` when there is none; close() ends those of all threads."""

    def __init__(self, make):
        self.make, self.local, self.all, self.lock = make, threading.local(), set(), threading.Lock()

    def get(self):
        connection = getattr(self.local, "connection", None)
        if connection is None or connection not in self.all:
            connection = self.local.connection = self.make()
            with self.lock:
                self.all.add(connection)
        return connection

    def drop(self):
        """This thread's, which is of no more use."""
        connection, self.local.connection = getattr(self.local, "connection", None), None
        if connection is not None:
            connection.close()
            with self.lock:
                self.all.discard(connection)

    def close(self):
        with self.lock:
            for connection in self.all:
                connection.close()
            self.all.clear()

    def exchange(self, method, path, body, headers, timeout):
        """(status, headers, body); once again on a new connection when a kept one turns out to be gone."""
        for last in (False, True):
            connection = self.get()
            fresh = connection.sock is None
            connection.timeout = timeout
            try:
                connection.request(method, path, body, headers)
                connection.sock.settimeout(timeout)
                response = connection.getresponse()
                return response.status, response.headers, response.read()
            except (OSError, http.client.HTTPException):
                self.drop()
                if last or fresh:
                    raise


class Webhook:
    """One ossa-webhook process on loopback. The first start takes free ports; restarts keep them.

    `folder` gets certificates, pid file and log; `survive` leaves the process running when this program ends. Without a
    kubeconfig it heeds no TenantQuotas.
    """

    def __init__(self, bin_folder=None, *, name="webhook", folder=WORK, arguments=(), log_level="info", survive=False,
                 kubeconfig=None):
        self.program = str(Path(bin_folder or bin_dir()) / "ossa-webhook")
        self.name = name
        self.arguments = list(arguments)
        self.kubeconfig = kubeconfig
        self.log_level = log_level
        self.survive = survive
        self.certificates = make_certificates(Path(folder) / "pki")
        (Path(folder) / "logs").mkdir(parents=True, exist_ok=True)
        (Path(folder) / "run").mkdir(parents=True, exist_ok=True)
        self.log = Path(folder) / "logs" / f"{name}.log"
        self.pid_file = Path(folder) / "run" / f"{name}.pid"
        self.port = self.operations_port = 0
        self.process = None
        self._context = ssl.create_default_context(cafile=str(self.certificates / "ca.crt"))
        self.connections = Connections(
            lambda: http.client.HTTPSConnection(HOST, self.port, context=self._context))

    # life

    def start(self):
        at = self.log.stat().st_size if self.log.exists() else 0
        command = [self.program, f"--listen-tls={HOST}:{self.port}", f"--listen-http={HOST}:{self.operations_port}",
                   f"--tls-cert-file={self.certificates / 'tls.crt'}", f"--tls-key-file={self.certificates / 'tls.key'}",
                   f"--log-level={self.log_level}",
                   *([f"--kubeconfig={self.kubeconfig}", "--tenant-quotas=on"] if self.kubeconfig else []),
                   *self.arguments]
        # Variables of ours in the caller's environment must not change what is tested.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OSSA_")}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment,
                                            start_new_session=True)
        self.pid_file.write_text(f"{self.process.pid} {_started(self.process.pid)} {os.getpid()} {_started(os.getpid())}\n")
        if not self.survive:
            atexit.register(self.stop, kill=True)

        def serving():
            text = self.log_text(at)
            found = re.search(r"serving .*?admission_port=(\d+).*?operations_port=(\d+)", text)
            if not found and self.process.poll() is not None:
                raise AssertionError(f"{self.program} ended with {self.process.returncode}:\n{text[-2000:]}")
            return found

        self.port, self.operations_port = map(int, wait_for(serving, f"{self.name} to log its ports").groups())

        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.program} ended with {self.process.returncode}:\n{self.log_text(at)[-2000:]}")
            return self.is_ready()

        wait_for(ready, f"/readyz of {self.name}")
        return self

    def stop(self, kill=False, deadline_s=PATIENCE_S):
        """SIGTERM (or SIGKILL) and the exit code."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            self.process.wait(deadline_s)
        self.pid_file.unlink(missing_ok=True)
        self.connections.close()
        code, self.process = self.process.returncode, None
        return code

    def kill(self):
        return self.stop(kill=True)

    def restart(self, arguments=None):
        self.stop(kill=True)
        if arguments is not None:
            self.arguments = list(arguments)
        return self.start()

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def log_text(self, start=0):
        with open(self.log, "rb") as file:
            file.seek(start)
            return file.read().decode(errors="replace")

    # the plain port

    def get(self, path, timeout=5):
        connection = http.client.HTTPConnection(HOST, self.operations_port, timeout=timeout)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def is_ready(self):
        try:
            return self.get("/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def metric(self, name, **labels):
        """The sum of all samples of this name with these labels."""
        total = 0.0
        for line in self.get("/metrics")[1].splitlines():
            found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if found and found.group(1) == name:
                have = dict(re.findall(r'(\w+)="([^"]*)"', found.group(2) or ""))
                if all(have.get(k) == v for k, v in labels.items()):
                    total += float(found.group(3))
        return total

    # the TLS port

    def tls(self, timeout=PATIENCE_S, source=None):
        """A fresh TLS connection as a socket."""
        plain = socket.create_connection((HOST, self.port), timeout=timeout, source_address=source)
        try:
            return self._context.wrap_socket(plain, server_hostname=HOST)
        except BaseException:
            plain.close()
            raise

    def post(self, path, body, headers=None, timeout=PATIENCE_S):
        """(HTTP status, headers, body) over this thread's kept-alive connection."""
        fields = {"Content-Type": "application/json", **(headers or {})}
        return self.connections.exchange("POST", path, body, fields, timeout)

    def review(self, path, object_text="null", timeout=PATIENCE_S, **more):
        """Posts a review of `object_text` (JSON text, sent as it is) and returns its `response`, whose uid was checked."""
        text, uid = review_text(object_text, **more)
        status, _, body = self.post(path, text, timeout=timeout)
        answer = json.loads(body)
        if status != 200:
            raise AssertionError(f"HTTP {status}: {body[:500]!r}")
        if answer.get("kind") != "AdmissionReview" or answer.get("apiVersion") != "admission.k8s.io/v1":
            raise AssertionError(f"no AdmissionReview: {body[:500]!r}")
        if answer["response"]["uid"] != uid:
            raise AssertionError(f"answer to another review: {answer['response']['uid']}, not {uid}")
        return answer["response"]


KINDS = {"agents": ("ossa.ai", "v1", "Agent"), "tenantquotas": ("ossa.ai", "v1", "TenantQuota"),
         "agents/scale": ("autoscaling", "v1", "Scale")}


def review_text(object_text="null", *, old_text="null", operation="CREATE", resource="agents", kind=None, name="probe",
                namespace="agents", dry_run=False, uid=None):
    """(text, uid) of an AdmissionReview as the API server sends it; the objects are put in as text, untouched."""
    uid = uid or str(uuid.uuid4())
    group, version, kind_name = kind or KINDS.get(resource, ("ossa.ai", "v1", "Agent"))
    plural, _, sub = resource.partition("/")
    request = {"uid": uid, "kind": {"group": group, "version": version, "kind": kind_name},
               "resource": {"group": "ossa.ai", "version": "v1", "resource": plural}}
    if sub:
        request["subResource"] = sub
    request.update(name=name, namespace=namespace, operation=operation,
                   userInfo={"username": "admin", "groups": ["system:masters"]}, dryRun=dry_run, options=None)
    head = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"})[:-1]
    inner = json.dumps(request)[:-1]
    return f'{head}, "request": {inner}, "object": {object_text}, "oldObject": {old_text}}}}}'.encode(), uid


def agent_text(spec_text, name="probe", namespace="agents"):
    metadata = json.dumps({"name": name, "namespace": namespace})
    return f'{{"apiVersion": "ossa.ai/v1", "kind": "Agent", "metadata": {metadata}, "spec": {spec_text}}}'


def causes_of(status):
    """The sorted (field, reason) pairs of a Status object."""
    return sorted((cause["field"], cause["reason"]) for cause in (status.get("details") or {}).get("causes") or [])


def agent(name="probe", namespace="agents", **spec):
    """A good Agent; `spec` members are added beside `agent`, `body` members are merged into it."""
    body = {"id": name, "name": name.title(), "version": "1.0.0", "role": "custom",
            "runtime": {"type": "k8s", "image": f"registry.example.org/agents/{name}:1.0.0"},
            "capabilities": [{"name": "work", "description": "Does the work", "input_schema": {"type": "object"},
                              "output_schema": {"type": "object"}}]}
    body.update(spec.pop("body", {}))
    return {"apiVersion": "ossa.ai/v1", "kind": "Agent", "metadata": {"name": name, "namespace": namespace},
            "spec": {"ossaVersion": "1.0", "agent": body, **spec}}


# --- JSON by hand ---

def read_json(text):
    """Numbers by value and without loss: 30.0, 3e1 and 30 are equal, 2^53+1 and 2^53 are not."""
    return json.loads(text, parse_float=Decimal)


def same(a, b):
    """Equality of parsed JSON: true is not 1, numbers compare by value."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (int, float, Decimal)) and isinstance(b, (int, float, Decimal)):
        return a == b
    return type(a) is type(b) and a == b


def differences(a, b, at=""):
    """Pointers at which two parsed documents differ, for messages."""
    if isinstance(a, dict) and isinstance(b, dict):
        out = []
        for key in sorted(a.keys() | b.keys()):
            step = f"{at}/{key}"
            if key not in a or key not in b:
                out.append(f"{step} only on the {'left' if key in a else 'right'}")
            else:
                out += differences(a[key], b[key], step)
        return out
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [line for i, pair in enumerate(zip(a, b)) for line in differences(*pair, f"{at}/{i}")]
    return [] if same(a, b) else [f"{at}: {str(a)[:80]!r} and {str(b)[:80]!r}"]


def member_text(text, name):
    """The text of a top-level member's value, exactly as written (re-serialising would re-spell numbers)."""
    found = re.search(rf'^\s*"{name}":\s*', text, re.M)
    _, end = json.JSONDecoder().raw_decode(text, found.end())
    return text[found.end():end]


def apply_patch(document, patch):
    """RFC 6902, the one operation that a defaulter needs. Anything else is an error."""
    document = copy.deepcopy(document)
    for step in patch:
        if step["op"] != "add":
            raise AssertionError(f"unexpected patch operation {step}")
        *path, last = [token.replace("~1", "/").replace("~0", "~") for token in step["path"].split("/")[1:]]
        parent = document
        for token in path:
            parent = parent[int(token)] if isinstance(parent, list) else parent[token]
        if not isinstance(parent, dict) or last in parent:
            raise AssertionError(f"a default must be a new member of an object: {step}")
        parent[last] = step["value"]
    return document


def documents(text):
    """The JSON documents that stand one behind the other in a text, as kubectl prints several objects."""
    out, at, decoder = [], 0, json.JSONDecoder(parse_float=Decimal)
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        out += document["items"] if document.get("kind") == "List" else [document]
    return out


def from_yaml(cluster, *files, input=None):
    """The objects of YAML files (or of `input`) as kubectl reads them; nothing is sent to the API server's storage."""
    arguments = [part for file in files or ["-"] for part in ("-f", str(file))]
    done = cluster.kubectl(["create", "--dry-run=client", "--validate=false", "-o", "json", *arguments], input=input, check=True)
    return documents(done.stdout)


def patch_of(response):
    """The parsed patch of an allowing response; an empty list when there is none."""
    if "patch" not in response:
        return []
    if response["patchType"] != "JSONPatch":
        raise AssertionError(response["patchType"])
    return read_json(base64.b64decode(response["patch"], validate=True))


# --- the API server ---

class Api:
    """The API server as the admin, one kept-alive connection a thread."""

    def __init__(self, cluster):
        port = int(cluster.urls[0].rpartition(":")[2])
        context = ssl.create_default_context(cafile=cluster.ca_file)
        self._token = cluster.token
        self.connections = Connections(lambda: http.client.HTTPSConnection(HOST, port, context=context))

    def raw(self, method, path, body=None, content_type="application/json", timeout=PATIENCE_S):
        """(status, headers, bytes)"""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
            body = body.encode() if isinstance(body, str) else body
        return self.connections.exchange(method, path, body, headers, timeout)

    def call(self, method, path, body=None, content_type="application/json", timeout=PATIENCE_S):
        """(status, parsed body)"""
        status, _, text = self.raw(method, path, body, content_type, timeout)
        try:
            return status, read_json(text)
        except ValueError:
            return status, text.decode(errors="replace")

    @staticmethod
    def path(resource, namespace="agents", name=None, query=""):
        return f"/apis/ossa.ai/v1/namespaces/{namespace}/{resource}" + (f"/{name}" if name else "") + query

    def create(self, resource, item, namespace="agents", query=""):
        return self.call("POST", self.path(resource, namespace, query=query), item)

    def read(self, resource, name, namespace="agents"):
        return self.call("GET", self.path(resource, namespace, name))

    def delete(self, resource, name, namespace="agents"):
        return self.call("DELETE", self.path(resource, namespace, name))

    def patch(self, resource, name, body, namespace="agents", content_type="application/merge-patch+json", query=""):
        return self.call("PATCH", self.path(resource, namespace, name, query), body, content_type)

    def clear(self, namespace="agents"):
        """Deletes all Agents and TenantQuotas of a namespace, also those that a finalizer holds."""
        for resource in ("agents", "tenantquotas"):
            self.call("DELETE", self.path(resource, namespace))
            for item in self.call("GET", self.path(resource, namespace))[1].get("items") or []:
                self.patch(resource, item["metadata"]["name"], {"metadata": {"finalizers": None}}, namespace)
            wait_for(lambda: not self.call("GET", self.path(resource, namespace))[1]["items"],
                     f"the {resource} of {namespace} to go")

    def namespace(self, name):
        status, body = self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        if status not in (201, 409):
            raise AssertionError(f"cannot make namespace {name}: {body}")


# --- all together ---

def install_crds(cluster):
    cluster.kubectl(["apply", "--server-side", "--force-conflicts", "-f", str(MANIFESTS / "crds")], check=True)
    cluster.kubectl(["wait", "--for=condition=Established", "--timeout=60s", "crd/agents.ossa.ai",
                     "crd/tenantquotas.ossa.ai"], check=True)


def webhook_configurations(cluster, base_url, ca_file):
    """The two configurations of manifests/webhook, with only clientConfig replaced: url and CA instead of the Service."""
    bundle = base64.b64encode(Path(ca_file).read_bytes()).decode()
    items = from_yaml(cluster, MANIFESTS / "webhook")
    for item in items:
        for hook in item["webhooks"]:
            hook["clientConfig"] = {"url": base_url + hook["clientConfig"]["service"]["path"], "caBundle": bundle}
    return items


def configure(cluster, base_url, ca_file, counted=None):
    """Points the API server at base_url. With `counted`, a function that counts the reviews there, waits until the API
    server has taken the configuration up: it works from a copy that follows a moment later."""
    items = webhook_configurations(cluster, base_url, ca_file)
    # Without --validate, kubectl would fetch the whole OpenAPI document, which a busy API server takes half a minute for.
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    cluster.kubectl(["apply", "--validate=false", "-f", "-"], input=text, check=True)
    if counted is None:
        return
    api = Api(cluster)
    api.namespace("agents")

    def both_asked():
        before = counted()
        status, body = api.create("agents", agent("set-up-probe", body={"role": "none"}), query="?dryRun=All")
        # Mutating, then validating: two reviews at the new address.
        return status == 422 and counted() >= before + 2

    wait_for(both_asked, "the API server to ask our webhook", every_s=0.05)
    api.connections.close()


class Setup:
    """Cluster, CRDs, one webhook, configurations. `logs` are in build/e2e/logs."""

    def __init__(self, name, *, arguments=(), log_level="info", cluster=True):
        end_left_behind(WORK / "run")
        self.cluster = Cluster(WORK / "cluster") if cluster else None
        self.webhook = Webhook(name=name, arguments=arguments, log_level=log_level,
                               kubeconfig=self.cluster.kubeconfig if cluster else None)
        if self.webhook.log.exists():
            self.webhook.log.unlink()
        self.api = None

    def __enter__(self):
        if self.cluster is not None:
            self.cluster.up()
            install_crds(self.cluster)
            self.api = Api(self.cluster)
            self.api.namespace("agents")
        self.webhook.start()
        if self.cluster is not None:
            self.point_here()
            self.api.clear()
        return self

    def point_here(self):
        configure(self.cluster, f"https://{HOST}:{self.webhook.port}", self.webhook.certificates / "ca.crt",
                  lambda: self.webhook.metric("ossa_admission_requests_total"))

    def __exit__(self, *exc):
        if self.cluster is not None and self.webhook.is_alive():
            with contextlib.suppress(AssertionError, OSError, http.client.HTTPException):
                self.api.clear()
        if self.api is not None:
            self.api.connections.close()
        self.webhook.connections.close()
        self.webhook.stop(kill=True)

    def kubectl(self, *args, input=None, check=False):
        return self.cluster.kubectl(list(args), input=input, check=check)


class Case(unittest.TestCase):
    """A module's tests around one Setup."""

    setup_name = ""
    setup_arguments = ()
    log_level = "info"
    with_cluster = True

    @classmethod
    def setUpClass(cls):
        cls.setup_ = Setup(cls.setup_name, arguments=cls.setup_arguments, log_level=cls.log_level, cluster=cls.with_cluster)
        cls.addClassCleanup(cls.setup_.__exit__, None, None, None)
        cls.setup_.__enter__()
        cls.webhook, cls.cluster, cls.api = cls.setup_.webhook, cls.setup_.cluster, cls.setup_.api

    def kubectl(self, *args, **more):
        return self.setup_.kubectl(*args, **more)
