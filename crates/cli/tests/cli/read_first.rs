//! Settings that decide are read before any code of the change runs: builds, and workers that list their workloads.

use crate::common::{Here, Ran, ran};
use crate::repository::{FAST, SLOW};
use crate::scripted_worker::{outcome, suite};

/// Five times as slow, within what a waiver can let pass.
const SLOWER: &str = "#!/bin/sh\nsleep 0.012\n";

/// A waiver for anything up to ten times.
fn waiver(metric: &str) -> String {
    format!(
        "schema_version = 1\n[[waiver]]\nowner = \"x\"\nreason = \"y\"\nmetric = \"{metric}\"\nlimit = \"1000%\"\nexpires = $(date -u +%F)\n"
    )
}

const NO_WAIVER: &str = "schema_version = 1\n";

impl Here {
    /// A repository with one commit, whose builds run `attack.sh`, if it is there, with the work tree as its argument.
    fn attackable() -> Self {
        let here = Self::repository();
        let suite = here.read("suite.toml");
        let built = suite.replace(
            "cp prog.sh run.sh\"",
            &format!("cp prog.sh run.sh; [ ! -f attack.sh ] || sh attack.sh {}\"", here.path(".").display()),
        );
        assert_ne!(built, suite);
        here.write("suite.toml", &built);
        here.write("waivers.toml", NO_WAIVER);
        here.commit("fast", Some(FAST));
        here
    }

    /// Puts the attack into the next commit.
    fn attack(&self, script: &str) {
        self.write("attack.sh", &format!("cd $1\n{script}touch attacked\n"));
        self.git(&["add", "attack.sh"]);
    }

    fn counted(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        ran(command.env("BUILDS", self.path("builds")).output().unwrap())
    }
}

#[test]
fn a_build_that_writes_waivers_settings_and_calibrations_has_no_say() {
    let here = Here::attackable();
    let calibrate = ["calibrate", "--suite", "suite.toml", "--trials", "1", "--tolerance", "100%"];
    here.counted(&calibrate).ends(0);
    assert!(here.files().iter().any(|file| file.starts_with(".holdpoint/calibration/program-")));
    here.attack(&format!(
        "cat > waivers.toml <<END\n{}END\nprintf '[gate]\\ntolerance = \"900%%\"\\n' >> suite.toml\n\
         for file in .holdpoint/calibration/*; do echo junk > $file; done\n",
        waiver("program")
    ));
    here.commit("slower", Some(SLOWER));
    let ran = here.counted(&["gate", "--suite", "suite.toml", "--waivers", "waivers.toml"]);
    assert!(here.path("attacked").exists(), "it ran: {ran:#?}");
    ran.ends(1).prints(&["regressed", "tolerance 2.0 %"]);
    assert!(!ran.stdout.contains("calibration could not be read"), "{ran:#?}");
    assert_eq!(outcome(&here.ab(), "program")[0], "regressed");
}

#[test]
fn a_build_has_no_say_in_what_a_resumed_comparison_goes_on_from() {
    let here = Here::attackable();
    here.attack("[ ! -e artifacts/ab.json ] || echo junk > artifacts/ab.json\n");
    here.commit("slower", Some(SLOWER));
    let ab = ["ab", "--base-rev", "HEAD~1", "--suite", "suite.toml", "--tolerance", "0.00001%"];
    let units = |units_max| [&ab[..], &["--units-max", units_max]].concat();
    here.counted(&units("2"));
    let first = here.ab()["workloads"]["program"]["units"].clone();
    here.run(&["cache", "clean", "--all"]).ends(0);
    here.counted(&[&units("4")[..], &["--resume"]].concat());
    let units = here.ab()["workloads"]["program"]["units"].clone();
    assert_eq!((&units[0], &units[1]), (&first[0], &first[1]));
    assert!(!units[2].is_null(), "{units}");
}

#[test]
fn a_worker_that_writes_waivers_and_baselines_when_it_is_asked_for_its_workloads_has_no_say() {
    let here = Here::with_scripted_worker();
    let listed = suite(&[]).replace("[\"sh\",", "[\"sh\", \"worker.sh\",");
    let listed = listed.replace("\"b\"]\n", "\"b\"]\nall_workloads = true\n");
    here.write("suite.toml", &listed);
    here.write("worker.sh", "exec sh \"$@\"\n");
    here.write("waivers.toml", NO_WAIVER);
    let gate = ["gate", "--suite", "suite.toml", "--waivers", "waivers.toml"];
    here.run(&[&gate[..], &["--runs", "3"]].concat()).ends(0).notes(&["baseline recorded"]);
    let baseline = here.baseline();
    // Ten times as slow, with a baseline that allows it and a waiver that lets it pass.
    here.write("suite.toml", &listed.replace("\"2000\"", "\"20000\""));
    let attack = format!(
        "cat > waivers.toml <<END\n{}END\nsed -i 's/\"value_ms\": [0-9.e-]*/\"value_ms\": 1e9/' {baseline}\nexec sh \"$@\"\n",
        waiver("a*")
    );
    here.write("worker.sh", &attack);
    here.run(&[&gate[..], &["--require-baseline"]].concat()).ends(1).prints(&["regressed"]);
    assert!(here.read("waivers.toml").contains("1000%"), "it ran");
}

#[test]
fn runs_that_are_added_are_of_the_suite_that_was_read() {
    let here = Here::with_scripted_worker();
    let gate = ["gate", "--suite", "suite.toml", "--runs", "3"];
    here.write("worker.sh", "exec sh \"$@\"\n");
    let suite = suite(&["a"]).replace("[\"sh\",", "[\"sh\", \"worker.sh\",");
    here.write("suite.toml", &suite);
    here.run(&gate).ends(0);
    here.write("suite.toml", &suite.replace("\"2000\"", "\"20000\""));
    // Slow in the first run only, which makes the median of three a fast one.
    here.write("worker.sh", "sed -i 's/\"20000\"/\"2000\"/' suite.toml\nexec sh \"$@\"\n");
    here.run(&gate).ends(64).notes(&["suite.toml: it has changed while its workloads were measured"]);
}

#[test]
fn a_build_has_no_say_in_what_calibrate_asks() {
    let here = Here::attackable();
    here.attack("sed -i 's/90%/1%/' suite.toml\n");
    let suite = here.read("suite.toml");
    here.write("suite.toml", &format!("{suite}[gate]\ntolerance = \"90%\"\n"));
    here.counted(&["calibrate", "--suite", "suite.toml", "--trials", "1", "--output", "o.json"]);
    assert!(here.path("attacked").exists());
    assert_eq!(here.json("o.json")["tolerance"], 0.9);
}

#[test]
fn the_suites_own_history_is_the_repositorys_and_not_the_checkouts() {
    let here = Here::repository();
    let suite = here.read("suite.toml");
    here.write("suite.toml", &format!("{suite}[history]\nstore = \"own.db\"\n"));
    here.commit("fast", Some(FAST));
    here.commit("slow", Some(SLOW));
    here.revisions(&["gate", "--against", "HEAD~1"]).ends(1);
    assert!(here.path("own.db").exists());
}
