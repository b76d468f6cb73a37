"""Releases, the link to the current one, and the watcher; replacements of a deploy in a server's files."""

import pathlib
import tempfile
import unittest

from suite import deploys, releases, servers
from suite.launch import Launch


def asking(*answers):
    """Visitors who get responses from these releases, and then repeatedly from the last one."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class Links(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_switch_creates_and_replaces_link(self):
        link = self.folder / "server/current"
        for name in ("r0", "r1"):
            (self.folder / name).mkdir()
            releases.switch(link, self.folder / name)
            self.assertEqual(link.resolve().name, name)
        self.assertEqual([path.name for path in link.parent.iterdir()], ["current"])

    def test_switch_succeeds_after_interrupted_switch(self):
        link = self.folder / "current"
        (self.folder / "r0").mkdir()
        (self.folder / "current.new").symlink_to("nowhere")
        releases.switch(link, self.folder / "r0")
        self.assertEqual(link.resolve().name, "r0")


class Watchers(unittest.TestCase):
    def test_old_responses_count_after_first_new_response(self):
        watcher = releases.Watcher("", "r1", asking("r0", None, "r0", "r1", "r0", None, "r1"))
        seen_at, old_afterwards = watcher.see()
        self.assertIsNotNone(seen_at)
        self.assertEqual(old_afterwards, 1)

    def test_watcher_gives_up_on_missing_release(self):
        watcher = releases.Watcher("", "r1", asking("r0"))
        self.assertEqual(watcher.see(seconds_max=0.05), (None, 0))
        self.assertFalse(watcher.is_alive())

    def test_unreachable_server_has_no_release(self):
        self.assertIsNone(releases.ask("127.0.0.1:1"))


class Weights(unittest.TestCase):
    def test_memory_is_median_before_and_maximum_since(self):
        readings = [(1, 10), (2, 30), (3, 20), (4, 90), (5, 40)]
        self.assertEqual(deploys.weights(readings, 4), {"before": 20, "greatest": 90})

    def test_memory_without_readings_on_both_sides_is_none(self):
        for readings in ([], [(1, 10)], [(5, 10)]):
            self.assertIsNone(deploys.weights(readings, 4))


class Changes(unittest.TestCase):
    def kind(self, *changes):
        site = servers.Site("deploy", None, pathlib.Path("/var"), 1, 1, 1, {})
        launch = Launch((), 1, site.var, {}, {site.var / "fpm.conf": "[global]\nerror_log = x\n"})
        return deploys.changed(servers.Kind("k", "t", "fpm", "php-fpm", "", "", lambda _: launch), changes), site

    def test_changed_server_has_replaced_text(self):
        kind, site = self.kind(deploys.WAITS)
        self.assertEqual(kind.launch(site).files[site.var / "fpm.conf"],
                         "[global]\nprocess_control_timeout = 10s\nerror_log = x\n")

    def test_replacement_of_missing_text_is_error(self):
        kind, site = self.kind(("fpm.conf", "[none]", ""))
        with self.assertRaises(ValueError):
            kind.launch(site)

    def test_replaced_texts_exist_in_generated_files(self):
        site = servers.Site("deploy", pathlib.Path("/srv/index.php"), pathlib.Path("/var"), 1, 1, 1, {})
        texts = {"fpm.conf": servers.nginx.fpm_text(site.var, 1),
                 "nginx.conf": servers.nginx.nginx_text(site.var, 1, site.entry, 0)}
        for name, old, _ in (deploys.WAITS, deploys.FOLLOWS):
            self.assertEqual(texts[name].count(old), 1, name)


if __name__ == "__main__":
    unittest.main()
