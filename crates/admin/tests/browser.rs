//! The dashboard in Chromium: from the overview to a slow request, live updates, light and dark
//! colours, and a phone.

#[path = "../examples/demo/called.rs"]
mod called;
#[path = "browser/chromium.rs"]
mod chromium;
#[path = "../examples/demo/invented.rs"]
mod invented;

use chromium::Chromium;
use invented::{Server, Shop};
use samovar_admin::{Access, Admin};
use serde_json::json;
use std::net::TcpListener;

/// Number of invented minutes: enough for a comparison with an hour ago.
const MINUTES: u64 = 75;
const PAGES: [&str; 25] = [
    "/",
    "/?range=15m&compare=none",
    "/?range=release",
    "/routes?from=2020-01-01",
    "/routes",
    "/route?name=shop%5Flist",
    "/requests",
    "/errors",
    "/profile",
    "/profile?than=reload",
    "/workers",
    "/workers?range=release",
    "/routes?range=release:v2.4.1&compare=none",
    "/routes?range=previous-release",
    "/image",
    "/boot",
    "/calls",
    "/calls?function=Shop%3A%3Ashow",
    "/calls?show=memory",
    "/queues",
    "/schedules",
    "/queue?name=emails",
    "/consoles",
    "/history",
    "/history?route=shop%5Flist&range=6h",
];
const PHONE_WIDTH: u32 = 390;

struct Dashboard {
    _admin: Admin,
    at: String,
    _folder: tempfile::TempDir,
}

fn start() -> Dashboard {
    start_with(MINUTES)
}

fn start_with(minutes: u64) -> Dashboard {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shop = Shop::open(&folder.path().join("history.sqlite"), minutes).expect("a shop");
    shop.second(samovar_insight::now());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = format!("http://{}", listener.local_addr().expect("bound"));
    let (host, insight) = (Box::new(Server), Some(shop.insight()));
    let admin = Admin::start(vec![listener], Access::default(), host, insight);
    Dashboard { _admin: admin.expect("a thread"), at, _folder: folder }
}

#[test]
fn overview_links_lead_to_a_slow_request() {
    let (dashboard, mut browser) = (start(), Chromium::start());
    browser.go(&dashboard.at, "Routes by CPU time");
    assert_eq!(browser.ask("document.querySelector('h1').innerText"), "Healthy");
    assert_eq!(browser.ask("document.querySelectorAll('figure.chart svg').length"), 4);
    let reload = "[...document.querySelectorAll('svg .event title')]
        .some(title => title.textContent.includes('took over'))";
    assert_eq!(browser.ask(reload), true, "events are drawn");

    browser.follow("nav a[href='/routes']", "p95 change");
    assert_eq!(browser.ask("document.querySelectorAll('tbody tr').length"), 11);
    browser.follow("th a[href*='sort=p99']", "admin_report");
    assert_eq!(browser.ask("document.querySelector('th[aria-sort]').innerText"), "p99 ▼");
    let first = "document.querySelector('tbody th').innerText";
    assert_eq!(browser.ask(first), "admin_report", "the slowest is first");

    browser.follow("tbody th a", "Request duration");
    for text in ["10.0.0.5:5432", "Time per request, by part", "Over time", "Timers"] {
        browser.wait_for_text(text);
    }
    browser.follow("a[href^='/request?id=']", "Timeline");
    for text in ["in the queue", "CPU in PHP", "tcp 10.0.0.5:5432", "to the client"] {
        browser.wait_for_text(text);
    }
    assert_eq!(browser.errors, Vec::<String>::new());
}

/// Without a script, by keyboard: the range is selected by links and a form, and stays.
#[test]
fn selected_range_stays_on_the_way_through_pages() {
    let (dashboard, mut browser) = (start(), Chromium::start());
    browser.go(&dashboard.at, "Routes by CPU time");
    let marked = "document.querySelector('#range [aria-current]').innerText";
    assert_eq!(browser.ask(marked), "1 h");
    browser.follow("#range a[href*='range=15m']", "Routes by CPU time");
    assert_eq!(browser.ask(marked), "15 min");
    browser.follow("nav a[href^='/routes']", "p95 change");
    assert_eq!(browser.ask(marked), "15 min");
    browser.follow("#range a[href*='compare=none']", "p95 change");
    browser.follow("th a[href*='sort=p99']", "admin_report");
    browser.follow("tbody th a", "Request duration");
    assert_eq!(browser.ask(marked), "15 min");
    let address = browser.ask("location.search");
    let address = address.as_str().expect("a query").to_owned();
    assert!(address.contains("range=15m") && address.contains("compare=none"), "{address}");
    // In one step: a live page may replace this part of itself between two.
    browser.ask(
        "document.querySelector('#range summary').click();
         document.querySelector('#range input[name=from]').value = '2026-01-01T00:00:00';
         document.querySelector('#range form').requestSubmit()",
    );
    browser.wait_for("location.search.includes('from=2026-01-01T00%3A00')");
    browser.wait_for("document.querySelector('#range details[open] input[name=from]')");
    assert_eq!(browser.ask("new URLSearchParams(location.search).get('name')"), "admin_report");
    assert_eq!(browser.errors, Vec::<String>::new());
    // The browser reports the status 400 of this page as an error.
    browser.go(&format!("{}/routes?range=2h", dashboard.at), "Invalid time range");
    browser.wait_for_text("Use one of 15m");
}

#[test]
fn release_is_selected_by_name() {
    let (dashboard, mut browser) = (start(), Chromium::start());
    browser.go(&format!("{}/workers", dashboard.at), "Busy workers");
    browser.ask("document.querySelector('#range .releases summary').click()");
    let labels = "[...document.querySelectorAll('#range .releases li a')].map(a => a.innerText)";
    assert_eq!(browser.ask(labels), json!(["v2.5.0-rc.1+8c1f2e0", "v2.4.1"]));
    browser.follow("#range .releases li:last-child a", "Busy workers");
    let marked = "document.querySelector('#range .releases [aria-current]').innerText";
    assert_eq!(browser.ask(marked), "v2.4.1");
    browser.wait_for_text(", release v2.4.1");
    assert_eq!(browser.ask("document.querySelectorAll('figure.chart svg').length"), 4);
    browser.follow("nav a[href^='/routes']", "p95 change");
    assert_eq!(browser.ask(marked), "v2.4.1", "links keep it");
    browser.follow("#range .releases li:first-child a[href*='compare=']", "p95 change");
    let address = browser.ask("new URLSearchParams(location.search).get('range')");
    assert_eq!(address, "release:v2.4.1");
    let compared = browser.ask("new URLSearchParams(location.search).get('compare')");
    assert_eq!(compared, "release:v2.5.0-rc.1+8c1f2e0");
    browser.follow("#range a[href*='range=previous']", "p95 change");
    browser.wait_for_text(", release v2.4.1");
    assert_eq!(browser.errors, Vec::<String>::new());
}

#[test]
fn flame_graph_zooms_and_marks_functions() {
    let (dashboard, mut browser) = (start(), Chromium::start());
    browser.go(&format!("{}/profile?generation=3", dashboard.at), "Functions");
    assert_eq!(browser.ask("document.querySelectorAll('.flame svg > g').length"), 11);
    let said = "document.querySelector('#said').innerText";
    browser.wait_for("!document.querySelector('#tools').hidden");
    let width = |name: &str| {
        format!(
            "Math.round(document.querySelector('.flame g[data-name=\"{name}\"] rect')\
             .getAttribute('width'))"
        )
    };
    let narrow = browser.ask(&width("Prices::discounts")).as_u64().expect("a number");
    assert!((300..400).contains(&narrow), "{narrow}");
    let click = "document.querySelector('.flame g[data-name=\"Prices::discounts\"]')
        .dispatchEvent(new MouseEvent('click', {bubbles: true}))";
    browser.ask(click);
    assert_eq!(browser.ask(&width("Prices::discounts")), 1200, "it fills the picture");
    assert_eq!(browser.ask(&width("Kernel::handle")), 1200, "and so does who has called it");
    let hidden =
        "document.querySelector('.flame g[data-name=\"Router::match\"]').style.display === 'none'";
    assert_eq!(browser.ask(hidden), true);
    let told = browser.ask(said);
    assert!(told.as_str().is_some_and(|told| told.starts_with("Prices::discounts — ")), "{told}");
    browser.click("#reset");
    assert_eq!(browser.ask(&width("Prices::discounts")), narrow);
    let find = "(find => { find.value = 'twig'; find.dispatchEvent(new Event('input')); })\
                (document.querySelector('#find'))";
    browser.ask(find);
    assert_eq!(browser.ask("document.querySelectorAll('.flame .found').length"), 2);
    let told = browser.ask(said);
    assert!(told.as_str().is_some_and(|told| told.contains("25.00 % in 2 boxes")), "{told}");
    // Compared with the previous generation, one function became slower.
    browser.go(&format!("{}/profile", dashboard.at), "Functions");
    browser.ask("document.querySelector('select[name=than]').value = 'reload'");
    browser.click(".ask button");
    browser.wait_for_text("Functions by change");
    assert_eq!(browser.ask("document.querySelector('tbody th').innerText"), "Prices::discounts");
    let fill = browser.ask(
        "document.querySelector('.flame g[data-name=\"Prices::discounts\"] rect')\
         .getAttribute('fill')",
    );
    assert!(fill.as_str().is_some_and(|fill| fill.starts_with("hsl(5,")), "red: {fill}");
    assert_eq!(browser.errors, Vec::<String>::new());
}

fn picture(browser: &mut Chromium) -> usize {
    let picture = browser.tell("Page.captureScreenshot", &json!({"format": "png"}));
    picture["data"].as_str().map_or(0, str::len)
}

#[test]
fn calls_page_sorts_and_links_functions() {
    let (dashboard, mut browser) = (start(), Chromium::start());
    browser.go(&dashboard.at, "Routes by CPU time");
    browser.follow("nav a[href='/calls']", "All figures are per request");
    assert_eq!(browser.ask("document.querySelector('h1').innerText"), "Calls of shop_show");
    let first = "document.querySelector('tbody th').innerText";
    assert_eq!(browser.ask(first), "PDOStatement::execute", "what takes most itself");
    browser.follow("a[href*='show=memory']", "Functions by allocated memory");
    let boxes = "document.querySelectorAll('.flame svg g').length";
    assert_eq!(browser.ask(boxes), 8, "a box for each function, and one for all");
    browser.follow("a[href*='by=own']", "All figures are per request");
    browser.follow("th a[href*='by=calls']", "All figures are per request");
    assert_eq!(browser.ask("document.querySelector('th[aria-sort]').innerText"), "Calls ▼");
    assert_eq!(browser.ask(first), "Twig::escape", "310 times");
    browser.follow("th a[href*='by=total']", "All figures are per request");
    assert_eq!(browser.ask(first), "(request)");
    assert!(picture(&mut browser) > 10_000);
    // Opens a function, then one of its callees.
    browser.follow("th a[href*='function=Shop']", "Called by");
    assert_eq!(
        browser.ask("document.querySelector('#callers tbody th').innerText"),
        "Kernel::handle"
    );
    assert_eq!(browser.ask("document.querySelectorAll('#callees tbody tr').length"), 3);
    browser.follow("#callees a[href*='function=Twig%3A%3Arender']", "Called by");
    assert_eq!(
        browser.ask("document.querySelector('#callees tbody th').innerText"),
        "Twig::escape"
    );
    assert!(picture(&mut browser) > 10_000);
    browser.follow("a[href*='by=own']", "All figures are per request");
    assert_eq!(browser.errors, Vec::<String>::new());
}

#[test]
fn boot_page_shows_cost_of_boot() {
    let (dashboard, mut browser) = (start(), Chromium::start());
    browser.go(&dashboard.at, "Routes by CPU time");
    browser.follow("nav a[href='/boot']", "Time by part");
    let text = |of: &str| format!("document.querySelector('{of}').innerText");
    let advised = browser.ask(&text("#advice pre"));
    assert_eq!(advised, "warmup = [\"/\", \"/cart\", \"/c/kettles\"]");
    assert_eq!(browser.ask("document.querySelectorAll('#parts tbody tr').length"), 6);
    let first = browser.ask(&text("#files tbody th"));
    assert!(first.as_str().is_some_and(|name| name.ends_with("ProdContainer.php")), "{first}");
    assert_eq!(browser.ask(&text("#lazy tbody td")), "App\\Cart\\Cart");
    assert!(picture(&mut browser) > 10_000);
    assert_eq!(browser.errors, Vec::<String>::new());
}

#[test]
fn live_page_updates_until_paused() {
    let (dashboard, mut browser) = (start(), Chromium::start());
    browser.go(&dashboard.at, "Routes by CPU time");
    browser.wait_for("document.querySelector('#live[data-state=live]')");
    // An update replaces the content of the page.
    browser.ask("document.querySelector('#tiles dd').innerText = 'stale'");
    browser.wait_for("document.querySelector('#tiles dd').innerText !== 'stale'");
    browser.click("#live button");
    assert_eq!(browser.ask("document.querySelector('#live').dataset.state"), "paused");
    assert_eq!(browser.errors, Vec::<String>::new());
    // Without the script the page works, except for live updates.
    browser.tell("Network.enable", &json!({}));
    browser.tell("Network.setBlockedURLs", &json!({"urls": ["*live.js"]}));
    browser.go(&format!("{}/routes", dashboard.at), "Reload page");
    assert_eq!(browser.ask("document.querySelectorAll('tbody tr').length"), 11);
    assert_eq!(browser.ask("document.querySelector('#live').children.length"), 0);
}

#[test]
fn pages_fit_a_phone_and_follow_colour_scheme() {
    let (dashboard, mut browser) = (start(), Chromium::start());
    let phone =
        json!({"width": PHONE_WIDTH, "height": 844, "deviceScaleFactor": 1, "mobile": true});
    browser.tell("Emulation.setDeviceMetricsOverride", &phone);
    for page in PAGES {
        browser.go(&format!("{}{page}", dashboard.at), "All times are UTC");
        let width = browser.ask("document.documentElement.scrollWidth");
        assert_eq!(width, PHONE_WIDTH, "{page} is as wide as the phone");
        let unnamed = "[...document.querySelectorAll('svg:not([aria-hidden])')]
            .filter(svg => svg.getAttribute('role') !== 'img' || !svg.getAttribute('aria-label'))
            .length";
        assert_eq!(browser.ask(unnamed), 0, "{page}: charts are named");
        let headless = "[...document.querySelectorAll('table')]
            .filter(table => !table.querySelector('thead th[scope=col]')).length";
        assert_eq!(browser.ask(headless), 0, "{page}: tables have headings");
        // A column of names has room for a word, and no list is endless.
        let narrow = "[...document.querySelectorAll('td .name, td.name, th .name')]
            .map(name => name.closest('td, th'))
            .filter(cell => cell.clientWidth > 0 && cell.clientWidth < 120
                && !cell.matches('.wait')).length";
        assert_eq!(browser.ask(narrow), 0, "{page}: names have room");
        let height = browser.ask("document.documentElement.scrollHeight");
        assert!(height.as_u64().is_some_and(|height| height < 9_000), "{page}: {height}");
        let row = "Math.max(0, ...[...document.querySelectorAll('table.requests tbody tr')]
            .map(row => row.clientHeight))";
        let row = browser.ask(row);
        assert!(row.as_u64().is_some_and(|height| height < 80), "{page}: rows of {row} px");
    }
    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        browser.tell("Emulation.setEmulatedMedia", &json!({"features": features}));
        grounds.push(browser.ask("getComputedStyle(document.body).backgroundColor"));
        assert!(picture(&mut browser) > 10_000);
    }
    assert_ne!(grounds[0], grounds[1]);
    // The keyboard's first stop is the link that skips the menu.
    for kind in ["rawKeyDown", "keyUp"] {
        let key = json!({"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9});
        browser.tell("Input.dispatchKeyEvent", &key);
    }
    assert_eq!(browser.ask("document.activeElement.className"), "skip");
    assert_eq!(browser.errors, Vec::<String>::new());
}

/// (name, page, text that shows that the page is complete, width, height, colours)
const PICTURES: [(&str, &str, &str, u32, u32, &str); 8] = [
    ("overview", "/", "Routes by CPU time", 1180, 1060, "light"),
    ("route", "/route?name=shop%5Flist", "Request duration", 1180, 1060, "light"),
    ("request", "", "Timeline", 1180, 860, "dark"),
    ("routes", "/routes", "p95 change", 1180, 620, "dark"),
    ("profile", "/profile?than=reload", "Functions by change", 1180, 760, "light"),
    ("boot", "/boot", "Time by part", 1180, 900, "light"),
    ("phone", "/", "Routes by CPU time", PHONE_WIDTH, 844, "dark"),
    ("phone-route", "/route?name=shop%5Flist", "Request duration", PHONE_WIDTH, 844, "light"),
];

/// Makes the pictures of docs/guide/dashboard.md in the folder that the environment variable
/// `PICTURES` names.
#[test]
#[ignore = "writes pictures: make pictures"]
fn pictures_of_the_guide_are_written() {
    let folder = std::env::var_os("PICTURES").expect("PICTURES names a folder");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let (dashboard, mut browser) = (start_with(invented::MINUTES), Chromium::start());
    browser.go(&format!("{}/route?name=shop%5Flist", dashboard.at), "Request duration");
    browser.wait_for("document.querySelector('a[href^=\"/request?id=\"]')");
    let slow =
        browser.ask("document.querySelector('a[href^=\"/request?id=\"]').getAttribute('href')");
    browser.tell("Emulation.setScrollbarsHidden", &json!({"hidden": true}));
    for (name, page, shown, width, height, scheme) in PICTURES {
        let page = if page.is_empty() { slow.as_str().expect("a slow request") } else { page };
        let is_phone = width == PHONE_WIDTH;
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        browser.tell("Emulation.setDeviceMetricsOverride", &size);
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        browser.tell("Emulation.setEmulatedMedia", &json!({"features": features}));
        browser.go(&format!("{}{page}", dashboard.at), shown);
        let picture = browser.tell("Page.captureScreenshot", &json!({"format": "png"}));
        let bytes = decoded(picture["data"].as_str().expect("a picture"));
        std::fs::write(folder.join(format!("dashboard-{name}.png")), bytes).expect("a file");
    }
    assert_eq!(browser.errors, Vec::<String>::new());
}

/// Decodes base64 (RFC 4648).
fn decoded(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |b: u8| digits.iter().position(|d| *d == b).expect("base 64") as u32;
    let whole: Vec<_> = text.bytes().filter(|b| *b != b'=').map(value).collect();
    let bytes = whole.chunks(4).flat_map(|four| {
        let bits = (0..4).fold(0, |bits, at| bits << 6 | four.get(at).copied().unwrap_or(0));
        bits.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}
