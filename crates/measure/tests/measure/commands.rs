//! Programs as workloads.

use crate::common::{PATIENT, PLAN, SHORT, failure, is_gone, measure, measured, suite};
use holdpoint_model::FailureCause::{Crashed, Flooded, NotStarted, TimedOut, WrongAnswer};
use holdpoint_model::{FailureCause, Report, RunStatus};

/// A suite with a shell command named `bad`, with more keys, and a good one beside it.
fn run(plan: &str, script: &str, keys: &str) -> Report {
    let script = serde_json::to_string(script).unwrap();
    let bad = format!("[[workload]]\nname = \"bad\"\ncommand = [\"sh\", \"-c\", {script}]\n{keys}\n");
    let good = "[[workload]]\nname = \"good\"\ncommand = [\"true\"]\niterations = 2\n";
    let report = measure(&suite(&format!("{PLAN}{plan}"), &format!("{bad}{good}")));
    measured(&report, "good");
    report
}

#[track_caller]
fn fails(report: &Report, cause: FailureCause, words: &str) {
    let failure = failure(report, "bad");
    assert_eq!(failure.cause, cause, "{failure:?}");
    assert!(failure.detail.contains(words), "{:?} should contain {words:?}", failure.detail);
    assert_eq!(report.status, RunStatus::Failed);
}

#[test]
fn a_program_has_wall_time_cpu_time_and_peak_memory() {
    let script = "dd if=/dev/zero of=/dev/null bs=256M count=1 2>/dev/null";
    let report = run(PATIENT, script, "metrics = [\"p50_ms\", \"cpu_p50_ms\"]");
    let measured = measured(&report, "bad");
    assert!(measured.cpu_p50_ms.is_some_and(|ms| ms > 0.0));
    assert!(measured.peak_memory_mb.is_some_and(|mb| mb > 256.0));
    assert_eq!(measured.answer, None);
    for round in &measured.samples.rounds {
        assert_eq!(round.cpu_ns.len(), round.elapsed_ns.len());
        assert!(round.peak_rss_bytes.is_some());
    }
    let identity = &report.benchmarks["bad"].identity;
    assert_eq!(
        (identity.op.as_str(), identity.timer.as_str(), identity.dtype.as_str()),
        ("command", "process_wall", "")
    );
    assert_eq!(identity.params["command"][2], script);
    assert!(report.metrics.contains_key("bad_cpu_p50_ms"));
}

#[test]
fn memory_that_cannot_be_told_from_the_parents_is_not_told() {
    // The parent's peak is in the child's books from the start.
    let ballast = vec![1_u8; 64 << 20];
    let report = run(PATIENT, "exit 0", "");
    assert_eq!(measured(&report, "bad").peak_memory_mb, None);
    assert_eq!(ballast.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 64 << 20);
}

#[test]
fn a_program_that_fails_leaves_its_status_and_its_last_words() {
    let report =
        run(PATIENT, "i=0; while [ $i -lt 30 ]; do i=$((i + 1)); echo line $i >&2; done; exit 7", "");
    fails(&report, Crashed, "\"sh\" ended with exit status: 7");
    let expected: Vec<String> = (11..=30).map(|i| format!("line {i}")).collect();
    assert_eq!(failure(&report, "bad").stderr_tail, expected);
    fails(&run(PATIENT, "kill -9 $$", ""), Crashed, "signal: 9 (SIGKILL)");
}

#[test]
fn the_right_text_on_stdout_passes_whatever_ends_its_lines() {
    let report = run(PATIENT, "echo 42; echo", "expect_stdout = \"42\"");
    assert!(measured(&report, "bad").answer.as_ref().is_some_and(|answer| answer.passed));
}

#[test]
fn the_wrong_text_on_stdout_is_a_wrong_answer() {
    let report = run(PATIENT, "echo 41", "expect_stdout = \"42\"");
    fails(&report, WrongAnswer, "wrong answer before timing: stdout: got \"41\", want \"42\"");
    assert_eq!(failure(&report, "bad").samples, None);
}

#[test]
fn endless_stdout_is_a_flood() {
    let report = run(PATIENT, "w=$(printf '%01000d' 0); while :; do echo $w; done", "expect_stdout = \"0\"");
    fails(&report, Flooded, "\"sh\" printed over the limit of 4 MiB");
}

#[test]
fn a_program_that_takes_too_long_is_killed_with_all_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let script = format!("echo $$ >> {0}; sleep 1000 & echo $! >> {0}; wait", pids.display());
    fails(&run(SHORT, &script, ""), TimedOut, "\"sh\" ran longer than 0.7 s and was killed");
    let pids = std::fs::read_to_string(pids).unwrap();
    assert_eq!(pids.lines().count(), 2);
    assert!(pids.lines().all(|pid| is_gone(pid.parse().unwrap())), "{pids}");
}

#[test]
fn what_a_program_leaves_running_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let script = format!("sleep 1000 & echo $! >> {}; echo done", pids.display());
    let report = run(PATIENT, &script, "expect_stdout = \"done\"\niterations = 2");
    assert!(measured(&report, "bad").answer.as_ref().is_some_and(|answer| answer.passed));
    let pids = std::fs::read_to_string(pids).unwrap();
    assert!(pids.lines().all(|pid| is_gone(pid.parse().unwrap())), "{pids}");
}

#[test]
fn a_program_that_is_not_there_is_named_with_a_remedy() {
    let rest = "[[workload]]\nname = \"bad\"\ncommand = [\"/nowhere/program\"]\n";
    let report = measure(&suite(&format!("{PLAN}{PATIENT}"), rest));
    fails(&report, NotStarted, "cannot start \"/nowhere/program\"");
    assert!(failure(&report, "bad").detail.ends_with("is it built and on the path?"));
}

#[test]
fn a_server_that_does_not_start_is_named_with_its_last_words() {
    let report = run(PATIENT, "true", "server = [\"sh\", \"-c\", \"echo no model >&2; exit 3\"]");
    fails(&report, Crashed, "server: it ended before its port was open");
    assert_eq!(failure(&report, "bad").stderr_tail, ["no model"]);
    let report = run(PATIENT, "true", "server = [\"./not-there\"]");
    fails(&report, NotStarted, "server: cannot start \"./not-there\"");
}

#[test]
fn a_server_that_never_listens_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let server = format!("server = [\"sh\", \"-c\", \"echo $$ > {}; exec sleep 1000\"]", pid.display());
    let report = run(SHORT, "true", &server);
    fails(&report, TimedOut, "did not open port");
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(is_gone(pid.trim().parse().unwrap()));
}
