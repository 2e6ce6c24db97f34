"""Judges what is rendered or written in deploy/ by schemas of others, and prints it as JSON for the tests.

check.py manifests < RENDERED   every document by the schema of its kind, for the oldest and the newest Kubernetes
check.py compose FILE           a compose file by the schema of the compose specification
"""

import importlib.util
import json
import pathlib
import sys

import jsonschema
import kubernetes_validate
import yaml

# The oldest that the chart says it is for, and the newest that there are schemas of.
VERSIONS = ["1.29.0", "1.37.0"]
CRDS = pathlib.Path(__file__).parent / "crds"


def judge(document, schema):
    errors = jsonschema.validators.validator_for(schema)(schema).iter_errors(document)
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in errors]


def as_kubernetes_does(document):
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"Kubernetes {version}: {'/'.join(map(str, error.path))}: {error.message}"


def errors_of(document):
    crd = CRDS / f"{document['kind']}.json"
    if not crd.exists():
        yield from as_kubernetes_does(document)
        return
    yield from judge(document, json.loads(crd.read_text()))
    job = document["spec"].get("jobTargetRef")
    if job:
        metadata = {"name": document["metadata"]["name"]}
        yield from as_kubernetes_does({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job})


def manifests():
    documents = [document for document in yaml.safe_load_all(sys.stdin) if document]
    named = [(f"{document['kind']} {document['metadata']['name']}", document) for document in documents]
    return documents, [f"{name}: {error}" for name, document in named for error in errors_of(document)]


def compose(file):
    document = yaml.safe_load(pathlib.Path(file).read_text())
    # Found, not imported: only its copy of the schema is wanted.
    package = pathlib.Path(importlib.util.find_spec("check_jsonschema").origin).parent
    schemas = package / "builtin_schemas" / "vendor"
    return document, judge(document, json.loads((schemas / "compose-spec.json").read_text()))


def main():
    found, errors = {"manifests": manifests, "compose": compose}[sys.argv[1]](*sys.argv[2:])
    for error in errors:
        print(error, file=sys.stderr)
    print(json.dumps(found))
    return 1 if errors else 0


sys.exit(main())
