"""The test cluster itself: python3 -m unittest tests/cluster/test_cluster.py (builds the programs when they are not there)."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import cluster_lib  # noqa: E402
import kube_build  # noqa: E402
from cluster_lib import Cluster, ClusterError  # noqa: E402

SCRIPT = str(Path(__file__).resolve().parent / "cluster")
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: kept}
data: {answer: "42"}
"""


def setUpModule():
    kube_build.ensure_built(lambda line: print(line, file=sys.stderr, flush=True))


def processes_of(folder):
    """Every process whose command line names the folder; asked of /proc, not of the code under test."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                line = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line:
                found.append(f"{entry}: {line[:200]}")
    return found


class ClusterTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="ossa-cluster-test-")
        self.addCleanup(holder.cleanup)
        self.dir = Path(os.path.realpath(holder.name)) / "cluster"
        self.said = []

    def cluster(self, **wishes):
        cluster = Cluster(self.dir, say=self.said.append, **wishes)
        self.addCleanup(lambda: Cluster(self.dir).down())
        return cluster

    def script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=600)

    def config_map(self, cluster):
        return cluster.kubectl(["get", "configmap", "kept", "-o", "jsonpath={.data.answer}"], check=True).stdout

    def assert_nothing_left(self):
        self.assertEqual(processes_of(self.dir), [])
        self.assertFalse(self.dir.exists(), os.listdir(self.dir) if self.dir.exists() else "")


class LifeOfACluster(ClusterTest):
    def test_keeps_its_data_over_restarts_and_leaves_nothing_behind(self):
        cluster = self.cluster()
        began = time.monotonic()
        self.assertTrue(cluster.up())
        print(f"up in {time.monotonic() - began:.1f} s", file=sys.stderr)
        ports = cluster.ports
        cluster.kubectl(["apply", "-f", "-"], input=CONFIG_MAP, check=True)

        for component in ("apiserver", "etcd", "controller-manager", "scheduler"):
            before = {one.name: one.pid for one in cluster.status()}
            cluster.restart(component)
            after = {one.name: one.pid for one in cluster.status()}
            changed = [name for name in before if before[name] != after[name]]
            self.assertEqual([name.replace("kube-", "", 1) for name in changed], [component])
            self.assertEqual(self.config_map(cluster), "42")
        self.assertEqual(cluster.ports, ports)

        self.assertFalse(cluster.up(), "is up already")
        self.assertTrue(all(one.ready and one.rss_bytes > 0 for one in cluster.status()))
        self.assertTrue(cluster.down())
        self.assert_nothing_left()
        self.assertFalse(cluster.down(), "nothing to do any more")

    def test_two_api_servers_serve_the_same_objects_and_both_write_audit_logs(self):
        cluster = self.cluster(apiservers=2, extra_args={"controller-manager": ["--kube-api-qps=300"]})
        cluster.up()
        self.assertEqual(len(cluster.urls), 2)
        cluster.kubectl(["apply", "-f", "-"], input=CONFIG_MAP, check=True)
        self.assertEqual(cluster.http_get("/api/v1/namespaces/default/configmaps/kept", apiserver=2)[0], 200)
        told = cluster.kubectl(["--context", "local-2", "get", "configmap", "kept", "-o", "name"], check=True)
        self.assertEqual(told.stdout.strip(), "configmap/kept")

        cluster.stop("apiserver-2", kill=True)
        self.assertEqual([one.name for one in cluster.status() if not one.ready], ["kube-apiserver-2"])
        cluster.start("apiserver-2")
        cluster.http_get("/apis/ossa.ai/v1/agents?marker=second", apiserver=2)
        cluster.http_get("/apis/ossa.ai/v1/agents?marker=first")
        cluster.http_get("/api/v1/pods?marker=not-ours")
        self.assertEqual(self.audited(cluster.audit_log), [("list", "agents", "/apis/ossa.ai/v1/agents?marker=first")])
        self.assertEqual(self.audited(cluster.logs / "audit-2.log"), [("list", "agents", "/apis/ossa.ai/v1/agents?marker=second")])

    def audited(self, log):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual({line["level"] for line in lines} - {"Metadata"}, set())
        return [(line["verb"], line["objectRef"]["resource"], line["requestURI"]) for line in lines]

    def test_starts_again_what_was_killed_and_moves_from_a_port_that_was_taken(self):
        cluster = self.cluster()
        cluster.up()
        cluster.kubectl(["apply", "-f", "-"], input=CONFIG_MAP, check=True)
        for one in cluster.status():
            os.kill(one.pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while any(one.pid for one in cluster.status()) and time.monotonic() < deadline:
            time.sleep(0.05)
        # A stale pid file that points at a living process of somebody else: that process must survive.
        bystander = subprocess.Popen(["sleep", "60"])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        (self.dir / "run" / "scheduler.pid").write_text(f"{bystander.pid} 1\n")
        taken = cluster.ports["kube-apiserver"]
        with cluster_lib.socket.create_server(("127.0.0.1", taken)):
            again = self.cluster()      # no memory of what the first object knew
            self.assertTrue(again.up())
            self.assertNotEqual(again.ports["kube-apiserver"], taken)
        self.assertEqual(self.config_map(again), "42")
        self.assertTrue(all(one.ready for one in again.status()))
        again.down()
        self.assert_nothing_left()
        self.assertIsNone(bystander.poll())

    def test_says_why_a_component_does_not_start_and_stops_the_others(self):
        cluster = self.cluster(extra_args={"kube-apiserver": ["--no-such-flag"]})
        with self.assertRaises(ClusterError) as caught:
            cluster.up()
        self.assertIn("kube-apiserver ended", str(caught.exception))
        self.assertIn("unknown flag: --no-such-flag", str(caught.exception))
        self.assertIn("next: ", str(caught.exception))
        self.assertEqual(processes_of(self.dir), [])
        cluster.down()
        self.assert_nothing_left()


class TheScript(ClusterTest):
    def test_goes_through_all_commands(self):
        at = ["--dir", str(self.dir)]
        self.addCleanup(lambda: Cluster(self.dir).down())
        none = self.script("status", *at)
        self.assertEqual((none.returncode, none.stdout), (1, f"there is no cluster in {self.dir}\n"))
        self.assertEqual(self.script("down", *at).returncode, 0)
        self.assertEqual(self.script("kubectl", *at, "get", "ns").returncode, 1)

        up = self.script("up", *at)
        self.assertEqual(up.returncode, 0, up.stderr)
        self.assertIn("already up", self.script("up", *at).stdout)
        self.assertEqual(self.script("status", *at).returncode, 0)
        other = self.script("up", *at, "--apiservers", "2")
        self.assertEqual(other.returncode, 1)
        self.assertIn("run `down` first", other.stderr)

        version = self.script("kubectl", *at, "version")
        self.assertIn(f"Server Version: {kube_build.kubernetes_version()}", version.stdout, version.stderr)
        self.assertEqual(version.stderr, "")
        shell = subprocess.run(["sh", "-c", f'eval "$({sys.executable} {SCRIPT} env --dir {self.dir})" && kubectl auth whoami -o name'],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(shell.returncode, 0, shell.stderr)
        for name in ("kubeconfig", "pki/tokens.csv", "pki/service-account.key", "cluster.json"):
            self.assertEqual((self.dir / name).stat().st_mode & 0o777, 0o600, name)

        down = self.script("down", *at)
        self.assertEqual(down.returncode, 0, down.stderr)
        self.assert_nothing_left()

    def test_touches_no_folder_that_is_not_its_own(self):
        self.dir.mkdir()
        (self.dir / "thesis.txt").write_text("years of work")
        (self.dir / "logs").mkdir()
        up = self.script("up", "--dir", str(self.dir))
        self.assertEqual(up.returncode, 1)
        self.assertIn("holds other files (thesis.txt)", up.stderr)
        self.assertEqual(self.script("down", "--dir", str(self.dir)).returncode, 0)
        self.assertEqual(sorted(os.listdir(self.dir)), ["logs", "thesis.txt"])


if __name__ == "__main__":
    unittest.main()
