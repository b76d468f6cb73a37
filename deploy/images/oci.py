#!/usr/bin/python3
"""Writes an image archive from the tar of a root file system.

The archive is an OCI layout, and also has the index of `docker save`, so that every version of
Docker and Podman loads it. The same root and the same time give the same archive, byte for byte.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import pathlib
import shutil
import tarfile
import tempfile

COPY_BYTES = 1 << 20


def main():
    options = parse()
    with tempfile.TemporaryDirectory(dir=options.archive.parent) as folder:
        write(options, pathlib.Path(folder) / "layer")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("archive", type=pathlib.Path)
    for name in ["name", "php", "version", "architecture"]:
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--epoch", type=int, required=True)
    return parser.parse_args()


def write(options, layer):
    diff_id, layer_digest = compress(options.root, layer)
    config = as_json(configuration(options, diff_id))
    manifest = as_json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": described("application/vnd.oci.image.config.v1+json", config),
            "layers": [
                {
                    "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                    "digest": f"sha256:{layer_digest}",
                    "size": layer.stat().st_size,
                }
            ],
        }
    )
    entry = described("application/vnd.oci.image.manifest.v1+json", manifest)
    entry["annotations"] = {
        "io.containerd.image.name": f"docker.io/library/{options.name}",
        "org.opencontainers.image.ref.name": options.name.split(":")[1],
    }
    index = as_json({"schemaVersion": 2, "manifests": [entry]})
    loaded = as_json(
        [
            {
                "Config": f"blobs/sha256/{digest(config)}",
                "RepoTags": [options.name],
                "Layers": [f"blobs/sha256/{layer_digest}"],
            }
        ]
    )
    with tarfile.open(options.archive, "w", format=tarfile.PAX_FORMAT) as archive:
        add(archive, "oci-layout", as_json({"imageLayoutVersion": "1.0.0"}), options.epoch)
        add(archive, "index.json", index, options.epoch)
        add(archive, "manifest.json", loaded, options.epoch)
        for blob in [config, manifest]:
            add(archive, f"blobs/sha256/{digest(blob)}", blob, options.epoch)
        member = entry_of(f"blobs/sha256/{layer_digest}", layer.stat().st_size, options.epoch)
        with layer.open("rb") as content:
            archive.addfile(member, content)
    print(f"{options.archive}: {layer.stat().st_size / 1e6:.1f} MB compressed")


def compress(root, layer):
    """Writes the compressed layer; returns the digests of the plain and the compressed tar."""
    with root.open("rb") as plain, layer.open("wb") as target:
        with gzip.GzipFile("", "wb", 9, target, mtime=0) as packed:
            shutil.copyfileobj(plain, packed, COPY_BYTES)
    return file_digest(root), file_digest(layer)


def configuration(options, diff_id):
    created = datetime.datetime.fromtimestamp(options.epoch, datetime.timezone.utc).isoformat()
    return {
        "created": created,
        "architecture": options.architecture,
        "os": "linux",
        "config": {
            # www-data. A number, so that Kubernetes can check runAsNonRoot.
            "User": "33:33",
            "Env": [
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME=/var/lib/samovar",
                "SAMOVAR_LISTEN=:8080",
                f"SAMOVAR_PHP_BINARY={options.php}",
                "SAMOVAR_CONTROL=/tmp/samovar.sock",
                "SAMOVAR_ACCESS_LOG=-",
            ],
            "Cmd": ["samovar", "serve"],
            "WorkingDir": "/app",
            "ExposedPorts": {"8080/tcp": {}},
            "StopSignal": "SIGTERM",
            # Docker's field; other programs ignore it. Exit status 3: the server responds and has a
            # problem, such as errors of the application. A restart would not solve it.
            "Healthcheck": {
                "Test": ["CMD-SHELL", "samovar status >/dev/null || [ $? = 3 ]"],
                "Interval": 10_000_000_000,
                "Timeout": 5_000_000_000,
                "StartPeriod": 60_000_000_000,
                "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "samovar",
                "org.opencontainers.image.version": options.version,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
        "history": [{"created": created, "created_by": "deploy/images/build.sh"}],
    }


def described(media_type, blob):
    return {"mediaType": media_type, "digest": f"sha256:{digest(blob)}", "size": len(blob)}


def as_json(value):
    return json.dumps(value, separators=(",", ":")).encode()


def digest(blob):
    return hashlib.sha256(blob).hexdigest()


def file_digest(path):
    hasher = hashlib.sha256()
    with path.open("rb") as content:
        while block := content.read(COPY_BYTES):
            hasher.update(block)
    return hasher.hexdigest()


def entry_of(name, size, epoch):
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, epoch, 0o644
    return member


def add(archive, name, blob, epoch):
    archive.addfile(entry_of(name, len(blob), epoch), io.BytesIO(blob))


if __name__ == "__main__":
    main()
