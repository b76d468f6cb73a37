//! Upgrade of a server by a new process, which is then stopped with it.

use super::running::Server;
use crate::binary;
use crate::wait::eventually;
use std::process::Command;

impl Server {
    /// Runs `samovar upgrade` with these arguments. Returns its output, from the stream that
    /// matches its exit code.
    pub fn upgrade<const N: usize>(&self, args: [&str; N]) -> Result<String, String> {
        let output = Command::new(binary())
            .args(["upgrade", "--control"])
            .arg(self.control())
            .args(args)
            .output()
            .expect("the binary runs");
        let [said, wrong] =
            [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b).into_owned());
        if output.status.code() == Some(0) {
            assert_eq!(wrong, "", "nothing on standard error");
            self.find_heir();
            return Ok(said);
        }
        assert_eq!((output.status.code(), said.as_str()), (Some(1), ""), "{wrong}");
        Err(wrong)
    }

    /// Notes the server that now responds at the control socket; it is stopped in the end. Returns
    /// its process id.
    pub fn find_heir(&self) -> i32 {
        let pid = self.status()["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.expect("a process id");
        if pid != self.process.pid() {
            self.heir.is(pid);
        }
        pid
    }

    /// Waits until the predecessor of the serving server has ended.
    pub fn wait_for_predecessor(&self) {
        eventually("the end of the server before", || {
            (self.status()["predecessor_pid"] == 0).then_some(())
        });
    }
}
