//! Base against head.

use crate::sides::*;
use crate::values::HOSTILE;
use holdpoint_model::ab::Ended;
use holdpoint_model::metric::Better;
use holdpoint_model::{MetricKeys, SideName, Source, Trouble, Verdict};
use holdpoint_render::html::{self, Extras};
use holdpoint_render::{Judged, Style, markdown, terminal};
use insta::assert_snapshot;

const PLAIN: Style = Style { color: false, width: Some(120), ascii: false };
const COLOR: Style = Style { color: true, width: Some(120), ascii: false };
const NARROW: Style = Style { color: false, width: Some(80), ascii: false };

/// A pass on a machine that was calibrated.
fn passing() -> Sides {
    let mut r = ab(vec![
        ("ff_path", pass(1.373, 1.0012)),
        ("fusion_gate", pass(1.842, 0.9991)),
        ("sort_merge", measured(Verdict::Improved, 0.512, 0.871, 8, "faster than 1.0 %")),
        ("tile_pack", pass(0.1234, 1.0003)),
        ("tile_unpack", measured(Verdict::Pass, 0.000_734, 1.0, 4, "not slower than 1.0 %")),
    ]);
    for (i, w) in r.workloads.values_mut().enumerate() {
        w.calibrated = Some(calibrated(0.0, 200, u32::from(i == 3), 2, 0.004));
    }
    r
}

/// A regression, and beside it what could not be decided or run.
fn mixed() -> Sides {
    let mut r = ab(vec![
        ("ff_path", regressed(1.373, 1.0484)),
        ("fusion_gate", pass(1.842, 0.9991)),
        ("infer_cuda", bare(Verdict::Skipped, Ended::Skipped, "cuda_unavailable")),
        ("sort_merge", measured(Verdict::Improved, 0.512, 0.871, 8, "faster than 1.0 %")),
        ("tile_pack", undecided(0.1234, 1.0131)),
        ("tile_unpack", pass(0.000_734, 1.0004)),
    ]);
    trouble(&mut r, 31, true, &[Trouble::Competing]);
    trouble(&mut r, 97, true, &[Trouble::Drift, Trouble::ClockStep]);
    r.notes = vec!["the sides were built with different compilers: 1.94.0 and 1.95.0".to_owned()];
    r
}

fn broken() -> Sides {
    let said = "head crashed: the worker ended with signal 11 after 3 of 12 rounds; run it alone to see why";
    ab(vec![
        ("ff_path", crashed(SideName::Head, said)),
        ("infer", crashed(SideName::Head, "it cannot be compared")),
        ("tile_pack", pass(0.1234, 1.0003)),
    ])
}

fn interrupted() -> Sides {
    let mut r = ab(vec![
        ("ff_path", pass(1.373, 1.0012)),
        (
            "tile_pack",
            measured(
                Verdict::Inconclusive,
                0.1234,
                1.004,
                3,
                "interrupted after 3 units; go on with --resume",
            ),
        ),
        (
            "tile_unpack",
            bare(
                Verdict::Inconclusive,
                Ended::Interrupted,
                "interrupted before its first unit; go on with --resume",
            ),
        ),
    ]);
    r.finished = false;
    r
}

#[test]
fn a_pass_with_calibration() {
    assert_snapshot!("ab_pass", terminal_ab(&passing(), PLAIN));
    assert_snapshot!("ab_pass_md", markdown_ab(&passing()));
}

#[test]
fn a_pass_that_a_reader_would_take_for_more_is_explained() {
    let faster = "looks faster: -22.9 % [-23.1, -0.2], not yet sure at 1 in 1 000; not slower than the tolerance of 1.0 %";
    let wide = "+3.0 % [+2.1, +3.9], not slower than the tolerance of 10.0 %";
    let mut r = ab(vec![
        ("plain", pass(1.373, 1.0012)),
        ("sure", measured(Verdict::Pass, 1.0, 0.771, 9, faster)),
        ("wide", measured(Verdict::Pass, 1.0, 1.03, 9, wide)),
    ]);
    r.plan.tolerances = [("wide".to_owned(), 0.1), ("plain".to_owned(), 0.01)].into();
    for text in [terminal_ab(&r, PLAIN), markdown_ab(&r)]
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
    {
        for part in [
            "looks faster: -22.9 %",
            "not slower than the tolerance of 10.0 %",
            "tolerance 1.0 % (wide 10.0 %)",
            "none of the 3 workloads is slower than allowed",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("slower than 1.0 %"), "{text}");
    }
    r.plan.tolerances.clear();
    assert!(terminal_ab(&r, PLAIN).contains("none of the 3 workloads is slower than 1.0 %"));
}

#[test]
fn a_regression_beside_what_is_undecided() {
    assert_snapshot!("ab_regressed", terminal_ab(&mixed(), PLAIN));
    assert_snapshot!("ab_regressed_color", terminal_ab(&mixed(), COLOR));
    assert_snapshot!("ab_regressed_md", markdown_ab(&mixed()));
}

#[test]
fn the_evidence_is_a_table_of_its_own() {
    assert_snapshot!("ab_evidence", terminal_evidence(&mixed(), PLAIN));
    assert_snapshot!("ab_evidence_80", terminal_evidence(&mixed(), NARROW));
    assert_eq!(terminal_evidence(&ab(vec![]), PLAIN), "");
}

#[test]
fn a_broken_side_is_named_with_what_it_said_last() {
    assert_snapshot!("ab_broken", terminal_ab(&broken(), PLAIN));
    assert_snapshot!("ab_broken_md", markdown_ab(&broken()));
}

#[test]
fn an_interrupted_comparison_says_how_to_go_on() {
    assert_snapshot!("ab_interrupted", terminal_ab(&interrupted(), PLAIN));
}

#[test]
fn the_seeds_rule_speaks_in_the_seeds_words() {
    assert_snapshot!("ab_disjoint_ci", terminal_ab(&disjoint_ci(), PLAIN));
    assert_snapshot!("ab_disjoint_ci_md", markdown_ab(&disjoint_ci()));
}

#[test]
fn eighty_columns_keep_what_matters() {
    for (name, r) in [("ab_80_pass", passing()), ("ab_80_regressed", mixed())] {
        let text = terminal_ab(&r, NARROW);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_snapshot!(name, text);
    }
}

#[test]
fn a_terminal_of_any_width_gets_something() {
    for width in [0, 1, 7, 20, 40, u16::MAX] {
        let style = Style { color: true, width: Some(width), ascii: false };
        assert!(!terminal_ab(&mixed(), style).is_empty() && !terminal_evidence(&mixed(), style).is_empty());
    }
}

#[test]
fn hostile_text_is_neutralised() {
    let text = terminal_ab(&hostile_ab(), PLAIN) + &terminal_evidence(&hostile_ab(), PLAIN);
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']));
    assert_snapshot!("ab_hostile", text);
}

#[test]
fn hostile_text_is_escaped_in_markdown() {
    let text = markdown_ab(&hostile_ab());
    let (before, quoted) = text.split_once("<pre>").unwrap();
    let (quoted, after) = quoted.split_once("</pre>").unwrap();
    for harm in ["<script>", "\u{1b}", "\u{202e}", "https://", "![x](y)", "@all"] {
        assert!(!before.contains(harm) && !after.contains(harm), "{harm:?}");
    }
    assert!(!quoted.contains(['<', '>', '\u{1b}']));
    assert_eq!(text.matches("</details>").count(), 1);
    assert_snapshot!("ab_hostile_md", text);
}

#[test]
fn sides_are_named_once_and_shortly() {
    let mut r = passing();
    r.base = side("0a1b2c3d4e", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567", false);
    r.head.revision = None;
    r.head.label = "target/release/a-program --with a --very --long command line".to_owned();
    let text = terminal_ab(&r, Style::default());
    assert!(text.contains(" · 0a1b2c3d4e5f → target/release/a-pro…--long command line · "), "{text}");
}

#[test]
fn the_promise_is_of_the_plan() {
    let mut r = passing();
    (r.plan.tolerance, r.plan.alarm_rate) = (0.0025, 0.003);
    let text = terminal_ab(&r, Style::default());
    assert!(text.contains("tolerance 0.25 %, false alarms in at most 0.3 % of unchanged suites"), "{text}");
    assert!(text.contains("1/198 at 1.0 %"), "{text}");
}

#[test]
fn a_calibration_with_a_slowdown_is_no_rate_of_false_alarms() {
    let mut r = passing();
    for w in r.workloads.values_mut() {
        w.calibrated = Some(calibrated(0.02, 200, 190, 2, 0.004));
    }
    assert!(!terminal_ab(&r, PLAIN).contains("A/A"));
    assert!(!markdown_ab(&r).contains("A/A"));
}

#[test]
fn many_troubled_rounds_that_were_kept_are_told() {
    let mut r = passing();
    trouble(&mut r, 5, false, &[Trouble::Competing]);
    let text = terminal_ab(&r, PLAIN);
    assert!(text.contains("94 of 468 rounds were troubled, and kept: competing 94"), "{text}");
}

#[test]
fn one_workload_and_none_have_sentences_too() {
    let last = |r: &Sides| terminal_ab(r, PLAIN).lines().last().unwrap_or_default().to_owned();
    let cases = [
        (vec![("a", pass(1.0, 1.0))], "pass: the only workload is not slower than 1.0 %, in 14.2 s"),
        (vec![("a", regressed(1.0, 1.048))], "regressed: the only workload is slower than 1.0 % (a +4.8 %)"),
        (vec![("a", undecided(1.0, 1.0))], "inconclusive: the only workload could not be decided"),
        (vec![("a", crashed(SideName::Base, ""))], "broken: the only workload failed on base"),
        (vec![], "inconclusive: no workload was compared"),
    ];
    for (workloads, want) in cases {
        assert_eq!(last(&ab(workloads)), want);
    }
}

#[test]
fn ten_thousand_workloads_show_what_matters() {
    let names: Vec<String> = (0..9_999).map(|i| format!("op_{i:04}")).collect();
    let mut workloads: Vec<_> = names.iter().map(|name| (name.as_str(), pass(1.0, 1.0))).collect();
    workloads.push((HOSTILE, regressed(1.0, 1.5)));
    let text = terminal_ab(&ab(workloads), PLAIN);
    assert!(text.contains("\n… and 9 949 more passed\n"), "{text}");
    assert_eq!(text.matches("\npass ").count(), 50);
}

#[test]
fn what_passed_without_being_measured_says_so() {
    let reason = "the same machine code (0123456789ab), launches and inputs on both sides: not measured";
    let r = ab(vec![("attention", bare(Verdict::Pass, Ended::SameCode, reason))]);
    for text in [terminal_ab(&r, PLAIN), markdown_ab(&r)] {
        assert!(text.contains("not measured") && text.contains("pass"), "{text}");
    }
}

/// A workload by its median, its p99, its memory, what it prints and its registers.
fn by_metrics() -> (holdpoint_model::Stated, Sides) {
    let sides = ab(vec![("sort", pass(1.373, 1.0012))]);
    let mut judgement = sides.judgement();
    let median = judgement.checks[0].clone();
    let rows = [
        ("p99_ms", Verdict::Regressed, [2.0, 2.4], 0.2, Better::Lower, true),
        ("peak_memory_mb", Verdict::Regressed, [50.0, 50.5], 0.01, Better::Lower, true),
        ("tokens", Verdict::Regressed, [100.0, 90.0], 1.0 / 0.9 - 1.0, Better::Higher, true),
        ("registers", Verdict::Pass, [32.0, 32.0], 0.0, Better::Lower, false),
    ];
    for (name, verdict, [base, head], worse, better, is_measured) in rows {
        let mut check = median.clone();
        let paired = check.paired.as_mut().expect("two sides");
        let units = if is_measured { vec![[base, head]; 3] } else { Vec::new() };
        let (base, head) = (Some(base), Some(head));
        let keys = MetricKeys { name: name.to_owned(), tolerance: 0.1, better, base, head, units };
        (paired.metric, paired.spent_s) = (Some(keys), 0.0);
        match &mut paired.evidence {
            Some(evidence) if is_measured => {
                evidence.ratio = 1.0 + worse;
                evidence.ratio_interval = Some([1.0 + worse - 0.004, 1.0 + worse + 0.005]);
            }
            evidence => *evidence = None,
        }
        check.metric = format!("sort_{name}");
        (check.verdict, check.regression_ratio) = (verdict, Some(worse));
        check.reason = format!("{name} is as it is");
        judgement.checks.push(check);
    }
    judgement.verdict = Verdict::Regressed;
    (judgement, sides)
}

#[test]
fn metrics_have_rows_with_their_own_units_and_directions() {
    let (judgement, sides) = by_metrics();
    let samples = sides.samples();
    let judged = Judged::new(&judgement, Some(Source::Sides(&samples)));
    assert_snapshot!("metrics_terminal", terminal::judgement(judged, PLAIN));
    assert_snapshot!("metrics_markdown", markdown::judgement(judged).expect("a page"));
    assert_snapshot!("metrics_junit", holdpoint_render::forms::junit(judged));
}

#[test]
fn a_page_draws_the_values_of_every_metric_that_is_measured() {
    let (judgement, sides) = by_metrics();
    let samples = sides.samples();
    let judged = Judged::new(&judgement, Some(Source::Sides(&samples)));
    let page = html::judgement(judged, &Extras::default()).expect("a page");
    assert_eq!(page.matches("<figcaption>Base and head in pairs").count(), 4, "registers need no statistics");
    assert_eq!(page.matches("<figcaption>Evidence, as a share").count(), 4);
    assert!(page.contains(">MB</text>"), "memory has its unit");
}
