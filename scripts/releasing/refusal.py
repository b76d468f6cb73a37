"""The error of all parts: a message, and a hint that names an action."""


class Refusal(Exception):
    def __init__(self, message, hint):
        super().__init__(message)
        self.hint = hint
