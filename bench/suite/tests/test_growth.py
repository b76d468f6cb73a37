"""Readings -> growth; a killed worker's successor."""

import unittest

from suite import control, growth


def reading(uss, requests=0, pids=("1", "2"), **more):
    worker = {"pss_kib": 9000, "uss_kib": uss, "descriptors": 10, "mappings": 700, "hot_pages": None, **more}
    return {"requests": requests, "workers": {pid: dict(worker) for pid in pids}}


class Grown(unittest.TestCase):
    def test_growth_in_first_quarter_is_warm_up(self):
        readings = [reading(uss) for uss in (1000, 4000, 8000, 8000, 8000, 8000, 8000, 8000)]
        self.assertEqual(growth.grown(readings), {})
        self.assertEqual(growth.verdict(readings), "no growth")

    def test_steady_growth_is_reported(self):
        readings = [reading(1000 * n) for n in range(1, 9)]
        self.assertEqual(growth.grown(readings), {"uss_kib": (3500, 7500)})
        self.assertEqual(growth.verdict(readings), "**grows**: uss_kib from 3500 to 7500")

    def test_one_more_descriptor_per_quarter_is_growth(self):
        readings = [reading(1000, descriptors=10 + n) for n in range(8)]
        self.assertIn("descriptors", growth.grown(readings))

    def test_few_pages_are_noise(self):
        readings = [reading(500 + 20 * n) for n in range(8)]
        self.assertEqual(growth.grown(readings), {})

    def test_replaced_workers_are_reported(self):
        readings = [*[reading(1000)] * 7, reading(1000, pids=("1", "3"))]
        self.assertIn("workers were replaced", growth.verdict(readings))

    def test_too_few_readings_give_no_verdict(self):
        self.assertEqual(growth.grown([reading(1), reading(9)]), {})
        self.assertEqual(growth.verdict([reading(1), reading(9)]), "too few readings")


class Readings(unittest.TestCase):
    def test_table_shows_first_middle_and_last_reading(self):
        readings = [reading(1, n) for n in range(9)]
        self.assertEqual([r["requests"] for r in growth.shown(readings)], [0, 4, 8])
        self.assertEqual(len(growth.shown(readings[:1])), 1)
        self.assertEqual(growth.shown([]), [])

    def test_figure_is_mean_of_workers(self):
        two = {"workers": {"1": {"uss_kib": 10}, "2": {"uss_kib": 20, "hot_pages": 4}}}
        self.assertEqual((growth.per_worker(two, "uss_kib"), growth.per_worker(two, "hot_pages")), (15, 2))
        self.assertEqual(growth.per_worker({"workers": {}}, "uss_kib"), 0)

    def test_slice_duration_follows_from_requests_and_rate(self):
        self.assertEqual(growth.slice_seconds(1_000_000, 10_000, 20), 5)
        self.assertEqual(growth.slice_seconds(100, 10_000, 20), 0.1)
        self.assertEqual(growth.slice_seconds(100, 0, 20), 0.1)


class Successor(unittest.TestCase):
    def check(self, expected, *workers):
        table = [{"pid": pid, "state": state} for pid, state in workers]
        self.assertEqual(control.successor(table, 1, {1, 2}), expected)

    def test_successor_is_new_idle_process_after_victim_ended(self):
        self.check(3, (2, "idle"), (3, "idle"))
        self.check(None, (1, "idle"), (2, "idle"))
        self.check(None, (2, "idle"), (3, "booting"))
        self.check(None, (1, "idle"), (3, "idle"))


if __name__ == "__main__":
    unittest.main()
