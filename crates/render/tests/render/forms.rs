//! Annotations, JUnit's XML, SARIF and notices: each read back by a reader of its own.

use crate::comment::{mixed, names, waiver};
use crate::sides::Sides;
use crate::sides::{self, ab, measured};
use crate::values::{self, judgement};
use holdpoint_model::judgement::EVIDENCE_METRIC;
use holdpoint_model::{Stated, Verdict, WaiverState};
use holdpoint_render::judged::Judged;
use holdpoint_render::{forms, notice};
use insta::assert_snapshot;
use proptest::prelude::*;

#[test]
fn each_form_by_snapshot() {
    let r = mixed();
    let judged = r.judged();
    assert_snapshot!("github", forms::github(judged, Some("perf/a,b.toml")));
    assert_snapshot!("junit", forms::junit(judged));
    assert_snapshot!(
        "sarif",
        serde_json::to_string_pretty(&forms::sarif(judged, Some("perf/a b.toml"))).unwrap()
    );
    let told = notice::notice(judged, Some("https://github.com/o/r/actions/runs/1"));
    assert_snapshot!(
        "notice",
        format!("{}\n\n{}\n{}", notice::subject(&told), notice::plain(&told), notice::slack(&told))
    );
}

#[test]
fn a_run_against_its_baseline_in_each_form() {
    let j = judgement(
        Verdict::Regressed,
        vec![values::regressed("infer_p50_ms", 1.373, 1.841), values::status("odd", Verdict::Regressed)],
    );
    let judged = Judged::new(&j, None);
    let annotations = forms::github(judged, None);
    assert!(
        annotations.starts_with("::error title=holdpoint ")
            && annotations.contains("\n::error title=infer_p50_ms regressed::")
    );
    assert!(forms::junit(judged).contains("name=\"status of the run\""));
    assert_eq!(forms::sarif(judged, None)["runs"][0]["results"].as_array().unwrap().len(), 2);
}

#[test]
fn junit_has_only_what_the_schemas_of_its_readers_allow() {
    let text = forms::junit(mixed().judged());
    let xml = roxmltree::Document::parse(&text).unwrap();
    let keys =
        |node: roxmltree::Node<'_, '_>| node.attributes().map(|a| a.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(keys(xml.root_element()), ["name", "tests", "failures", "errors"], "junit-10.xsd");
    let suite = xml.root_element().first_element_child().unwrap();
    assert_eq!(keys(suite), ["name", "tests", "failures", "errors", "skipped", "timestamp"]);
    assert_eq!(suite.attribute("timestamp"), Some("2025-03-01T12:00:00"), "without zone or fraction");
}

#[test]
fn a_comparison_that_was_cut_short_passes_nowhere() {
    let passed = ab(vec![("sort", sides::pass(1.0, 1.0))]);
    let r = Sides { verdict: Verdict::Inconclusive, finished: false, ..passed };
    let judged = r.judged();
    let text = forms::junit(judged);
    let xml = roxmltree::Document::parse(&text).unwrap();
    assert_eq!(xml.root_element().attribute("tests"), Some("2"));
    assert_eq!(xml.root_element().attribute("errors"), Some("1"));
    assert!(text.contains("<error type=\"inconclusive\" message=\"inconclusive: "), "{text}");
    let sarif = forms::sarif(judged, None);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["level"]), (1, &"warning".into()));
    assert!(forms::github(judged, None).starts_with("::warning "));
}

#[test]
fn results_of_one_rule_and_line_are_told_apart() {
    let sarif = forms::sarif(mixed().judged(), Some("perf.toml"));
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let hash =
        |result: &serde_json::Value| result["partialFingerprints"]["primaryLocationLineHash"].to_string();
    let hashes: std::collections::BTreeSet<String> = results.iter().map(hash).collect();
    assert_eq!(hashes.len(), results.len());
}

#[test]
fn more_than_ten_annotations_are_counted_in_the_last() {
    let checks = (0..25).map(|i| values::regressed(&format!("m{i}_p50_ms"), 1.0, 2.0)).collect();
    let j = judgement(Verdict::Regressed, checks);
    let text = forms::github(Judged::new(&j, None), None);
    assert_eq!(text.lines().count(), 1 + 8 + 1, "GitHub keeps the first ten");
    assert!(text.starts_with("::error title=holdpoint ") && text.contains("and 17 more"), "{text}");
}

/// Level, properties and message of a command.
type Command = (String, Vec<(String, String)>, String);

/// What a runner would make of a line: level, properties, message. None where it is not a command.
fn read(line: &str) -> Option<Command> {
    let rest = line.trim_start().strip_prefix("::")?;
    let (head, data) = rest.split_once("::")?;
    let (level, properties) = head.split_once(' ').unwrap_or((head, ""));
    let back = |text: &str| {
        let text = text.replace("%3A", ":").replace("%2C", ",").replace("%0D", "\r").replace("%0A", "\n");
        text.replace("%23", "#").replace("%25", "%")
    };
    let properties = properties.split(',').filter_map(|pair| pair.split_once('='));
    let properties = properties.map(|(key, value)| (key.to_owned(), back(value))).collect();
    Some((level.to_owned(), properties, back(data)))
}

fn report(name: &str, reason: &str, owner: &str) -> Sides {
    let mut waived = measured(Verdict::Waived, 1.0, 1.1, 9, reason);
    waived.waiver = Some(waiver(owner, reason, WaiverState::Waived));
    let mut r = ab(vec![
        (name, measured(Verdict::Regressed, 1.0, 1.2, 9, reason)),
        ("waived", waived),
        ("unsure", measured(Verdict::Inconclusive, 1.0, 1.0, 3, reason)),
        ("skipped", measured(Verdict::Skipped, 1.0, 1.0, 3, owner)),
        ("broken", measured(Verdict::Broken, 1.0, 1.0, 3, owner)),
    ]);
    r.suite = name.to_owned();
    r.timestamp_utc = owner.to_owned();
    r
}

/// A judgement whose first check says what is wrong with its evidence.
fn doubted(r: &Sides, what: &str) -> Stated {
    let mut judgement = r.judgement();
    let mut problem = values::status(what, Verdict::Inconclusive);
    (problem.metric, problem.reason) = (EVIDENCE_METRIC.to_owned(), what.to_owned());
    judgement.checks.push(problem);
    judgement
}

#[test]
fn what_is_wrong_with_the_evidence_comes_first_in_every_form() {
    let problem = "it says pass, judged again it is regressed";
    let doubted = doubted(&ab(vec![("a", sides::pass(1.0, 1.0))]), problem);
    let judged = Judged::new(&doubted, None);
    assert!(forms::github(judged, None).lines().next().unwrap().contains(problem));
    let junit = forms::junit(judged);
    let first = "name=\"evidence\"><error type=\"inconclusive\" message=\"inconclusive: it says pass";
    assert!(junit.contains("tests=\"2\" failures=\"0\" errors=\"1\"") && junit.contains(first), "{junit}");
    let sarif = forms::sarif(judged, None);
    let said = sarif["runs"][0]["results"][0]["message"]["text"].as_str().unwrap();
    assert!(said.starts_with("evidence: inconclusive: it says pass"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn annotations_are_one_command_a_line(name in names(), reason in names(), owner in names()) {
        let r = report(&name, &reason, &owner);
        let doubted = doubted(&r, &owner);
        let text = forms::github(Judged::new(&doubted, None), Some(&owner));
        let levels: Vec<String> = text.lines().map(|line| read(line).expect(line).0).collect();
        prop_assert_eq!(levels, ["error", "error", "error", "warning", "warning", "warning", "notice"]);
        for line in text.lines() {
            let (_, properties, _) = read(line).unwrap();
            let keys: Vec<&str> = properties.iter().map(|(key, _)| key.as_str()).collect();
            prop_assert_eq!(keys, ["file", "title"]);
            prop_assert!(!line.contains("##["));
        }
    }

    #[test]
    fn junit_is_xml_with_every_row_once(name in names(), reason in names(), owner in names()) {
        let r = report(&name, &reason, &owner);
        let doubted = doubted(&r, &owner);
        let text = forms::junit(Judged::new(&doubted, None));
        let xml = roxmltree::Document::parse(&text).expect(&text);
        let count = |tag: &str| xml.descendants().filter(|node| node.has_tag_name(tag)).count();
        prop_assert_eq!(
            [count("testcase"), count("failure"), count("error"), count("skipped")],
            [r.workloads.len() + 1, 1, 3, 1]
        );
        let suite = xml.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
        prop_assert_eq!(suite.attribute("errors"), Some("3"));
    }

    #[test]
    fn sarif_is_json_with_known_levels(name in names(), reason in names(), owner in names()) {
        let r = report(&name, &reason, &owner);
        let doubted = doubted(&r, &owner);
        let text = forms::sarif(Judged::new(&doubted, None), Some(&owner)).to_string();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        let results = read["runs"][0]["results"].as_array().unwrap();
        prop_assert_eq!(results.len(), r.workloads.len() + 1);
        for result in results {
            let index = result["ruleIndex"].as_u64().unwrap() as usize;
            prop_assert_eq!(&read["runs"][0]["tool"]["driver"]["rules"][index]["id"], &result["ruleId"]);
            let uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
            prop_assert!(uri.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(result.get("suppressions").is_some(), result["ruleId"] == "holdpoint/waived");
        }
    }

    #[test]
    fn notices_are_lines_without_mentions(name in names(), reason in names(), owner in names()) {
        let r = report(&name, &reason, &owner);
        let told = notice::notice(r.judged(), None);
        prop_assert!(notice::subject(&told).chars().all(|c| !c.is_control()));
        prop_assert!(!notice::slack(&told).contains(['<', '>']));
        let wanted = 1 + told.rows.len() + usize::from(told.commit.is_some()) + usize::from(told.machine.is_some());
        prop_assert_eq!(notice::plain(&told).lines().count(), wanted);
    }
}
