"""workload.toml, peers/*.toml and the command line: accepted and rejected values."""

import argparse
import pathlib
import tempfile
import unittest

from suite import options, peers, workloads

WORKLOAD = """
description = "JSON in, JSON out"
packages = ["php-x"]
needs = "postgres"
setup = "setup.php"
visitors = 4
connections = 8
[[target]]
class = "short"
weight = 95
path = "/?n={n}"
[[target]]
class = "long"
weight = 5
method = "POST"
path = "/long"
headers = { Content-Type = "application/json" }
body_bytes = 100
[expect]
contains = "ok"
[entries]
fpm = "public/index.php"
resident = "../other/resident.php"
"""
PEER = """
name = "RoadRunner"
homepage = "https://roadrunner.dev"
find = "rr --version"
install = "download rr"
entry = "roadrunner"
start = ["rr", "serve", "-c", "{var}/rr.yaml"]
ready = "tcp"
stop = "INT"
[[file]]
path = "{var}/rr.yaml"
text = '''pool: { num_workers: {workers} }'''
"""


class Workload(unittest.TestCase):
    def test_workload_has_targets_and_entries(self):
        workload = workloads.parse("echo", "/apps/echo", WORKLOAD)
        self.assertEqual([target.group for target in workload.targets], ["short", "long"])
        self.assertEqual((workload.targets[1].method, workload.targets[1].body_bytes), ("POST", 100))
        self.assertEqual((workload.status, workload.contains), (200, "ok"))
        self.assertEqual(workload.entry("resident"), pathlib.Path("/apps/other/resident.php"))
        self.assertIsNone(workload.entry("swoole"))
        self.assertEqual((workload.visitors, workload.connections, workload.workers), (4, 8, None))
        self.assertEqual((workload.needs, workload.setup), ("postgres", "setup.php"))

    def test_workload_mistake_is_reported(self):
        for text, part in [(WORKLOAD.replace("visitors", "visitor"), "visitor"),
                           (WORKLOAD.replace('"postgres"', '"oracle"'), "oracle"),
                           (WORKLOAD.replace("[expect]", "[expect"), "workload: "),
                           (WORKLOAD.replace("[entries]", "[entry]"), "entry"),
                           (WORKLOAD.replace("body_bytes = 100", "body_bytes = 1\nbody = 'x'"), "at most one")]:
            with self.assertRaises(workloads.WorkloadError) as caught:
                workloads.parse("workload", "/", text)
            self.assertIn(part, str(caught.exception))

    def test_workload_files_of_this_repository_are_valid(self):
        _, wrong = workloads.load_all(pathlib.Path(__file__).parents[2] / "apps")
        self.assertEqual(wrong, {})

    def test_workloads_are_sorted_smallest_first(self):
        names = sorted(["symfony", "own", "static", "hello"], key=workloads.rank)
        self.assertEqual(names, ["hello", "symfony", "static", "own"])


class Peer(unittest.TestCase):
    def test_peer_has_find_start_and_stop(self):
        peer = peers.parse("roadrunner", PEER)
        self.assertEqual((peer.name, peer.find, peer.stop.name), ("RoadRunner", "rr --version", "SIGINT"))
        self.assertEqual(peer.files, (("{var}/rr.yaml", "pool: { num_workers: {workers} }"),))

    def test_fill_replaces_placeholders_and_keeps_other_braces(self):
        self.assertEqual(peers.fill("pool: { num_workers: {workers} }", {"workers": 2}), "pool: { num_workers: 2 }")

    def test_peer_mistake_is_reported(self):
        for text, part in [(PEER.replace('"INT"', '"STOP PLEASE"'), "STOP PLEASE"),
                           (PEER.replace("find", "seek"), "find"), (PEER.replace('"tcp"', '"smoke"'), "smoke")]:
            with self.assertRaises(peers.PeerError) as caught:
                peers.parse("roadrunner", text)
            self.assertIn(part, str(caught.exception))

    def test_peer_files_of_this_repository_are_valid(self):
        _, wrong = peers.load_all(pathlib.Path(__file__).parents[2] / "peers")
        self.assertEqual(wrong, {})

    def test_missing_peer_has_no_version(self):
        found = peers.parse("roadrunner", PEER.replace('"rr --version"', '"echo rr 2.1; echo more"'))
        missing = peers.parse("roadrunner", PEER.replace('"rr --version"', '"exit 1"'))
        self.assertEqual((peers.version(found), peers.version(missing)), ("rr 2.1", None))

    def test_built_peer_is_used_unless_variable_names_another(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.assertEqual(peers.built({"PATH": "/bin"}, folder), {})
            (folder / "swoole.so").touch()
            (folder / "workerman").mkdir()
            (folder / "bin").mkdir()
            self.assertEqual(peers.built({"PATH": "/bin", "BENCH_WORKERMAN": "/opt/own"}, folder),
                             {"BENCH_SWOOLE": f"{name}/swoole.so", "PATH": f"{name}/bin:/bin"})


class Options(unittest.TestCase):
    def test_default_options_are_for_publication(self):
        settings = options.settings(options.parse([]))
        self.assertEqual((settings.rounds, settings.seconds, settings.connections, settings.rate), (3, 3, (64,), "50%"))
        self.assertEqual(settings.ladder_shares, (0.1, 0.3, 0.5, 0.7, 0.9))

    def test_quick_changes_only_options_not_given(self):
        self.assertEqual(options.parse(["--quick"]).workloads, options.QUICK_WORKLOADS)
        quick = options.parse(["--quick", "--rounds", "2", "--workloads", "symfony"])
        self.assertEqual((quick.rounds, quick.seconds, quick.workloads), (2, 1, "symfony"))

    def test_list_of_numbers_is_parsed(self):
        self.assertEqual(options.numbers("64,1,16"), (1, 16, 64))
        self.assertEqual(options.numbers(""), ())
        with self.assertRaises(argparse.ArgumentTypeError):
            options.numbers("0")
        with self.assertRaises(argparse.ArgumentTypeError):
            options.rate("half")


if __name__ == "__main__":
    unittest.main()
