//! The section ACME: certificates that an authority issues automatically.

use crate::schema::domain;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::AcmeChallenge;

use super::row::{self, path};

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::Acme, ..row::PLAIN };

/// Maximum length of a directory's address, an e-mail address, and the key of an external account.
const TEXT_BYTES_MAX: usize = 1024;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "acme.domains",
        flag: "domain",
        value: "NAME",
        kind: Kind::List {
            allowed: "a name such as `example.com`",
            clear: |settings| settings.acme.domains.clear(),
            // `finish` checks the names and reports mistakes name by name.
            push: |settings, text, _| {
                (text.len() <= TEXT_BYTES_MAX).then(|| settings.acme.domains.push(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "Domain name for which a certificate is obtained and renewed (repeatable)",
        long: "The authority is Let's Encrypt, or the one of acme.directory; with this setting you \
               agree to its terms. Without `listen` the server then listens on :80?redirect and \
               https://:443. The name must resolve to this machine, and the authority must reach \
               it on port 80 or 443. Certificates of tls.certificates can be used in addition.",
        finish: Some(domain::finish),
        ..PLAIN
    },
    Setting {
        key: "acme.email",
        flag: "acme-email",
        value: "ADDRESS",
        kind: Kind::Text {
            allowed: "an address such as `me@example.com`",
            set: |settings, text, _| {
                is_email(text).then(|| settings.acme.email = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "Contact address for the authority",
        ..PLAIN
    },
    Setting {
        key: "acme.directory",
        flag: "acme-directory",
        value: "URL",
        kind: Kind::Text {
            allowed: "the https:// address of an ACME directory",
            set: |settings, text, _| {
                is_https(text).then(|| text.clone_into(&mut settings.acme.directory))
            },
        },
        default: Preset::Text("https://acme-v02.api.letsencrypt.org/directory"),
        doc: "URL of the authority's ACME directory",
        long: "For tests use https://acme-staging-v02.api.letsencrypt.org/directory: it has \
               generous limits, and browsers do not trust its certificates.",
        ..PLAIN
    },
    Setting {
        key: "acme.ca",
        flag: "acme-ca",
        value: "FILE",
        kind: path(|settings, path| settings.acme.ca = Some(path), "a PEM file"),
        default: Preset::Derived("the certificates that this machine trusts"),
        doc: "Root certificates to trust for the directory's server, for a private authority",
        ..PLAIN
    },
    Setting {
        key: "acme.agree",
        flag: "acme-agree",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.acme.agree),
        default: Preset::Text("true"),
        doc: "Whether you agree to the authority's terms; without that no account is created",
        ..PLAIN
    },
    Setting {
        key: "acme.challenge",
        flag: "acme-challenge",
        value: "KIND",
        kind: Kind::Word {
            words: AcmeChallenge::WORDS,
            set: |settings, index| settings.acme.challenge = AcmeChallenge::ALL[index],
        },
        default: Preset::Text("auto"),
        doc: "Challenge that proves control over a name",
        long: "http-01: the authority connects to port 80. tls-alpn-01: the authority connects to \
               port 443. auto: the challenges that `listen` allows; after a failure, the next one.",
        ..PLAIN
    },
    Setting {
        key: "acme.eab_id",
        flag: "acme-eab-id",
        value: "TEXT",
        kind: Kind::Text {
            allowed: "the id issued by the authority",
            set: |settings, text, _| {
                is_plain(text).then(|| settings.acme.eab_id = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("none"),
        doc: "External account binding: key id, issued by the authority",
        ..PLAIN
    },
    Setting {
        key: "acme.eab_key",
        flag: "acme-eab-key",
        value: "KEY",
        kind: Kind::Text {
            allowed: "a key in base64url, as issued by the authority",
            set: |settings, text, _| {
                let is_sound = is_plain(text)
                    && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_=".contains(&b));
                is_sound.then(|| settings.acme.eab_key = Some(text.into()))
            },
        },
        default: Preset::Derived("none"),
        doc: "External account binding: key, issued by the authority",
        long: "Command lines are visible to all users of a machine: use SAMOVAR_ACME_EAB_KEY or \
               the file instead.",
        is_secret: true,
        finish: Some(domain::finish_external),
        ..PLAIN
    },
    Setting {
        key: "acme.folder",
        flag: "acme-folder",
        value: "FOLDER",
        kind: path(|settings, path| settings.acme.folder = path, "a folder"),
        default: Preset::Derived(
            "`acme` in $STATE_DIRECTORY, else for root /var/lib/samovar/acme, else \
             ~/.local/state/samovar/acme",
        ),
        doc: "Folder for the account, the certificates and their keys",
        long: "Created if missing, with access for the server's user only. The folder must \
               persist: without it each start would order new certificates, and authorities limit \
               their number.",
        on_reload: OnReload::Kept(|old, new| old.acme.folder != new.acme.folder),
        finish: Some(domain::finish_folder),
        ..PLAIN
    },
];

fn is_plain(text: &str) -> bool {
    (1..=TEXT_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

fn is_https(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://") else { return false };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    // Characters that no URL contains are a mistake; such a value is not worth a network attempt.
    let is_url = |b: u8| b.is_ascii_alphanumeric() || b"-._~:/?@!$&'()*+,;=%[]".contains(&b);
    is_plain(text) && !host.is_empty() && !host.contains('@') && rest.bytes().all(is_url)
}

fn is_email(text: &str) -> bool {
    let is_name = |b: u8| b.is_ascii_graphic() && !b"<>,;:\"()[]\\?&#%".contains(&b);
    text.len() <= TEXT_BYTES_MAX
        && text.bytes().all(is_name)
        && text
            .split_once('@')
            .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_email_addresses_are_checked() {
        for (text, expected) in [
            ("https://acme-v02.api.letsencrypt.org/directory", true),
            ("https://[::1]:14000/dir", true),
            ("https://ca.internal/acme/acme/directory?x=1", true),
            ("http://ca.internal/directory", false),
            ("https://", false),
            ("https:///directory", false),
            ("https://a b/", false),
            ("https://a\u{e4}/", false),
            ("https://user:pw@ca/", false),
            ("https://a/{x}", false),
        ] {
            assert_eq!(is_https(text), expected, "{text}");
        }
        for (text, expected) in [
            ("me@example.com", true),
            ("me+x@example.com", true),
            ("example.com", false),
            ("me@", false),
            ("mailto:me@example.com", false),
            ("me@example.com,you@example.com", false),
            ("me@a@b", false),
        ] {
            assert_eq!(is_email(text), expected, "{text}");
        }
    }
}
