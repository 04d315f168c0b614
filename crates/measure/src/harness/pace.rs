//! Which benchmarks are run in their harness's quick mode, because their own settings make a turn long, whatever its options say;
//! which by the options of its older versions; and which in processes of their own.
//!
//! The first two are decided by the first turn of a benchmark, the last once a process of several fails; of either side, and for both.

use holdpoint_model::suite::BenchTask;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// A turn that takes longer is tried in quick mode. One of ours takes a tenth of a second, if a call takes less than 2 ms.
const LONG: Duration = Duration::from_secs(1);
/// Quick mode must be this many times quicker, because it takes fewer samples.
const GAIN: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As our options say.
    Ours,
    /// The same, and never in a process with others.
    Alone,
    /// The harness's quick mode.
    Quick,
    /// By the options of older versions of the harness.
    Older,
}

/// By folder and name.
static PACES: LazyLock<Mutex<BTreeMap<(String, String), Pace>>> = LazyLock::new(Mutex::default);

fn key(bench: &BenchTask) -> (String, String) {
    (bench.folder.clone(), bench.id.clone())
}

/// The pace of a benchmark; absent before its first turn.
pub(crate) fn pace_of(bench: &BenchTask) -> Option<Pace> {
    PACES.lock().unwrap_or_else(PoisonError::into_inner).get(&key(bench)).copied()
}

/// Decides the pace of a benchmark from the length of its first turn, and of a quick one if that is worth a try.
pub(crate) fn decide_pace(bench: &BenchTask, turn: Duration, quick_turn: impl FnOnce() -> Option<Duration>) {
    let is_quicker = turn > LONG && quick_turn().is_some_and(|quick| quick * GAIN < turn);
    set_pace(bench, if is_quicker { Pace::Quick } else { Pace::Ours });
}

/// Settles the pace of a benchmark.
pub(crate) fn set_pace(bench: &BenchTask, pace: Pace) {
    PACES.lock().unwrap_or_else(PoisonError::into_inner).insert(key(bench), pace);
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_model::suite::{CommandTask, HarnessKind};

    #[test]
    fn only_long_turns_are_run_in_quick_mode_and_only_where_it_helps() {
        let seconds = Duration::from_secs;
        let decided = |id: &str, turn, quick: Option<Duration>| {
            let (id, folder) = (id.to_owned(), "pace".to_owned());
            let (kind, call) = (HarnessKind("criterion".to_owned()), CommandTask::default());
            let bench = BenchTask { kind, id, folder, call };
            assert_eq!(pace_of(&bench), None);
            decide_pace(&bench, turn, || quick);
            pace_of(&bench)
        };
        assert_eq!(decided("long", seconds(8), Some(seconds(1))), Some(Pace::Quick));
        assert_eq!(decided("long set-up", seconds(8), Some(seconds(7))), Some(Pace::Ours));
        assert_eq!(decided("no quick mode", seconds(8), None), Some(Pace::Ours));
        assert_eq!(decided("short", seconds(1), Some(seconds(0))), Some(Pace::Ours));
    }
}
