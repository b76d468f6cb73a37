"""The source archive: names, times, modes, and crates for other systems."""

import json
import os
import pathlib
import tarfile
import tempfile
import unittest

from releasing import source


class Archives(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="samovar-release-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tree(self, name, mask):
        root = self.folder / name
        (root / "b").mkdir(parents=True)
        (root / "b/run").write_text("#!/bin/sh\n")
        (root / "a.txt").write_text("text")
        (root / "link").symlink_to("b")
        os.chmod(root / "b/run", 0o700 | mask)
        os.chmod(root / "a.txt", 0o600 | mask)
        return root

    def test_archive_is_independent_of_times_owners_and_masks(self):
        for name, mask in (("one", 0o77), ("two", 0)):
            source.pack(self.tree(name, mask & 0o55), "samovar-0.1.0", 1_700_000_000, self.folder / f"{name}.tar.xz")
            os.utime(self.folder / name / "a.txt", (1, 1))
        one, two = ((self.folder / f"{name}.tar.xz").read_bytes() for name in ("one", "two"))
        self.assertEqual(one, two)
        with tarfile.open(self.folder / "one.tar.xz") as tar:
            found = [(entry.name, oct(entry.mode), entry.mtime, entry.uid, entry.linkname) for entry in tar]
        self.assertEqual(found, [
            ("samovar-0.1.0/a.txt", "0o644", 1_700_000_000, 0, ""),
            ("samovar-0.1.0/b/run", "0o755", 1_700_000_000, 0, ""),
            ("samovar-0.1.0/link", "0o777", 1_700_000_000, 0, "b")])

    def test_crate_for_other_systems_keeps_manifest_and_empty_targets(self):
        crate = self.folder / "windows-1.0.0"
        (crate / "src/bin").mkdir(parents=True)
        manifest = '[package]\nname = "windows"\nversion = "1.0.0"\nbuild = "build.rs"\n[lib]\npath = "src/all.rs"\n'
        for name, text in (("Cargo.toml", manifest), ("build.rs", "fn main() {}"), ("src/all.rs", "mod big;"),
                           ("src/big.rs", "x"), ("import.lib", "binary"),
                           (".cargo-checksum.json", '{"files": {"a": "b"}, "package": "ab"}')):
            (crate / name).write_text(text)
        source.empty(str(crate))
        found = {str(path.relative_to(crate)): path.read_text() for path in crate.rglob("*") if path.is_file()}
        sums = json.loads(found.pop(".cargo-checksum.json"))
        self.assertEqual(found, {"Cargo.toml": manifest, "build.rs": "", "src/all.rs": ""})
        self.assertEqual(sums, {"files": {}, "package": "ab"})

    def test_compiled_files_are_dropped_with_their_checksums(self):
        crate = self.folder / "ring-1.0.0"
        (crate / "pregenerated").mkdir(parents=True)
        names = ["Cargo.toml", "pregenerated/aes.S", "pregenerated/aes.o"]
        for name in names:
            (crate / name).write_text("")
        record = {"files": {name: "sum" for name in names}, "package": "ab"}
        (crate / ".cargo-checksum.json").write_text(json.dumps(record))
        source.drop_binaries(str(crate))
        del record["files"]["pregenerated/aes.o"]
        self.assertEqual(json.loads((crate / ".cargo-checksum.json").read_text()), record)
        self.assertEqual([path.name for path in (crate / "pregenerated").iterdir()], ["aes.S"])


if __name__ == "__main__":
    unittest.main()
