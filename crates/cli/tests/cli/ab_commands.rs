//! `holdpoint ab`: what two commands can be given.

use crate::common::Here;

/// Writes down what it was given: its variable, its folder and its stdin.
const PROBE: &str = "echo \"called $MODE $(basename \"$PWD\") $(cat)\" >>\"$LOG\"\n";

#[test]
fn commands_get_their_environment_folder_stdin_and_steps() {
    let here = Here::new();
    for folder in ["old", "new"] {
        std::fs::create_dir(here.path(folder)).unwrap();
    }
    here.write("probe.sh", PROBE);
    here.write("in.txt", "input");
    let log = here.path("log").display().to_string();
    let line = |mode: &str| format!("MODE={mode} LOG={log} sh ../probe.sh");
    let (base, head) = (line("slow"), line("fast"));
    let ran = here.run(&[
        "ab",
        "--base",
        &base,
        "--head",
        &head,
        "-n",
        "before",
        "-n",
        "after",
        "--base-dir",
        "old",
        "--head-dir",
        "new",
        "--stdin",
        "in.txt",
        "--setup",
        "sh -c 'echo setup $MODE >>$LOG'",
        "--prepare",
        "sh -c 'echo prepare $MODE >>$LOG'",
        "--units-max",
        "2",
        "--at-once",
        "1",
    ]);
    ran.ends(3).prints(&["before → after"]);
    let log = here.read("log");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[..2], ["setup slow", "setup fast"]);
    assert_eq!(lines.iter().filter(|line| line.starts_with("setup")).count(), 2, "once for each side");
    for called in lines[2..].chunks(2) {
        let is_pair = called == ["prepare slow", "called slow old input"]
            || called == ["prepare fast", "called fast new input"];
        assert!(is_pair, "{called:?}");
    }
    let comparison = here.json("artifacts/comparison.json");
    assert_eq!(comparison["sides"]["base"]["label"], base);
    assert_eq!(
        comparison["sides"]["head"]["flags"],
        serde_json::json!([["--head-dir", "new"], ["-n", "after"]])
    );
}

#[test]
fn a_step_that_fails_breaks_the_comparison() {
    let here = Here::new();
    let both = ["ab", "--base", "true", "--head", "true", "--units-max", "2"];
    for (flag, says) in [("--setup", "setup: "), ("--prepare", "prepare: ")] {
        let ran = here.run(&[&both[..], &[flag, "sh -c 'echo no compiler >&2; exit 4'"]].concat());
        ran.ends(4).prints(&[says, "exit status: 4", "no compiler"]);
    }
    here.run(&[&both[..], &["--stdin", "gone.txt"]].concat()).ends(4).prints(&["gone.txt"]);
}

#[test]
fn what_makes_no_sense_for_commands_is_refused() {
    let here = Here::new();
    let both = ["ab", "--base", "true", "--head", "true"];
    here.run(&[&both[..], &["-n", "one"]].concat()).refuses(64, &["give -n twice"]);
    here.run(&[&both[..], &["--base-dir", "gone"]].concat()).refuses(64, &["there is no folder gone"]);
    for flags in [&["--setup", "make"][..], &["-n", "a", "-n", "b"]] {
        here.run(&[&["ab", "--base-worker", "a", "--head-worker", "b"], flags].concat()).ends(64);
        here.run(&[&["ab"], flags].concat()).ends(64);
    }
}

#[test]
fn of_long_commands_the_words_that_differ_are_shown() {
    let here = Here::new();
    let line = |level: &str| {
        format!("sh -c true --input some/long/path/to/a/file.bin --level {level} --verbose --threads 1")
    };
    let ran = here.run(&["ab", "--base", &line("3"), "--head", &line("4"), "--units-max", "2"]);
    ran.prints(&["sh … 3 … → sh … 4 …"]);
}

/// Computes for some tens of milliseconds.
const LOOP: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

#[test]
fn long_commands_that_compute_share_a_cpu_unless_told_otherwise() {
    let here = Here::new();
    here.write("loop.sh", LOOP);
    let both = ["ab", "--base", "sh loop.sh", "--head", "sh loop.sh", "--tolerance", "900%"];
    here.run(&both).ends(0);
    let clocks = |here: &Here| {
        let report = here.json("artifacts/ab.json");
        let units = report["workloads"]["command"]["units"].as_array().unwrap().clone();
        units.iter().map(|unit| unit["clock"].as_str().unwrap_or("unwaited").to_owned()).collect::<Vec<_>>()
    };
    let found = clocks(&here);
    assert!(found[0] != "tandem" && found.iter().any(|clock| clock == "tandem"), "{found:?}");
    here.run(&[&both[..], &["--at-once", "1"]].concat()).ends(0);
    assert!(clocks(&here).iter().all(|clock| clock != "tandem"));
}

#[test]
fn commands_that_cannot_run_at_the_same_time_take_turns() {
    let here = Here::new();
    here.write("locked.sh", &format!("mkdir lock || exit 1\n{LOOP}\nrmdir lock\n"));
    let ran = here.run(&["ab", "--base", "sh locked.sh", "--head", "sh locked.sh", "--tolerance", "900%"]);
    ran.ends(0).prints(&["pass"]);
    let report = here.json("artifacts/ab.json");
    let units = report["workloads"]["command"]["units"].as_array().unwrap();
    assert!(units.iter().all(|unit| unit["clock"] != "tandem"), "{units:#?}");
}
