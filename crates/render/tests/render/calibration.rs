//! Code compared with itself, or with itself made slower.

use crate::sides::*;
use crate::values::HOSTILE;
use holdpoint_model::{Advice, Calibration};
use holdpoint_render::{Style, markdown, terminal};
use insta::assert_snapshot;

const PLAIN: Style = Style { color: false, width: Some(120), ascii: false };

fn unchanged() -> Calibration {
    calibration(
        0.0,
        200,
        vec![
            ("ff_path", calibrated(0.0, 200, 0, 0, 0.0041)),
            ("fusion_gate", calibrated(0.0, 200, 0, 3, 0.0073)),
            ("sort_merge", calibrated(0.0, 200, 0, 131, 0.041)),
            ("tile_pack", calibrated(0.0, 200, 0, 0, 0.0009)),
        ],
    )
}

fn slowed() -> Calibration {
    calibration(
        0.03,
        100,
        vec![
            ("ff_path", calibrated(0.03, 100, 100, 0, 0.0041)),
            ("fusion_gate", calibrated(0.03, 100, 98, 2, 0.0073)),
            ("tile_pack", calibrated(0.03, 100, 99, 0, 0.0009)),
        ],
    )
}

#[test]
fn code_compared_with_itself() {
    assert_snapshot!("calibration", terminal::calibration(&unchanged(), PLAIN));
    assert_snapshot!("calibration_md", markdown::calibration(&unchanged()));
}

#[test]
fn code_compared_with_itself_made_slower() {
    assert_snapshot!("calibration_injected", terminal::calibration(&slowed(), PLAIN));
    assert_snapshot!("calibration_injected_md", markdown::calibration(&slowed()));
}

#[test]
fn a_calibration_in_eighty_columns_and_in_colour() {
    for (name, color) in [("calibration_80", false), ("calibration_80_color", true)] {
        let text = terminal::calibration(&unchanged(), Style { color, width: Some(80), ascii: false });
        assert!(color || text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_snapshot!(name, text);
    }
}

#[test]
fn a_calibration_that_ended_early_with_alarms_and_failures() {
    let mut c = unchanged();
    (c.finished, c.trials, c.false_alarms, c.false_alarm_rate_upper) = (false, 57, 2, Some(0.1065));
    for (i, w) in c.workloads.values_mut().enumerate() {
        (w.trials, w.inconclusive, w.too_noisy) = (57, 0, false);
        (w.false_alarms, w.failed) = (if i < 2 { 1 } else { 0 }, if i == 2 { 4 } else { 0 });
        w.visible.truncate(2);
    }
    assert_snapshot!("calibration_ended_early", terminal::calibration(&c, PLAIN));
}

#[test]
fn nothing_calibrated_says_so() {
    let text = terminal::calibration(&calibration(0.0, 0, vec![]), PLAIN);
    assert!(text.ends_with("\nnothing is known: 0 trials of 0 workloads\n"), "{text}");
}

#[test]
fn hostile_text_is_neutralised() {
    let mut c = calibration(0.0, 3, vec![(HOSTILE, calibrated(0.0, 3, 0, 3, 0.5))]);
    (c.suite, c.machine.cpu_model) = (HOSTILE.to_owned(), HOSTILE.to_owned());
    let (text, page) = (terminal::calibration(&c, PLAIN), markdown::calibration(&c));
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']));
    for harm in ["<script>", "\u{1b}", "\u{202e}", "https://", "![x](y)", "@all"] {
        assert!(!page.contains(harm), "{harm:?}");
    }
    assert_snapshot!("calibration_hostile", text + &page);
}

#[test]
fn only_what_was_decided_is_evidence() {
    let mut c = unchanged();
    (c.decided, c.suite_seconds) = (Some(66), Some(6.1));
    let advice = |reason: &str, detail: &str, remedy: &str| Advice {
        reason: reason.to_owned(),
        detail: detail.to_owned(),
        remedy: remedy.to_owned(),
    };
    c.advice = vec![advice("governor", "2 of 2 CPUs have the governor powersave", "sudo cpupower …")];
    assert_snapshot!("calibration_decided", terminal::calibration(&c, PLAIN));
    c.decided = Some(0);
    let text = terminal::calibration(&c, PLAIN);
    assert!(text.contains("nothing is known: none of 200 trials was decided"), "{text}");
    c.workloads[0].failed = 1;
    let text = terminal::calibration(&c, PLAIN);
    assert!(
        text.contains("failed: 1 of 800 comparisons failed") && !text.contains("no false alarm"),
        "{text}"
    );
}
