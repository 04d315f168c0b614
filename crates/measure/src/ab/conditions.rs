//! Everything that a comparison depends on besides its plan: suites, programs, the environment. An interrupted
//! comparison is resumed only if all of it is unchanged.

use super::Sides;
use crate::builds::SEPARATORS;
use crate::machine::hex;
use crate::program::resolve_program;
use crate::run::environment_lock;
use holdpoint_model::Suite;
use holdpoint_model::protocol::PROTOCOL_VERSION;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Larger programs are identified by size and time of change; hashing this much takes a tenth of a second.
const HASHED_BYTES_MAX: u64 = 16 << 20;
/// Everything that a comparison depends on besides its plan, by name.
pub fn conditions(sides: &Sides) -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([
        ("worker protocol".to_owned(), PROTOCOL_VERSION.to_string()),
        ("--pin".to_owned(), sides.pin.to_string()),
        ("--measure-same-code".to_owned(), sides.measure_same_code.to_string()),
    ]);
    let environment = environment_lock(&sides.head, None, &BTreeMap::new());
    all.extend(environment.into_iter().map(|(name, value)| (format!("environment {name}"), value)));
    for (name, suite) in ["base", "head"].into_iter().zip(sides.pair()) {
        all.insert(format!("suite of {name}"), hash(&serde_json::to_vec(suite).unwrap_or_default()));
        for (word, dir) in suite_words(suite) {
            let found = find(&word, dir);
            let content = found.map_or_else(|| Ok("not found".to_owned()), |path| content(&path));
            all.insert(format!("{word} of {name}"), content.unwrap_or_else(|error| error.to_string()));
        }
    }
    all
}

/// The words of a suite's commands that name files (programs, their scripts, kernel sources), and the folder they are looked up in.
fn suite_words(suite: &Suite) -> Vec<(String, Option<&Path>)> {
    let dir = suite.dir.as_deref();
    let workers = suite.workers.values().map(|worker| (&worker.command, worker.dir.as_deref().or(dir)));
    let commands = workers
        .chain(suite.workloads.iter().filter_map(|workload| Some((&workload.task.call()?.command, dir))));
    let words = commands
        .flat_map(|(command, dir)| command_words(command, dir).into_iter().map(move |word| (word, dir)));
    let sources = suite.workloads.iter().filter_map(|workload| Some(workload.task.kernel()?.source.clone()));
    words.chain(sources.map(|source| (source, dir))).collect()
}

/// The program; for a shell's `-c` the programs in its script; otherwise the first argument that is a file.
fn command_words(command: &[String], dir: Option<&Path>) -> Vec<String> {
    let Some((program, arguments)) = command.split_first() else { return Vec::new() };
    let mut words = vec![program.clone()];
    if let [flag, text, ..] = arguments
        && flag == "-c"
    {
        let programs = text.split(SEPARATORS).filter(|word| !word.is_empty() && is_program(word, dir));
        words.extend(programs.map(str::to_owned));
    } else {
        words.extend(arguments.iter().find(|word| in_folder(word, dir).is_file()).cloned());
    }
    words
}

fn is_program(word: &str, dir: Option<&Path>) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let mode = find(word, dir).and_then(|path| fs::metadata(path).ok()).map(|file| file.permissions().mode());
    mode.is_some_and(|mode| mode & 0o111 != 0)
}

/// The file that a word names: by its path, on the `PATH`, or in the folder.
pub(super) fn find(word: &str, dir: Option<&Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&path).map(|folder| folder.join(word)).filter(|_| !word.contains('/'));
    on_path.chain([in_folder(word, dir)]).find(|path| path.is_file())
}

fn in_folder(word: &str, dir: Option<&Path>) -> PathBuf {
    let dir = dir.unwrap_or(Path::new("."));
    if word.contains('/') { resolve_program(dir, word).into() } else { dir.join(word) }
}

fn content(path: &Path) -> io::Result<String> {
    let metadata = fs::metadata(path)?;
    if metadata.len() <= HASHED_BYTES_MAX {
        return Ok(hash(&fs::read(path)?));
    }
    let changed = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(format!("{} bytes, changed at {} s", metadata.len(), changed.as_secs_f64()))
}

fn hash(bytes: &[u8]) -> String {
    format!("sha256 {}", hex(&Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadySuite;

    fn side(dir: &Path, command: &str) -> Suite {
        let text =
            format!("schema_version = 1\nname = \"s\"\n[[workload]]\nname = \"w\"\ncommand = {command}\n");
        Suite { dir: Some(dir.to_owned()), ..Suite::parse(&text).unwrap() }
    }

    fn conditions_of(dir: &Path, command: &str) -> BTreeMap<String, String> {
        let side = side(dir, command);
        let side = ReadySuite::list(side).unwrap();
        conditions(&Sides { base: side.clone(), head: side, pin: false, measure_same_code: false })
    }

    #[test]
    fn a_program_or_script_that_changed_is_seen_however_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("run.sh");
        let commands = [
            r#"["./run.sh"]"#,
            r#"["sh", "-e", "run.sh", "9"]"#,
            r#"["sh", "-c", "sleep 0; ./run.sh | wc"]"#,
        ];
        let write = |text: &str| {
            fs::write(&script, text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&script, mode).unwrap();
            commands.map(|command| conditions_of(dir.path(), command))
        };
        let (before, again, after) = (write("true"), write("true"), write("false"));
        assert_eq!(before, again);
        for (before, after) in before.iter().zip(&after) {
            let changed: Vec<&String> = before.keys().filter(|name| before[*name] != after[*name]).collect();
            assert!(
                matches!(&changed[..], [base, head] if base.ends_with("run.sh of base") && head.ends_with("run.sh of head"))
            );
        }
        assert!(before[2]["wc of head"].starts_with("sha256 "));
        assert_eq!(conditions_of(dir.path(), r#"["./gone"]"#)["./gone of base"], "not found");
    }

    #[test]
    fn data_that_a_shell_command_writes_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let command = r#"["sh", "-c", "echo 1 >> log.txt"]"#;
        let before = conditions_of(dir.path(), command);
        fs::write(dir.path().join("log.txt"), "1").unwrap();
        assert_eq!(conditions_of(dir.path(), command), before);
    }

    #[test]
    fn a_large_program_is_known_by_its_size_and_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        fs::File::create(&path).unwrap().set_len(HASHED_BYTES_MAX + 1).unwrap();
        assert!(content(&path).unwrap().starts_with("16777217 bytes, changed at "));
    }
}
