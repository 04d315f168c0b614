//! SARIF 2.1.0: a result for whatever is not a pass.

use super::{WHOLE, name, sentence, whole};
use crate::judged::{CheckRow, Judged};
use crate::text::{clean, encode_path};
use holdpoint_model::Verdict;
use serde_json::{Value, json};

/// The rules, which are the verdicts; where each stands is its `ruleIndex`.
const RULES: [(Verdict, &str, &str); 5] = [
    (Verdict::Regressed, "error", "Slower than allowed, or a required metric is missing"),
    (Verdict::Broken, "error", "A wrong answer or a crash while measuring"),
    (Verdict::Inconclusive, "warning", "Measured, yet the evidence does not suffice"),
    (Verdict::Skipped, "note", "Could not be measured here"),
    (Verdict::Waived, "note", "Slower than allowed, and somebody answers for it for a while"),
];

/// The log. `location` is a file of the repository, such as the suite: code hosts show results that have one.
pub fn sarif(judged: Judged<'_>, location: Option<&str>) -> Value {
    let rules = RULES.map(|(verdict, level, what)| {
        json!({
            "id": rule_id(verdict),
            "name": verdict.as_str(),
            "shortDescription": {"text": what},
            "defaultConfiguration": {"level": level},
        })
    });
    let rows = judged.rows();
    let whole = whole(judged).map(|(verdict, sentence)| (verdict, WHOLE, sentence, None));
    let results = rows.iter().map(|row| (row.verdict, row.name(), sentence(row), Some(row))).chain(whole);
    let results: Vec<Value> = results
        .filter_map(|(verdict, of, sentence, row)| {
            let mut result = result(judged, location, verdict, of, &sentence)?;
            row.into_iter().for_each(|row| add_row(&mut result, row));
            Some(result)
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "holdpoint",
                "informationUri": "https://github.com/holdpoint/holdpoint",
                "rules": rules,
            }},
            "automationDetails": {"id": format!("holdpoint/{}/", name(&judged.judgement.suite))},
            "results": results,
            "properties": {
                "verdict": judged.judgement.verdict.as_str(),
                "summary": clean(&judged.sentence()),
            },
        }],
    })
}

fn rule_id(verdict: Verdict) -> String {
    format!("holdpoint/{}", verdict.as_str())
}

fn result(
    judged: Judged<'_>,
    location: Option<&str>,
    verdict: Verdict,
    of: &str,
    sentence: &str,
) -> Option<Value> {
    let index = RULES.iter().position(|(rule, ..)| *rule == verdict)?;
    let (suite, metric) = (name(&judged.judgement.suite), name(of));
    let mut place = json!({
        "logicalLocations": [{
            "name": metric,
            "fullyQualifiedName": format!("{suite}/{metric}"),
            "kind": judged.noun(),
        }],
    });
    if let Some(file) = location {
        place["physicalLocation"] =
            json!({"artifactLocation": {"uri": encode_path(file)}, "region": {"startLine": 1}});
    }
    Some(json!({
        "ruleId": rule_id(verdict),
        "ruleIndex": index,
        "level": RULES[index].1,
        "message": {"text": plain(&format!("{metric}: {sentence}"))},
        "locations": [place],
        // GitHub distinguishes results of one rule and line by the first alone.
        "partialFingerprints": {
            "primaryLocationLineHash": format!("{:016x}:1", hash(&format!("{suite}/{metric}"))),
            "holdpoint/v1": format!("{suite}/{metric}"),
        },
    }))
}

/// The numbers of a row, and its waiver.
fn add_row(result: &mut Value, row: &CheckRow<'_>) {
    result["properties"] = json!({"change": row.change, "allowed": row.allowed, "interval": row.interval});
    if let Some(waiver) = row.check.waiver.as_ref().filter(|_| row.verdict == Verdict::Waived) {
        result["suppressions"] = json!([{
            "kind": "external",
            "status": "accepted",
            "justification": clean(&format!("{}, until {}: {}", waiver.owner, waiver.expires, waiver.reason)),
        }]);
    }
}

/// FNV-1a: the same everywhere and always.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// Text of a message, in which braces would be placeholders and a bracket before a parenthesis a link.
fn plain(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}").replace("](", "] (")
}
