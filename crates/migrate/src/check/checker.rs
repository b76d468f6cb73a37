//! State of the walk through a file, and the making of a finding.

use super::guards::Guards;
use super::namespace::Names;
use super::scope::{Class, Function};
use crate::finding::{Edit, Finding, Kind};
use crate::project::{Candidate, ClassFacts, FileFacts, Need};
use crate::rules::{self, Rule};
use crate::source::Source;
use crate::version::Range;
use mago_span::{HasSpan, Span};
use mago_syntax::ast::Program;

/// Maximum number of findings of one file. A generated file must not fill the memory.
const FINDINGS_MAX: usize = 5_000;
/// Maximum number of reported parse errors of one file.
const ERRORS_MAX: usize = 3;

/// State of the walk through one file.
pub(super) struct Checker<'s, 'a> {
    pub(super) source: &'s Source<'s>,
    pub(super) range: Range,
    pub(super) program: &'a Program<'a>,
    pub(super) names: Names,
    pub(super) guards: Guards,
    /// Functions around the current place; the first one is the code outside of functions.
    pub(super) functions: Vec<Function>,
    pub(super) classes: Vec<Class>,
    pub(super) facts: FileFacts,
    pub(super) open_classes: Vec<ClassFacts>,
}

/// A finding in the making.
pub(super) struct Report<'r> {
    pub(super) rule: &'static Rule,
    pub(super) at: Span,
    /// The name that was found; empty for rules about syntax.
    pub(super) subject: &'r str,
    /// Replacement of this name.
    pub(super) replacement: Option<&'r str>,
    pub(super) edits: Vec<Edit>,
    pub(super) need: Need,
    /// Kind that replaces that of the rule.
    pub(super) kind: Option<Kind>,
}

impl<'r> Report<'r> {
    pub(super) fn new(rule: &'static Rule, at: &impl HasSpan) -> Self {
        let at = at.span();
        Self {
            rule,
            at,
            subject: "",
            replacement: None,
            edits: Vec::new(),
            need: Need::Nothing,
            kind: None,
        }
    }

    pub(super) fn subject(mut self, subject: &'r str) -> Self {
        self.subject = subject;
        self
    }

    pub(super) fn replacement(mut self, replacement: Option<&'r str>) -> Self {
        self.replacement = replacement;
        self
    }

    pub(super) fn edit(mut self, at: &impl HasSpan, text: impl Into<Vec<u8>>) -> Self {
        let at = at.span();
        self.edits.push(Edit { start: at.start.offset, end: at.end.offset, text: text.into() });
        self
    }

    pub(super) fn insert(mut self, at: u32, text: &str) -> Self {
        self.edits.push(Edit { start: at, end: at, text: text.into() });
        self
    }

    pub(super) fn need(mut self, need: Need) -> Self {
        self.need = need;
        self
    }
}

impl<'s, 'a> Checker<'s, 'a> {
    pub(super) fn new(source: &'s Source<'s>, range: Range, program: &'a Program<'a>) -> Self {
        Self {
            source,
            range,
            program,
            names: Names::default(),
            guards: Guards::default(),
            functions: vec![Function::default()],
            classes: Vec::new(),
            facts: FileFacts { lines: source.line_count(), ..FileFacts::default() },
            open_classes: Vec::new(),
        }
    }

    /// Reports the rule `id` without a name.
    pub(super) fn syntax(&mut self, id: &str, at: &impl HasSpan) {
        self.report(Report::new(rules::code(id), at));
    }

    /// Whether the rule has a change in this upgrade, for checks that cost time.
    pub(super) fn applies(&self, id: &str) -> bool {
        rules::code(id).event(self.range, u32::MAX).is_some()
    }

    /// Adds a finding if the change is part of the upgrade and the code runs with it.
    pub(super) fn report(&mut self, report: Report<'_>) {
        // The compiler reads code that never runs, too.
        let below =
            if report.rule.id.starts_with("syntax-") { u32::MAX } else { self.guards.below() };
        let Some((kind, version)) = report.rule.event(self.range, below) else { return };
        if kind == Kind::Removed && self.guards.has_checked(report.rule) {
            return;
        }
        if self.facts.candidates.len() >= FINDINGS_MAX {
            self.facts.dropped += 1;
            return;
        }
        let kind = report.kind.unwrap_or(kind);
        let offset = report.at.start.offset;
        let (line, column) = self.source.position(offset);
        let finding = Finding {
            rule: report.rule.id,
            version: Some(version),
            kind,
            line,
            column,
            message: message(report.rule, report.subject, kind, &version.to_string()),
            action: report.rule.advice(report.replacement),
            url: &report.rule.url,
            text: self.source.line_text(offset),
            edits: report.edits,
        };
        self.facts.candidates.push(Candidate { finding, need: report.need });
    }

    pub(super) fn parse_errors(&mut self) {
        for error in self.program.errors.iter().take(ERRORS_MAX) {
            let offset = error.span().start.offset.min(self.source.text.len() as u32);
            let (line, column) = self.source.position(offset);
            let finding = Finding {
                rule: "parse-error",
                version: None,
                kind: Kind::Syntax,
                line,
                column,
                message: format!("the file does not parse: {error}"),
                action: "php -l under the new version shows its message".to_owned(),
                url: "https://www.php.net/manual/en/langref.php",
                text: self.source.line_text(offset),
                edits: Vec::new(),
            };
            self.facts.candidates.push(Candidate { finding, need: Need::Nothing });
        }
    }

    pub(super) fn function(&mut self) -> &mut Function {
        self.functions.last_mut().expect("the code outside of functions remains")
    }

    /// Text of a part of the file.
    pub(super) fn text(&self, at: &impl HasSpan) -> &[u8] {
        let at = at.span();
        let end = (at.end.offset as usize).min(self.source.text.len());
        self.source.text.get(at.start.offset as usize..end).unwrap_or_default()
    }
}

fn message(rule: &Rule, subject: &str, kind: Kind, version: &str) -> String {
    if subject.is_empty() {
        return match kind {
            Kind::Changed => format!("{} (since PHP {version})", rule.says),
            Kind::Syntax => format!("{} (syntax error since PHP {version})", rule.says),
            _ => format!("{} ({} in PHP {version})", rule.says, kind.word()),
        };
    }
    let verb = match kind {
        Kind::Deprecated => "is deprecated in",
        Kind::Changed => "changes in",
        Kind::Removed => "is removed in",
        Kind::Reserved => "is an error since",
        Kind::Syntax => "is a syntax error since",
    };
    let colon = if rule.says.is_empty() { "" } else { ": " };
    format!("{subject} {verb} PHP {version}{colon}{}", rule.says)
}
