"""Recorded figures -> Markdown and plots."""

import json
import pathlib
import tempfile
import unittest

from suite import readme, report

SAMPLE = pathlib.Path(__file__).with_name("sample.json")


def sample():
    return json.loads(SAMPLE.read_text())


class Numbers(unittest.TestCase):
    def test_number_has_three_significant_digits(self):
        self.assertEqual([report.adaptive(n) for n in (0.0516, 8.25, 49.66, 493.4, 12345, None)],
                         ["0.052", "8.25", "49.7", "493", "12,345", "–"])
        self.assertEqual([report.signed(n) for n in (15.04, -0.5, None)], ["+15.0", "-0.500", "–"])
        self.assertEqual(report.with_spread({"median": 20.04, "min": 19.1, "max": 23}), "20.0 (19.1–23.0)")
        self.assertEqual((report.milliseconds(1500), report.mebibytes(2048)), ("1.50", "2.0"))


class Results(unittest.TestCase):
    def setUp(self):
        self.raw = sample()

    def test_table_lines_have_equal_number_of_cells(self):
        for name, workload in self.raw["workloads"].items():
            lines = report.main_table(workload, workload["connections"]).splitlines()
            self.assertEqual({line.count("|") for line in lines}, {lines[0].count("|")}, name)
            self.assertEqual(len(lines), 2 + len(workload["servers"]))

    def test_table_highlights_samovar_and_shows_error_in_row(self):
        text = report.results(self.raw)
        self.assertIn("| **Samovar, resident** |", text)
        self.assertRegex(text, r"\| Broken \| \*\*error\*\*: does not start: no such thing \|")

    def test_error_with_line_ends_and_bars_is_one_cell(self):
        hello = self.raw["workloads"]["hello"]
        hello["servers"]["broken"]["error"] = "a | b\nc"
        self.assertIn("| Broken | **error**: a / b c |", report.main_table(hello, hello["connections"]))

    def test_missing_server_is_listed_with_install_command(self):
        self.assertIn("- Absent: missing. Install it with: pecl install absent", report.results(self.raw))

    def test_failed_workload_is_shown_as_error(self):
        self.raw["workloads"]["laravel"] = {"description": "x", "error": "Debian packages are missing: apt-get"}
        self.assertIn("## laravel\n\n**error**: Debian packages", report.results(self.raw))
        self.assertNotIn("laravel", readme.section(self.raw, "there"))

    def test_client_at_its_limit_is_reported(self):
        hello = self.raw["workloads"]["hello"]
        rounds = hello["servers"]["php-fpm"]["rounds"]
        for share, is_named in ((0.9, False), (0.95, True)):
            for found in rounds:
                found["client"] = {"cpu_us": 5.0, "cpu_share": share if found["pass"] == "closed" else 0.2}
            text = report.workload_section("hello", hello)
            self.assertEqual("- nginx + php-fpm: **limited by the client** (closed loop: 95 % of its core)." in text,
                             is_named)
            self.assertNotIn("constant rate:", text)

    def test_trial_and_interrupted_run_are_marked(self):
        self.raw["settings"]["rounds"], self.raw["complete"] = 1, False
        text = report.results(self.raw)
        self.assertIn("Interrupted", text)
        self.assertIn("Trial run", text)
        self.raw["settings"]["rounds"], self.raw["complete"] = 3, True
        text = report.results(self.raw)
        self.assertNotIn("Interrupted", text)
        self.assertNotIn("Trial run", text)

    def test_results_contain_command_to_repeat(self):
        text = report.results(self.raw)
        for part in (self.raw["command"], self.raw["machine"]["cpu"], "opcache.validate_timestamps=1"):
            self.assertIn(part, text)


class Readme(unittest.TestCase):
    def test_readme_section_has_rows_plots_and_origin(self):
        raw = sample()
        text = readme.section(raw, "bench/results/x")
        self.assertEqual(text, readme.section(raw, "bench/results/x"))
        for name in raw["workloads"]:
            self.assertIn(f"\n| {name} | ", text)
        for part in ("(bench/results/x/cpu.svg)", raw["command"], raw["started"][:10], "nginx + php-fpm"):
            self.assertIn(part, text)

    def test_measured_peer_gets_column(self):
        raw = sample()
        self.assertNotIn("Broken", readme.section(raw, "x"))
        broken = raw["workloads"]["hello"]["servers"]["broken"]
        broken["rounds"] = raw["workloads"]["hello"]["servers"]["php-fpm"]["rounds"]
        self.assertIn("| Broken |", readme.section(raw, "x"))


class Plots(unittest.TestCase):
    def setUp(self):
        try:
            from suite import plots
        except ImportError:
            self.skipTest("matplotlib is missing")
        self.plots = plots

    def draw(self, raw):
        with tempfile.TemporaryDirectory() as folder:
            names = self.plots.draw_all(raw, pathlib.Path(folder))
            return {name: (pathlib.Path(folder) / name).read_text() for name in names}

    def test_plots_are_complete_and_reproducible(self):
        drawn = self.draw(sample())
        self.assertEqual(list(drawn), ["cpu.svg", "latency.svg", "memory.svg"])
        self.assertEqual(drawn, self.draw(sample()))
        for text in drawn.values():
            self.assertIn("</svg>", text)

    def test_plot_without_figures_is_not_drawn(self):
        raw = sample()
        raw["memory"], raw["settings"]["ladder"] = [], None
        self.assertEqual(list(self.draw(raw)), ["cpu.svg"])
        raw["workloads"] = {}
        self.assertEqual(self.draw(raw), {})

    def test_labels_keep_order_and_distance(self):
        from suite import style
        self.assertEqual(style.spread_apart([0.9, 0.1, 0.5], 0.1), [0.9, 0.1, 0.5])
        near = style.spread_apart([0.50, 0.52, 0.9, 0.51], 0.1)
        self.assertEqual(sorted(range(4), key=lambda i: near[i]), [0, 3, 1, 2])
        placed = sorted(near)
        self.assertTrue(all(b - a >= 0.1 - 1e-9 for a, b in zip(placed, placed[1:])))

    def test_axis_ticks_are_round_numbers(self):
        self.assertEqual(self.plots.nice_ticks(0.9, 30), [1, 2, 5, 10, 20])


if __name__ == "__main__":
    unittest.main()
