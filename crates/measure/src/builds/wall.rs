//! Hides all other builds of the cache from a build, so that it cannot write into the other side's: a namespace of mounts and processes of
//! its own, in which the cache holds the build's own folder alone. Where the system has no such namespaces, the build runs without, and
//! what it writes elsewhere is found by the inventories.

use rustix::process::{getgid, getuid};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

/// Enters the namespaces. All of them end with the build.
const ENTER: [&str; 6] = ["/usr/bin/unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// An empty folder is laid over the cache, and the build's own folder, if it is in the cache, put into it again. It is reached
/// by the current directory, since its path leads into the empty one by then.
const HIDE: &str = r#"
set -e
cache=$1 own=$2 dir=$3 leave=$4
shift 4
[ -z "$own" ] || cd "$own"
mount -t tmpfs holdpoint "$cache"
if [ -n "$own" ]; then
  mkdir "$own"
  mount --no-canonicalize --rbind . "$own"
fi
cd "$dir"
unset PWD OLDPWD
exec $leave "$@"
"#;

/// What a build may see of the cache.
pub(super) struct Wall<'a> {
    pub(super) cache: &'a Path,
    /// The build's own folder in it; absent for one outside, such as the work tree.
    pub(super) own: Option<&'a Path>,
}

impl Wall<'_> {
    /// The words before a build command that runs in a folder behind the wall; absent where this system cannot do it.
    pub(super) fn words(&self, dir: &Path) -> Option<Vec<OsString>> {
        let (uid, gid) = (getuid(), getgid());
        let mut words = ENTER.map(OsString::from).to_vec();
        let mut leave = String::new();
        if !uid.is_root() {
            words.extend(["--user".into(), "--map-root-user".into()]);
            leave = format!("unshare --user --map-user={} --map-group={}", uid.as_raw(), gid.as_raw());
        }
        words.extend(["--", "/bin/sh", "-c", HIDE, "wall"].map(OsString::from));
        let own = self.own.map(|own| own.as_os_str().to_owned()).unwrap_or_default();
        words.extend([self.cache.as_os_str().to_owned(), own, dir.as_os_str().to_owned(), leave.into()]);
        let mut trial = holdpoint_process::measured(&words[0]);
        trial.args(&words[1..]).arg("true");
        let done = trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        done.is_ok_and(|status| status.success()).then_some(words)
    }
}
