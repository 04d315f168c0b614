//! A revision that writes into the build that it is compared with.

use crate::common::Here;
use crate::repository::{FAST, SLOW};

const SUITE: &str = "
schema_version = 1
name = \"program\"
[build]
command = [\"sh\", \"-c\", \"cp prog.sh run.sh; sh prog.sh build\"]
[[workload]]
name = \"program\"
command = [\"./run.sh\"]
";

/// A slower program that makes all others in the cache slower still, when it is given this word.
fn poison(word: &str) -> String {
    let slow = "printf '#!/bin/sh\\nsleep 0.1\\n'";
    let others = "\"$HOLDPOINT_CACHE\"/*/*/run.sh";
    let each = format!(
        "[ \"$f\" -ef run.sh ] || {{ {slow} > \"$f.new\"; chmod 755 \"$f.new\"; mv -f \"$f.new\" \"$f\"; }}"
    );
    format!("#!/bin/sh\nif [ \"$1\" = '{word}' ]; then for f in {others}; do {each}; done; fi\nsleep 0.03\n")
}

#[test]
fn a_build_or_a_program_that_slows_the_other_side_down_decides_nothing() {
    let here = Here::repository();
    here.write("suite.toml", SUITE);
    let base = here.commit("base", Some(FAST));
    here.commit("build", Some(&poison("build")));
    let built = here.revisions(&["ab", "--base-rev", &base]);
    match built.code {
        // It could not reach the other side, and is slower.
        1 => _ = built.prints(&["regressed"]),
        // This machine has no namespaces: found out.
        _ => _ = built.refuses(4, &["run.sh in ", "changed while HEAD was built", "thrown away"]),
    }
    here.commit("run", Some(&poison("")));
    here.revisions(&["ab", "--base-rev", &base]).ends(4);
    let failure = here.json("artifacts/ab.json")["workloads"]["program"]["failure"].clone();
    assert_eq!(failure["side"], "base");
    assert!(failure["detail"].as_str().unwrap().starts_with("run.sh of its build was changed"), "{failure}");
    here.run(&["compare", "artifacts/ab.json"]).ends(4);
    // The next gate has nothing of it.
    here.commit("slow", Some(SLOW));
    here.revisions(&["ab", "--base-rev", &base]).ends(1).prints(&["regressed"]);
}
