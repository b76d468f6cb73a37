//! Walks of the examples, on one copy for Samovar and one for nginx + php-fpm.

use samovar_testkit::copy::copy_of;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::visitor::Visitor;
use samovar_testkit::walk::compare;
use samovar_testkit::{Oracle, Server, eventually, workspace};

/// Compares an example on both servers. `target` is the path that Samovar serves: the example's
/// document root or a front controller.
pub(crate) fn is_the_oracles(example: &str, target: &str, walk: fn(&mut Visitor), rules: &[Rule]) {
    let folder = workspace().join("examples").join(example);
    let (our_copy, their_copy) = (copy_of(&folder), copy_of(&folder));
    let ours = Server::at(our_copy.path().join(target)).relinked().workers(2).start();
    if target.ends_with("resident.php") {
        eventually("a resident worker", || {
            let workers = ours.status()["workers"].clone();
            (workers[0]["model"] == "resident").then_some(())
        });
    }
    let theirs = Oracle::start(&their_copy.path().join("public"));
    let steps = compare(
        walk,
        rules,
        &Side { address: ours.address(), folder: our_copy.path(), own: ours.folder() },
        &Side { address: theirs.address(), folder: their_copy.path(), own: theirs.folder() },
    );
    println!("{example} {target}: {steps} pages equal");
    ours.stop();
}
