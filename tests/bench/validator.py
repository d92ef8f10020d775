#!/usr/bin/env python3
"""Times ossa-validator against kubeconform and against ajv with js-yaml: the same 1,000 documents in 500 files, the same
OSSA schema, one run. Writes build/bench/validator.json {ours_s, kubeconform_s, ajv_s, single_ms} and a few more numbers.

Each program is run ROUNDS times in turn and its best time counts, so that other load on the machine hits all alike.
Usage: validator.py --bin PATH [--out FILE]
"""
import argparse
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CORPUS = ROOT / "tests/data/ossa-1.0/corpus"
ROUNDS = 5
KUBECONFORM = "github.com/yannh/kubeconform/cmd/kubeconform"


def typical_documents(folder):
    """Valid documents of the corpus, each made an Agent with an id and image of its own, two to a file."""
    with open(CORPUS / "index.tsv", encoding="utf-8") as index:
        rows = [row for row in csv.DictReader(index, delimiter="\t")]
    names = [row["file"] for row in rows if row["verdict"] == "valid" and row["file"].startswith("files/")]
    bodies = []
    for name in names:
        text = (CORPUS / name).read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if not line.startswith("---")]
        if not re.search(r"^    image:", text, re.M) and not re.search(r"^  runtime: *$", text, re.M):
            continue
        bodies.append(lines)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    size = 0
    number = 0
    for file_number in range(500):
        out = []
        for _ in range(2):
            lines = bodies[number % len(bodies)]
            out.append(f"---\napiVersion: ossa.ai/v1\nkind: Agent\nmetadata:\n  name: agent-{number}\n"
                       f"  namespace: bench\nspec:")
            has_image = any(line.startswith("    image:") for line in lines)
            for line in lines:
                if line.startswith("  id:"):
                    line = f"  id: agent-{number}"
                out.append("  " + line if line.strip() else "")
                if line.rstrip() == "  runtime:" and not has_image:
                    out.append("      image: registry.example/agent:1.0.0")
            number += 1
        text = "\n".join(out) + "\n"
        size += len(text.encode())
        (folder / f"agents-{file_number:03}.yaml").write_text(text, encoding="utf-8")
    return size


def peers(work):
    """kubeconform from its Go module, ajv and js-yaml from npm; each installed once."""
    work.mkdir(parents=True, exist_ok=True)
    kubeconform = work / "kubeconform"
    if not kubeconform.exists():
        subprocess.run(["go", "build", "-o", kubeconform, KUBECONFORM], cwd=HERE / "peers", check=True)
    if not (work / "node_modules").exists():
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "peers" / name, work / name)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=work, check=True)
    return kubeconform


def timed(command, env=None):
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed with {done.returncode}:\n" + done.stdout.decode()[-2000:])
    return seconds


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--bin", required=True)
    arguments.add_argument("--out", default=str(ROOT / "build/bench/validator.json"))
    args = arguments.parse_args()
    work = ROOT / "build/bench/validator"
    kubeconform = peers(work / "peers")
    folder = work / "documents"
    size = typical_documents(folder)

    schema = json.loads(subprocess.run([args.bin, "schema"], check=True, stdout=subprocess.PIPE).stdout)
    for key in ("$id", "$schema"):
        schema.pop(key, None)
    wrapped = {"type": "object", "required": ["spec"], "properties": {"spec": schema}}
    (work / "schema").mkdir(exist_ok=True)
    (work / "schema/agent.json").write_text(json.dumps(wrapped))

    single = folder / "agents-000.yaml"
    commands = {
        "ours_s": [args.bin, "--quiet", str(folder)],
        "kubeconform_s": [str(kubeconform), "-n", str(os.cpu_count()), "-schema-location",
                          str(work / "schema") + "/{{ .ResourceKind }}.json", str(folder)],
        "ajv_s": ["node", str(HERE / "peers/ajv.mjs"), str(work / "schema/agent.json"), str(folder)],
    }
    env = dict(os.environ, PEERS_DIR=str(work / "peers"))
    best = dict.fromkeys(commands, 1e9)
    best["single_ms"] = 1e9
    for _ in range(ROUNDS):
        for name, command in commands.items():
            best[name] = min(best[name], timed(command, env))
        for _ in range(5):
            best["single_ms"] = min(best["single_ms"], timed([args.bin, "--quiet", str(single)]) * 1000)
    best["documents"] = 1000
    best["files"] = 500
    best["bytes"] = size
    best["times_faster_than_kubeconform"] = round(best["kubeconform_s"] / best["ours_s"], 1)
    best["times_faster_than_ajv"] = round(best["ajv_s"] / best["ours_s"], 1)
    out = pathlib.Path(args.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(best, indent=1) + "\n")
    print(f"validator: 1,000 documents ({size / 1e6:.1f} MB) in 500 files: ours {best['ours_s'] * 1000:.0f} ms, "
          f"kubeconform {best['kubeconform_s'] * 1000:.0f} ms ({best['times_faster_than_kubeconform']}x), "
          f"ajv {best['ajv_s'] * 1000:.0f} ms ({best['times_faster_than_ajv']}x); one file {best['single_ms']:.1f} ms")
    slow = [name for name, wanted in (("times_faster_than_kubeconform", 10), ("times_faster_than_ajv", 10)) if best[name] < wanted]
    if slow or best["single_ms"] >= 10:
        sys.exit("validator: slower than promised")


if __name__ == "__main__":
    main()
