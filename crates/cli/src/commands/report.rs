//! `holdpoint report`: render an existing document again.

use super::ab;
use crate::args::{ReportArgs, ReportForm};
use crate::artifacts;
use crate::ceilings;
use crate::error::CliError;
use crate::output::{Output, print};
use holdpoint_evidence::rejudge::{Doubt, Rejudged, rejudge, rejudge_beside};
use holdpoint_gate::Evidence;
use holdpoint_gate::ab::judge_recorded;
use holdpoint_interop::apex::ApexGpuReport;
use holdpoint_model::document::AnyDocument;
use holdpoint_model::{AbReport, Current, ExitCode, Judgement, Report, Source, json};
use holdpoint_render::{Judged, Style, forms, html, json_for_terminal, markdown, svg, terminal};
use serde::Serialize;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// When a file cannot be read, used or written.
pub fn run(args: &ReportArgs, output: &Output) -> Result<ExitCode, CliError> {
    match args.form {
        Some(ReportForm::ApexGpu) => return run_apex_gpu(args, output),
        Some(form) => return run_form(args, form, output),
        None => {}
    }
    match holdpoint_store::read_any(&args.report)? {
        AnyDocument::Report(report) => run_report(args, &report, output),
        AnyDocument::Ab(_) | AnyDocument::Judgement(_) => run_judgement(args, output),
        AnyDocument::Calibration(calibration) => {
            let page = markdown::calibration(&calibration).into();
            show(args, &*calibration, &page, None, |style| terminal::calibration(&calibration, style), output)
        }
        AnyDocument::Bisection(bisection) => {
            let page = markdown::bisection(&bisection).into();
            show(args, &*bisection, &page, None, |style| terminal::bisection(&bisection, style), output)
        }
    }
}

/// A judgement, judged again, with the samples beside it.
struct Loaded {
    rejudged: Rejudged,
    sides: Option<AbReport>,
    report: Option<Report>,
}

impl Loaded {
    /// Reads a comparison.json, or judges an ab.json.
    fn read(path: &Path) -> Result<Self, CliError> {
        let beside = |name: &str| path.with_file_name(name);
        let bad = |what: &str| CliError::File { path: path.to_owned(), what: what.to_owned() };
        match holdpoint_store::read_any(path)? {
            AnyDocument::Ab(sides) => {
                let judgement = judge_recorded(&sides).map_err(|error| bad(&error.to_string()))?;
                let evidence = Ok(Some(Evidence::Sides(sides.clone())));
                Ok(Self { rejudged: rejudge(&judgement, evidence, None), sides: Some(*sides), report: None })
            }
            AnyDocument::Judgement(stated) => Ok(Self {
                rejudged: artifacts::rejudge_file(&stated, path),
                sides: holdpoint_store::read_document::<AbReport>(&beside(artifacts::AB))
                    .ok()
                    .filter(|_| stated.sides.is_some()),
                report: holdpoint_store::read_document::<Report>(&beside(artifacts::REPORT))
                    .ok()
                    .filter(|_| stated.sides.is_none()),
            }),
            _ => Err(bad("nothing was decided in it; give a comparison.json or an ab.json")),
        }
    }

    fn source(&self) -> Option<Source<'_>> {
        self.sides.as_ref().map(Source::Sides).or(self.report.as_ref().map(Source::Run))
    }
}

fn run_judgement(args: &ReportArgs, output: &Output) -> Result<ExitCode, CliError> {
    let loaded = Loaded::read(&args.report)?;
    let judgement = &loaded.rejudged.judgement;
    let judged = Judged::new(judgement, loaded.source());
    let page = markdown::judgement(judged);
    if page.is_none() && (args.markdown.is_some() || args.html.is_some()) {
        let what = "a comparison without its samples has no page; put its report.json or ab.json beside it";
        return Err(CliError::File { path: args.report.clone(), what: what.to_owned() });
    }
    let page = page.unwrap_or_default().into();
    let text = |style| ab::text(judged, judged.is_sides(), style);
    show(args, judgement, &page, Problem::new(&loaded.rejudged).as_ref(), text, output)
}

/// Why a judgement does not hold.
struct Problem {
    what: String,
    /// Whether it contradicts its samples; otherwise they are missing.
    is_edited: bool,
}

impl Problem {
    fn new(rejudged: &Rejudged) -> Option<Self> {
        let is_edited = matches!(rejudged.doubt, Some(Doubt::Edited(_)));
        rejudged.problem().map(|what| Self { what, is_edited })
    }
}

fn run_report(args: &ReportArgs, report: &Report, output: &Output) -> Result<ExitCode, CliError> {
    let said =
        args.comparison.as_ref().map(|path| holdpoint_store::read_document::<Judgement>(path)).transpose()?;
    let rejudged = said.map(|said| rejudge_with(&said, report, args));
    let problem = rejudged.as_ref().and_then(Problem::new);
    let judgement: Option<Judgement> = rejudged.map(|rejudged| rejudged.judgement);
    let mut page = Page::from(markdown::report(report, judgement.as_ref()));
    add_roofline(&mut page, args, report)?;
    let text = |style| {
        let mut text = terminal::report(report, style);
        if let Some(judgement) = &judgement {
            text.push('\n');
            let judged = Judged::new(judgement, Some(Source::Run(report)));
            text.push_str(&terminal::judgement(judged, style));
        }
        text
    };
    show(args, report, &page, problem.as_ref(), text, output)
}

/// The comparison judged again: by the runs beside it, or by this one where there are none.
fn rejudge_with(stated: &Judgement, report: &Report, args: &ReportArgs) -> Rejudged {
    let dir = args.comparison.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
    let day = artifacts::day_of(stated.timestamp_utc.as_deref());
    let (beside, names) = rejudge_beside(stated, dir, None, day);
    if names.is_empty() && !matches!(beside.doubt, Some(Doubt::Edited(_))) {
        return rejudge(stated, Ok(Some(Evidence::Runs(vec![Current::from(report)]))), day);
    }
    beside
}

/// A page of Markdown, and the picture it may have, beside it or in it.
struct Page {
    text: String,
    picture: Option<Picture>,
}

struct Picture {
    name: String,
    svg: String,
}

impl From<String> for Page {
    fn from(text: String) -> Self {
        Self { text, picture: None }
    }
}

/// The roofline for the page; nothing where no ceilings were named and none are kept.
fn add_roofline(page: &mut Page, args: &ReportArgs, report: &Report) -> Result<(), CliError> {
    let Some(path) = args.markdown.as_ref().or(args.html.as_ref()) else { return Ok(()) };
    let roofline = match ceilings::roofline(report, args.ceilings.as_deref()) {
        Ok(roofline) => roofline,
        Err(_) if args.ceilings.is_none() => return Ok(()),
        Err(error) => return Err(error),
    };
    let name = path.with_extension("roofline.svg");
    let name = name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = Some(name).filter(|_| svg::has_points(&roofline));
    page.text += &format!("\n{}", markdown::roofline(&roofline, name.as_deref()));
    page.picture = name.map(|name| Picture { name, svg: svg::roofline(&roofline) });
    Ok(())
}

/// A comparison in the form of a program that shows what was found.
fn run_form(args: &ReportArgs, form: ReportForm, output: &Output) -> Result<ExitCode, CliError> {
    let loaded = Loaded::read(&args.report)?;
    let problem = Problem::new(&loaded.rejudged);
    let shown = loaded.rejudged.clone().with_problem();
    let judged = Judged::new(&shown, loaded.source());
    let location = args.location.as_deref();
    let text = match form {
        ReportForm::Github => forms::github(judged, location),
        ReportForm::Junit => forms::junit(judged),
        ReportForm::Sarif | ReportForm::ApexGpu => json::to_pretty(&forms::sarif(judged, location))
            .map(|text| json_for_terminal(&text))
            .map_err(|error| CliError::Internal(error.to_string()))?,
    };
    match &args.output {
        Some(path) => {
            holdpoint_store::write_text(path, &text)?;
            output.note(&format!("report: {}", path.display()));
        }
        None => print(&text)?,
    }
    end(args, problem.as_ref())
}

/// The report as Apex-X would have written it: JSON in the file, its page on stdout.
fn run_apex_gpu(args: &ReportArgs, output: &Output) -> Result<ExitCode, CliError> {
    let report = holdpoint_store::read_document::<Report>(&args.report)?;
    let report = ApexGpuReport::try_from(&report)
        .map_err(|error| CliError::File { path: args.report.clone(), what: error.to_string() })?;
    if let Some(path) = &args.output {
        holdpoint_store::write_json(path, &report)?;
        output.note(&format!("report: {}", path.display()));
    }
    let page = markdown::apex_gpu(&report);
    let text = page.clone();
    show(args, &report, &page.into(), None, |_| text, output)
}

fn show(
    args: &ReportArgs,
    document: &impl Serialize,
    page: &Page,
    problem: Option<&Problem>,
    text: impl FnOnce(Style) -> String,
    output: &Output,
) -> Result<ExitCode, CliError> {
    let first = problem.map(|problem| markdown::problem(&problem.what)).unwrap_or_default();
    let text_of_page = format!("{first}{}", page.text);
    if let Some(path) = &args.markdown {
        if let Some(Picture { name, svg }) = &page.picture {
            let picture = path.with_file_name(name);
            holdpoint_store::write_text(&picture, svg)?;
            output.note(&format!("picture: {}", picture.display()));
        }
        holdpoint_store::write_text(path, &text_of_page)?;
        output.note(&format!("markdown: {}", path.display()));
    }
    if let Some(path) = &args.html {
        let picture = page.picture.as_ref().map(|picture| (&*picture.name, &*picture.svg));
        holdpoint_store::write_text(path, &html::page(&text_of_page, picture))?;
        output.note(&format!("html: {}", path.display()));
    }
    let first = problem.map(|problem| format!("problem: {}\n\n", problem.what)).unwrap_or_default();
    output.result(document, |style| first + &text(style))?;
    end(args, problem)
}

/// What was edited is bad input, shown all the same.
fn end(args: &ReportArgs, problem: Option<&Problem>) -> Result<ExitCode, CliError> {
    match problem.filter(|problem| problem.is_edited) {
        Some(problem) => Err(CliError::File { path: args.report.clone(), what: problem.what.clone() }),
        None => Ok(ExitCode::Ok),
    }
}
