"""Rounds -> medians, ratios, rows."""

import unittest

from suite import figures, measure, options


def round_of(cpu, p50=1000, p99=2000, rate=100.0, **more):
    return {"pass": "closed", "connections": 64, "cpu_us": cpu, "rate": rate, "requests": 300, "hung": 0,
            "errors": {"io": 0}, "latency_us": {"p50": p50, "p90": 1500, "p99": p99, "p999": 3000}, **more}


def server(title, group, rounds, error=None):
    return {"title": title, "group": group, "note": "", "error": error, "commands": [], "rounds": rounds}


def workload():
    return {"connections": 64, "servers": {
        "php-fpm": server("nginx + php-fpm", "php-fpm", [round_of(90), round_of(110), round_of(100, rate=80.0)]),
        "samovar-resident": server("Samovar", "samovar", [round_of(20), round_of(30), round_of(25)]),
        "alone": server("alone", "limit", [{"pass": "closed", "connections": 64, "cpu_us": 10, "rate": 9e9}]),
        "broken": server("Broken", "peer", [], "does not start")}}


class Spread(unittest.TestCase):
    def test_spread_is_median_minimum_and_maximum(self):
        self.assertEqual(figures.spread([3, None, 1, 2]), {"median": 2, "min": 1, "max": 3})
        self.assertIsNone(figures.spread([None]))

    def test_ratio_and_difference_without_value_are_none(self):
        self.assertEqual((figures.ratio(1, None), figures.ratio(1, 0), figures.ratio(None, 2)), (None, None, None))
        self.assertEqual((figures.ratio(1, 4), figures.difference(4, 1), figures.difference(None, 1)), (0.25, 3, None))

    def test_missing_path_has_no_value(self):
        self.assertEqual(figures.place({"a": {"b": 0}}, ("a", "b")), 0)
        self.assertIsNone(figures.place({"a": None}, ("a", "b")))


class Rows(unittest.TestCase):
    def test_rows_have_lowest_cpu_first_and_errors_last(self):
        self.assertEqual([row["name"] for row in figures.rows(workload(), 64)],
                         ["alone", "samovar-resident", "php-fpm", "broken"])

    def test_rows_have_ratios_to_php_fpm_and_limit(self):
        row = figures.rows(workload(), 64)[1]
        self.assertEqual(row["cpu_us"], {"median": 25, "min": 20, "max": 30})
        self.assertEqual((row["over_reference"], row["over_alone"], row["over_bare"]), (0.25, 15, None))
        self.assertEqual(row["tail"], 2)

    def test_errors_and_hung_requests_of_both_passes_are_summed(self):
        one = workload()
        rounds = one["servers"]["php-fpm"]["rounds"]
        rounds[0]["errors"] = {"io": 2, "timeout": 1}
        rounds.append(round_of(100, p99=9000, hung=4) | {"pass": "rate"})
        row = figures.rows(one, 64)[2]
        self.assertEqual((row["errors"], row["hung"], row["rate_p99"]), (3, 4, 9000))

    def test_each_class_has_its_own_row(self):
        one = workload()
        self.assertEqual(figures.class_rows(one, 64), [])
        for r in one["servers"]["php-fpm"]["rounds"]:
            r["classes"] = {"short": {"latency_us": {"p50": 1}}, "long": {"latency_us": {"p50": 9}}}
        self.assertEqual([(row["class"], row["p50"], row["p99"]) for row in figures.class_rows(one, 64)],
                         [("long", 9, None), ("short", 1, None)])


class Rate(unittest.TestCase):
    def test_rate_is_share_of_php_fpm_or_number(self):
        self.assertEqual(figures.reference_rate(workload()["servers"], 64), 100)
        self.assertEqual([figures.asked_rate(wish, 1000) for wish in ("50%", "80%", "77", "0")], [500, 800, 77, 0])
        self.assertEqual(figures.asked_rate("50%", None), 0)

    def test_reference_without_php_fpm_is_slowest_server(self):
        servers = workload()["servers"]
        del servers["php-fpm"]
        self.assertEqual(figures.reference_rate(servers, 64), 100)

    def test_tables_use_64_connections_if_measured(self):
        self.assertEqual((figures.main_connections((1, 64, 256)), figures.main_connections((1, 16))), (64, 16))


class Lines(unittest.TestCase):
    def test_ladder_lists_latency_by_rate(self):
        one = workload()
        one["servers"]["php-fpm"]["rounds"] += [
            round_of(1, p50=p50, p99=9) | {"pass": "step", "share": share, "asked_rate": share * 100}
            for share, p50 in ((0.9, 5), (0.1, 1), (0.1, 3))]
        self.assertEqual(figures.ladder(one), {"php-fpm": [(10.0, 2, 9), (90.0, 5, 9)]})

    def test_memory_lines_omit_failed_servers(self):
        points = [{"server": "a", "workers": 2, "pss_kib": 4096}, {"server": "a", "workers": 1, "pss_kib": 2048},
                  {"server": "b", "workers": 1, "error": "does not start"}]
        self.assertEqual(figures.memory_lines(points), {"a": [(1, 2.0), (2, 4.0)]})


class Plan(unittest.TestCase):
    def test_planned_time_counts_each_step_of_each_server(self):
        class Kind:
            def __init__(self, launch, group):
                self.launch, self.group = launch, group

        class One:
            name = "symfony"
            connections = None

        settings = options.settings(options.parse(["--rate", "0", "--no-system-calls", "--ladder", ""]))
        start, one = measure.WARMUP_SECONDS + 2, 3 + measure.SETTLE_SECONDS
        kinds = [Kind(print, "samovar"), Kind(print, "php-fpm"), Kind(None, "limit")]
        self.assertAlmostEqual(measure.planned_seconds(One, kinds, settings), 2 * start + 3 * 3 * one)


if __name__ == "__main__":
    unittest.main()
