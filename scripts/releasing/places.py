"""The places of the tree that name Samovar's version: reads, compares and replaces them."""

import dataclasses
import re

from .refusal import Refusal
from .version import Version

VERSION = r"(?P<version>\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]*[0-9A-Za-z])?)"
# Of a package: `samovar_0.1.0-1~deb12_amd64.deb`, `samovar_0.2.0~rc.1-1~deb12_amd64.deb`.
DEBIAN_VERSION = r"(?P<version>\d+\.\d+\.\d+(?:~[0-9A-Za-z.-]+?)?)(?=-1~deb)"


@dataclasses.dataclass(frozen=True)
class Place:
    """Files, by pattern, and the text before the version in them."""

    files: str
    before: str
    # Whether each file names the version. Of the documents, only those with outputs of commands do.
    is_required: bool = True
    is_debian: bool = False

    def pattern(self):
        return re.compile(self.before + (DEBIAN_VERSION if self.is_debian else VERSION), re.MULTILINE)

    def written(self, version):
        return version.debian() if self.is_debian else str(version)


PLACES = (
    Place("Cargo.toml", r'^\[workspace\.package\]\nversion = "'),
    Place("Cargo.lock", r'^\[\[package\]\]\nname = "samovar[a-z-]*"\nversion = "'),
    Place("crates/*/fuzz/Cargo.toml", r'^name = "samovar-[a-z-]+-fuzz"\n(?:description = .*\n)?version = "'),
    Place("deploy/helm/samovar/Chart.yaml", r"^version: "),
    Place("deploy/helm/samovar/Chart.yaml", r'^appVersion: "'),
    # Outputs of commands, some of which tests compare.
    Place("docs/start/*.md", r"\bsamovar(?:-php[0-9.]*)? ", is_required=False),
    Place("docs/start/*.md", r"\bsamovar(?:-php[0-9.]*)?_", is_required=False, is_debian=True),
    Place("docs/guide/*.md", r"\bsamovar(?:-php[0-9.]*)? ", is_required=False),
    Place("docs/guide/*.md", r"\bsamovar(?:-php[0-9.]*)?_", is_required=False, is_debian=True),
)


def files_of(tree, place):
    files = sorted(tree.glob(place.files))
    if not files:
        raise Refusal(f"no file {place.files}", "correct PLACES in scripts/releasing/places.py")
    return files


def named(tree):
    """Each place that names a version: (file, line, version as written there, place)."""
    found = []
    for place in PLACES:
        for file in files_of(tree, place):
            text = file.read_text("utf-8")
            matches = list(place.pattern().finditer(text))
            if place.is_required and not matches:
                raise Refusal(f"{file.relative_to(tree)} names no version",
                              "correct the file, or PLACES in scripts/releasing/places.py")
            for match in matches:
                line = text.count("\n", 0, match.start("version")) + 1
                found.append((str(file.relative_to(tree)), line, match["version"], place))
    return found


def current(tree):
    """The version of the workspace."""
    found = PLACES[0].pattern().search((tree / "Cargo.toml").read_text("utf-8"))
    if found is None:
        raise Refusal("Cargo.toml names no version", "correct its table [workspace.package]")
    return Version(found["version"])


def differences(tree):
    """Lines about places that name another version than Cargo.toml."""
    wanted = current(tree)
    return [f"{file}:{line}: {version}, but Cargo.toml has {wanted}"
            for file, line, version, place in named(tree) if version != place.written(wanted)]


def replaced(tree, version):
    """The files that change, with their new texts. Writes nothing."""
    named(tree)
    texts = {}
    for place in PLACES:
        for file in files_of(tree, place):
            before = texts.get(file, file.read_text("utf-8"))
            after = place.pattern().sub(
                lambda found: found[0][: found.start("version") - found.start()] + place.written(version), before)
            if after != before:
                texts[file] = after
    return texts
