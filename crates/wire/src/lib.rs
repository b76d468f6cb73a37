//! The words of the control socket, once for both ends, and for all who show what they say: the server, its commands, the
//! admin listener's pages.
//!
//! One request is one line of plain words, which a person can type too; its answer is one line of JSON. What an older or a newer
//! server leaves out is empty, so that another version's `samovar` is of use. Nobody is known here.
//!
//! | file | |
//! |---|---|
//! | `status.rs` | how the server is |
//! | `resources.rs` | its part on what the process holds of the kernel |
//! | `shared.rs` | its part on the memory that workers share |
//! | `well.rs` | is it well? |
//! | `figures.rs` | what its requests came to |
//! | `profile.rs` | what its workers did |
//! | `calls.rs` | what its requests called |
//! | `boot.rs` | what its boot went to |
//! | `upgrade.rs` | another server in its place |

mod boot;
mod calls;
mod figures;
mod profile;
mod resources;
mod shared;
mod status;
mod upgrade;
mod upstreams;
mod well;

pub use boot::BootAnswer;
pub use calls::{CallsAnswer, CallsQuestion};
pub use figures::{Figures, ROUTES_MAX, RouteLine, WAITS_MAX, WaitLine};
pub use profile::{Against, ProfileAnswer, ProfileQuestion, ProfileSide};
pub use resources::{Descriptors, Resources};
pub use shared::{SharedBreaker, SharedCache, SharedObject, SharedStatus};
pub use status::{
    Application, CertificateStatus, ConsoleStatus, EngineStatus, FrontStatus, GrowthStatus,
    ImageFinding, ImageStatus, LinkingStatus, PoolStatus, ProfileStatus, SavingStatus,
    ScalingStatus, Status, WorkerStatus,
};
pub use upgrade::{UpgradeAnswer, UpgradeOptions};
pub use upstreams::{UpstreamAddress, UpstreamStatus, UpstreamTally, UpstreamTrouble};
pub use well::{About, SAVES_MAX, Trouble, dear, troubles};

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// How the server is; the answer is a [`Status`].
    Status,
    /// What its requests came to; the answer is [`Figures`].
    Figures,
    /// To boot the application anew; the answer, a [`ReloadAnswer`], comes when that has ended.
    Reload(ReloadOptions),
    /// To have another server take its place; the answer, an [`UpgradeAnswer`], comes when that has ended.
    Upgrade(UpgradeOptions),
    /// What its workers did; the answer is a [`ProfileAnswer`].
    Profile(Box<ProfileQuestion>),
    /// What its requests called; the answer is a [`CallsAnswer`].
    Calls(Box<CallsQuestion>),
    /// What its boot went to; the answer is a [`BootAnswer`].
    Boot {
        /// Of this pool; `None`: of the default one.
        pool: Option<String>,
    },
    /// To drain and end; the answer is [`Stopping`].
    Stop,
}

/// Why a line is no [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misunderstood {
    /// Its first word, or something behind a word that stands alone.
    Command,
    /// What stands behind `reload`.
    ReloadOptions,
    /// What stands behind `profile`.
    Profile,
    /// What stands behind `calls`.
    Calls,
    /// What stands behind `upgrade`.
    Upgrade,
}

/// How a reload is to go about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadOptions {
    /// The new generation takes over whatever it is, if only it boots.
    pub force: bool,
    /// Instead of `reload_probe`.
    pub probe: Option<String>,
    /// This pool alone.
    pub pool: Option<String>,
}

impl fmt::Display for Request {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Status => to.write_str("status"),
            Request::Figures => to.write_str("figures"),
            Request::Boot { pool: None } => to.write_str("boot"),
            Request::Boot { pool: Some(name) } => write!(to, "boot pool={name}"),
            Request::Stop => to.write_str("stop"),
            Request::Profile(question) => write!(to, "profile {}", line(question)),
            Request::Calls(question) => write!(to, "calls {}", line(question)),
            Request::Upgrade(options) => write!(to, "upgrade {}", line(options)),
            Request::Reload(ReloadOptions { force, probe, pool }) => {
                to.write_str("reload")?;
                if *force {
                    to.write_str(" force")?;
                }
                if let Some(name) = pool {
                    write!(to, " pool={name}")?;
                }
                probe.as_ref().map_or(Ok(()), |target| write!(to, " probe={target}"))
            }
        }
    }
}

impl std::str::FromStr for Request {
    type Err = Misunderstood;

    fn from_str(line: &str) -> Result<Request, Misunderstood> {
        let mut words = line.split_ascii_whitespace();
        let command = words.next().unwrap_or_default();
        let is_alone = words.clone().next().is_none();
        match command {
            "status" if is_alone => Ok(Request::Status),
            "figures" if is_alone => Ok(Request::Figures),
            "boot" => boot(words),
            "stop" if is_alone => Ok(Request::Stop),
            "profile" => ProfileQuestion::parse(line.trim_start()).map(Request::Profile),
            "calls" => CallsQuestion::parse(line.trim_start()).map(Request::Calls),
            "upgrade" => UpgradeOptions::parse(line.trim_start()).map(Request::Upgrade),
            "reload" => ReloadOptions::parse(words).map(Request::Reload),
            _ => Err(Misunderstood::Command),
        }
    }
}

/// `boot`, or `boot pool=export`.
fn boot<'a>(words: impl Iterator<Item = &'a str>) -> Result<Request, Misunderstood> {
    let mut pool = None;
    for word in words {
        match word.split_once('=') {
            Some(("pool", name)) if !name.is_empty() => pool = Some(name.to_owned()),
            _ => return Err(Misunderstood::Command),
        }
    }
    Ok(Request::Boot { pool })
}

impl ReloadOptions {
    fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<ReloadOptions, Misunderstood> {
        let mut options = ReloadOptions::default();
        for word in words {
            match word.split_once('=') {
                None if word == "force" => options.force = true,
                Some(("probe", target)) if target.starts_with('/') => {
                    options.probe = Some(target.to_owned());
                }
                Some(("pool", name)) if !name.is_empty() => options.pool = Some(name.to_owned()),
                _ => return Err(Misunderstood::ReloadOptions),
            }
        }
        Ok(options)
    }
}

/// The JSON of `samovar reload`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReloadAnswer {
    /// The one that serves now; 0: there is no new one.
    pub generation: u64,
    /// From the command to the takeover.
    pub milliseconds: u64,
    /// Keys of settings that have changed and only a restart can change.
    pub needs_restart: Vec<String>,
    /// Keys that hold for all pools, and wait until all are reloaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_all: Vec<String>,
    /// Why there is no new generation; of several pools: of those that have failed.
    pub error: Option<String>,
    /// What came of each pool that was to be reloaded; empty where the server has one pool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolReloaded>,
}

/// What came of one pool's reload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolReloaded {
    /// Its name.
    pub name: String,
    /// The one that serves now; 0: there is no new one.
    pub generation: u64,
    /// Why there is none.
    pub error: Option<String>,
}

impl ReloadAnswer {
    /// There is no new generation, because of this.
    pub fn refused(why: String) -> ReloadAnswer {
        ReloadAnswer { error: Some(why), ..ReloadAnswer::default() }
    }
}

/// The answer to `stop`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stopping {
    /// It drains.
    pub stopping: bool,
}

/// The answer to what is none of the commands.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refused {
    /// What is wrong with it.
    pub error: String,
}

/// An answer as it is sent. What is made of numbers, texts and lists can always be written.
pub fn line(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_as_they_went() {
        let mut requests = vec![Request::Status, Request::Figures, Request::Stop];
        requests.extend([None, Some("api".to_owned())].map(|pool| Request::Boot { pool }));
        for against in [None, Some(Against::Reload), Some(Against::Earlier { seconds: 60 })] {
            let route = Some("index.php /a b\n{n}".to_owned());
            let question = ProfileQuestion { route, to: 7, against, ..ProfileQuestion::default() };
            requests.push(Request::Profile(Box::new(question)));
        }
        let (route, day) = (Some("a b\n".to_owned()), Some(3));
        requests.push(Request::Calls(Box::new(CallsQuestion {
            pool: Some("api".to_owned()),
            route,
            day,
            sign_s: None,
        })));
        assert!(matches!("profile".parse(), Ok(Request::Profile(_))), "a person asks so");
        for binary in [None, Some("/opt/samovar 2/bin/samovar".into())] {
            requests.push(Request::Upgrade(UpgradeOptions { binary }));
        }
        assert!(matches!("upgrade".parse(), Ok(Request::Upgrade(_))), "a person asks so");
        assert!(matches!("calls".parse(), Ok(Request::Calls(_))), "and so");
        for force in [false, true] {
            for probe in [None, Some("/"), Some("/health?full=1")] {
                let probe = probe.map(str::to_owned);
                for pool in [None, Some("api".to_owned())] {
                    let probe = probe.clone();
                    requests.push(Request::Reload(ReloadOptions { force, probe, pool }));
                }
            }
        }
        for request in requests {
            assert_eq!(request.to_string().parse(), Ok(request));
        }
    }

    #[test]
    fn what_is_no_request() {
        for options in ["loudly", "probe=health", "probe", "force=1", "pool", "pool="] {
            let line = format!("reload {options}");
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::ReloadOptions), "{line}");
        }
        for line in ["profile 7", "profile {", "profile {} x"] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Profile), "{line}");
        }
        for line in ["upgrade now", "upgrade {"] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Upgrade), "{line}");
        }
        for line in ["", "dance", "status stop", "stop it", "boot now", "boot pool="] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Command), "{line}");
        }
    }
}
