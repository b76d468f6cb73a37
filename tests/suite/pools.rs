//! `[[pool]]`: several applications in one server, each with its own workers, queue and limits.

mod hanging;
mod life;
mod limits;
mod misbehaving;
mod routing;
mod seen;
mod together;
mod versions;

use samovar_testkit::{Server, Start, binary};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Prints the application's name, the target, and the memory limit.
const SAYS: &str = "echo NAME, ' ', $_SERVER['REQUEST_URI'], ' ', ini_get('memory_limit');";

/// Actions selected by the query: waits for a file, loops, allocates memory, dies, forks, sends a
/// long response, floods the log.
const TRICKS: &str = "
    if (isset($_GET['fork'])) { for ($i = 0; $i < 30; $i++) {
        if (pcntl_fork() === 0) { usleep(300000); posix_kill(getmypid(), SIGKILL); } } }
    if (isset($_GET['big'])) { for ($i = 0; $i < 300; $i++) { echo str_repeat('x', 100000); } }
    if (isset($_GET['log'])) { for ($i = 0; $i < 3000; $i++) { error_log('something is wrong'); } }
    while (isset($_GET['until']) && !file_exists($_GET['until'])) { usleep(5000); }
    if (isset($_GET['loop'])) { while (true); }
    if (isset($_GET['eat'])) { ini_set('memory_limit', -1); $all = [];
        while (true) { $all[] = str_repeat('x', 1 << 20); } }
    if (isset($_GET['die'])) { posix_kill(getmypid(), SIGKILL); }
";

/// Folders of applications.
struct Sites {
    folder: TempDir,
}

impl Sites {
    /// `shop` runs whole scripts, `api` runs below a checkpoint, `blog` is resident.
    fn new() -> Sites {
        let sites = Sites { folder: TempDir::with_prefix("samovar-pools-").expect("a folder") };
        let says = |name: &str| SAYS.replace("NAME", &format!("'{name}'"));
        let [shop, api, blog] = ["shop", "api", "blog"].map(says);
        sites
            .write("shop/index.php", &format!("<?php {TRICKS} {shop}"))
            .write("api/index.php", &format!("<?php Samovar\\checkpoint(); {TRICKS} {api}"))
            .write(
                "blog/index.php",
                &format!("<?php Samovar\\serve(function () {{ {TRICKS} {blog} }});"),
            )
    }

    fn write(self, name: &str, text: &str) -> Sites {
        self.rewrite(name, text);
        self
    }

    fn rewrite(&self, name: &str, text: &str) {
        let file = self.path(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("our own folder");
        std::fs::write(file, text).expect("our own file");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A server of the shop with these pools; `FOLDER` is the folder of all applications.
    fn server(&self, pools: &str) -> Start {
        let pools = pools.replace("FOLDER", &self.folder.path().display().to_string());
        Server::at(self.path("shop")).workers(2).config(&pools)
    }
}

/// `api` by path, with one worker.
const API: &str = "
[[pool]]
name = 'api'
match = '/api/*'
root = 'FOLDER/api'
workers = 1

[pool.php]
memory_limit = '77M'
";

/// `blog` by host.
const BLOG: &str = "
[[pool]]
name = 'blog'
host = ['blog.example', '[::1]']
root = 'FOLDER/blog'
workers = 1
";

/// Output of `samovar ARGS`, and its exit code.
fn samovar(args: &[&str], folder: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    let output = command.args(args).current_dir(folder).output().expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// The status of one pool.
fn pool(server: &Server, name: &str) -> Value {
    let status = server.status();
    let mut pools = status["pools"].as_array().expect("pools").iter();
    pools.find(|pool| pool["name"] == name).expect("the pool").clone()
}

/// Process IDs of a pool's workers.
fn workers(server: &Server, name: &str) -> Vec<i32> {
    let status = server.status();
    let all = status["workers"].as_array().expect("workers").iter();
    let own = all.filter(|worker| worker["pool"] == name);
    own.filter_map(|worker| i32::try_from(worker["pid"].as_i64()?).ok()).collect()
}
