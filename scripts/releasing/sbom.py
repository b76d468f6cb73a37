"""The list of a program's components (SBOM) in CycloneDX 1.6: crates, libraries inside them, and Rust.

The input is the graph of crates.py. The same input gives the same text.
"""

import datetime
import urllib.parse
import uuid

from . import crates

NAMESPACE = uuid.UUID("6d1c0f0e-6b3f-5d0c-8a7e-3f1f0c9b7a52")


def document(graph, program, version, commit, epoch, rust):
    """The document of one program as a value for JSON.

    `epoch` is the time of the commit in seconds, `rust` the version of the compiler.
    """
    root = graph.root(program)
    linked, used = graph.linked(root), graph.used(root)
    components, edges = {}, {}
    for key in used:
        crate = graph.crates[key]
        scope = "required" if key in linked else "excluded"
        components[reference(crate)] = component(crate, scope)
        nexts = graph.normal[key] | graph.build[key]
        edges[reference(crate)] = {reference(graph.crates[other]) for other in nexts}
        inside = crates.embedded(crate) if key in linked else None
        if inside:
            entry = library(*inside)
            components[entry["bom-ref"]] = entry
            edges[entry["bom-ref"]] = set()
            edges[reference(crate)].add(entry["bom-ref"])
    standard = rust_library(rust)
    components[standard["bom-ref"]] = standard
    edges[standard["bom-ref"]] = set()
    main = components.pop(reference(graph.crates[root]))
    del main["scope"]
    main["type"] = "application"
    edges[main["bom-ref"]].add(standard["bom-ref"])
    moment = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, f'{program} {version} {commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lifecycles": [{"phase": "build"}],
            "tools": {"components": [{"type": "application", "name": "scripts/release.py", "version": version}]},
            "component": main,
            "properties": [{"name": "samovar:commit", "value": commit}],
        },
        "components": [components[name] for name in sorted(components)],
        "dependencies": [{"ref": name, "dependsOn": sorted(edges[name])} for name in sorted(edges)],
        # The C library and libphp are the system's: not in the program, and not in this list.
        "compositions": [{"aggregate": "incomplete", "dependencies": [main["bom-ref"]]}],
    }


def reference(crate):
    """The package URL. Crates of this tree are not in a registry."""
    name, version = urllib.parse.quote(crate.name), urllib.parse.quote(crate.version)
    return f"pkg:cargo/{name}@{version}" if crate.checksum else f"pkg:generic/samovar/{name}@{version}"


def component(crate, scope):
    entry = {
        "type": "library",
        "bom-ref": reference(crate),
        "name": crate.name,
        "version": crate.version,
        "scope": scope,
        "licenses": [{"expression": crate.licence}],
        "purl": reference(crate),
    }
    if crate.checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": crate.checksum}]
    return entry


def library(kind, version):
    name = f"pkg:generic/{kind.name}@{version}"
    entry = {
        "type": "library" if kind.cpe else "data",
        "bom-ref": name,
        "name": kind.title,
        "version": version,
        "scope": "required",
        "licenses": [{"expression": kind.licence}],
        "purl": name,
    }
    if kind.cpe:
        entry["cpe"] = cpe(kind.cpe, version)
    return entry


def rust_library(version):
    name = f"pkg:generic/rust@{version}"
    return {
        "type": "library",
        "bom-ref": name,
        "name": "Rust standard library",
        "version": version,
        "scope": "required",
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
        "purl": name,
        "cpe": cpe("rust-lang:rust", version),
    }


def cpe(product, version):
    return f"cpe:2.3:a:{product}:{version}:*:*:*:*:*:*:*"
