//! A run that is a step of another command ends with it, however that ends.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Ends this process when the process that started it ends, which is the one of this number.
///
/// # Errors
/// When that one has ended already, or the system cannot do it.
pub fn end_with(parent_id: u32) -> std::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let parent = i32::try_from(parent_id).ok().and_then(Pid::from_raw);
    if getppid() == parent {
        Ok(())
    } else {
        Err(std::io::Error::other("the command that wanted this run has ended"))
    }
}
