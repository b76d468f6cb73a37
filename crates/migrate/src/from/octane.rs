//! Laravel Octane's `config/octane.php` → draft. The file is parsed, not run.

use super::draft::{Draft, Value};
use super::input::FromError;
use super::origin::Origin;
use super::shared::folder_of;
use super::units;
use crate::source::Source;
use bumpalo::Bump;
use mago_database::file::FileId;
use mago_span::HasSpan;
use mago_syntax::ast::{
    Argument, ArrayElement, BinaryOperator, Call, Expression, Literal, Program, Return, Statement,
    UnaryPrefixOperator,
};
use mago_syntax::parser::parse_file_content;
use std::path::Path;

/// Stack of the thread that parses: the parser is recursive, with a limit of its own depth.
const STACK_BYTES: usize = 256 << 20;
/// Maximum depth of arrays.
const DEPTH_MAX: usize = 16;

const HINT: &str = "pass config/octane.php of a Laravel application";

/// A value of the array and the offset of its key.
struct Item {
    /// `swoole.options.package_max_length`.
    key: String,
    offset: u32,
    value: Option<String>,
}

pub(crate) fn convert(draft: &mut Draft, file: &Path, text: &str) -> Result<(), FromError> {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let failed = |what: &str| FromError::syntax(file, 1, what, HINT);
    let items = std::thread::scope(|scope| {
        let thread = thread.spawn_scoped(scope, || items(text.as_bytes()));
        thread.map(std::thread::ScopedJoinHandle::join)
    });
    let Ok(Ok(items)) = items else { return Err(failed("the file cannot be parsed")) };
    let items = items.map_err(|(line, what)| FromError::syntax(file, line, what, HINT))?;
    let source = Source::new(text.as_bytes());
    let first = Origin::new(file, 1, "config/octane.php");
    let project = Path::new(&folder_of(file)).join("..");
    let public = project.join("public").to_string_lossy().into_owned();
    let public = public.strip_prefix("./").unwrap_or(&public).to_owned();
    let worker = Path::new(&public).join("samovar-worker.php");
    let root = if worker.is_file() { worker.to_string_lossy().into_owned() } else { public };
    let root = std::path::absolute(&root).map_or(root, |path| clean(&path));
    draft.set("", "root", Value::Text(root), &first);
    let advice = "with `composer require samovar/runtime`, run `php artisan octane:start \
                  --server=samovar`: docs/start/from-octane.md";
    draft.differs(&first, advice);
    for item in items {
        let (line, _) = source.position(item.offset);
        let origin = Origin::new(file, line, &source.line_text(item.offset));
        setting(draft, &item, &origin);
    }
    Ok(())
}

/// The path without `x/..`.
fn clean(path: &Path) -> String {
    let mut out = std::path::PathBuf::new();
    for part in path.components() {
        if part == std::path::Component::ParentDir {
            out.pop();
        } else {
            out.push(part);
        }
    }
    out.to_string_lossy().into_owned()
}

/// All values of the returned array.
fn items(text: &[u8]) -> Result<Vec<Item>, (u32, String)> {
    let arena = Bump::new();
    let program = parse_file_content(&arena, FileId::zero(), text);
    if !program.errors.is_empty() {
        return Err((1, String::from("the file has a PHP syntax error")));
    }
    let Some(array) = returned(program) else {
        return Err((1, String::from("the file returns no array")));
    };
    let mut items = Vec::new();
    collect("", array, 0, &mut items);
    Ok(items)
}

fn returned<'a>(program: &'a Program<'a>) -> Option<&'a Expression<'a>> {
    fn of<'a>(statements: &'a [Statement<'a>]) -> Option<&'a Expression<'a>> {
        statements.iter().find_map(|statement| match statement {
            Statement::Return(Return { value: Some(value), .. }) => Some(*value),
            Statement::Namespace(namespace) => of(namespace.statements().as_slice()),
            _ => None,
        })
    }
    of(program.statements.as_slice()).filter(|value| elements(value).is_some())
}

fn elements<'a>(value: &'a Expression<'a>) -> Option<&'a [ArrayElement<'a>]> {
    match value {
        Expression::Array(array) => Some(array.elements.nodes.as_slice()),
        Expression::LegacyArray(array) => Some(array.elements.nodes.as_slice()),
        _ => None,
    }
}

fn collect(prefix: &str, array: &Expression<'_>, depth: usize, items: &mut Vec<Item>) {
    if depth > DEPTH_MAX {
        return;
    }
    for element in elements(array).unwrap_or_default() {
        let ArrayElement::KeyValue(pair) = element else { continue };
        let Some(name) = constant(pair.key) else { continue };
        let separator = if prefix.is_empty() { "" } else { "." };
        let key = format!("{prefix}{separator}{name}");
        let offset = pair.key.span().start.offset;
        if prefix != "listeners" && elements(pair.value).is_some_and(|inner| !inner.is_empty()) {
            collect(&key, pair.value, depth + 1, items);
        }
        items.push(Item { key, offset, value: constant(pair.value) });
    }
}

/// Value of a literal, or the default of `env('NAME', default)`.
fn constant(value: &Expression<'_>) -> Option<String> {
    let of_bytes = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match value {
        Expression::Literal(Literal::String(literal)) => literal.value.map(of_bytes),
        Expression::Literal(Literal::Integer(literal)) => {
            literal.value.map(|number| format!("{number}"))
        }
        Expression::Literal(Literal::True(_)) => Some(String::from("true")),
        Expression::Literal(Literal::False(_)) => Some(String::from("false")),
        Expression::Parenthesized(inner) => constant(inner.expression),
        Expression::UnaryPrefix(unary)
            if matches!(unary.operator, UnaryPrefixOperator::IntCast(..)) =>
        {
            constant(unary.operand)
        }
        Expression::Binary(binary)
            if matches!(binary.operator, BinaryOperator::Multiplication(_)) =>
        {
            let number = |side| constant(side)?.parse::<u64>().ok();
            Some(number(binary.lhs)?.checked_mul(number(binary.rhs)?)?.to_string())
        }
        Expression::Call(Call::Function(call)) => match call.argument_list.arguments.nodes.get(1) {
            Some(Argument::Positional(argument)) => constant(argument.value),
            _ => None,
        },
        _ => None,
    }
}

fn setting(draft: &mut Draft, item: &Item, origin: &Origin) {
    let text = item.value.as_deref();
    let is_table = |prefix: &str| item.key.starts_with(prefix);
    match item.key.as_str() {
        "server" => draft.built_in(origin, "`octane:start --server=samovar` selects it"),
        "https" => draft.differs(origin, "HTTPS is known from TLS or a proxy of `trusted_proxies`"),
        "listeners" | "warm" | "flush" => draft.built_in(origin, "Octane uses them unchanged"),
        "garbage" => draft.built_in(origin, "cycles are collected between requests"),
        "watch" => draft.built_in(origin, "use `samovar dev`, or `octane:start --watch`"),
        "max_execution_time" => match text.and_then(|text| text.parse::<u64>().ok()) {
            Some(seconds) => {
                let time = Value::Text(units::time(seconds.saturating_mul(1_000)));
                draft.set("timeouts", "request", time, origin);
            }
            None => draft.missing(origin, "set `timeouts.request`"),
        },
        "host" | "port" => draft.missing(origin, "set `listen`"),
        "tables" | "cache" if text.is_none() => {
            draft.missing(origin, "use Samovar\\Table, and the cache store `samovar`");
        }
        "swoole.options.package_max_length" => match text.and_then(|text| text.parse().ok()) {
            Some(bytes) => {
                let size = Value::Text(units::size(bytes));
                draft.set("limits", "body_bytes_max", size, origin);
                draft.differs(origin, "PHP's post_max_size applies too: set it in [php]");
            }
            None => draft.missing(origin, "set `limits.body_bytes_max`"),
        },
        "swoole.options.max_wait_time" => match text.and_then(|text| text.parse::<u64>().ok()) {
            Some(seconds @ 1..) => {
                let time = Value::Text(units::time(seconds.saturating_mul(1_000)));
                draft.set("timeouts", "drain", time, origin);
            }
            _ => draft.missing(origin, "set `timeouts.drain`"),
        },
        "swoole.options.upload_tmp_dir" if text.is_some() => {
            let text = text.unwrap_or_default();
            draft.set("php", "upload_tmp_dir", Value::text(text), origin);
        }
        "swoole.options.log_file" if text.is_some() => {
            draft.set("", "log", Value::text(text.unwrap_or_default()), origin);
        }
        "swoole.options.http_compression" if text == Some("true") => {
            draft.add("compression", "codings", "gzip", origin);
        }
        "swoole.options.http_compression" => draft.built_in(origin, "it is the default"),
        "swoole" | "swoole.options" | "samovar" => {}
        "state_file" => draft.built_in(origin, "not needed"),
        _ if is_table("samovar.") => draft.built_in(origin, "Octane uses it unchanged"),
        _ if is_table("tables.") || is_table("cache.") => {}
        _ if is_table("swoole.") => draft.missing(origin, "options of Swoole have no effect"),
        _ if is_table("frankenphp") || is_table("roadrunner") => {
            draft.missing(origin, "options of the other servers have no effect");
        }
        _ => draft.missing(origin, "Samovar does not know this key"),
    }
}
