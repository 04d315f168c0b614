//! Links to commits on a forge.

use crate::text::short_commit;

/// Where a repository's commits can be looked at; nowhere unless told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Everything before the commit's hash.
    prefix: Option<String>,
}

/// Hosts whose addresses of commits are known, and the path before the hash.
const FORGES: [(&str, &str); 4] = [
    ("github.com", "/commit/"),
    ("gitlab.com", "/-/commit/"),
    ("codeberg.org", "/commit/"),
    ("bitbucket.org", "/commits/"),
];

impl Links {
    /// By the address of a repository on any forge, `https://host/owner/name`. Absent if it is no plain one.
    pub fn new(url: &str) -> Option<Self> {
        let address = url.trim().trim_end_matches('/').trim_end_matches(".git");
        let rest = address.strip_prefix("https://")?;
        let (host, path) = rest.split_once('/')?;
        let is_plain = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-~/:".contains(c))
        };
        if !is_plain(host) || !is_plain(path) {
            return None;
        }
        let known = FORGES.iter().find(|(forge, _)| *forge == host).map(|(_, path)| *path);
        let is_gitlab = host.split('.').any(|part| part == "gitlab");
        let commit = known.unwrap_or(if is_gitlab { "/-/commit/" } else { "/commit/" });
        Some(Self { prefix: Some(format!("https://{host}/{path}{commit}")) })
    }

    /// By a remote of a repository, as git writes it; only for forges that are known.
    pub fn of_remote(remote: &str) -> Option<Self> {
        let remote = remote.trim();
        let rest = remote
            .strip_prefix("https://")
            .or_else(|| remote.strip_prefix("ssh://git@"))
            .map(str::to_owned)
            .or_else(|| remote.strip_prefix("git@").map(|rest| rest.replacen(':', "/", 1)))?;
        // A user and a password before the host stay out of every page.
        let rest = rest.rsplit_once('@').map_or(rest.as_str(), |(_, rest)| rest);
        let host = rest.split('/').next()?;
        FORGES.iter().find(|(forge, _)| *forge == host)?;
        Self::new(&format!("https://{rest}"))
    }

    /// The address of a commit, if it is one.
    pub fn commit(&self, commit: &str) -> Option<String> {
        let is_hash = [40, 64].contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let prefix = self.prefix.as_ref().filter(|_| is_hash)?;
        Some(format!("{prefix}{commit}"))
    }

    /// The text, already escaped and without attributes, with these commits as links where it names them, short or in full.
    pub(crate) fn in_text(&self, html: &str, commits: &[&str]) -> String {
        let commits: Vec<(String, &str, String)> = commits
            .iter()
            .filter_map(|commit| Some((short_commit(commit), *commit, self.commit(commit)?)))
            .collect();
        let mut out = String::with_capacity(html.len());
        let mut rest = html;
        // A part of a path or of a longer number is no name of a commit.
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        let mut before = None;
        'text: while let Some(c) = rest.chars().next() {
            for (short, full, url) in commits.iter().filter(|_| !is_part(before)) {
                let length = if rest.starts_with(full) { full.len() } else { short.len() };
                let after = rest.get(length..).and_then(|rest| rest.chars().next());
                let is_whole = !after.is_some_and(|c| c.is_ascii_alphanumeric());
                if is_whole && rest.starts_with(short.as_str()) {
                    out.push_str(&format!("<a href=\"{url}\">{}</a>", &rest[..length]));
                    (rest, before) = (&rest[length..], Some('0'));
                    continue 'text;
                }
            }
            out.push(c);
            (rest, before) = (&rest[c.len_utf8()..], Some(c));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn remotes_of_known_forges_lead_to_commits() {
        for (remote, url) in [
            ("https://github.com/o/n.git", "https://github.com/o/n/commit/"),
            ("git@github.com:o/n.git\n", "https://github.com/o/n/commit/"),
            ("ssh://git@gitlab.com/g/s/n", "https://gitlab.com/g/s/n/-/commit/"),
            ("https://user:secret@codeberg.org/o/n", "https://codeberg.org/o/n/commit/"),
        ] {
            assert_eq!(Links::of_remote(remote).unwrap().commit(COMMIT), Some(format!("{url}{COMMIT}")));
        }
        for other in ["/srv/git/n", "https://example.org/o/n", "file:///n", "", "https://github.com/"] {
            assert_eq!(Links::of_remote(other), None, "{other}");
        }
    }

    #[test]
    fn an_address_that_is_given_is_plain_and_safe() {
        assert!(Links::new("https://git.example.org/o/n/").is_some());
        let gitlab = Links::new("https://gitlab.example.org/o/n").unwrap();
        assert_eq!(
            gitlab.commit(COMMIT).unwrap(),
            format!("https://gitlab.example.org/o/n/-/commit/{COMMIT}")
        );
        for bad in
            ["http://a/b", "javascript:alert(1)", "https://a/b\"><script>", "https://a b/c", "https://a"]
        {
            assert_eq!(Links::new(bad), None, "{bad}");
        }
        assert_eq!(gitlab.commit("HEAD"), None);
        assert_eq!(Links::default().commit(COMMIT), None);
    }

    #[test]
    fn commits_in_a_text_become_links_once() {
        let links = Links::new("https://github.com/o/n").unwrap();
        let text = links.in_text("a 0123456789ab → b", &[COMMIT, "dirty"]);
        assert_eq!(
            text,
            format!("a <a href=\"https://github.com/o/n/commit/{COMMIT}\">0123456789ab</a> → b")
        );
        for other in ["/x/0123456789ab.log", "0123456789abc", "f0123456789ab"] {
            assert_eq!(links.in_text(other, &[COMMIT]), other);
        }
        assert_eq!(Links::default().in_text("0123456789ab", &[COMMIT]), "0123456789ab");
    }
}
