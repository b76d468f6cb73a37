//! Several hosts: the same command on each of them over ssh, in order, up to the first failure.

use crate::error::Error;
use crate::source::Source;
use crate::tree;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Hosts, and the program that runs a command on one of them.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Destinations of ssh, in the order of the deploy.
    pub names: Vec<String>,
    /// Words of the program; the host and the command line are added.
    pub ssh: Vec<String>,
}

/// Result of a command on several hosts.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Hosts on which it succeeded.
    pub done: Vec<String>,
    /// Host on which it failed, and why.
    pub failed: Option<(String, String)>,
    /// Hosts on which it was not run.
    pub left: Vec<String>,
}

impl Hosts {
    /// Starts a command on a host. Its output goes to the terminal.
    fn start(&self, host: &str, words: &[String], input: Stdio) -> Result<Child, Error> {
        let line = shlex::try_join(words.iter().map(String::as_str))
            .map_err(|_| Error::new("an argument has a NUL byte"))?;
        let (program, own) = self.ssh.split_first().ok_or_else(|| Error::new("--ssh is empty"))?;
        // A host that begins with `-` would be an option of ssh.
        if host.starts_with('-') || host.is_empty() {
            return Err(Error::new(format!("`{host}` is not the name of a host")));
        }
        Command::new(program).args(own).arg(host).arg(line).stdin(input).spawn().map_err(|error| {
            Error::new(format!(
                "cannot start `{program}`: {error}\nhint: install it, or choose another program \
                 with --ssh"
            ))
        })
    }

    fn each(&self, mut run: impl FnMut(&str) -> Result<(), Error>) -> Outcome {
        let mut outcome = Outcome::default();
        for host in &self.names {
            if outcome.failed.is_some() {
                outcome.left.push(host.clone());
                continue;
            }
            match run(host) {
                Ok(()) => outcome.done.push(host.clone()),
                Err(error) => outcome.failed = Some((host.clone(), error.to_string())),
            }
        }
        outcome
    }
}

/// Sends the release to each host, which deploys it with the command `words`: it reads the release
/// from its standard input. `begins` is called before each host.
pub fn deploy_to(
    hosts: &Hosts,
    source: &Source,
    exclude: &[PathBuf],
    words: &[String],
    begins: &mut dyn FnMut(&str),
) -> Result<Outcome, Error> {
    if *source == Source::Stdin {
        return Err(Error::new(
            "a release from standard input cannot go to several hosts\nhint: write it to a file \
             first",
        ));
    }
    let exclude = exclude.iter().map(|path| tree::inner(path)).collect::<Result<Vec<_>, _>>()?;
    Ok(hosts.each(|host| {
        begins(host);
        let mut child = hosts.start(host, words, Stdio::piped())?;
        let mut input = child.stdin.take().ok_or_else(|| Error::new("the child has no input"))?;
        let sent = match source {
            Source::Archive(path) => File::open(path)
                .and_then(|mut file| io::copy(&mut file, &mut input))
                .map(drop)
                .map_err(|error| Error::file("send", path, &error)),
            Source::Folder(from) => tree::pack(from, &mut input, &exclude),
            Source::Stdin => Ok(()),
        };
        drop(input);
        match (end(child), sent) {
            (Err(there), Err(here)) => Err(Error::new(format!("{there}; {here}"))),
            (there, here) => there.and(here),
        }
    }))
}

/// Runs the command `words` on each host.
pub fn rollback_on(hosts: &Hosts, words: &[String], begins: &mut dyn FnMut(&str)) -> Outcome {
    hosts.each(|host| {
        begins(host);
        end(hosts.start(host, words, Stdio::null())?)
    })
}

fn end(mut child: Child) -> Result<(), Error> {
    let status = child.wait().map_err(|error| Error::new(format!("cannot wait: {error}")))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(255) => Err(Error::new("cannot connect (ssh ended with exit status 255)")),
        Some(127) => Err(Error::new(
            "it has no command `samovar`\nhint: install the package, or give the path with \
             --remote-command",
        )),
        code => Err(Error::new(match code {
            Some(code) => format!("the command ended there with exit status {code}"),
            None => "the command was killed there".to_owned(),
        })),
    }
}
