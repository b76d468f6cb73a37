"""The folders of a run: the place of sessions, and complete removal."""

import unittest

from suite import scratch


class Scratch(unittest.TestCase):
    def test_sessions_are_removed_with_the_folder(self):
        folder = scratch.make("samovar-test-")
        try:
            sessions = scratch.sessions(folder / "symfony/alone")
            sessions.mkdir(parents=True)
            (sessions / "sess_1").write_text("visits")
            self.assertEqual(folder.stat().st_mode & 0o777, 0o755)
            self.assertNotEqual(sessions, scratch.sessions(folder / "symfony/swoole"))
        finally:
            scratch.drop(folder)
        self.assertFalse(folder.exists())
        self.assertFalse(sessions.exists())
        self.assertFalse(scratch.in_memory(folder).exists())


if __name__ == "__main__":
    unittest.main()
