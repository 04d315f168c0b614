//! Ends a run together with the command of which it is a step.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Makes this process die with its parent, which must be this one. Fails when the parent has already ended.
pub fn end_with(parent_id: u32) -> std::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let parent = i32::try_from(parent_id).ok().and_then(Pid::from_raw);
    if getppid() == parent {
        Ok(())
    } else {
        Err(std::io::Error::other("the command that wanted this run has ended"))
    }
}
