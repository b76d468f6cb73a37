//! Warm-up requests: requests for the targets of the setting `warmup`, made before the image is
//! taken.

use crate::request_head::Head;
use samovar_channel::WorkerOptions;
use samovar_ring::request::{self, FLAG_APP, RequestHead};
use std::cell::UnsafeCell;
use std::os::unix::ffi::OsStrExt;

struct Global(UnsafeCell<(Vec<Vec<u8>>, usize)>);
// SAFETY: the process has one thread; no reference leaves the functions below.
unsafe impl Sync for Global {}
static REQUESTS: Global = Global(UnsafeCell::new((Vec::new(), 0)));

/// Encodes and keeps the heads of GET requests for the targets of `warmup`. [`next`] returns them.
pub(crate) fn prepare(options: &WorkerOptions) {
    let app = options.app.as_deref().map_or(&[][..], |app| app.as_os_str().as_bytes());
    let root = options.root.as_os_str().as_bytes();
    let heads = options.warmup.iter().filter_map(|target| encode(target, app, root)).collect();
    // SAFETY: see `Global`.
    unsafe { *REQUESTS.0.get() = (heads, 0) };
}

/// Returns the next head, null after the last. It is valid for the life of the process.
pub(crate) fn next() -> *const Head {
    // SAFETY: see `Global`.
    let (heads, at) = unsafe { &mut *REQUESTS.0.get() };
    *at += 1;
    heads.get(*at - 1).map_or(std::ptr::null(), |head| head.as_ptr().cast())
}

fn encode(target: &str, app: &[u8], root: &[u8]) -> Option<Vec<u8>> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let script_name = app.strip_prefix(root).unwrap_or(app);
    let head = RequestHead {
        method: b"GET",
        target: target.as_bytes(),
        query: query.as_bytes(),
        protocol: b"HTTP/1.1",
        script_filename: app,
        script_name,
        document_uri: path.as_bytes(),
        document_root: root,
        server_name: b"localhost",
        server_addr: b"127.0.0.1",
        remote_addr: b"127.0.0.1",
        request_id: b"warm-up",
        server_port: 80,
        flags: FLAG_APP,
        ..RequestHead::default()
    };
    let headers: [(&[u8], &[u8]); 2] = [(b"host", b"localhost"), (b"user-agent", b"Samovar")];
    let mut out = Vec::new();
    request::encode(&head, headers, &mut out).ok()?;
    Some(out)
}
