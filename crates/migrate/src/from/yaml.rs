//! YAML with the line of each value. Aliases are not followed: a small file could otherwise become
//! a huge one.

use super::input::FromError;
use saphyr_parser::{Event, Parser};
use std::path::Path;

/// Maximum depth of values.
const DEPTH_MAX: usize = 64;
/// Maximum number of values.
const NODES_MAX: usize = 100_000;

const HINT: &str = "check the file with a YAML linter";

/// A value and its line.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) line: u32,
    pub(crate) value: Yaml,
}

#[derive(Clone, Debug)]
pub(crate) enum Yaml {
    Scalar(String),
    Sequence(Vec<Node>),
    /// Keys with their lines, and values.
    Mapping(Vec<(String, u32, Node)>),
    Alias,
}

impl Node {
    /// Texts of a scalar or of a sequence of scalars.
    pub(crate) fn texts(&self) -> Vec<(String, u32)> {
        match &self.value {
            Yaml::Scalar(text) => vec![(text.clone(), self.line)],
            Yaml::Sequence(nodes) => nodes.iter().filter_map(Node::own_text).collect(),
            _ => Vec::new(),
        }
    }

    fn own_text(&self) -> Option<(String, u32)> {
        match &self.value {
            Yaml::Scalar(text) => Some((text.clone(), self.line)),
            _ => None,
        }
    }
}

/// A value that is not complete.
enum Open {
    Sequence(u32, Vec<Node>),
    Mapping(u32, Vec<(String, u32, Node)>, Option<(String, u32)>),
}

/// Reads the first document; `None`: there is none.
pub(crate) fn read(file: &Path, text: &str) -> Result<Option<Node>, FromError> {
    let mut open: Vec<Open> = Vec::new();
    let mut count = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let line = error.marker().line() as u32;
            FromError::syntax(file, line, error.info().to_owned(), HINT)
        })?;
        let line = span.start.line() as u32;
        let limit = |what: &str| FromError::syntax(file, line, what, HINT);
        count += 1;
        if count > NODES_MAX {
            return Err(limit("there are more than 100000 values"));
        }
        let node = match event {
            Event::Scalar(text, ..) => Node { line, value: Yaml::Scalar(text.into_owned()) },
            Event::Alias(_) => Node { line, value: Yaml::Alias },
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() == DEPTH_MAX {
                    return Err(limit("values are nested more than 64 deep"));
                }
                open.push(match event {
                    Event::SequenceStart(..) => Open::Sequence(line, Vec::new()),
                    _ => Open::Mapping(line, Vec::new(), None),
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::Sequence(line, nodes)) => Node { line, value: Yaml::Sequence(nodes) },
                Some(Open::Mapping(line, pairs, _)) => Node { line, value: Yaml::Mapping(pairs) },
                None => continue,
            },
            Event::DocumentEnd => return Ok(None),
            _ => continue,
        };
        match open.last_mut() {
            None => return Ok(Some(node)),
            Some(Open::Sequence(_, nodes)) => nodes.push(node),
            Some(Open::Mapping(_, pairs, key)) => {
                if let Some((name, line)) = key.take() {
                    pairs.push((name, line, node));
                } else {
                    let name = match node.value {
                        Yaml::Scalar(text) => text,
                        _ => String::from("?"),
                    };
                    *key = Some((name, line));
                }
            }
        }
    }
    Ok(None)
}
