//! `holdpoint history`: every run kept, in one store.

mod add;
mod request;

pub use request::{AcceptRequest, AddRequest, ExportRequest, HistoryForm, HistoryRequest, PruneRequest};

use crate::Watch;
use crate::command_result::{CommandResult, Message};
use crate::error::FlowError;
use crate::histories;
use holdpoint_gate::history::level_of;
use holdpoint_history::{Access, Location, Prune, PruneWhat, Store, VERSION};
use holdpoint_interop::export;
use holdpoint_measure::clock;
use holdpoint_model::limits::one_line;
use holdpoint_model::{
    Acceptance, ExitCode, Point, Revision, RunPage, Series, SeriesFilter, SeriesSummary, TimeRange,
    Timestamp, Track,
};
use serde_json::json;

/// The outcome of a command.
#[derive(Debug)]
pub enum HistoryResult {
    Message(Message),
    Listed(Vec<SeriesSummary>),
    Runs(RunPage),
    Shown {
        all: Vec<Series>,
        /// Newest points to show of each.
        points: usize,
    },
    Exported(String),
    Written,
}

pub fn run(request: &HistoryRequest, watch: &dyn Watch) -> Result<CommandResult<HistoryResult>, FlowError> {
    let result = match request {
        HistoryRequest::Add(args) => {
            let (place, added) = add::add(args, watch)?;
            message(
                json!({
                    "store": place,
                    "runs_added": added.runs_count,
                    "points_added": added.points_count,
                    "runs_known": added.known_count,
                }),
                format!(
                    "{place}: {} with {} added, {} known already",
                    plural(added.runs_count, "run"),
                    plural(added.points_count, "point"),
                    added.known_count
                ),
            )
        }
        HistoryRequest::List { store, select } => {
            HistoryResult::Listed(open(store.as_ref(), watch)?.1.list(select)?)
        }
        HistoryRequest::Runs { store, filter } => {
            HistoryResult::Runs(open(store.as_ref(), watch)?.1.runs(filter)?)
        }
        HistoryRequest::Show { store, select, points } => {
            HistoryResult::Shown { all: read(store.as_ref(), select, watch)?, points: *points }
        }
        HistoryRequest::Export(args) => export(args, watch)?,
        HistoryRequest::Prune(args) => prune(args, watch)?,
        HistoryRequest::Accept(args) => accept(args, watch)?,
        HistoryRequest::Migrate { store } => {
            let location = histories::location(store.as_ref())?;
            let from = holdpoint_history::migrate(&location)?;
            let words = match from == VERSION {
                true => format!("{location}: it has version {VERSION} already"),
                false => format!("{location}: version {from} is now {VERSION}"),
            };
            message(json!({ "from": from, "to": VERSION }), words)
        }
    };
    Ok(CommandResult::new(result, ExitCode::Ok))
}

fn message(json: serde_json::Value, text: String) -> HistoryResult {
    HistoryResult::Message(Message { json, text: text + "\n" })
}

fn open(store: Option<&Location>, watch: &dyn Watch) -> Result<(Location, Box<dyn Store>), FlowError> {
    let location = histories::location(store)?;
    let store = histories::open(&location, Access::Existing, watch)?;
    Ok((location, store))
}

/// The store and the series in it that are meant, at least one.
pub(crate) fn find(
    store: Option<&Location>,
    select: &SeriesFilter,
    watch: &dyn Watch,
) -> Result<(Box<dyn Store>, Vec<SeriesSummary>), FlowError> {
    let (location, store) = open(store, watch)?;
    let found = store.list(select)?;
    if found.is_empty() { Err(no_series(&location)) } else { Ok((store, found)) }
}

/// The series that are meant, with their points.
pub(crate) fn read(
    store: Option<&Location>,
    select: &SeriesFilter,
    watch: &dyn Watch,
) -> Result<Vec<Series>, FlowError> {
    let (store, found) = find(store, select, watch)?;
    found.iter().map(|series| Ok(store.read(&series.id, TimeRange::default())?)).collect()
}

fn no_series(location: &Location) -> FlowError {
    FlowError::Input(format!("{location}: no series is like that; \"holdpoint history list\" shows all"))
}

fn export(args: &ExportRequest, watch: &dyn Watch) -> Result<HistoryResult, FlowError> {
    if args.form == HistoryForm::Parquet && args.output.is_none() {
        return Err(FlowError::Input(
            "a Parquet file is not text; say where to write it with --output FILE".to_owned(),
        ));
    }
    let all = read(args.store.as_ref(), &args.select, watch)?;
    let bytes = match args.form {
        HistoryForm::Csv => export::history::csv(&all).into_bytes(),
        HistoryForm::Parquet => export::history::parquet(&all),
        HistoryForm::Json => {
            let text = serde_json::to_string(&all).map_err(|error| FlowError::Internal(error.to_string()))?;
            (holdpoint_model::json::escape_invisible(&text) + "\n").into_bytes()
        }
    };
    let Some(path) = &args.output else {
        return Ok(HistoryResult::Exported(String::from_utf8_lossy(&bytes).into_owned()));
    };
    holdpoint_store::write_binary(path, &bytes)?;
    watch.note(&format!("table: {}", path.display()));
    Ok(HistoryResult::Written)
}

/// Joins a ref with the remote's and pushes the outcome, if that is asked for.
fn push(remote: Option<&str>, location: &Location) -> Result<(), FlowError> {
    match remote {
        Some(remote) => Ok(location.exchange(remote)?),
        None => Ok(()),
    }
}

/// Refuses to push what is not in git, before anything is changed.
fn check_push(remote: Option<&str>, location: &Location) -> Result<(), FlowError> {
    if remote.is_some() && !location.has_remotes() {
        return Err(FlowError::Input("--push is for a history in git:REF".to_owned()));
    }
    Ok(())
}

fn prune(args: &PruneRequest, watch: &dyn Watch) -> Result<HistoryResult, FlowError> {
    let (location, store) = open(args.store.as_ref(), watch)?;
    check_push(args.push.as_deref(), &location)?;
    let before = match args.older_than {
        Some(days) => Some(now()?.days_before(days)),
        None => None,
    };
    let what = if args.runs { PruneWhat::Runs } else { PruneWhat::Samples };
    let pruned = store.prune(&Prune { what, before, keep: args.keep })?;
    push(args.push.as_deref(), &location)?;
    let words = match what {
        PruneWhat::Samples => {
            format!("raw samples of {} removed, summaries kept", plural(pruned.runs_count, "run"))
        }
        PruneWhat::Runs => format!(
            "{} with {} removed",
            plural(pruned.runs_count, "run"),
            plural(pruned.points_count, "point")
        ),
    };
    let json = json!({ "runs": pruned.runs_count, "points": pruned.points_count });
    Ok(message(json, format!("{location}: {words}")))
}

fn accept(args: &AcceptRequest, watch: &dyn Watch) -> Result<HistoryResult, FlowError> {
    let by = crate::person::person(args.by.as_deref(), "accepts")?;
    let why = holdpoint_model::limits::clean_text(args.why.trim());
    if !holdpoint_model::limits::is_said(&why) {
        return Err(FlowError::Input("--why is empty; say why the new level is right".to_owned()));
    }
    if args.select == SeriesFilter::default() && args.revision.is_none() && !args.all {
        return Err(FlowError::Input(
            "say which series have a new level: give --workload, --metric, --suite, --machine or --series, --revision COMMIT, or --all"
                .to_owned(),
        ));
    }
    let (location, store) = open(args.store.as_ref(), watch)?;
    let (mut accepted, mut lines, mut is_any_short) = (Vec::new(), Vec::new(), false);
    for summary in store.list(&args.select)? {
        let series = store.read(&summary.id, TimeRange::default())?;
        let Some(point) = accepted_point(&series, args.revision.as_deref()) else { continue };
        let key = &series.key;
        let name =
            one_line(&format!("{} {} of {}, series {}", key.workload, key.metric, key.suite, summary.id));
        // Without a level nothing is reported, and after an accepted point a series has none for a while.
        if level_of(&Track::from(&series)).is_none() {
            is_any_short = true;
            lines.push(format!("left as it is, too short to have a level: {name}"));
            continue;
        }
        let (by, why) = (by.clone(), why.clone());
        let acceptance = Acceptance { at: point.at, run: point.run, by, why, accepted_at_utc: now()? };
        store.accept(&summary.id, &acceptance)?;
        lines.push(format!("accepted from {} on: {name}", point.at));
        accepted.push(json!({ "series": summary.id, "acceptance": acceptance }));
    }
    match (accepted.len(), &args.revision) {
        (0, _) if is_any_short => Err(FlowError::Input(format!(
            "{location}: none of these series is long enough to have a level that could be accepted; add more runs"
        ))),
        (0, Some(commit)) => Err(FlowError::Input(format!("{location}: no series has a point of {commit}"))),
        (0, None) => Err(no_series(&location)),
        (count, _) => Ok(message(
            json!(accepted),
            format!("{location}: a new level of {count} series accepted by {by}\n{}", lines.join("\n")),
        )),
    }
}

/// The first point of a commit, or the newest.
fn accepted_point<'a>(series: &'a Series, commit: Option<&str>) -> Option<&'a Point> {
    let Some(commit) = commit else { return series.points.last() };
    let is_of_commit = |revision: &Revision| revision.commit.starts_with(commit);
    series.points.iter().find(|point| point.revision.as_ref().is_some_and(is_of_commit))
}

fn plural(count: impl Into<u128>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

fn now() -> Result<Timestamp, FlowError> {
    let text = clock::timestamp_utc();
    Timestamp::parse(&text).ok_or_else(|| FlowError::Internal(format!("the clock is off: it is {text}")))
}
