"""What git knows of the tree: changes, the commit and its time, the tag of a release."""

import subprocess

from .refusal import Refusal


def git(tree, *arguments):
    done = subprocess.run(["git", *arguments], cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode:
        raise Refusal(f"git {arguments[0]}: {done.stderr.strip()}", "run it in a clone of the repository")
    return done.stdout.rstrip()


def require_clean(tree):
    changed = git(tree, "status", "--porcelain", "--untracked-files=all").splitlines()
    if changed:
        shown = "\n".join(f"  {line}" for line in changed[:10])
        raise Refusal(f"the tree has {len(changed)} changes that are not committed:\n{shown}",
                      "commit them, or git stash")


def commit(tree):
    return git(tree, "rev-parse", "HEAD")


def time(tree):
    """Seconds of the commit's time."""
    return int(git(tree, "log", "-1", "--format=%ct"))


def tagged(tree, tag):
    """The commit of a tag, or None."""
    if not git(tree, "tag", "--list", tag):
        return None
    return git(tree, "rev-parse", f"{tag}^{{commit}}")
