//! Deploys: of good code, with a version that later responses must have, and of broken code, which
//! is refused.

use crate::chaos::stage::{Model, Stage};
use samovar_testkit::order::Order;
use std::path::Path;
use std::sync::atomic::Ordering;

const MEANWHILE: u64 = 20;

/// Typical faults of deploys.
const BROKEN: &[&str] = &[
    "<?php this is no PHP",
    "<?php throw new \\Exception('no database');",
    "<?php exit(1);",
    "<?php require __DIR__ . '/not-uploaded-yet.php';",
];

/// Replaces a file atomically, as a deploy should.
fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).expect("our own folder");
    std::fs::rename(beside, path).expect("our own folder");
}

pub(crate) fn reload(stage: &Stage, order: &mut Order) {
    let shared = &stage.load.shared;
    let version = shared.version_max.fetch_add(1, Ordering::SeqCst) + 1;
    let text = format!(
        "<?php\n\ndeclare(strict_types=1);\n\nnamespace Chaos;\n\nconst VERSION = {version};\n"
    );
    replace(&stage.app.path().join("version.php"), &text);
    if order.next(4) == 0 {
        stage.did(&format!("SIGUSR2 for version {version}"));
        let generation = || stage.status().map(|status| status["generation"].clone());
        let before = generation();
        stage.server.ask_to_reload();
        stage.progress(MEANWHILE, "while a signal reloads");
        // Another kind may kill the booting processes.
        if !stage.mixed {
            stage.wait_for("what a signal has asked for serves", || {
                generation().is_some_and(|now| Some(now) != before)
            });
        }
        stage.settled();
        return;
    }
    stage.did(&format!("reload to version {version}"));
    match stage.reload() {
        // Opcache checks a script's file every two seconds, so whole scripts may be older.
        Ok(()) if stage.model != Model::Script => {
            shared.version_min.store(version, Ordering::SeqCst);
        }
        Ok(()) => {}
        // Another kind may kill the booting processes.
        Err(why) if stage.mixed => stage.did(&format!("the reload was refused: {}", why.trim())),
        Err(why) => stage.find(format!("a reload of good code: {}", why.trim())),
    }
    stage.progress(MEANWHILE, "after a reload");
}

/// A reload of broken code fails, and the running application continues.
pub(crate) fn reload_broken(stage: &Stage, order: &mut Order) {
    // Booting processes must be ready before the code is broken.
    if !stage.settled() {
        return;
    }
    let index = stage.app.path().join("public/index.php");
    let good = std::fs::read_to_string(&index).expect("our own folder");
    let broken = BROKEN[order.next(BROKEN.len())];
    stage.did(&format!("reload of `{broken}`"));
    replace(&index, broken);
    if stage.reload().is_ok() {
        stage.find(format!("a reload of broken code was accepted: `{broken}`"));
    }
    stage.progress(MEANWHILE, "after broken code was refused");
    replace(&index, &good);
    if let Err(why) = stage.reload() {
        stage.find(format!("a reload of good code after broken code: {}", why.trim()));
    }
    stage.progress(MEANWHILE, "after the code was mended");
}
