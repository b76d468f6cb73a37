"""The commands of release.py in a small repository, and the places of the version."""

import datetime
import os
import unittest
import unittest.mock

import release
from releasing import places
from releasing.refusal import Refusal
from releasing.tests import tree
from releasing.version import Version

DAY = datetime.date(2026, 12, 24)
NEXT = Version("0.2.0-rc.1")


class Preparation(unittest.TestCase):
    def test_version_is_replaced_in_all_places_and_nowhere_else(self):
        folder = tree.make(self)
        self.assertTrue(release.prepare(folder, NEXT, DAY))
        self.assertEqual(release.check(folder), [])
        for path, text in tree.FILES.items():
            if path == "CHANGELOG.md":
                continue
            expected = text.replace("0.1.0", "0.2.0-rc.1").replace("0.2.0-rc.1-1~deb", "0.2.0~rc.1-1~deb")
            for kept in ('{ version = "%s" }', 'name = "other"\nversion = "%s"', "libphp %s"):
                expected = expected.replace(kept % "0.2.0-rc.1", kept % "0.1.0")
            self.assertEqual((folder / path).read_text("utf-8"), expected, path)

    def test_second_preparation_changes_nothing(self):
        folder = tree.make(self)
        release.prepare(folder, NEXT, DAY)
        before = {path: path.read_bytes() for path in sorted(folder.rglob("*.*")) if path.is_file()}
        self.assertFalse(release.prepare(folder, NEXT, DAY))
        self.assertEqual(before, {path: path.read_bytes() for path in before})
        tree.commit(folder)
        self.assertFalse(release.prepare(folder, NEXT, DAY))

    def test_pre_release_is_followed_by_release(self):
        folder = tree.make(self)
        for version, entry in ((NEXT, "- One."), (Version("0.2.0"), "- Two.")):
            log = folder / "CHANGELOG.md"
            if version != NEXT:
                log.write_text(log.read_text("utf-8").replace(
                    "## Unreleased\n", f"## Unreleased\n\n### Server\n\n{entry}\n"), "utf-8")
                tree.commit(folder)
            self.assertTrue(release.prepare(folder, version, DAY))
            tree.commit(folder)
        self.assertEqual(places.current(folder), Version("0.2.0"))
        self.assertIn("samovar_0.2.0-1~deb12", (folder / "docs/start/install.md").read_text("utf-8"))

    def test_first_release_may_have_the_version_of_the_tree(self):
        folder = tree.make(self, **{"CHANGELOG.md": tree.LOG.partition("## 0.1.0")[0]})
        self.assertTrue(release.prepare(folder, Version("0.1.0"), DAY))
        self.assertIn("## 0.1.0 - 2026-12-24\n", (folder / "CHANGELOG.md").read_text("utf-8"))

    def test_tree_with_changes_is_refused_and_kept(self):
        folder = tree.make(self)
        (folder / "new").write_text("")
        with self.assertRaises(Refusal):
            release.prepare(folder, NEXT, DAY)
        self.assertEqual(places.current(folder), Version("0.1.0"))

    def test_older_version_is_refused_and_changes_no_file(self):
        folder = tree.make(self)
        with self.assertRaises(Refusal):
            release.prepare(folder, Version("0.0.1"), DAY)
        self.assertEqual(release.check(folder), [])

    def test_newest_version_is_prepared_already(self):
        self.assertFalse(release.prepare(tree.make(self), Version("0.1.0"), DAY))


class Checks(unittest.TestCase):
    def test_each_place_with_another_version_is_reported(self):
        for path in tree.FILES:
            if path in (".gitignore", "CHANGELOG.md", "Cargo.toml"):
                continue
            folder = tree.make(self)
            file = folder / path
            file.write_text(file.read_text("utf-8").replace("0.1.0", "0.0.9"), "utf-8")
            self.assertTrue(any(line.startswith(f"{path}:") for line in release.check(folder)), path)

    def test_newest_section_of_another_version_is_reported(self):
        folder = tree.make(self, **{"CHANGELOG.md": tree.LOG.replace("## 0.1.0", "## 0.0.9")})
        self.assertIn("the newest section is 0.0.9", "".join(release.check(folder)))

    def test_missing_place_is_refused(self):
        for path in ("Cargo.lock", "crates/ring/fuzz/Cargo.toml"):
            for text in ("", None):
                folder = tree.make(self, **({path: text} if text is not None else {}))
                if text is None:
                    (folder / path).unlink()
                with self.assertRaises(Refusal, msg=path):
                    release.check(folder)


class Conditions(unittest.TestCase):
    def test_commit_is_releasable_with_section_version_and_clean_tree(self):
        folder = tree.make(self)
        self.assertEqual(release.require_releasable(folder, Version("0.1.0")).text(), "### Server\n\n- Starts.")
        tree.git(folder, "tag", "v0.1.0")
        release.require_releasable(folder, Version("0.1.0"))

    def test_other_commits_are_refused(self):
        def dirty(folder):
            (folder / "Cargo.toml").write_text("")

        def untracked(folder):
            (folder / "crates/new.rs").write_text("")

        def no_section(folder):
            (folder / "CHANGELOG.md").write_text(tree.LOG.partition("## 0.1.0")[0])
            tree.commit(folder)

        def tagged_before(folder):
            tree.git(folder, "tag", "v0.1.0")
            (folder / "new").write_text("")
            tree.commit(folder)

        for change in (dirty, untracked, no_section, tagged_before):
            folder = tree.make(self)
            change(folder)
            with self.assertRaises(Refusal, msg=change.__name__):
                release.require_releasable(folder, Version("0.1.0"))
        with self.assertRaises(Refusal):
            release.require_releasable(tree.make(self), Version("0.2.0"))


class Times(unittest.TestCase):
    def test_time_is_of_environment_or_of_commit(self):
        folder = tree.make(self)
        with unittest.mock.patch.dict(os.environ, SOURCE_DATE_EPOCH="1700000000"):
            self.assertEqual(release.commit_time(folder), 1_700_000_000)
        for text in ("soon", "-1", "1.5", "１", "9" * 12):
            with unittest.mock.patch.dict(os.environ, SOURCE_DATE_EPOCH=text), self.assertRaises(Refusal, msg=text):
                release.commit_time(folder)
        with unittest.mock.patch.dict(os.environ, SOURCE_DATE_EPOCH=""):
            self.assertGreater(release.commit_time(folder), 1_700_000_000)


class Files(unittest.TestCase):
    def test_packages_of_the_version_are_added_once(self):
        folder = tree.make(self)
        built = release.folder_of(folder, NEXT)
        built.mkdir(parents=True)
        good, other, foreign = (folder / "target" / name for name in (
            "samovar_0.2.0~rc.1-1~deb13_amd64.deb", "samovar_0.2.0-1~deb13_amd64.deb", "php_0.2.0~rc.1-1.deb"))
        for file in (good, other, foreign):
            file.write_text(file.name)
        with self.assertRaises(Refusal):
            release.add(folder, NEXT, [good])
        (built / release.SUMS).write_text("old")
        for wrong in (other, foreign):
            with self.assertRaises(Refusal):
                release.add(folder, NEXT, [good, wrong])
        rpm, old = (folder / "target" / f"samovar-php82-{version}-1.x86_64.rpm" for version in ("0.2.0~rc.1", "0.2.0"))
        rpm.write_text("rpm")
        old.write_text("rpm")
        with self.assertRaises(Refusal):
            release.add(folder, NEXT, [old])
        release.add(folder, NEXT, [good, rpm])
        self.assertEqual(sorted(file.name for file in built.iterdir()), [release.SUMS, rpm.name, good.name])
        self.assertIn(rpm.name, (built / release.SUMS).read_text())
        self.assertIn(good.name, (built / release.SUMS).read_text())
        self.assertNotIn(release.SUMS, (built / release.SUMS).read_text())
        with self.assertRaises(Refusal):
            release.add(folder, NEXT, [good])

    def test_only_new_packages_of_make_are_copied(self):
        made = "target/packages/samovar_0.1.0-1~deb12_amd64.deb"
        folder = tree.make(self, Makefile='packages:\n\t@test -z "$(VERSION)$(PACKAGES)$$VERSION"\n'
                                          f"\t@echo $$SOURCE_DATE_EPOCH >{made}\n")
        target = folder / "target" / "packages"
        target.mkdir(parents=True)
        (target / "samovar_0.0.9-1~deb12_amd64.deb").write_text("")
        built = folder / "target" / "built"
        built.mkdir()
        variables = {"VERSION": "0.1.0", "PACKAGES": "yes", "MAKEFLAGS": " -- VERSION=0.1.0 PACKAGES=yes"}
        with unittest.mock.patch.dict(os.environ, variables):
            release.add_packages(folder, Version("0.1.0"), 1_700_000_000, built)
        self.assertEqual([file.name for file in built.iterdir()], ["samovar_0.1.0-1~deb12_amd64.deb"])
        self.assertEqual((built / "samovar_0.1.0-1~deb12_amd64.deb").read_text(), "1700000000\n")
        with self.assertRaises(Refusal):
            release.add_packages(folder, NEXT, 1, built)

    def test_sums_are_those_of_sha256sum(self):
        folder = tree.make(self)
        target = folder / "target"
        target.mkdir()
        (target / "b").write_text("abc")
        (target / "a").write_text("")
        self.assertEqual(release.sums(target).splitlines(), [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b"])


if __name__ == "__main__":
    unittest.main()
