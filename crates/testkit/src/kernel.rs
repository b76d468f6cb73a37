//! Conditions that a process gets from outside the server's configuration: a kernel with fewer
//! features than this machine's (a seccomp filter), a resource limit, and sockets of a service
//! manager. Also options of the tests' own sockets.
#![allow(unsafe_code)]

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// `_IOWR('f', 16, struct pm_scan_arg)` of linux/fs.h.
const PAGEMAP_SCAN: u32 = 0xc060_6610;

/// For the command and all processes it starts, `PAGEMAP_SCAN` does not exist.
pub(crate) fn forget_pagemap_scan(command: &mut Command) {
    // SAFETY: `install` makes two system calls and allocates nothing.
    unsafe { command.pre_exec(install) };
}

/// Limits the open files of the command and of each process it starts, to the limits `soft` and
/// `hard`.
pub(crate) fn limit_open_files(command: &mut Command, soft: u64, hard: u64) {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    let set = move || {
        // SAFETY: reads a local; one system call.
        let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        if set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: `set` makes one system call and allocates nothing.
    unsafe { command.pre_exec(set) };
}

/// The first descriptor of `sd_listen_fds`.
const FIRST_INHERITED: i32 = 3;

/// Passes the listener to the command as a service manager would.
pub(crate) fn hand_over(command: &mut Command, listener: TcpListener) {
    // SAFETY: one system call; the listener lives as long as the closure.
    unsafe { command.pre_exec(move || put(listener.as_raw_fd())) };
}

fn put(fd: i32) -> std::io::Result<()> {
    // SAFETY: no pointers; the copy stays open across the exec.
    let put = unsafe { libc::dup2(fd, FIRST_INHERITED) };
    if put == FIRST_INHERITED { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn install() -> std::io::Result<()> {
    const NUMBER: u32 = 0; // Offsets in struct seccomp_data.
    const SECOND_ARGUMENT: u32 = 24;
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let unless = |value, skip| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, skip, value);
    let response = |what| step(libc::BPF_RET | libc::BPF_K, 0, 0, what);
    let mut filter = [
        load(NUMBER),
        unless(libc::SYS_ioctl as u32, 3),
        load(SECOND_ARGUMENT),
        unless(PAGEMAP_SCAN, 1),
        response(libc::SECCOMP_RET_ERRNO | libc::ENOTTY.unsigned_abs()),
        response(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: no pointers.
    let allowed = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its steps live until the call returns.
    let set =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if allowed == 0 && set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn step(code: u32, yes: u8, no: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: yes, jf: no, k: value }
}

/// Makes the kernel buffer few bytes for a reader, so that a slow one has an effect at once.
pub fn receive_buffer(stream: &TcpStream, bytes: i32) {
    set(stream, libc::SO_RCVBUF, &bytes);
}

/// Makes the close of this connection send a reset, as a crashed client does.
pub fn reset_on_close(stream: &TcpStream) {
    set(stream, libc::SO_LINGER, &libc::linger { l_onoff: 1, l_linger: 0 });
}

fn set<T>(stream: &TcpStream, option: i32, value: &T) {
    let bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` has `bytes` bytes and lives until the call returns.
    let done = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(value).cast(),
            bytes,
        )
    };
    assert_eq!(done, 0, "option {option} of a socket: {}", std::io::Error::last_os_error());
}

/// Sets the number of processes and threads that the user of process `pid` may have, beyond which
/// `pid` cannot create another (a soft limit; `None` restores it). It does not apply to root.
pub fn limit_processes(pid: i32, most: Option<u64>) -> Result<(), String> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: one rlimit to write into, for the time of the call.
    let got = unsafe { libc::prlimit(pid, libc::RLIMIT_NPROC, std::ptr::null(), &raw mut limit) };
    limit.rlim_cur = most.unwrap_or(limit.rlim_max).min(limit.rlim_max);
    // SAFETY: one rlimit to read from, for the time of the call.
    let put =
        unsafe { libc::prlimit(pid, libc::RLIMIT_NPROC, &raw const limit, std::ptr::null_mut()) };
    if got == 0 && put == 0 {
        return Ok(());
    }
    Err(format!("cannot limit processes of {pid}: {}", std::io::Error::last_os_error()))
}
