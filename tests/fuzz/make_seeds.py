#!/usr/bin/env python3
"""Writes the seed inputs of the fuzzers: the shared vectors, cut and wrapped as each target wants them.

usage: make_seeds.py DIRECTORY
"""
import json
import pathlib
import shutil
import sys

here = pathlib.Path(__file__).resolve().parent
data = here.parent / "data" / "ossa-1.0"
out = pathlib.Path(sys.argv[1])

REVIEW = (
    '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",'
    '"kind":{"group":"ossa.ai","version":"v1","kind":"Agent"},"resource":{"group":"ossa.ai","version":"v1","resource":"agents"},'
    '"name":"a","namespace":"team","operation":"%s","userInfo":{"username":"jo"},"object":%s,"oldObject":%s,"dryRun":false,'
    '"options":null}}'
)
AGENT = '{"apiVersion":"ossa.ai/v1","kind":"Agent","metadata":{"name":"a","namespace":"team"},"spec":%s}'


def document_of(text):
    """The document as it is spelled: Python would rewrite its numbers."""
    for start, end in (('"document": ', ',\n"valid"'), ('"input": ', ',\n"patch"')):
        if start in text and end in text:
            raw = text.split(start, 1)[1].rsplit(end, 1)[0]
            try:
                json.loads(raw)
                return raw
            except ValueError:
                pass
    vector = json.loads(text)
    return json.dumps(vector.get("document", vector.get("input")))


def put(target, name, text):
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text.encode())


for target in ("admission_review", "agent_parse", "schema_validate", "json_document", "kube_values", "uri"):
    (out / target).mkdir(parents=True, exist_ok=True)
    for file in sorted((here / "corpus" / target).glob("*")):
        shutil.copy(file, out / target / file.name)

strings = set()


def collect(value):
    if isinstance(value, str) and len(value) < 200:
        strings.add(value)
    elif isinstance(value, dict):
        for member in value.values():
            collect(member)
    elif isinstance(value, list):
        for element in value:
            collect(element)


for folder in ("vectors", "default-vectors"):
    for i, file in enumerate(sorted((data / folder).glob("*.json"))):
        raw = document_of(file.read_text())
        if len(raw) > 16_000:
            continue
        agent = AGENT % raw
        update = i % 3 == 0
        put("admission_review", file.name, REVIEW % ("UPDATE" if update else "CREATE", agent, agent if update else "null"))
        put("agent_parse", file.name, agent)
        put("schema_validate", file.name, raw)
        put("json_document", file.name, raw)
        collect(json.loads(raw))
for i, text in enumerate(sorted(strings)):
    put("kube_values", f"string-{i}", text)
    put("uri", f"string-{i}", text)
