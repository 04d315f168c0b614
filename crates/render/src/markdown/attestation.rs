//! The evidence of a release in Apex-X's sections, and its tables as blocks of a checklist.

use super::escape;
use crate::table::{Cell, EmptyColumns, Grid, words};
use crate::text::{describe_compared, encode_path, short_commit};
use holdpoint_model::Attestation;
use holdpoint_model::attest::{GateInput, GateStatus};

pub fn attestation(a: &Attestation) -> String {
    let plain = |path: &str| escape::name(path);
    format!(
        "# Release Evidence\n\n## Metadata\n\n{}\n## Artifact Evidence\n\n{}\n## Gate Evidence\n\n{}\n## Summary\n\n{}\nWritten by `holdpoint attest create`; `holdpoint checklist` fills the same into a checklist.\n",
        metadata(a),
        artifacts(a),
        gates(a, &plain, None),
        summary(a)
    )
}

/// A block of a checklist by its name; `missing` is what a release lacks by the policy, `link` turns a path below the artifacts folder into a link's target. The last column is
/// `untick`, for people.
pub fn checklist_block(
    name: &str,
    a: &Attestation,
    missing: &[String],
    link: &dyn Fn(&str) -> String,
    untick: &str,
) -> Option<String> {
    let linked = |path: &str| format!("[{}]({})", escape::text(path), encode_path(&link(path)));
    match name {
        "metadata" => Some(metadata(a)),
        "artifacts" => Some(checklist_artifacts(a, &linked, untick)),
        "gates" => Some(gates(a, &linked, Some(untick))),
        "summary" => Some(summary(a) + &describe_policy(missing)),
        _ => None,
    }
}

fn metadata(a: &Attestation) -> String {
    let m = &a.release_metadata;
    let tree = match m.dirty {
        Some(false) => "clean",
        Some(true) => "**uncommitted changes**",
        None => "not known",
    };
    // An address is shown as one only where it is plainly one.
    let is_address = |url: &&String| {
        url.starts_with("https://") && url.chars().all(|c| c.is_ascii_alphanumeric() || "/:._-~".contains(c))
    };
    let run = match &m.ci_run_url {
        Some(url) if is_address(&url) => format!("<{url}>"),
        Some(url) => escape::text(url),
        None => "–".to_owned(),
    };
    let mut out = format!(
        "- Release tag: {}\n- Commit SHA: {}\n- Tree: {tree}\n- Build date (UTC): {}\n- Release owner: {}\n- Runtime target: {}\n- CI run: {run}\n",
        escape::name(&m.release_tag),
        escape::name(&m.commit_sha),
        escape::prose(&m.build_date_utc),
        escape::prose(&m.release_owner),
        m.runtime_target.as_str(),
    );
    if let Some(name) = &m.ref_name {
        out.push_str(&format!("- Branch or tag built: {}\n", escape::name(name)));
    }
    for file in &a.release_files {
        out.push_str(&format!(
            "- Released file: {} SHA256 {}\n",
            escape::name(&file.path),
            escape::name(&file.sha256)
        ));
    }
    out + &format!("- Inputs SHA256: {}\n", escape::name(&a.inputs_sha256))
}

/// Heads the column of ticks: what is ticked is ticked of one commit.
fn seen(a: &Attestation) -> String {
    format!("Seen at {}", escape::name(&short_commit(&a.release_metadata.commit_sha)))
}

/// Apex-X's table, and below it a line for each artifact.
fn artifacts(a: &Attestation) -> String {
    let titles = ["Artifact", "Path", "Producer", "Required", "Exists", "SHA256", "Status"];
    let yes = |yes: bool| Cell::new(if yes { "Yes" } else { "No" });
    let mut grid = Grid::new(&titles.map(words));
    for artifact in &a.artifacts {
        grid.push([
            Cell::new(&artifact.label),
            Cell::name(&artifact.path),
            Cell::new(&artifact.producer),
            yes(artifact.required),
            yes(artifact.exists),
            Cell::markup(hash(artifact.sha256.as_deref())),
            Cell::markup(status(artifact.status)),
        ]);
    }
    let details = a.artifacts.iter().map(|artifact| {
        let (label, detail) = (escape::prose(&artifact.label), escape::prose(&artifact.detail));
        format!("- {} {label}: {detail}\n", status(artifact.status))
    });
    format!("{}\n{}", grid.markdown(EmptyColumns::Keep), details.collect::<String>())
}

fn hash(sha256: Option<&str>) -> String {
    sha256.map_or_else(|| "-".to_owned(), escape::name)
}

fn checklist_artifacts(a: &Attestation, path: &dyn Fn(&str) -> String, tick: &str) -> String {
    let mut columns = ["Artifact", "Evidence", "SHA256", "Status"].map(words).to_vec();
    columns.push(words("").titled(seen(a)));
    let mut grid = Grid::new(&columns);
    for artifact in &a.artifacts {
        let detail = escape::prose(&artifact.detail);
        let evidence = if artifact.exists { format!("{}: {detail}", path(&artifact.path)) } else { detail };
        grid.push([
            Cell::new(&artifact.label),
            Cell::markup(evidence),
            Cell::markup(hash(artifact.sha256.as_deref())),
            Cell::markup(status(artifact.status)),
            Cell::markup(tick.to_owned()),
        ]);
    }
    grid.markdown(EmptyColumns::Keep)
}

fn gates(a: &Attestation, path: &dyn Fn(&str) -> String, tick: Option<&str>) -> String {
    let mut columns = ["Gate", "Evidence", "SHA256", "Status"].map(words).to_vec();
    columns.extend(tick.map(|_| words("").titled(seen(a))));
    let mut grid = Grid::new(&columns);
    for gate in &a.gates {
        let evidence: Vec<String> = gate.inputs.iter().map(|input| describe_input(input, path)).collect();
        let hashes: Vec<String> = gate.inputs.iter().map(|input| escape::name(&input.sha256)).collect();
        let mut row = vec![
            Cell::new(&gate.label),
            if evidence.is_empty() { Cell::new(&gate.evidence) } else { Cell::markup(evidence.join("<br>")) },
            Cell::markup(if hashes.is_empty() { "-".to_owned() } else { hashes.join("<br>") }),
            Cell::markup(status(gate.status)),
        ];
        row.extend(tick.map(|tick| Cell::markup(tick.to_owned())));
        grid.push(row);
    }
    grid.markdown(EmptyColumns::Keep)
}

/// A verdict file, its result and, for times, the revisions compared.
fn describe_input(input: &GateInput, path: &dyn Fn(&str) -> String) -> String {
    let text = format!("{}: {}", path(&input.path), escape::prose(&input.detail));
    match &input.compared {
        Some(compared) => format!("{text}<br>{}", escape::prose(&describe_compared(compared))),
        None => text,
    }
}

/// Whether the release policy is met, and what is missing.
fn describe_policy(missing: &[String]) -> String {
    if missing.is_empty() {
        return "- Release policy: met\n".to_owned();
    }
    let problems: String =
        missing.iter().map(|problem| format!("  - {}\n", escape::prose(problem))).collect();
    format!("- Release policy: **not met**\n{problems}")
}

fn status(status: GateStatus) -> String {
    match status {
        GateStatus::Fail => "**FAIL**".to_owned(),
        other => other.as_str().to_owned(),
    }
}

fn summary(a: &Attestation) -> String {
    let s = &a.summary;
    format!(
        "- Overall status: **{}**\n- Required artifacts: `{}/{}` passed (`failed={}`)\n- Gates: `{}/{}` passed (`failed={}`, `pending={}`)\n",
        escape::prose(&s.overall_status),
        s.required_artifacts_passed,
        s.required_artifacts_total,
        s.required_artifacts_failed,
        s.gates_passed,
        s.gates_total,
        s.gates_failed,
        s.gates_pending
    )
}
