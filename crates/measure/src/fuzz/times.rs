//! Checks that the times reported by a user's worker are those of the work.
//!
//! Others may use the machine meanwhile, and an honest worker must not be accused for it: every figure is the minimum
//! of several tries, factors are wide, and what a worker does outside its clock (copies to and from a device, the
//! protocol) cancels out. Answers are checked here too, so that no work can be skipped because it is only timed.

use super::arena::Arena;
use super::exchange::Exchange;
use crate::program::WorkerError;
use crate::worker::Worker;
use holdpoint_model::fuzz::Evaluated;
use holdpoint_model::{FindingKind, FuzzCase};

/// A call on fewer elements may take next to no time.
const ELEMENTS_MIN: usize = 500;
/// Each figure is the minimum of this many.
const TRIES: u64 = 3;
/// Calls of the requests that compare new inputs with known ones.
const CALLS: u64 = 4;
/// Shorter times by the worker's clock prove nothing: clocks have steps.
const REPORTED_NS_MIN: f64 = 100_000.0;
/// An answer to known inputs that comes this many times faster was not computed. CPU caches explain less.
const REMEMBERED: f64 = 8.0;
/// A repetition that is this many times shorter than a call on new inputs was skipped. Start-up costs explain less.
const LEFT_OUT: f64 = 50.0;
/// Repetitions grow until they take this long and `GROWN` times as long as one, so that the rest of a request weighs
/// little.
const REPEATED_NS_MIN: f64 = 20e6;
const GROWN: f64 = 4.0;
/// If this many repetitions still take no longer, they were not made.
const REPEATS_MAX: u64 = 1 << 16;
/// A case is repeated this often, if that takes less than `OFTEN_NS`.
const OFTEN: f64 = 1000.0;
const OFTEN_NS: f64 = 300e6;
/// The worker's clock may miss this share of what repetitions add.
const UNREPORTED_SHARE: f64 = 0.5;
/// The time that a clock misses grows with the repetitions; the time that a busy machine adds around them does not. So a request of this
/// length decides. With eleven busy processes on two cores, waiting for a CPU added 20 to 70 ms to requests of any
/// length.
const JUDGED_NS_MIN: f64 = 1e9;
/// A call of this length need not be repeated often to be timed beside the rest of its request.
const LONG_NS: f64 = 50e6;
/// Looks that must all find the same.
const LOOKS: u64 = 3;

/// Times of one request, or the minimum over several.
#[derive(Clone, Copy)]
struct Times {
    /// Here, from request to answer.
    passed_ns: f64,
    /// By the worker's clock.
    reported_ns: f64,
    /// The difference, which no disturbance inside the worker's clock changes.
    unreported_ns: f64,
}

impl Times {
    fn least(self, other: Self) -> Self {
        Self {
            passed_ns: self.passed_ns.min(other.passed_ns),
            reported_ns: self.reported_ns.min(other.reported_ns),
            unreported_ns: self.unreported_ns.min(other.unreported_ns),
        }
    }
}

/// Why a look ended early.
enum End {
    Failed(WorkerError),
    Found(Box<Evaluated>),
}

impl From<Evaluated> for End {
    fn from(evaluated: Evaluated) -> Self {
        Self::Found(Box::new(evaluated))
    }
}

impl From<WorkerError> for End {
    fn from(error: WorkerError) -> Self {
        Self::Failed(error)
    }
}

/// Checks the times of a case that passed, until a look finds nothing wrong or all looks have found the same.
pub(super) fn check_times(
    arena: &mut Arena<'_>,
    worker: &mut dyn Worker,
    case: &FuzzCase,
) -> Result<Evaluated, WorkerError> {
    let mut found = check_once(arena, worker, case)?;
    for look in 1..LOOKS {
        let Some(kind) = found.finding.as_ref().map(|finding| finding.kind) else { break };
        // The inputs of the previous look are no longer new.
        let other = FuzzCase { seed: case.seed.wrapping_add(look << 32), ..case.clone() };
        let again = check_once(arena, worker, &other)?;
        if again.finding.as_ref().map(|finding| finding.kind) != Some(kind) {
            return Ok(Evaluated::default());
        }
        found = again;
    }
    Ok(found)
}

/// Nanoseconds that each further repetition of a call takes, by the clock here: no worker's clock can shorten them. The answers of
/// all these calls are checked.
pub(super) fn time_call(
    arena: &mut Arena<'_>,
    worker: &mut dyn Worker,
    case: &FuzzCase,
) -> Result<Result<f64, Evaluated>, WorkerError> {
    let mut ask = asking(arena, worker);
    match repeat_until_long(case, &mut ask) {
        Ok(repeated) => Ok(Ok(repeated.each_ns())),
        Err(End::Found(evaluated)) => Ok(Err(*evaluated)),
        Err(End::Failed(error)) => Err(error),
    }
}

/// Sends a request, and checks its answer, which was right in another form of the request.
fn asking<'a>(
    arena: &'a mut Arena<'_>,
    worker: &'a mut dyn Worker,
) -> impl FnMut(&mut Exchange) -> Result<Times, End> + 'a {
    move |exchange: &mut Exchange| {
        let skipped_before = arena.oracle.skipped_count;
        let evaluated = exchange.run(arena, worker)?;
        if arena.oracle.skipped_count > skipped_before {
            // Not the worker's doing, and without an answer its times are not checked.
            return Err(Evaluated::default().into());
        }
        if let Some(finding) = evaluated.finding {
            if finding.kind.is_about_time() || finding.kind == FindingKind::OracleFailed {
                return Err(Evaluated::wrong(finding.kind, finding.detail).into());
            }
            let detail = format!("asked for {}: {}", exchange.describe(), finding.detail);
            return Err(Evaluated::wrong(FindingKind::WorkSkipped, detail).into());
        }
        if let Some(reason) = evaluated.skipped {
            let detail = format!("asked for {}: skipped: {reason}", exchange.describe());
            return Err(Evaluated::wrong(FindingKind::WorkSkipped, detail).into());
        }
        let (passed_ns, reported_ns) = (exchange.passed.as_nanos() as f64, exchange.elapsed_ns as f64);
        Ok(Times { passed_ns, reported_ns, unreported_ns: passed_ns - reported_ns })
    }
}

/// A small case can be repeated often, a large one is measured better.
fn check_once(
    arena: &mut Arena<'_>,
    worker: &mut dyn Worker,
    case: &FuzzCase,
) -> Result<Evaluated, WorkerError> {
    let mut ask = asking(arena, worker);
    let mut judged = check_often(case, &mut ask);
    if case.shape.iter().product::<usize>() >= ELEMENTS_MIN {
        judged = judged
            .and_then(|()| check_known_inputs(case, &mut ask))
            .and_then(|call_ns| check_repeats(case, call_ns, &mut ask));
    }
    match judged {
        Ok(()) => Ok(Evaluated::default()),
        Err(End::Found(evaluated)) => Ok(*evaluated),
        Err(End::Failed(error)) => Err(error),
    }
}

type Ask<'a> = dyn FnMut(&mut Exchange) -> Result<Times, End> + 'a;

/// As many repetitions as measuring would ask for, with their answers checked.
fn check_often(case: &FuzzCase, ask: &mut Ask<'_>) -> Result<(), End> {
    let once = ask(&mut Exchange::new(case, case.seed, 1, 1)?)?;
    let repeats = (OFTEN_NS / once.passed_ns).clamp(2.0, OFTEN) as u64;
    ask(&mut Exchange::new(case, case.seed.wrapping_add(3), 2, repeats)?)?;
    Ok(())
}

/// Inputs seen before must take as long as new ones. Returns the time of a call on new ones if it is long enough to be
/// known.
fn check_known_inputs(case: &FuzzCase, ask: &mut Ask<'_>) -> Result<Option<f64>, End> {
    let mut least: Option<[Times; 2]> = None;
    for round in 1..=TRIES {
        let mut exchange = Exchange::new(case, case.seed.wrapping_add(1000 * round), CALLS, 1)?;
        let [fresh, known] = [ask(&mut exchange)?, ask(&mut exchange)?];
        least = Some(least.map_or([fresh, known], |[a, b]| [a.least(fresh), b.least(known)]));
    }
    let Some([fresh, known]) = least else { return Ok(None) };
    let by_clock = (fresh.reported_ns, known.reported_ns);
    for (fresh_ns, known_ns) in [by_clock, (fresh.passed_ns, known.passed_ns)] {
        if fresh_ns > REPORTED_NS_MIN && known_ns * REMEMBERED < fresh_ns {
            let per_call = |ns: f64| micros(ns / CALLS as f64);
            let detail = format!(
                "a call on new inputs takes {}, on inputs seen before {}",
                per_call(fresh_ns),
                per_call(known_ns)
            );
            return Err(Evaluated::wrong(FindingKind::AnswersRemembered, detail).into());
        }
    }
    Ok(Some(fresh.reported_ns).filter(|ns| *ns > REPORTED_NS_MIN).map(|ns| ns / CALLS as f64))
}

/// Times of a call made once, and of one made many times.
struct Repeated {
    one: Times,
    many: Times,
    repeats: u64,
}

impl Repeated {
    fn added_ns(&self) -> f64 {
        self.many.passed_ns - self.one.passed_ns
    }

    fn unreported_ns(&self) -> f64 {
        self.many.unreported_ns - self.one.unreported_ns
    }

    fn each_ns(&self) -> f64 {
        self.added_ns() / (self.repeats - 1) as f64
    }

    /// Whether the further calls outweigh the rest of a request.
    fn is_long(&self) -> bool {
        self.many.passed_ns > REPEATED_NS_MIN.max(GROWN * self.one.passed_ns)
    }

    fn is_unreported(&self) -> bool {
        self.is_long() && self.unreported_ns() > UNREPORTED_SHARE * self.added_ns()
    }
}

fn repeat(case: &FuzzCase, repeats: u64, tries: u64, ask: &mut Ask<'_>) -> Result<Times, End> {
    let mut exchange = Exchange::new(case, case.seed.wrapping_add(7), 1, repeats)?;
    let mut least = ask(&mut exchange)?;
    for _ in 1..tries {
        least = least.least(ask(&mut exchange)?);
    }
    Ok(least)
}

fn repeat_until_long(case: &FuzzCase, ask: &mut Ask<'_>) -> Result<Repeated, End> {
    let first = repeat(case, 1, 1, ask)?;
    if first.passed_ns > LONG_NS {
        let repeats = GROWN as u64;
        return Ok(Repeated { one: first, many: repeat(case, repeats, 1, ask)?, repeats });
    }
    let one = first.least(repeat(case, 1, TRIES - 1, ask)?);
    let mut repeats = 2;
    loop {
        let mut repeated = Repeated { one, many: repeat(case, repeats, 1, ask)?, repeats };
        // One long try may be due to the machine.
        if repeats == REPEATS_MAX || repeated.is_long() {
            repeated.many = repeated.many.least(repeat(case, repeats, TRIES - 1, ask)?);
        }
        if repeats == REPEATS_MAX || repeated.is_long() {
            return Ok(repeated);
        }
        repeats *= 2;
    }
}

/// Repetitions must add as much to the time here as to the time reported, and more than nothing.
fn check_repeats(case: &FuzzCase, call_ns: Option<f64>, ask: &mut Ask<'_>) -> Result<(), End> {
    let mut repeated = repeat_until_long(case, ask)?;
    while repeated.is_unreported()
        && repeated.many.passed_ns < JUDGED_NS_MIN
        && repeated.repeats < REPEATS_MAX
    {
        repeated.repeats = (4 * repeated.repeats).min(REPEATS_MAX);
        repeated.many = repeat(case, repeated.repeats, TRIES, ask)?;
    }
    let Repeated { one, many, repeats } = &repeated;
    let is_nothing = *repeats == REPEATS_MAX && many.passed_ns < 2.0 * one.passed_ns;
    if is_nothing || call_ns.is_some_and(|call_ns| repeated.each_ns() * LEFT_OUT < call_ns) {
        let detail = format!(
            "{repeats} repetitions of a call take {}, one takes {}",
            micros(many.passed_ns),
            micros(one.passed_ns)
        );
        return Err(Evaluated::wrong(FindingKind::WorkSkipped, detail).into());
    }
    if repeated.is_unreported() {
        let detail = format!(
            "{} repetitions of a call add {} here, of which the worker's clock saw {}",
            repeats - 1,
            micros(repeated.added_ns()),
            micros((repeated.added_ns() - repeated.unreported_ns()).max(0.0))
        );
        return Err(Evaluated::wrong(FindingKind::TimeNotExplained, detail).into());
    }
    Ok(())
}

fn micros(ns: f64) -> String {
    format!("{:.0} us", ns / 1e3)
}
