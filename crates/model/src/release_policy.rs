//! Release policies: what an attestation must show before something is released. A file of the user's, in TOML; without one the
//! strictest holds.

use crate::limits::TEXT_CHARS_MAX;
use crate::pattern::matches;
use crate::toml_file::{TomlError, invalid, parse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most entries of a list: more than anybody writes by hand.
const ENTRIES_MAX: usize = 1_000;
/// Characters of a key id: a SHA-256 in hex.
const KEY_ID_CHARS: usize = 64;

/// A release policy. Whatever it does not mention is as strict as without a file: every required artifact is good, every gate has
/// passed or is out of scope, one over times has passed, nothing is declared away, the tree was clean, the commit is the one that is
/// checked out, every base is an ancestor of it, and all of it is signed and sealed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleasePolicy {
    pub schema_version: u32,
    /// Gates that must be PASS, whatever the release runs on.
    #[serde(default)]
    pub gates: Vec<String>,
    /// Artifacts that must be PASS, whatever the release runs on.
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// Artifacts and gates that may be declared away with `--without`.
    #[serde(default)]
    pub without: Vec<String>,
    /// Key ids that a signature may be of; any that the verifier has the public key of, where there are none.
    #[serde(default)]
    pub signed_by: Vec<String>,
    /// Key ids that a seal may be of. A seal names its own key, so none is believed that is not here.
    #[serde(default)]
    pub sealed_by: Vec<String>,
    /// Pattern that the tag must match; `*` stands for any characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Prefix of the CI run's address; it ends with `/`, so that nothing can be appended to a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_run: Option<String>,
    /// Most days between the attestation and today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_days_max: Option<u32>,
    /// Released files, below the release folder; `*` stands for any characters of a file's name. Each must match one or more files,
    /// and all that it matches must be attested.
    #[serde(default)]
    pub files: Vec<String>,
    /// Exceptions from the policy.
    #[serde(default)]
    pub allow: Vec<Allowance>,
}

/// Something that a policy lets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Allowance {
    /// No signature.
    Unsigned,
    /// Evidence that is not sealed.
    Unsealed,
    /// Gates that are not decided.
    Pending,
    /// Another commit than the one that is checked out.
    AnyCommit,
    /// A base that is not an ancestor of the release.
    AnyBase,
}

impl ReleasePolicy {
    /// Reads a policy file.
    pub fn parse(text: &str) -> Result<Self, TomlError> {
        let policy: Self = parse(text)?;
        if policy.schema_version != crate::SCHEMA_VERSION {
            let (found, known) = (policy.schema_version, crate::SCHEMA_VERSION);
            return invalid(
                "schema_version",
                format!("{found} is not known here; this holdpoint reads {known}"),
            );
        }
        policy.check_lists()?;
        let is_address = |url: &String| url.starts_with("https://") && url.ends_with('/');
        if policy.ci_run.as_ref().is_some_and(|url| !is_address(url)) {
            return invalid("ci_run", "an address is wanted that begins with https:// and ends with /");
        }
        if policy.tag.as_ref().is_some_and(|tag| tag.trim().is_empty()) {
            return invalid("tag", "it is empty; leave it out, or give a pattern such as \"v*\"");
        }
        Ok(policy)
    }

    fn check_lists(&self) -> Result<(), TomlError> {
        let lists = [
            ("gates", &self.gates),
            ("artifacts", &self.artifacts),
            ("without", &self.without),
            ("signed_by", &self.signed_by),
            ("sealed_by", &self.sealed_by),
            ("files", &self.files),
        ];
        for (name, list) in lists {
            if list.len() > ENTRIES_MAX || list.iter().any(|entry| entry.chars().count() > TEXT_CHARS_MAX) {
                return invalid(
                    name,
                    format!("at most {ENTRIES_MAX} entries of {TEXT_CHARS_MAX} characters"),
                );
            }
        }
        for (name, ids) in [("signed_by", &self.signed_by), ("sealed_by", &self.sealed_by)] {
            let is_id = |id: &&String| {
                id.len() == KEY_ID_CHARS && id.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
            };
            if let Some(odd) = ids.iter().find(|id| !is_id(id)) {
                return invalid(
                    name,
                    format!("{odd:?} is no key id; \"holdpoint attest keygen\" prints it: 64 digits"),
                );
            }
        }
        match self.files.iter().find(|pattern| !is_file_pattern(pattern)) {
            Some(odd) => invalid(
                "files",
                format!("{odd:?}: give a path below the release folder, with * in the file's name only"),
            ),
            None => Ok(()),
        }
    }

    /// Whether it lets this pass.
    pub fn allows(&self, what: Allowance) -> bool {
        self.allow.contains(&what)
    }

    /// Whether the tag is one of a release.
    pub fn takes_tag(&self, tag: &str) -> bool {
        self.tag.as_ref().is_none_or(|pattern| matches(pattern, tag))
    }
}

/// Splits a path into its folder, which may be empty, and the file's name.
pub fn split_pattern(pattern: &str) -> (&str, &str) {
    pattern.rsplit_once('/').unwrap_or(("", pattern))
}

/// Whether a pattern of released files takes this path.
pub fn takes_file(pattern: &str, path: &str) -> bool {
    let ((folder, name), (of_folder, of_name)) = (split_pattern(pattern), split_pattern(path));
    folder == of_folder && matches(name, of_name)
}

fn is_file_pattern(pattern: &str) -> bool {
    let (folder, name) = split_pattern(pattern);
    let is_plain = |part: &str| !part.is_empty() && !part.contains('*') && part != "." && part != "..";
    !name.is_empty()
        && name != "."
        && name != ".."
        && (folder.is_empty() && !pattern.starts_with('/') || folder.split('/').all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        ReleasePolicy::parse(&format!("schema_version = 1\n{text}")).unwrap_err().to_string()
    }

    #[test]
    fn a_policy_that_makes_no_sense_is_refused_with_its_place() {
        assert!(
            ReleasePolicy::parse("schema_version = 2").unwrap_err().to_string().contains("2 is not known")
        );
        assert!(problem("gate = []").contains("unknown field"));
        assert!(problem("signed_by = [\"abc\"]").contains("no key id"));
        assert!(problem("sealed_by = [\"\"]").starts_with("sealed_by"));
        assert!(problem("tag = \" \"").contains("it is empty"));
        assert!(problem("allow = [\"everything\"]").contains("unknown variant"));
        for url in ["http://x/", "https://github.com/me/project", ""] {
            assert!(problem(&format!("ci_run = {url:?}")).contains("ends with /"), "{url}");
        }
        for file in ["", "/etc/*", "../*", "a/*/b", "dist/", "a//b", "dist/.."] {
            assert!(problem(&format!("files = [{file:?}]")).contains("below the release folder"), "{file}");
        }
    }

    #[test]
    fn tags_and_files_are_known_by_their_patterns() {
        let policy =
            ReleasePolicy::parse("schema_version = 1\ntag = \"v*\"\nfiles = [\"dist/*.whl\", \"a.bin\"]")
                .unwrap();
        assert!(policy.takes_tag("v1.2") && !policy.takes_tag("nightly"));
        assert!(ReleasePolicy::default().takes_tag("anything"));
        assert!(takes_file("dist/*.whl", "dist/x-1.whl") && takes_file("a.bin", "a.bin"));
        assert!(!takes_file("dist/*.whl", "x.whl") && !takes_file("dist/*.whl", "dist/sub/x.whl"));
    }
}
