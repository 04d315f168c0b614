//! `--waivers`: what they let pass, and for how long.

use crate::common::{Here, Ran, data};

const TABLE: &str =
    "[[waiver]]\nowner = \"@ada\"\nreason = \"checks | were `added`\"\nmetric = \"infer_*\"\n";

/// A report whose `infer_p50_ms` is ten times its baseline, and the waiver file.
fn here(limit: &str, expires: Option<&str>) -> Here {
    let here = Here::new();
    std::fs::create_dir(here.path("out")).unwrap();
    here.write("out/report.json", &std::fs::read_to_string(data("apex-cpu-report.json")).unwrap());
    here.edit("out/report.json", |report| report["metrics"]["infer_p50_ms"] = 2.5.into());
    // Today is the last day on which it holds.
    let today = today(&here);
    let expires = expires.unwrap_or(&today);
    here.write(
        "waivers.toml",
        &format!("schema_version = 1\n{TABLE}limit = \"{limit}\"\nexpires = {expires}\n"),
    );
    here
}

/// As the binary's own clock has it.
fn today(here: &Here) -> String {
    here.run(&["-q", "run", "--suite", "suite.toml", "--output", "now.json"]).ends(0);
    here.json("now.json")["timestamp_utc"].as_str().unwrap()[..10].to_owned()
}

fn compare(here: &Here) -> Ran {
    let baseline = data("apex-cpu-baseline.json");
    let files = ["--summary", "out/comparison.json", "--trend-output", "out/trend.json"];
    here.run(
        &[
            &[
                "compare",
                "out/report.json",
                "--baseline",
                &baseline,
                "--waivers",
                "waivers.toml",
                "--policy",
                "allowed-max",
            ][..],
            &files,
        ]
        .concat(),
    )
}

#[test]
fn a_regression_within_a_waiver_passes_and_every_form_shows_who_answers_for_it() {
    let here = here("950%", None);
    let words = [
        "waived",
        "by @ada until",
        "checks | were `added`",
        "waived: 1 of 5 metrics is slower than allowed, waived",
    ];
    compare(&here).ends(0).prints(&words);
    let comparison = here.json("out/comparison.json");
    assert_eq!((&comparison["verdict"], &comparison["status"]), (&"waived".into(), &"pass".into()));
    let check =
        comparison["checks"].as_array().unwrap().iter().find(|check| check["verdict"] == "waived").unwrap();
    assert_eq!((&check["waiver"]["owner"], &check["waiver"]["state"]), (&"@ada".into(), &"waived".into()));
    assert_eq!((&check["waiver"]["limit"], check["status"].as_str()), (&9.5.into(), Some("pass")));
    assert_eq!(here.json("out/trend.json")["overall_status"], "pass");
    let form = |form: &str| here.run(&["report", "out/comparison.json", "--as", form]);
    form("github").ends(0).prints(&["::notice title=infer_p50_ms waived::", "by @ada"]);
    form("junit").ends(0).prints(&["failures=\"0\"", "waived, +900 %"]);
    form("sarif").ends(0).prints(&["\"suppressions\"", "holdpoint/waived"]);
    here.run(&["report", "out/comparison.json"]).ends(0).prints(&words);
    here.run(&["ci", "report", "--artifacts", "out", "--dry-run"]).ends(0).prints(&[
        "### holdpoint: waived",
        "by @&#8203;ada until",
        "checks \\| were \\`added\\`",
    ]);
}

#[test]
fn beyond_its_limit_it_fails() {
    compare(&here("850%", None)).ends(1).prints(&["beyond the +850.0 % that @ada waived"]);
}

#[test]
fn an_expired_waiver_is_refused_by_name() {
    let ran = compare(&here("950%", Some("2026-01-31")));
    ran.ends(1).prints(&[
        "refused: the waiver of @ada expired on 2026-01-31",
        "the waiver for \"infer_*\" of @ada expired on 2026-01-31 and is refused; remove it or renew it",
    ]);
}

#[test]
fn a_waiver_file_that_makes_no_sense_is_refused_before_anything_is_measured() {
    let here = here("5%", None);
    let good = here.read("waivers.toml");
    for (from, to, words) in [
        ("owner = \"@ada\"\n", "", "missing field `owner`"),
        ("@ada", " ", "owner is empty"),
        ("expires = ", "ends = ", "unknown field `ends`"),
        ("expires = 2", "expires = 3", "more than a year away"),
        ("schema_version", "[schema_version", "TOML parse error at line 1"),
    ] {
        here.write("waivers.toml", &good.replace(from, to));
        for arguments in [
            &["compare", "out/report.json", "--baseline", "out/report.json"][..],
            &["gate", "--suite", "suite.toml", "--baseline", "out/report.json"],
            &["ab", "--base", "true", "--head", "true"],
        ] {
            here.run(&[arguments, &["--waivers", "waivers.toml"]].concat())
                .refuses(64, &["waivers.toml: ", words]);
        }
    }
    assert!(!here.files().iter().any(|file| file.starts_with("artifacts/")));
    here.run(&["compare", "out/report.json", "--baseline", "out/report.json", "--waivers", "nowhere.toml"])
        .refuses(64, &["nowhere.toml: cannot be read"]);
}

/// A sleep that was a third as long, says its baseline.
fn slow_gate() -> Here {
    let here = Here::new();
    let suite = "schema_version = 1\nname = \"s\"\n[measure]\nrounds_min = 6\nrounds_max = 6\n[[workload]]\nname = \"nap\"\ncommand = [\"sleep\", \"0.02\"]\n";
    here.write("suite.toml", suite);
    here.gate(&[]).ends(0);
    here.edit_times(7.0);
    here
}

#[test]
fn a_gate_does_not_look_again_at_what_is_waived() {
    let here = slow_gate();
    here.gate(&[]).ends(1);
    assert!(here.path("artifacts/report-3.json").exists(), "it looked again");
    let today = today(&here);
    let table = format!(
        "[[waiver]]\nowner = \"a\"\nreason = \"b\"\nmetric = \"nap\"\nlimit = \"1000%\"\nexpires = {today}\n"
    );
    here.write("waivers.toml", &format!("schema_version = 1\n{table}"));
    here.gate(&["--waivers", "waivers.toml"]).ends(0).prints(&["waived up to +1000.0 % by a until"]);
    assert!(!here.path("artifacts/report-2.json").exists());
    assert!(here.read("artifacts/report.md").contains("**waived**"));
}

#[test]
fn two_sides_are_waived_too() {
    let here = Here::new();
    let today = today(&here);
    here.write(
        "waivers.toml",
        &format!("schema_version = 1\n[[waiver]]\nowner = \"ada\"\nreason = \"why\"\nmetric = \"command\"\nlimit = \"1000%\"\nexpires = {today}\n"),
    );
    let sides = ["ab", "--base", "sleep 0.01", "--head", "sleep 0.03", "--tolerance", "50%"];
    here.run(&sides).ends(1);
    here.run(&[&sides[..], &["--waivers", "waivers.toml"]].concat()).ends(0).prints(&[
        "waived up to +1000.0 % by ada until",
        "waived: the only workload is slower than 50.0 %, waived",
    ]);
    assert_eq!(here.json("artifacts/comparison.json")["checks"][0]["waiver"]["state"], "waived");
    assert!(here.read("artifacts/ab.md").contains("**waived**"));
}
