"""A real Kubernetes control plane on this machine, for tests.

    from cluster_lib import Cluster
    with Cluster("/tmp/somewhere") as cluster:      # up() … down()
        cluster.kubectl(["apply", "-f", "-"], input=manifest, check=True)
        cluster.restart("apiserver")

etcd, kube-apiserver, kube-controller-manager and kube-scheduler run as plain
processes on loopback; there is no node, so pods stay Pending. Everything of a
cluster lies in its folder and every port is chosen at start, so clusters in
different folders run side by side. The processes outlive the program that
started them: a later Cluster object for the same folder finds them again.

Not promised: nothing here is hardened. etcd has no authentication, so every
user of this machine can read and write the cluster's data.

A Cluster object is for one thread; processes that use the same folder take turns
through a lock file. Only the standard library is used; Python 3.9 or later.
"""

import base64
import contextlib
import http.client
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import kube_build  # noqa: E402
from kube_build import ClusterError, file_lock  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]
DEFAULT_AUDIT_POLICY = Path(__file__).resolve().parent / "audit-policy.yaml"

# Ten times what an idle machine needs, and more: a compiler may have the cores. What dies is noticed at once.
ETCD_DEADLINE_S = 60
APISERVER_DEADLINE_S = 180
CONTROLLER_DEADLINE_S = 180
STOP_DEADLINE_S = 15        # SIGTERM, then so long, then SIGKILL
KILL_DEADLINE_S = 10
LOCK_DEADLINE_S = 600
PORT_ATTEMPTS = 5

SERVICE_ISSUER = "https://kubernetes.default.svc"
SERVICE_CIDR = "10.96.0.0/16"
# name in the token file -> (user, groups). The controllers get the users that RBAC's own roles are made for.
IDENTITIES = {
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
}
# Everything that `down` may remove; whatever else lies in the folder is not ours.
OUR_FILES = ("cluster.json", "kubeconfig", "pki", "etcd", "run", "logs", "kubectl-cache")
CONTROLLERS = ["kube-controller-manager", "kube-scheduler"]
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
ALIASES = {
    "apiserver": "kube-apiserver",
    "controller-manager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
}

ComponentStatus = namedtuple("ComponentStatus", "name pid ports ready rss_bytes log")


def default_dir(name="local"):
    """The folder of the cluster with this name: build/cluster, or build/cluster-NAME."""
    return REPOSITORY / "build" / ("cluster" if name == "local" else f"cluster-{name}")


class Cluster:
    """One cluster in one folder.

    `apiservers`, `fsync`, `extra_args`, `audit_policy` and `name` take effect when the cluster is made; None means
    "as it was made", or the default (1 API server, no fsync, no extra arguments, audit-policy.yaml, "local").
    `extra_args` maps a component ("kube-apiserver", "etcd", …; short names work) to a list of flags, which come last
    and so win over ours. `say` gets each line of progress; None is silence.
    """

    def __init__(self, dir=None, *, name=None, apiservers=None, fsync=None, extra_args=None, audit_policy=None, say=None):
        if name is not None and not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?", name):
            raise ClusterError(f"{name!r} is no cluster name", next_step="use lower case letters, digits and '-'")
        if apiservers is not None and not 1 <= apiservers <= 9:
            raise ClusterError(f"{apiservers} API servers are not possible", next_step="ask for 1 to 9")
        self.dir = Path(os.path.realpath(dir or default_dir(name or "local")))
        if re.search(r"[\s,]", str(self.dir)):
            raise ClusterError(f"the folder {self.dir} has a space or comma in its name, which some flags cannot carry",
                               next_step="choose another one with --dir")
        self._asked = {"name": name, "apiservers": apiservers, "fsync": fsync,
                       "audit_policy": str(Path(audit_policy).resolve()) if audit_policy else None,
                       "extra_args": {ALIASES.get(k, k): list(v) for k, v in extra_args.items()} if extra_args else None}
        self._say = say or (lambda line: None)
        for component in self._asked["extra_args"] or {}:
            if component not in PROGRAMS:
                raise ClusterError(f"{component!r} is no component with arguments", next_step=f"one of: {', '.join(PROGRAMS)}")
        if audit_policy is not None and not os.path.isfile(audit_policy):
            raise ClusterError(f"the audit policy {audit_policy} is not a file")
        self._started_at = time.monotonic()
        self._starting = {}     # component -> (size of its log before it started, attempts)
        self._bin = None

    # --- what a test reads ---

    @property
    def kubeconfig(self):
        """File of the admin. Contexts: NAME (first API server), NAME-2, NAME-3, …; CA and token are inside."""
        return str(self.dir / "kubeconfig")

    @property
    def ports(self):
        """{"etcd": …, "etcd-peer": …, "kube-apiserver": …, "kube-apiserver-2": …, …}; empty when there is no cluster."""
        return dict(self._config().get("ports", {}))

    @property
    def urls(self):
        """Base URLs of the API servers."""
        return [f"https://127.0.0.1:{self.ports[name]}" for name in self._apiserver_names()]

    @property
    def token(self):
        """Bearer token of the admin (system:masters)."""
        return self._tokens()["admin"]

    @property
    def ca_file(self):
        """Certificate authority of all API servers of this cluster (PEM)."""
        return str(self.dir / "pki" / "apiserver.crt")

    @property
    def logs(self):
        return self.dir / "logs"

    @property
    def audit_log(self):
        """Of the first API server; the second writes audit-2.log, and so on."""
        return self.logs / "audit.log"

    @property
    def bin_dir(self):
        """Folder of the programs; it is built when it is not there."""
        if self._bin is None:
            self._bin = kube_build.ensure_built(self._say)
        return self._bin

    def components(self):
        return ["etcd"] + self._apiserver_names() + CONTROLLERS

    # --- up and down ---

    def up(self):
        """Starts what does not run yet and waits until everything is ready. Returns True when it started anything."""
        self.bin_dir                                      # may take minutes: not under the lock, not on the clock
        self._refuse_foreign_folder()
        with self._lock():
            return self._up()

    def down(self, keep_logs=False):
        """Stops all processes and removes all files. Returns True when there was anything. Safe to repeat."""
        if not self.dir.exists() and not self._strays():
            return False
        with self._lock():
            found = bool(self._config()) or bool(self._strays())
            self._stop_all()
            left = self._strays()
            if left:
                raise ClusterError(f"these processes of {self.dir} do not end: {', '.join(map(str, left))}",
                                   next_step="look at them with: ps -fp " + ",".join(map(str, left)))
            if self._config():
                for name in OUR_FILES:
                    if keep_logs and name == "logs":
                        continue
                    _remove(self.dir / name)
            (self.dir / ".lock").unlink()
        with contextlib.suppress(OSError):
            self.dir.rmdir()                              # not ours alone: stays when anything else is in it
        return found

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *exc):
        self.down()

    # --- single components ---

    def stop(self, component, kill=False):
        """Ends one component (all API servers for "apiserver"): SIGTERM, or SIGKILL at once with kill=True."""
        with self._lock():
            self._need_config()
            self._stop_processes(self._named(component), signal.SIGKILL if kill else signal.SIGTERM)

    def start(self, component):
        """Starts one component on its old port and waits until it is ready. A running one is left alone."""
        with self._lock():
            self._need_config()
            self._start_and_wait(self._named(component), may_move=False)

    def restart(self, component, kill=False):
        """stop() and start(): same ports, same data. API servers go one after the other.

        "apiserver" (all), "apiserver-2" (that one), "controller-manager", "scheduler", "etcd".
        A graceful end takes an API server with open watches 1 to 2 s, and etcd with clients 5 to 6 s; kill=True does not wait.
        """
        with self._lock():
            self._need_config()
            for name in self._named(component):
                self._stop_processes([name], signal.SIGKILL if kill else signal.SIGTERM)
                self._start_and_wait([name], may_move=False)
            # An etcd that was away takes the API servers' readiness with it for a moment.
            self._wait_ready(self._running(self._apiserver_names()), APISERVER_DEADLINE_S)

    # --- use ---

    def kubectl(self, args, input=None, check=False, timeout=120):
        """Runs kubectl as the admin. Returns CompletedProcess with text; with check=True a failure is a ClusterError."""
        done = subprocess.run([str(self.bin_dir / "kubectl"), *args], input=input, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL if input is None else None,
                              capture_output=True, env=self.environment())
        if check and done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(args)} failed with exit code {done.returncode}",
                               log_tail=(done.stdout + done.stderr).strip())
        return done

    def environment(self):
        """The environment of this process, changed so that plain `kubectl` means this cluster."""
        # A cache of its own: kubectl caches discovery by host and port, and ports come round again in other clusters.
        return dict(os.environ, KUBECONFIG=self.kubeconfig, KUBECACHEDIR=str(self.dir / "kubectl-cache"),
                    PATH=f"{self.bin_dir}{os.pathsep}{os.environ.get('PATH', os.defpath)}")

    def exists(self):
        return bool(self._config())

    def status(self):
        """One ComponentStatus for each component; empty when there is no cluster. pid is None when it does not run."""
        found = []
        for name in self.components() if self._config() else []:
            pid = self._pid(name)
            ports = [port for owner, port in sorted(self.ports.items()) if owner in (name, f"{name}-peer")]
            found.append(ComponentStatus(name, pid, ports, bool(pid) and self._is_ready(name), _rss(pid), self._log(name)))
        return found

    def http_get(self, path, apiserver=1, timeout=5):
        """(status, body) of a GET as the admin at one of the API servers. OSError when it cannot be reached."""
        return _get(self.ports[self._apiserver_names()[apiserver - 1]], path, timeout, ca_file=self.ca_file, token=self.token)

    # --- inside: making the cluster ---

    def _up(self):
        config = self._config()
        if config:
            self._refuse_other_wishes(config)
            missing = [name for name in self.components() if not self._pid(name)]
            if not missing and all(self._is_ready(name) for name in self.components()):
                self._tell("already up")
                return False
            if missing and len(missing) < len(self.components()):
                self._tell(f"not running: {', '.join(missing)}")
            elif missing:
                self._tell("found the files of an earlier cluster, starting it again with its data")
        else:
            self._save(self._wishes())                    # from here on the folder is a cluster, and `down` may empty it
        if not self._key.exists():
            self._create_files()
        self._kill_strays_without_pid_file()
        before = set(self._running(self.components()))
        old_ports = self.ports
        try:
            self._start_and_wait(["etcd"], may_move=True)
            if self.ports["etcd"] != old_ports.get("etcd"):
                self._stop_processes(self._apiserver_names(), signal.SIGTERM)
            first, *others = self._apiserver_names()
            self._start_and_wait([first], may_move=True)  # it makes the certificate that the others share
            self._start_and_wait(others, may_move=True)
            self._write_kubeconfigs()
            if self.ports[first] != old_ports.get(first):
                self._stop_processes(CONTROLLERS, signal.SIGTERM)
            self._start_and_wait(CONTROLLERS, may_move=True)
            self._wait_for_service_account()
        except BaseException:
            # What ran before stays; what this call started must not be left behind half-made. The logs stay.
            with contextlib.suppress(ClusterError):
                self._stop_processes([name for name in reversed(self.components()) if name not in before], signal.SIGTERM)
            raise
        self._tell(f"up: kubeconfig {self.kubeconfig}")
        return True

    def _wishes(self):
        asked = self._asked
        return {"name": asked["name"] or "local", "apiservers": asked["apiservers"] or 1, "fsync": bool(asked["fsync"]),
                "extra_args": asked["extra_args"] or {}, "audit_policy": asked["audit_policy"] or str(DEFAULT_AUDIT_POLICY),
                "kubernetes": kube_build.kubernetes_version(), "ports": {}}

    def _create_files(self):
        for folder in (self.dir / "pki", self.dir / "run", self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        (self.dir / "pki").chmod(0o700)
        tokens = {name: secrets.token_hex(24) for name in IDENTITIES}
        rows = [f'{tokens[name]},{user},{name},"{groups}"' for name, (user, groups) in IDENTITIES.items()]
        _write_private(self.dir / "pki" / "tokens.csv", "\n".join(rows) + "\n")
        shutil.copyfile(self._config()["audit_policy"], self.dir / "pki" / "audit-policy.yaml")
        key = subprocess.run([str(self.bin_dir / "service-account-key")], capture_output=True, text=True, timeout=60)
        if key.returncode != 0:
            raise ClusterError("cannot make a key for ServiceAccount tokens", log_tail=key.stderr)
        _write_private(self._key, key.stdout)             # last: its presence says that all the others are there

    @property
    def _key(self):
        return self.dir / "pki" / "service-account.key"

    def _refuse_foreign_folder(self):
        if self._config() or not self.dir.exists():
            return
        if not self.dir.is_dir():
            raise ClusterError(f"{self.dir} is not a folder", next_step="choose another one with --dir")
        # Our own names without cluster.json are what down(keep_logs=True) left.
        foreign = sorted(set(os.listdir(self.dir)) - set(OUR_FILES) - {".lock"})
        if foreign:
            raise ClusterError(f"{self.dir} holds other files ({', '.join(foreign[:3])}) and no cluster",
                               next_step="choose an empty or new folder with --dir")

    def _refuse_other_wishes(self, config):
        for key in ("name", "apiservers", "fsync", "extra_args", "audit_policy"):
            wish = self._asked[key]
            if wish is not None and wish != config[key]:
                raise ClusterError(f"the cluster in {self.dir} was made with {key} = {config[key]}, not {wish}",
                                   next_step="run `down` first, or leave the option out")

    def _wait_for_service_account(self):
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait(lambda: self.http_get(path)[0] == 200, CONTROLLER_DEADLINE_S, "the ServiceAccount default to appear",
                   "kube-controller-manager")
        self._tell("ServiceAccount default is there")

    def _write_kubeconfigs(self):
        config, tokens = self._config(), self._tokens()
        ca = base64.b64encode(Path(self.ca_file).read_bytes()).decode()
        names = [config["name"] if i == 0 else f"{config['name']}-{i + 1}" for i in range(config["apiservers"])]

        def text(user):
            lines = ["apiVersion: v1", "kind: Config", "clusters:"]
            for name, url in zip(names, self.urls):
                lines += [f"- name: {name}", "  cluster:", f"    server: {url}", f"    certificate-authority-data: {ca}"]
            lines += ["users:", f"- name: {user}", "  user:", f"    token: {tokens[user]}", "contexts:"]
            for name in names:
                lines += [f"- name: {name}", "  context:", f"    cluster: {name}", f"    user: {user}"]
            return "\n".join(lines + [f"current-context: {names[0]}", ""])

        _write_private(Path(self.kubeconfig), text("admin"))
        for user in ("controller-manager", "scheduler"):
            _write_private(self.dir / "pki" / f"{user}.kubeconfig", text(user))

    def _arguments(self, name):
        """The command line of a component, without the program."""
        config, pki = self._config(), self.dir / "pki"
        port = config["ports"][name]
        if name == "etcd":
            client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{config['ports']['etcd-peer']}"
            flags = ["--name=default", f"--data-dir={self.dir / 'etcd'}", f"--listen-client-urls={client}",
                     f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                     f"--initial-cluster=default={peer}",
                     # One member elects itself, so waiting a second for others is wasted.
                     "--heartbeat-interval=50", "--election-timeout=250"]
            flags += [] if config["fsync"] else ["--unsafe-no-fsync"]
        elif name.startswith("kube-apiserver"):
            number = _apiserver_number(name)
            flags = [f"--etcd-servers=http://127.0.0.1:{config['ports']['etcd']}",
                     "--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={pki}",
                     # Loopback is not allowed in Endpoints. Nobody connects to this address: it is from the range for documentation.
                     f"--advertise-address=192.0.2.{number}",
                     "--authorization-mode=RBAC", f"--token-auth-file={pki / 'tokens.csv'}",
                     f"--service-account-issuer={SERVICE_ISSUER}", f"--service-account-key-file={self._key}",
                     f"--service-account-signing-key-file={self._key}",
                     f"--service-cluster-ip-range={SERVICE_CIDR}", "--allow-privileged=true",
                     # Otherwise open watches hold a stop up for a minute.
                     "--shutdown-send-retry-after=true", "--shutdown-watch-termination-grace-period=1s",
                     f"--audit-policy-file={pki / 'audit-policy.yaml'}",
                     f"--audit-log-path={self.logs / ('audit.log' if number == 1 else f'audit-{number}.log')}"]
            if number > 1:
                # Several API servers with different ports would overwrite the Service `kubernetes` of each other for ever.
                flags += ["--endpoint-reconciler-type=none"]
        else:
            short = name[len("kube-"):]
            flags = [f"--kubeconfig={pki / (short + '.kubeconfig')}", "--bind-address=127.0.0.1", f"--secure-port={port}",
                     "--leader-elect=false"]
            if name == "kube-controller-manager":
                flags += [f"--service-account-private-key-file={self._key}", f"--root-ca-file={self.ca_file}",
                          "--use-service-account-credentials=true",
                          # The default of 20 a second makes up() 4 s slower: one ServiceAccount for each controller.
                          "--kube-api-qps=300", "--kube-api-burst=600"]
        return flags + config["extra_args"].get(_program(name), [])

    # --- inside: processes ---

    def _start_and_wait(self, names, may_move):
        """Starts those of `names` that do not run and waits for all. A port that somebody else took is changed, or, when it
        must stay the same (may_move=False), tried again until the deadline."""
        for name in names:
            if self._pid(name):
                continue
            log_start = self._spawn(name, new_ports=None)
            self._starting[name] = (log_start, 1)
        deadline = time.monotonic() + max([_deadline(name) for name in names], default=0)
        waiting = list(names)
        while waiting:
            for name in list(waiting):
                if self._pid(name):
                    if self._is_ready(name):
                        self._tell(f"{name} is ready on port {self.ports[name]}")
                        waiting.remove(name)
                    continue
                log_start, attempt = self._starting.get(name, (0, 1))
                log_text = _read_from(self._log(name), log_start)
                if "address already in use" not in log_text or (may_move and attempt >= PORT_ATTEMPTS):
                    raise self._failure(f"{name} ended instead of becoming ready", name)
                self._tell(f"{name}: another program took its port, trying {'another port' if may_move else 'again'}")
                if not may_move:
                    time.sleep(0.5)
                log_start = self._spawn(name, new_ports=may_move)
                self._starting[name] = (log_start, attempt + 1)
            if waiting and time.monotonic() > deadline:
                raise self._failure(f"{', '.join(waiting)}: not ready within {_deadline(waiting[0])} s", waiting[0])
            time.sleep(0.05)

    def _spawn(self, name, new_ports):
        config = self._config()
        wanted = [name, "etcd-peer"] if name == "etcd" else [name]
        for owner in wanted:
            if owner not in config["ports"] or new_ports:
                config["ports"][owner] = _free_port(set(config["ports"].values()))
        self._save(config)
        log = self._log(name)
        log_start = log.stat().st_size if log.exists() else 0
        program = str(self.bin_dir / _program(name))
        # The shell only changes folder and redirects, then becomes the program; a session of its own lets the program
        # outlive this terminal. posix_spawn instead of Popen: nobody here waits for the child.
        script = 'cd "$1" && log=$2 && shift 2 && exec "$@" >>"$log" 2>&1 </dev/null'
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", script, name, str(self.dir), str(log), program, *self._arguments(name)],
                             # etcd takes flags from ETCD_… variables as well: they must not leak in.
                             {k: v for k, v in os.environ.items() if not k.startswith("ETCD_")}, setsid=True, setsigmask=[],
                             setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT])
        _write_private(self._pid_file(name), f"{pid} {_start_time(pid)}\n")
        return log_start

    def _running(self, names):
        return [name for name in names if self._pid(name)]

    def _pid(self, name):
        """The process of a component, or None. A pid file from before a reboot or a kill is removed."""
        try:
            pid, started = self._pid_file(name).read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        pid = int(pid)
        if _is_alive(pid) and _start_time(pid) == started:
            # The command line reads as empty for a moment while the shell becomes the program.
            if self._is_ours(pid, _program(name)) or not any(_command_line(pid)):
                return pid
        with contextlib.suppress(FileNotFoundError):
            self._pid_file(name).unlink()
        return None

    def _is_ours(self, pid, program=None):
        """Whether a process is a component (this one) of this cluster, judged by its command line."""
        arguments = _command_line(pid)
        if arguments[:2] == ["sh", "-c"]:
            arguments = arguments[6:]                     # between fork and exec, see _spawn
        if not arguments or os.path.basename(arguments[0]) not in ((program,) if program else PROGRAMS):
            return False
        return any(f"{self.dir}/" in argument for argument in arguments)

    def _strays(self):
        """Every living process of this cluster, with or without a pid file."""
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
        return [pid for pid in pids if self._is_ours(pid) and _is_alive(pid)]

    def _kill_strays_without_pid_file(self):
        known = {self._pid(name) for name in self.components()}
        strays = [pid for pid in self._strays() if pid not in known]
        if strays:
            self._tell(f"ending {len(strays)} process(es) left behind by an earlier run")
            self._end(strays, signal.SIGTERM)

    def _stop_all(self):
        """Controllers first, then API servers, then etcd, so that each can still say goodbye to the next."""
        if self._config():
            running = self._running(self.components())
            if running:
                self._tell(f"stopping {', '.join(running)}")
            self._stop_processes(CONTROLLERS, signal.SIGTERM)
            self._stop_processes(self._apiserver_names(), signal.SIGTERM)
            self._stop_processes(["etcd"], signal.SIGTERM)
        self._end(self._strays(), signal.SIGTERM)

    def _stop_processes(self, names, how):
        self._end([pid for pid in map(self._pid, names) if pid], how)
        for name in names:
            self._pid(name)                               # removes the pid file of what is gone

    def _end(self, pids, how):
        left = list(pids)
        for how, patience in ((how, STOP_DEADLINE_S), (signal.SIGKILL, KILL_DEADLINE_S)):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
            end = time.monotonic() + patience
            while left and time.monotonic() < end:
                left = [pid for pid in left if _is_alive(pid)]
                if left:
                    time.sleep(0.02)
            if not left:
                return
            if how != signal.SIGKILL:
                self._tell(f"{len(left)} process(es) did not end within {patience} s, killing")
        raise ClusterError(f"processes {', '.join(map(str, left))} survive SIGKILL",
                           next_step="look at them with: ps -fp " + ",".join(map(str, left)))

    # --- inside: waiting ---

    def _is_ready(self, name):
        port = self.ports.get(name)
        if port is None:
            return False
        try:
            if name == "etcd":
                status, body = _get(port, "/health", 2, tls=False)
                return status == 200 and json.loads(body).get("health") == "true"
            if name.startswith("kube-apiserver"):
                return _get(port, "/readyz", 5, ca_file=self.ca_file, token=self.token)[0] == 200
            # Their certificate is made in memory at each start; only a status code is read from them.
            return _get(port, "/healthz", 2)[0] == 200
        except (OSError, http.client.HTTPException, ValueError):
            return False

    def _wait_ready(self, names, deadline_s):
        for name in names:
            self._wait(lambda name=name: self._is_ready(name), deadline_s, f"{name} to be ready", name)

    def _wait(self, condition, deadline_s, what, name):
        end = time.monotonic() + deadline_s
        while True:
            try:
                if condition():
                    return
            except (OSError, http.client.HTTPException):
                pass
            if not self._pid(name):
                raise self._failure(f"{name} ended while waiting for {what}", name)
            if time.monotonic() > end:
                raise self._failure(f"waited {deadline_s} s in vain for {what}", name)
            time.sleep(0.05)

    def _failure(self, message, name):
        log = self._log(name)
        return ClusterError(message, log_file=log, log_tail=_tail(log),
                            next_step=f"read {log}; `down` removes the cluster, `up` tries again")

    # --- inside: files ---

    def _config(self):
        try:
            return json.loads((self.dir / "cluster.json").read_text())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except ValueError:
            raise ClusterError(f"{self.dir / 'cluster.json'} is not JSON", next_step=f"remove the folder {self.dir}") from None

    def _need_config(self):
        if not self._config():
            raise ClusterError(f"there is no cluster in {self.dir}", next_step="start one with `up`")

    def _save(self, config):
        _write_private(self.dir / "cluster.json", json.dumps(config, indent=2) + "\n")

    def _tokens(self):
        rows = (self.dir / "pki" / "tokens.csv").read_text().splitlines()
        return {row.split(",")[2]: row.split(",")[0] for row in rows}

    def _apiserver_names(self):
        count = self._config().get("apiservers", self._asked["apiservers"] or 1)
        return ["kube-apiserver" if i == 1 else f"kube-apiserver-{i}" for i in range(1, count + 1)]

    def _named(self, component):
        """"apiserver" -> all API servers; "apiserver-2", "scheduler", "kube-scheduler", … -> that one."""
        if component in ("apiserver", "kube-apiserver"):
            return self._apiserver_names()
        if component in ("apiserver-1", "kube-apiserver-1"):
            return ["kube-apiserver"]
        for name in self.components():
            if component in (name, name.replace("kube-", "", 1)):
                return [name]
        short = ", ".join(name.replace("kube-", "", 1) for name in self.components())
        raise ClusterError(f"{component!r} is no component of this cluster", next_step=f"one of: {short}")

    def _log(self, name):
        return self.logs / f"{name.replace('kube-', '', 1)}.log"

    def _pid_file(self, name):
        return self.dir / "run" / f"{name.replace('kube-', '', 1)}.pid"

    def _tell(self, line):
        self._say(f"{time.monotonic() - self._started_at:6.1f} s  {line}")

    @contextlib.contextmanager
    def _lock(self):
        self._started_at = time.monotonic()
        with file_lock(self.dir / ".lock", LOCK_DEADLINE_S, self._say):
            yield


# --- small things about processes, files and sockets ---

def _program(name):
    return re.sub(r"-\d+$", "", name)


def _apiserver_number(name):
    found = re.search(r"-(\d+)$", name)
    return int(found.group(1)) if found else 1


def _deadline(name):
    if name == "etcd":
        return ETCD_DEADLINE_S
    return APISERVER_DEADLINE_S if name.startswith("kube-apiserver") else CONTROLLER_DEADLINE_S


ProcessStat = namedtuple("ProcessStat", "state threads started")


def _stat(pid):
    """From /proc, or None. The name in the second field may hold anything, so count from its last bracket."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return ProcessStat(fields[0], int(fields[17]), fields[19])


def _is_alive(pid):
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)                       # when it was started by this very process
    stat = _stat(pid)
    # A zombie is only an entry that its parent has not read, unless other threads of it still run (and hold its ports).
    return stat is not None and (stat.state not in "ZX" or stat.threads > 1)


def _start_time(pid):
    stat = _stat(pid)
    return stat.started if stat else "0"


def _command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


def _rss(pid):
    try:
        found = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    except (FileNotFoundError, ProcessLookupError):
        found = None
    return int(found.group(1)) * 1024 if found else 0


def _free_port(taken):
    """A port that nothing listens on, outside of the range for outgoing connections so that it stays free for a restart."""
    try:
        low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        low = 32768
    below = range(15000, low) if low > 16000 else range(61000, 65536)
    for _ in range(200):
        port = random.SystemRandom().choice(below)
        if port in taken:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise ClusterError(f"no free port between {below.start} and {below.stop}", next_step="see what listens: ss -ltnp")


def _get(port, path, timeout, tls=True, ca_file=None, token=None):
    if not tls:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if ca_file is None:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            context.load_verify_locations(ca_file)
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout, context=context)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")
    finally:
        connection.close()


def _write_private(path, text):
    """Replaces a file at once: a reader sees the old text or the new one. Only the owner may read it."""
    staging = path.with_name(path.name + ".new")
    with contextlib.suppress(FileNotFoundError):
        staging.unlink()
    with os.fdopen(os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    staging.replace(path)


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _read_from(path, start):
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def _tail(path, lines=15):
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return ""
    cut = [line[:400] for line in _read_from(path, max(0, size - 64 * 1024)).splitlines()]
    # A usage text or a stack of a crash hides the reason: lines that say what went wrong come first.
    telling = [line for line in cut if re.match(r"(E\d{4} |F\d{4} |Error: |panic: )", line) or '"level":"fatal"' in line]
    last = cut[-lines:]
    return "\n".join([line for line in telling[-3:] if line not in last] + last)
