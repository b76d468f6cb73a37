//! Configuration blocks of docs/start, for use in a server.

/// The `[[console]]` block of a page of docs/start.
pub(crate) fn console_workers(page: &str) -> String {
    let file = samovar_testkit::workspace().join(format!("docs/start/{page}.md"));
    let page = std::fs::read_to_string(file).expect("a page of docs/start");
    let (_, rest) = page.split_once("[[console]]").expect("the page has console workers");
    let (table, _) = rest.split_once("```").expect("a fenced block");
    format!("[[console]]{table}")
}

/// Returns the fenced block of a page of docs/guide that contains this line.
pub(crate) fn block(page: &str, line: &str) -> String {
    let file = samovar_testkit::workspace().join(format!("docs/guide/{page}.md"));
    let page = std::fs::read_to_string(file).expect("a page of docs/guide");
    let blocks = page.split("\n```").skip(1).step_by(2);
    let mut contents = blocks.filter_map(|block| Some(block.split_once('\n')?.1));
    let found = contents.find(|block| block.lines().any(|one| one == line));
    format!("{}\n", found.unwrap_or_else(|| panic!("no block has the line `{line}`")))
}
