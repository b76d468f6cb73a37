//! Wraps generated Markdown pages at the width of the repository's documents.

/// Maximum columns of a line of a document.
const COLUMNS_MAX: usize = 100;

/// Wraps paragraphs and list items; headings, tables and fenced blocks stay as they are.
pub fn wrapped(text: &str) -> String {
    let (mut page, mut is_code) = (String::new(), false);
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let is_fixed = is_code || line.starts_with(['|', '#', '<']);
        if is_fixed || line.chars().count() <= COLUMNS_MAX {
            page.push_str(line);
        } else {
            let rest = line.trim_start();
            let blanks = line.len() - rest.len() + if rest.starts_with("- ") { 2 } else { 0 };
            break_line(line, &" ".repeat(blanks), &mut page);
        }
        page.push('\n');
    }
    page
}

fn break_line(line: &str, indent: &str, page: &mut String) {
    let mut columns = 0;
    for word in line.split(' ') {
        let width = word.chars().count();
        if columns > 0 && columns + 1 + width > COLUMNS_MAX {
            page.push('\n');
            page.push_str(indent);
            columns = indent.len();
        } else if columns > 0 {
            page.push(' ');
            columns += 1;
        }
        page.push_str(word);
        columns += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_items_are_wrapped_and_tables_are_not() {
        let word = "word ".repeat(30);
        let text = format!("{}\n- {}\n| {word} |\n```\n{word}\n```\n", word.trim(), word.trim());
        let page = wrapped(&text);
        let widths: Vec<_> = page.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [99, 49, 96, 56, 154, 3, 150, 3]);
        assert!(page.contains("\n  word"), "{page}");
    }
}
