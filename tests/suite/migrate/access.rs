//! Paths whose access the other server controls are denied by the converted settings: `samovar
//! routes` says the response for each of them.

use super::{migrate, text};
use samovar_testkit::{binary, family};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A configuration, paths that must be denied, and paths that must not be.
struct Case {
    file: &'static str,
    text: &'static str,
    denied: &'static [&'static str],
    open: &'static [&'static str],
}

const PHP: &str = "location / { try_files $uri /index.php$is_args$args; }
    location ~ \\.php$ { include fastcgi_params; fastcgi_pass unix:/run/php/a.sock; }";

const CASES: &[Case] = &[
    // Nested locations have the control of the outer one, other locations do not.
    Case {
        file: "nginx.conf",
        text: "server { listen 80; root FOLDER/public; PHP
            location /admin/ {
                auth_basic x;
                location /admin/css/ { expires 1d; }
                location /admin/open/ { auth_basic off; expires 1d; }
            }
            location /admin/help/ { expires 1d; }
            location /intern/ { allow 10.0.0.0/8; deny all; }
            location /blocked/ { deny 10.0.0.1; expires 1d; }
            location ~ ^/x/(?!y) { auth_request /auth; }
            location = /one.html { satisfy any; auth_basic x; }
            location /code/ { access_by_lua_block { ngx.exit(403) } }
            location /link/ { secure_link $arg_m; if ($secure_link = \"\") { return 403; } }
            location /cert/ { if ($ssl_client_verify != SUCCESS) { return 403; } }
            location /proxy/ { if ($http_x_secret != abc) { return 403; } expires 1d; }
            location /host/ { if ($host != a.example) { return 404; } expires 1d; } }",
        denied: &[
            "/admin/",
            "/admin/x.php",
            "/admin/css/a.css",
            "/intern/a",
            "/x/b",
            "/one.html",
            "/code/a",
            "/link/a",
            "/cert/a",
            "/proxy/a",
        ],
        open: &["/", "/a", "/admin/open/a", "/admin/help/a", "/blocked/a", "/host/a"],
    },
    // A control of the server, and locations without it.
    Case {
        file: "nginx.conf",
        text: "http { auth_basic x; server { listen 80; root FOLDER/public; PHP
            location /hook/ { auth_basic off; expires 1d; }
            location /media/ { expires 1d; } } }",
        denied: &["/", "/a", "/index.php", "/media/a.css"],
        open: &["/hook/a"],
    },
    // `/` is protected; locations next to it are not.
    Case {
        file: "nginx.conf",
        text: "server { listen 80; root FOLDER/public;
            location / { auth_basic x; try_files $uri /index.php; }
            location ~ ^/(index|ping)\\.php$ { fastcgi_pass unix:/run/php/a.sock; }
            location /media/ { expires 1d; } }",
        denied: &["/", "/a", "/index.php"],
        open: &["/media/a.css"],
    },
    // The front controller is protected by the location of the scripts, or a named one.
    Case {
        file: "nginx.conf",
        text: "server { listen 80; root FOLDER/public;
            location / { try_files $uri /index.php; }
            location ~ \\.php$ { auth_basic x; fastcgi_pass unix:/run/php/a.sock; } }",
        denied: &["/", "/a", "/index.php", "/other.php"],
        open: &[],
    },
    Case {
        file: "nginx.conf",
        text: "server { listen 80; root FOLDER/public;
            location / { try_files $uri @app; }
            location @app { auth_basic x; fastcgi_pass unix:/run/php/a.sock;
                fastcgi_param SCRIPT_FILENAME $document_root/index.php; } }",
        denied: &["/a"],
        open: &[],
    },
    // One script is protected.
    Case {
        file: "nginx.conf",
        text: "server { listen 80; root FOLDER/public; PHP
            location = /login.php { allow 10.0.0.1; deny all;
                fastcgi_pass unix:/run/php/a.sock; } }",
        denied: &["/login.php"],
        open: &["/", "/a", "/other.php"],
    },
    // Files that only PHP may send.
    Case {
        file: "nginx.conf",
        text: "server { listen 80; root FOLDER/public; PHP
            location /files/ { internal; }
            location ~ \\.secret$ { internal; } }",
        denied: &["/files/a.pdf", "/a.secret"],
        open: &["/", "/a"],
    },
    // Keys that a denied table cannot have.
    Case {
        file: "nginx.conf",
        text: "server { listen 80; root FOLDER/public; PHP
            location /a/ { auth_basic x; try_files $uri /index.php; index a.html;
                client_max_body_size 1m; fastcgi_param A b; }
            location /b/ { deny all; return 404; }
            location /files/ { auth_basic x; alias FOLDER/public/files/; }
            location ~ \\.(php|sql|bak)$ { deny all; }
            location ~ /(\\.|wp-config.php|license.txt) { deny all; } }",
        denied: &["/a/x", "/b/x", "/files/a", "/a.sql", "/wp-config.php", "/license.txt"],
        open: &["/", "/c"],
    },
    // Locations in locations, and more specific ones than an open one.
    Case {
        file: "nginx.conf",
        text: "server { listen 80; root FOLDER/public; PHP
            location ^~ /wp-admin/ { auth_basic x;
                location ~ \\.php$ { fastcgi_pass unix:/run/php/a.sock; } }
            location /old/ { auth_basic x;
                location ~ ^/old/.*\\.php$ { fastcgi_pass unix:/run/php/b.sock; } } }",
        denied: &["/wp-admin/", "/wp-admin/a.php", "/old/a.php", "/old/b"],
        open: &["/", "/a", "/b.php"],
    },
    Case {
        file: "nginx.conf",
        text: "server { listen 80; root FOLDER/public; auth_basic x; PHP
            location /pub/ { auth_basic off; expires 1d;
                location ~ \\.css$ { expires 2d; } }
            location /pub/priv/ { expires 1d; }
            location = /pub/s.html { expires 1d; }
            location ~ \\.sql$ { expires 1d; } }",
        denied: &["/pub/priv/a", "/pub/s.html", "/pub/a.sql", "/x.css", "/a", "/x.php"],
        open: &["/pub/a", "/pub/a.css"],
    },
    // Requests for unknown hosts reach the first site.
    Case {
        file: "nginx.conf",
        text: "server { listen 80; server_name a.example; root FOLDER/public; PHP
                location /admin/ { auth_basic x; } }
            server { listen 80; server_name b.example; root FOLDER/public;
                location / { try_files $uri /index.php; }
                location ~ \\.php$ { fastcgi_pass unix:/run/php/b.sock; } }",
        denied: &["http://a.example/admin/", "http://x.example/admin/"],
        open: &["http://b.example/admin/", "http://x.example/"],
    },
    Case {
        file: ".htaccess",
        text: "RewriteEngine On\nRewriteCond %{REMOTE_ADDR} !^10\\.\n\
               RewriteRule ^login\\.php$ - [F]\nRewriteRule ^notes$ - [forbidden]\n\
               RewriteRule ^gone$ - [R=404]\nRedirect 403 /secret\n\
               RedirectMatch 403 ^/vendor/\n\
               <Files b.html>\nOrder allow,deny\n</Files>\n\
               <Files a.html>\nRequire all granted\n</Files>\n\
               <FilesMatch \"\\.html$\">\nRequire all denied\n</FilesMatch>\n\
               <Files c.html>\nRequire all granted\n</Files>\nRewriteRule ^ index.php [L]\n",
        denied: &[
            "/login.php",
            "/notes",
            "/secret",
            "/secret/a",
            "/vendor/a",
            "/a.html",
            "/b.html",
            "/d.html",
        ],
        open: &["/", "/a", "/c.html", "/gone"],
    },
    Case {
        file: ".htaccess",
        text: "<FilesMatch \"\\.php$\">\nRequire valid-user\n</FilesMatch>\n\
               RewriteEngine On\nRewriteRule ^ index.php [L]\n",
        denied: &["/", "/a", "/index.php"],
        open: &[],
    },
    Case {
        file: ".htaccess",
        text: "AuthType Basic\nRequire valid-user\nRewriteEngine On\n\
               RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ index.php [L]\n\
               <Files \"open.css\">\nRequire all granted\n</Files>\n",
        denied: &["/", "/a", "/index.php"],
        open: &["/open.css"],
    },
    Case {
        file: ".htaccess",
        text: "RewriteEngine On\nRewriteRule ^ index.php [L]\n\
               <Files \"login.php\">\nOrder deny,allow\nDeny from all\n\
               Allow from 10.0.0.1\n</Files>\n\
               <FilesMatch \"\\.pdf$\">\n<RequireAny>\nRequire ip 10.0.0.0/8\n\
               Require host a.example\n</RequireAny>\n</FilesMatch>\n\
               <Files \"x.html\">\nRequire not ip 10.0.0.1\n</Files>\n",
        denied: &["/login.php", "/a/b.pdf"],
        open: &["/", "/a", "/x.html"],
    },
    Case {
        file: ".htaccess",
        text: "Order allow,deny\nAllow from 10.0.0.0/8\nRewriteRule ^ index.php [L]\n",
        denied: &["/", "/a"],
        open: &[],
    },
    Case {
        file: "Caddyfile",
        text: ":80 {\nroot * FOLDER/public\nphp_server\nbasic_auth /admin/* {\n a b\n}\n\
               handle /intern/* {\n forward_auth 127.0.0.1:9000 {\n uri /a\n }\n}\n\
               @outside {\n path /office/*\n not remote_ip 10.0.0.0/8\n}\nrespond @outside 403\n\
               @bots header User-Agent *bot*\nrespond @bots 403\n}\n",
        denied: &["/admin/", "/admin/a.css", "/intern/a", "/office/a"],
        open: &["/", "/a"],
    },
    // Blocks limit the matchers inside them, and remove prefixes from paths.
    Case {
        file: "Caddyfile",
        text: ":80 {\nroot * FOLDER/public\nphp_server\n\
               @robots header User-Agent *bot*\n\
               handle_path /api/* {\n basic_auth /private/* {\n a b\n }\n}\n\
               handle /v2/* {\n uri strip_prefix /v2\n basic_auth /keys/* {\n a b\n }\n}\n\
               handle /files/* {\n @scripts path *.exe\n respond @scripts 403\n\
               \n respond /files/closed/* 403\n respond @robots 403\n}\n\
               handle /never/* {\n respond /other/* 403\n}\n\
               handle /odd* {\n basic_auth *.pdf {\n a b\n }\n}\n\
               error /old/* 403\n}\n",
        denied: &[
            "/api/private/a",
            "/v2/keys/a",
            "/files/a/b.exe",
            "/files/closed/a",
            "/odd/a.pdf",
            "/old/a",
        ],
        open: &["/", "/private/a", "/keys/a", "/b.exe", "/other/a", "/api/a", "/files/a.pdf"],
    },
    Case {
        file: "Caddyfile",
        text: ":80 {\nroot * FOLDER/public\nphp_server\nbasic_auth /assets/secret/* {\n a b\n}\n\
               @rest not path /index.php /assets/* /\nrespond @rest 403\n}\n",
        denied: &["/a", "/.env", "/assets/secret/a"],
        open: &["/index.php", "/assets/a.css"],
    },
    Case {
        file: "Caddyfile",
        text: ":80 {\nroot * FOLDER/public\nphp_server\n\
               @one {\n path /a/*\n not path /a/open/*\n}\nrespond @one 403\n\
               @two not header X-Key abc\nrespond @two 401\n\
               @three expression path('/c/*')\nhandle @three {\n abort\n}\n}\n",
        denied: &["/a/x", "/b/x", "/c/x"],
        open: &[],
    },
    // Unknown hosts reach the main site.
    Case {
        file: "Caddyfile",
        text: "http://a.example {\nroot * FOLDER/public\nphp_server\n\
               basic_auth /admin/* {\n a b\n}\n}\n\
               http://b.example {\nroot * FOLDER/public/files\nphp_server\n}\n",
        denied: &["/admin/a"],
        open: &["/", "/a"],
    },
    Case {
        file: "Caddyfile",
        text: ":80 {\nroot * FOLDER/public\nphp_server\ntls a.pem a.key {\n client_auth {\n \
               mode require_and_verify\n }\n}\n}\n",
        denied: &["/", "/a"],
        open: &[],
    },
];

/// The line `response …` of `samovar routes`.
fn response(folder: &Path, path: &str) -> String {
    let mut command = Command::new(binary());
    command.args(["routes", "--allow-root", "--config", "samovar.toml", path]).current_dir(folder);
    command.env_clear().env(family::RUN, family::run());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let output = command.output().expect("the binary runs");
    let stdout = text(&output.stdout);
    let line = stdout.lines().find_map(|line| line.strip_prefix("response "));
    line.unwrap_or_else(|| panic!("{path}: {stdout}{}", text(&output.stderr))).to_owned()
}

#[test]
fn paths_with_control_of_access_are_denied_by_migrate_from() {
    for Case { file, text: sample, denied, open } in CASES {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        fs::create_dir(path.join("public")).expect("our own folder");
        fs::create_dir(path.join("public/files")).expect("our own folder");
        fs::write(path.join("public/index.php"), "<?php echo 1;").expect("our own file");
        for name in ["a.pem", "a.key"] {
            fs::write(path.join(name), "").expect("our own file");
        }
        let sample = sample.replace("PHP\n", &format!("{PHP}\n"));
        let sample = sample.replace("FOLDER", &path.display().to_string());
        let source = if *file == ".htaccess" { "public/.htaccess" } else { file };
        fs::write(path.join(source), &sample).expect("our own file");
        let output = migrate(path, &["from", source, "--output", "samovar.toml"]);
        assert_eq!(output.status.code(), Some(0), "{sample}: {}", text(&output.stderr));
        let toml = fs::read_to_string(path.join("samovar.toml")).expect("the written file");
        // The certificates are no certificates: the routes are those without TLS.
        let toml: Vec<&str> = toml.lines().filter(|line| !line.contains(".pem\"")).collect();
        let toml: Vec<&str> = toml.into_iter().filter(|line| !line.contains(".key\"")).collect();
        let toml = toml.join("\n").replace("https://", "");
        fs::write(path.join("samovar.toml"), &toml).expect("our own file");
        for url in *denied {
            let response = response(path, url);
            assert!(response.starts_with("403"), "{url}: {response}\n{sample}\n{toml}");
        }
        for url in *open {
            let response = response(path, url);
            assert!(!response.starts_with("403"), "{url}: {response}\n{sample}\n{toml}");
        }
        let notes = text(&output.stderr);
        assert!(notes.contains("is denied") || notes.contains("403"), "{sample}: {notes}");
    }
}

#[test]
fn required_client_certificates_are_required_by_migrate_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for (first, second) in [("on", "optional"), ("optional", "on")] {
        let text_of = |verify: &str, name: &str| {
            format!(
                "server {{ listen 443 ssl; server_name {name}; root /var/www; ssl_certificate a.pem;
                ssl_certificate_key a.key; ssl_client_certificate ca.pem;
                ssl_verify_client {verify};
                location ~ \\.php$ {{ fastcgi_pass unix:/run/php/a.sock; }} }}\n"
            )
        };
        let sample = text_of(first, "a.example") + &text_of(second, "b.example");
        fs::write(path.join("nginx.conf"), sample).expect("our own file");
        let output = migrate(path, &["from", "nginx.conf", "--json"]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let settings = document["settings"].as_array().expect("settings");
        let required = settings.iter().find(|setting| setting["key"] == "tls.client_certificates");
        assert_eq!(required.expect("a setting")["value"], "\"required\"", "{document}");
    }
}
