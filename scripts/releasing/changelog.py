"""The changelog: its form, its newest section, and the cut of a release from `## Unreleased`."""

import dataclasses
import datetime
import re

from .refusal import Refusal
from .version import Version

UNRELEASED = "## Unreleased"
ENTRY_LINES_MAX = 2
COLUMNS_MAX = 100


@dataclasses.dataclass
class Section:
    title: str
    line: int
    lines: list

    def text(self):
        return "\n".join(self.lines).strip("\n")

    def version(self):
        """The version of a title such as `## 0.1.0 - 2026-12-01`."""
        return Version(self.title.removeprefix("## ").partition(" - ")[0])

    def date(self):
        try:
            return datetime.date.fromisoformat(self.title.partition(" - ")[2])
        except ValueError:
            raise Refusal(f"CHANGELOG.md:{self.line}: `{self.title}` has no date",
                          "write the title as `## 0.1.0 - 2026-12-01`") from None


def sections(text):
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("## "):
            found.append(Section(line, number, []))
        elif found:
            found[-1].lines.append(line)
    return found


def released(text):
    """The sections of releases, the newest first."""
    return [section for section in sections(text) if section.title != UNRELEASED]


def newest(text):
    """The newest released version, or None."""
    return next((section.version() for section in released(text)), None)


def of_version(text, version):
    """The section of a release, or None."""
    return next((section for section in released(text) if section.version() == version), None)


def cut(text, version, date):
    """The text with a section of this version in place of `## Unreleased`, and with a new empty one."""
    last = newest(text)
    if last is not None and not last < version:
        raise Refusal(f"version {version} is not newer than {last}, the newest section of CHANGELOG.md",
                      "choose a newer version")
    open_sections = [section for section in sections(text) if section.title == UNRELEASED]
    if len(open_sections) != 1:
        raise Refusal(f"CHANGELOG.md has {len(open_sections)} sections `{UNRELEASED}`", "it needs exactly one")
    if not open_sections[0].text():
        raise Refusal(f"the section `{UNRELEASED}` of CHANGELOG.md is empty",
                      "describe there what users notice of the release")
    title = f"\n{UNRELEASED}\n"
    return text.replace(title, f"{title}\n## {version} - {date.isoformat()}\n", 1)


def problems(text):
    """Lines about each deviation from the form."""
    wrong = []
    if not text.startswith("# Changelog\n"):
        wrong.append("CHANGELOG.md:1: the title is not `# Changelog`")
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > COLUMNS_MAX:
            wrong.append(f"CHANGELOG.md:{number}: {len(line)} columns, at most {COLUMNS_MAX}")
    all_sections = sections(text)
    if [section.title for section in all_sections[:1]] != [UNRELEASED]:
        wrong.append(f"CHANGELOG.md: the first section is not `{UNRELEASED}`")
    try:
        wrong += order(released(text))
    except Refusal as refusal:
        wrong.append(str(refusal))
    for section in all_sections:
        wrong += form(section)
    return wrong


def order(released_sections):
    """Problems of titles. A title without version or date is an error."""
    wrong = []
    for newer, older in zip(released_sections, released_sections[1:]):
        if not older.version() < newer.version():
            wrong.append(f"CHANGELOG.md:{older.line}: {older.version()} is below {newer.version()}")
        if older.date() > newer.date():
            wrong.append(f"CHANGELOG.md:{older.line}: {older.date()} is below {newer.date()}")
    for section in released_sections:
        section.version()
        section.date()
        if not section.text():
            wrong.append(f"CHANGELOG.md:{section.line}: the section is empty")
    return wrong


def form(section):
    """Topics, each with entries of one or two lines, none of them twice."""
    wrong, topics, entries = [], {}, set()
    topic, entry = None, []

    def finish_entry():
        if not entry:
            return
        whole = re.sub(r"\W+", " ", " ".join(entry)).casefold().strip()
        if whole in entries:
            wrong.append(f"CHANGELOG.md:{started}: the entry occurs twice")
        entries.add(whole)
        if len(entry) > ENTRY_LINES_MAX:
            wrong.append(f"CHANGELOG.md:{started}: {len(entry)} lines, at most {ENTRY_LINES_MAX}")
        entry.clear()

    started = 0
    for number, line in enumerate(section.lines, start=section.line + 1):
        if line.startswith("### "):
            finish_entry()
            topic = line
            if topic in topics:
                wrong.append(f"CHANGELOG.md:{number}: `{topic}` occurs twice in `{section.title}`")
            topics[topic] = 0
        elif line.startswith("- "):
            finish_entry()
            entry.append(line[2:])
            started = number
            if topic is None:
                wrong.append(f"CHANGELOG.md:{number}: the entry is in no topic")
            else:
                topics[topic] += 1
        elif line.startswith("  ") and entry:
            entry.append(line.strip())
        elif line and topic is not None:
            wrong.append(f"CHANGELOG.md:{number}: the line belongs to no entry")
        elif not line:
            finish_entry()
    finish_entry()
    wrong += [f"CHANGELOG.md: `{name}` of `{section.title}` is empty" for name, count in topics.items() if not count]
    return wrong
