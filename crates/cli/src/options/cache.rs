//! Flags of `cache`.

use clap::Subcommand;
use holdpoint_flow::cache::CacheRequest;
use std::time::Duration;

/// `holdpoint cache`.
#[derive(Debug, clap::Args)]
pub struct CacheArgs {
    /// Action on the cache [default: list the builds]
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Remove builds that have not been used for a while; those in use stay
    Clean {
        /// Remove what has not been used for this long: 90m, 12h, 7d
        #[arg(long, value_name = "AGE", default_value = "7d", value_parser = age)]
        older_than: Duration,
        /// Remove all builds, whenever they were used
        #[arg(long, conflicts_with = "older_than")]
        all: bool,
    },
}

impl From<CacheArgs> for CacheRequest {
    fn from(args: CacheArgs) -> Self {
        match args.command {
            None => Self::List,
            Some(CacheCommand::Clean { older_than, all }) => {
                Self::Clean { older_than: (!all).then_some(older_than) }
            }
        }
    }
}

fn age(text: &str) -> Result<Duration, String> {
    let parse = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let unit_s = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        Some(Duration::from_secs(number.parse::<u64>().ok()?.checked_mul(unit_s)?))
    };
    parse().ok_or_else(|| "a whole number of s, m, h or d is wanted, such as 7d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_a_unit() {
        let seconds = |text: &str| age(text).map(|age| age.as_secs());
        assert_eq!((seconds("90m"), seconds("7d"), seconds("0s")), (Ok(5_400), Ok(604_800), Ok(0)));
        for wrong in
            ["", "d", "7", "-1d", "1.5h", "7 d", "7€", "99999999999999999999d", "999999999999999999d"]
        {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
