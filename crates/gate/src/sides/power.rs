//! Kernels that reach the device's power limit: they are judged by time like any other, and the clock and the cycles stand beside it.

use holdpoint_model::{AbReport, AbWorkload, PairRound, SideName};
use holdpoint_stats as stats;

/// A sentence for each workload that was limited by power in most of its rounds.
pub(super) fn notes(report: &AbReport) -> Vec<String> {
    let of = |(name, workload): (&String, &AbWorkload)| Some(format!("{name}: {}", describe(workload)?));
    report.workloads.iter().filter_map(of).collect()
}

fn describe(workload: &AbWorkload) -> Option<String> {
    let rounds: Vec<&PairRound> = workload.units.iter().flat_map(|unit| &unit.rounds).collect();
    let devices = || rounds.iter().filter_map(|round| round.state.device.as_ref());
    let is_limited = |round: &&&PairRound| {
        round.state.device.as_ref().is_some_and(|device| device.is_power_limited_at(clock([**round])))
    };
    if 2 * rounds.iter().filter(is_limited).count() <= rounds.len() {
        return None;
    }
    let mut text = "power-limited".to_owned();
    if let Some(mhz) = clock(rounds.iter().copied()) {
        text += &format!(", {mhz:.0}");
        let most = devices().filter_map(|device| device.sm_mhz_max).max();
        text += &most.map(|most| format!(" of {most}")).unwrap_or_default();
        text += " MHz";
    }
    if let Some(limit_w) = devices().find_map(|device| device.power_limit_w) {
        text += &format!(" at its limit of {limit_w:.0} W");
    }
    let ratios: Vec<f64> = rounds.iter().filter_map(|round| ln_cycles(round)).collect();
    if let Some(ratio) = stats::median(&ratios) {
        text += &format!("; head takes {:+.1} % of base's cycles", (ratio.exp() - 1.0) * 100.0);
    }
    Some(text)
}

/// The median clock of both sides' samples.
fn clock<'r>(rounds: impl IntoIterator<Item = &'r PairRound>) -> Option<f64> {
    let of_round = |round: &'r PairRound| [&round.base_numbers.sm_mhz, &round.head_numbers.sm_mhz];
    let known = rounds.into_iter().flat_map(of_round).flatten().filter(|mhz| **mhz > 0);
    stats::median(&known.map(|mhz| f64::from(*mhz)).collect::<Vec<f64>>())
}

/// The logarithm of head's cycles over base's in a round: time by clock, sample by sample.
fn ln_cycles(round: &PairRound) -> Option<f64> {
    let of = |side: SideName| {
        let (times, clocks) = match side {
            SideName::Base => (&round.base_ns, &round.base_numbers.sm_mhz),
            SideName::Head => (&round.head_ns, &round.head_numbers.sm_mhz),
        };
        let is_known = clocks.len() == times.len() && clocks.iter().all(|mhz| *mhz > 0);
        let cycles = times.iter().zip(clocks).map(|(ns, mhz)| *ns as f64 * f64::from(*mhz));
        stats::median(&cycles.collect::<Vec<f64>>()).filter(|cycles| is_known && *cycles > 0.0)
    };
    Some(of(SideName::Head)?.ln() - of(SideName::Base)?.ln())
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_model::machine::DeviceState;
    use holdpoint_model::{MachineState, SideNumbers};

    fn round(reasons: &[&str], [base, head]: [(u64, u32); 2]) -> PairRound {
        let device = DeviceState {
            throttle_reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            sm_mhz_max: Some(1980),
            power_limit_w: Some(700.0),
            ..DeviceState::default()
        };
        let numbers = |mhz: u32| SideNumbers { sm_mhz: vec![mhz; 3], ..SideNumbers::default() };
        PairRound {
            base_ns: vec![base.0; 3],
            head_ns: vec![head.0; 3],
            base_numbers: numbers(base.1),
            head_numbers: numbers(head.1),
            state: MachineState { device: Some(device), ..MachineState::default() },
            ..PairRound::default()
        }
    }

    fn workload(rounds: Vec<PairRound>) -> AbWorkload {
        let unit = serde_json::json!({ "process": 0, "x": 0.0, "rounds": rounds });
        let identity =
            serde_json::json!({ "op": "attention", "shape": [1], "dtype": "f16", "timer": "cuda_graph" });
        serde_json::from_value(serde_json::json!({
            "identity": identity, "ended": "decided", "spent_s": 1.0, "calls_per_sample": 1, "units": [unit],
        }))
        .unwrap()
    }

    #[test]
    fn a_change_of_time_that_is_one_of_the_clock_shows_in_the_cycles() {
        let slower = round(&["SW_POWER_CAP"], [(1_000_000, 1700), (1_062_500, 1600)]);
        let text = describe(&workload(vec![slower])).unwrap();
        assert_eq!(
            text,
            "power-limited, 1650 of 1980 MHz at its limit of 700 W; head takes +0.0 % of base's cycles"
        );
        let more = round(&["SW_POWER_CAP"], [(1_000_000, 1700), (1_020_000, 1700)]);
        assert!(describe(&workload(vec![more])).unwrap().contains("+2.0 %"));
    }

    #[test]
    fn a_device_that_is_hot_or_seldom_at_its_limit_is_not_called_power_limited() {
        let sides = [(1_000_000, 1960), (1_000_000, 1960)];
        let (calm, capped) = (round(&[], sides), round(&["SW_POWER_CAP"], sides));
        let hot = round(&["SW_POWER_CAP", "HW_THERMAL_SLOWDOWN"], sides);
        assert_eq!(describe(&workload(vec![calm.clone(), capped.clone()])), None);
        assert_eq!(describe(&workload(vec![hot])), None);
        assert!(describe(&workload(vec![calm, capped.clone(), capped])).is_some());
        let slow = round(&[], [(1_000_000, 1616), (1_000_000, 1618)]);
        assert!(
            describe(&workload(vec![slow])).unwrap().contains("1617 of 1980 MHz"),
            "it says so by its clock"
        );
    }
}
