//! A repository whose one program sleeps as long as its commits say.

use crate::common::Here;
use crate::program::write_program;

/// Builds by copying, and counts its builds in a file.
const SUITE: &str = "
schema_version = 1
name = \"program\"
[build]
command = [\"sh\", \"-c\", \"echo $PWD >> $BUILDS; cp prog.sh run.sh\"]
[[workload]]
name = \"program\"
command = [\"./run.sh\"]
";

/// Times that nothing a machine does brings together.
pub const FAST: &str = "#!/bin/sh\nsleep 0.002\n";
pub const SLOW: &str = "#!/bin/sh\nsleep 0.03\n";

impl Here {
    /// An empty repository with the suite beside it.
    pub fn repository() -> Self {
        let here = Self::new();
        here.write("suite.toml", SUITE);
        here.git(&["init", "--quiet", "--initial-branch", "main"]);
        here
    }

    /// Git's first line.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = std::process::Command::new("git");
        command.current_dir(self.path(".")).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A commit of the program, or one without it, which does not build; its hash.
    pub fn commit(&self, subject: &str, program: Option<&str>) -> String {
        match program {
            Some(program) => self.program(program),
            None => std::fs::remove_file(self.path("prog.sh")).unwrap(),
        }
        self.git(&["add", "--all", "--", "prog.sh"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// The program in the work tree.
    pub fn program(&self, text: &str) {
        write_program(&self.path("prog.sh"), text);
    }

    /// A command at a tolerance that the times are far from, its builds counted.
    pub fn revisions(&self, arguments: &[&str]) -> crate::common::Ran {
        let arguments = [arguments, &["--suite", "suite.toml", "--tolerance", "100%"]].concat();
        let mut command = self.command(&arguments);
        crate::common::ran(command.env("BUILDS", self.path("builds")).output().unwrap())
    }

    /// How often something was built.
    pub fn builds_count(&self) -> usize {
        std::fs::read_to_string(self.path("builds")).unwrap_or_default().lines().count()
    }
}
