//! The CI job that this process is part of, as its runner tells in the environment.

/// A variable of the environment, if it is set and not empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The page of this job, from what the runner says.
pub(crate) fn own_url() -> Option<String> {
    let github = || {
        let (server, repository, run) =
            (variable("GITHUB_SERVER_URL")?, variable("GITHUB_REPOSITORY")?, variable("GITHUB_RUN_ID")?);
        Some(format!("{server}/{repository}/actions/runs/{run}"))
    };
    // On GitLab, this job tells of another one: the pipeline has both.
    github().or_else(|| variable("CI_PIPELINE_URL"))
}
