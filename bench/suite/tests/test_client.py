"""The client's input: targets, visitors, bodies, the command line. And the output of /proc and perf."""

import email.message
import pathlib
import tempfile
import unittest

from suite import accounting, client, machine, progress, workloads

TWO_CLASSES = """
description = "two"
[[target]]
class = "short"
weight = 95
path = "/"
[[target]]
class = "long"
weight = 5
path = "/long"
method = "POST"
headers = { "Content-Type" = "multipart/form-data; boundary=XyZ" }
body_bytes = 1000
[entries]
"""


class Targets(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.var = pathlib.Path(self.folder.name)
        self.workload = workloads.parse("two", "/apps/two", TWO_CLASSES)

    def test_targets_file_has_one_line_per_target(self):
        short, long = client.target_lines(self.workload, self.var)
        self.assertEqual(short, {"class": "short", "weight": 95.0, "method": "GET", "path": "/", "headers": {}})
        self.assertEqual((long["class"], long["weight"]), ("long", 5.0))

    def test_class_weight_is_divided_among_visitors(self):
        lines = client.target_lines(self.workload, self.var, ["a=1", "a=2"])
        self.assertEqual(len(lines), 4)
        self.assertEqual(sum(line["weight"] for line in lines if line["class"] == "short"), 95)
        self.assertEqual({line["headers"]["Cookie"] for line in lines}, {"a=1", "a=2"})

    def test_multipart_body_is_form_with_one_file(self):
        body = pathlib.Path(client.target_lines(self.workload, self.var)[1]["body_file"]).read_bytes()
        self.assertTrue(body.startswith(b"--XyZ\r\n"))
        self.assertTrue(body.endswith(b"\r\n--XyZ--\r\n"))
        head, content = body.split(b"\r\n\r\n", 1)
        self.assertIn(b'name="file"; filename="upload.bin"', head)
        self.assertEqual(len(content) - len(b"\r\n--XyZ--\r\n"), 1000)

    def test_body_file_may_be_in_server_folder(self):
        target = workloads.parse_target({"path": "/", "body_file": "{var}/made.json"})
        self.assertEqual(client.body_of(target, pathlib.Path("/apps/two"), self.var / "app"),
                         {"body_file": str((self.var / "app/made.json").resolve())})

    def test_cookie_header_omits_attributes(self):
        headers = email.message.Message()
        headers["Set-Cookie"] = "PHPSESSID=abc; path=/; HttpOnly"
        headers["Set-Cookie"] = "lang=en"
        self.assertEqual(client.cookies_of(headers), "PHPSESSID=abc; lang=en")


class Command(unittest.TestCase):
    def test_closed_loop_command_has_no_rate(self):
        line = " ".join(client.command("127.0.0.1:80", "t.jsonl", 3, 64)[1:])
        self.assertIn("--connections 64 --seconds 3", line)
        self.assertNotIn("--rate", line)
        self.assertTrue(line.endswith("http://127.0.0.1:80/"))

    def test_command_contains_rate_and_new_connections(self):
        line = " ".join(client.command("127.0.0.1:80", "t.jsonl", 3, 64, 1234.56, True))
        self.assertIn("--rate 1235", line)
        self.assertIn("--new-connections", line)


class Accounting(unittest.TestCase):
    def test_ticks_include_ended_children(self):
        stat = "7 (php (fpm) x) S " + " ".join(str(n) for n in range(4, 53))
        self.assertEqual(accounting.ticks(stat), 14 + 15 + 16 + 17)

    def test_smaps_rollup_gives_pss_and_uss(self):
        text = "00-ff ---p 0 0 0 [rollup]\nRss: 90 kB\nPss:  40 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 20 kB\n"
        self.assertEqual(accounting.rollup(text), {"pss_kib": 40, "uss_kib": 21})

    def test_perf_output_gives_system_calls(self):
        line = "254321,,raw_syscalls:sys_enter,2003410512,100.00,,"
        self.assertEqual(accounting.perf_count(f"# started\n\n{line}\n"), 254321)
        self.assertIsNone(accounting.perf_count("<not supported>,,raw_syscalls:sys_enter,0,0.00,,"))
        self.assertIsNone(accounting.perf_count(""))

    def test_process_tree_contains_root(self):
        import os
        self.assertIn(os.getpid(), accounting.tree([os.getpid()]))


class Machine(unittest.TestCase):
    def test_machine_facts_are_read(self):
        self.assertEqual(machine.cpu_model("processor: 0\nmodel name\t: AMD EPYC 7B13\n"), "AMD EPYC 7B13")
        self.assertEqual(machine.memory_mib("MemTotal:  2048 kB\n"), 2)
        self.assertEqual(machine.distribution('ID=debian\nPRETTY_NAME="Debian 12"\n'), "Debian 12")
        self.assertEqual(machine.version_in("nginx version: nginx/1.22.1\n"), "1.22.1")
        self.assertIsNone(machine.version_in("none"))


class TimeLeft(unittest.TestCase):
    def test_remaining_time_follows_plan_then_pace(self):
        self.assertEqual(progress.remaining(100, 0, 0), 100)
        self.assertAlmostEqual(progress.remaining(1000, 500, 1000), 500 * 1060 / 560)
        self.assertEqual(progress.remaining(10, 20, 20), 0)

    def test_duration_is_formatted_with_fitting_unit(self):
        self.assertEqual([progress.clock(s) for s in (40, 600, 6000)], ["40 s", "10 min", "1 h 40 min"])


if __name__ == "__main__":
    unittest.main()
