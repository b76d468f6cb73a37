//! The database server of a page's machine.

use crate::guides::place::GuideMachine;
use samovar_testkit::MariaDb;

/// Starts a MariaDB set up as by Debian, at the place's `/run/mysqld/mysqld.sock`. It ends on drop.
pub(crate) fn start(place: &GuideMachine) -> MariaDb {
    let socket = place.path("/run/mysqld/mysqld.sock");
    // `sudo mariadb` connects as root.
    let client = format!("[client]\nuser=root\nsocket={}\n", socket.display());
    std::fs::write(place.path("/home/.my.cnf"), client).expect("our own file");
    MariaDb::set_up(&place.path("/var/lib/mysql"), socket)
}
