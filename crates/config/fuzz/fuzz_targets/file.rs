//! `cargo +nightly fuzz run file` in crates/config: any file content results in settings, or in
//! problems with hints.
#![no_main]

use samovar_config::Sources;
use std::cell::OnceCell;
use tempfile::TempDir;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| tempfile::tempdir().expect("a folder")).path();
        let file = folder.join("samovar.toml");
        std::fs::write(&file, bytes).expect("our own file");
        if let Err(problems) = Sources::new(folder).config(&file).resolve() {
            let said = problems.to_string();
            assert!(!said.trim().is_empty());
            assert!(!said.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{said:?}");
        }
    });
});
