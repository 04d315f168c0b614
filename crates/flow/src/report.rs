//! `holdpoint report`: render an existing document again.

use crate::Watch;
use crate::ceilings;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts;
use crate::interchange::exports;
pub use crate::interchange::exports::ExportForm;
use crate::interchange::imports;
use crate::judgement_with_samples::JudgementWithSamples;
use crate::links;
use crate::trend::{self, ShownHistory};
use holdpoint_evidence::rejudge::{Doubt, Rejudged, rejudge, rejudge_beside};
use holdpoint_gate::judge_recorded;
use holdpoint_gate::{Evidence, Judgement};
use holdpoint_interop::apex::ApexGpuReport;
use holdpoint_model::document::AnyDocument;
use holdpoint_model::{AbReport, Bisection, Calibration, Current, ExitCode, Report, Stated, json};
use holdpoint_render::{forms, html, json_for_terminal, markdown, svg};
use holdpoint_store::StoreError;
use std::path::{Path, PathBuf};

/// A document to be shown again, and the pages to be made of it.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    pub report: PathBuf,
    /// Its comparison, to be shown with it.
    pub comparison: Option<PathBuf>,
    pub markdown: Option<PathBuf>,
    pub html: Option<PathBuf>,
    /// The address of the repository whose commits are linked.
    pub repository: Option<String>,
    /// The report of a ceilings suite; those that are kept, if absent.
    pub ceilings: Option<PathBuf>,
    pub form: Option<ReportForm>,
    /// Where it is written in that form.
    pub output: Option<PathBuf>,
    /// The file that findings point to.
    pub location: Option<String>,
}

/// The forms of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportForm {
    ApexGpu,
    Github,
    Junit,
    Sarif,
    Export(ExportForm),
}

/// A document that is shown again, and why its judgement does not hold.
#[derive(Debug)]
pub struct ReportResult {
    pub document: Document,
    pub problem: Option<String>,
}

#[derive(Debug)]
pub enum Document {
    Report(Box<JudgedReport>),
    Judged(Box<JudgementWithSamples>),
    Calibration(Box<Calibration>),
    Bisection(Box<Bisection>),
    Trend(ShownHistory),
    ApexGpu(Box<ApexPage>),
    /// In the form of another program, to be printed as it is.
    Form(String),
    /// In the form of another program, in a file.
    Written,
}

impl Document {
    /// A commit that it is about.
    fn commit(&self) -> Option<&str> {
        let revision = match self {
            Self::Report(judged) => judged.report.revision.as_ref(),
            Self::Judged(decided) => decided.judgement.revision.as_ref(),
            Self::Bisection(bisection) => return Some(&bisection.bad.commit),
            Self::Calibration(_) | Self::Trend(_) | Self::ApexGpu(_) | Self::Form(_) | Self::Written => None,
        };
        revision.map(|revision| revision.commit.as_str())
    }
}

/// A report, and its comparison where one was given.
#[derive(Debug)]
pub struct JudgedReport {
    pub report: Report,
    pub judgement: Option<Judgement>,
}

/// Apex-X's GPU report, and its page.
#[derive(Debug)]
pub struct ApexPage {
    pub report: ApexGpuReport,
    pub page: String,
}

pub fn run(request: &ReportRequest, watch: &dyn Watch) -> Result<CommandResult<ReportResult>, FlowError> {
    match request.form {
        Some(ReportForm::ApexGpu) => return run_apex_gpu(request, watch),
        Some(ReportForm::Export(form)) => return run_export(request, form, watch),
        Some(form) => return run_form(request, form, watch),
        None => {}
    }
    if request.report.extension().is_some_and(|end| end == "ndjson") {
        return run_trend(request, watch);
    }
    let document = match holdpoint_store::read_any(&request.report) {
        Ok(document) => document,
        Err(error) => return run_imported(request, error, watch),
    };
    match document {
        AnyDocument::Report(report) => run_report(request, *report, &[], watch),
        AnyDocument::Ab(_) | AnyDocument::Comparison(_) => run_judgement(request, watch),
        AnyDocument::Calibration(calibration) => {
            let page = markdown::calibration(&calibration).into();
            show(request, Document::Calibration(calibration), &page, None, watch)
        }
        AnyDocument::Bisection(bisection) => {
            let page = markdown::bisection(&bisection).into();
            show(request, Document::Bisection(bisection), &page, None, watch)
        }
    }
}

/// The trend of a suite, with the changes of its levels.
fn run_trend(request: &ReportRequest, watch: &dyn Watch) -> Result<CommandResult<ReportResult>, FlowError> {
    if request.markdown.is_some() || request.comparison.is_some() {
        let what = "a trend has a page as HTML only; give --html FILE".to_owned();
        return Err(FlowError::File { path: request.report.clone(), what });
    }
    let shown = trend::read_file(&request.report, watch)?;
    trend::draw(&shown, [request.html.as_deref(), None], request.repository.as_deref(), watch)?;
    Ok(CommandResult::new(ReportResult { document: Document::Trend(shown), problem: None }, ExitCode::Ok))
}

/// A file of another tool, as a report.
fn run_imported(
    request: &ReportRequest,
    error: StoreError,
    watch: &dyn Watch,
) -> Result<CommandResult<ReportResult>, FlowError> {
    let imported = imports::read_report(&request.report);
    let (report, notes) = imported.map_err(|foreign| imports::clearer(error, foreign))?;
    let done = run_report(request, report, &notes, watch)?;
    Ok(notes.into_iter().fold(done, |done, note| done.with_note(format!("note: {note}"))))
}

/// A judgement, judged again, with the samples beside it.
struct Loaded {
    rejudged: Rejudged,
    sides: Option<AbReport>,
    report: Option<Report>,
}

impl Loaded {
    /// Reads a comparison.json, or judges an ab.json.
    fn read(path: &Path) -> Result<Self, FlowError> {
        let beside = |name: &str| path.with_file_name(name);
        let bad = |what: &str| FlowError::File { path: path.to_owned(), what: what.to_owned() };
        match holdpoint_store::read_any(path)? {
            AnyDocument::Ab(sides) => {
                let judgement = judge_recorded(&sides).map_err(|error| bad(&error.to_string()))?;
                let evidence = Ok(Some(Evidence::Sides(sides.clone())));
                Ok(Self { rejudged: rejudge(&judgement, evidence, None), sides: Some(*sides), report: None })
            }
            AnyDocument::Comparison(stated) => Ok(Self {
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

    fn decided(self, judgement: Judgement) -> JudgementWithSamples {
        JudgementWithSamples { judgement, sides: self.sides, report: self.report }
    }
}

fn run_judgement(
    request: &ReportRequest,
    watch: &dyn Watch,
) -> Result<CommandResult<ReportResult>, FlowError> {
    let loaded = Loaded::read(&request.report)?;
    let problem = Problem::new(&loaded.rejudged);
    let judgement = loaded.rejudged.judgement.clone();
    let decided = loaded.decided(judgement);
    let page = markdown::judgement(decided.judged());
    if page.is_none() && (request.markdown.is_some() || request.html.is_some()) {
        let what = "a comparison without its samples has no page; put its report.json or ab.json beside it";
        return Err(FlowError::File { path: request.report.clone(), what: what.to_owned() });
    }
    let page = page.unwrap_or_default().into();
    show(request, Document::Judged(Box::new(decided)), &page, problem, watch)
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

fn run_report(
    request: &ReportRequest,
    report: Report,
    notes: &[String],
    watch: &dyn Watch,
) -> Result<CommandResult<ReportResult>, FlowError> {
    let stated =
        request.comparison.as_ref().map(|path| holdpoint_store::read_document::<Stated>(path)).transpose()?;
    let rejudged = stated.map(|stated| rejudge_with(&stated, &report, request));
    let problem = rejudged.as_ref().and_then(Problem::new);
    let judgement: Option<Judgement> = rejudged.map(|rejudged| rejudged.judgement);
    let mut page = Page::from(markdown::report(&report, judgement.as_deref()));
    page.appendix = markdown::remarks(notes);
    add_roofline(&mut page, request, &report)?;
    show(request, Document::Report(Box::new(JudgedReport { report, judgement })), &page, problem, watch)
}

/// The comparison judged again: by the runs beside it, or by this one where there are none.
fn rejudge_with(stated: &Stated, report: &Report, request: &ReportRequest) -> Rejudged {
    let dir = request.comparison.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
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
    /// Markdown below it, in which the picture is named.
    appendix: String,
    picture: Option<Picture>,
}

struct Picture {
    name: String,
    svg: String,
}

impl From<String> for Page {
    fn from(text: String) -> Self {
        Self { text, appendix: String::new(), picture: None }
    }
}

/// The roofline for the page; nothing where no ceilings were named and none are kept.
fn add_roofline(page: &mut Page, request: &ReportRequest, report: &Report) -> Result<(), FlowError> {
    let Some(path) = request.markdown.as_ref().or(request.html.as_ref()) else { return Ok(()) };
    let roofline = match ceilings::roofline(report, request.ceilings.as_deref()) {
        Ok(roofline) => roofline,
        Err(_) if request.ceilings.is_none() => return Ok(()),
        Err(error) => return Err(error),
    };
    let name = path.with_extension("roofline.svg");
    let name = name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = Some(name).filter(|_| svg::has_points(&roofline));
    page.appendix += &format!("\n{}", markdown::roofline(&roofline, name.as_deref()));
    page.picture = name.map(|name| Picture { name, svg: svg::roofline(&roofline) });
    Ok(())
}

/// The numbers in the form of a program that keeps or draws them.
fn run_export(
    request: &ReportRequest,
    form: ExportForm,
    watch: &dyn Watch,
) -> Result<CommandResult<ReportResult>, FlowError> {
    if form == ExportForm::Parquet && request.output.is_none() {
        return Err(FlowError::Input(
            "a Parquet file is not text; say where to write it with --output FILE".to_owned(),
        ));
    }
    let (bytes, notes) = exports::export(&request.report, form)?;
    let document = match &request.output {
        Some(path) => {
            holdpoint_store::write_binary(path, &bytes)?;
            watch.note(&format!("report: {}", path.display()));
            Document::Written
        }
        None => Document::Form(String::from_utf8_lossy(&bytes).into_owned()),
    };
    let done = end(request, document, None);
    Ok(notes.into_iter().fold(done, |done, note| done.with_note(format!("note: {note}"))))
}

/// A comparison in the form of a program that shows what was found.
fn run_form(
    request: &ReportRequest,
    form: ReportForm,
    watch: &dyn Watch,
) -> Result<CommandResult<ReportResult>, FlowError> {
    let loaded = Loaded::read(&request.report)?;
    let problem = Problem::new(&loaded.rejudged);
    let judgement = loaded.rejudged.clone().with_problem();
    let decided = loaded.decided(judgement);
    let judged = decided.judged();
    let location = request.location.as_deref();
    let text = match form {
        ReportForm::Github => forms::github(judged, location),
        ReportForm::Junit => forms::junit(judged),
        _ => json::to_pretty(&forms::sarif(judged, location))
            .map(|text| json_for_terminal(&text))
            .map_err(|error| FlowError::Internal(error.to_string()))?,
    };
    let document = match &request.output {
        Some(path) => {
            holdpoint_store::write_text(path, &text)?;
            watch.note(&format!("report: {}", path.display()));
            Document::Written
        }
        None => Document::Form(text),
    };
    Ok(end(request, document, problem))
}

/// The report as Apex-X would have written it: JSON in the file, its page on stdout.
fn run_apex_gpu(
    request: &ReportRequest,
    watch: &dyn Watch,
) -> Result<CommandResult<ReportResult>, FlowError> {
    let report = holdpoint_store::read_document::<Report>(&request.report)?;
    let report = ApexGpuReport::try_from(&report)
        .map_err(|error| FlowError::File { path: request.report.clone(), what: error.to_string() })?;
    if let Some(path) = &request.output {
        holdpoint_store::write_json(path, &report)?;
        watch.note(&format!("report: {}", path.display()));
    }
    let page = markdown::apex_gpu(&report);
    let document = Document::ApexGpu(Box::new(ApexPage { report, page: page.clone() }));
    show(request, document, &page.into(), None, watch)
}

fn show(
    request: &ReportRequest,
    document: Document,
    page: &Page,
    problem: Option<Problem>,
    watch: &dyn Watch,
) -> Result<CommandResult<ReportResult>, FlowError> {
    let first = problem.as_ref().map(|problem| markdown::problem(&problem.what)).unwrap_or_default();
    let text_of_page = format!("{first}{}{}", page.text, page.appendix);
    if let Some(path) = &request.markdown {
        if let Some(Picture { name, svg }) = &page.picture {
            let picture = path.with_file_name(name);
            holdpoint_store::write_text(&picture, svg)?;
            watch.note(&format!("picture: {}", picture.display()));
        }
        holdpoint_store::write_text(path, &text_of_page)?;
        watch.note(&format!("markdown: {}", path.display()));
    }
    if let Some(path) = &request.html {
        let extras = html::Extras {
            links: links::find(request.repository.as_deref(), document.commit())?,
            problem: problem.as_ref().map(|problem| problem.what.as_str()),
            appendix: &page.appendix,
            picture: page.picture.as_ref().map(|picture| (&*picture.name, &*picture.svg)),
        };
        let html = page_html(&document, &extras).unwrap_or_else(|| html::page(&text_of_page, extras.picture));
        holdpoint_store::write_text(path, &html)?;
        watch.note(&format!("html: {}", path.display()));
    }
    Ok(end(request, document, problem))
}

/// The page of a document that has one of its own.
fn page_html(document: &Document, extras: &html::Extras<'_>) -> Option<String> {
    match document {
        Document::Report(judged) => Some(html::report(&judged.report, judged.judgement.as_deref(), extras)),
        Document::Judged(decided) => html::judgement(decided.judged(), extras),
        Document::Calibration(calibration) => Some(html::calibration(calibration, extras)),
        Document::Bisection(bisection) => Some(html::bisection(bisection, extras)),
        Document::Trend(_) | Document::ApexGpu(_) | Document::Form(_) | Document::Written => None,
    }
}

/// An edited file is bad input, but is shown.
fn end(request: &ReportRequest, document: Document, problem: Option<Problem>) -> CommandResult<ReportResult> {
    let end = match &problem {
        Some(Problem { what, is_edited: true }) => {
            Err(FlowError::File { path: request.report.clone(), what: what.clone() })
        }
        _ => Ok(ExitCode::Ok),
    };
    let document = ReportResult { document, problem: problem.map(|problem| problem.what) };
    CommandResult { document, notes: Vec::new(), end }
}
