use super::*;
use tempfile::TempDir;

const BUILT: &str =
    "name = \"s\"\n[build]\ncommand = [\"make\"]\n[[workload]]\nname = \"w\"\ncommand = [\"./w\"]\n";

struct Repo(TempDir);

impl Repo {
    /// A repository with this many commits on `main`, each with another content of the file `a`.
    fn new(commits: usize) -> Self {
        let repo = Self(tempfile::tempdir().unwrap());
        repo.git(&["init", "--quiet", "--initial-branch", "main"]);
        (0..commits).for_each(|at| {
            repo.commit(&format!("{at}"));
        });
        repo
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path().join("a"), text).unwrap();
    }

    fn commit(&self, text: &str) -> String {
        self.write(text);
        self.git(&["add", "a"]);
        self.git(&["commit", "--quiet", "--message", text]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = holdpoint_process::command("git");
        git.arg("-C").arg(self.path()).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").args(arguments);
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The base that is found, and why.
    fn base(&self) -> (String, String) {
        let base = find_base(self.path()).unwrap();
        (base.revision, base.reason.unwrap())
    }

    fn refusal(&self) -> String {
        find_base(self.path()).err().unwrap().to_string()
    }

    /// What is compared with by default, where a flag of two sides was given or none.
    fn choose(&self, suite: &str, sides_flag: Option<&'static str>) -> Result<&'static str, FlowError> {
        self.choose_for(suite, &GateQuestion::Default { sides: GateSides::default(), sides_flag })
    }

    fn choose_for(&self, suite: &str, question: &GateQuestion) -> Result<&'static str, FlowError> {
        let suite = Suite::parse(&format!("schema_version = 1\n{suite}")).unwrap();
        let suite = Suite { dir: Some(self.path().canonicalize().unwrap()), ..suite };
        choose(question, &suite, self.path()).map(|comparand| match comparand {
            Comparand::Revision(..) => "revision",
            Comparand::History { .. } => "history",
            Comparand::Baseline(_) => "baseline",
        })
    }
}

#[test]
fn a_branch_is_compared_with_the_commit_where_it_left_the_default_branch() {
    let repo = Repo::new(1);
    let left = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["switch", "--quiet", "--create", "change"]);
    repo.commit("mine");
    repo.commit("mine again");
    repo.git(&["switch", "--quiet", "main"]);
    repo.commit("theirs");
    repo.git(&["switch", "--quiet", "change"]);
    assert_eq!(repo.base(), (left.clone(), "the merge base with main".to_owned()));
    repo.write("not committed");
    assert_eq!(repo.base().0, left, "whatever else the tree has");
    repo.git(&["stash", "--quiet"]);
    repo.git(&["checkout", "--quiet", "--detach"]);
    assert_eq!(repo.base().0, left, "as CI checks it out");
}

#[test]
fn on_the_default_branch_changes_are_compared_with_head_and_a_clean_tree_with_its_parent() {
    let repo = Repo::new(2);
    let [head, parent] = ["HEAD", "HEAD~1"].map(|name| repo.git(&["rev-parse", name]));
    assert_eq!(repo.base(), (parent, "its parent, because main has HEAD already".to_owned()));
    repo.write("not committed");
    assert_eq!(repo.base(), (head, "which is HEAD".to_owned()));
}

#[test]
fn what_the_remote_has_is_the_default_branch_before_what_is_here() {
    let remote = Repo::new(1);
    let pushed = remote.git(&["rev-parse", "HEAD"]);
    let repo = Repo(tempfile::tempdir().unwrap());
    repo.git(&["clone", "--quiet", &remote.path().display().to_string(), "."]);
    repo.commit("not pushed");
    assert_eq!(repo.base(), (pushed.clone(), "the merge base with origin/main".to_owned()));
    // A checkout of CI's has no origin/HEAD and no branches of its own.
    repo.git(&["checkout", "--quiet", "--detach"]);
    repo.git(&["remote", "set-head", "origin", "--delete"]);
    repo.git(&["branch", "--quiet", "--delete", "--force", "main"]);
    assert_eq!(repo.base().0, pushed);
    // Another name than the usual ones.
    remote.git(&["branch", "--quiet", "--move", "develop"]);
    repo.git(&["fetch", "--quiet", "--prune"]);
    assert!(repo.refusal().contains("git remote set-head origin --auto"));
    repo.git(&["remote", "set-head", "origin", "--auto"]);
    assert_eq!(repo.base(), (pushed, "the merge base with origin/develop".to_owned()));
}

#[test]
fn nothing_to_compare_with_is_an_error_that_names_the_remedy() {
    assert!(Repo::new(0).refusal().contains("no commit to compare with; commit first"));
    assert!(Repo::new(1).refusal().contains("HEAD is the first commit"));
    let odd = Repo::new(1);
    odd.git(&["branch", "--quiet", "--move", "odd"]);
    assert!(odd.refusal().contains("fetch-depth: 0"));
    let remote = Repo::new(3);
    let shallow = Repo(tempfile::tempdir().unwrap());
    shallow.git(&["clone", "--quiet", "--depth", "1", &format!("file://{}", remote.path().display()), "."]);
    assert!(shallow.refusal().contains("git fetch --unshallow"));
}

#[test]
fn side_by_side_is_the_default_where_the_repository_has_what_runs() {
    let repo = Repo::new(2);
    let is_sides = |suite: &str| matches!(repo.choose(suite, None), Ok("revision"));
    assert!(is_sides(BUILT));
    assert!(is_sides("name = \"s\"\n[harness]\nkind = \"criterion\"\n"));
    let runs = |command: &str| format!("name = \"s\"\n[[workload]]\nname = \"w\"\ncommand = {command}\n");
    assert!(is_sides(&runs("[\"python3\", \"a\"]")), "a file that git tracks");
    assert!(!is_sides(&runs("[\"true\"]")));
    assert!(!is_sides(&runs("[\"/etc/passwd\", \"..\", \"\"]")));
    let built_in = "name = \"s\"\n[build]\ncommand = [\"make\"]\n[[workload]]\nname = \"o\"\nop = \"copy\"\nshape = [8]\n";
    assert!(
        matches!(repo.choose(built_in, None), Ok("baseline")),
        "built-in ops are the same at every revision"
    );
    let nowhere = Repo(tempfile::tempdir().unwrap());
    assert!(matches!(nowhere.choose(BUILT, None), Ok("baseline")));
}

#[test]
fn a_suite_of_which_only_a_part_can_be_built_is_refused_with_the_workloads_to_move() {
    let repo = Repo::new(2);
    let mixed =
        ["o", "p"].map(|name| format!("[[workload]]\nname = \"{name}\"\nop = \"copy\"\nshape = [8]\n"));
    let mixed = format!("{BUILT}{}", mixed.concat());
    let refused = repo.choose(&mixed, None).unwrap_err().to_string();
    for part in
        ["suite \"s\", workloads \"o\", \"p\": built-in ops", "a suite of their own", "stored baseline"]
    {
        assert!(refused.contains(part), "{refused}");
    }
    let key = format!("{mixed}[gate]\nbaseline = \"b.json\"\n");
    assert_eq!(repo.choose(&key, None).unwrap(), "baseline", "it is asked for");
}

#[test]
fn what_is_asked_for_is_compared_with() {
    let repo = Repo::new(2);
    let choose = |question| repo.choose_for(BUILT, &question).unwrap();
    let sides = GateSides::default;
    assert_eq!(choose(GateQuestion::Baseline(BaselineQuestion::new("b".into()))), "baseline");
    assert_eq!(choose(GateQuestion::Against { revision: "HEAD".to_owned(), sides: sides() }), "revision");
    let location = Location::parse("h.db");
    assert_eq!(choose(GateQuestion::History { location, last_good: None, sides: sides() }), "history");
    assert_eq!(repo.choose(BUILT, Some("--budget")).unwrap(), "revision");
}

#[test]
fn a_suite_may_ask_for_a_stored_baseline() {
    let repo = Repo::new(2);
    for key in ["baseline = \"b.json\"", "policy = \"threshold\"", "threshold = -3.0"] {
        let suite = format!("{BUILT}[gate]\n{key}\n");
        assert_eq!(repo.choose(&suite, None).unwrap(), "baseline", "{key}");
        let against = GateQuestion::Against { revision: "HEAD".to_owned(), sides: GateSides::default() };
        assert_eq!(repo.choose_for(&suite, &against).unwrap(), "revision", "{key}");
        let refused = repo.choose(&suite, Some("--budget")).unwrap_err().to_string();
        assert!(refused.contains("--budget is for a gate side by side, [gate] "), "{refused}");
    }
}

#[test]
fn a_flag_of_two_sides_is_refused_where_nothing_can_be_built() {
    let commands = "name = \"s\"\n[[workload]]\nname = \"w\"\ncommand = [\"true\"]\n";
    let refused = Repo::new(2).choose(commands, Some("--pin")).unwrap_err().to_string();
    let words = "--pin is for a gate side by side; nothing here can be built to compare: give --against REV";
    assert_eq!(refused, words);
}
