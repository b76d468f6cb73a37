//! Configuration blocks of docs/start, for use in a server.

/// The `[[console]]` block of a page of docs/start.
pub(crate) fn console_workers(page: &str) -> String {
    let file = samovar_testkit::workspace().join(format!("docs/start/{page}.md"));
    let page = std::fs::read_to_string(file).expect("a page of docs/start");
    let (_, rest) = page.split_once("[[console]]").expect("the page has console workers");
    let (table, _) = rest.split_once("```").expect("a fenced block");
    format!("[[console]]{table}")
}
