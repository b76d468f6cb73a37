//! User and group of the server: root opens the listeners, and then switches permanently to another
//! user before it starts any process.
//!
//! All processes descend from this one, so the change happens once. It clears `PR_SET_PDEATHSIG`.
//!
//! PHP runs as the same user, so the server's memory is protected from it in any case
//! ([`conceal_memory`]). The template is not affected, because an exec resets the protection. A
//! successor server must therefore set it again.

use nix::errno::Errno;
use nix::unistd::{Gid, Group, Uid, User, initgroups, setresgid, setresuid, setuid};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::ffi::CString;
use std::io;

/// A user to switch to, with its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name for messages and `$USER`.
    pub name: String,
    /// `$HOME`; empty for a number without a user.
    pub home: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Reason why a user cannot be looked up.
#[derive(Debug)]
pub enum NoIdentity {
    /// There is no such user.
    User(String),
    /// There is no such group.
    Group(String),
    /// The user database cannot be read.
    Io(io::Error),
}

impl std::fmt::Display for NoIdentity {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoIdentity::User(name) => write!(to, "there is no user `{name}`"),
            NoIdentity::Group(name) => write!(to, "there is no group `{name}`"),
            NoIdentity::Io(error) => write!(to, "cannot look up users: {error}"),
        }
    }
}

impl std::error::Error for NoIdentity {}

/// Prevents all users except root from inspecting, tracing and dumping this process. Applies to
/// child processes until their exec.
///
/// # Errors
/// The kernel's error; none is known.
pub fn conceal_memory() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Returns the effective user id of this process.
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Identity {
    /// Looks up a user by name or number. The group is the given one, or the user's own.
    pub fn find(user: &str, group: Option<&str>) -> Result<Identity, NoIdentity> {
        let user_found = match user.parse() {
            Ok(uid) => {
                found(User::from_uid(Uid::from_raw(uid)))?.map(Identity::from).or_else(|| {
                    let (name, home) = (user.to_owned(), String::new());
                    group.map(|_| Identity { name, home, uid, gid: 0 })
                })
            }
            Err(_) => found(User::from_name(user))?.map(Identity::from),
        };
        let mut identity = user_found.ok_or_else(|| NoIdentity::User(user.to_owned()))?;
        if let Some(group) = group {
            let gid = match group.parse() {
                Ok(gid) => Some(gid),
                Err(_) => found(Group::from_name(group))?.map(|group| group.gid.as_raw()),
            };
            identity.gid = gid.ok_or_else(|| NoIdentity::Group(group.to_owned()))?;
        }
        Ok(identity)
    }

    /// Switches to this user, in all threads and permanently.
    ///
    /// # Errors
    /// The process has no permission, or could switch back; it must not continue then.
    pub fn assume(&self) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        initgroups(&CString::new(self.name.clone())?, gid)?;
        // libc applies these calls to all threads.
        setresgid(gid, gid, gid)?;
        setresuid(uid, uid, uid)?;
        // If the server could become root again, PHP could too.
        if !uid.is_root() && setuid(Uid::from_raw(0)).is_ok() {
            return Err(io::Error::other("the kernel allows the process to become root again"));
        }
        Ok(())
    }
}

impl From<User> for Identity {
    fn from(user: User) -> Identity {
        let home = user.dir.to_string_lossy().into_owned();
        Identity { name: user.name, home, uid: user.uid.as_raw(), gid: user.gid.as_raw() }
    }
}

/// Converts the result of a lookup; `None` if the database has no such entry.
fn found<Entry>(response: nix::Result<Option<Entry>>) -> Result<Option<Entry>, NoIdentity> {
    match response {
        // Some databases return these errors for a missing name.
        Err(Errno::ENOENT | Errno::ESRCH) => Ok(None),
        response => response.map_err(|error| NoIdentity::Io(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_is_found_by_name_or_number() {
        let root = Identity::find("root", None).expect("root");
        assert_eq!((root.uid, root.gid, root.home.as_str()), (0, 0, "/root"));
        assert_eq!(Identity::find("0", None).expect("root"), root);
        let other = Identity::find("root", Some("7")).expect("root with another group");
        assert_eq!((other.uid, other.gid), (0, 7));
        let number = Identity::find("3999999999", Some("7")).expect("nobody's number");
        assert_eq!((number.uid, number.gid, number.home.as_str()), (3_999_999_999, 7, ""));
        for (user, group, said) in [
            ("no-such-user", None, "there is no user `no-such-user`"),
            ("3999999999", None, "there is no user `3999999999`"),
            ("root", Some("no-such-group"), "there is no group `no-such-group`"),
            ("ro\0ot", None, "there is no user `ro\0ot`"),
        ] {
            let error = Identity::find(user, group).expect_err("nobody");
            assert_eq!(error.to_string(), said);
        }
    }
}
