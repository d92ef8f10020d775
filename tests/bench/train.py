#!/usr/bin/env python3
"""What the compiler learns from (cmake/release.sh): instrumented programs do what they do in production, for some seconds.

Every conformance vector as a review at both doors, reviews of all sizes over TLS, and the samples through ossa-validator.
The profile is written by the programs themselves when they end.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "bench"))
import admission  # noqa: E402
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from harness import review_text  # noqa: E402


def vectors():
    """The documents that have an agent at all, as Agents."""
    for path in sorted((ROOT / "tests" / "data" / "ossa-1.0" / "vectors").glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))["document"]
        if isinstance(document, dict) and isinstance(document.get("agent"), dict):
            yield {"apiVersion": "ossa.ai/v1", "kind": "Agent", "metadata": {"name": "probe", "namespace": "agents"},
                   "spec": document}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ossa-train-") as name:
        folder = pathlib.Path(name)
        sizes = []
        for size, (wanted, capabilities, _) in admission.SIZES.items():
            sizes.append(folder / f"{size}.json")
            sizes[-1].write_bytes(admission.review(wanted, capabilities))
        reviews = list(sizes)
        for i, agent in enumerate(vectors()):
            reviews.append(folder / f"vector-{i}.json")
            review = json.loads(review_text(json.dumps(agent))[0])
            reviews[-1].write_text(json.dumps(review, separators=(",", ":")), encoding="utf-8")
        for path in admission.PATHS.values():
            subprocess.run([options.bin / "admit_bench", "--run", path, "20", *reviews], check=True,
                           stdout=subprocess.DEVNULL)
            subprocess.run([options.bin / "admit_bench", "--run", path, "500", *sizes], check=True,
                           stdout=subprocess.DEVNULL)
        over_tls(options.bin, folder, sizes + reviews[3:200:40])
    for places in (["manifests/samples"], ["tests/data/ossa-1.0/corpus"]):
        for _ in range(10):
            subprocess.run([options.bin / "ossa-validator", *places], cwd=ROOT, check=False, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)


def over_tls(programs, folder, reviews):
    certificate, key = admission.make_certificate(folder)
    port = admission.free_port()
    webhook = admission.Server("webhook", [
        programs / "ossa-webhook", "--tls-cert-file", certificate, "--tls-key-file", key, "--listen-tls",
        f"127.0.0.1:{port}", "--listen-http", f"127.0.0.1:{admission.free_port()}", "--log-level", "warn", "--drain-seconds", "0"], port, None)
    begin = time.monotonic()
    for path in admission.PATHS.values():
        for review in reviews:
            subprocess.run([programs / "admission_load", "--target", f"127.0.0.1:{port}", "--path", path, "--body", review,
                            "--connections", "8", "--seconds", "0.5", "--warmup", "0.1"], check=True, timeout=60,
                           stdout=subprocess.DEVNULL)
    webhook.stop()      # SIGTERM: it ends in order, and writes its profile
    if webhook.process.returncode != 0:
        sys.exit(f"train: ossa-webhook ended with {webhook.process.returncode}")
    print(f"train: {len(reviews)} reviews over TLS in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
