//! `holdpoint trend`: keep and show a suite's history.

use crate::Watch;
use crate::done::Done;
use crate::error::FlowError;
use crate::options::{SuiteArg, TrendArgs, TrendCommand};
use crate::support::imports;
use crate::support::{links, suites};
use holdpoint_model::{ExitCode, Trend};
use holdpoint_render::{html, svg};
use holdpoint_store::Appended;
use std::path::Path;

/// Runs the command. Only `show` has points to show.
pub fn run(args: &TrendArgs, watch: &dyn Watch) -> Result<Done<Option<Vec<Trend>>>, FlowError> {
    match &args.command {
        TrendCommand::Append { trends, dir } => {
            for path in trends {
                let trend = imports::read_trend(path)?;
                let (file, appended) = holdpoint_store::append_trend(dir, &trend)?;
                let done = match appended {
                    Appended::Added => "appended to",
                    Appended::AddedAfterRepair => "appended, once a cut-off line had been moved aside, to",
                    Appended::Already => "already in",
                };
                watch.note(&format!("{} {done} {}", path.display(), file.display()));
            }
        }
        TrendCommand::Show { file, suite, dir, html, svg, repository } => {
            let path = match (file, suite) {
                (Some(file), _) => file.clone(),
                (None, Some(suite)) => holdpoint_store::trend_path(dir, suite),
                (None, None) => {
                    let suite = suites::load(&SuiteArg::new(&suites::default_name(), None))?;
                    holdpoint_store::trend_path(dir, &suite.name)
                }
            };
            let points = holdpoint_store::read_trends(&path)?;
            if html.is_some() || svg.is_some() {
                draw(&points, [html, svg].map(Option::as_deref), repository.as_deref(), watch)?;
            }
            return Ok(Done::new(Some(points), ExitCode::Ok));
        }
    }
    Ok(Done::new(None, ExitCode::Ok))
}

/// Writes the page and the picture, where they are wanted.
fn draw(
    points: &[Trend],
    [page, picture]: [Option<&Path>; 2],
    repository: Option<&str>,
    watch: &dyn Watch,
) -> Result<(), FlowError> {
    let newest = points.iter().rev().find_map(|point| point.revision.as_ref());
    let links = links::find(repository, newest.map(|revision| revision.commit.as_str()))?;
    if let Some(path) = picture {
        let nothing = || FlowError::Input("there is nothing to draw: no run has a value".to_owned());
        holdpoint_store::write_text(path, &svg::trend(points, &links).ok_or_else(nothing)?)?;
        watch.note(&format!("picture: {}", path.display()));
    }
    if let Some(path) = page {
        let extras = html::Extras { links, ..html::Extras::default() };
        holdpoint_store::write_text(path, &html::trend(points, &extras))?;
        watch.note(&format!("html: {}", path.display()));
    }
    Ok(())
}
