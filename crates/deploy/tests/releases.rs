//! Releases on disk, with a server that only counts its reloads.

use samovar_deploy::{Error, Name, Plan, Release, Server, Site, Source, Verdict, deploy, rollback};
use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

/// A server whose reloads have these results, then succeed.
struct Booting<'a> {
    link: PathBuf,
    results: RefCell<Vec<Result<&'a str, Error>>>,
    seen: RefCell<Vec<PathBuf>>,
    label: RefCell<String>,
}

impl Server for Booting<'_> {
    fn check(&self) -> Result<String, Error> {
        Ok(self.label.borrow().clone())
    }

    fn reload(&self, _: Option<&Name>) -> Result<String, Error> {
        self.seen.borrow_mut().push(fs::read_link(&self.link).expect("a link"));
        let next = self.results.borrow_mut().pop();
        next.unwrap_or(Ok("booted")).map(str::to_owned)
    }
}

struct Shop {
    folder: TempDir,
    site: Site,
}

impl Shop {
    fn new() -> Shop {
        let folder = TempDir::with_prefix("samovar-deploy-").expect("a folder");
        let at = folder.path().join("shop");
        fs::create_dir(&at).expect("our own folder");
        let site = Site::new(at, "current").expect("a good name");
        Shop { folder, site }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.site.folder().join(path)
    }

    /// Creates a folder with a page that says `text`.
    fn source(&self, text: &str) -> PathBuf {
        let source = self.folder.path().join("build");
        let _ = fs::remove_dir_all(&source);
        fs::create_dir_all(source.join("public")).expect("our own folder");
        fs::write(source.join("public/index.php"), text).expect("our own folder");
        source
    }

    fn plan(&self, name: &str) -> Plan {
        Plan {
            source: Source::Folder(self.source(name)),
            name: name.parse().expect("a good name"),
            keep: 3,
            share: Vec::new(),
            exclude: Vec::new(),
            strip: 0,
            before: Vec::new(),
            after: Vec::new(),
            command_limit: Duration::from_mins(2),
        }
    }

    fn server(&self) -> Booting<'_> {
        let (results, seen, label) = Default::default();
        Booting { link: self.site.link(), results, seen, label }
    }

    fn deploy(&self, plan: &Plan, server: &Booting<'_>) -> Result<(), String> {
        deploy(&self.site, plan, Some(server), &mut |_| {}).map_err(|error| error.to_string())
    }

    fn serving(&self) -> String {
        fs::read_to_string(self.at("current/public/index.php")).expect("a release")
    }

    fn names(&self) -> Vec<String> {
        let names = self.site.list().expect("a state").into_iter().map(|release| release.name);
        names.collect()
    }
}

#[test]
fn releases_are_switched_kept_and_rolled_back() {
    let shop = Shop::new();
    let server = shop.server();
    for name in ["one", "two", "three", "four"] {
        shop.deploy(&shop.plan(name), &server).expect("it boots");
        assert_eq!(shop.serving(), name);
    }
    assert_eq!(shop.names(), ["four", "three", "two"], "three are kept");
    assert!(!shop.at("releases/one").exists());
    let why = shop.deploy(&shop.plan("two"), &server).expect_err("it is there");
    assert!(why.contains("exists already") && why.contains("samovar rollback two"), "{why}");
    let back = |to: Option<&str>| {
        let to = to.map(|name| name.parse::<Name>().expect("a good name"));
        let name = rollback(&shop.site, to.as_ref(), Some(&server), &mut |_| {});
        name.map(|name| name.as_str().to_owned()).map_err(|error| error.to_string())
    };
    assert_eq!(back(None), Ok("three".to_owned()));
    assert_eq!(back(None), Ok("two".to_owned()), "not forth again");
    let why = back(None).expect_err("none is older");
    assert!(why.contains("older than `two`"), "{why}");
    assert_eq!(back(Some("four")), Ok("four".to_owned()));
    assert!(back(Some("one")).expect_err("removed").contains("no release `one`"));
    assert_eq!(shop.serving(), "four");
    let list = shop.site.list().expect("a state");
    let is = |release: &Release| release.is_current && release.verdict == Verdict::Served;
    assert!(is(&list[0]) && !list[1].is_current, "{list:?}");
}

#[test]
fn failed_release_restores_the_link_and_is_removed_later() {
    let shop = Shop::new();
    let server = shop.server();
    server.results.borrow_mut().push(Err(Error::new("no boot\nhint: look")));
    let why = shop.deploy(&shop.plan("first"), &server).expect_err("no boot");
    assert_eq!(why, "no boot\nhint: look");
    assert!(shop.at("current").symlink_metadata().is_err(), "there was no link");
    shop.deploy(&shop.plan("one"), &server).expect("it boots");
    assert_eq!(shop.names(), ["one"], "the failed one is gone");
    server.results.borrow_mut().push(Err(Error::new("no boot")));
    shop.deploy(&shop.plan("two"), &server).expect_err("no boot");
    assert_eq!(shop.serving(), "one");
    assert_eq!(shop.site.list().expect("a state")[0].verdict, Verdict::Failed);
    assert_eq!(server.seen.borrow().last(), Some(&PathBuf::from("releases/two")));
    // One of several pools took over: it has to boot the old release again.
    server.seen.borrow_mut().clear();
    server.results.borrow_mut().push(Err(Error::new("one pool failed").partial(true)));
    shop.deploy(&shop.plan("three"), &server).expect_err("no boot");
    let seen = ["releases/three", "releases/one"].map(PathBuf::from);
    assert_eq!(*server.seen.borrow(), seen);
    let mut failing = shop.plan("four");
    failing.before = vec!["touch public/made".to_owned(), "exit 3".to_owned()];
    let why = shop.deploy(&failing, &server).expect_err("the command fails");
    assert!(why.starts_with("the command `exit 3` ended with exit status 3"), "{why}");
    assert_eq!(server.seen.borrow().len(), 2, "nothing was switched");
    failing.before = vec!["sleep 1000 & wait".to_owned()];
    failing.name = "five".parse().expect("a good name");
    failing.command_limit = Duration::from_millis(50);
    let why = shop.deploy(&failing, &server).expect_err("it hangs");
    assert!(why.contains("was killed after 0 s, its limit"), "{why}");
    assert_eq!(shop.serving(), "one");
}

#[test]
fn commands_run_in_the_release() {
    let shop = Shop::new();
    let server = shop.server();
    shop.deploy(&shop.plan("one"), &server).expect("it boots");
    let mut plan = shop.plan("two");
    plan.before = vec!["echo $SAMOVAR_PREVIOUS_RELEASE-$SAMOVAR_RELEASE >made".to_owned()];
    plan.after = vec!["readlink ../../current >after".to_owned(), "false".to_owned()];
    let why = shop.deploy(&plan, &server).expect_err("the last command fails");
    assert!(why.starts_with("the release `two` serves, but the command `false`"), "{why}");
    let read = |path: &str| fs::read_to_string(shop.at(path)).expect("a file");
    assert_eq!(read("releases/two/made"), "one-two\n");
    assert_eq!(read("releases/two/after"), "releases/two\n");
}

#[test]
fn shared_paths_outlive_releases() {
    let shop = Shop::new();
    let server = shop.server();
    let with_log = |name: &str| {
        let mut plan = shop.plan(name);
        fs::create_dir_all(shop.folder.path().join("build/var/log")).expect("our own folder");
        fs::write(shop.folder.path().join("build/.env"), name).expect("our own folder");
        plan.share = ["var/log", ".env", "uploads/images"].map(PathBuf::from).to_vec();
        plan
    };
    shop.deploy(&with_log("one"), &server).expect("it boots");
    fs::write(shop.at("current/var/log/app.log"), "line").expect("a shared folder");
    shop.deploy(&with_log("two"), &server).expect("it boots");
    assert_eq!(fs::read_to_string(shop.at("current/var/log/app.log")).expect("kept"), "line");
    assert_eq!(fs::read_to_string(shop.at("current/.env")).expect("kept"), "one");
    assert!(shop.at("shared/uploads/images").is_dir());
    for wrong in ["/etc", "../x", "", "a/../../b"] {
        let mut plan = shop.plan("three");
        plan.share = vec![PathBuf::from(wrong)];
        let why = shop.deploy(&plan, &server).expect_err(wrong);
        assert!(why.contains("is not a path within a release"), "{why}");
    }
    let mut plan = shop.plan("three");
    symlink(shop.folder.path(), shop.folder.path().join("build/out")).expect("our own folder");
    plan.share = vec![PathBuf::from("out/made")];
    let why = shop.deploy(&plan, &server).expect_err("it leads out");
    assert!(why.contains("leads `out/made` out of it"), "{why}");
    assert!(shop.folder.path().join("made").symlink_metadata().is_err());
}

#[test]
fn folder_is_copied_without_history_and_excluded_paths() {
    let shop = Shop::new();
    let server = shop.server();
    let mut plan = shop.plan("one");
    let source = shop.folder.path().join("build");
    for folder in [".git", "vendor/a/.git", "node_modules/b", "bin"] {
        fs::create_dir_all(source.join(folder)).expect("our own folder");
        fs::write(source.join(folder).join("file"), folder).expect("our own folder");
    }
    fs::set_permissions(source.join("bin/file"), fs::Permissions::from_mode(0o4755))
        .expect("our own file");
    symlink("bin/file", source.join("link")).expect("our own folder");
    plan.exclude = vec![PathBuf::from("node_modules")];
    shop.deploy(&plan, &server).expect("it boots");
    let is_there = |path: &str| shop.at("current").join(path).exists();
    assert!(is_there("vendor/a") && is_there("link") && is_there("bin/file"));
    assert!(!is_there(".git") && !is_there("vendor/a/.git") && !is_there("node_modules"));
    let mode = |path: &Path| path.metadata().expect("a file").permissions().mode() & 0o7777;
    assert_eq!(mode(&shop.at("current/bin/file")), 0o755, "no user changes by a page");
    let time = |path: PathBuf| path.metadata().expect("a file").modified().expect("a time");
    assert_eq!(time(shop.at("current/bin/file")), time(source.join("bin/file")));
    let mut plan = shop.plan("two");
    plan.source = Source::Folder(shop.folder.path().canonicalize().expect("a folder"));
    let why = shop.deploy(&plan, &server).expect_err("endless");
    assert!(why.contains("contains the releases themselves"), "{why}");
    assert!(
        fs::read_dir(shop.at("releases"))
            .expect("a folder")
            .flatten()
            .all(|entry| { !entry.file_name().to_string_lossy().starts_with(".partial") })
    );
}

/// An entry of an archive: its raw name, kind, link target and content.
type Raw<'a> = (&'a str, EntryType, &'a str, &'a str);

fn archive(entries: &[Raw<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, link, content) in entries {
        let mut header = Header::new_gnu();
        // The library's own setters refuse hostile names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o6755);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content.as_bytes()).expect("memory");
    }
    builder.into_inner().expect("memory")
}

#[test]
fn archives_are_unpacked_in_each_compression() {
    use EntryType::{Directory, Link, Regular, Symlink};
    let raw = archive(&[
        ("shop-1/", Directory, "", ""),
        ("shop-1/public/index.php", Regular, "", "two"),
        ("shop-1/public/index.php", Regular, "", "one"),
        ("shop-1/./link", Symlink, "/etc/hostname", ""),
        ("shop-1/hard", Link, "shop-1/public/index.php", ""),
        ("shop-1/left/out", Regular, "", "x"),
    ]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&raw).expect("memory");
    let zstd = zstd::encode_all(&raw[..], 1).expect("memory");
    for (n, bytes) in [raw, gzip.finish().expect("memory"), zstd].iter().enumerate() {
        let shop = Shop::new();
        let file = shop.folder.path().join("shop.archive");
        fs::write(&file, bytes).expect("our own folder");
        let mut plan = shop.plan("one");
        (plan.source, plan.strip) = (Source::Archive(file), 1);
        plan.exclude = vec![PathBuf::from("left/out")];
        shop.deploy(&plan, &shop.server()).unwrap_or_else(|why| panic!("{n}: {why}"));
        assert_eq!(shop.serving(), "one", "the last entry of a name counts");
        assert_eq!(fs::read_to_string(shop.at("current/hard")).expect("a file"), "one");
        assert!(shop.at("current/link").symlink_metadata().is_ok());
        assert!(!shop.at("current/left/out").exists());
        let mode = shop.at("current/hard").metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        fs::write(shop.folder.path().join("shop.archive"), &bytes[..bytes.len() / 3])
            .expect("our own folder");
        plan.name = "two".parse().expect("a good name");
        let why = shop.deploy(&plan, &shop.server()).expect_err("it is cut");
        assert!(why.contains("archive"), "{why}");
        assert!(!shop.at("releases/two").exists());
    }
}

#[test]
fn archives_without_their_end_are_refused() {
    let shop = Shop::new();
    let file = shop.folder.path().join("shop.tar");
    let whole = archive(&[
        ("index.php", EntryType::Regular, "", "one"),
        ("zeros", EntryType::Regular, "", &"\0".repeat(2_048)),
        ("last", EntryType::Regular, "", "two"),
    ]);
    let deploy = |name: &str, bytes: &[u8]| {
        fs::write(&file, bytes).expect("our own folder");
        let mut plan = shop.plan(name);
        plan.source = Source::Archive(file.clone());
        shop.deploy(&plan, &shop.server())
    };
    let end = whole.len() - 1_024;
    for length in (512..=end).step_by(512) {
        let why = deploy("cut", &whole[..length]).expect_err("no end");
        assert!(why.contains("cannot read the archive"), "{length}: {why}");
    }
    // Blocks of tapes are longer.
    deploy("padded", &[&whole[..], &vec![0; 1 << 20]].concat()).expect("it is whole");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&whole).expect("memory");
    let gzip = gzip.finish().expect("memory");
    for at in gzip.len() - 8..gzip.len() {
        let mut wrong = gzip.clone();
        wrong[at] ^= 1;
        let why = deploy("checksum", &wrong).expect_err("its checksum is wrong");
        assert!(why.contains("cannot read the archive"), "{at}: {why}");
    }
    let long = "a".repeat(8 << 20);
    let bomb = archive(&[
        ("././@LongLink", EntryType::GNULongName, "", &long),
        ("short", EntryType::Regular, "", "x"),
    ]);
    let why = deploy("bomb", &bomb).expect_err("too long");
    assert!(why.contains("more than 1 MiB") && why.len() < 500, "{}", why.len());
}

#[test]
fn hostile_archives_write_nothing_outside() {
    use EntryType::{Block, Char, Fifo, Link, Regular, Symlink};
    let cases: &[(&[Raw<'_>], &str)] = &[
        (&[("../out", Regular, "", "x")], "outside of the release"),
        (&[("/tmp/out", Regular, "", "x")], "outside of the release"),
        (&[("a/../../out", Regular, "", "x")], "outside of the release"),
        (&[("a", Symlink, "..", ""), ("a/out", Regular, "", "x")], "not a folder"),
        (&[("a", Symlink, "../..", ""), ("a/b/out", Regular, "", "x")], "not a folder"),
        (&[("a", Link, "../../out", "")], "outside of the release"),
        (&[("b", Symlink, "..", ""), ("a", Link, "b/out", "")], "not a folder"),
        (&[("b", Symlink, "/etc/passwd", ""), ("a", Link, "b", "")], "is not in it"),
        (&[("a", Fifo, "", "")], "neither a file"),
        (&[("a", Char, "", "")], "neither a file"),
        (&[("a", Block, "", "")], "neither a file"),
        (&[("\u{1b}[31m/../x", Regular, "", "")], "`\\u{1b}[31m/../x`"),
        (&[("a", Regular, "", ""), ("a/b", Regular, "", "x")], "not a folder"),
        (&[], "no files"),
    ];
    for (entries, expected) in cases {
        let shop = Shop::new();
        fs::write(shop.at("out"), "kept").expect("our own folder");
        let file = shop.folder.path().join("shop.tar");
        fs::write(&file, archive(entries)).expect("our own folder");
        let mut plan = shop.plan("one");
        plan.source = Source::Archive(file);
        let why = shop.deploy(&plan, &shop.server()).expect_err(expected);
        assert!(why.contains(expected), "{why}");
        assert_eq!(fs::read_to_string(shop.at("out")).expect("our own file"), "kept");
        assert!(shop.site.list().expect("a state").is_empty());
    }
    let shop = Shop::new();
    for bytes in [&b"PK\x03\x04 zip"[..], b"", b"no archive at all, only text", &[0xff; 4_096]] {
        let file = shop.folder.path().join("wrong");
        fs::write(&file, bytes).expect("our own folder");
        let mut plan = shop.plan("one");
        plan.source = Source::Archive(file);
        let why = shop.deploy(&plan, &shop.server()).expect_err("no archive");
        assert!(why.contains("archive") && why.contains("hint: "), "{why}");
    }
}

#[test]
fn shared_paths_that_overlap_or_are_links_are_refused() {
    let shop = Shop::new();
    let server = shop.server();
    let mut plan = shop.plan("one");
    plan.share = ["var/log", "var", "var/log"].map(PathBuf::from).to_vec();
    let why = shop.deploy(&plan, &server).expect_err("one within another");
    assert!(why.contains("`var/log` is within `var`"), "{why}");
    symlink(shop.at("shared/up"), shop.folder.path().join("build/up")).expect("our own folder");
    plan.share = vec![PathBuf::from("up"), PathBuf::from("up")];
    let why = shop.deploy(&plan, &server).expect_err("it would name itself");
    assert!(why.contains("`up` is a link in the release"), "{why}");
}

#[test]
fn release_with_unknown_result_stays_and_counts_as_served() {
    let shop = Shop::new();
    let server = shop.server();
    shop.deploy(&shop.plan("one"), &server).expect("it boots");
    server.results.borrow_mut().push(Err(Error::new("no answer").unknown(true)));
    let why = shop.deploy(&shop.plan("two"), &server).expect_err("no answer");
    assert!(why.contains("may serve or not"), "{why}");
    assert_eq!(shop.serving(), "two");
    // The server has gone on with `two`: it is the release to go back to.
    "two".clone_into(&mut server.label.borrow_mut());
    shop.deploy(&shop.plan("three"), &server).expect("it boots");
    let back = rollback(&shop.site, None, Some(&server), &mut |_| {}).expect("there is one");
    assert_eq!(back.as_str(), "two");
    // It has not, in this case: it serves the one before, and that one stays.
    "two".clone_into(&mut server.label.borrow_mut());
    server.results.borrow_mut().push(Err(Error::new("no answer").unknown(true)));
    shop.deploy(&shop.plan("four"), &server).expect_err("no answer");
    shop.deploy(&shop.plan("five"), &server).expect("it boots");
    let state = shop.site.list().expect("a state");
    let four = state.iter().find(|release| release.name == "four");
    assert!(four.is_some_and(|four| four.verdict == Verdict::Unpacked), "{state:?}");
}

#[test]
fn rollback_goes_to_the_release_that_served_before() {
    let shop = Shop::new();
    let server = shop.server();
    let back = || rollback(&shop.site, None, Some(&server), &mut |_| {}).map(|_| ());
    for name in ["one", "bad"] {
        shop.deploy(&shop.plan(name), &server).expect("it boots");
    }
    back().expect("there is one");
    shop.deploy(&shop.plan("bad-too"), &server).expect("it boots");
    back().expect("there is one");
    assert_eq!(shop.serving(), "one");
}

#[test]
fn files_that_cannot_be_removed_stop_nothing() {
    let shop = Shop::new();
    let server = shop.server();
    shop.deploy(&shop.plan("one"), &server).expect("it boots");
    // A mount in a folder has this effect even for root; here a file in its place.
    fs::write(shop.at("releases/.removed-zero-1"), "").expect("our own folder");
    shop.deploy(&shop.plan("two"), &server).expect("it boots");
    assert_eq!(shop.serving(), "two");
}

#[test]
fn a_killed_deploy_and_a_second_one_are_noticed() {
    let shop = Shop::new();
    let server = shop.server();
    shop.deploy(&shop.plan("one"), &server).expect("it boots");
    // A kill while a release was unpacked, and one while a release was removed.
    for left in [".partial-two", ".removed-zero"] {
        fs::create_dir_all(shop.at("releases").join(left).join("a")).expect("our own folder");
    }
    fs::create_dir(shop.at("releases/.partial-two/closed")).expect("our own folder");
    shop.deploy(&shop.plan("two"), &server).expect("it boots");
    assert!(!shop.at("releases/.removed-zero").exists());
    let mut waits = shop.plan("three");
    let fifo = shop.folder.path().join("go");
    waits.before = vec![format!("cat {}", fifo.display())];
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("coreutils").success());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| shop.deploy(&waits, &shop.server()));
        let mut pipe = fs::File::options().write(true).open(&fifo).expect("it is read");
        let why = shop.deploy(&shop.plan("four"), &server).expect_err("one at a time");
        assert!(why.contains("is in progress"), "{why}");
        pipe.write_all(b"\n").expect("it is read");
        drop(pipe);
        first.join().expect("no panic").expect("it boots");
    });
    assert_eq!(shop.serving(), "three");
}

#[test]
fn wrong_folders_names_and_states_are_explained() {
    for wrong in ["", ".hidden", "-x", "_x", "a/b", "a b", "ä", &"x".repeat(65)] {
        assert!(wrong.parse::<Name>().is_err(), "{wrong}");
    }
    for wrong in ["", "a/b", ".", "..", "releases", "shared", "x/", ".state"] {
        assert!(Site::new(PathBuf::from("/srv/shop"), wrong).is_err(), "{wrong}");
    }
    let shop = Shop::new();
    let server = shop.server();
    fs::create_dir(shop.at("current")).expect("our own folder");
    let why = shop.deploy(&shop.plan("one"), &server).expect_err("a folder in its place");
    assert!(why.contains("is not a symbolic link") && why.contains("--link"), "{why}");
    fs::remove_dir(shop.at("current")).expect("our own folder");
    // A link of another tool is put back after a failure.
    symlink("elsewhere", shop.at("current")).expect("our own folder");
    server.results.borrow_mut().push(Err(Error::new("no boot")));
    shop.deploy(&shop.plan("one"), &server).expect_err("no boot");
    assert_eq!(fs::read_link(shop.at("current")).expect("a link"), Path::new("elsewhere"));
    let why = rollback(&shop.site, None, Some(&server), &mut |_| {}).expect_err("no release");
    assert!(why.to_string().contains("does not name a release"), "{why}");
    fs::write(shop.at("releases/.state.json"), "{").expect("our own file");
    let why = shop.deploy(&shop.plan("two"), &server).expect_err("a torn state");
    assert!(why.contains("cannot read the state") && why.contains("hint: move"), "{why}");
}
