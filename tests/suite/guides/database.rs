//! The database server of a page's machine.

use crate::guides::place::Place;
use samovar_testkit::MariaDb;

/// A MariaDB as Debian sets one up, at the place's `/run/mysqld/mysqld.sock`; it ends when dropped.
pub(crate) fn start(place: &Place) -> MariaDb {
    let socket = place.path("/run/mysqld/mysqld.sock");
    // Who types `sudo mariadb` is root there.
    let client = format!("[client]\nuser=root\nsocket={}\n", socket.display());
    std::fs::write(place.path("/home/.my.cnf"), client).expect("our own file");
    MariaDb::set_up(&place.path("/var/lib/mysql"), socket)
}
