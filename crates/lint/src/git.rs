//! Files of a Git repository: those that have changed, and those of the next commit. And its hook.

use crate::source::{FILES_MAX, Origin, Source, from_text};
use anyhow::{Context, Result, bail};
use samovar_channel::LINT_FILE_BYTES_MAX;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum size of all files of a commit, bytes. They are held in memory.
const STAGED_BYTES_MAX: u64 = 512 << 20;
/// Modes of plain and of executable files.
const FILE_MODES: [&str; 2] = ["100644", "100755"];
/// Name of the hook that runs before a commit.
const HOOK: &str = "pre-commit";
/// The end of its last line, after the program.
const COMMAND: &str = " lint --staged || exit 1";
/// The first line of the hook.
const SHELL: &str = "#!/bin/sh";
/// The second one.
const MARK: &str = "# Installed by `samovar lint hook`; `samovar lint hook --remove` removes it.";

/// Returns the PHP files that differ from the last commit, or from the commit at which this branch
/// left `since`, and those that Git does not know yet.
///
/// # Errors
/// There is no Git, no repository, or no such commit.
pub fn changed_files(folder: &Path, since: Option<&str>) -> Result<Vec<Source>> {
    let top = top(folder)?;
    let mut command = git(&top);
    command.args(["diff", "--name-only", "-z", "--no-relative", "--no-renames"]);
    command.args(["--diff-filter=ACMT", "--ignore-submodules=all"]);
    match since {
        Some(since) => command.args(["--merge-base", "--end-of-options", since]),
        None => command.args(["--end-of-options", &head(&top)?]),
    };
    let changed = output(command.arg("--"))?;
    let mut command = git(&top);
    command.args(["ls-files", "--others", "--exclude-standard", "-z"]);
    let unknown = output(&mut command)?;
    let paths = changed.split(|byte| *byte == 0).chain(unknown.split(|byte| *byte == 0));
    let mut all = Vec::new();
    for path in paths.filter(|path| !path.is_empty()) {
        let path = top.join(OsStr::from_bytes(path));
        // Git follows no link either.
        let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file && samovar_migrate::is_php(&path, None) {
            all.push(Source { path: shown(&path, folder), origin: Origin::File(folder.into()) });
        }
    }
    bounded(all.len())?;
    all.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(all)
}

/// Returns the PHP files that the next commit changes, with their texts in that commit.
///
/// # Errors
/// There is no Git or no repository, or the files are too large.
pub fn staged_files(folder: &Path) -> Result<Vec<Source>> {
    let top = top(folder)?;
    let mut command = git(&top);
    command.args(["diff", "--cached", "--raw", "--no-abbrev", "-z", "--no-relative"]);
    command.args(["--no-renames", "--diff-filter=ACMT", "--ignore-submodules=all"]);
    let raw = output(command.args(["--end-of-options", &head(&top)?, "--"]))?;
    let mut fields = raw.split(|byte| *byte == 0);
    let mut blobs = Vec::new();
    // `:100644 100755 <old> <new> M`, then the path.
    while let (Some(facts), Some(path)) = (fields.next(), fields.next()) {
        let facts = std::str::from_utf8(facts).unwrap_or_default();
        let [_, mode, _, new, _] = facts.split(' ').collect::<Vec<_>>()[..] else { continue };
        if FILE_MODES.contains(&mode) {
            blobs.push((new.to_owned(), top.join(OsStr::from_bytes(path))));
        }
    }
    bounded(blobs.len())?;
    read_blobs(&top, folder, blobs)
}

fn read_blobs(top: &Path, folder: &Path, blobs: Vec<(String, PathBuf)>) -> Result<Vec<Source>> {
    let mut command = git(top);
    command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot run `git`")?;
    let (mut input, output) = (child.stdin.take(), child.stdout.take());
    let mut output = BufReader::new(output.context("no output of `git`")?);
    let (mut all, mut bytes) = (Vec::new(), 0);
    for (blob, path) in blobs {
        let input = input.as_mut().context("no input of `git`")?;
        writeln!(input, "{blob}").and_then(|()| input.flush()).context("`git cat-file` ended")?;
        let mut line = String::new();
        output.read_line(&mut line).context("cannot read from `git cat-file`")?;
        let length = line.trim_end().rsplit(' ').next().and_then(|word| word.parse::<u64>().ok());
        let length = length.with_context(|| format!("`git cat-file` has no text of {line}"))?;
        let mut text = Vec::new();
        let mut whole = output.by_ref().take(length + 1);
        // One byte more than the maximum: the compiler reports that the file is too large.
        whole.by_ref().take((LINT_FILE_BYTES_MAX + 1).min(length)).read_to_end(&mut text)?;
        std::io::copy(&mut whole, &mut std::io::sink())?;
        if samovar_migrate::is_php(&path, Some(&text)) {
            bytes += text.len() as u64;
            if bytes > STAGED_BYTES_MAX {
                bail!(
                    "the files of the commit have more than {} MiB\nhint: run `samovar lint \
                     --changed`, or commit in parts",
                    STAGED_BYTES_MAX >> 20
                );
            }
            all.push(from_text(shown(&path, folder), text));
        }
    }
    drop(input);
    child.wait()?;
    Ok(all)
}

fn bounded(files: usize) -> Result<()> {
    if files > FILES_MAX {
        bail!(
            "{files} files have changed; at most {FILES_MAX} can be compiled\nhint: pass folders"
        );
    }
    Ok(())
}

/// A path below the working directory is shown without it.
fn shown(path: &Path, folder: &Path) -> PathBuf {
    path.strip_prefix(folder).unwrap_or(path).to_owned()
}

/// The last commit; before the first one, the empty tree.
fn head(top: &Path) -> Result<String> {
    let mut command = git(top);
    command.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
    if let Ok(head) = output(&mut command) {
        return Ok(line(&head));
    }
    // With the hash that this repository uses.
    Ok(line(&output(git(top).args(["hash-object", "-t", "tree", "/dev/null"]))?))
}

fn top(folder: &Path) -> Result<PathBuf> {
    let top = output(git(folder).args(["rev-parse", "--show-toplevel"]))?;
    let top = top.strip_suffix(b"\n").unwrap_or(&top);
    if top.is_empty() {
        bail!("`{}` is in a bare repository\nhint: run it in a work tree", folder.display());
    }
    Ok(PathBuf::from(OsStr::from_bytes(top)))
}

fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => bail!("cannot run `git`: {error}\nhint: install git, or pass files"),
    };
    if !output.status.success() {
        let says = line(&output.stderr);
        bail!(
            "Git refuses: {}\nhint: run it in a repository, with an existing commit, or pass files",
            says.strip_prefix("fatal: ").unwrap_or(&says)
        );
    }
    Ok(output.stdout)
}

/// The hook of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// This file was written.
    Installed(PathBuf),
    /// This file was removed.
    Removed(PathBuf),
    /// There is none.
    Missing(PathBuf),
}

/// Writes the hook that compiles the files of a commit with `program`.
///
/// # Errors
/// The repository has another hook, or the file cannot be written.
pub fn install_hook(folder: &Path, program: &Path) -> Result<Hook> {
    let path = hook(folder)?;
    let quoted = program.to_string_lossy().replace('\'', r"'\''");
    let command = format!("'{quoted}'{COMMAND}");
    if is_foreign(&path)? {
        bail!(
            "the hook `{}` exists, with lines of others\nhint: add this line to it: \
             {command}",
            path.display()
        );
    }
    let text = format!("{SHELL}\n{MARK}\n{command}\n");
    let new = path.with_file_name(format!("{HOOK}.{}.new", std::process::id()));
    let write = || {
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        std::fs::write(&new, text)?;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755))?;
        std::fs::rename(&new, &path)
    };
    write().with_context(|| format!("cannot write the hook `{}`", path.display()))?;
    Ok(Hook::Installed(path))
}

/// Removes that hook.
///
/// # Errors
/// The repository has another hook, or the file cannot be removed.
pub fn remove_hook(folder: &Path) -> Result<Hook> {
    let path = hook(folder)?;
    if path.symlink_metadata().is_err() {
        return Ok(Hook::Missing(path));
    }
    if is_foreign(&path)? {
        bail!(
            "the hook `{}` has lines of others\nhint: remove its line with `lint --staged`",
            path.display()
        );
    }
    std::fs::remove_file(&path)
        .with_context(|| format!("cannot remove the hook `{}`", path.display()))?;
    Ok(Hook::Removed(path))
}

fn hook(folder: &Path) -> Result<PathBuf> {
    let path = output(git(folder).args(["rev-parse", "--git-path", &format!("hooks/{HOOK}")]))?;
    let path = path.strip_suffix(b"\n").unwrap_or(&path);
    Ok(folder.join(OsStr::from_bytes(path)))
}

/// Whether there is a hook that is not, line by line, the one of [`install_hook`].
fn is_foreign(path: &Path) -> Result<bool> {
    match std::fs::read(path) {
        Ok(text) => {
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<&str> = text.lines().collect();
            let is_own = |command: &str| command.starts_with('\'') && command.ends_with(COMMAND);
            Ok(!matches!(lines[..], [SHELL, MARK, command] if is_own(command)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(path.symlink_metadata().is_ok())
        }
        Err(error) => {
            Err(error).with_context(|| format!("cannot read the hook `{}`", path.display()))
        }
    }
}

#[cfg(test)]
mod tests;
