//! The IDE stubs say what the server has.

use samovar_testkit::{Server, workspace};

#[test]
fn the_stubs_describe_what_is_loaded() {
    let server = Server::at(workspace().join("php/stubs/check.php")).start();
    let answer = server.get("/");
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok"), "{}", server.log());
}
