//! `holdpoint ab`: which sides can be compared, and which cannot.

use crate::common::{Here, TINY};
use crate::scripted_worker::{outcome, suite, units};

const QUICK: [&str; 2] = ["--at-once", "1"];

#[test]
fn sides_that_make_no_pair_are_refused() {
    let here = Here::with_scripted_worker();
    let nothing = here.run(&["ab"]);
    nothing
        .refuses(64, &["what is to be compared?", "--base", "--base-rev", "--base-worker", "--base-suite"]);
    for arguments in [
        &["--base", "true"][..],
        &["--head", "true"],
        &["--base-worker", "w"],
        &["--head-worker", "w"],
        &["--base-suite", "cpu"],
        &["--head-suite", "cpu"],
        &["--head-rev", "HEAD"],
        &["--dirty"],
    ] {
        let ran = here.run(&[&["ab"], arguments].concat());
        assert_eq!(ran.ends(64).stdout, "", "{arguments:?}");
        ran.notes(&["required arguments were not provided"]);
    }
    assert!(!here.path("artifacts").exists());
}

#[test]
fn sides_of_different_kinds_are_refused() {
    let here = Here::with_scripted_worker();
    let pairs = [
        ["--base", "--head"],
        ["--base-worker", "--head-worker"],
        ["--base-suite", "--head-suite"],
        ["--base-rev", "--head-rev"],
    ];
    for (at, [base, head]) in pairs.iter().enumerate() {
        for (other_at, [other_base, other_head]) in pairs.iter().enumerate() {
            if at == other_at {
                continue;
            }
            let mixed = here.run(&["ab", base, "true", other_head, "true"]);
            assert_eq!(mixed.ends(64).stdout, "", "{base} {other_head}");
            let both = here.run(&["ab", base, "a", head, "b", other_base, "c", other_head, "d"]);
            both.ends(64).notes(&["cannot be used with"]);
            let three = here.run(&["ab", base, "a", head, "b", other_head, "d"]);
            assert_eq!(three.ends(64).stdout, "", "{base} {head} {other_head}");
        }
    }
    assert!(!here.path("artifacts").exists());
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let here = Here::with_scripted_worker();
    for (flag, value, word) in [
        ("--units-max", "0", "1..=10000"),
        ("--tolerance", "1", "such as 1% or 0.5%"),
        ("--tolerance", "-1%", "such as 1% or 0.5%"),
        ("--tolerance", "nan%", "such as 1% or 0.5%"),
        ("--alarm-rate", "2", "between 0 and 1"),
        ("--miss-rate", "0", "between 0 and 1"),
        ("--budget", "0", "above 0"),
        ("--metric", "energy", "wall or cpu is wanted"),
        ("--seed", "x", "invalid"),
        ("--policy", "allowed-max", "needs a baseline; for two sides choose sequential or disjoint-ci"),
    ] {
        let value = format!("{flag}={value}");
        let ran = here.run(&["ab", "--base", "true", "--head", "true", &value]);
        assert_eq!(ran.ends(64).stdout, "", "{value}");
        ran.notes(&[word]);
    }
    here.run(&["ab", "--base", " ", "--head", "true"]).refuses(64, &["command \" \""]);
}

#[test]
fn a_suite_of_commands_has_no_worker_to_replace() {
    let here = Here::with_scripted_worker();
    let head = TINY.split("[[workload]]").next().unwrap();
    here.write("suite.toml", &format!("{head}[[workload]]\nname = \"true\"\ncommand = [\"true\"]\n"));
    here.compare_scripted("1 a", "1 a", &[])
        .refuses(64, &["suite \"tiny\" has only commands, no worker to replace"]);
    let none = here.run(&["ab", "--base-suite", "suite.toml", "--head-suite", "nowhere.toml"]);
    none.refuses(64, &["nowhere.toml"]);
}

#[test]
fn workloads_that_are_not_on_both_sides_are_told_apart() {
    let here = Here::with_scripted_worker();
    here.write("base.toml", &suite(&["a", "b"]));
    let other = suite(&["a", "c"]);
    here.write("head.toml", &other.replacen("shape = [2]", "shape = [2, 3]", 1));
    here.run(&["ab", "--base-suite", "base.toml", "--head-suite", "head.toml"]).ends(2).prints(&[
        "not the same work: base is copy [2] f32",
        "was it removed or renamed?",
        "c is new in head",
    ]);
    let report = here.ab();
    assert_eq!(report["verdict"], "skipped");
    for name in ["a", "b"] {
        assert_eq!(outcome(&report, name)[..2], ["skipped", "skipped"]);
        assert!(units(&report, name).is_empty());
    }
    assert!(report["notes"].to_string().contains("c is new in head"), "{report:#}");
    assert!(report["workloads"].get("c").is_none());
    assert!(!here.path("pids").exists(), "nothing had to be started");
}

#[test]
fn what_both_suites_have_is_still_compared() {
    let here = Here::with_scripted_worker();
    here.write("base.toml", &suite(&["a", "b"]));
    here.write("head.toml", &suite(&["b"]).replace("2000", "4000"));
    let arguments = ["ab", "--base-suite", "base.toml", "--head-suite", "head.toml"];
    here.run(&[&arguments[..], &QUICK].concat()).ends(1).prints(&["was it removed or renamed?"]);
    let report = here.ab();
    assert_eq!(outcome(&report, "b")[..2], ["regressed", "decided"]);
    assert_eq!(outcome(&report, "a")[0], "skipped");
    let x = units(&report, "b")[0]["x"].as_f64().unwrap();
    assert!((x - std::f64::consts::LN_2).abs() < 1e-12, "{x}");
}

#[test]
fn workers_that_list_different_workloads_are_compared_in_what_they_share() {
    let here = Here::with_scripted_worker();
    here.compare_scripted("2000 a b", "2000 a", &QUICK).ends(2);
    let report = here.ab();
    assert_eq!(outcome(&report, "a")[0], "pass");
    let [verdict, _, reason] = outcome(&report, "b");
    assert_eq!(verdict, "skipped");
    assert!(reason.contains("not the same workloads on both sides: head's"), "{reason}");
    here.compare_scripted("2000 a b=7", "2000 a b", &QUICK).ends(2);
    let reason = outcome(&here.ab(), "b")[2].to_owned();
    assert!(reason.contains("base's") && reason.contains("[7]"), "{reason}");
    here.compare_scripted("2000 a b", "2000 c", &QUICK).ends(2);
    assert_eq!(outcome(&here.ab(), "a")[0], "skipped");
}

#[test]
fn workloads_that_the_suite_leaves_to_its_worker_are_those_that_both_programs_list() {
    let here = Here::with_scripted_worker();
    here.write("suite.toml", &suite(&[]).replace("\"b\"]\n", "\"b\"]\nall_workloads = true\n"));
    here.compare_scripted("2000 a b", "4000 a c", &QUICK).ends(1);
    let report = here.ab();
    assert_eq!(outcome(&report, "a")[0], "regressed");
    let names: Vec<&str> = crate::common::keys(&report["workloads"]);
    assert_eq!((names, outcome(&report, "b")[0]), (vec!["a", "b"], "skipped"));
    assert!(report["notes"].to_string().contains("c is new in head"), "{report:#}");
    here.compare_scripted("2000 a b", "2000 a b", &QUICK).ends(0);
}

#[test]
fn a_side_that_cannot_run_here_skips_and_one_that_dies_is_broken() {
    let here = Here::with_scripted_worker();
    here.compare_scripted("2000 a b", "skip a b", &QUICK).ends(2).prints(&["head: no device"]);
    assert_eq!(here.ab()["verdict"], "skipped");
    let dead = ["ab", "--suite", "suite.toml", "--base-worker", "sh scripted.sh 2000 a b"];
    let ran = here.run(&[&dead[..], &["--head-worker", "echo gone >&2; exit 7"]].concat());
    ran.ends(4).prints(&["head failed", "gone"]);
    let ran = here.run(&[&dead[..], &["--head-worker", "./nowhere"]].concat());
    ran.ends(4).prints(&["head failed", "cannot start \"./nowhere\""]);
}

#[test]
fn built_in_ops_can_be_compared_with_themselves() {
    let here = Here::new();
    let arguments = ["ab", "--base-suite", "suite.toml", "--head-suite", "suite.toml", "--tolerance", "300%"];
    here.run(&arguments).ends(0).prints(&["pack", "true", "pass"]);
    assert_eq!(outcome(&here.ab(), "pack")[..2], ["pass", "decided"]);
}
