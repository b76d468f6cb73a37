//! A MariaDB as Debian sets one up: privileges are checked, and root comes in by the socket.

use crate::background::Background;
use crate::place::Place;
use samovar_testkit::eventually;
use std::os::unix::net::UnixStream;
use std::process::Command;

/// Starts one at the place's `/run/mysqld/mysqld.sock`; it ends when dropped.
pub(crate) fn start(place: &Place) -> Background {
    let file = |path: &str| place.path(path).display().to_string();
    let data = format!("--datadir={}", file("/var/lib/mysql"));
    let user = user();
    std::fs::create_dir_all(file("/var/lib/mysql")).expect("our own folder");
    let installed = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .args(["--innodb-log-file-size=8M", "--innodb-use-native-aio=0", &data, &user])
        .output()
        .expect("mariadb-install-db runs: `make setup-test` installs it");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stdout));
    let socket = file("/run/mysqld/mysqld.sock");
    // Who types `sudo mariadb` is root there.
    let client = format!("[client]\nuser=root\nsocket={socket}\n");
    std::fs::write(place.path("/home/.my.cnf"), client).expect("our own file");
    let command = format!(
        "exec /usr/sbin/mariadbd --no-defaults {user} {data} --socket={socket} --pid-file={} \
         --skip-networking --skip-log-bin --innodb-flush-log-at-trx-commit=0 \
         --innodb-buffer-pool-size=32M --innodb-log-file-size=8M --innodb-use-native-aio=0",
        file("/tmp/mysqld.pid")
    );
    let mut server = Background::start(place, &place.path("/tmp"), &command, DATABASE);
    eventually("the database's socket", || {
        let ended = server.ended();
        assert!(ended.is_none(), "mariadbd ended:\n{}", server.log());
        UnixStream::connect(&socket).ok()
    });
    server
}

/// The number of its log: servers of a page count from 0.
const DATABASE: usize = 1000;

fn user() -> String {
    let id = Command::new("id").arg("-un").output().expect("id runs");
    format!("--user={}", String::from_utf8_lossy(&id.stdout).trim_end())
}
