"""Versions: their form, their order, and their form in Debian."""

import unittest

from releasing.refusal import Refusal
from releasing.version import Version


class Versions(unittest.TestCase):
    def test_versions_are_ordered_as_by_semver(self):
        ordered = ["0.1.0", "0.2.0-alpha", "0.2.0-alpha.1", "0.2.0-alpha.beta", "0.2.0-rc.2", "0.2.0-rc.11",
                   "0.2.0", "0.2.1", "0.10.0", "1.0.0-1", "1.0.0-rc", "1.0.0"]
        for older, newer in zip(ordered, ordered[1:]):
            self.assertLess(Version(older), Version(newer))
        self.assertEqual(Version("0.1.0"), Version("0.1.0"))
        self.assertNotEqual(Version("0.1.0"), None)

    def test_other_texts_are_refused(self):
        for text in ("", "1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+build", "1.0.0 ", "1.0.0\n",
                     "1.0.0-a_b", "../1.0.0", "１.0.0", "1.0." + "9" * 100):
            with self.assertRaises(Refusal, msg=text):
                Version(text)

    def test_pre_release_is_older_in_debian(self):
        self.assertEqual(Version("0.2.0-rc.1").debian(), "0.2.0~rc.1")
        self.assertEqual(Version("0.2.0").debian(), "0.2.0")


if __name__ == "__main__":
    unittest.main()
