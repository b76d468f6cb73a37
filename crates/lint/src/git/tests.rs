use super::*;

struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Repository {
        let repository = Repository(tempfile::tempdir().expect("a folder"));
        repository.git(&["init", "-q", "-b", "main"]);
        repository.git(&["config", "user.email", "test@example.org"]);
        repository.git(&["config", "user.name", "Test"]);
        repository
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().expect("a folder")
    }

    fn git(&self, words: &[&str]) {
        let mut command = git(self.0.path());
        let done = output(command.args(words));
        done.unwrap_or_else(|error| panic!("{words:?}: {error}"));
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

fn names(sources: &[Source]) -> Vec<&str> {
    sources.iter().filter_map(|source| source.path.to_str()).collect()
}

#[test]
fn changed_files_are_those_that_the_last_commit_does_not_have() {
    let repository = Repository::new();
    let folder = repository.path();
    let changed = |since| names_of(changed_files(&folder, since));
    assert_eq!(changed(None), Vec::<String>::new(), "before the first commit");
    for file in ["same.php", "edited.php", "removed.php", "text.md"] {
        repository.write(file, "<?php\n");
    }
    repository.git(&["add", "-A"]);
    assert_eq!(changed(None), ["edited.php", "removed.php", "same.php"]);
    repository.git(&["commit", "-qm", "first"]);
    assert_eq!(changed(None), Vec::<String>::new());
    repository.write("edited.php", "<?php echo 1;\n");
    repository.write("new line\n.php", "<?php\n");
    repository.write("bin/run", "#!/usr/bin/env php\n");
    repository.write("text.md", "changed\n");
    std::fs::remove_file(folder.join("removed.php")).expect("a file");
    std::os::unix::fs::symlink("same.php", folder.join("link.php")).expect("a link");
    let expected = ["bin/run", "edited.php", "new line\n.php"];
    assert_eq!(changed(None), expected);
    repository.git(&["checkout", "-q", "-b", "topic"]);
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-qm", "second"]);
    assert_eq!(changed(None), Vec::<String>::new());
    assert_eq!(changed(Some("main")), expected, "of a branch");
    for wrong in ["missing", "--output=x"] {
        let error = changed_files(&folder, Some(wrong)).expect_err("no commit").to_string();
        assert!(error.starts_with("Git refuses: "), "{error}");
    }
    assert!(!folder.join("x").exists());
}

fn names_of(found: Result<Vec<Source>>) -> Vec<String> {
    names(&found.expect("files")).into_iter().map(str::to_owned).collect()
}

#[test]
fn files_of_the_next_commit_have_its_texts() {
    let repository = Repository::new();
    let folder = repository.path();
    repository.write("a.php", "<?php // staged");
    repository.write("bin/run", "#!/usr/bin/php\n");
    repository.write("bin/other", "#!/bin/sh\n");
    repository.write("removed.php", "<?php\n");
    std::os::unix::fs::symlink("a.php", folder.join("link.php")).expect("a link");
    repository.git(&["add", "-A"]);
    repository.write("a.php", "<?php // later");
    std::fs::remove_file(folder.join("removed.php")).expect("a file");
    let staged = staged_files(&folder).expect("files");
    assert_eq!(names(&staged), ["a.php", "bin/run", "removed.php"]);
    assert_eq!(staged[0].origin, Origin::Text(b"<?php // staged".to_vec()));
    let below = staged_files(&folder.join("bin")).expect("files");
    assert_eq!(below[0].path, folder.join("a.php"), "outside the working directory");
    assert_eq!(names(&below)[1], "run");
    repository.git(&["commit", "-qm", "first"]);
    assert_eq!(staged_files(&folder).expect("files"), []);
}

#[test]
fn hook_is_installed_and_removed_and_others_are_kept() {
    let repository = Repository::new();
    let folder = repository.path();
    let path = folder.join(".git/hooks/pre-commit");
    assert_eq!(remove_hook(&folder).expect("no hook"), Hook::Missing(path.clone()));
    for _ in 0..2 {
        let program = Path::new("/opt/it's/samovar");
        let done = install_hook(&folder, program).expect("a hook");
        assert_eq!(done, Hook::Installed(path.clone()));
    }
    let text = std::fs::read_to_string(&path).expect("a hook");
    assert!(text.ends_with("\n'/opt/it'\\''s/samovar' lint --staged || exit 1\n"), "{text}");
    let mode = path.metadata().expect("a hook").permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(remove_hook(&folder).expect("a hook"), Hook::Removed(path.clone()));
    let added = format!("{text}npm test\n");
    for other in ["#!/bin/sh\nmake test\n", &added] {
        std::fs::write(&path, other).expect("a hook");
        for refused in [install_hook(&folder, Path::new("/samovar")), remove_hook(&folder)] {
            let error = refused.expect_err("lines of others").to_string();
            assert!(error.contains("lint --staged"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&path).expect("a hook"), other);
    }
    repository.git(&["config", "core.hooksPath", "shared/hooks"]);
    let done = install_hook(&folder, Path::new("/samovar")).expect("a hook");
    assert_eq!(done, Hook::Installed(folder.join("shared/hooks/pre-commit")));
}

#[test]
fn folder_outside_a_repository_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = changed_files(folder.path(), None).expect_err("no repository").to_string();
    assert!(error.contains("not a git repository") && error.contains("hint: "), "{error}");
}
