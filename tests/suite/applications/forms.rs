//! Forms of applications, filled in by a visitor.

use samovar_testkit::http::Request;
use samovar_testkit::visitor::{Visitor, between, field_value, form, multipart};

/// Posts the form of examples/symfony with its token. `picture` is name, type and content.
pub(crate) fn post_message(
    visitor: &mut Visitor,
    step: &str,
    name: &str,
    text: &str,
    file: Option<(&str, &str, &[u8])>,
) {
    let page = visitor.send(&format!("{step}: the form"), Request::get("/message")).text();
    let token = field_value(&page, "message[_token]").to_owned();
    let fields = [
        ("message[name]", name),
        ("message[text]", text),
        ("message[send]", ""),
        ("message[_token]", &token),
    ];
    let files = file.map(|(name, kind, content)| ("message[picture]", name, kind, content));
    let files: Vec<_> = files.into_iter().collect();
    visitor.send(step, multipart("/message", &fields, &files));
}

/// DokuWiki's editor, opened at a page. The request depends on the button and the text.
pub(crate) struct Editor {
    id: String,
    hidden: [(&'static str, String); 3],
}

impl Editor {
    /// Reads the editor from the HTML of the page `id` in `do=edit`.
    pub(crate) fn opened(html: &str, id: &str) -> Editor {
        let hidden = ["date", "prefix", "changecheck"].map(|name| {
            (name, between(html, &format!("name=\"{name}\" value=\""), "\"").to_owned())
        });
        Editor { id: id.to_owned(), hidden }
    }

    /// Builds the POST request of a button such as `do[save]`.
    pub(crate) fn press(&self, button: &str, token: &str, text: &str) -> Request {
        let mut fields = vec![("sectok", token), ("id", self.id.as_str()), ("rev", "0")];
        fields.extend(self.hidden.iter().map(|(name, value)| (*name, value.as_str())));
        fields.extend([("suffix", ""), ("target", "section"), ("wikitext", text)]);
        fields.extend([(button, "1"), ("summary", "first & best")]);
        form(&format!("/doku.php?id={}", self.id), &fields)
    }
}
