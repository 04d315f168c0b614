//! Revisions side by side: `holdpoint gate --against` and `holdpoint ab --base-rev`.

use crate::common::{Here, data};
use crate::program::write_program;
use crate::repository::{FAST, SLOW};
use crate::scripted_worker::outcome;

#[test]
fn a_slower_revision_is_regressed_and_its_builds_are_used_again() {
    let here = Here::repository();
    let was = here.commit("first", Some(FAST));
    let is = here.commit("second", Some(SLOW));
    let ran = here.revisions(&["gate", "--against", "HEAD~1"]);
    ran.ends(1).prints(&["regressed", "program", "HEAD~1"]).notes(&["evidence: artifacts"]);
    let report = here.ab();
    assert_eq!(report["base"]["revision"]["commit"].as_str(), Some(was.as_str()));
    assert_eq!(report["head"]["revision"]["commit"].as_str(), Some(is.as_str()));
    assert_eq!((&report["head"]["revision"]["dirty"], &report["suite"]), (&false.into(), &"program".into()));
    assert!(here.read("artifacts/ab.md").contains("regressed"));
    assert_eq!(here.builds_count(), 2);
    // The other way round nothing has to be built.
    let ran = here.revisions(&["ab", "--base-rev", &is, "--head-rev", &was[..10]]);
    ran.ends(0);
    assert_eq!(here.builds_count(), 2);
    assert!(!here.path("run.sh").exists(), "the work tree is left alone");
    assert_eq!(here.git(&["status", "--porcelain", "--untracked-files=no"]), "");
}

#[test]
fn a_revision_that_is_no_slower_passes() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.commit("second", Some(&format!("{FAST}# a comment\n")));
    here.revisions(&["gate", "--against", "HEAD~1"]).ends(0).prints(&["pass"]);
    assert_eq!(outcome(&here.ab(), "program")[..2], ["pass", "decided"]);
    // The same revision twice is built once.
    here.revisions(&["ab", "--base-rev", "main"]).ends(0);
    assert_eq!((here.ab()["head"]["label"].as_str(), here.builds_count()), (Some("HEAD"), 2));
}

#[test]
fn uncommitted_changes_are_measured_unless_head_is_named() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.program(SLOW);
    here.revisions(&["gate", "--against", "HEAD"])
        .ends(1)
        .prints(&["working tree"])
        .notes(&["comparing the work tree (prog.sh differs from HEAD) with HEAD"]);
    let report = here.ab();
    assert_eq!(report["head"]["label"], "working tree");
    assert_eq!(report["head"]["revision"]["dirty"], true);
    assert_eq!(report["base"]["revision"]["dirty"], false);
    // Named, HEAD is what it is, whatever lies in the tree.
    here.revisions(&["ab", "--base-rev", "HEAD", "--head-rev", "HEAD"]).ends(0);
    here.git(&["checkout", "--quiet", "prog.sh"]);
    here.revisions(&["gate", "--against", "HEAD", "--dirty"]).ends(0).prints(&["working tree"]);
    assert_eq!(here.ab()["head"]["revision"]["dirty"], false, "a clean tree is not dirty");
}

#[test]
fn a_gate_without_a_word_compares_with_the_default_branch_and_says_so() {
    let here = Here::repository();
    let left = here.commit("first", Some(FAST));
    here.git(&["switch", "--quiet", "--create", "change"]);
    let is = here.commit("second", Some(SLOW));
    let said = format!("comparing HEAD with {}, the merge base with main", &left[..10]);
    here.revisions(&["gate"]).ends(1).prints(&["regressed", "first"]).notes(&[&said]);
    let report = here.ab();
    assert_eq!(report["base"]["revision"]["commit"].as_str(), Some(left.as_str()));
    assert_eq!(report["head"]["revision"]["commit"].as_str(), Some(is.as_str()));
    // A baseline that lies there is used where it is named.
    here.program(&format!("{SLOW}# a comment\n"));
    write_program(&here.path("run.sh"), SLOW);
    here.revisions(&["gate", "--runs", "1"]).ends(3).notes(&["baseline recorded"]);
    let baseline = here.baseline();
    let ran = here.revisions(&["gate"]);
    ran.ends(1).notes(&["the work tree (prog.sh differs from HEAD)", &baseline, "is not used"]);
    here.edit_times(1e9);
    here.revisions(&["gate", "--baseline", &baseline]).ends(3).prints(&["policy stored"]);
    let suite = here.read("suite.toml");
    here.write("suite.toml", &format!("{suite}[gate]\nbaseline = \"{baseline}\"\n"));
    here.revisions(&["gate"]).ends(3).notes(&["baseline: ", &baseline]);
}

#[test]
fn revisions_that_are_not_there_are_refused() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.revisions(&["gate", "--against", "no-such-branch"])
        .refuses(64, &["\"no-such-branch\" is no commit of"]);
    here.revisions(&["gate", "--against", "HEAD~1"]).refuses(64, &["\"HEAD~1\" is no commit"]);
    here.revisions(&["gate", "--against", "--output=x"]).ends(64);
    here.revisions(&["ab", "--base-rev", "HEAD", "--head-rev", ""]).refuses(64, &["\"\" is no commit"]);
    assert_eq!((here.builds_count(), here.path("artifacts").exists()), (0, false));
    let nowhere = Here::new();
    nowhere.write("suite.toml", &here.read("suite.toml"));
    nowhere.revisions(&["gate", "--against", "HEAD"]).refuses(64, &["no git work tree"]);
}

#[test]
fn a_revision_that_does_not_build_is_broken_with_its_last_lines() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.commit("second", None);
    let ran = here.revisions(&["gate", "--against", "HEAD~1"]);
    ran.ends(4).notes(&["holdpoint: building commit ", "exit status: 1", "\n  | ", "prog.sh"]);
    assert_eq!(ran.stdout, "");
    here.revisions(&["-q", "ab", "--base-rev", "HEAD", "--head-rev", "HEAD~1"]).ends(4).notes(&["  | "]);
    let suite = here.read("suite.toml").replace("\"sh\", \"-c\"", "\"no-such-program-here\", \"-c\"");
    here.write("suite.toml", &suite);
    here.revisions(&["gate", "--against", "HEAD~1"]).refuses(4, &["no-such-program-here", "[build]"]);
}

#[test]
fn built_in_ops_are_the_same_at_every_revision() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.run(&["gate", "--against", "HEAD"])
        .refuses(64, &["suite \"cpu\", workload", "built-in ops are holdpoint's own"]);
    here.run(&["bisect", "--good", "HEAD"]).refuses(64, &["built-in ops are holdpoint's own"]);
}

#[test]
fn flags_that_belong_to_baselines_do_not_go_with_a_revision() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    for flags in
        [&["--baseline", "x"][..], &["--require-baseline"], &["--allow", "machine"], &["--threshold", "-3"]]
    {
        here.run(&[&["gate", "--against", "HEAD"], flags].concat()).ends(64).notes(&["without --against"]);
    }
    for policy in ["allowed-max", "threshold"] {
        let ran = here.revisions(&["gate", "--against", "HEAD", "--policy", policy]);
        ran.refuses(64, &["needs a baseline; for two sides choose sequential or disjoint-ci"]);
    }
}

#[test]
fn disjoint_ci_needs_two_sides_with_samples() {
    let here = Here::new();
    here.gate(&["--policy", "disjoint-ci"]).refuses(64, &["needs the samples of both sides", "--against"]);
    assert_eq!(here.files(), ["suite.toml"]);
    let sleeping = |name: &str, seconds: &str| {
        let suite = format!(
            "schema_version = 1\nname = \"s\"\n[[workload]]\nname = \"w\"\niterations = 25\ncommand = [\"sleep\", {seconds:?}]\n"
        );
        here.write("s.toml", &suite);
        here.run(&["run", "--suite", "s.toml", "-o", name]).ends(0);
        // However busy this machine is.
        let mut report = here.json(name);
        report["config"]["others_cpu"] = 0.0.into();
        here.write(name, &report.to_string());
    };
    sleeping("fast.json", "0.004");
    sleeping("slow.json", "0.02");
    let compare = |report: &str, baseline: &str, more: &[&str]| {
        here.run(&[&["compare", report, "--baseline", baseline, "--policy", "disjoint-ci"], more].concat())
    };
    let params = ["--allow", "params"];
    compare("slow.json", "fast.json", &params).ends(1).prints(&["REGRESSION:", "disjoint-ci"]);
    compare("fast.json", "slow.json", &params).ends(0).prints(&["improved: "]);
    let same = compare("fast.json", "fast.json", &["--summary", "summary.json"]);
    same.ends(2).prints(&["NO SIGNIFICANT DIFFERENCE: CIs overlap"]);
    assert_eq!(here.json("summary.json")["verdict"], "inconclusive");
    compare("slow.json", &data("apex-cpu-baseline.json"), &[]).ends(64);
    compare("slow.json", "fast.json", &["--threshold", "-3"]).refuses(64, &["--threshold"]);
}

#[test]
fn a_revision_can_be_judged_by_disjoint_ci() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.commit("second", Some(SLOW));
    here.revisions(&["gate", "--against", "HEAD~1", "--policy", "sequential"]).ends(1);
    let policy = ["--policy", "disjoint-ci", "--units-max", "30"];
    here.revisions(&[&["gate", "--against", "HEAD~1"], &policy[..]].concat())
        .ends(1)
        .prints(&["REGRESSION:"]);
    assert_eq!(here.ab()["policy"], "disjoint-ci");
}

#[test]
fn a_suite_in_a_folder_runs_there_at_every_revision() {
    let here = Here::repository();
    here.commit("fast", Some(FAST));
    std::fs::create_dir(here.path("perf")).unwrap();
    let suite = std::fs::read_to_string(here.path("suite.toml")).unwrap();
    // The program is at the root, and what is built of it beside the suite.
    here.write("perf/suite.toml", &suite.replace("cp prog.sh", "cp ../prog.sh"));
    here.commit("slow", Some(SLOW));
    let flags = ["gate", "--against", "HEAD~1", "--suite", "perf/suite.toml", "--tolerance", "100%"];
    here.command(&flags).env("BUILDS", here.path("builds")).assert().code(1);
    assert!(!here.path("perf/run.sh").exists(), "nothing is built in the work tree");
}
