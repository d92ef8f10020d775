"""Builds the control plane of the test cluster: one Go program, several names.

The result lives outside of the repository, in a folder whose name holds the
Kubernetes version and a hash of the Go module, so that a change of the module
leads to a new build and an unchanged one is built once per machine.

Only the standard library is used; Python 3.9 or later.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

MODULE_DIR = Path(__file__).resolve().parent / "kube"
MODULE_FILES = ("go.mod", "go.sum", "main.go")
PROGRAM = "kube"
LINKS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "service-account-key")
PROGRESS_EVERY_S = 15
BUILD_DEADLINE_S = 60 * 60      # a cold build is 6 to 10 minutes on two cores
DOWNLOAD_DEADLINE_S = 20 * 60


class ClusterError(Exception):
    """Something that the user has to know: what failed, what the log says, what to do next."""

    def __init__(self, message, log_file=None, log_tail="", next_step=""):
        super().__init__(message)
        self.log_file = log_file
        self.log_tail = log_tail
        self.next_step = next_step

    def __str__(self):
        lines = [super().__str__()]
        if self.log_tail:
            lines.append(f"last lines of {self.log_file}:" if self.log_file else "last lines of the output:")
            lines += ["  | " + line for line in self.log_tail.splitlines()]
        if self.next_step:
            lines.append(f"next: {self.next_step}")
        return "\n".join(lines)


@contextlib.contextmanager
def file_lock(path, deadline_s, say):
    """Holds an exclusive lock on `path` while the body runs. The kernel drops it when the process dies."""
    path = Path(path)
    end = time.monotonic() + deadline_s
    told = False
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue                                     # `down` of somebody else has just removed the folder
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            if time.monotonic() > end:
                raise ClusterError(f"another process holds {path} for more than {deadline_s:.0f} s",
                                   next_step=f"find it with: fuser -v {path}") from None
            if not told:
                say(f"waiting for another process that holds {path}")
                told = True
            time.sleep(0.2)
            continue
        # `down` removes the folder with the lock in it: a lock on a removed file protects nothing.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(fd).st_ino == os.stat(path).st_ino:
                break
        os.close(fd)
    try:
        yield
    finally:
        os.close(fd)


def kubernetes_version():
    found = re.search(r"^\s*(?:require\s+)?k8s\.io/kubernetes\s+(v\d+\.\d+\.\d+\S*)", (MODULE_DIR / "go.mod").read_text(), re.M)
    if not found:
        raise ClusterError(f"{MODULE_DIR / 'go.mod'} does not require k8s.io/kubernetes")
    return found.group(1)


def cache_root():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "ossa-operator"


def build_dir():
    digest = hashlib.sha256()
    for name in MODULE_FILES:
        content = (MODULE_DIR / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return cache_root() / f"kube-{kubernetes_version()}-{digest.hexdigest()[:12]}"


def is_built(folder=None):
    folder = folder or build_dir()
    return all(os.access(folder / name, os.X_OK) for name in (PROGRAM,) + LINKS)


def ensure_built(say=print):
    """Returns the folder with the program and its links; builds it when it is not there."""
    folder = build_dir()
    if is_built(folder):
        return folder
    with file_lock(cache_root() / "build.lock", BUILD_DEADLINE_S, say):
        if not is_built(folder):     # whoever held the lock may have built it
            _build(folder, say)
    return folder


def _build(folder, say):
    go = _find_go()
    for leftover in folder.parent.glob(f"{folder.name}.tmp-*"):
        shutil.rmtree(leftover, ignore_errors=True)      # of a build that was killed; we hold the lock
    if folder.exists():
        shutil.rmtree(folder)                            # incomplete by some other hand: see is_built
    staging = Path(tempfile.mkdtemp(prefix=f"{folder.name}.tmp-", dir=folder.parent))
    started = time.monotonic()
    try:
        packages = _list_packages(go, say)
        _compile(go, staging / PROGRAM, packages, say)
        for link in LINKS:
            (staging / link).symlink_to(PROGRAM)
        staging.chmod(0o755)
        _smoke_test(staging)
        staging.rename(folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    size = (folder / PROGRAM).stat().st_size / 1e6
    say(f"built {folder} ({size:.0f} MB) in {_span(time.monotonic() - started)}")


def _find_go():
    go = os.environ.get("GO") or shutil.which("go")
    if not go and os.access("/usr/local/go/bin/go", os.X_OK):
        go = "/usr/local/go/bin/go"
    wanted = re.search(r"^go\s+(\d+)\.(\d+)", (MODULE_DIR / "go.mod").read_text(), re.M)
    wanted = (int(wanted.group(1)), int(wanted.group(2)))
    install = (f"install Go {wanted[0]}.{wanted[1]} or later (https://go.dev/dl/), put its bin folder into PATH "
               "or set GO=/path/to/go, then run this again")
    if not go:
        raise ClusterError("the Go tool chain was not found (no `go` in PATH)", next_step=install)
    try:
        version = subprocess.run([go, "env", "GOVERSION"], cwd=MODULE_DIR.parent, env=_go_env(), capture_output=True,
                                 text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise ClusterError(f"cannot run {go}: {problem}", next_step=install) from None
    found = re.match(r"go(\d+)\.(\d+)", version.stdout)
    if found and (int(found.group(1)), int(found.group(2))) < wanted:
        raise ClusterError(f"{go} is {version.stdout.strip()}, too old for Kubernetes {kubernetes_version()}", next_step=install)
    return go


def _go_env():
    # No C compiler needed and no libc in the result; a workspace or flags of the user must not leak in.
    env = dict(os.environ, CGO_ENABLED="0", GOWORK="off", GOFLAGS="")
    return env


def _list_packages(go, say):
    """Downloads the modules and counts the packages that a cold build compiles."""
    say("downloading the Go modules that are missing, listing packages")
    listing = _run([go, "list", "-mod=readonly", "-deps", "."], DOWNLOAD_DEADLINE_S, say, lambda lines: "downloading modules",
                   "check that the Go module proxy is reachable: go env GOPROXY")
    return sum(1 for line in listing if line and " " not in line)


def _compile(go, target, packages, say):
    version = kubernetes_version()
    major, minor = version[1:].split(".")[:2]
    stamps = {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,
        "k8s.io/client-go/pkg/version.gitMajor": major,
        "k8s.io/client-go/pkg/version.gitMinor": minor,
    }
    ldflags = " ".join(["-s", "-w"] + [f"-X {name}={value}" for name, value in stamps.items()])
    command = [go, "build", "-v", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", ldflags, "-o", str(target), "."]
    if shutil.which("nice"):
        command = ["nice", "-n", "10"] + command
    say(f"building Kubernetes {version} ({packages} packages; 6 to 10 minutes when nothing is cached)")

    def progress(lines):
        compiled = sum(1 for line in lines if " " not in line)
        if lines and lines[-1].startswith("ossa.ai/"):
            return f"compiled {compiled} packages, linking"
        return f"compiled {compiled} of at most {packages} packages"

    _run(command, BUILD_DEADLINE_S, say, progress, f"run it by hand: cd {MODULE_DIR} && go build -trimpath .")


def _run(command, deadline_s, say, progress, next_step):
    """Runs a command, tells its progress from time to time, returns its output lines; ClusterError when it fails."""
    started = time.monotonic()
    child = subprocess.Popen(command, cwd=MODULE_DIR, env=_go_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(line.rstrip("\n") for line in child.stdout), daemon=True)
    reader.start()
    try:
        next_report = started + PROGRESS_EVERY_S
        while True:
            try:
                child.wait(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                pass
            now = time.monotonic()
            if now - started > deadline_s:
                raise ClusterError(f"`{' '.join(command[:4])} …` took longer than {_span(deadline_s)}",
                                   log_tail="\n".join(lines[-15:]), next_step=next_step)
            if now >= next_report:
                say(f"  {_span(now - started)}: {progress(lines)}")
                next_report += PROGRESS_EVERY_S
    finally:
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            child.wait()
        reader.join(timeout=5)
        child.stdout.close()
    if child.returncode != 0:
        raise ClusterError(f"`{' '.join(command[:4])} …` failed with exit code {child.returncode}",
                           log_tail="\n".join(lines[-15:]), next_step=next_step)
    return lines


def _smoke_test(folder):
    told = subprocess.run([str(folder / "kubectl"), "version", "--client"], capture_output=True, text=True, timeout=60)
    if kubernetes_version() not in told.stdout:
        raise ClusterError("the program that was just built does not know its version",
                           log_tail=told.stdout + told.stderr, next_step="look at the -X flags in kube_build.py")


def _span(seconds):
    seconds = int(seconds)
    return f"{seconds // 60} min {seconds % 60:02d} s" if seconds >= 60 else f"{seconds} s"
