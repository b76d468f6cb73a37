//! The insight thread without a server: requests in, exports out.

use samovar_insight::{Finished, Insight, Intake, Limits, Model, Numbers, Options, intake};
use samovar_testkit::eventually;

pub(crate) const MS: u64 = 1_000_000;

pub(crate) struct Stage {
    front: Option<Intake>,
    pub(crate) insight: Insight,
}

impl Stage {
    pub(crate) fn new(options: Options) -> Stage {
        let (front, outlet) = intake();
        let limits = Limits { routes_max: 100, slow_ns: u64::MAX };
        let insight = Insight::start_with(outlet, limits, options).expect("threads");
        Stage { front: Some(front), insight }
    }

    /// Lets this number of requests end and be added up.
    pub(crate) fn serve(&mut self, finished: &Finished, times: u64) {
        let expected = self.insight.figures().total().requests + times;
        let front = self.front.as_mut().expect("it has not ended");
        // Does not send more at once than the channel holds.
        let mut left = times;
        while left > 0 {
            let now = left.min(5_000);
            (0..now).for_each(|_| front.put(finished));
            front.flush();
            left -= now;
            eventually("requests are added up", || {
                (self.insight.figures().total().requests == expected - left).then_some(())
            });
        }
    }

    /// Stops the server.
    pub(crate) fn finish(&mut self) {
        self.front = None;
        self.insight.finish();
    }

    /// Returns (passed, lost, refused) of one importer or exporter.
    pub(crate) fn fates(&self, way: &str) -> (u64, u64, u64) {
        let tally = self.insight.tallies().iter().find(|tally| tally.way() == way);
        let [passed, lost, refused] =
            samovar_insight::Fate::ALL.map(|fate| tally.expect("this way is there").get(fate));
        (passed, lost, refused)
    }
}

/// Returns a traced request with a wait, and a timer whose tags contain a secret.
pub(crate) fn request(report: &[u8]) -> Finished<'_> {
    let numbers = Numbers {
        began_unix_us: 1_000_000,
        status: 404,
        model: Model::Checkpoint,
        worker: 7,
        wall_ns: 500 * MS,
        queue_ns: 10 * MS,
        run_ns: 480 * MS,
        cpu_ns: 125 * MS,
        peak_bytes: 2 << 20,
        bytes_out: 1_234,
        trace_id: [0xab; 16],
        is_sampled: true,
        span_id: [1, 2, 3, 4, 5, 6, 7, 8],
        ..Numbers::default()
    };
    Finished {
        numbers,
        method: "GET",
        path: "/p/1",
        script: "index.php",
        id: "id-1",
        pool: "",
        report,
    }
}

/// Returns a report in a worker's format: the route, a wait of 62 ms, and a timer of 250 ms.
pub(crate) fn report() -> Vec<u8> {
    let name = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let entry = |tag: u8, payload: &[u8]| {
        [&[tag], &(payload.len() as u16).to_le_bytes()[..], payload].concat()
    };
    let mut wait = vec![0];
    wait.extend(3_u32.to_le_bytes());
    wait.extend((62 * MS).to_le_bytes());
    wait.extend(b"db:5432");
    let mut timer = 2_u32.to_le_bytes().to_vec();
    for ns in [250 * MS, 125 * MS, 0] {
        timer.extend(ns.to_le_bytes());
    }
    for text in ["group", "mysql", "db_password", "hunter2"] {
        timer.extend(name(text));
    }
    let tag = [name("country"), name("de")].concat();
    [entry(1, b"shop_show"), entry(2, &wait), entry(3, &timer), entry(4, &tag)].concat()
}
