//! Outline of a file: the classes and functions that it declares unconditionally, and the first
//! statement that is no declaration. A file without such a statement does nothing but declare when
//! it is included, so PHP may declare its content in advance (preloading).

use super::namespace::Names;
use crate::source::Source;
use mago_span::HasSpan;
use mago_syntax::ast::{
    Call, ClassLikeMember, Construct, DeclareBody, Expression, Extends, Identifier, Implements,
    LocalIdentifier, NamespaceBody, Program, Sequence, Statement,
};

/// Maximum depth of blocks that are searched.
const DEPTH_MAX: usize = 16;
/// Maximum bytes of a name in a reason.
const NAME_BYTES_MAX: usize = 100;

/// Declarations of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Classes, interfaces, traits and enums outside of conditions.
    pub classes: Vec<Declared>,
    /// Functions outside of conditions: full names in lower case.
    pub functions: Vec<String>,
    /// The first statement that is no declaration.
    pub obstacle: Option<Obstacle>,
}

/// A class, interface, trait or enum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Full name in lower case.
    pub name: String,
    /// Line of the name, from 1.
    pub line: u32,
    /// Parents, interfaces and traits: full names in lower case.
    pub needs: Vec<String>,
}

/// A statement that is no declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Kind of the statement.
    pub kind: ObstacleKind,
    /// Its line, from 1.
    pub line: u32,
    /// Name of the called function or of the statement: `class_alias()`, `if`.
    pub name: String,
}

/// Kind of a statement that is no declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObstacleKind {
    /// The parser finds an error.
    Syntax,
    /// A class or function is declared only under a condition.
    Conditional,
    /// Text outside of PHP, `echo`.
    Output,
    /// `return` with a value: the file is data.
    Value,
    /// Any other code.
    Code,
}

/// Walk over the statements of a file.
struct Walk<'s, 't> {
    source: &'s Source<'t>,
    names: Names,
    outline: Outline,
    /// The rest of the file is data.
    is_over: bool,
}

impl Outline {
    pub(super) fn of(source: &Source<'_>, program: &Program<'_>) -> Outline {
        let mut walk =
            Walk { source, names: Names::default(), outline: Outline::default(), is_over: false };
        if let Some(error) = program.errors.first() {
            walk.obstacle(ObstacleKind::Syntax, error, "");
        }
        walk.statements(&program.statements, 0);
        walk.outline
    }
}

impl Walk<'_, '_> {
    fn line(&self, at: &impl HasSpan) -> u32 {
        self.source.position(at.span().start.offset).0
    }

    fn obstacle(&mut self, kind: ObstacleKind, at: &impl HasSpan, name: &str) {
        if self.outline.obstacle.is_none() {
            let line = self.line(at);
            let name = name.chars().filter(|c| !c.is_control()).take(NAME_BYTES_MAX).collect();
            self.outline.obstacle = Some(Obstacle { kind, line, name });
        }
    }

    fn statements(&mut self, all: &Sequence<'_, Statement<'_>>, depth: usize) {
        for statement in all {
            if self.is_over {
                return;
            }
            self.statement(statement, depth);
        }
    }

    fn statement(&mut self, statement: &Statement<'_>, depth: usize) {
        use ObstacleKind::{Code, Output, Value};
        if depth > DEPTH_MAX {
            self.obstacle(Code, statement, "blocks");
            return;
        }
        match statement {
            Statement::Namespace(namespace) => {
                self.names.enter(namespace);
                match &namespace.body {
                    NamespaceBody::Implicit(body) => self.statements(&body.statements, depth + 1),
                    NamespaceBody::BraceDelimited(body) => {
                        self.statements(&body.statements, depth + 1);
                    }
                }
            }
            Statement::Use(import) => self.names.import(import),
            Statement::Class(it) => {
                let members = it.members.as_slice();
                self.declare(&it.name, it.extends.as_ref(), it.implements.as_ref(), members);
            }
            Statement::Interface(it) => {
                self.declare(&it.name, it.extends.as_ref(), None, it.members.as_slice());
            }
            Statement::Trait(it) => self.declare(&it.name, None, None, it.members.as_slice()),
            Statement::Enum(it) => {
                self.declare(&it.name, None, it.implements.as_ref(), it.members.as_slice());
            }
            Statement::Function(it) => {
                let own = String::from_utf8_lossy(it.name.value).to_ascii_lowercase();
                self.outline.functions.push(self.names.declared(&own));
            }
            Statement::Declare(declare) => match &declare.body {
                DeclareBody::Statement(body) => self.statement(body, depth + 1),
                DeclareBody::ColonDelimited(body) => self.statements(&body.statements, depth + 1),
            },
            Statement::Inline(text) if text.value.trim_ascii().is_empty() => {}
            Statement::Inline(_) | Statement::EchoTag(_) => {
                self.obstacle(Output, statement, "text outside of PHP");
            }
            Statement::Echo(_) => self.obstacle(Output, statement, "echo"),
            Statement::Return(it) if it.value.is_some() => {
                self.obstacle(Value, statement, "return");
            }
            Statement::OpeningTag(_)
            | Statement::ClosingTag(_)
            | Statement::Noop(_)
            | Statement::Return(_) => {}
            Statement::HaltCompiler(_) => self.is_over = true,
            Statement::Block(_) => self.code(statement, "{"),
            Statement::If(_) => self.code(statement, "if"),
            Statement::Expression(it) => self.obstacle(Code, statement, &expression(it.expression)),
            Statement::Constant(_) => self.obstacle(Code, statement, "const"),
            other => self.code(other, &other.to_string().to_ascii_lowercase()),
        }
    }

    /// A statement that may contain declarations.
    fn code(&mut self, statement: &Statement<'_>, name: &str) {
        let span = statement.span();
        let text = &self.source.text[span.start.offset as usize..span.end.offset as usize];
        let kind = if declares(text) { ObstacleKind::Conditional } else { ObstacleKind::Code };
        self.obstacle(kind, statement, name);
    }

    fn declare(
        &mut self,
        name: &LocalIdentifier<'_>,
        extends: Option<&Extends<'_>>,
        implements: Option<&Implements<'_>>,
        members: &[ClassLikeMember<'_>],
    ) {
        let mut needs: Vec<String> = Vec::new();
        let mut add = |name: &Identifier<'_>| {
            let name = self.names.class(name);
            if !needs.contains(&name) {
                needs.push(name);
            }
        };
        extends.into_iter().flat_map(|it| it.types.iter()).for_each(&mut add);
        implements.into_iter().flat_map(|it| it.types.iter()).for_each(&mut add);
        for member in members {
            if let ClassLikeMember::TraitUse(it) = member {
                it.trait_names.iter().for_each(&mut add);
            }
        }
        let own = String::from_utf8_lossy(name.value).to_ascii_lowercase();
        let line = self.line(name);
        let name = self.names.declared(&own);
        self.outline.classes.push(Declared { name, line, needs });
    }
}

/// Whether the text of a statement seems to declare a class or a function.
fn declares(text: &[u8]) -> bool {
    [&b"class "[..], b"function ", b"interface ", b"trait ", b"enum "]
        .iter()
        .any(|word| memchr::memmem::find(text, word).is_some())
}

/// Returns a short name of an expression.
fn expression(of: &Expression<'_>) -> String {
    match of {
        Expression::Call(Call::Function(call)) => match call.function {
            Expression::Identifier(name) => {
                let name = String::from_utf8_lossy(name.value());
                format!("{}()", name.trim_start_matches('\\'))
            }
            _ => "a call".to_owned(),
        },
        Expression::Call(_) => "a method call".to_owned(),
        Expression::Assignment(_) => "an assignment".to_owned(),
        Expression::Construct(construct) => match construct {
            Construct::Include(_)
            | Construct::IncludeOnce(_)
            | Construct::Require(_)
            | Construct::RequireOnce(_) => "an include".to_owned(),
            Construct::Print(_) => "print".to_owned(),
            Construct::Exit(_) | Construct::Die(_) => "exit".to_owned(),
            _ => "an expression".to_owned(),
        },
        _ => "an expression".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{ObstacleKind, outline};

    #[test]
    fn classes_have_full_names_and_needs() {
        let found = outline(
            b"<?php declare(strict_types=1);\nnamespace App\\M;\nuse Lib\\{Base, Face as F};\n\
              final class A extends Base implements F, \\Countable { use T; use \\Lib\\U; }\n\
              interface I extends F {}\ntrait T {}\nenum E: string implements I { case B = 'b'; }\n\
              function f() { if (1) { class Inner {} } }\n",
        );
        assert_eq!(found.obstacle, None);
        assert_eq!(found.functions, ["app\\m\\f"]);
        let all: Vec<_> =
            found.classes.iter().map(|c| (&*c.name, c.line, c.needs.join(" "))).collect();
        assert_eq!(
            all,
            [
                ("app\\m\\a", 4, "lib\\base lib\\face countable app\\m\\t lib\\u".to_owned()),
                ("app\\m\\i", 5, "lib\\face".to_owned()),
                ("app\\m\\t", 6, String::new()),
                ("app\\m\\e", 7, "app\\m\\i".to_owned()),
            ]
        );
    }

    #[test]
    fn first_code_outside_of_declarations_is_named() {
        use ObstacleKind::{Code, Conditional, Output, Syntax, Value};
        let check = |php: &str, kind, line, name: &str| {
            let found = outline(php.as_bytes()).obstacle.unwrap_or_else(|| panic!("{php}"));
            assert_eq!((found.kind, found.line, &*found.name), (kind, line, name), "{php}");
        };
        check("<?php\nclass A {}\n\\class_alias('A', 'B');", Code, 3, "class_alias()");
        check("<?php\nif (!class_exists('A')) {\n class A {}\n}", Conditional, 2, "if");
        check("<?php if (!DEBUG) { return; } class A {}", Code, 1, "if");
        check("<?php { class A {} }", Conditional, 1, "{");
        check("<?php\nnamespace A;\nconst B = 1; class C {}", Code, 3, "const");
        check("<?php return ['a' => 1];", Value, 1, "return");
        check("<?php class A {} ?>\n<p>text", Output, 1, "text outside of PHP");
        check("<?= 1 ?>", Output, 1, "text outside of PHP");
        check("<?php echo 1;", Output, 1, "echo");
        check("<?php require 'a.php'; class A {}", Code, 1, "an include");
        check("<?php $a = 1; class A {}", Code, 1, "an assignment");
        check("<?php A::b();", Code, 1, "a method call");
        check("<?php exit;", Code, 1, "exit");
        check("<?php class {", Syntax, 1, "");
        check("<?php while (1) {}", Code, 1, "while");
    }

    #[test]
    fn file_that_only_declares_has_no_obstacle() {
        for php in [
            "",
            "<?php",
            "<?php class A {} ?>\n",
            "<?php namespace A { class B {} } namespace { interface C {} }",
            "<?php class A {} return;",
            "<?php class A {} __halt_compiler(); anything",
        ] {
            assert_eq!(outline(php.as_bytes()).obstacle, None, "{php}");
        }
    }
}
