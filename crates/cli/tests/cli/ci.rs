//! `holdpoint ci init` and `holdpoint ci guard` from the outside; what the workflows do is in tests/workflows.

use crate::common::{Here, Ran, ran};

fn workflow(name: &str) -> String {
    format!(".github/workflows/{name}")
}

/// A folder that is a repository, with suites.
fn repository() -> Here {
    let here = Here::new();
    here.git(&["init", "--quiet", "--initial-branch", "main"]);
    for suite in ["perf.toml", "perf-gpu.toml"] {
        here.write(suite, "");
    }
    here
}

/// `ci init` with a command that installs nothing, unless one is given.
fn init(here: &Here, flags: &[&str]) -> Ran {
    let is_given = flags.iter().any(|flag| flag.starts_with("--install"));
    let install: &[&str] = if is_given { &[] } else { &["--install", "true"] };
    here.run(&[&["ci", "init"], install, flags].concat())
}

const ALL: [&str; 4] = ["--gpu", "--weekly", "--promote", "--notify"];

#[test]
fn init_writes_one_workflow_and_more_where_they_are_asked_for() {
    let here = repository();
    let ran = init(&here, &[]);
    ran.ends(0)
        .prints(&["written          .github/workflows/perf.yml"])
        .notes(&["check perf-regression required (docs/ci.md)"]);
    assert_eq!(here.files().iter().filter(|name| name.starts_with(".github/")).count(), 1);
    let first = here.read(&workflow("perf.yml"));
    init(&here, &[]).ends(0).prints(&["as it was        .github/workflows/perf.yml"]);
    init(&here, &["--check"]).ends(0).prints(&["as it should be"]);
    assert_eq!(here.read(&workflow("perf.yml")), first);
    assert_eq!(first.lines().next().unwrap(), "# Written by: holdpoint ci init --install true");
    init(&here, &[&["--force"], &ALL[..], &["--label", "it's"]].concat())
        .ends(0)
        .prints(&["written over", "written          .github/workflows/perf-notify.yml"])
        .notes(&["where forks are welcome, the check holdpoint/gpu", "Require approval for all external"]);
    assert_eq!(here.files().iter().filter(|name| name.starts_with(".github/")).count(), 5);
    // The first line is the command that wrote it.
    let line = here.read(&workflow("perf-gpu.yml")).lines().next().unwrap().to_owned();
    assert_eq!(
        line,
        r"# Written by: holdpoint ci init --install true --gpu --weekly --promote --notify --label 'it'\''s'"
    );
    init(&here, &["--check"]).ends(1).prints(&["differs"]);
    init(&here, &[&["--check"], &ALL[..], &["--label", "it's"]].concat()).ends(0);
    init(&here, &["--promote"]).ends(64);
}

#[test]
fn lines_that_are_the_maintainers_survive_a_check_and_an_update() {
    let here = repository();
    init(&here, &[]).ends(0);
    let path = workflow("perf.yml");
    let own = "      - run: rustup default 1.90\n";
    let edited =
        here.read(&path).replace("      # holdpoint: end\n", &format!("{own}      # holdpoint: end\n"));
    here.write(&path, &edited);
    init(&here, &["--check"]).ends(0);
    init(&here, &[]).ends(0).prints(&["as it was"]);
    assert_eq!(here.read(&path), edited);
    init(&here, &["--force", "--branch", "trunk"]).ends(0).prints(&["written over"]);
    let updated = here.read(&path);
    assert!(updated.contains(own) && updated.contains("branches: ['trunk']"), "{updated}");
    // A line anywhere else is not the maintainer's.
    here.write(&path, &edited.replace("contents: read", "contents: write"));
    init(&here, &["--check"]).ends(1).prints(&["differs"]);
}

#[test]
fn init_finds_the_default_branch_and_the_suite() {
    let here = repository();
    here.git(&["commit", "--quiet", "--allow-empty", "--message", "x"]);
    here.git(&["switch", "--quiet", "--create", "topic"]);
    let branches = |here: &Here| {
        init(here, &["--force"]).ends(0);
        let text = here.read(&workflow("perf.yml"));
        text.lines().find(|line| line.contains("branches:")).unwrap().trim().to_owned()
    };
    assert_eq!(branches(&here), "branches: ['main']");
    here.git(&["update-ref", "refs/remotes/origin/develop", "HEAD"]);
    here.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/develop"]);
    assert_eq!(branches(&here), "branches: ['develop']");
    std::fs::remove_file(here.path("perf.toml")).unwrap();
    init(&here, &["--force"]).refuses(64, &["there is no perf.toml", "holdpoint init", "--suite"]);
    init(&here, &["--force", "--suite", "perf-gpu.toml"]).ends(0);
    init(&here, &["--gpu", "--suite", "perf-gpu.toml", "--gpu-suite", "other.toml"])
        .refuses(64, &["there is no other.toml", "--gpu-suite"]);
}

#[test]
fn init_writes_over_nothing_unless_forced_and_nothing_by_halves() {
    let here = repository();
    std::fs::create_dir_all(here.path(".github/workflows")).unwrap();
    here.write(&workflow("perf-gpu.yml"), "mine\n");
    init(&here, &["--gpu"]).refuses(64, &["nothing was written", "perf-gpu.yml is there already", "--force"]);
    init(&here, &["--gpu", "--check"]).ends(1).prints(&["missing", "differs"]);
    assert_eq!(here.read(&workflow("perf-gpu.yml")), "mine\n");
    assert!(!here.path(&workflow("perf.yml")).exists());
    init(&here, &["--gpu", "--force"]).ends(0);
    init(&here, &["--gpu", "--check"]).ends(0);
    std::fs::remove_file(here.path(&workflow("perf.yml"))).unwrap();
    std::fs::create_dir(here.path(&workflow("perf.yml"))).unwrap();
    init(&here, &[]).refuses(64, &["perf.yml", "directory"]);
}

#[test]
fn init_takes_no_setting_that_would_mean_something_else() {
    let here = repository();
    for (flag, value, why) in [
        ("--suite", "../perf.toml", "in the repository"),
        ("--suite", "/etc/passwd", "in the repository"),
        ("--gpu-suite", "", "a file of the repository"),
        ("--suite", "./perf.toml", "part that is empty, . or .."),
        ("--suite", "perf.toml; rm -rf x", "letters, digits"),
        ("--suite", "perf.toml # x", "letters, digits"),
        ("--gpu-suite", "$(id).toml", "letters, digits"),
        ("--runner", " ", "it is empty"),
        ("--runner", "gpu,", "it is empty"),
        ("--install", " ", "it is empty"),
        ("--branch", "main\n  evil: true", "line break"),
        ("--branch", "!main", "not a pattern"),
        ("--branch", "release/**", "not a pattern"),
        ("--branch", "main,next", "not a pattern"),
        ("--branch", "../main", "no such branch"),
        ("--branch", " ", "it is empty"),
        ("--install", "echo ${{ secrets.TOKEN }}", "${{ begins an expression"),
        ("--install", "make\nrm -rf /", "line break"),
        ("--label", "@@INSTALL@@", "@@"),
        ("--runner", "gpu,a\tb", "control character"),
    ] {
        init(&here, &["--gpu", flag, value]).refuses(64, &[flag, why]);
    }
    assert!(!here.path(".github").exists());
}

#[test]
fn init_installs_nothing_by_default_and_only_the_archive_of_a_hash() {
    let here = repository();
    here.run(&["ci", "init"])
        .refuses(64, &["--install-url", "--install-sha256", "--install", "docs/install.md"]);
    let hash = "ab".repeat(32);
    for (url, sha256, why) in [
        ("http://example.org/x.tar.gz", hash.as_str(), "https://"),
        ("https://example.org/'; rm -rf x; '", &hash, "https://"),
        ("https://example.org/$(id)", &hash, "https://"),
        ("https://example.org/x.tar.gz", "abc", "64 hexadecimal digits"),
    ] {
        init(&here, &["--install-url", url, "--install-sha256", sha256]).refuses(64, &[why]);
    }
    init(&here, &["--install-url", "https://example.org/x"]).ends(64);
    assert!(!here.path(".github").exists());
    // A release: one folder with the program in it.
    std::fs::create_dir_all(here.path("release/holdpoint-9")).unwrap();
    here.write("release/holdpoint-9/holdpoint", "#!/bin/sh\necho it runs\n");
    let run = |script: &str| {
        let mut bash = std::process::Command::new("bash");
        let done = bash.args(["-e", "-c", script]).current_dir(here.path(""));
        done.output().unwrap()
    };
    let packed =
        run("chmod +x release/*/holdpoint && tar -czf x.tar.gz -C release holdpoint-9 && sha256sum x.tar.gz");
    let sha256 = String::from_utf8(packed.stdout).unwrap()[..64].to_owned();
    let url = format!("file://{}", here.path("x.tar.gz").display());
    init(&here, &["--install-url", &url, "--install-sha256", &sha256]).ends(0);
    let workflow: serde_json::Value = serde_saphyr::from_str(&here.read(&workflow("perf.yml"))).unwrap();
    let install = workflow["jobs"]["gate"]["steps"][0]["run"].as_str().unwrap().to_owned();
    let installed = run(&format!(
        "mkdir one && cd one && export GITHUB_PATH=../path && {install} && $(cat ../path)/holdpoint"
    ));
    assert!(String::from_utf8_lossy(&installed.stdout).ends_with("it runs\n"), "{installed:?}");
    // Another archive at the same address.
    here.write("x.tar.gz", "another");
    let refused = run(&format!("rm path; mkdir two && cd two && export GITHUB_PATH=../path && {install}"));
    assert!(!refused.status.success() && !here.path("path").exists(), "{refused:?}");
}

#[test]
fn a_path_of_the_suite_that_matches_nothing_is_refused() {
    let here = Here::new();
    let suite = here.read("suite.toml");
    for path in ["./src/**", "src//**", "src/", "a/../b", "!src/**", ":(attr:x)", "-x"] {
        here.write("suite.toml", &format!("{suite}\n[gate]\npaths = [\"{path}\"]\n"));
        here.run(&["run", "--suite", "suite.toml"]).refuses(64, &["gate", path]);
    }
}

#[test]
fn init_makes_no_folder_and_writes_into_no_folder_outside_of_git_unless_asked_to() {
    let here = Here::new();
    std::fs::create_dir(here.path("apart")).unwrap();
    here.write("apart/perf.toml", "");
    for flags in [&[][..], &["--force"], &["--check"], &["--no-repository"]] {
        init(&here, &[&["--dir", "nowhere/yet"], flags].concat())
            .refuses(64, &["nowhere/yet: no such folder"]);
    }
    init(&here, &["--dir", "apart"]).refuses(64, &["apart: it is in no git repository", "--no-repository"]);
    init(&here, &["--dir", "suite.toml"]).refuses(64, &["suite.toml: no such folder"]);
    assert_eq!(here.files(), ["apart/perf.toml", "suite.toml"]);
    assert!(!here.path("nowhere").exists());
    init(&here, &["--dir", "apart", "--check"]).ends(1).prints(&["missing"]);
    init(&here, &["--dir", "apart", "--no-repository"]).ends(0);
    assert!(here.path("apart/.github/workflows/perf.yml").exists());
    // A folder of a repository is one; a worktree has a file of that name.
    here.write(".git", "gitdir: elsewhere\n");
    init(&here, &["--force", "--dir", "apart"]).ends(0);
}

#[test]
fn init_writes_for_gitlab_as_well() {
    let here = repository();
    init(&here, &["--forge", "gitlab"]).ends(0).prints(&["written          .gitlab/holdpoint.yml"]);
    init(&here, &["--forge", "gitlab", "--check"]).ends(0);
    let text = here.read(".gitlab/holdpoint.yml");
    assert!(text.starts_with("# Written by: holdpoint ci init --forge gitlab --install true\n"));
    assert!(text.lines().count() <= 80, "{}", text.lines().count());
}

/// The guard on an event of the fixtures.
fn guard(here: &Here, event: &str, fixture: &str, more: &[&str]) -> Ran {
    let path = format!("{}/../ci/tests/events/{fixture}.json", env!("CARGO_MANIFEST_DIR"));
    let mut command = here.command(&["ci", "guard"]);
    command.env_remove("GITLAB_CI").env("GITHUB_EVENT_NAME", event).env("GITHUB_EVENT_PATH", path);
    command.env("GITHUB_OUTPUT", here.path("output")).args(more);
    ran(command.output().unwrap())
}

#[test]
fn the_guard_ends_well_whatever_it_decides_and_adds_to_the_outputs() {
    let here = Here::new();
    here.write("output", "earlier=1\n");
    guard(&here, "pull_request", "pull_request_fork", &[])
        .ends(0)
        .prints(&["refuse: the head is in the fork mallory/kernels"]);
    let lines = here.read("output");
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[..3], ["earlier=1", "allowed=false", "decision=refuse"]);
    assert_eq!(lines[5..], ["head_sha=", "base_sha="]);
    let ran = guard(&here, "pull_request", "pull_request", &["--format", "json"]);
    let decided: serde_json::Value = serde_json::from_str(&ran.ends(0).stdout).unwrap();
    assert_eq!((&decided["decision"], &decided["mode"]), (&"run".into(), &"against".into()));
    assert_eq!(decided["head_sha"], "6113728f27ae82c7b1a177c8d03f9e96e0adf246");
    guard(&here, "pull_request", "pull_request_fork", &["--hosted"])
        .ends(0)
        .prints(&["run: pull request 42"]);
    guard(&here, "pull_request", "pull_request", &["--label", "benchmark"])
        .ends(0)
        .prints(&["skip: ", "no label"]);
}

#[test]
fn a_guard_that_cannot_decide_allows_nothing() {
    let here = Here::new();
    here.write("broken.json", "{\"action\": \"opened\", ");
    guard(&here, "pull_request", "push", &[]).refuses(64, &["the pull_request event is not of the form"]);
    let broken = ["--event-path", "broken.json"];
    guard(&here, "pull_request", "push", &broken).refuses(64, &["not of the form"]);
    guard(&here, "push", "push", &["--event-path", "nowhere.json"]).ends(64);
    guard(&here, "issue_comment", "issue_comment", &[]).refuses(64, &["--permission FILE"]);
    // The clone has neither commit.
    here.git(&["init", "--quiet"]);
    let suite = ["--repository", ".", "--suite", "perf.toml"];
    guard(&here, "pull_request", "pull_request", &suite)
        .refuses(64, &["cannot tell what has changed", "history"]);
    guard(&here, "pull_request", "pull_request", &["--suite", "perf.toml"]).ends(64);
    assert!(!here.path("output").exists(), "{}", here.read("output"));
    let mut nothing = here.command(&["ci", "guard"]);
    nothing.env_remove("GITHUB_EVENT_NAME").env_remove("GITHUB_EVENT_PATH").env_remove("GITLAB_CI");
    ran(nothing.output().unwrap()).refuses(64, &["which event?", "GITHUB_EVENT_NAME"]);
    guard(&here, "push", "push", &["--output", "nowhere/output"]).ends(70);
}

#[test]
fn the_guard_sees_submodules_and_what_a_push_by_force_took_away() {
    let here = Here::new();
    here.git(&["init", "--quiet"]);
    let commit = |name: &str| {
        here.git(&["commit", "--quiet", "--allow-empty", "--message", name]);
        here.git(&["rev-parse", "HEAD"]).trim().to_owned()
    };
    let push = |before: &str, after: &str, path: &str| {
        let text = include_str!("../../../ci/tests/events/push.json");
        let text = text.replace("ec26c3e57ca3a959ca5aad62de7213c562f8c821", before);
        here.write("event.json", &text.replace("9f2c1d7e5b8a4036c2f1e0d9b8a7c6d5e4f3a2b1", after));
        let suite = format!("{}.toml", path.split('/').next().unwrap());
        guard(&here, "push", "push", &["--event-path", "event.json", "--repository", ".", "--suite", &suite])
    };
    for (name, path) in [("deps.toml", "deps/lib/**"), ("src.toml", "src/**")] {
        here.write(name, &format!("{}\n[gate]\npaths = [\"{path}\"]\n", here.read("suite.toml")));
        here.git(&["add", name]);
    }
    let first = commit("first");
    here.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{first},deps/lib")]);
    let second = commit("a submodule");
    push(&first, &second, "deps/lib/**").ends(0).prints(&["run: "]);
    push(&first, &second, "src/**").ends(0).prints(&["skip: no file that matters"]);
    // Back to the first by force: the submodule is gone.
    push(&second, &first, "deps/lib/**").ends(0).prints(&["run: "]);
    // From a commit that nobody has any more.
    let parent = format!("gone, so it is compared with its parent {first}");
    push(&"1".repeat(40), &second, "src/**").ends(0).prints(&["run: a push to main; ", &parent]);
    push(&"1".repeat(40), &first, "src/**").ends(0).prints(&["run: ", "it has no parent"]);
    // The clone has neither: that is no clone of what was pushed.
    push(&"1".repeat(40), &"2".repeat(40), "src/**").refuses(64, &["cannot tell what has changed"]);
    // What the commit says of its submodules does not hide them.
    here.write(".gitmodules", "[submodule \"lib\"]\n\tpath = deps/lib\n\turl = x\n\tignore = all\n");
    here.git(&["add", ".gitmodules"]);
    let hidden = commit("hidden");
    here.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{second},deps/lib")]);
    let moved = commit("moved");
    push(&hidden, &moved, "deps/lib/**").ends(0).prints(&["run: "]);
}

#[test]
fn the_guard_reads_gitlabs_variables() {
    let here = Here::new();
    let mut command = here.command(&["ci", "guard", "--output", "output"]);
    let sha = "6113728f27ae82c7b1a177c8d03f9e96e0adf246";
    command
        .env("GITLAB_CI", "true")
        .env("CI_PIPELINE_SOURCE", "merge_request_event")
        .env("CI_COMMIT_SHA", sha);
    command
        .env("CI_PROJECT_ID", "41")
        .env("CI_MERGE_REQUEST_PROJECT_ID", "41")
        .env("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "99");
    command.env("CI_MERGE_REQUEST_DIFF_BASE_SHA", sha);
    command.env("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main").env("CI_DEFAULT_BRANCH", "main");
    ran(command.output().unwrap()).ends(0).prints(&["refuse: the change comes from another project, 99"]);
    assert!(here.read("output").starts_with("allowed=false\n"));
    // "New pipeline" on the default branch.
    let by_hand = |more: &[&str]| {
        let mut command = here.command(&["ci", "guard", "--output", "by-hand"]);
        command
            .env("GITLAB_CI", "true")
            .env("CI_PIPELINE_SOURCE", "web")
            .env("CI_COMMIT_SHA", "1".repeat(40));
        command.env("CI_COMMIT_BEFORE_SHA", "0".repeat(40)).env("CI_PROJECT_ID", "41");
        command.env("CI_COMMIT_BRANCH", "main").env("CI_DEFAULT_BRANCH", "main").args(more);
        ran(command.output().unwrap())
    };
    by_hand(&["--run-mode", "skip", "--measure", sha]).ends(0).prints(&["skip: started by hand without"]);
    by_hand(&["--run-mode", "self-hosted-gpu", "--measure", &sha[..8]])
        .ends(0)
        .prints(&["refuse: what is to be measured is no full commit hash"]);
    std::fs::remove_file(here.path("by-hand")).unwrap();
    by_hand(&["--run-mode", "self-hosted-gpu", "--measure", sha])
        .ends(0)
        .prints(&["run: started by hand for 6113"]);
    let outputs = here.read("by-hand");
    assert!(outputs.starts_with("allowed=true\ndecision=run\n") && outputs.contains("\nmode=against\n"));
    assert!(outputs.ends_with(&format!("\nhead_sha={sha}\nbase_sha={}\n", "1".repeat(40))), "{outputs}");
    let mut unset = here.command(&["ci", "guard", "--forge", "gitlab"]);
    ran(unset.env_remove("CI_COMMIT_SHA").output().unwrap()).refuses(64, &["CI_COMMIT_SHA"]);
}
