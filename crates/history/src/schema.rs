//! The tables, once for both databases. A version is a step here: a new store takes them all, an older one those it lacks.

/// The version that this holdpoint writes.
pub const VERSION: u32 = STEPS.len() as u32;

/// Step n takes a store from version n to n + 1. A step that was released is never changed.
const STEPS: [&str; 3] = [
    // Series are interned and points narrow, so that ten million of them are a few hundred megabytes. Points lie in order of series and
    // time: one series is one range. Documents lie apart from runs, which are looked up for every point.
    "CREATE TABLE machines (fingerprint TEXT PRIMARY KEY, words TEXT NOT NULL);
     CREATE TABLE versions (id {id}, text TEXT NOT NULL UNIQUE);
     CREATE TABLE runs (id {id}, hash {bytes} NOT NULL UNIQUE, kind TEXT NOT NULL, suite TEXT NOT NULL,
         at BIGINT NOT NULL, revision TEXT, dirty BOOLEAN NOT NULL, versions BIGINT NOT NULL);
     CREATE INDEX runs_by_time ON runs (suite, at);
     CREATE TABLE documents (run BIGINT PRIMARY KEY, body {bytes} NOT NULL, has_samples BOOLEAN NOT NULL);
     CREATE TABLE series (id {id}, name TEXT NOT NULL UNIQUE, key_json TEXT NOT NULL, better TEXT NOT NULL);
     CREATE TABLE points (series BIGINT NOT NULL, at BIGINT NOT NULL, run BIGINT NOT NULL, value {float} NOT NULL,
         low {float}, high {float}, samples BIGINT NOT NULL, PRIMARY KEY (series, at, run)){clustered};",
    // Verdicts are joined to points by suite, metric, time and machine: a comparison does not say which file it judged.
    "CREATE TABLE verdicts (suite TEXT NOT NULL, metric TEXT NOT NULL, at BIGINT NOT NULL, machine TEXT NOT NULL,
         run BIGINT NOT NULL, verdict TEXT NOT NULL, PRIMARY KEY (suite, metric, at, machine, run)){clustered};
     CREATE TABLE accepted (series BIGINT NOT NULL, at BIGINT NOT NULL, run {bytes} NOT NULL, person TEXT NOT NULL,
         why TEXT NOT NULL, accepted_at BIGINT NOT NULL, PRIMARY KEY (series, at, run));",
    // Runs are listed by time, and joined to verdicts by suite, time and machine. The machine of an older run is that of its series; keys
    // are read once, not for every point.
    "ALTER TABLE runs ADD COLUMN branch TEXT;
     ALTER TABLE runs ADD COLUMN machine TEXT NOT NULL DEFAULT '';
     WITH keyed AS MATERIALIZED (SELECT id, {key} ->> 'machine' AS machine FROM series)
         UPDATE runs SET machine = found.machine
         FROM (SELECT run, max(keyed.machine) AS machine FROM points JOIN keyed ON keyed.id = series GROUP BY run) AS found
         WHERE found.run = runs.id AND found.machine IS NOT NULL;
     CREATE INDEX runs_newest ON runs (at, hash);
     CREATE INDEX verdicts_by_run ON verdicts (suite, at, machine, verdict);",
];

/// The words that the databases spell differently.
pub(crate) struct Dialect {
    pub id: &'static str,
    pub bytes: &'static str,
    pub float: &'static str,
    pub clustered: &'static str,
    /// A series' key as JSON.
    pub key: &'static str,
}

impl Dialect {
    /// The statements that take a store from one version to the next ones, up to `to`.
    pub fn steps(&self, from: u32, to: u32) -> String {
        let steps = STEPS.iter().take(to as usize).skip(from as usize);
        steps.map(|step| self.spell(step)).collect()
    }

    /// Statements as this database spells them.
    pub(crate) fn spell(&self, statements: &str) -> String {
        let words = [
            ("{id}", self.id),
            ("{bytes}", self.bytes),
            ("{float}", self.float),
            ("{clustered}", self.clustered),
            ("{key}", self.key),
        ];
        words.iter().fold(statements.to_owned(), |text, (word, spelt)| text.replace(word, spelt))
    }
}
