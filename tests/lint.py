#!/usr/bin/env python3
"""Holds what the compiler cannot: which room may include which, where clocks may be read, what must not be used.

usage: lint.py [--format]     --format also checks clang-format (clang-format-16)
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# room -> rooms it may include. The purity line runs under `engine`.
MAY_USE = {
    "base": set(),
    "kube/types": {"base"},
    "schema": {"base", "kube/types"},
    "engine": {"base", "kube/types", "schema"},
    "net": {"base"},
    "kube/client": {"base", "kube/types", "net"},
    "kube/runtime": {"base", "kube/types", "kube/client", "net"},
    "certs": {"base", "net"},
    "webhook": {"base", "kube/types", "kube/client", "schema", "engine", "net", "certs"},
    "controller": {"base", "kube/types", "kube/client", "kube/runtime", "schema", "engine", "net", "certs"},
    "validator": {"base", "kube/types", "schema", "engine"},
    "manifests": {"base", "kube/types", "schema"},
}
PURE = {"base", "kube/types", "schema", "engine"}
IMPURE_HEADER = re.compile(r"<(boost/|openssl/|spdlog/|prometheus/|sys/socket|unistd|thread|mutex|fstream|filesystem|iostream)")
# what a room keeps to itself: header prefix -> the rooms that may include it
PRIVATE = {
    "rapidjson/": {"base"},
    "simdjson": {"base"},
    "yaml-cpp/": {"base"},
    "yaml.h": {"base"},
    "re2/": {"kube/types", "schema"},
    "valijson/": set(),
    "openssl/": {"net", "certs", "kube/client"},
    "boost/": {"net", "certs", "kube/client", "kube/runtime", "webhook", "controller"},
}
BANNED_IN_CODE = [
    (re.compile(r"std::regex|#include <regex>"), "std::regex overflows the stack on long input: use RE2"),
    (re.compile(r"\bdetached\b"), "nothing runs without an owner"),
]
BANNED_ANYWHERE = [(re.compile(r"\b(TODO|FIXME|XXX)\b"), "finish it or say it in the closing note")]
CLOCK = re.compile(r"\b(system_clock|steady_clock|high_resolution_clock)::now\(|\btime\(nullptr\)|\bgettimeofday\b")


def room_of(path: str):
    for room in sorted(MAY_USE, key=len, reverse=True):
        if path.startswith(room + "/"):
            return room
    return None


def sources():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.cpp", "*.hpp"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split()
    return [path for path in listed if (ROOT / path).is_file()]


def findings_in(path: str, text: str):
    room = room_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}:{number}"
        for banned, text_of_it in ((BANNED_ANYWHERE, line), (BANNED_IN_CODE, line.split("//")[0])):
            for pattern, why in banned:
                if pattern.search(text_of_it):
                    yield f"{where}: {why}"
        if room is None:
            continue
        include = re.match(r'\s*#include\s*(["<])([^">]+)[">]', line)
        if include:
            quoted, header = include.group(1) == '"', include.group(2)
            target = room_of(header) if quoted else None
            if target and target != room and target not in MAY_USE[room]:
                yield f"{where}: {room} must not include {target}"
            if not quoted:
                for prefix, rooms in PRIVATE.items():
                    if header.startswith(prefix) and room not in rooms:
                        yield f"{where}: {header} is hidden behind {sorted(rooms) or 'tests'}"
                if room in PURE and IMPURE_HEADER.search("<" + header):
                    yield f"{where}: {room} is pure and must not include <{header}>"
        if room in PURE and CLOCK.search(line):
            yield f"{where}: {room} is pure: the clock is an argument"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--format", action="store_true")
    arguments = options.parse_args()
    files = sources()
    if len(files) < 20:
        sys.exit(f"lint: only {len(files)} sources found: is this the repository?")
    found = [finding for path in files for finding in findings_in(path, (ROOT / path).read_text(encoding="utf-8"))]
    if arguments.format:
        for start in range(0, len(files), 50):
            run = subprocess.run(["clang-format-16", "--dry-run", "--Werror", *files[start:start + 50]], cwd=ROOT,
                                 capture_output=True, text=True)
            if run.returncode:
                found += [line for line in run.stderr.splitlines() if "error:" in line]
    print("\n".join(found) if found else f"lint: {len(files)} files, nothing found")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
