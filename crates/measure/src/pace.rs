//! Rests that keep a device in one state while kernels are timed that draw more power than it may for long.
//!
//! Such a kernel runs at a lower clock from its first millisecond on. Without a rest the device soon lowers it further, by as much as is needed
//! to stay below its limit on average, and the clock wanders by several per cent. After a rest as long as the turn it is the same every time.

use holdpoint_model::protocol::RunResult;
use holdpoint_stats as stats;
use std::time::Duration;

/// The longest rest: what a device averages its power over is shorter.
const REST_MAX: Duration = Duration::from_millis(100);

/// How long the device rests after a turn that took so long: as long again if it drew more power than it may, else not at all.
pub(crate) fn rest_after(result: &RunResult, took: Duration) -> Duration {
    let known: Vec<f64> = result.sm_mhz.iter().filter(|mhz| **mhz > 0).map(|mhz| f64::from(*mhz)).collect();
    let clock = stats::median(&known);
    let is_limited = result.device.as_ref().is_some_and(|device| device.is_power_limited_at(clock));
    if is_limited { took.min(REST_MAX) } else { Duration::ZERO }
}

/// A turn longer than this goes on while the device already lowers its clock.
const TURN_MAX: Duration = Duration::from_millis(12);
/// Fewer samples have no middle.
const SAMPLES_MIN: u32 = 3;

/// How many samples a turn may have after which the device has to rest, if one of `samples` took so long.
pub(crate) fn samples_at_limit(samples: u32, took: Duration) -> u32 {
    let share = TURN_MAX.as_secs_f64() / took.as_secs_f64().max(f64::MIN_POSITIVE);
    ((f64::from(samples) * share.min(1.0)) as u32).max(SAMPLES_MIN.min(samples))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_model::machine::DeviceState;

    #[test]
    fn a_device_rests_after_turns_that_draw_too_much_power_and_after_no_others() {
        let turn = |reasons: &[&str], mhz: u32| {
            let device = DeviceState {
                sm_mhz_max: Some(1980),
                throttle_reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
                ..DeviceState::default()
            };
            let result =
                RunResult { sm_mhz: vec![0, mhz, mhz], device: Some(device), ..RunResult::default() };
            rest_after(&result, Duration::from_millis(8))
        };
        assert_eq!(turn(&[], 1616), Duration::from_millis(8));
        assert_eq!(turn(&["SW_POWER_CAP"], 1970), Duration::from_millis(8));
        assert_eq!(turn(&[], 1950), Duration::ZERO);
        assert_eq!(turn(&["APPLICATIONS_CLOCKS_SETTING"], 1410), Duration::ZERO, "its owner set the clock");
        assert_eq!(turn(&["HW_THERMAL_SLOWDOWN"], 1410), Duration::ZERO, "that is heat, and trouble");
        let on_cpu = RunResult { elapsed_ns: vec![1], ..RunResult::default() };
        assert_eq!(rest_after(&on_cpu, Duration::from_secs(5)), Duration::ZERO);
    }

    #[test]
    fn turns_are_short_where_the_device_has_to_rest_after_them() {
        assert_eq!(samples_at_limit(14, Duration::from_millis(36)), 4);
        assert_eq!(samples_at_limit(14, Duration::from_millis(12)), 14);
        assert_eq!(samples_at_limit(14, Duration::from_secs(1)), 3);
        assert_eq!(samples_at_limit(2, Duration::from_secs(1)), 2, "there are no more");
    }

    #[test]
    fn a_rest_has_an_end() {
        let device =
            DeviceState { throttle_reasons: vec!["SW_POWER_CAP".to_owned()], ..DeviceState::default() };
        let result = RunResult { device: Some(device), ..RunResult::default() };
        assert_eq!(rest_after(&result, Duration::from_secs(5)), REST_MAX);
    }
}
