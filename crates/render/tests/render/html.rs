//! Pages of HTML: what our Markdown says, with charts, and nothing that a name brings along.

use crate::apex::h200;
use crate::sides::*;
use crate::values::{
    HOSTILE, baseline, bisection, judgement, pass as passing, regressed as slower, trend_points,
};
use holdpoint_model::{MachineState, Revision, Source, Trouble, Verdict};
use holdpoint_render::html::{self, Extras, Links};
use holdpoint_render::{Judged, markdown};

/// The promise to whoever opens a page on a phone or keeps a thousand of them.
const BYTES_MAX: usize = 300_000;
const COMMIT: &str = "4f2c9e1d07ab35c8e6610f9b2a7d4c3e5f6a7b8c";

fn linked() -> Extras<'static> {
    Extras { links: Links::new("https://github.com/o/n").expect("an address"), ..Extras::default() }
}

/// Pictures are XML inside of a page: each must be well-formed, named, and drawn in numbers.
fn assert_pictures(page: &str) -> usize {
    let starts: Vec<usize> = page.match_indices("<svg").map(|(at, _)| at).collect();
    for at in &starts {
        let end = page[*at..].find("</svg>").expect("an end") + at + "</svg>".len();
        let picture =
            page[*at..end].replace("role=\"img\"", "xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"");
        let parsed =
            roxmltree::Document::parse(&picture).unwrap_or_else(|error| panic!("{error}: {picture}"));
        let root = parsed.root_element();
        let is_hidden = root.attribute("aria-hidden") == Some("true");
        assert!(is_hidden || !root.attribute("aria-label").unwrap_or_default().is_empty(), "{picture}");
        assert!(
            !picture.contains("NaN") && !picture.contains("inf\"") && !picture.contains("inf "),
            "{picture}"
        );
    }
    starts.len()
}

/// Noise that is the same in every run.
fn noisy(seed: usize) -> f64 {
    ((seed * 7919 + 13) % 1000) as f64 / 1000.0 - 0.5
}

/// So many workloads with so many units, each with noise and a machine's state.
fn many(workloads: usize, units: u32) -> Sides {
    let names: Vec<String> = (0..workloads).map(|i| format!("group_{}.workload_number_{i}", i % 7)).collect();
    let mut sides = ab(names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let verdict = if i % 9 == 4 { Verdict::Regressed } else { Verdict::Pass };
            (name.as_str(), measured(verdict, 1.234, 1.0 + 0.003 * noisy(i), units, "not slower than 1.0 %"))
        })
        .collect());
    for (i, workload) in sides.workloads.values_mut().enumerate() {
        for (j, unit) in workload.units.iter_mut().enumerate() {
            unit.x = 0.02 * noisy(i * 1000 + j);
            for (k, round) in unit.rounds.iter_mut().enumerate() {
                let time = |side: usize| (1e6 * (1.0 + 0.05 * noisy(i + 31 * j + 7 * k + side))) as u64;
                (round.base_ns, round.head_ns) = (vec![time(0)], vec![time(1)]);
                round.state = MachineState { load1: Some(1.0 + noisy(j)), ..MachineState::default() };
            }
        }
    }
    trouble(&mut sides, 31, true, &[Trouble::Competing]);
    sides
}

#[test]
fn names_stay_text() {
    let mut report = h200();
    let measurement = report.benchmarks.values().next().unwrap().clone();
    for name in [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "![i](http://a/b.png)",
        "a|b\n# c",
        "</pre><b>",
        "\" onload=\"alert(1)",
    ] {
        report.benchmarks.insert(name.to_owned(), measurement.clone());
    }
    report.suite = "<img src=x onerror=alert(1)> & co".to_owned();
    let problem = Extras { problem: Some("<script>alert(2)</script>"), ..Extras::default() };
    for page in [html::page(&markdown::report(&report, None), None), html::report(&report, None, &problem)] {
        for active in ["<script", "href=", "<img", "<b>", "onerror=alert(1)>"] {
            assert!(!page.contains(active), "{active}: {page}");
        }
        assert!(page.contains("&lt;script"), "{page}");
        assert_eq!(page.matches("<h1>").count(), 1);
        assert_pictures(&page);
    }
}

#[test]
fn hostile_sides_calibrations_and_trends_stay_text() {
    let sides = hostile_ab();
    let calibration = calibration(0.0, 20, vec![(HOSTILE, calibrated(0.0, 20, 1, 2, 0.01))]);
    let mut trend = trend_points(6);
    for point in &mut trend {
        HOSTILE.clone_into(&mut point.suite);
        HOSTILE.clone_into(&mut point.metrics[0].metric);
        HOSTILE.clone_into(&mut point.timestamp_utc);
        point.revision = Some(Revision { commit: HOSTILE.to_owned(), dirty: true });
    }
    let mut search = bisection();
    search.steps[1].commit.subject = HOSTILE.to_owned();
    search.culprits[0].subject = HOSTILE.to_owned();
    search.workload = Some(HOSTILE.to_owned());
    let pages = [
        html::judgement(sides.judged(), &linked()).unwrap(),
        html::calibration(&calibration, &linked()),
        html::trend(&trend, None, &linked()),
        html::bisection(&search, &linked()),
        html::trend_picture(&trend, None, &linked().links).unwrap(),
    ];
    for page in pages {
        for active in ["<script", "<img", "<b>", "javascript:"] {
            let shown = page.replace("\\u", "");
            assert!(!shown.to_lowercase().contains(active) || active == "javascript:", "{active}: {page}");
        }
        assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
        let links = page.matches("href=\"").count();
        assert_eq!(links, page.matches("href=\"https://github.com/o/n/commit/").count());
    }
}

#[test]
fn a_picture_is_put_where_it_is_named_and_no_other_is() {
    let page = html::page(
        "# a\n\n![words](p.svg)\n\n![words](q.svg)\n",
        Some(("p.svg", "<?xml?>\n<svg id=\"p\"></svg>")),
    );
    assert_eq!(page.matches("<svg id=\"p\"></svg>").count(), 1);
    assert!(!page.contains("<?xml") && page.contains("q.svg"), "{page}");
}

#[test]
fn a_comparison_shows_its_verdict_in_a_word_a_mark_and_a_colour_with_three_charts_each() {
    let sides = ab(vec![("ff_path", regressed(1.373, 1.0484)), ("tile_pack", pass(0.1234, 1.0003))]);
    let page = html::judgement(sides.judged(), &linked()).unwrap();
    assert!(page.contains("<div class=\"banner regressed\"><p class=\"word v\">regressed</p>"));
    assert_eq!(page.matches("<figure>").count(), 6);
    // Two strips, their axis, and the charts.
    assert_eq!(assert_pictures(&page), 9);
    assert!(page.contains("aria-label=\"ff_path: +4.8 %, interval +4.4 … +5.2 %, allowed +1.0 %\""));
    assert!(
        page.contains(&format!(
            "<a href=\"https://github.com/o/n/commit/{COMMIT}\">4f2c9e1d07ab</a> (dirty)"
        ))
    );
    assert!(page.contains(".regressed.v::before,.regressed>.v::before{content:'▲ '}"));
    assert!(page.contains("<details open><summary class=\"row\"><span class=\"v regressed\">"));
    assert!(page.contains("<td><span class=\"v pass\">pass</span></td>"));
}

#[test]
fn fifty_workloads_of_four_hundred_units_fit_into_the_promised_size() {
    let page = html::judgement(many(50, 400).judged(), &linked()).unwrap();
    assert!(page.len() < BYTES_MAX, "{} bytes", page.len());
    assert_eq!(page.matches("<figure>").count(), 150);
    assert!(page.contains("by unit (every 17th of 400)"), "thinned out, and said so");
    assert_pictures(&page);
}

#[test]
fn thousands_of_workloads_are_a_table_with_charts_for_the_worst() {
    let names: Vec<String> = (0..3000).map(|i| format!("w{i}")).collect();
    let sides = ab(names
        .iter()
        .map(|name| (name.as_str(), measured(Verdict::Pass, 1.0, 1.001, 2, "fine")))
        .collect());
    let page = html::judgement(sides.judged(), &Extras::default()).unwrap();
    assert_eq!(page.matches("<figure>").count(), 180);
    assert!(page.contains("2 940 more are in the table only."));
}

#[test]
fn a_run_against_its_baseline_shows_changes_and_without_one_how_much_it_varies() {
    let report = h200();
    let page = html::report(&report, None, &Extras::default());
    assert!(page.contains("middle 90 % of a workload's samples") && page.contains("Distribution of"));
    assert!(assert_pictures(&page) > 3);
    let j = judgement(
        Verdict::Regressed,
        vec![slower("infer_p50_ms", 1.3, 1.9), passing("pack_p50_ms", 0.12, 0.121)],
    );
    let page = html::judgement(Judged::new(&j, Some(Source::Run(&report))), &Extras::default()).unwrap();
    assert!(page.contains("change against the baseline") && page.contains("banner regressed"));
    assert_pictures(&page);
}

#[test]
fn a_search_is_a_line_over_commits_with_the_culprit_marked() {
    let page = html::bisection(&bisection(), &linked());
    assert!(page.contains("▲ culprit") && page.contains("class=\"ring\""), "{page}");
    assert!(page.contains("slower above this line"));
    assert!(page.matches("/commit/").count() > 5);
    let order: Vec<usize> =
        ["good: ", ": not slower", ": slower"].iter().map(|w| page.find(w).unwrap()).collect();
    assert!(order.is_sorted(), "from good to bad: {order:?}");
}

#[test]
fn a_calibration_shows_seconds_and_noise() {
    let c = calibration(
        0.0,
        200,
        vec![("ff_path", calibrated(0.0, 200, 0, 0, 0.0041)), ("x", calibrated(0.0, 200, 3, 9, 0.03))],
    );
    let page = html::calibration(&c, &Extras::default());
    assert!(page.contains("Seconds to a verdict") && page.contains("Noise: standard deviation of a unit"));
    assert!(assert_pictures(&page) >= 6);
}

#[test]
fn a_trend_tells_an_undecided_run_from_a_pass_and_from_a_failure() {
    let page = |status: &str, metric: &str| {
        let mut points = trend_points(2);
        points[1].overall_status = status.to_owned();
        points[1].metrics.iter_mut().for_each(|one| metric.clone_into(&mut one.status));
        html::trend(&points, None, &Extras::default())
    };
    for (status, metric, words) in [
        ("pass", "pass", "the last run passed"),
        ("fail", "inconclusive", "the last run was not decided"),
        ("fail", "skipped", "the last run was not decided"),
        ("fail", "fail", "the last run did not pass"),
        ("fail", "missing", "the last run did not pass"),
    ] {
        assert!(page(status, metric).contains(words), "{status} {metric}");
    }
    assert!(page("fail", "inconclusive").contains("2 runs, 1 undecided"));
    // A suite that was not judged is not vouched for by another that passed.
    let mut points = trend_points(2);
    points[0].suite = "other".to_owned();
    points[0].overall_status = "unjudged".to_owned();
    points[1].overall_status = "pass".to_owned();
    assert!(!html::trend(&points, None, &Extras::default()).contains("the last run passed"));
}

#[test]
fn a_trend_has_a_chart_per_metric_and_leads_to_its_commits() {
    let mut points = trend_points(8);
    points.iter_mut().for_each(|point| point.revision = None);
    points[7].revision = Some(Revision { commit: COMMIT.to_owned(), dirty: false });
    let page = html::trend(&points, None, &linked());
    assert_eq!(page.matches("<figure>").count(), 2);
    assert!(page.contains("◎ did not pass"));
    assert_eq!(page.matches(&format!("/commit/{COMMIT}")).count(), 3, "two dots and a row");
    let picture = html::trend_picture(&points, None, &Links::default()).unwrap();
    let parsed = roxmltree::Document::parse(&picture).unwrap();
    assert_eq!(parsed.root_element().tag_name().name(), "svg");
    assert!(html::trend_picture(&[], None, &Links::default()).is_none());
    assert!(html::trend(&[], None, &Extras::default()).contains("no points yet"));
}

#[test]
fn a_baseline_shows_its_runs_against_its_tolerances() {
    let page = html::baseline(&baseline(), &linked());
    assert!(page.contains("<p class=\"word v\">baseline</p>") && page.contains("2 runs"), "{page}");
    assert!(assert_pictures(&page) >= 3);
}

#[test]
fn pages_need_no_other_file_and_run_nothing() {
    let page = html::judgement(many(2, 9).judged(), &linked()).unwrap();
    for part in ["<script", "<link", "src=", "@import", "url("] {
        assert!(!page.contains(part), "{part}");
    }
    assert!(
        page.contains("default-src 'none'")
            && page.contains("prefers-color-scheme: dark")
            && page.contains("@media print")
    );
}
