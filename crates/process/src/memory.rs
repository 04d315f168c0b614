//! Keeps the secrets in this process's memory from other processes of the same user.

use crate::variables::is_hidden;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::io;

/// Keeps other processes of this user from reading this one's memory and first environment, where there is a secret in it.
///
/// # Errors
/// When the system refuses; then nothing that is not trusted may be started.
pub fn hide_from_children(has_key: bool) -> io::Result<()> {
    if has_key || std::env::vars_os().any(|(name, _)| is_hidden(name)) {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::dumpable_behavior;

    #[test]
    fn a_process_with_a_key_cannot_be_read_by_others_of_its_user() {
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable);
        hide_from_children(true).unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
