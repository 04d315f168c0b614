//! The page of a search for a slow commit.

use super::{Banner, Extras, banner_page, broad, figure, ink_class, markup, section, sides};
use crate::charts;
use crate::markdown::bisection_sections;
use crate::paint::{Ink, mark};
use crate::summary::bisection::{describe_bisection, judged, short};
use crate::units;
use holdpoint_model::Bisection;

pub fn bisection(b: &Bisection, extras: &Extras<'_>) -> String {
    let (word, sentence) = describe_bisection(b);
    let ink = match (b.culprits.as_slice(), word) {
        ([_], "found") => Ink::Bad,
        ([], "not slower") => Ink::Calm,
        _ => Ink::Doubt,
    };
    let line = b.line.map(|line| format!("line {}", units::share(line)));
    let facts = vec![
        format!("{} → {}", short(&b.good), short(&b.bad)),
        b.workload.clone().unwrap_or_default(),
        format!("tolerance {}", units::setting(b.tolerance)),
        line.unwrap_or_default(),
        b.timestamp_utc.clone(),
    ];
    let title = format!("holdpoint: {}, bisect", b.suite);
    let banner = Banner { title, ink: ink_class(ink), word, sentence: &sentence, facts };
    let mut commits: Vec<&str> = b
        .steps
        .iter()
        .map(|step| &step.commit)
        .chain([&b.good, &b.bad])
        .chain(&b.culprits)
        .map(|commit| commit.commit.as_str())
        .collect();
    let judged = judged(b);
    commits.extend(judged.iter().flat_map(|judged| sides::commits(*judged)));
    commits.sort_unstable();
    commits.dedup();
    let chart = charts::commits(b, &extras.links);
    let chart = chart.map(|chart| broad("div", &figure(&chart)));
    let mut parts = vec![
        chart.unwrap_or_default(),
        extras.links.in_text(&markup(&bisection_sections(b), None), &commits),
    ];
    if let Some(judged) = judged {
        let verdict = judged.judgement.verdict;
        let sentence = format!("{} {}: {}", mark(verdict), verdict.as_str(), judged.sentence());
        let body: String = sides::body(judged, extras, &commits).concat();
        parts.push(section(
            "The culprit and the commit before it",
            &format!("<p>{}</p>\n{body}", super::escape(&sentence)),
        ));
    }
    banner_page(&banner, &parts, extras, &commits)
}
