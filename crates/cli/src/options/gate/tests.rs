use super::*;
use clap::Command as Cli;
use clap::{Args, FromArgMatches};

fn question(flags: &[&str]) -> Result<GateQuestion, FlowError> {
    let command = GateArgs::augment_args(Cli::new("gate").no_binary_name(true));
    let matches = command.try_get_matches_from(flags).unwrap();
    GateArgs::from_arg_matches(&matches).unwrap().request().map(|request| request.question)
}

#[test]
fn a_flag_of_the_stored_baseline_asks_for_one() {
    for flags in [
        &["--baseline", "b.json"][..],
        &["--require-baseline"],
        &["--runs", "3"],
        &["--confirm", "0"],
        &["--baseline-dir", "elsewhere"],
        &["--allow", "machine"],
        &["--threshold", "-3"],
        &["--policy", "allowed-max"],
        &["--history", "h.db", "--baseline", "b.json"],
    ] {
        assert!(matches!(question(flags), Ok(GateQuestion::Baseline(_))), "{flags:?}");
    }
    let Ok(GateQuestion::Baseline(asked)) = question(&["--runs", "3", "--tolerance", "5%"]) else {
        panic!("no baseline is asked for")
    };
    assert_eq!((asked.runs, asked.tolerance), (Some(3), Some(0.05)));
}

#[test]
fn without_a_flag_of_its_own_the_question_is_the_suites() {
    for (flags, of_sides) in [
        (&[][..], None),
        (&["--policy", "disjoint-ci"], None),
        (&["--tolerance", "3%"], None),
        (&["--budget", "3", "--dirty", "--resume"], Some("--dirty")),
        (&["--seed", "3"], Some("--seed")),
    ] {
        match question(flags) {
            Ok(GateQuestion::Default { sides_flag, .. }) => assert_eq!(sides_flag, of_sides, "{flags:?}"),
            other => panic!("{flags:?}: {other:?}"),
        }
    }
}

#[test]
fn a_revision_and_a_history_take_the_flags_of_two_sides() {
    let sides = match question(&["--against", "v1", "--dirty", "--pin"]) {
        Ok(GateQuestion::Against { revision, sides }) if revision == "v1" => sides,
        other => panic!("{other:?}"),
    };
    assert!(sides.in_place && sides.how.decision.pin && !sides.how.resume);
    let of_history = question(&["--history", "--last-good", "v1", "--budget", "3"]);
    assert!(matches!(of_history, Ok(GateQuestion::History { last_good: Some(_), .. })), "{of_history:?}");
}

#[test]
fn flags_that_would_do_nothing_are_refused() {
    for (flags, words) in [
        (
            &["--against", "HEAD", "--runs", "3"][..],
            "--runs is for a gate with a stored baseline, without --against",
        ),
        (&["--against", "HEAD", "--policy", "stored"], "--policy stored needs a baseline"),
        (
            &["--history", "--confirm", "3"],
            "--confirm is for a gate with a stored baseline, without --history",
        ),
        (
            &["--runs", "3", "--seed", "3"],
            "--seed is for a gate side by side, --runs for one with a stored baseline",
        ),
    ] {
        let refused = question(flags).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
        assert_eq!(refused.exit_code(), holdpoint_model::ExitCode::Usage);
    }
}
