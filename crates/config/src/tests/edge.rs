//! Listeners and the certificates that they need.

use super::*;

#[test]
fn tls_listener_without_certificates_is_reported() {
    check_problem(
        "",
        &["--listen", "https://:443"],
        "the default of `tls.certificates` has no certificate for `https://0.0.0.0:443`",
        "name a PEM file: `certificates = [\"/etc/ssl/example.pem\"]` in `[tls]`; or let the \
         server obtain one: `domains = [\"example.com\"]` in `[acme]`",
    );
    check_problem(
        "",
        &["--tls-certificates", "/a.pem,/b.pem", "--tls-keys", "/a.key"],
        "`--tls-keys /a.key` has the wrong number of keys: 1 for 2 certificates",
        "name one key for each of `tls.certificates`, in the same order, or none",
    );
}

#[test]
fn trusted_proxy_may_connect_by_unix_socket() {
    let shown = |settings: &Settings| {
        format!("{} {}", settings.trusts_unix, list(&settings.trusted_proxies))
    };
    check("trusted_proxies = ['unix:', '::1']", &[], shown, "true ::1/128");
    check("trusted_proxies = ['unix:']", &["SAMOVAR_TRUSTED_PROXIES=::1"], shown, "false ::1/128");
    check(
        "listen = ['unix:/a', 'https+unix:/b?proxy']",
        &["--tls-certificates", "/c"],
        listen,
        "unix:/a https+unix:/b",
    );
}

#[test]
fn domain_sets_default_listeners() {
    check("", &["--domain", "Example.com"], listen, "0.0.0.0:80 https://0.0.0.0:443");
    check(
        "acme = { domains = ['a.example', 'A.example.'] }",
        &[],
        |s| list(&s.acme.domains),
        "a.example",
    );
    check(
        "",
        &["--domain", "a.example", "--listen", "https://:8443"],
        listen,
        "https://0.0.0.0:8443",
    );
    check_problem(
        "",
        &["--domain", "a.example", "--listen", ":8080"],
        "`--domain a.example` names domains, but no address in `listen` uses TLS",
        "remove `listen`, or add `https://:443` to it",
    );
    check_problem(
        "acme = { domains = ['*.a.example'] }",
        &[],
        "samovar.toml:1: `acme.domains = '*.a.example'` cannot have a wildcard: `*.a.example`",
        "name each domain, or obtain the certificate with another program and name its file in \
         `tls.certificates`: wildcards need DNS-01, which is not supported",
    );
    check_problem(
        "",
        &["SAMOVAR_ACME_EAB_KEY=abc"],
        "`SAMOVAR_ACME_EAB_KEY=***` must be set together with `acme.eab_id`",
        "set both, as issued by the authority, or none",
    );
}
