//! Programs that tests write and then start.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an executable file. Another process writes it: a file that this one had open could be inherited by a child that another test
/// starts at that moment, and starting the program would then fail with "Text file busy".
pub fn write_program(path: &Path, text: impl AsRef<[u8]>) {
    let mut install = Command::new("install");
    install.args(["--mode=755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut child = install.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_ref()).unwrap();
    assert!(child.wait().unwrap().success(), "{} cannot be written", path.display());
}
