"""Visitor of tests/apps/symfony-shop: knows the required text of each page, and the forbidden names.

Each text that a shopper writes contains the shopper's name. So the name of another shopper in a response means that
sessions have crossed.
"""

import http.client
import random
import re
import urllib.parse

NAMES = re.compile(r"soak\d\d")
PASSWORD = "tea"
TIMEOUT_SECONDS = 30
# A cart and a list without limits would themselves be the growth.
NOTES_MAX = 5
CART_MAX = 50
BOUNDARY = "----soak-8c1f"
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
                    "0000000d49444154789c63fccfc0500f0004850180849a8c210000000049454e44ae426082")
WORDS = {"en": ("You are {}.", "Your cart holds {}.", "You keep {} notes."),
         "de": ("Sie sind {}.", "Ihr Korb enthält {}.", "Sie behalten {} Notizen."),
         "fr": ("Vous êtes {}.", "Votre panier contient {}.", "Vous gardez {} notes.")}


class Fault(Exception):
    """A response that is not this shopper's, or is wrong."""


def name_of(number):
    return f"soak{number:02}"


class Shopper:
    """One connection, one session, and an order of steps determined by the seed."""

    def __init__(self, port, number, seed):
        self.port, self.name, self.random = port, name_of(number), random.Random(f"{seed} {number}")
        self.connection, self.cookies, self.sent, self.turn = None, {}, 0, 0
        self.notes = []
        self.forget()
        self.steps = (self.home, self.home, self.choose_language, self.add_to_cart, self.empty_cart, self.write_note,
                      self.upload, self.refused_note, self.remove_note, self.read_json, self.leave_by_exit,
                      self.leave_by_dd, self.stream, self.log_in_again)

    def forget(self):
        """Resets the state to that of a new session."""
        self.locale, self.cart, self.flash = "en", 0, None

    def run(self, requests):
        """Runs steps until this number of further requests has got a response."""
        end = self.sent + requests
        if not self.turn:
            self.log_in()
        while self.sent < end:
            self.turn += 1
            self.random.choice(self.steps)()

    # ---- steps --------------------------------------------------------------------------------------

    def home(self):
        page = self.get("/")
        _, cart, notes = WORDS[self.locale]
        self.must(page, cart.format(self.cart))
        self.must(page, notes.format(len(self.notes)))
        self.must_greet(page)

    def choose_language(self):
        locale = self.random.choice(list(WORDS))
        self.ask("GET", f"/language/{locale}", status=302)
        self.locale = locale
        self.home()

    def add_to_cart(self):
        if self.cart >= CART_MAX:
            return self.empty_cart()
        target, count = f"/products/{self.random.randint(1, 4)}", self.random.randint(1, 9)
        token = self.token(self.get(target), "cart[_token]")
        self.flash = None
        self.post(target, {"cart[count]": count, "cart[add]": "", "cart[_token]": token}, status=303)
        self.cart += count
        self.flash = f"{count} "
        return self.must_greet(self.get("/cart"))

    def empty_cart(self):
        self.post("/cart/empty", {}, status=303)
        self.cart = 0

    def write_note(self):
        if len(self.notes) >= NOTES_MAX:
            return self.remove_note()
        return self.keep_note({}, f"{self.name} thinks of {self.turn}")

    def upload(self):
        if len(self.notes) >= NOTES_MAX:
            return self.remove_note()
        return self.keep_note({"note[picture]": f"{self.name}-{self.turn}.png"}, f"{self.name} shows {self.turn}")

    def keep_note(self, files, text):
        token = self.token(self.get("/notes"), "note[_token]")
        fields = {"note[product]": 1, "note[text]": text, "note[send]": "", "note[_token]": token}
        self.flash = None
        self.post("/notes", fields, files, status=303)
        self.notes.append(text)
        self.flash = text
        page = self.get("/notes")
        self.must_greet(page)
        for kept in (*self.notes, *files.values()):
            self.must(page, kept)

    def refused_note(self):
        token = self.token(self.get("/notes"), "note[_token]")
        self.flash = None
        fields = {"note[product]": 1, "note[text]": "x", "note[send]": "", "note[_token]": token}
        self.must(self.post("/notes", fields, status=422), 'value="x"')

    def remove_note(self):
        page = self.get("/notes")
        self.flash = None
        if not self.notes:
            return
        form = self.between(page, '<form class="note"', "</form>")
        target, token = self.between(form, 'action="', '"'), self.token(form, "token")
        self.post(target, {"token": token}, status=303)
        self.flash = self.notes.pop(0)
        self.must_greet(self.get("/notes"))

    def read_json(self):
        page = self.get("/notes.json")
        self.must(page, f'"author":"{self.name}"')
        if page.count('"number"') != len(self.notes):
            raise Fault(f"{self.name}: not {len(self.notes)} notes: {page}")

    def leave_by_exit(self):
        self.must(self.get(f"/ways/exit?name={self.name}"), f"left by {self.name}")

    def leave_by_dd(self):
        self.must(self.ask("GET", f"/ways/dd?{self.name}={self.turn}", status=500), self.name)

    def stream(self):
        self.must(self.get("/ways/stream/9"), "".join(f"{i} for {self.name}\n" for i in range(9, 0, -1)))

    def log_in_again(self):
        self.ask("GET", "/logout", status=302)
        self.forget()
        self.log_in()

    def log_in(self):
        token = self.token(self.get("/login"), "_csrf_token")
        self.post("/login", {"_username": self.name, "_password": PASSWORD, "_csrf_token": token}, status=302)

    # ---- HTTP and checks ----------------------------------------------------------------------------

    def get(self, target):
        return self.ask("GET", target)

    def post(self, target, fields, files=None, status=200):
        if not files:
            body, kind = urllib.parse.urlencode(fields).encode(), "application/x-www-form-urlencoded"
        else:
            body, kind = multipart(fields, files), f"multipart/form-data; boundary={BOUNDARY}"
        return self.ask("POST", target, body, {"Content-Type": kind}, status)

    def ask(self, method, target, body=None, headers=None, status=200):
        """The body's text, after the checks that apply to every response."""
        jar = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, TIMEOUT_SECONDS)
        self.connection.request(method, target, body, {**(headers or {}), **({"Cookie": jar} if jar else {})})
        answer = self.connection.getresponse()
        text = answer.read().decode(errors="replace")
        self.sent += 1
        for cookie in answer.headers.get_all("Set-Cookie", ()):
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies[name] = value
        others = set(NAMES.findall(f"{answer.headers}\n{text}")) - {self.name}
        if others:
            raise Fault(f"{self.name} sees {sorted(others)} in {method} {target}")
        if answer.status != status:
            raise Fault(f"{self.name}: {method} {target}: {answer.status} instead of {status}: {text[:200]}")
        return text

    def must(self, page, text):
        if text not in page:
            raise Fault(f"{self.name}: no `{text}` in: {page[:2000]}")

    def must_greet(self, page):
        """Name and language must be the shopper's, and the flash messages the pending ones."""
        self.must(page, WORDS[self.locale][0].format(self.name))
        self.must(page, f'<html lang="{self.locale}">')
        flashes = re.findall(r'<p class="flash">(.*?)</p>', page)
        if len(flashes) != (self.flash is not None) or (flashes and self.flash not in flashes[0]):
            raise Fault(f"{self.name}: flashes {flashes} instead of {self.flash!r}")
        self.flash = None

    def token(self, page, field):
        return self.between(self.between(page, f' name="{field}"', ">"), 'value="', '"')

    def between(self, page, before, after):
        self.must(page, before)
        return page.split(before, 1)[1].split(after, 1)[0]


def multipart(fields, files):
    """A form with PNGs of these names."""
    parts = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
             for name, value in fields.items()]
    parts += [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\n'
              "Content-Type: image/png\r\n\r\n".encode() + PNG + b"\r\n" for name, file in files.items()]
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()
