//! stage: the document root of both servers. It holds tests/apps/conformance and files that the
//! repository cannot hold.

use samovar_testkit::workspace;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Modification time of all files: 1 January 2020.
const MODIFIED: u64 = 1_577_836_800;

/// Files created here, with unusual names, types and sizes.
const FILES: &[(&str, &str)] = &[
    ("statics/style.css", "body { color: red }\n"),
    ("statics/script.js", "let a = 1;\n"),
    ("statics/page.html", "<!DOCTYPE html><title>page</title>\n"),
    ("statics/page.htm", "<!DOCTYPE html>\n"),
    ("statics/notes.txt", "0123456789abcdefghijklmnopqrstuvwxyz\n"),
    ("statics/data.json", "{}\n"),
    ("statics/data.xml", "<a/>\n"),
    ("statics/picture.svg", "<svg/>\n"),
    ("statics/picture.png", "no true picture"),
    ("statics/picture.jpg", "no true picture"),
    ("statics/icon.ico", "no true icon"),
    ("statics/font.woff2", "no true font"),
    ("statics/doc.pdf", "%PDF-"),
    ("statics/archive.zip", "PK"),
    ("statics/film.mp4", "no true film"),
    ("statics/UPPER.TXT", "upper\n"),
    ("statics/none", "no extension\n"),
    ("statics/empty.txt", ""),
    ("statics/with space.txt", "space\n"),
    ("statics/ünï.txt", "utf-8\n"),
    ("statics/plus+and&.txt", "plus\n"),
    ("statics/percent%41.txt", "percent\n"),
    ("statics/a.b.c.txt", "dots\n"),
    ("statics/script.php.txt", "<?php echo 'source';\n"),
    ("html/index.html", "<p>index</p>\n"),
    (".env", "SECRET=1\n"),
    (".git/config", "secret\n"),
    ("statics/.hidden", "secret\n"),
    (".well-known/token.txt", "public\n"),
    ("code/lib.inc", "<?php echo 'source';\n"),
    ("code/page.phtml", "<?php echo 'source';\n"),
    ("code/old.php~", "<?php echo 'source';\n"),
    ("code/old.php.bak", "<?php echo 'source';\n"),
    ("code/page.phps", "<?php echo 'source';\n"),
    ("code/upper.PHP", "<?php echo 'source';\n"),
    ("with space/index.php", "<?php require dirname(__DIR__) . '/dump.php';\n"),
    ("with space/a script.php", "<?php require dirname(__DIR__) . '/dump.php';\n"),
    ("ünï.php", "<?php require __DIR__ . '/dump.php';\n"),
    ("plus+.php", "<?php require __DIR__ . '/dump.php';\n"),
    ("percent%41.php", "<?php require __DIR__ . '/dump.php';\n"),
    ("dir.php/index.php", "<?php require dirname(__DIR__) . '/dump.php';\n"),
    ("dir.php/inner.php", "<?php require dirname(__DIR__) . '/dump.php';\n"),
    ("dir.php/text.txt", "in a folder with a script's name\n"),
    ("twice.php.php", "<?php require __DIR__ . '/dump.php';\n"),
    ("empty.php", ""),
    ("text.php", "no tag at all\n"),
    ("short.php", "<?= 'short tag' ?>\n"),
    ("shebang.php", "#!/usr/bin/env php\nafter it\n"),
    ("bom.php", "\u{feff}<?php header('X-A: 1'); echo 'after a byte order mark';\n"),
    ("blank.php", "\n\n<?php header('X-A: 1'); echo 'after blank lines';\n"),
    ("halt.php", "<?php echo 'a'; __halt_compiler(); never seen\n"),
];

/// Copies the scripts and creates the other files. The folder holds `conformance/public` and the
/// two front controllers.
pub(crate) fn stage() -> TempDir {
    let folder = TempDir::with_prefix("samovar-conformance-").expect("a temporary folder");
    for app in ["conformance", "conformance_resident", "conformance_checkpoint"] {
        let from = workspace().join("tests/apps").join(app);
        copy(&from, &folder.path().join(app)).expect("scripts to copy");
    }
    let public = public(folder.path());
    for (name, text) in FILES {
        write(&public.join(name), text.as_bytes());
    }
    let big: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    write(&public.join("statics/big.bin"), &big);
    fs::create_dir(public.join("empty")).expect("an empty folder");
    date(folder.path()).expect("files to date");
    folder
}

/// The document root of the script model.
pub(crate) fn public(folder: &Path) -> PathBuf {
    folder.join("conformance/public")
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
    fs::write(path, content).expect("a file");
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let below = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &below)?;
        } else {
            fs::copy(entry.path(), below)?;
        }
    }
    Ok(())
}

fn date(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            date(&path)?;
        } else {
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED);
            fs::File::options().append(true).open(path)?.set_modified(modified)?;
        }
    }
    Ok(())
}
