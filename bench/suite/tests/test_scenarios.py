"""bench/scenarios: recorded figures -> tables; options; entries of a workload. Without servers."""

import argparse
import pathlib
import tempfile
import unittest

from scenarios import bootstrap, deploy, engine, growth, instructions, preload, psr7, queues, recycle, rollback
from suite import deploys, scenario


def server(title, cpu=None, rate=1000.0, error=None, **more):
    rounds = [] if cpu is None else [{
        "pass": "closed", "connections": 64, "cpu_us": cpu, "rate": rate, "requests": 300, "hung": 1,
        "errors": {"io": 1}, "pss_kib": 2048, "uss_kib": 1024,
        "latency_us": {"p50": 1000, "p90": 1500, "p99": 2000, "p999": 3000}}]
    return {"title": title, "group": "samovar", "note": "", "error": error, "commands": [], "rounds": rounds, **more}


def raw(results, **settings):
    return {"complete": True, "started": "2026-11-21T10:00:00+00:00", "command": "bench/scenarios/x.py",
            "settings": {"rounds": 3, "seconds": 3.0, "workers": 2, "connections": 64, **settings},
            "versions": {"php": "8.2.35"}, "results": results,
            "machine": {"cores": 2, "cpu": "A CPU", "memory_mib": 24576, "kernel": "6.18", "distribution": "Debian"}}


def record(**servers):
    return {"description": "an application", "servers": servers}


def turn(max_ms, new_after, bad, io=0, hung=0, weighed=False, pss_kib=None):
    """A turn of bench/scenarios/deploy.py, with 100 good responses."""
    errors = {"connect": 0, "io": io, "status": sum(bad.values()), "timeout": 0, "incomplete": 0}
    done = {"release": "r1", "command_s": new_after / 2, "new_after_s": new_after, "old_afterwards": 1} \
        if new_after else None
    page = {"p50": 1000, "p99": 2000, "max": max_ms * 1000}
    return {"requests": 100, "statuses": {"200": 100, **bad}, "errors": errors, "hung": hung, "weighed": weighed,
            "pss_kib": pss_kib, "deploy": done,
            "classes": {"page": {"latency_us": page}, "slow": {"latency_us": {"max": (300 + max_ms) * 1000}}}}


def cells(table, title):
    """The cells of the row whose first cell is the title."""
    row = next(line for line in table.splitlines() if line.startswith(f"| {title} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]


class Gains(unittest.TestCase):
    def test_more_requests_and_less_cpu_are_gains(self):
        found = record(a=server("a", 100, 1000.0), b=server("b", 80, 1100.0))
        a, b = (scenario.measured(found, key) for key in "ab")
        self.assertAlmostEqual(scenario.gain(b, a), 0.1)
        self.assertAlmostEqual(scenario.gain(b, a, "cpu_us"), 0.25)
        self.assertIsNone(scenario.gain(b, None))
        self.assertEqual([scenario.percent(value) for value in (0.1, -0.25, None)], ["+10 %", "-25 %", "–"])

    def test_unmeasured_figure_is_none(self):
        found = record(a=server("a"))
        self.assertEqual((scenario.measured(found, "a"), scenario.measured(found, "b")), (None, None))

    def test_error_is_one_cell(self):
        self.assertEqual(scenario.error_of({"error": "a\n| b"}), "**error**: a / b")
        self.assertEqual(scenario.error_of({"error": None}), "**error**: not measured")


class Tables(unittest.TestCase):
    def test_ratio_of_queues_is_the_median_of_the_rounds(self):
        found = queues.table(raw({
            "intake": {"error": None, "figures": [600.0, 900.0, 700.0], "bases": [1000.0, 1000.0, 1400.0]},
            "consume": {"error": None, "figures": [51000.4], "bases": [None]},
            "idle": {"error": "no\nanswer", "figures": [], "bases": []}}))
        rows = {line.split("|")[1].split(";")[0].strip(): [cell.strip() for cell in line.strip("|").split("|")[1:]]
                for line in found.splitlines() if line.startswith("|")}
        self.assertEqual(rows["intake"], ["700 (600–900) requests/s", "0.60 (0.50–0.90)", "", "≥ 0.6"])
        self.assertEqual(rows["empty jobs in batches of 100"], ["51,000 (51,000–51,000) jobs/s", "", "≥ 50,000", ""])
        self.assertEqual(rows["p99 next to an idle queue"][0], "**error**: no answer")

    def test_rollback_above_limit_is_marked(self):
        def result(part, pages, *rounds):
            made = [{"us": us, "faults": 10, "searched": 1, "reforks": 0} for us in rounds]
            return {"part": part, "pages": pages, "error": None if rounds else "no answer", "rounds": made}
        table = rollback.table(raw({
            "cheap": result("curve", 10, [10, 20, 900], [30, 30, 30], [40, 40, 40]),
            "dear": result("kinds", 10, [100, 100], [1000, 1000], [1000, 1000]),
            "mean": result("mixed", 1000, [10, 10, 400]), "later": result("after", 0, [500] + [20] * 63),
            "lost": result("curve", 0)}, turns=3))
        self.assertEqual(cells(table, "cheap"), ["cheap", "30 (20–40)", "63", "", "3.3", "33 %", "0"])
        self.assertEqual(cells(table, "dear")[1:4], ["1000 (100–1000)", "63", "**above**"])
        self.assertEqual(cells(table, "mean")[1], "140 (140–140)")
        self.assertEqual([cells(table, at)[1] for at in ("1", "2")], ["500 (500–500)", "20 (20–20)"])
        self.assertIn("no answer", cells(table, "lost")[1])

    def test_bootstrap_cost_is_difference_to_resident(self):
        table = bootstrap.table(raw({"symfony": record(**{
            "php-fpm": server("nginx + php-fpm", 500), "resident": server("resident", 100),
            "checkpoint": server("checkpoint", error="does not start")})}))
        self.assertEqual(cells(table, "nginx + php-fpm")[1:4], ["500 (500–500)", "+400", "5.00"])
        self.assertEqual(cells(table, "nginx + php-fpm")[-1], "2")
        self.assertIn("does not start", cells(table, "checkpoint")[1])

    def test_preload_is_compared_with_twin_and_published_figure(self):
        table = preload.table(raw({"symfony": {**record(**{
            "classic": server("Samovar", 100, 1000.0), "classic-preload": server("Samovar, preloaded", 80, 1200.0)}),
            "classes": [12]}}))
        self.assertIn("12 files preloaded", table)
        self.assertEqual(cells(table, "Samovar, preloaded")[3:6], ["+20 %", "+25 %", "+10 %"])
        self.assertEqual(cells(table, "Samovar")[3:6], ["", "", ""])

    def test_psr7_is_compared_with_script_and_with_superglobals(self):
        table = psr7.table(raw({"echo": record(
            script=server("script", 50, 1000.0), superglobals=server("superglobals", 20, 2000.0),
            psr15=server("PSR-7", 30, 1500.0))}))
        self.assertEqual(cells(table, "PSR-7")[2:7], ["+10.0", "1,500", "+50 %", "+17 %", "-25 %"])
        self.assertEqual(cells(table, "superglobals")[4:7], ["+100 %", "less", ""])

    def test_growth_table_has_verdict_and_three_readings(self):
        readings = [{"requests": n, "refork_total": 0, "rollbacks_total": n + 1, "rollback_us_p50": 20.5,
                     "rollback_us_p99": 99.0, "tree": {"pss_kib": 20480}, "workers": {
                         "7": {"pss_kib": 9216, "uss_kib": 1024, "descriptors": 9, "mappings": 700, "hot_pages": 70}}}
                    for n in range(8)]
        result = {"title": "checkpoint", "error": None, "readings": readings, "errors": 0, "hung": 0,
                  "image": {"bytes": 5 << 20, "mode": "shared", "boot_ms": 30.5}}
        table = growth.table(raw({"checkpoint": result, "script": {
            "title": "script", "error": "gone", "image": None, "readings": []}}))
        self.assertIn("- checkpoint: no growth, 7 requests; image 5.0 MiB (shared), booted in 30.5 ms", table)
        self.assertIn("- script: **error**: gone", table)
        self.assertEqual(cells(table, "checkpoint")[2:8], ["20.0", "9.0", "1.0", "9.0", "700.0", "70.0"])
        self.assertEqual(cells(table, "checkpoint")[8:], ["0", "20.5", "99.0"])
        self.assertEqual(table.count("| checkpoint |"), 3)

    def test_recycle_table_counts_recycled_workers_and_lost_requests(self):
        status = {"worker_restarts_total": 0, "image": {"rollbacks_total": 401, "refork_total": 0}}
        table = recycle.table(raw({
            "recycle": record(**{"no-leak": server("no leak", 30), "rollback": server("rollback", 45, status=status)}),
            "births": {"a": {"title": "resident", "error": None, "ms": [7.0, 9.0, 8.0]},
                       "b": {"title": "checkpoint", "error": "gone", "ms": []}}}))
        self.assertEqual(cells(table, "rollback")[2], "1.50")
        self.assertEqual(cells(table, "rollback")[6:], ["401 rollbacks", "2", "2.0"])
        self.assertEqual(cells(table, "no leak")[6], "–")
        self.assertEqual(cells(table, "resident")[1:], ["8.0", "7.0–9.0", "3"])
        self.assertIn("gone", cells(table, "checkpoint")[1])

    def test_memory_turn_counts_lost_requests_but_not_latencies(self):
        rounds = [turn(10, 0.2, {"502": 3}), turn(30, 0.4, {}, io=2, hung=1),
                  turn(900, 9.0, {"502": 1}, weighed=True, pss_kib={"before": 1024, "greatest": 2048})]
        table = deploy.table(raw({"deploy": {"description": "a page", "servers": {
            "reload": {"title": "reload", "error": "gone", "rounds": rounds},
            "none": {"title": "none", "error": None, "rounds": [turn(10, None, {})]},
            "broken": {"title": "broken", "error": "does not start", "rounds": []}}}}, rate=150, deploys=2))
        row = cells(table, "reload (then an error, see below)")
        self.assertEqual(row[1:3], ["307", "7: 4 × 502, 1 × hung, 2 × io"])
        self.assertEqual(row[3:7], ["1.00", "2.00", "20.0 (10.0–30.0)", "330"])
        self.assertEqual(row[7:], ["0.150 (0.100–0.200)", "0.300 (0.200–0.400)", "3", "1.0 → 2.0"])
        self.assertIn("- reload: **error**: gone", table)
        row = cells(table, "none")
        self.assertEqual((row[2], row[7:]), ("0", ["–"] * 4))
        self.assertIn("does not start", cells(table, "broken")[1])

    def test_function_instructions_include_inlined_files(self):
        said = ("Ir\n"
                "1,200 ( 60.0%)  /src/a.rs:front::encode [/bin/x]\n"
                "  300 ( 15.0%)  /rust/vec.rs:front::encode\n"
                "  500 ( 25.0%)  ./malloc/malloc.c:_int_free [/lib/libc.so.6]\n"
                "2,000 (100.0%)  PROGRAM TOTALS\n")
        self.assertEqual(dict(instructions.functions(said)), {"front::encode": 1500, "_int_free": 500})

    def test_interrupted_run_is_marked(self):
        for made in (bootstrap, deploy, preload, psr7, growth, recycle):
            self.assertIn("Interrupted", made.table({**raw({}), "complete": False}))


class Inputs(unittest.TestCase):
    def test_further_entries_are_full_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            own = pathlib.Path(folder) / "own.php"
            own.write_text("<?php\n")
            found = scenario.workload(scenario.APPS / "hello", own=own)
        self.assertEqual(found.entry("own"), own.resolve())
        self.assertIn("resident", found.entries)

    def test_files_of_every_scenario_exist(self):
        wanted = [(scenario.APPS / name, scenario.SCENARIO_APPS / f"bootstrap/{name}.php")
                  for name in bootstrap.WORKLOADS]
        wanted += [(scenario.APPS / name, psr7.APP / f"{name}-{way}.php")
                   for name in psr7.WORKLOADS for way in ("psr15", "guzzle")]
        for folder, file in wanted:
            self.assertTrue(scenario.workload(folder, own=file).entry("own").is_file(), file)
        for _, _, folder, entry in growth.SERVERS:
            self.assertTrue(scenario.workload(folder).entry(entry).is_file(), folder)
        for _, _, folder, entry, _ in recycle.BIRTHS:
            self.assertTrue(scenario.workload(folder).entry(entry).is_file(), folder)
        for way in deploys.WAYS.values():
            entry = way.model if way.model in ("resident", "checkpoint") else "fpm"
            self.assertTrue(scenario.workload(deploy.APP).entry(entry).is_file(), way.title)

    def test_growth_limit_equals_growth_of_given_requests(self):
        self.assertEqual(recycle.growth_bytes(300), 30_000_000)
        self.assertEqual(recycle.growth_bytes(1), 1 << 20)

    def test_invalid_options_are_rejected(self):
        self.assertEqual(scenario.positive("7"), 7)
        some = scenario.some_of(("a", "b"))
        self.assertEqual((some("b"), some("a,b")), ("b", "a,b"))
        for check, text in ((scenario.positive, "0"), (scenario.positive, "-1"), (scenario.positive, "x"),
                            (some, "c"), (some, "a,"), (some, "")):
            with self.assertRaises(argparse.ArgumentTypeError):
                check(text)

    def test_recyclings_of_server_without_counter_are_none(self):
        self.assertIsNone(recycle.recycled({}))
        self.assertEqual(recycle.recycled({"status": {"worker_restarts_total": 2}}),
                         {"rollbacks": 0, "forks": 0, "restarts": 2})


class Engine(unittest.TestCase):
    def test_ratios_compare_figures_of_same_round(self):
        text = engine.table(raw({"laravel-checkpoint": record(installed=server("installed", 200),
                                                              engine=server("engine", 180)),
                                 "hello-fpm": record(installed=server("installed", 20),
                                                     engine=server("engine", error="it did not start"))}))
        self.assertIn("**laravel-checkpoint**", text)
        self.assertEqual(cells(text, "engine")[1:3], ["180 (180–180)", "0.90 (0.90–0.90)"])
        self.assertIn("**error**: it did not start", text)


if __name__ == "__main__":
    unittest.main()
