"""The responses that a shopper considers wrong."""

import unittest

from suite import shopper


def page(name="soak03", locale="de", flash=None):
    greeting = shopper.WORDS[locale][0].format(name)
    shown = f'<p class="flash">{flash}</p>' if flash else ""
    return f'<html lang="{locale}">{shown}<p>{greeting}</p>'


class Greeting(unittest.TestCase):
    def setUp(self):
        self.shopper = shopper.Shopper(1, 3, seed=1)
        self.shopper.locale = "de"

    def test_page_with_own_name_language_and_flash_is_accepted(self):
        self.shopper.must_greet(page())
        self.shopper.flash = "soak03 thinks"
        self.shopper.must_greet(page(flash="Behalten: soak03 thinks"))

    def test_any_other_page_is_a_fault(self):
        for wrong in (page(name="soak04"), page(locale="fr"), page(flash="of another one")):
            with self.assertRaises(shopper.Fault):
                self.shopper.must_greet(wrong)
        self.shopper.flash = "one that waits"
        with self.assertRaises(shopper.Fault):
            self.shopper.must_greet(page())

    def test_seed_determines_order_of_steps(self):
        picks = [[shopper.Shopper(1, number, seed).random.random() for number in (3, 4)] for seed in (1, 1, 2)]
        self.assertEqual(picks[0], picks[1])
        self.assertEqual(len({*picks[0], *picks[2]}), 4)
