//! Signals: they end the workloads' processes with this one, which run in groups of their own that the terminal does not
//! reach. A command that can keep what it has asks to be told first.

use holdpoint_measure::jobs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static IS_HELD: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Begins to listen.
pub(crate) fn listen() {
    // Without handlers a signal still ends this process, as it would any.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let is_first = SIGNAL.swap(signal, Ordering::SeqCst) == 0;
            jobs::end_all();
            if !(is_first && IS_HELD.load(Ordering::SeqCst)) {
                std::process::exit(128 + signal);
            }
        }
    });
}

/// From now on the first signal only ends what is running; the command notices and ends by itself.
pub fn hold() {
    IS_HELD.store(true, Ordering::SeqCst);
}

/// Whether a signal has come.
pub(crate) fn has_come() -> bool {
    SIGNAL.load(Ordering::SeqCst) != 0
}

/// Ends this process as the signal would have, if one has come.
pub(crate) fn end_if_come() {
    let signal = SIGNAL.load(Ordering::SeqCst);
    if signal != 0 {
        std::process::exit(128 + signal);
    }
}
