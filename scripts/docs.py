#!/usr/bin/python3
"""Builds the documentation as a site with search, from docs/ with mdBook:

    scripts/docs.py check             every page is in docs/SUMMARY.md, once
    scripts/docs.py build [FOLDER]    writes the site, by default to target/docs/site

Links that lead out of docs/ go to DOCS_REPOSITORY, such as https://host/samovar/blob/main, or else
to a copy of the file in the site. MDBOOK names the program.
"""

import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

TREE = pathlib.Path(__file__).resolve().parent.parent
DOCS = TREE / "docs"
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")


def check():
    listed = re.findall(r"\]\(([^)]+)\)", (DOCS / "SUMMARY.md").read_text("utf-8"))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"SUMMARY.md"}
    wrong = [f"{page} is not in docs/SUMMARY.md" for page in sorted(pages - set(listed))]
    wrong += [f"docs/SUMMARY.md: {page} does not exist" for page in sorted(set(listed) - pages)]
    wrong += [f"docs/SUMMARY.md: {page} occurs twice" for page in listed if listed.count(page) > 1]
    fail_with(wrong)


def build(site):
    check()
    source = TREE / "target" / "docs" / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(DOCS, source / "docs")
    shutil.move(source / "docs" / "book.toml", source / "book.toml")
    for page in (source / "docs").rglob("*.md"):
        place = page.relative_to(source / "docs")
        page.write_text(rewritten(page.read_text("utf-8"), place, source / "docs"), "utf-8")
    shutil.rmtree(site, ignore_errors=True)
    program = os.environ.get("MDBOOK", "mdbook")
    if shutil.which(program) is None:
        sys.exit(f"docs: cannot find {program}\nhint: cargo install --locked mdbook")
    subprocess.run([program, "build", source, "--dest-dir", site], check=True)
    fail_with(dead_links(site))
    print(f"{site}/index.html")


def rewritten(text, place, target):
    """The text of a page whose links out of docs/ lead to the repository or to copies."""
    parts = text.split("```")
    for number in range(0, len(parts), 2):
        parts[number] = LINK.sub(lambda found: outside(found, place, target), parts[number])
    return "```".join(parts)


def outside(found, place, target):
    whole = pathlib.Path(os.path.normpath(DOCS / place.parent / found[1]))
    if whole.is_relative_to(DOCS):
        # mdBook makes index.html of README.md.
        return found[0].replace("README.md", "index.md")
    path, anchor = whole.relative_to(TREE), found[2] or ""
    repository = os.environ.get("DOCS_REPOSITORY", "").rstrip("/")
    if repository:
        return f"]({repository}/{path}{anchor})"
    # As text: mdBook drops other Markdown files, and rewrites links with .md. A folder becomes the
    # list of its files.
    copy = target / "files" / (str(path).removesuffix(".md") + ".txt")
    copy.parent.mkdir(parents=True, exist_ok=True)
    if whole.is_dir():
        copy.write_text("".join(f"{entry.name}\n" for entry in sorted(whole.iterdir())), "utf-8")
    else:
        shutil.copyfile(whole, copy)
    return f"]({os.path.relpath(copy, (target / place).parent)})"


class Page(html.parser.HTMLParser):
    """Links and anchors of a page of the site."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def dead_links(site):
    pages = {
        path: Page(path.read_text("utf-8"))
        for path in site.rglob("*.html")
        if path.name not in ("404.html", "toc.html")
    }
    dead = []
    for path, page in pages.items():
        for link in page.links:
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc:
                continue
            aim = path
            if address.path:
                aim = (path.parent / urllib.parse.unquote(address.path)).resolve()
            if not aim.is_file():
                dead.append(f"{path.relative_to(site)}: {link}: no such file")
            elif address.fragment and aim in pages and path.name != "print.html":
                if urllib.parse.unquote(address.fragment) not in pages[aim].anchors:
                    dead.append(f"{path.relative_to(site)}: {link}: no such heading")
    return dead


def fail_with(lines):
    if lines:
        sys.exit("docs: " + "\n".join(lines))


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        check()
    elif sys.argv[1:2] == ["build"] and len(sys.argv) <= 3:
        build(pathlib.Path((sys.argv[2:] or [TREE / "target/docs/site"])[0]).resolve())
    else:
        sys.exit(__doc__)
