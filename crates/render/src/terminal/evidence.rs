//! Replays and attestations.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{clip, describe_compared, entry, heading, plural, revision};
use crate::units;
use holdpoint_model::attest::GateStatus;
use holdpoint_model::replay::{ReplayCompared, artifact_name};
use holdpoint_model::{Attestation, ReplayManifest, ReplayVerification};

const HASH_CHARS: usize = 16;
const OUTPUTS: &[Column] = &[
    names("answer"),
    words("worker"),
    words("dtype"),
    numbers("values"),
    words("twice the same"),
    words("SHA-256"),
];

pub fn replay_manifest(m: &ReplayManifest, path: &str, style: Style) -> String {
    let mut grid = Grid::new(OUTPUTS);
    let mut notes = String::new();
    for (name, workload) in &m.workloads {
        for output in &workload.outputs {
            let artifact = artifact_name(name, &output.name);
            let sha256 = m.artifact_sha256.get(&artifact).map_or("–", String::as_str);
            grid.push([
                Cell::new(&artifact),
                Cell::new(&workload.worker),
                Cell::new(&output.dtype),
                Cell::new(&units::count(output.shape.iter().product::<usize>() as u64)),
                match workload.deterministic {
                    true => Cell::new("yes"),
                    false => Cell::inked(Ink::Doubt, "no"),
                },
                Cell::new(&clip(sha256, HASH_CHARS)),
            ]);
        }
        if let Some(reason) = &workload.skipped {
            notes += &entry(style, Ink::Doubt, "skipped", &format!("{name}: {reason}"));
        }
    }
    let title = heading(
        style,
        m.suite.as_deref().unwrap_or("replay"),
        &[Some(format!("seed {}", m.seed)), m.revision.as_ref().map(revision)],
    );
    let end = match m.artifact_hashes.len() {
        0 => last_line(style, Ink::Doubt, "skipped", "no answer could be kept"),
        count => {
            let kept = format!("{} in {path}; manifest {}", plural(count, "answer"), m.manifest_sha256);
            last_line(style, Ink::Good, "recorded", &kept)
        }
    };
    paragraphs(&[title, grid.render(style), notes, end])
}

pub fn replay_verification(v: &ReplayVerification, style: Style) -> String {
    let mut notes = String::new();
    for (at, difference) in v.differences.iter().enumerate() {
        notes += &entry(style, Ink::Bad, if at == 0 { "differs first" } else { "differs" }, difference);
    }
    for (name, reason) in &v.skipped {
        notes += &entry(style, Ink::Doubt, "not replayed", &format!("{name}: {reason}"));
    }
    let by_tolerance = v.outputs_count.saturating_sub(v.exact_count);
    let how = match v.compared {
        ReplayCompared::Exact => "bit by bit".to_owned(),
        ReplayCompared::Tolerance if v.exact_count > 0 => {
            format!("{} bit by bit, {by_tolerance} by the tolerance of the element type", v.exact_count)
        }
        ReplayCompared::Tolerance => "by the tolerance of the element type".to_owned(),
        ReplayCompared::Nothing => "by their hashes alone".to_owned(),
    };
    let compared = format!(
        "{} with {} compared {how}",
        plural(v.outputs_count, "answer"),
        plural(v.values_count, "value")
    );
    let end = match (v.differences.len(), v.same) {
        (0, true) => last_line(style, Ink::Good, "same", &compared),
        (0, false) => last_line(style, Ink::Doubt, "not decided", &compared),
        (count, _) if v.compared == ReplayCompared::Nothing => {
            let what = format!("{} with the record itself; nothing was computed", plural(count, "problem"));
            last_line(style, Ink::Bad, "differs", &what)
        }
        (count, _) => {
            last_line(style, Ink::Bad, "differs", &format!("{}; {compared}", plural(count, "difference")))
        }
    };
    paragraphs(&[notes, end])
}

const ARTIFACTS: &[Column] = &[
    words("status"),
    words("artifact"),
    words("required").drop(1),
    names("path"),
    words("SHA-256").drop(2),
    names("read as"),
];
const GATES: &[Column] = &[words("status"), words("gate"), names("read from")];

fn ink(status: GateStatus) -> Ink {
    match status {
        GateStatus::Pass => Ink::Good,
        GateStatus::Fail => Ink::Bad,
        GateStatus::Pending => Ink::Doubt,
        GateStatus::NotApplicable => Ink::Dim,
    }
}

/// Base and head of every verdict over times, by the key of its gate.
fn compared(a: &Attestation) -> Vec<(&str, String)> {
    let inputs = a.gates.iter().flat_map(|gate| gate.inputs.iter().map(|input| (gate.key.as_str(), input)));
    inputs.filter_map(|(key, input)| Some((key, describe_compared(input.compared.as_ref()?)))).collect()
}

pub fn attestation(a: &Attestation, style: Style) -> String {
    let m = &a.release_metadata;
    let tree = match m.dirty {
        Some(false) => "clean tree",
        Some(true) => "uncommitted changes",
        None => "tree not known",
    };
    let facts = [
        Some(clip(&m.commit_sha, 12)),
        Some(tree.to_owned()),
        Some(m.runtime_target.as_str().to_owned()),
        Some(format!("by {}", m.release_owner)),
        Some(m.build_date_utc.clone()),
        m.ci_run_url.clone(),
    ];
    let mut artifacts = Grid::new(ARTIFACTS);
    for artifact in &a.artifacts {
        artifacts.push([
            Cell::inked(ink(artifact.status), artifact.status.as_str()),
            Cell::new(&artifact.key),
            Cell::new(if artifact.required { "yes" } else { "no" }),
            Cell::new(&artifact.path),
            Cell::new(
                &artifact.sha256.as_deref().map_or_else(|| "–".to_owned(), |hash| clip(hash, HASH_CHARS)),
            ),
            Cell::new(&artifact.detail),
        ]);
    }
    let mut gates = Grid::new(GATES);
    for gate in &a.gates {
        gates.push([
            Cell::inked(ink(gate.status), gate.status.as_str()),
            Cell::new(&gate.key),
            Cell::new(&gate.evidence),
        ]);
    }
    let compared = compared(a);
    let compared: String = compared
        .iter()
        .map(|(key, text)| entry(style, Ink::Dim, "compared", &format!("{key}: {text}")))
        .collect();
    let released = a.release_files.iter();
    let released: String = released
        .map(|file| entry(style, Ink::Dim, "released", &format!("{} {}", file.path, file.sha256)))
        .collect();
    let s = &a.summary;
    let counts = format!(
        "{} of {} required artifacts, {} of {} gates, {} failed, {} pending",
        s.required_artifacts_passed,
        s.required_artifacts_total,
        s.gates_passed,
        s.gates_total,
        s.gates_failed,
        s.gates_pending
    );
    let ink = match s.overall_status.as_str() {
        "pass" => Ink::Good,
        "pending" => Ink::Doubt,
        _ => Ink::Bad,
    };
    paragraphs(&[
        heading(style, &m.release_tag, &facts),
        artifacts.render(style),
        gates.render(style),
        compared + &released,
        last_line(style, ink, &s.overall_status, &counts),
    ])
}

/// Whether an attestation holds, and its problems.
pub fn verified(problems: &[String], holds: &str, style: Style) -> String {
    let notes: String = problems.iter().map(|problem| entry(style, Ink::Bad, "problem", problem)).collect();
    let end = match problems.len() {
        0 => last_line(style, Ink::Good, "verified", holds),
        count => last_line(style, Ink::Bad, "not verified", &plural(count, "problem")),
    };
    paragraphs(&[notes, end])
}
