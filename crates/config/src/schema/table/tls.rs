//! The section TLS: certificates of the server and of clients.

use crate::schema::resolve;
use crate::schema::setting::{Group, Kind, Preset, Setting};
use crate::schema::settings::{ClientCertificates, TlsVersion};

use super::row::{self, path};

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::Tls, ..row::PLAIN };

const PEM: &str = "a PEM file";

/// Maximum length of a `Strict-Transport-Security` header's value.
const HSTS_BYTES_MAX: usize = 256;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "tls.certificates",
        flag: "tls-certificates",
        value: "FILE",
        kind: Kind::List {
            allowed: PEM,
            clear: |settings| settings.tls.certificates.clear(),
            push: |settings, text, base| {
                row::below(base, text).map(|path| settings.tls.certificates.push(path))
            },
        },
        default: Preset::Derived("none"),
        doc: "Certificates of https:// addresses (repeatable)",
        long: "PEM files, each with a certificate and its chain. The server name in the client's \
               handshake (SNI) selects one; the first is for all other names. FILE.ocsp in the \
               same folder, if it exists, is stapled. The files are read again when they change, \
               and on a reload.",
        finish: Some(resolve::certificates),
        ..PLAIN
    },
    Setting {
        key: "tls.keys",
        flag: "tls-keys",
        value: "FILE",
        kind: Kind::List {
            allowed: PEM,
            clear: |settings| settings.tls.keys.clear(),
            push: |settings, text, base| {
                row::below(base, text).map(|path| settings.tls.keys.push(path))
            },
        },
        default: Preset::Derived(
            "in the certificate's file, else with the extension `.key`, else `privkey.pem` in the \
             same folder",
        ),
        doc: "Private keys of tls.certificates, in the same order (repeatable)",
        finish: Some(resolve::keys),
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
        doc: "Minimum version of TLS",
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
        doc: "Strict-Transport-Security header of responses over TLS that have none",
        long: "Browsers then use only HTTPS for that number of seconds, even if the certificate \
               becomes invalid: start with a short time. off: no header.",
        ..PLAIN
    },
    Setting {
        key: "tls.variables",
        flag: "tls-variables",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.tls.variables),
        default: Preset::Text("false"),
        doc: "Whether PHP gets variables that describe the TLS connection",
        long: "`$_SERVER` then has SSL_PROTOCOL (`TLSv1.3`), SSL_CIPHER (OpenSSL's name), and \
               SSL_TLS_SNI (the server name in the client's handshake), as with Apache's \
               `SSLOptions +StdEnvVars`. Otherwise only `HTTPS` shows that TLS is used, as behind \
               nginx.",
        ..PLAIN
    },
    Setting {
        key: "tls.client_ca",
        flag: "tls-client-ca",
        value: "FILE",
        kind: path(|settings, path| settings.tls.client_ca = Some(path), "a PEM file"),
        default: Preset::Derived("none: no client certificate is requested"),
        doc: "Authorities whose client certificates are accepted",
        long: "`$_SERVER` then has SSL_CLIENT_VERIFY (SUCCESS or NONE). If the client has a \
               certificate, it also has SSL_CLIENT_S_DN, SSL_CLIENT_I_DN, SSL_CLIENT_M_SERIAL, \
               SSL_CLIENT_V_START and SSL_CLIENT_V_END.",
        ..PLAIN
    },
    Setting {
        key: "tls.client_crls",
        flag: "tls-client-crls",
        value: "FILE",
        kind: Kind::List {
            allowed: "a file with a CRL",
            clear: |settings| settings.tls.client_crls.clear(),
            push: |settings, text, base| {
                row::below(base, text).map(|path| settings.tls.client_crls.push(path))
            },
        },
        default: Preset::Derived("none: revocation is not checked"),
        doc: "Certificate revocation lists of the clients' authorities (repeatable)",
        long: "PEM or DER. As with nginx, each authority in a client's chain, including \
               intermediate ones, must have a list that is not expired; otherwise the handshake \
               fails. The files are read again when they change, and on a reload.",
        finish: Some(resolve::client_crls),
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
        doc: "Whether client certificates are required, if tls.client_ca is set",
        ..PLAIN
    },
];
