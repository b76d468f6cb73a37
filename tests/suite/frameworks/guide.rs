//! What the guide says, as a server's configuration.

/// The `[[console]]` of a page of the guide.
pub(crate) fn console_workers(page: &str) -> String {
    let file = samovar_testkit::workspace().join(format!("docs/guide/{page}.md"));
    let page = std::fs::read_to_string(file).expect("a page of the guide");
    let (_, rest) = page.split_once("[[console]]").expect("the page has console workers");
    let (table, _) = rest.split_once("```").expect("a fenced block");
    format!("[[console]]{table}")
}
