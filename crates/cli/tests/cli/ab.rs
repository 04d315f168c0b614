//! `holdpoint ab`: verdicts, exit codes, files, text, and what goes wrong on a side.

use crate::common::Here;
use crate::scripted_worker::{outcome, units};
use serde_json::Value;

/// With constants, units at the same time say nothing more.
const QUICK: [&str; 2] = ["--at-once", "1"];

/// Commands of this length take tens of times as long as others; nothing a machine does makes up for that.
const FAST: &str = "sleep 0.001";
const SLOW: &str = "sleep 0.03";

fn commands(here: &Here, base: &str, head: &str, arguments: &[&str]) -> crate::common::Ran {
    here.run(&[&["ab", "--base", base, "--head", head], arguments].concat())
}

#[test]
fn a_slower_command_is_regressed_and_leaves_its_evidence() {
    let here = Here::new();
    let ran = commands(&here, FAST, SLOW, &["--tolerance", "100%"]);
    ran.ends(1).prints(&["command", "regressed", "slower"]).notes(&["evidence: artifacts"]);
    let report = here.ab();
    assert_eq!((&report["verdict"], &report["finished"]), (&"regressed".into(), &true.into()));
    assert_eq!((&report["base"]["label"], &report["head"]["label"]), (&FAST.into(), &SLOW.into()));
    assert_eq!(report["policy"], "sequential");
    assert_eq!(outcome(&report, "command")[1], "decided");
    assert!(report["workloads"]["command"]["evidence"]["ratio"].as_f64().unwrap() > 2.0);
    let page = here.read("artifacts/ab.md");
    assert!(page.contains("regressed") && page.contains(SLOW), "{page}");
    assert_eq!(here.left_over(), [""; 0]);
}

#[test]
fn a_faster_head_is_improved() {
    let here = Here::with_scripted_worker();
    here.compare_scripted("4000 a b", "2000 a b", &QUICK).ends(0).prints(&["improved", "faster"]);
    assert_eq!(here.ab()["verdict"], "improved");
    // How much of it noise leaves to be seen differs; slower it is not.
    commands(&here, SLOW, FAST, &["--tolerance", "100%", "--speedup-max", "1000"]).ends(0);
}

#[test]
fn the_same_times_pass_and_the_samples_are_kept_as_told() {
    let here = Here::with_scripted_worker();
    here.compare_scripted("2000 a b", "2000 a b", &QUICK).ends(0).prints(&["pass"]);
    let report = here.ab();
    for name in ["a", "b"] {
        assert_eq!(outcome(&report, name)[..2], ["pass", "decided"]);
        for unit in units(&report, name) {
            assert_eq!(unit["x"], 0.0);
            assert!(
                unit["rounds"][0]["head_ns"].as_array().unwrap().iter().all(|ns| *ns == 2000 || *ns == 2001)
            );
        }
    }
}

#[test]
fn one_slower_workload_among_others_decides_for_all() {
    let here = Here::with_scripted_worker();
    // Told times cannot differ by workload, so the other one is a command that is the same on both sides.
    let suite = here.read("suite.toml").replace("[[workload]]\nname = \"b\"", "[[workload]]\nname = \"c\"");
    let suite = suite.rsplit_once("[[workload]]").unwrap().0;
    here.write("suite.toml", &format!("{suite}[[workload]]\nname = \"true\"\ncommand = [\"true\"]\n"));
    here.compare_scripted("2000 a", "5000 a", &[&QUICK[..], &["--tolerance", "100%"]].concat()).ends(1);
    let report = here.ab();
    assert_eq!(outcome(&report, "a")[0], "regressed");
    assert_eq!(outcome(&report, "true")[0], "pass");
    assert_eq!(report["verdict"], "regressed");
}

#[test]
fn what_cannot_be_decided_is_inconclusive_and_says_what_would_help() {
    let here = Here::with_scripted_worker();
    let arguments = [&QUICK[..], &["--tolerance", "0%", "--units-max", "20"]].concat();
    here.compare_scripted("2000 a b", "2000 a b", &arguments).ends(3).prints(&["inconclusive", "undecided"]);
    let report = here.ab();
    let [verdict, ended, reason] = outcome(&report, "a");
    assert_eq!((verdict, ended, units(&report, "a").len()), ("inconclusive", "units_max", 20));
    assert!(reason.contains("+0.0 %") && reason.contains("after 20 units"), "{reason}");
    assert!(report["finished"] == true);
}

#[test]
fn few_units_and_little_time_are_told_as_such() {
    let here = Here::with_scripted_worker();
    let few = [&QUICK[..], &["--units-max", "2"]].concat();
    here.compare_scripted("2000 a b", "4000 a b", &few).ends(3);
    let report = here.ab();
    assert_eq!(units(&report, "a").len(), 2);
    assert!(outcome(&report, "a")[2].contains("--units-max"), "{report:#}");
    let short = [&QUICK[..], &["--budget", "0.000001"]].concat();
    here.compare_scripted("2000 a b", "4000 a b", &short).ends(3);
    let report = here.ab();
    assert_eq!(outcome(&report, "a")[1], "budget");
    assert!(outcome(&report, "a")[2].contains("--budget"), "{report:#}");
}

#[test]
fn json_on_stdout_is_the_file_and_quiet_is_quiet() {
    let here = Here::with_scripted_worker();
    let json = here.compare_scripted("2000 a b", "4000 a b", &[&QUICK[..], &["--format", "json"]].concat());
    assert_eq!(json.ends(1).stdout, here.read("artifacts/comparison.json"));
    let quiet = here.compare_scripted("2000 a b", "4000 a b", &[&QUICK[..], &["--quiet"]].concat());
    assert_eq!((quiet.ends(1).stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn evidence_is_shown_when_asked_for_and_kept_where_asked_for() {
    let here = Here::with_scripted_worker();
    let words = ["Cliff", "Hedges", "Mann"];
    let plain = here.compare_scripted("2000 a b", "4000 a b", &QUICK);
    assert!(words.iter().all(|word| !plain.ends(1).stdout.contains(word)), "{plain:#?}");
    let arguments = [&QUICK[..], &["--evidence", "--artifacts", "else/where"]].concat();
    here.compare_scripted("2000 a b", "4000 a b", &arguments).ends(1).prints(&words);
    assert!(here.path("else/where/ab.json").exists() && here.path("else/where/ab.md").exists());
}

#[test]
fn the_seed_decides_the_order_and_is_kept() {
    let here = Here::with_scripted_worker();
    let orders = || {
        here.compare_scripted("2000 a b", "4000 a b", &[&QUICK[..], &["--seed", "7"]].concat()).ends(1);
        let report = here.ab();
        assert_eq!(report["plan"]["seed"], 7);
        let of = |unit: &Value| (unit["rounds"][0]["first"].clone(), unit["rounds"][0]["order"].clone());
        units(&report, "a").iter().map(of).collect::<Vec<_>>()
    };
    let first = orders();
    assert_eq!(first, orders());
    assert!(first.iter().any(|(side, _)| side == "base") && first.iter().any(|(side, _)| side == "head"));
}

#[test]
fn a_command_that_fails_is_broken_on_its_side() {
    let here = Here::new();
    let ran = commands(&here, "true", "echo oh dear >&2; exit 3", &[]);
    ran.ends(4).prints(&["broken", "head failed", "exit status: 3"]);
    let failure = &here.ab()["workloads"]["command"]["failure"];
    assert_eq!((&failure["side"], &failure["cause"]), (&"head".into(), &"crashed".into()));
    assert!(failure.to_string().contains("oh dear"), "{failure}");
    commands(&here, "exit 3;", "true", &[]).ends(4).prints(&["base failed"]);
    commands(&here, "true", "no-such-program-here", &[]).ends(4).prints(&["head failed", "cannot start"]);
    assert_eq!(here.ab()["workloads"]["command"]["failure"]["cause"], "not_started");
}

#[test]
fn what_was_measured_before_a_failure_is_kept() {
    let here = Here::new();
    // One call is the first unit and one is checked; the tenth is in one of the next, which is too early for any verdict.
    let head = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; [ $n -lt 10 ] || exit 9";
    commands(&here, "cat n 2>/dev/null; true", head, &[]).ends(4).prints(&["head failed", "exit status: 9"]);
    let report = here.ab();
    assert_eq!(outcome(&report, "command")[..2], ["broken", "failed"]);
    let kept = units(&report, "command");
    assert!(!kept.is_empty() && kept.len() < 8, "{report:#}");
    assert!(kept.iter().all(|unit| unit["rounds"][0]["base_ns"][0].as_u64().unwrap() > 0));
    assert!(report["workloads"]["command"]["evidence"]["units_count"] == kept.len());
}

#[test]
fn disjoint_ci_takes_all_units_and_ends_as_the_seed_does() {
    let here = Here::with_scripted_worker();
    let arguments = [&QUICK[..], &["--policy", "disjoint-ci", "--units-max", "8"]].concat();
    for (head, code, verdict, sentence) in [
        ("4000 a b", 1, "regressed", "REGRESSION: 100.0% slower"),
        ("1000 a b", 0, "improved", "IMPROVEMENT: 50.0% faster"),
        ("2000 a b", 2, "inconclusive", "NO SIGNIFICANT DIFFERENCE: CIs overlap"),
    ] {
        here.compare_scripted("2000 a b", head, &arguments).ends(code).prints(&[sentence]);
        let report = here.ab();
        assert_eq!((&report["policy"], &report["verdict"]), (&"disjoint-ci".into(), &verdict.into()));
        assert_eq!(units(&report, "a").len(), 8);
        assert!(outcome(&report, "a")[2].contains(sentence));
    }
}

#[test]
fn an_answer_that_becomes_wrong_later_is_found() {
    let here = Here::new();
    let suite = |program: &str| {
        format!(
            "schema_version = 1\nname = \"c\"\n[[workload]]\nname = \"w\"\ncommand = [\"sh\", \"{program}\"]\nexpect_stdout = \"1\"\n"
        )
    };
    // The same work on both sides, so that it takes many units to tell them apart.
    let program = |calls: u32| {
        format!("echo x >> $0.calls\nif [ $(wc -l < $0.calls) -gt {calls} ]; then echo 2; else echo 1; fi\n")
    };
    here.write("right.sh", &program(1_000_000));
    here.write("late.sh", &program(20));
    here.write("right.toml", &suite("right.sh"));
    here.write("late.toml", &suite("late.sh"));
    let ran =
        here.run(&["ab", "--base-suite", "right.toml", "--head-suite", "late.toml", "--tolerance", "0.1%"]);
    ran.ends(4).prints(&["broken", "stdout: got \"2\", want \"1\""]);
    let report = here.ab();
    assert!(units(&report, "w").len() > 1, "it was right in the first unit");
}

#[test]
fn a_finished_comparison_answers_another_question() {
    let here = Here::with_scripted_worker();
    here.compare_scripted("2000 a b", "2100 a b", &QUICK).ends(1);
    let compare = |arguments: &[&str]| here.run(&[&["compare", "artifacts/ab.json"], arguments].concat());
    compare(&[]).ends(1).prints(&["slower than 2.0 %"]);
    compare(&["--tolerance", "10%", "--summary", "again.json"]).ends(0).prints(&["none of the 2 workloads"]);
    assert_eq!(here.json("again.json")["basis"]["plan"]["tolerance"], 0.1);
    compare(&["--tolerance", "5%"]).ends(3).prints(&["do not suffice for this question: measure again"]);
    compare(&["--policy", "allowed-max"]).refuses(64, &["needs a baseline"]);
    compare(&["--baseline", "x.json"]).refuses(64, &["it holds both sides already; leave out --baseline"]);
    here.run(&["compare", "nowhere.json"]).refuses(64, &["--baseline FILE"]);
}

#[test]
fn a_suite_says_how_it_is_judged_and_flags_override_it() {
    let here = Here::with_scripted_worker();
    let suite = here.read("suite.toml");
    let with = |gate: &str| here.write("suite.toml", &format!("{suite}\n[gate]\n{gate}\n"));
    let ab = |flags: &[&str]| here.compare_scripted("2000 a b", "2100 a b", &[&QUICK[..], flags].concat());
    with("tolerance = \"10%\"\nalarm_rate = 0.01\nunits_max = 50");
    ab(&[]).ends(0).prints(&["tolerance 10.0 %, at most 1 false alarm in 100 unchanged suites"]);
    assert_eq!(here.ab()["plan"]["units_max"], 50);
    ab(&["--tolerance", "1%"]).ends(1);
    with("tolerance = \"10%\"\nworkloads.b.tolerance = \"1%\"");
    ab(&[]).ends(1).prints(&["regressed: 1 of 2 workloads"]);
    with("policy = \"disjoint-ci\"\nunits_max = 12");
    ab(&[]).prints(&["policy disjoint-ci"]);
    with("policy = \"best\"");
    ab(&[]).refuses(64, &["gate.policy of the suite: there is no \"best\""]);
    with("alarm_rate = 2");
    ab(&[]).refuses(64, &["alarm_rate is 2; a rate between 0 and 1 is wanted"]);
    with("workloads.c.tolerance = \"1%\"");
    ab(&[]).refuses(64, &["the suite has no workload \"c\""]);
}
