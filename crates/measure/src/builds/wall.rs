//! Hides all other builds of the cache from a build, so that it cannot write into the other side's: a namespace of mounts and processes of
//! its own, in which the cache holds the build's own folder alone. What it writes into the repository's git folder, such as a filter that
//! later checkouts would run, is thrown away with the namespace. Where the system has no such namespaces, the build runs without, and what
//! it writes elsewhere is found by the inventories.

use rustix::process::{getgid, getuid};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

/// Enters the namespaces. All of them end with the build.
const ENTER: [&str; 6] = ["/usr/bin/unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// An empty folder is laid over the cache, and the build's own folder, if it is in the cache, put into it again. It is reached
/// by the current directory, since its path leads into the empty one by then. Over git's folder lies a layer that takes what is written
/// there, or, where layers are not possible, nothing can be written. The layer is kept below a second empty folder.
const HIDE: &str = r#"
set -e
cache=$1 own=$2 git=$3 dir=$4 leave=$5
shift 5
[ -z "$own" ] || cd "$own"
mount -t tmpfs holdpoint "$cache"
if [ -n "$git" ]; then
  (
    cd "$cache"
    mkdir lower upper work
    mount --rbind "$git" lower
    mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work holdpoint "$git" || {
      mount --rbind "$git" "$git"
      mount -o remount,bind,ro "$git"
    }
  )
  mount -t tmpfs holdpoint "$cache"
fi
if [ -n "$own" ]; then
  mkdir "$own"
  mount --no-canonicalize --rbind . "$own"
fi
cd "$dir"
unset PWD OLDPWD
exec $leave "$@"
"#;
/// Root keeps what builds need, such as giving files to others, but not what undoes mounts or goes around them.
const LEAVE_AS_ROOT: &str = "setpriv --inh-caps=-all --ambient-caps=-all \
     --bounding-set=-sys_admin,-sys_module,-sys_rawio,-dac_read_search,-mknod,-sys_boot";

/// What a build may see of the cache.
pub(super) struct Wall<'a> {
    pub(super) cache: &'a Path,
    /// The build's own folder in it; absent for one outside, such as the work tree.
    pub(super) own: Option<&'a Path>,
    /// Git's folder of the repository; absent where a build may write to it, such as one in the work tree, whose submodules it may update.
    pub(super) git: Option<&'a Path>,
}

impl Wall<'_> {
    /// The words before a build command that runs in a folder behind the wall; absent where this system cannot do it.
    pub(super) fn words(&self, dir: &Path) -> Option<Vec<OsString>> {
        let (uid, gid) = (getuid(), getgid());
        let mut words = ENTER.map(OsString::from).to_vec();
        let mut leave = LEAVE_AS_ROOT.to_owned();
        if !uid.is_root() {
            words.extend(["--user".into(), "--map-root-user".into()]);
            leave = format!("unshare --user --map-user={} --map-group={}", uid.as_raw(), gid.as_raw());
        }
        words.extend(["--", "/bin/sh", "-c", HIDE, "wall"].map(OsString::from));
        let or_empty = |path: Option<&Path>| path.map(|path| path.as_os_str().to_owned()).unwrap_or_default();
        let places =
            [or_empty(Some(self.cache)), or_empty(self.own), or_empty(self.git), or_empty(Some(dir))];
        words.extend(places);
        words.push(leave.into());
        let mut trial = holdpoint_process::measured(&words[0]);
        trial.args(&words[1..]).arg("true");
        let done = trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        done.is_ok_and(|status| status.success()).then_some(words)
    }
}
