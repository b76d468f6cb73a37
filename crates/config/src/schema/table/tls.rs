//! The section TLS: certificates, and what is asked of clients.

use std::path::PathBuf;

use crate::schema::finish;
use crate::schema::setting::{Group, Kind, Preset, Setting};
use crate::schema::settings::{ClientCertificates, TlsVersion};

use super::row::{self, path};

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::Tls, ..row::PLAIN };

const PEM: &str = "the absolute path of a PEM file";

/// Longest value of a `Strict-Transport-Security` header.
const HSTS_BYTES_MAX: usize = 256;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "tls.certificates",
        flag: "tls-certificates",
        value: "FILE",
        kind: Kind::List {
            allowed: PEM,
            clear: |settings| settings.tls.certificates.clear(),
            push: |settings, text| absolute(text).map(|path| settings.tls.certificates.push(path)),
        },
        default: Preset::Derived("none"),
        doc: "Certificates of https:// addresses; can be given several times",
        long: "PEM files, each with a certificate and its chain. Which one a client gets depends on the \
               name that it asks for; the first is for all other names. FILE.ocsp beside it, if it is \
               there, is stapled. The files are read again when they change, and on a reload.",
        finish: Some(finish::certificates),
        ..PLAIN
    },
    Setting {
        key: "tls.keys",
        flag: "tls-keys",
        value: "FILE",
        kind: Kind::List {
            allowed: PEM,
            clear: |settings| settings.tls.keys.clear(),
            push: |settings, text| absolute(text).map(|path| settings.tls.keys.push(path)),
        },
        default: Preset::Derived(
            "in the certificate's file, else with the extension `.key`, else `privkey.pem` beside it",
        ),
        doc: "Keys of these certificates, in the same order",
        finish: Some(finish::keys),
        ..PLAIN
    },
    Setting {
        key: "tls.min_version",
        flag: "tls-min-version",
        value: "VERSION",
        kind: Kind::Word {
            words: TlsVersion::WORDS,
            set: |settings, index| settings.tls.min_version = TlsVersion::ALL[index],
        },
        default: Preset::Text("1.2"),
        doc: "Oldest version of TLS that is spoken",
        ..PLAIN
    },
    Setting {
        key: "tls.hsts",
        flag: "tls-hsts",
        value: "TEXT",
        kind: Kind::Text {
            allowed: "a value such as `max-age=31536000; includeSubDomains`, or `off`",
            set: |settings, text, _| {
                let is_sound = text.len() <= HSTS_BYTES_MAX
                    && text.starts_with("max-age=")
                    && text.bytes().all(|b| (b' '..0x7f).contains(&b));
                settings.tls.hsts = is_sound.then(|| text.to_owned());
                (is_sound || text == "off").then_some(())
            },
        },
        default: Preset::Text("off"),
        doc: "Strict-Transport-Security of answers over TLS that have none",
        long: "Browsers then come by HTTPS alone for that many seconds, whatever happens to the \
               certificate: begin with a short time.",
        ..PLAIN
    },
    Setting {
        key: "tls.variables",
        flag: "tls-variables",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.tls.variables),
        default: Preset::Text("false"),
        doc: "Tell PHP how a connection is encrypted",
        long: "`$_SERVER` has SSL_PROTOCOL (`TLSv1.3`), SSL_CIPHER as OpenSSL names it, and SSL_TLS_SNI, the name that the client has asked \
               for: as with Apache's `SSLOptions +StdEnvVars`. Without it `HTTPS` alone says that TLS is spoken, as behind nginx.",
        ..PLAIN
    },
    Setting {
        key: "tls.client_ca",
        flag: "tls-client-ca",
        value: "FILE",
        kind: path(|settings, path| settings.tls.client_ca = Some(path), "a PEM file"),
        default: Preset::Derived("no client is asked for one"),
        doc: "Authorities whose certificates clients may show",
        long: "PHP sees SSL_CLIENT_VERIFY (SUCCESS or NONE), and of a certificate SSL_CLIENT_S_DN, \
               SSL_CLIENT_I_DN, SSL_CLIENT_M_SERIAL, SSL_CLIENT_V_START and SSL_CLIENT_V_END in \
               `$_SERVER`.",
        ..PLAIN
    },
    Setting {
        key: "tls.client_crls",
        flag: "tls-client-crls",
        value: "FILE",
        kind: Kind::List {
            allowed: "the absolute path of a file with a CRL",
            clear: |settings| settings.tls.client_crls.clear(),
            push: |settings, text| absolute(text).map(|path| settings.tls.client_crls.push(path)),
        },
        default: Preset::Derived("none: what is revoked is not known"),
        doc: "Lists of what the authorities of clients have revoked; can be given several times",
        long: "PEM or DER. As with nginx each authority of a client's certificate, intermediate ones too, must then have a list that is \
               not out of date: else the handshake fails. The files are read again when they change, and on a reload.",
        finish: Some(finish::client_crls),
        ..PLAIN
    },
    Setting {
        key: "tls.client_certificates",
        flag: "tls-client-certificates",
        value: "WHEN",
        kind: Kind::Word {
            words: ClientCertificates::WORDS,
            set: |settings, index| {
                settings.tls.client_certificates = ClientCertificates::ALL[index];
            },
        },
        default: Preset::Text("optional"),
        doc: "Whether clients must show a certificate, where tls.client_ca is set",
        ..PLAIN
    },
];

fn absolute(text: &str) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    path.is_absolute().then_some(path)
}
