//! Processes that read and publish, and are killed at any instruction. No process may see a torn
//! value or reused memory, and the values seen by dead processes must become free space again.
//!
//! `SAMOVAR_PUBLISHED_KILLS` makes it longer; `SAMOVAR_PUBLISHED_SEED` repeats a run.
#![allow(unsafe_code)] // fork, kill, and reads of memory in PHP's layout.
#![allow(clippy::unwrap_used, missing_docs)]

use samovar_channel::RequestEnds;
use samovar_published::encoding::{INT, LIST};
use samovar_published::{
    Asked, Found, Limits, Outgoing, PublishError, Publisher, Reader, Region, Service, ask, layout,
};
use samovar_shared::{Client, Shared};
use std::os::fd::AsFd;

/// Number of processes at a time.
const PROCESSES: usize = 4;
/// So small that free space is reused at once.
const BYTES: u64 = 96 << 10;
const VALUE_BYTES: u64 = 16 << 10;
const ELEMENTS_MAX: u64 = 600;
const NAMES: [&[u8]; 2] = [b"one", b"two"];

fn main() {
    values_survive_killed_processes();
    values_without_room_are_rejected();
    values_read_by_boot_are_held_by_image_only();
    region_is_not_writable_for_readers();
    garbage_messages_harm_no_process();
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A list of `count` elements, each of which is `count`.
fn encoded(count: u64) -> Vec<u8> {
    let mut bytes = vec![LIST];
    bytes.extend((count as u32).to_ne_bytes());
    bytes.extend(count.to_ne_bytes());
    for _ in 0..count {
        bytes.push(INT);
        bytes.extend(count.to_ne_bytes());
    }
    bytes
}

/// The value of all elements of a list, which must equal its length.
fn looked_at(found: Found) -> u64 {
    let word = |at: u64| {
        let at = std::ptr::with_exposed_provenance::<u64>(at as usize);
        // SAFETY: a published value stays in place while it is read.
        unsafe { at.read_volatile() }
    };
    let (data, counts) = (word(found.word + 16), word(found.word + 24));
    let count = counts & 0xffff_ffff;
    assert_eq!(counts >> 32, count, "nNumUsed and nNumOfElements");
    for index in 0..count {
        assert_eq!(word(data + index * layout::VALUE_BYTES as u64), count, "a torn list");
    }
    count
}

/// A process of the test, with the same inheritance as a worker.
fn child(publisher: &Publisher, shared: &Shared, ends: &RequestEnds, seed: u64) -> i32 {
    let region = publisher.file().try_clone_to_owned().unwrap();
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            let life = std::panic::AssertUnwindSafe(|| {
                let base = region_base(publisher);
                // SAFETY: the copy of the server's mapping, which this process no longer uses.
                unsafe { libc::munmap(base.0, base.1) };
                let reader = Reader::new(Region::attach(region).unwrap());
                read_and_publish(reader, &Client::new(shared.clone(), 1), ends, seed);
            });
            let status = i32::from(std::panic::catch_unwind(life).is_err());
            // SAFETY: ends the child.
            unsafe { libc::_exit(status) }
        }
        -1 => panic!("cannot fork: {}", std::io::Error::last_os_error()),
        pid => pid,
    }
}

/// Address and length of the region, from the kernel.
fn region_base(_: &Publisher) -> (*mut libc::c_void, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains("samovar-published")).unwrap();
    let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
    let at = |text| usize::from_str_radix(text, 16).unwrap();
    (std::ptr::without_provenance_mut(at(from)), at(to) - at(from))
}

fn read_and_publish(mut reader: Reader, client: &Client, ends: &RequestEnds, seed: u64) -> ! {
    let mut random = fastrand::Rng::with_seed(seed);
    loop {
        // A request: its view must not change until its end.
        let name = NAMES[random.usize(0..2)];
        let find = |reader: &mut Reader| reader.find(client, name, hash(name)).unwrap();
        let first = find(&mut reader).map(looked_at);
        for _ in 0..random.u8(0..20) {
            assert_eq!(find(&mut reader).map(looked_at), first, "another one within a request");
        }
        if random.u8(0..4) == 0 {
            let own = random.u64(1..ELEMENTS_MAX);
            if publish(ends, name, &encoded(own)) {
                reader.look_again();
                // Other processes publish, too.
                find(&mut reader).map(looked_at);
            }
        }
        reader.end_request(client, true);
    }
}

/// PHP's hash of a name.
fn hash(name: &[u8]) -> u64 {
    let hash = name.iter().fold(5381_u64, |hash, byte| hash.wrapping_mul(33) + u64::from(*byte));
    hash | 1 << 63
}

fn publish(ends: &RequestEnds, name: &[u8], encoded: &[u8]) -> bool {
    let outgoing = Outgoing::new(encoded.len()).unwrap();
    // SAFETY: `outgoing` has room for `encoded.len()` bytes.
    unsafe { std::ptr::copy_nonoverlapping(encoded.as_ptr(), outgoing.at(), encoded.len()) };
    ask(ends.others.as_fd(), name, Some(&outgoing)).is_ok()
}

fn killed(pid: i32) {
    let mut status = 0;
    // SAFETY: our own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    // SAFETY: our own child; fills a local.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } != pid {}
    assert!(libc::WIFSIGNALED(status), "it has ended by itself: what it saw was not right");
}

fn limits() -> Limits {
    Limits { bytes_max: BYTES, value_bytes_max: VALUE_BYTES, names_max: 4 }
}

fn values_survive_killed_processes() {
    let kills = number("SAMOVAR_PUBLISHED_KILLS", 300);
    let seed = number("SAMOVAR_PUBLISHED_SEED", fastrand::u64(..));
    println!("SAMOVAR_PUBLISHED_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let shared = Shared::create(0).unwrap();
    let publisher = Publisher::new(shared.clone(), limits()).unwrap();
    let ends = RequestEnds::new().unwrap();
    let service = Service::new(ends.server.try_clone().unwrap());
    let start = |seed| child(&publisher, &shared, &ends, seed);
    let mut children: Vec<i32> = (0..PROCESSES).map(|_| start(random.u64(..))).collect();
    let mut done = 0_u64;
    for _ in 0..kills {
        for _ in 0..random.u8(0..12) {
            match service.respond(&publisher).unwrap() {
                Asked::Done => done += 1,
                Asked::Refused => {}
                Asked::Garbled => panic!("nobody asks so"),
            }
        }
        let chosen = random.usize(0..PROCESSES);
        killed(std::mem::replace(&mut children[chosen], start(random.u64(..))));
    }
    children.into_iter().for_each(killed);
    assert!(done > kills, "hardly anything was published: {done}");
    // The requests of dead processes are still queued. The last ones sent no more than the socket
    // holds.
    for name in NAMES {
        publisher.withdraw(name).unwrap();
    }
    let figures = publisher.figures();
    assert_eq!((figures.bytes, figures.replaced_bytes), (0, 0), "{figures:?}");
    println!("{done} published, {kills} killed");
}

/// A replaced value stays while a process reads it, and then becomes free space.
fn values_without_room_are_rejected() {
    let shared = Shared::create(0).unwrap();
    let publisher = Publisher::new(shared.clone(), limits()).unwrap();
    let ends = RequestEnds::new().unwrap();
    let large = encoded(900);
    publisher.publish(b"one", &large).unwrap();
    // A process that has read, and is then stopped.
    let reading = child(&publisher, &shared, &ends, 1);
    while shared.pins().next().is_none() {
        std::thread::yield_now();
    }
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::kill(reading, libc::SIGSTOP) }, 0);
    let mut refused = None;
    for count in 0..20 {
        if let Err(error) = publisher.publish(b"one", &encoded(880 + count)) {
            refused = Some(error);
            break;
        }
    }
    // If it was stopped between two requests, it holds nothing.
    if let Some(error) = refused {
        let text = error.to_string();
        assert!(matches!(error, PublishError::Room { .. }), "{text}");
        assert!(text.contains(&reading.to_string()) && text.contains("hint: increase"), "{text}");
    }
    killed(reading);
    for count in 0..20 {
        publisher.publish(b"one", &encoded(850 + count)).unwrap();
    }
    for (name, value) in [(&b""[..], 1), (&[b'n'; 257], 1)] {
        assert!(matches!(publisher.publish(name, &encoded(value)), Err(PublishError::Name(_))));
    }
    for name in [b"2", b"3", b"4"] {
        publisher.publish(name, &encoded(1)).unwrap();
    }
    assert!(matches!(publisher.publish(b"5", &encoded(1)), Err(PublishError::Names(..))));
    assert!(matches!(publisher.publish(b"2", &encoded(2000)), Err(PublishError::TooLarge(..))));
    // Publishing an equal value is not a change.
    let before = publisher.figures().changes;
    publisher.publish(b"3", &encoded(1)).unwrap();
    assert_eq!(publisher.figures().changes, before);
}

fn region_is_not_writable_for_readers() {
    let publisher = Publisher::new(Shared::create(0).unwrap(), limits()).unwrap();
    let file = std::fs::File::from(publisher.file().try_clone_to_owned().unwrap());
    assert!(std::os::unix::fs::FileExt::write_at(&file, b"x", 4096).is_err());
    assert!(file.set_len(1).is_err());
    let (base, bytes) = region_base(&publisher);
    // SAFETY: this process's own mapping; the next line maps it again, for reading.
    unsafe { libc::munmap(base, bytes) };
    let region = Region::attach(publisher.file().try_clone_to_owned().unwrap()).unwrap();
    let (base, bytes) = region_base(&publisher);
    // SAFETY: changes nothing, or the test fails.
    assert_ne!(unsafe { libc::mprotect(base, bytes, libc::PROT_READ | libc::PROT_WRITE) }, 0);
    drop(region);
    // Its mapping is gone.
    std::mem::forget(publisher);
    let other = Shared::create(0).unwrap().file().try_clone_to_owned().unwrap();
    assert!(Region::attach(other).is_err());
}

/// A process may send anything.
fn garbage_messages_harm_no_process() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::os::fd::BorrowedFd;
    let publisher = Publisher::new(Shared::create(0).unwrap(), limits()).unwrap();
    let ends = RequestEnds::new().unwrap();
    let service = Service::new(ends.server.try_clone().unwrap());
    let (reader, pipe) = std::io::pipe().unwrap();
    let outgoing = rustix::fs::memfd_create("open", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let send = |text: &[u8], fds: &[BorrowedFd<'_>]| {
        let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(fds));
        }
        let part = [std::io::IoSlice::new(text)];
        sendmsg(&ends.others, &part, &mut control, SendFlags::empty()).unwrap();
        service.respond(&publisher).unwrap()
    };
    let (pipe, reader, file) = (pipe.as_fd(), reader.as_fd(), outgoing.as_fd());
    for (text, fds) in [
        (&b""[..], &[][..]),
        (b"\x01name", &[]),
        (b"\x01name", &[pipe]),
        (b"\x01name", &[pipe, reader]),
        (b"\x01name", &[pipe, file]),
        (b"\x02name", &[pipe, file]),
        (b"\x07name", &[pipe, file]),
        (b"\x01name", &[pipe, reader, file]),
        (&[1; 2000], &[pipe, file]),
    ] {
        assert_eq!(send(text, fds), Asked::Garbled, "{text:?}");
    }
    assert_eq!(send(b"\x02name", &[pipe]), Asked::Done, "an answer that nobody can be given");
    assert_eq!(publisher.figures().changes, 0);
}

/// The values that a boot has read stay as long as its processes live, and no later values do.
fn values_read_by_boot_are_held_by_image_only() {
    let shared = Shared::create(0).unwrap();
    let publisher = Publisher::new(shared.clone(), limits()).unwrap();
    publisher.publish(b"one", &encoded(300)).unwrap();
    publisher.publish(b"two", &encoded(20)).unwrap();
    let image = image(&publisher, &shared);
    until("the image is taken", || shared.spans().is_some_and(|spans| !spans.is_empty()));
    let held = || publisher.figures().replaced_bytes;
    let boots: u64 = publisher.figures().values.iter().map(|value| value.bytes).sum();
    for count in 0..1000 {
        // Many times the available room. A request that reads at this moment holds its value for a
        // moment.
        let (one, two) = (encoded(100 + count % 400), encoded(count % 20));
        until("there is room", || publisher.publish(b"one", &one).is_ok());
        until("there is room", || publisher.publish(b"two", &two).is_ok());
    }
    until("only the boot's values are held", || held() <= boots);
    assert!(held() >= 300 * layout::VALUE_BYTES as u64, "what the image has read");
    killed(image);
    // Its worker has died with it.
    until("nothing is held", || held() == 0);
}

/// Checks repeatedly. Yields, because other processes may need the processor.
fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !holds() {
        assert!(begin.elapsed().as_secs() < 60, "in vain: {what}");
        std::thread::yield_now();
    }
}

/// A process that reads, takes its image, and forks a worker that continues to read. Both check the
/// values that the boot has read all the time.
fn image(publisher: &Publisher, shared: &Shared) -> i32 {
    let region = publisher.file().try_clone_to_owned().unwrap();
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: requests the kernel to end this process with its parent.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let base = region_base(publisher);
            // SAFETY: the copy of the server's mapping, which this process no longer uses.
            unsafe { libc::munmap(base.0, base.1) };
            let mut reader = Reader::new(Region::attach(region).unwrap());
            let client = Client::new(shared.clone(), 1);
            let booted = reader.find(&client, b"one", hash(b"one")).unwrap().unwrap();
            reader.keep(&client);
            let parent = std::process::id();
            // SAFETY: this process has one thread.
            let forked = unsafe { libc::fork() };
            if forked == 0 {
                // SAFETY: requests the kernel to end this process with its parent.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                client.forked();
                client.begin().unwrap();
                let is_orphan = std::os::unix::process::parent_id() != parent;
                if is_orphan || !reader.inherit(&client) {
                    // SAFETY: ends the child.
                    unsafe { libc::_exit(0) }
                }
            }
            loop {
                if looked_at(booted) != 300 {
                    // SAFETY: ends the child; the test sees that it was not killed.
                    unsafe { libc::_exit(1) }
                }
                let now = reader.find(&client, b"two", hash(b"two")).unwrap().map(looked_at);
                assert!(now.is_none_or(|count| count <= 20), "garbage: {now:?}");
                reader.end_request(&client, true);
            }
        }
        -1 => panic!("cannot fork: {}", std::io::Error::last_os_error()),
        pid => pid,
    }
}
