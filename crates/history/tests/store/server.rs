//! A PostgreSQL server of our own: its files, its socket and its processes end with it.

use holdpoint_history::Location;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

pub struct Server {
    dir: TempDir,
    programs: PathBuf,
    /// The server refuses to run as root; this user is there wherever PostgreSQL was installed as a package.
    user: Option<&'static str>,
    settings: String,
    /// Its TCP port, and the number in its socket's name.
    pub port: u16,
}

/// The number in the name of a socket that no port goes with.
const NO_PORT: u16 = 5432;

impl Server {
    /// With these settings beside its defaults; `None` without PostgreSQL on this machine.
    pub fn start(settings: &str) -> Option<Self> {
        Self::start_at(settings.to_owned(), NO_PORT)
    }

    /// The same, and it can be reached by TCP from this machine.
    #[allow(dead_code)]
    pub fn start_with_port(settings: &str) -> Option<Self> {
        // Free a moment ago; whoever takes it meanwhile makes the start fail, which is seen.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self::start_at(format!("{settings} -c listen_addresses=localhost"), port)
    }

    fn start_at(settings: String, port: u16) -> Option<Self> {
        let programs = find_programs()?;
        let dir = tempfile::Builder::new().prefix("holdpoint-pg").tempdir_in("/tmp").unwrap();
        let is_root = dir.path().metadata().unwrap().uid() == 0;
        let server = Self { dir, programs, user: is_root.then_some("postgres"), settings, port };
        if let Some(user) = server.user {
            run(Command::new("chown").arg(user).arg(server.dir.path()));
        }
        let data = server.dir.path().join("data");
        run(server.program("initdb").args(["-A", "trust", "-U", "holdpoint", "-N", "-D"]).arg(&data));
        server.resume();
        Some(server)
    }

    /// Starts it, or starts it again.
    pub fn resume(&self) {
        // No TCP port that another test could have.
        let options = format!(
            "-c listen_addresses='' -c unix_socket_directories='{}' {}",
            self.dir.path().display(),
            self.settings
        );
        run(self.control("start").arg("-o").arg(options).arg("-l").arg(self.dir.path().join("log")));
    }

    #[allow(dead_code)]
    pub fn stop(&self) {
        run(self.control("stop").args(["-m", "immediate"]));
    }

    pub fn create_database(&self, name: &str) -> Location {
        let socket = self.dir.path().to_str().unwrap();
        run(self.program("createdb").args(["-U", "holdpoint", "-h", socket, name]));
        Location::parse(&format!("postgres://holdpoint@/{name}?host={socket}&port={}", self.port))
    }

    /// How large a database is.
    #[allow(dead_code)]
    pub fn size_bytes(&self, name: &str) -> u64 {
        self.ask(name, &format!("SELECT pg_database_size('{name}')")).parse().unwrap_or(0)
    }

    /// The answer of a database to a question, or to the last of several.
    pub fn ask(&self, database: &str, question: &str) -> String {
        let socket = self.dir.path().to_str().unwrap();
        let mut psql = self.program("psql");
        let done = run(psql.args(["-U", "holdpoint", "-h", socket, "-Atc", question, database]));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Speaks TLS from now on, with this certificate and its key.
    #[allow(dead_code)]
    pub fn offer_tls(&self, certificate: &Path, key: &Path) {
        let data = self.dir.path().join("data");
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let to = data.join(name);
            std::fs::copy(from, &to).unwrap();
            run(Command::new("chmod").arg("600").arg(&to));
            if let Some(user) = self.user {
                run(Command::new("chown").arg(user).arg(&to));
            }
        }
        self.ask("postgres", "ALTER SYSTEM SET ssl = on");
        run(self.control("restart").arg("-l").arg(self.dir.path().join("log")));
    }

    fn control(&self, what: &str) -> Command {
        let mut command = self.program("pg_ctl");
        command.args([what, "-w", "-D"]).arg(self.dir.path().join("data"));
        command
    }

    fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--init-groups"]).arg(path);
                command
            }
            None => Command::new(path),
        };
        command.current_dir(self.dir.path()).env("LC_ALL", "C.UTF-8").env("PGPORT", self.port.to_string());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.control("stop").args(["-m", "immediate"]).output();
    }
}

/// Debian keeps the server's programs apart from the PATH.
fn find_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let packaged = versions.map(|entry| entry.path().join("bin"));
    let named = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = packaged.chain(std::env::split_paths(&named).collect::<Vec<_>>());
    folders.find(|folder| ["initdb", "pg_ctl", "createdb"].iter().all(|name| is_program(&folder.join(name))))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file())
}

fn run(command: &mut Command) -> Output {
    // pg_ctl's server would hold a pipe open for as long as it runs.
    let log = tempfile::NamedTempFile::new().unwrap();
    let file = || log.reopen().unwrap();
    let status = command.stdin(std::process::Stdio::null()).stdout(file()).stderr(file()).status().unwrap();
    let words = std::fs::read_to_string(log.path()).unwrap_or_default();
    assert!(status.success(), "{command:?}: {words}");
    Output { status, stdout: words.into_bytes(), stderr: Vec::new() }
}
