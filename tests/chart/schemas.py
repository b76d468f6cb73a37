#!/usr/bin/python3
"""Writes schemas of Kubernetes for kubeconform, which needs each schema in one file.

schemas.py FOLDER VERSION... takes them from the Python package kubernetes-validate.
"""

import json
import pathlib
import sys

import kubernetes_validate

KINDS = [
    "configmap-v1",
    "deployment-apps-v1",
    "horizontalpodautoscaler-autoscaling-v2",
    "ingress-networking-v1",
    "networkpolicy-networking-v1",
    "pod-v1",
    "poddisruptionbudget-policy-v1",
    "secret-v1",
    "service-v1",
    "serviceaccount-v1",
]


def main(folder, *versions):
    packaged = pathlib.Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
    for version in versions:
        source = packaged / f"v{version}-local-strict"
        common = source.joinpath("_definitions.json").read_text("utf-8")
        definitions = json.loads(common)["$defs"]
        target = pathlib.Path(folder) / f"v{version}"
        target.mkdir(parents=True, exist_ok=True)
        for kind in KINDS:
            text = source.joinpath(f"{kind}.json").read_text("utf-8")
            schema = json.loads(text.replace("/api/_definitions.json#", "#"))
            schema["$defs"] = definitions
            target.joinpath(f"{kind}.json").write_text(json.dumps(schema), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
