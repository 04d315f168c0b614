//! Times in the order they were taken, with the machine's state below them.

use super::{Chart, SIZE, count_ticks, describe_step, thin_out};
use crate::svg::{Frame, Plot, Scale, nice_ticks};
use crate::units;
use holdpoint_model::{AbWorkload, MachineState, Measured, PairRound, SideName, Unit};
use holdpoint_stats as stats;

/// The drawing's height stands for at least this share of the middle value: noise of a thousandth stays flat.
const SPAN_MIN: f64 = 0.01;
/// The times that are drawn reach from this quantile to that one, and a little beyond; the others lie at the edge.
const QUANTILES: [f64; 2] = [0.02, 0.98];

/// A round or a unit: one time or other value, or base's and head's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RoundPoint {
    pub(crate) values: Vec<f64>,
    state: Option<LaneValue>,
    is_troubled: bool,
    is_left_out: bool,
}

/// The machine's state at a point, drawn below it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LaneValue {
    /// Load average per CPU.
    Load(f64),
    /// The device's clock as a share of the highest it can go.
    Clock(f64),
}

impl LaneValue {
    /// A device's clock tells more about its kernels than the load of its host.
    fn read(state: &MachineState, cpus: f64) -> Option<Self> {
        let clock = state.device.as_ref().and_then(|device| Some((device.sm_mhz?, device.sm_mhz_max?)));
        let clock = clock.map(|(mhz, max)| Self::Clock(f64::from(mhz) / f64::from(max.max(1))));
        clock
            .or_else(|| Some(Self::Load(state.load1? / cpus.max(1.0))))
            .filter(|value| value.height().is_finite())
    }

    /// From 0 to 1: of the load two per CPU fill the lane.
    fn height(self) -> f64 {
        match self {
            Self::Load(load) => load / 2.0,
            Self::Clock(share) => share,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Load(_) => "load",
            Self::Clock(_) => "clock",
        }
    }
}

/// A point for each round, or for each unit where there are more rounds than `max`; and the word for it.
pub(crate) fn pair_points(w: &AbWorkload, cpus: f64, max: usize) -> (Vec<RoundPoint>, &'static str) {
    let rounds_count: usize = w.units.iter().map(|unit| unit.rounds.len()).sum();
    if rounds_count <= max || rounds_count == w.units.len() {
        let rounds = w.units.iter().flat_map(|unit| unit.rounds.iter().map(move |round| (unit, round)));
        return (rounds.filter_map(|(unit, round)| pair_point(w, unit, &[round], cpus)).collect(), "round");
    }
    let unit_point = |unit: &Unit| {
        let kept: Vec<&PairRound> = unit.rounds.iter().filter(|round| !round.left_out).collect();
        let point = pair_point(w, unit, &kept, cpus)?;
        Some(RoundPoint { is_troubled: unit.rounds.iter().any(|round| !round.trouble.is_empty()), ..point })
    };
    (w.units.iter().filter_map(unit_point).collect(), "unit")
}

fn pair_point(w: &AbWorkload, unit: &Unit, rounds: &[&PairRound], cpus: f64) -> Option<RoundPoint> {
    let time_ms = |side: SideName| {
        let turn = |round: &&PairRound| {
            let times: Vec<f64> =
                round.times_ns(side, unit.clock).skip(unit.skip as usize).map(|ns| ns as f64).collect();
            stats::quantile(&times, unit.quantile)
        };
        let turns: Vec<f64> = rounds.iter().filter_map(turn).collect();
        stats::median(&turns).map(|ns| ns / w.calls_per_sample.max(1) as f64 / 1e6)
    };
    Some(RoundPoint {
        values: vec![time_ms(SideName::Base)?, time_ms(SideName::Head)?],
        state: rounds.iter().find_map(|round| LaneValue::read(&round.state, cpus)),
        is_troubled: rounds.iter().any(|round| !round.trouble.is_empty()),
        is_left_out: rounds.iter().all(|round| round.left_out),
    })
}

/// A point for each round of a run.
pub(crate) fn run_points(m: &Measured, cpus: f64) -> Vec<RoundPoint> {
    let point = |round: &holdpoint_model::Round| {
        let times: Vec<f64> = round.per_call_ns(m.samples.calls_per_sample.max(1)).collect();
        Some(RoundPoint {
            values: vec![stats::median(&times)? / 1e6],
            state: LaneValue::read(&round.state, cpus),
            is_troubled: round.state.device.as_ref().is_some_and(|device| device.is_throttled()),
            is_left_out: false,
        })
    };
    m.samples.rounds.iter().filter_map(point).collect()
}

/// Values of runs, or of both sides in a unit, of which nothing else is known.
pub(crate) fn value_points<'a>(values: impl IntoIterator<Item = &'a [f64]>) -> Vec<RoundPoint> {
    let point = |values: &[f64]| RoundPoint {
        values: values.to_vec(),
        state: None,
        is_troubled: false,
        is_left_out: false,
    };
    values.into_iter().map(point).collect()
}

/// The points, of two sides joined in pairs; a limit across them, where there is one.
pub(crate) fn rounds(
    points: Vec<RoundPoint>,
    word: &str,
    max: usize,
    metric: &str,
    limit: Option<(f64, &str)>,
) -> Option<Chart> {
    let count = points.len();
    let (points, step) = thin_out(points, max);
    let all: Vec<f64> = points.iter().flat_map(|point| point.values.iter().copied()).collect();
    let middle = stats::median(&all)?;
    let [low, high] = QUANTILES.map(|q| stats::quantile(&all, q).unwrap_or(middle));
    let ends = [low, high].into_iter().chain(limit.map(|(limit, _)| limit).filter(|l| *l < 2.0 * high));
    let y = Scale::over(ends, middle * SPAN_MIN);
    let has_lane = points.iter().any(|point| point.state.is_some() || point.is_troubled);
    let lane = if has_lane { 24.0 } else { 0.0 };
    let frame = Frame { size: [SIZE[0], SIZE[1] + lane], x: Scale::new(0.0, count as f64 + 1.0), y, lane };
    let mut plot = Plot::new(frame);
    let (per, unit) = units::metric_axis(metric, y.ends()[1]);
    let ticks = nice_ticks(y.ends().map(|end| end * per), 4).into_iter();
    let ticks: Vec<(f64, String)> = ticks.map(|(at, text)| (at / per, text)).collect();
    plot.axes(&count_ticks(count), &ticks, [&unit, word]);
    if let Some((limit, name)) = limit.filter(|(limit, _)| y.holds(*limit)) {
        plot.level("bound", limit, name);
    }
    let place = |i: usize| (i * step) as f64 + 1.0;
    let numbered = || points.iter().enumerate().map(|(i, point)| (place(i), point));
    let is_pairs = points.first().is_some_and(|point| point.values.len() == 2);
    if is_pairs {
        plot.spans("pair", numbered().map(|(x, point)| (x, [point.values[0], point.values[1]])));
        plot.legend(&[("base", "● base"), ("head", "■ head")]);
    }
    for (side, class) in ["base", "head"].iter().enumerate().take(if is_pairs { 2 } else { 1 }) {
        plot.dots(class, numbered().filter_map(|(x, point)| Some([x, *point.values.get(side)?])));
    }
    if has_lane {
        plot.lane("load", numbered().filter_map(|(x, point)| Some((x, point.state?.height()))));
        plot.crosses("x", numbered().filter(|(_, point)| point.is_left_out).map(|(x, _)| x));
        let troubled = |point: &RoundPoint| point.is_troubled && !point.is_left_out;
        plot.lane_dots("t", numbered().filter(|(_, point)| troubled(point)).map(|(x, _)| x));
        plot.lane_name(points.iter().find_map(|point| point.state).map_or("state", LaneValue::name));
    }
    let what = if is_pairs { "Base and head in pairs" } else { "Times in order" };
    let caption = format!("{what}, by {word}{}", describe_step(step, count));
    Some(Chart { plot, caption })
}
