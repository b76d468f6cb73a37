"""The list of components: the graph from cargo's output, scopes, libraries inside crates."""

import pathlib
import tempfile
import unittest

from releasing import crates, sbom
from releasing.refusal import Refusal

NORMAL = """\
0samovar v0.1.0 (/tree/crates/cli)
1libsqlite3-sys v0.39.1
1samovar-wire v0.1.0 (/tree/crates/wire)
2serde v1.0.0
3serde_derive v1.0.0 (proc-macro)
4syn v3.0.0
1serde v1.0.0 (*)

0samovar-php v0.1.0 (/tree/crates/worker)
1samovar-wire v0.1.0 (/tree/crates/wire) (*)
"""
BUILD = NORMAL.replace("1libsqlite3-sys v0.39.1\n", "1libsqlite3-sys v0.39.1\n2cc v1.2.0\n")
HEADER = '#define SQLITE_VERSION        "3.54.1"\n#define SQLITE_VERSION_NUMBER 3054001\n'


class Lists(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="samovar-release-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "sqlite3").mkdir()
        (self.folder / "sqlite3/sqlite3.h").write_text(HEADER)
        (self.folder / "sqlite3/sqlite3.c").write_text("")

    def graph(self):
        normal, macros = crates.parse_tree(NORMAL.splitlines())
        build, _ = crates.parse_tree(BUILD.splitlines())
        found = {}
        for key in {key for node, nexts in build.items() for key in (node, *nexts)}:
            name, version = key.split()
            ours = name.startswith("samovar")
            folder = self.folder if name == "libsqlite3-sys" else self.folder / "none"
            found[key] = crates.Crate(name, version, "MIT", None if ours else "ab" * 32, folder, key in macros)
        return crates.Graph(found, normal, build)

    def document(self, program="samovar"):
        return sbom.document(self.graph(), program, "0.1.0", "abcdef", 1_800_000_000, "1.95.0")

    def test_scope_is_required_for_linked_code_only(self):
        scopes = {entry["name"]: entry["scope"] for entry in self.document()["components"]}
        self.assertEqual(scopes, {
            "libsqlite3-sys": "required", "SQLite": "required", "samovar-wire": "required", "serde": "required",
            "Rust standard library": "required", "serde_derive": "excluded", "syn": "excluded", "cc": "excluded"})

    def test_programs_have_own_components_only(self):
        names = {entry["name"] for entry in self.document("samovar-php")["components"]}
        self.assertEqual(names, {"samovar-wire", "serde", "serde_derive", "syn", "Rust standard library"})

    def test_dependencies_form_graph_of_listed_components(self):
        document = self.document()
        edges = {entry["ref"]: entry["dependsOn"] for entry in document["dependencies"]}
        names = {entry["bom-ref"] for entry in document["components"]} | {"pkg:generic/samovar/samovar@0.1.0"}
        self.assertEqual(edges.keys(), names)
        self.assertEqual(document["metadata"]["component"]["bom-ref"], "pkg:generic/samovar/samovar@0.1.0")
        self.assertEqual(edges["pkg:cargo/libsqlite3-sys@0.39.1"], ["pkg:cargo/cc@1.2.0", "pkg:generic/sqlite@3.54.1"])
        self.assertIn("pkg:cargo/serde@1.0.0", edges["pkg:generic/samovar/samovar-wire@0.1.0"])

    def test_components_have_sum_licence_and_identity(self):
        entries = {entry["name"]: entry for entry in self.document()["components"]}
        self.assertEqual(entries["serde"]["hashes"], [{"alg": "SHA-256", "content": "ab" * 32}])
        self.assertEqual(entries["SQLite"]["cpe"], "cpe:2.3:a:sqlite:sqlite:3.54.1:*:*:*:*:*:*:*")
        self.assertNotIn("hashes", entries["samovar-wire"])

    def test_same_input_gives_same_document(self):
        self.assertEqual(self.document(), self.document())
        self.assertEqual(self.document()["metadata"]["timestamp"], "2027-01-15T08:00:00Z")
        self.assertNotEqual(self.document()["serialNumber"], self.document("samovar-php")["serialNumber"])

    def test_unknown_c_code_is_refused(self):
        crate = crates.Crate("new-sys", "1.0.0", "MIT", "ab" * 32, self.folder)
        with self.assertRaises(Refusal):
            crates.embedded(crate)

    def test_library_without_version_is_refused(self):
        (self.folder / "sqlite3/sqlite3.h").write_text("")
        with self.assertRaises(Refusal):
            self.document()


class Trees(unittest.TestCase):
    def test_unexpected_output_is_refused(self):
        for text in ("samovar v0.1.0", "0samovar", "0samovar v0.1.0\n2serde v1.0.0"):
            with self.assertRaises(Refusal, msg=text):
                crates.parse_tree(text.splitlines())

    def test_licences_are_spdx_expressions(self):
        for text, expected in (("MIT/Apache-2.0", "MIT OR Apache-2.0"), ("MIT / ISC", "MIT OR ISC"), ("MIT", "MIT")):
            self.assertEqual(crates.licence({"name": "a", "version": "1", "license": text}), expected)
        with self.assertRaises(Refusal):
            crates.licence({"name": "a", "version": "1", "license": None})


if __name__ == "__main__":
    unittest.main()
