//! Checks the language of the repository: retired words and constructions, sentence and paragraph length, line width,
//! headings, names.
//!
//! `extract` splits a file into pieces of text by area, `markdown` does so for documents, `rules` judges the words of a
//! piece, `shape` judges lengths, `names` judges files and identifiers, `commits` judges commit subjects, `count`
//! compares the number of findings per area with the number that is allowed.

pub mod commits;
pub mod count;
pub mod extract;
pub mod markdown;
pub mod names;
pub mod rules;
pub mod shape;

use std::fmt;

/// The part of the repository that a text belongs to. Findings are counted per area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// Words of Markdown documents.
    Docs,
    /// Words of Rust doc comments.
    DocComments,
    /// Words of all other comments.
    Comments,
    /// Words of string literals outside of tests: messages, help, logs.
    Strings,
    /// Words of test names.
    TestNames,
    /// Retired names of files, types and functions.
    Names,
    /// Sentences of documents that are too long.
    Sentences,
    /// Paragraphs of documents that are too long.
    Paragraphs,
    /// Lines of Markdown, Rust and C that are too wide.
    Lines,
    /// Headings that are not in sentence case.
    Headings,
    /// Commit subjects.
    Commits,
}

impl Area {
    /// All areas, in the order of the report.
    pub const ALL: [Area; 11] = [
        Area::Docs,
        Area::DocComments,
        Area::Comments,
        Area::Strings,
        Area::TestNames,
        Area::Names,
        Area::Sentences,
        Area::Paragraphs,
        Area::Lines,
        Area::Headings,
        Area::Commits,
    ];

    /// The area's name in `allowed.tsv`.
    pub fn name(self) -> &'static str {
        match self {
            Area::Docs => "docs",
            Area::DocComments => "doc-comments",
            Area::Comments => "comments",
            Area::Strings => "strings",
            Area::TestNames => "test-names",
            Area::Names => "names",
            Area::Sentences => "sentences",
            Area::Paragraphs => "paragraphs",
            Area::Lines => "lines",
            Area::Headings => "headings",
            Area::Commits => "commits",
        }
    }
}

/// A piece of text of one area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The area it belongs to.
    pub area: Area,
    /// The line of the file where it begins, from 1.
    pub line: usize,
    /// The text, with line breaks as in the file.
    pub text: String,
}

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file's path below the workspace.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The area it counts for.
    pub area: Area,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { file, line, area, message } = self;
        write!(out, "{file}:{line}: {}: {message}", area.name())
    }
}
