//! Certificates: selection by name, replacement at run time, and client certificates.

use super::*;
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{eventually, is_root};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const NOBODY: u32 = 65534;

fn subject(url: &str, name: &str) -> String {
    let said = handshake(url, &["-servername", name]);
    let line = said.lines().find_map(|line| line.strip_prefix("subject="));
    line.unwrap_or_else(|| panic!("no certificate: {said}"))
        .rsplit("CN = ")
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn certificate_is_selected_by_server_name() {
    let folder = folder();
    let one = Certificate::own(folder.path(), "one", "DNS:one.example");
    let two = Certificate::own(folder.path(), "two", "DNS:two.example,DNS:*.wild.example");
    let server = start(&one).args(["--tls-certificates", &two.chain.display().to_string()]).start();
    let url = https(&server);
    for (name, expected) in [
        ("one.example", "one"),
        ("two.example", "two"),
        ("TWO.example", "two"),
        ("a.wild.example", "two"),
        ("a.b.wild.example", "one"),
        ("other.example", "one"),
    ] {
        assert_eq!(subject(&url, name), expected, "{name}");
    }
}

#[test]
fn changed_certificate_is_used_without_restart() {
    let folder = folder();
    let (start, own) = secure(folder.path());
    let server = start.start();
    let url = https(&server);
    assert_eq!(subject(&url, "localhost"), "own");
    let next = Certificate::own(folder.path(), "next", NAMES);
    let replace = |by: &Certificate| {
        std::fs::copy(&by.key, &own.key).expect("our own file");
        std::fs::copy(&by.chain, &own.chain).expect("our own file");
    };
    replace(&next);
    // The change is detected without a reload.
    eventually("the new certificate", || (subject(&url, "localhost") == "next").then_some(()));
    let last = Certificate::own(folder.path(), "last", NAMES);
    replace(&last);
    server.reload().expect("it reloads");
    assert_eq!(subject(&url, "localhost"), "last");
    // A certificate that does not match its key is not used; the old one stays in use.
    std::fs::copy(&next.chain, &own.chain).expect("our own file");
    server.wait_for_log("cannot use the changed certificates");
    assert_eq!(subject(&url, "localhost"), "last");
    let said = server.reload().expect_err("it refuses");
    assert!(
        said.contains("hint: use the key that belongs to the file's first certificate"),
        "{said}"
    );
}

/// certbot renews in this way: the new key is readable by root only. A later command gives the
/// server's user access.
#[test]
fn unreadable_new_key_is_used_once_readable() {
    if !is_root() {
        return; // Only root can start a server as another user.
    }
    let folder = folder();
    let may = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("our own file");
    };
    may(folder.path(), 0o755);
    let own = Certificate::own(folder.path(), "own", NAMES);
    may(&own.key, 0o644);
    let site = tempfile::tempdir().expect("a folder");
    may(site.path(), 0o755);
    std::fs::write(site.path().join("index.php"), "<?php echo 'index';").expect("our own file");
    let args = ["--listen", "https://127.0.0.1:0", "--tls-certificates"];
    let start = Server::at(site.path()).as_user(NOBODY).workers(1).args(args);
    let server = start.args([&own.chain.display().to_string()]).start();
    let url = https(&server);
    assert_eq!(subject(&url, "localhost"), "own");
    let next = Certificate::own(folder.path(), "next", NAMES);
    may(&next.key, 0o600);
    std::fs::rename(&next.key, &own.key).expect("our own file");
    std::fs::rename(&next.chain, &own.chain).expect("our own file");
    server.wait_for_log("cannot use the changed certificates");
    assert_eq!(subject(&url, "localhost"), "own");
    may(&own.key, 0o644);
    eventually("the new certificate", || (subject(&url, "localhost") == "next").then_some(()));
}

#[test]
fn unusable_certificate_prevents_start_with_hint() {
    let folder = folder();
    let (_, own) = secure(folder.path());
    let other = Certificate::own(folder.path(), "other", NAMES);
    let keyless = folder.path().join("keyless.pem");
    std::fs::copy(&own.chain, &keyless).expect("our own file");
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").expect("our own file");
    let (own, keyless) = (own.chain.display().to_string(), keyless.display().to_string());
    let key = other.key.display().to_string();
    for (args, said) in [
        (["--tls-certificates", "/no/such.pem", "--tls-hsts", "off"], "cannot read `/no/such.pem`"),
        (["--tls-certificates", &keyless, "--tls-hsts", "off"], "no private key found"),
        (
            ["--tls-certificates", &empty.display().to_string(), "--tls-hsts", "off"],
            "no certificate",
        ),
        (["--tls-certificates", &own, "--tls-keys", &key], "keys may not be consistent"),
    ] {
        let start = Server::app("edge").args(["--listen", "https://127.0.0.1:0"]);
        let (code, log) = start.args(args).refuse();
        assert!(code == Some(1) && log.contains("hint: "), "{log}");
        assert!(log.contains(said) || args[2] == "--tls-keys", "{args:?}: {log}");
    }
}

/// An expired certificate does not prevent the start, but is logged: otherwise only visitors would
/// notice it.
#[test]
fn expired_certificate_is_logged_and_server_starts() {
    let folder = folder();
    let (_, own) = secure(folder.path());
    let made = |name: &str, extensions: &str| {
        let path = |extension: &str| folder.path().join(format!("{name}.{extension}"));
        std::fs::write(path("ext"), extensions).expect("our own file");
        let run = |args: &[&str]| {
            let done = Command::new("openssl").args(args).current_dir(folder.path()).output();
            let done = done.expect("openssl runs");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        let (request, ending) = (format!("{name}.csr"), format!("{name}.ext"));
        let key = own.key.display().to_string();
        run(&["req", "-new", "-key", &key, "-subj", "/CN=old", "-out", &request]);
        let chain = format!("{name}.pem");
        let mut args = vec!["x509", "-req", "-in", &request, "-signkey", &key, "-days", "-1"];
        args.extend(["-out", &chain]);
        if !extensions.is_empty() {
            args.extend(["-extfile", &ending]);
        }
        run(&args);
        Certificate { chain: path("pem"), key: own.key.clone() }
    };
    let ended = made("ended", "subjectAltName=DNS:localhost");
    let keys = ["--tls-keys", &own.key.display().to_string()];
    let server = start(&ended).args(keys).start();
    server.wait_for_log("clients reject it (hint: renew it");
    assert!(subject(&https(&server), "localhost").ends_with("old"));
    // Also in the other order: a valid certificate is replaced by an expired one.
    let replaced = Certificate { chain: folder.path().join("now.pem"), key: own.key.clone() };
    std::fs::copy(&own.chain, &replaced.chain).expect("our own file");
    let server = start(&replaced).args(keys).start();
    assert!(!server.log().contains("clients reject it"));
    std::fs::copy(&ended.chain, &replaced.chain).expect("our own file");
    server.reload().expect("it reloads");
    server.wait_for_log("now.pem` expired on ");
    // A certificate without extensions cannot contain names, so no client accepts it. The server
    // refuses to start.
    let old = made("old", "");
    let (code, log) = start(&old).args(keys).refuse();
    assert!(code == Some(1) && log.contains("X.509 version 1"), "{log}");
    assert!(log.contains("hint: issue the certificate again with `subjectAltName`"), "{log}");
}

#[test]
fn tls_offers_strong_versions_ciphers_and_valid_staples() {
    let folder = folder();
    let authority = Certificate::own(folder.path(), "authority", "DNS:authority");
    let leaf = Certificate::signed(folder.path(), "leaf", NAMES, &authority);
    authority.vouch_for(&leaf, folder.path());
    let server = start(&leaf).start();
    let url = https(&server);
    let speaks = |args: &[&str]| handshake(&url, args).contains("Cipher is ");
    let is_none = |args: &[&str]| handshake(&url, args).contains("Cipher is (NONE)");
    // Clients that request OCSP stapling abort the handshake if the staple is invalid.
    let mut staple = leaf.chain.clone().into_os_string();
    staple.push(".ocsp");
    let good = std::fs::read(&staple).expect("a staple");
    for bad in [&b"-----BEGIN OCSP RESPONSE-----"[..], &[0x30, 3, 0x0a, 1, 6], &good[..40]] {
        std::fs::write(&staple, bad).expect("our own file");
        let said = server.reload().expect_err("it refuses");
        assert!(
            said.contains("not a successful OCSP response") && said.contains("hint: "),
            "{said}"
        );
    }
    assert!(handshake(&url, &["-status"]).contains("OCSP Response Status: successful"));
    std::fs::write(&staple, good).expect("our own file");
    server.reload().expect("it reloads");
    assert!(speaks(&["-tls1_3"]) && !is_none(&["-tls1_3"]));
    assert!(speaks(&["-tls1_2"]) && !is_none(&["-tls1_2"]));
    // openssl offers these versions only at security level 0.
    for old in ["-tls1_1", "-tls1"] {
        assert!(is_none(&[old, "-cipher", "ALL:@SECLEVEL=0"]), "{old}");
    }
    for weak in ["AES128-SHA", "ECDHE-ECDSA-AES128-SHA", "DHE-RSA-AES128-SHA", "NULL", "RC4"] {
        let said = handshake(&url, &["-tls1_2", "-cipher", &format!("{weak}:@SECLEVEL=0")]);
        assert!(said.contains("(NONE)") || said.contains("no cipher match"), "{weak}: {said}");
    }
    let said = handshake(&url, &["-status"]);
    assert!(said.contains("OCSP Response Status: successful"), "{said}");
    assert!(handshake(&url, &["-alpn", "h2,http/1.1"]).contains("ALPN protocol: h2"));
    assert!(handshake(&url, &["-alpn", "http/1.1"]).contains("ALPN protocol: http/1.1"));
    let resumes = folder.path().join("session");
    let session = resumes.display().to_string();
    handshake(&url, &["-tls1_2", "-sess_out", &session]);
    server.reload().expect("it reloads");
    let said = handshake(&url, &["-tls1_2", "-sess_in", &session]);
    assert!(said.contains("Reused, TLSv1.2"), "tickets outlive a reload: {said}");

    let server = start(&leaf).args(["--tls-min-version", "1.3", "--http2", "false"]).start();
    let url = https(&server);
    assert!(handshake(&url, &["-tls1_2"]).contains("(NONE)"));
    assert!(handshake(&url, &["-alpn", "h2,http/1.1"]).contains("ALPN protocol: http/1.1"));
}

#[test]
fn client_certificate_sets_ssl_client_variables() {
    let folder = folder();
    let authority = Certificate::own(folder.path(), "authority", "DNS:authority");
    let client = Certificate::signed(folder.path(), "client", "DNS:client", &authority);
    let stranger = Certificate::own(folder.path(), "stranger", "DNS:client");
    let (own, _) = secure(folder.path());
    let ca = authority.chain.display().to_string();
    let server = own.args(["--tls-client-ca", &ca]).start();
    let url = https(&server);
    let with = |certificate: &Certificate, url: &str, version: &str| {
        let (chain, key) =
            (certificate.chain.display().to_string(), certificate.key.display().to_string());
        curl(&[version, "--cert", &chain, "--key", &key, url])
    };
    for version in ["--http1.1", "--http2"] {
        let found: Value = serde_json::from_str(&with(&client, &url, version).1).expect("JSON");
        assert_eq!(found["SSL_CLIENT_VERIFY"], "SUCCESS");
        assert_eq!(found["SSL_CLIENT_S_DN"], "CN=client,O=Tests\\, Inc.,C=DE");
        assert_eq!(found["SSL_CLIENT_I_DN"], "CN=authority,O=Tests\\, Inc.,C=DE");
        let end = found["SSL_CLIENT_V_END"].as_str().expect("text");
        assert!(end.ends_with(" GMT") && end.len() == 24, "{end}");
        assert!(found["SSL_CLIENT_M_SERIAL"].as_str().is_some_and(|s| s.len() > 8));
        assert_eq!(server_of(&[version, &url])["SSL_CLIENT_VERIFY"], "NONE");
        assert_ne!(with(&stranger, &url, version).0, 0, "nobody knows who signed it");
    }
    let by_function = with(&client, &format!("{url}/?getenv=SSL_CLIENT_S_DN"), "--http2").1;
    assert_eq!(by_function, "\"CN=client,O=Tests\\\\, Inc.,C=DE\"");
    // Headers sent by the client do not become these variables.
    let forged =
        server_of(&["-H", "SSL_CLIENT_VERIFY: SUCCESS", "-H", "SSL-CLIENT-S-DN: CN=x", &url]);
    assert_eq!(
        (&forged["SSL_CLIENT_VERIFY"], &forged["SSL_CLIENT_S_DN"]),
        (&"NONE".into(), &Value::Null)
    );

    let (own, _) = secure(folder.path());
    let must = ["--tls-client-ca", &ca, "--tls-client-certificates", "required"];
    let server = own.args(must).start();
    let url = https(&server);
    assert_ne!(curl(&[&url]).0, 0);
    assert_eq!(with(&client, &url, "--http2").0, 0);
}

#[test]
fn expired_or_foreign_staple_is_not_sent() {
    let folder = folder();
    let authority = Certificate::own(folder.path(), "authority", "DNS:authority");
    let leaf = Certificate::signed(folder.path(), "leaf", NAMES, &authority);
    let other = Certificate::signed(folder.path(), "other", NAMES, &authority);
    for certificate in [&leaf, &other] {
        authority.vouch_for(certificate, folder.path());
    }
    let beside = |certificate: &Certificate| certificate.chain.with_extension("pem.ocsp");
    let good = std::fs::read(beside(&leaf)).expect("a staple");
    // nextUpdate [0] of the response is its last date. Clients check the signature.
    let head = [0xa0, 0x11, 0x18, 0x0f, b'2', b'0'];
    let at =
        good.windows(head.len()).rposition(|window| window == head).expect("a date") + head.len();
    let mut over = good.clone();
    over[at..at + 2].copy_from_slice(b"01");
    let anothers = std::fs::read(beside(&other)).expect("a staple");

    let server = start(&leaf).start();
    let url = https(&server);
    let is_sent = || handshake(&url, &["-status"]).contains("OCSP Response Status: successful");
    assert!(is_sent());
    for (bytes, said) in [
        (over, "leaf.pem.ocsp` expired on 2001-"),
        (anothers, "leaf.pem.ocsp` is for another certificate"),
    ] {
        std::fs::write(beside(&leaf), bytes).expect("our own file");
        server.reload().expect("it goes on without");
        assert!(!is_sent(), "{said}");
        server.wait_for_log(said);
    }
    std::fs::write(beside(&leaf), good).expect("our own file");
    server.reload().expect("it reloads");
    assert!(is_sent());
}

#[test]
fn revoked_client_certificate_is_refused() {
    let folder = folder();
    let authority = Certificate::own(folder.path(), "authority", "DNS:authority");
    let made = |name: &str| Certificate::signed(folder.path(), name, "DNS:client", &authority);
    let (first, second) = (made("first"), made("second"));
    let list = authority.revoke(&[&first], folder.path(), 3600);
    let (ca, crl) = (authority.chain.display().to_string(), list.display().to_string());
    let lists = ["--tls-client-ca", &ca, "--tls-client-crls", &crl];
    let (own, _) = secure(folder.path());
    let server = own.args(lists).start();
    let url = https(&server);
    let goes = |certificate: &Certificate| {
        let (chain, key) =
            (certificate.chain.display().to_string(), certificate.key.display().to_string());
        // A full handshake instead of a resumed session.
        ["--http1.1", "--http2"].map(|version| {
            curl(&[version, "--no-sessionid", "--cert", &chain, "--key", &key, &url]).0 == 0
        })
    };
    assert_eq!((goes(&first), goes(&second)), ([false; 2], [true; 2]));
    assert_eq!(curl(&[&url]).0, 0, "nobody has to have one");
    // A reload activates a new list, also in DER encoding.
    authority.revoke(&[&second], folder.path(), 3600);
    server.reload().expect("it reloads");
    assert_eq!((goes(&first), goes(&second)), ([true; 2], [false; 2]));
    let done = Command::new("openssl")
        .args(["crl", "-in", &crl, "-outform", "DER", "-out", &crl])
        .output()
        .expect("openssl runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    server.reload().expect("it reloads");
    assert_eq!((goes(&first), goes(&second)), ([true; 2], [false; 2]));
    // An invalid list is refused, and the old one stays in use.
    for bad in ["", "-----BEGIN CERTIFICATE-----", "no list"] {
        std::fs::write(&list, bad).expect("our own file");
        let said = server.reload().expect_err("it refuses");
        assert!(
            said.contains("authority.crl`") && said.contains("set `tls.client_crls` to lists"),
            "{said}"
        );
    }
    assert_eq!((goes(&first), goes(&second)), ([true; 2], [false; 2]));
    // An expired list proves nothing: all client certificates of its authority are rejected.
    authority.revoke(&[], folder.path(), 1);
    std::thread::sleep(Duration::from_millis(2100));
    server.reload().expect("it reloads");
    assert_eq!((goes(&first), goes(&second)), ([false; 2], [false; 2]));
    assert_eq!(curl(&[&url]).0, 0);
    server.wait_for_log("clients of its authority are rejected (hint: download");
    // An authority without a revocation list.
    let another = Certificate::own(folder.path(), "another", "DNS:authority");
    let both = [&authority.chain, &another.chain].map(|path| std::fs::read(path).expect("our own"));
    std::fs::write(&authority.chain, both.concat()).expect("our own file");
    server.reload().expect("it reloads");
    server.wait_for_log("no list of the authority `C=DE, O=Tests, Inc., CN=another`");

    let (own, _) = secure(folder.path());
    let (code, log) = own.args(["--tls-client-crls", &crl]).refuse();
    assert!(code.is_some_and(|code| code != 0) && log.contains("needs `tls.client_ca`"), "{log}");
}

#[test]
fn certificate_lifetime_is_in_status_and_metrics() {
    let folder = folder();
    let (_, own) = secure(folder.path());
    let (file, admin) = (own.chain.display().to_string(), ["--admin", "127.0.0.1:0"]);
    let server = start(&own).args(admin).start();
    let status = server.status();
    let seen = &status["certificates"][0];
    assert_eq!((&seen["file"], &seen["domain"]), (&file.as_str().into(), &"localhost".into()));
    assert!(
        seen["names"].as_array().is_some_and(|names| names.contains(&"localhost".into())),
        "{seen}"
    );
    let told = Command::new(samovar_testkit::binary())
        .args(["status", "--control"])
        .arg(server.control())
        .output();
    let told = String::from_utf8_lossy(&told.expect("our own program").stdout).into_owned();
    assert!(told.contains(&format!("(`{file}`): expires in ")), "{told}");
    let admin = status["admin"][0].as_str().and_then(|text| text.parse().ok()).expect("an address");
    let page = Client::connect(admin).request(&Request::get("/metrics")).text();
    let line =
        page.lines().find(|line| line.starts_with("samovar_certificate_days{")).expect("a line");
    let days = line.rsplit(' ').next().and_then(|days| days.parse::<f64>().ok()).expect("a number");
    assert!(line.contains(&format!("file=\"{file}\"")) && (29.9..=30.0).contains(&days), "{line}");
    assert!(!page.contains("samovar_certificate_failures"), "nobody fetches any");
}
