//! A kernel that can less than this machine's, by a seccomp filter.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;

/// `_IOWR('f', 16, struct pm_scan_arg)` of linux/fs.h.
const PAGEMAP_SCAN: u32 = 0xc060_6610;

/// The command and all it starts are told that `PAGEMAP_SCAN` does not exist.
pub(crate) fn forget_pagemap_scan(command: &mut Command) {
    // SAFETY: `install` makes two system calls and allocates nothing.
    unsafe { command.pre_exec(install) };
}

fn install() -> std::io::Result<()> {
    const NUMBER: u32 = 0; // offsets in struct seccomp_data
    const SECOND_ARGUMENT: u32 = 24;
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let unless = |value, skip| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, skip, value);
    let answer = |what| step(libc::BPF_RET | libc::BPF_K, 0, 0, what);
    let mut filter = [
        load(NUMBER),
        unless(libc::SYS_ioctl as u32, 3),
        load(SECOND_ARGUMENT),
        unless(PAGEMAP_SCAN, 1),
        answer(libc::SECCOMP_RET_ERRNO | libc::ENOTTY.unsigned_abs()),
        answer(libc::SECCOMP_RET_ALLOW),
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
