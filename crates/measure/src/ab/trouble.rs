//! Disturbances of the machine during a round.
//!
//! They are read from the machine over the whole round, both sides together. Swapping the sides would change none of
//! it, so leaving out a disturbed round cannot favour one side.

use crate::machine::{self, StateReader};
use crate::schedstat::SchedStat;
use holdpoint_model::machine::DeviceState;
use holdpoint_model::{MachineState, Trouble};
use holdpoint_stats as stats;
use std::time::{Instant, SystemTime};

/// A clock that is set moves by more than this against the steady one; one that is only disciplined moves by 15 µs in
/// 30 ms.
pub const CLOCK_STEP_NS: i128 = 1_000_000;
/// Share of CPU time given to other machines that counts as trouble.
pub const STEAL: f64 = 0.05;
/// A CPU that runs at less than this share of the highest frequency seen is throttled.
pub const FREQUENCY: f64 = 0.9;
/// Share of the round for which a worker may wait for a CPU before it counts as trouble.
pub const WAIT: f64 = 0.2;

/// Clocks of the two sides at the power limit may differ by this share: twice what they wander from turn to turn.
const CLOCKS_APART: f64 = 0.05;

pub(super) struct Watch {
    ticks: StateReader,
    steady: Instant,
    clock_ns: i128,
    waited_ns: u64,
    began: Instant,
    throttles: u64,
    mhz_max: f64,
}

impl Watch {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let mut ticks = StateReader::default();
        ticks.steal();
        Self { ticks, steady: now, clock_ns: 0, waited_ns: 0, began: now, throttles: 0, mhz_max: 0.0 }
    }

    pub(super) fn begin(&mut self, processes: &[u32], cpu: Option<usize>) {
        self.waited_ns = waited_ns(processes);
        self.throttles = throttles(cpu);
        self.clock_ns = self.clock_ns();
        self.began = Instant::now();
    }

    pub(super) fn end(&mut self, processes: &[u32], cpu: Option<usize>) -> (MachineState, Vec<Trouble>) {
        let round_ns = self.began.elapsed().as_nanos() as f64;
        let stepped = (self.clock_ns() - self.clock_ns).abs() > CLOCK_STEP_NS;
        let steal = self.ticks.steal();
        let waited_ns = waited_ns(processes).saturating_sub(self.waited_ns);
        let wait = (!processes.is_empty() && round_ns > 0.0).then(|| waited_ns as f64 / round_ns);
        let cpu_mhz = frequency_mhz(cpu);
        self.mhz_max = self.mhz_max.max(cpu_mhz.unwrap_or(0.0));
        let throttled =
            throttles(cpu) > self.throttles || cpu_mhz.is_some_and(|mhz| mhz < FREQUENCY * self.mhz_max);
        let found = [
            (stepped, Trouble::ClockStep),
            (steal.is_some_and(|share| share > STEAL), Trouble::Steal),
            (throttled, Trouble::Throttled),
            (wait.is_some_and(|share| share > WAIT), Trouble::Competing),
        ];
        let trouble = found.into_iter().filter_map(|(is_so, trouble)| is_so.then_some(trouble)).collect();
        (MachineState { load1: machine::load1(), cpu_mhz, steal, wait, device: None }, trouble)
    }

    /// How far the settable clock is ahead of the steady one.
    fn clock_ns(&self) -> i128 {
        let settable =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let steady = self.steady.elapsed().as_nanos();
        i128::try_from(settable).unwrap_or(0) - i128::try_from(steady).unwrap_or(0)
    }
}

/// Trouble of the device, judging by the states that both sides saw. At its power limit its clock is lower, which is no trouble where it
/// is the same for both: they take short turns, so it does not follow one side alone.
pub(super) fn device_trouble(sides: [DeviceTurn<'_>; 2], own: &[u32]) -> Vec<Trouble> {
    let mut found = Vec::new();
    let [base, head] = sides.each_ref().map(DeviceTurn::median_mhz);
    let clocks_differ = base.zip(head).is_some_and(|(a, b)| (a - b).abs() > CLOCKS_APART * a.max(b));
    let is_limited =
        |side: &DeviceTurn<'_>| side.state.is_some_and(|state| state.is_power_limited_at(side.median_mhz()));
    if sides.iter().any(is_limited) && clocks_differ {
        found.push(Trouble::Throttled);
    }
    for state in sides.iter().filter_map(|side| side.state) {
        if state.is_throttled() {
            found.push(Trouble::Throttled);
        }
        if state.is_shared(own) {
            found.push(Trouble::SharedDevice);
        }
    }
    found
}

/// A side's turn on a device.
#[derive(Clone, Copy)]
pub(super) struct DeviceTurn<'s> {
    pub state: Option<&'s DeviceState>,
    /// Clock of each sample, 0 where unknown.
    pub sm_mhz: &'s [u32],
}

impl DeviceTurn<'_> {
    fn median_mhz(&self) -> Option<f64> {
        let known: Vec<f64> = self.sm_mhz.iter().filter(|mhz| **mhz > 0).map(|mhz| f64::from(*mhz)).collect();
        stats::median(&known)
    }
}

/// How long the processes' main threads have waited for a CPU, since they began.
fn waited_ns(processes: &[u32]) -> u64 {
    let main_threads = processes.iter().filter_map(|id| SchedStat::read(format!("/proc/{id}/schedstat")));
    main_threads.map(|thread| thread.wait_ns).sum()
}

fn frequency_mhz(cpu: Option<usize>) -> Option<f64> {
    let path = format!("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu.unwrap_or(0));
    Some(machine::read_line(&path)?.parse::<f64>().ok()? / 1e3)
}

/// How often the CPU has been throttled for heat since boot.
fn throttles(cpu: Option<usize>) -> u64 {
    let path =
        format!("/sys/devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count", cpu.unwrap_or(0));
    machine::read_line(&path).and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_exist_has_not_waited() {
        assert_eq!(waited_ns(&[u32::MAX]), 0);
        let mut watch = Watch::new();
        watch.begin(&[], None);
        let (state, trouble) = watch.end(&[], None);
        assert_eq!(state.wait, None);
        assert!(!trouble.contains(&Trouble::Competing) && !trouble.contains(&Trouble::ClockStep));
    }

    #[test]
    fn a_device_that_is_throttled_or_shared_is_trouble() {
        let state = |reasons: &[&str], processes: &[u32]| DeviceState {
            throttle_reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
            processes: processes.to_vec(),
            ..DeviceState::default()
        };
        let own = [7, 8];
        let trouble_of = |state: DeviceState| {
            let turn = DeviceTurn { state: Some(&state), sm_mhz: &[] };
            device_trouble([turn, DeviceTurn { state: None, sm_mhz: &[] }], &own)
        };
        assert_eq!(trouble_of(state(&[], &[7, 8])), []);
        assert_eq!(trouble_of(state(&["GPU_IDLE"], &[7])), []);
        assert_eq!(trouble_of(state(&["HW_THERMAL_SLOWDOWN"], &[7])), [Trouble::Throttled]);
        assert_eq!(trouble_of(state(&["SW_POWER_CAP", "HW_SLOWDOWN"], &[7])), [Trouble::Throttled]);
        assert_eq!(trouble_of(state(&["SW_POWER_CAP"], &[7])), [], "how a device runs dense kernels");
        assert_eq!(trouble_of(state(&[], &[7, 9])), [Trouble::SharedDevice]);
        assert_eq!(trouble_of(state(&[], &[123, 124])), [], "the driver counts processes differently here");
    }

    #[test]
    fn at_the_power_limit_both_sides_must_have_the_same_clock() {
        let limited =
            DeviceState { throttle_reasons: vec!["SW_POWER_CAP".to_owned()], ..DeviceState::default() };
        let free = DeviceState::default();
        let trouble_of = |states: [&DeviceState; 2], clocks: [u32; 2]| {
            let sm_mhz = clocks.map(|mhz| [mhz, 0, mhz]);
            let turn = |at: usize| DeviceTurn { state: Some(states[at]), sm_mhz: &sm_mhz[at] };
            device_trouble([turn(0), turn(1)], &[])
        };
        assert_eq!(trouble_of([&limited, &limited], [1700, 1650]), []);
        for clocks in [[1700, 1980], [1980, 1700]] {
            assert_eq!(trouble_of([&limited, &free], clocks), [Trouble::Throttled]);
            assert_eq!(trouble_of([&limited, &limited], clocks), [Trouble::Throttled]);
            assert_eq!(trouble_of([&free, &free], clocks), [], "the highest clock is not known");
        }
        assert_eq!(trouble_of([&limited, &free], [1700, 0]), [], "nothing is known of head's clock");
    }

    #[test]
    fn a_clock_that_was_set_is_seen() {
        let mut watch = Watch::new();
        watch.begin(&[], None);
        watch.clock_ns -= 2 * CLOCK_STEP_NS;
        assert!(watch.end(&[], None).1.contains(&Trouble::ClockStep));
    }
}
