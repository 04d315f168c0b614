//! A repository whose revisions say for themselves how quick they are: nothing is timed, so every verdict is certain.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A worker that tells the nanoseconds in the file `time` beside it for every sample; `skip`, `die` and `wrong` are what they
/// say. Whatever it finds of the step's files, it writes to, and it leaves a process that goes on with that: it is the code of
/// a stranger.
const WORKER: &str = r#"
time=$(cat time)
for file in "$GITHUB_OUTPUT" "$GITHUB_ENV" "$GITHUB_PATH" "$GITHUB_STEP_SUMMARY"; do
    if [ -n "$file" ]; then echo code=0 >> "$file"; fi
done
if [ -n "$CI" ]; then
    files=$HOME/temp/_runner_file_commands
    for file in "$files"/*; do echo code=0 >> "$file"; done
    forge='for i in $(seq 300); do for file in "$1"/*; do echo code=0 >> "$file"; done; sleep 0.1; done'
    setsid sh -c "$forge" "left by $HOME" "$files" < /dev/null > /dev/null 2>&1 &
fi
if [ -n "$CI" ] && mkdir "$HOLDPOINT_CACHE/tried"; then
    # What a later step would run, or believe: by its path, by the way there, and by the way up from here.
    bin=$(dirname "$(command -v holdpoint)")
    up=$(pwd -P | sed 's|[^/]*|..|g')
    for folder in "$bin" "$bin/../runner/externals" "$bin/../../../runner/externals" "$HOME/workspace/base" "$up$HOME/bin"; do
        for name in holdpoint mkdir rm find node perf.toml perf-gpu.toml; do
            printf '#!/bin/sh\nprintf "code=0\\n" > "$GITHUB_OUTPUT"\n' > "$folder/new"
            chmod +x "$folder/new"
            mv "$folder/new" "$folder/$name"
        done
    done
    for folder in "$HOME/temp" "$HOME/workspace" "$HOME/bin" "$HOME"; do
        if mv "$folder" "$folder.away"; then cp -r "$folder.away" "$folder"; fi
    done
    # What git would run when the checkout is cleaned up, and what an upload would follow.
    git -C "$HOME/workspace/head" config core.fsmonitor 'echo forged >&2'
    ln -s "$HOME/temp/secret" "$HOME/temp/artifacts/link"
    umount "$HOME/bin" "$HOME"
    if grep -q secret "$HOME"/../../runner/.credentials; then echo the credentials were read > "$HOME/temp/artifacts/stolen"; fi
fi 2> /dev/null
text() { value=${line#*\"$1\":\"}; value=${value%%\"*}; }
number() { value=${line#*\"$1\":}; value=${value%%[,\}]*}; }
while IFS= read -r line; do
    text type; request=$value
    case $request in
        hello) echo '{"type":"hello","protocol":1,"name":"told","version":"1","timer":"host_monotonic","clock_resolution_ns":1}' ;;
        list) echo '{"type":"workloads","workloads":[{"name":"scan","op":"copy","shape":[2],"dtype":"f32"}]}' ;;
        prepare)
            case $time in
                skip) echo '{"type":"skipped","workload":"scan","reason":"no device"}' ;;
                die) exit 7 ;;
                *) echo '{"type":"prepared","workload":"scan","work":null}' ;;
            esac ;;
        run)
            number samples_count; samples=$value; number calls_per_sample; calls=$value
            list=$time; while [ "$samples" -gt 1 ]; do list=$list,$time; samples=$((samples - 1)); done
            echo "{\"type\":\"samples\",\"workload\":\"scan\",\"calls_per_sample\":$calls,\"elapsed_ns\":[$list]}" ;;
        verify) echo '{"type":"verified","workload":"scan","answer":null}' ;;
        release) echo '{"type":"released","workload":"scan"}' ;;
        bye) echo '{"type":"bye"}'; exit 0 ;;
    esac
done
"#;

const SUITE: &str = "
schema_version = 1
name = \"kernels\"
[measure]
rounds_min = 6
rounds_max = 6
[workers.told]
command = [\"sh\", \"worker.sh\"]
[[workload]]
name = \"scan\"
worker = \"told\"
op = \"copy\"
shape = [2]
";

/// What git says.
#[track_caller]
pub fn git(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(dir).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The repository that a forge has.
pub struct Origin {
    dir: TempDir,
}

impl Origin {
    /// With one commit on `main`, which takes 2000 ns.
    pub fn new() -> Self {
        let origin = Self { dir: tempfile::tempdir().unwrap() };
        git(origin.path(), &["init", "--quiet", "--initial-branch", "main"]);
        git(origin.path(), &["config", "uploadpack.allowAnySHA1InWant", "true"]);
        for (name, text) in
            [("worker.sh", WORKER), ("perf.toml", SUITE), ("perf-gpu.toml", SUITE), ("README", "x")]
        {
            fs::write(origin.path().join(name), text).unwrap();
        }
        origin.commit("2000");
        origin
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The next commit, which takes this time.
    pub fn commit(&self, time: &str) -> String {
        self.commit_file("time", time)
    }

    /// The next commit, with a file changed.
    pub fn commit_file(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        git(self.path(), &["add", "--all"]);
        git(self.path(), &["commit", "--quiet", "--allow-empty", "--message", name]);
        self.head()
    }

    pub fn head(&self) -> String {
        git(self.path(), &["rev-parse", "HEAD"])
    }

    /// A commit that no branch of this repository has, only the pull request's reference.
    pub fn commit_in_fork(&self, time: &str) -> String {
        git(self.path(), &["switch", "--quiet", "--detach"]);
        let head = self.commit(time);
        git(self.path(), &["update-ref", "refs/pull/42/head", &head]);
        git(self.path(), &["switch", "--quiet", "main"]);
        head
    }

    /// On a new branch from here.
    pub fn branch(&self, name: &str) {
        git(self.path(), &["switch", "--quiet", "--create", name]);
    }

    /// What `actions/checkout` does without credentials.
    pub fn check_out(&self, path: &Path, reference: &str, is_whole: bool) -> bool {
        fs::create_dir_all(path).unwrap();
        git(path, &["init", "--quiet", "--initial-branch", "x"]);
        let url = format!("file://{}", self.path().display());
        git(path, &["remote", "add", "origin", &url]);
        let depth: &[&str] = if is_whole { &["+refs/heads/*:refs/remotes/origin/*"] } else { &["--depth=1"] };
        git(path, &[&["fetch", "--quiet", "origin", reference], depth].concat());
        git(path, &["checkout", "--quiet", "--detach", reference]);
        true
    }

    /// Keeps this machine's baseline of the suite in the repository.
    pub fn record_baseline(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint"));
        command.current_dir(self.path()).args([
            "baseline",
            "record",
            "--quiet",
            "--runs",
            "3",
            "--suite",
            "perf.toml",
        ]);
        assert!(command.status().unwrap().success());
        self.commit_file("README", "with a baseline")
    }
}

/// An event of the fixtures, with hashes of this repository in place of its own.
pub fn event(name: &str, head: &str, base: &str) -> Value {
    let path: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "../ci/tests/events", &format!("{name}.json")].iter().collect();
    let text = fs::read_to_string(path).unwrap();
    let text = text.replace("6113728f27ae82c7b1a177c8d03f9e96e0adf246", head);
    let text = text.replace("9f2c1d7e5b8a4036c2f1e0d9b8a7c6d5e4f3a2b1", head);
    serde_json::from_str(&text.replace("ec26c3e57ca3a959ca5aad62de7213c562f8c821", base)).unwrap()
}
