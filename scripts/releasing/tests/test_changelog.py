"""The changelog: deviations from its form, and the cut of a release."""

import datetime
import unittest

from releasing import changelog
from releasing.refusal import Refusal
from releasing.tests.tree import LOG
from releasing.version import Version

DAY = datetime.date(2026, 12, 24)


class Form(unittest.TestCase):
    def test_good_text_has_no_problem(self):
        self.assertEqual(changelog.problems(LOG), [])

    def test_each_deviation_is_reported(self):
        cases = {
            "the title": ("# Changelog\n", "# Changes\n"),
            "not `## Unreleased`": ("## Unreleased\n", "## Next\n"),
            "columns": ("- Starts.", "- " + "x" * 99),
            "3 lines": ("  and files.", "  and files,\n  and more."),
            "occurs twice": ("- Serves pages quickly,", "- Serves  `pages`.\n- Serves pages quickly,"),
            "`### Server` occurs twice": ("- Serves pages quickly,", "### Server\n\n- Serves pages quickly,"),
            "in no topic": ("## Unreleased\n\n### Server\n", "## Unreleased\n"),
            "belongs to no entry": ("- Starts.", "- Starts.\n\nText."),
            "is empty": ("## 0.1.0", "### Logs\n\n## 0.1.0"),
            "the section is empty": ("\n### Server\n\n- Starts.\n", ""),
            "is not a version": ("## 0.1.0 -", "## 0.1 -"),
            "has no date": ("2026-12-01", "December"),
            "0.1.0 is below 0.1.0": ("## 0.1.0", "## 0.1.0 - 2026-12-02\n\n### A\n\n- B.\n\n## 0.1.0"),
            "2026-12-01 is below": ("## 0.1.0", "## 0.2.0 - 2026-11-02\n\n### A\n\n- B.\n\n## 0.1.0"),
        }
        for expected, (old, new) in cases.items():
            text = LOG.replace(old, new)
            self.assertNotEqual(text, LOG, expected)
            found = changelog.problems(text)
            self.assertTrue(any(expected in line for line in found), f"{expected}: {found}")


class Cuts(unittest.TestCase):
    def test_unreleased_entries_become_section_of_version(self):
        text = changelog.cut(LOG, Version("0.2.0"), DAY)
        self.assertEqual([section.title for section in changelog.sections(text)],
                         ["## Unreleased", "## 0.2.0 - 2026-12-24", "## 0.1.0 - 2026-12-01"])
        section = changelog.of_version(text, Version("0.2.0"))
        self.assertEqual(section.text(), "### Server\n\n- Serves pages.\n- Serves pages quickly,\n  and files.")
        self.assertEqual(changelog.sections(text)[0].text(), "")
        self.assertEqual(changelog.problems(text), [])
        self.assertEqual(changelog.newest(text), Version("0.2.0"))

    def test_first_release_needs_no_older_section(self):
        text = changelog.cut(LOG.partition("## 0.1.0")[0], Version("0.1.0"), DAY)
        self.assertEqual(changelog.newest(text), Version("0.1.0"))

    def test_cut_without_entries_or_newer_version_is_refused(self):
        empty = changelog.cut(LOG, Version("0.2.0"), DAY)
        missing = LOG.replace("## Unreleased", "## Later")
        for text, version in ((LOG, "0.1.0"), (LOG, "0.1.0-rc.1"), (LOG, "0.0.9"), (empty, "0.3.0"),
                              (missing, "0.2.0")):
            with self.assertRaises(Refusal, msg=version):
                changelog.cut(text, Version(version), DAY)


if __name__ == "__main__":
    unittest.main()
