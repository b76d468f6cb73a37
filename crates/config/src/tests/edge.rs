//! Listeners and the certificates that they need.

use super::*;

#[test]
fn what_speaks_tls_needs_certificates_and_keys() {
    check_problem(
        "",
        &["--listen", "https://:443"],
        "the default of `tls.certificates` is not enough for `https://0.0.0.0:443`",
        "name a PEM file: `certificates = [\"/etc/ssl/example.pem\"]` below `[tls]`; or have one fetched: \
         `domains = [\"example.com\"]` below `[acme]`",
    );
    check_problem(
        "",
        &["--tls-certificates", "/a.pem,/b.pem", "--tls-keys", "/a.key"],
        "`--tls-keys /a.key` names 1 for 2 certificates",
        "name one for each of `tls.certificates`, in the same order, or none",
    );
}

#[test]
fn a_proxy_may_come_through_the_file_system() {
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
fn a_domain_is_all_that_a_small_site_says() {
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
        "`--domain a.example` names domains, and nothing in `listen` speaks TLS",
        "leave `listen` out, or add `https://:443` to it",
    );
    check_problem(
        "acme = { domains = ['*.a.example'] }",
        &[],
        "samovar.toml:1: `acme.domains = '*.a.example'` cannot have a wildcard: `*.a.example`",
        "authorities issue these over the DNS alone (DNS-01), which is not spoken here: name each domain, or \
         fetch the certificate with another program and name its file in `tls.certificates`",
    );
    check_problem(
        "",
        &["SAMOVAR_ACME_EAB_KEY=abc"],
        "`SAMOVAR_ACME_EAB_KEY=abc` goes with `acme.eab_id`, and one of them is missing",
        "the authority gives you both; set both, or none",
    );
}
