//! PHP within Apache (`mod_php`): a library loaded by a web server.

use super::{STUCK, check, stuck, with_a_stuck_request};
use samovar_testkit::{eventually, php};
use std::fmt::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use tempfile::TempDir;

/// An Apache process, killed on drop.
struct Apache(Child);

impl Drop for Apache {
    fn drop(&mut self) {
        samovar_testkit::end(&mut self.0);
    }
}

#[test]
fn stack_of_stuck_apache_is_shown() {
    let folder = TempDir::with_prefix("samovar-apache-").expect("a temporary folder");
    let root = folder.path().join("root");
    std::fs::create_dir(&root).expect("our own folder");
    for path in [folder.path(), &root] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("our own");
    }
    let script = root.join("index.php");
    std::fs::write(&script, STUCK).expect("our own folder");
    let address = samovar_testkit::port();
    let (shown, documents) = (folder.path().display(), root.display());
    let mut text = format!(
        "ServerName x\nListen {address}\nPidFile {shown}/apache.pid\nErrorLog {shown}/apache.log\n\
         Mutex file:{shown}\nUser nobody\nGroup nogroup\nStartServers 2\n"
    );
    for module in ["mpm_prefork", "authz_core"] {
        let _ =
            writeln!(text, "LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so");
    }
    let library = format!("/usr/lib/apache2/modules/libphp{}.so", php::version());
    let _ = writeln!(
        text,
        "LoadModule php_module {library}\nDocumentRoot {documents}\n\
         <Directory {documents}>\nRequire all granted\n</Directory>\n\
         <FilesMatch \"\\.php$\">\nSetHandler application/x-httpd-php\n</FilesMatch>"
    );
    let config = folder.path().join("apache.conf");
    std::fs::write(&config, text).expect("our own file");
    let mut command = Command::new("/usr/sbin/apache2");
    // At its end Apache kills its process group, which must not be the test's.
    command.process_group(0);
    command.arg("-DFOREGROUND").arg("-f").arg(&config);
    let mut apache = Apache(command.spawn().expect("apache2-bin is installed"));
    eventually("Apache's port", || {
        let ended = apache.0.try_wait().expect("our child");
        assert!(ended.is_none(), "{ended:?}\nhint: scripts/setup.sh test installs mod_php");
        TcpStream::connect(address).ok()
    });
    with_a_stuck_request(address, folder.path(), |lock| {
        let stack = stuck(&["--all"], lock);
        check(&stack, &script);
        assert_eq!(stack["request"], "GET /index.php", "without its query, which is the visitor's");
    });
}
