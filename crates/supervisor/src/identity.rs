//! Whose rights the server has: root opens the listeners, then becomes another user for good, before anything else exists.
//!
//! All processes descend from this one, so the change happens once. It clears `PR_SET_PDEATHSIG`.
//!
//! Whoever it is, its memory is its own ([`conceal_memory`]): PHP runs as the same user. The template is not touched by that, because
//! an exec begins anew; and so does the server that is to follow, which says it again.

use nix::errno::Errno;
use nix::unistd::{Gid, Group, Uid, User, initgroups, setresgid, setresuid, setuid};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::ffi::CString;
use std::io;

/// A user to become, with its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// For messages and `$USER`.
    pub name: String,
    /// `$HOME`; empty for a number that no user has.
    pub home: String,
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// Why a user cannot be had.
#[derive(Debug)]
pub enum NoIdentity {
    /// There is no such user.
    User(String),
    /// There is no such group.
    Group(String),
    /// The database cannot be read.
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

/// Has the kernel let nobody but root look into this process, trace it or dump its memory. Children are the same until their exec.
///
/// # Errors
/// The kernel's, of which none is known.
pub fn conceal_memory() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// The user whose rights this process has.
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Identity {
    /// Looks up a user and, if it is not to be the user's own, a group, by name or number.
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

    /// Becomes this user, in all threads and for good.
    ///
    /// # Errors
    /// Where the process may not, or could come back: then it must not go on.
    pub fn assume(&self) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        initgroups(&CString::new(self.name.clone())?, gid)?;
        // libc changes all threads.
        setresgid(gid, gid, gid)?;
        setresuid(uid, uid, uid)?;
        // A way back to root would be PHP's way too.
        if !uid.is_root() && setuid(Uid::from_raw(0)).is_ok() {
            return Err(io::Error::other("the kernel lets the process become root again"));
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

/// An entry of a database, if it has it.
fn found<Entry>(answer: nix::Result<Option<Entry>>) -> Result<Option<Entry>, NoIdentity> {
    match answer {
        // What some databases say of a name that they do not have.
        Err(Errno::ENOENT | Errno::ESRCH) => Ok(None),
        answer => answer.map_err(|error| NoIdentity::Io(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number() {
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
