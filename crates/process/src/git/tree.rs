//! Whether the work tree is the commit that is checked out, by the content of its files.
//!
//! Every tracked file is hashed anew, in a git folder of our own with nothing but the commit in it: what the repository's
//! index claims about files (times, sizes, "assume unchanged"), its filters and its attributes could all hide a change.

use super::{GitError, Repository, action, output, paths, question, zero_separated};
use holdpoint_store::Scratch;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that Git LFS keeps elsewhere is stored as a pointer, smaller than this (its specification).
const POINTER_BYTES_MAX: usize = 1024;
const POINTER_START: &str = "version https://git-lfs.github.com/spec/v1\n";
/// Mode of a submodule in a tree.
const SUBMODULE: &str = "160000";

/// The commit that is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub commit: String,
    pub tree: String,
    /// Tracked files that differ from it, in the work tree or in the index; files in submodules too.
    pub changes: Vec<String>,
}

impl Repository {
    /// The head of the work tree; absent where there is none, or no commit yet.
    pub fn head(&self) -> Result<Option<Head>, GitError> {
        let Some(root) = self.root() else { return Ok(None) };
        let at_root = Self { dir: root.to_owned(), ..self.clone() };
        let Some(tree) = WorkTree::open(at_root, root)? else { return Ok(None) };
        let changes = tree.changes()?;
        Ok(Some(Head { commit: tree.commit, tree: tree.tree, changes }))
    }
}

/// A work tree, and the git folder of our own through which it is looked at.
struct WorkTree {
    repository: Repository,
    root: PathBuf,
    commit: String,
    tree: String,
    /// Folder of the repository's objects.
    objects: PathBuf,
    own: Scratch,
}

impl WorkTree {
    fn open(repository: Repository, root: &Path) -> Result<Option<Self>, GitError> {
        let asked = [
            "rev-parse",
            "--path-format=absolute",
            "--show-object-format",
            "--git-common-dir",
            "HEAD^{commit}",
            "HEAD^{tree}",
        ];
        let output = repository.ask(&asked)?;
        let answer = output.stdout.split(|byte| *byte == b'\n').collect::<Vec<_>>();
        let [format, common, commit, tree, b""] = answer.as_slice() else { return Ok(None) };
        if !output.status.success() {
            return Ok(None);
        }
        let [format, commit, tree] =
            [format, commit, tree].map(|text| String::from_utf8_lossy(text).into_owned());
        let objects = Path::new(OsStr::from_bytes(common)).join("objects");
        let mode = repository.ask(&["config", "--type=bool", "core.fileMode"])?;
        let own = own_folder(&commit, &format, mode.stdout != b"false\n")?;
        Ok(Some(Self { repository, root: root.to_owned(), commit, tree, objects, own }))
    }

    fn changes(&self) -> Result<Vec<String>, GitError> {
        self.answer(&["read-tree", &self.commit])?;
        let status = [
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=no",
            "--no-renames",
            "--ignore-submodules=all",
        ];
        let mut changed = Vec::new();
        for entry in zero_separated(&self.answer(&status)?) {
            // Two letters and a space stand before each path.
            let (letters, path) = entry.split_at_checked(3).unwrap_or((entry, b""));
            let is_same =
                if letters.contains(&b'D') { self.is_left_out(path)? } else { self.is_large_file(path)? };
            if !is_same {
                changed.push(String::from_utf8_lossy(path).into_owned());
            }
        }
        changed.extend(self.staged()?);
        changed.extend(self.changed_submodules()?);
        changed.sort();
        changed.dedup();
        Ok(changed)
    }

    /// Files that were added to the index and not committed.
    fn staged(&self) -> Result<Vec<String>, GitError> {
        let asked = [
            "diff-index",
            "--cached",
            "--name-only",
            "-z",
            "--no-ext-diff",
            "--no-renames",
            &self.commit,
            "--",
        ];
        Ok(paths(&self.repository.answer(&asked)?))
    }

    /// Whether a file that is not there was left out on purpose, by a sparse checkout.
    fn is_left_out(&self, path: &[u8]) -> Result<bool, GitError> {
        let name = OsStr::from_bytes(path);
        let mut git = self.repository.question();
        git.args(["--literal-pathspecs", "ls-files", "-t", "-z", "--full-name", "--"]).arg(name);
        let output = self.repository.checked("ls-files", output(&mut git)?)?;
        Ok(self.root.join(name).symlink_metadata().is_err() && output.stdout == [b"S ", path, b"\0"].concat())
    }

    /// Whether a file is the one that Git LFS keeps under the pointer in the commit.
    fn is_large_file(&self, path: &[u8]) -> Result<bool, GitError> {
        let object = OsStr::from_bytes(&[self.commit.as_bytes(), b":", path].concat()).to_owned();
        let blob = output(self.git().args(["cat-file", "blob"]).arg(object))?;
        let Some((sha256, size_bytes)) = pointer(&blob.stdout) else { return Ok(false) };
        let file = self.root.join(OsStr::from_bytes(path));
        let is_file = file.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() == size_bytes);
        let hashed = || hash_file(&file).map_err(|source| GitError::File { path: file.clone(), source });
        Ok(is_file && hashed()? == sha256)
    }

    /// Submodules that are at another commit or have changes; their files are looked at in the same way.
    fn changed_submodules(&self) -> Result<Vec<String>, GitError> {
        let mut changed = Vec::new();
        for entry in zero_separated(&self.answer(&["ls-files", "--stage", "-z"])?) {
            let entry = String::from_utf8_lossy(entry);
            let Some((Some((SUBMODULE, rest)), path)) =
                entry.split_once('\t').map(|(facts, path)| (facts.split_once(' '), path))
            else {
                continue;
            };
            let (commit, dir) = (rest.split(' ').next().unwrap_or_default(), self.root.join(path));
            match submodule_head(&dir)? {
                _ if is_unused(&dir) => {}
                Some(head) if head.commit == commit => {
                    changed.extend(head.changes.iter().map(|change| format!("{path}/{change}")));
                }
                _ => changed.push(path.to_owned()),
            }
        }
        Ok(changed)
    }

    fn git(&self) -> Command {
        let mut git = question(&self.root);
        git.env("GIT_DIR", self.own.path()).env("GIT_WORK_TREE", &self.root);
        // Attributes are those of the commit, not of files that nobody committed; older versions of git do not know this.
        git.env("GIT_OBJECT_DIRECTORY", &self.objects).env("GIT_ATTR_SOURCE", &self.commit);
        git
    }

    fn answer(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        Ok(self.repository.checked(action(arguments), output(self.git().args(arguments))?)?.stdout)
    }
}

/// A git folder with the commit checked out and no settings but how hashes are made and whether modes count.
fn own_folder(commit: &str, format: &str, has_modes: bool) -> Result<Scratch, GitError> {
    let own = Scratch::new()?;
    let failed = |source| GitError::File { path: own.path().to_owned(), source };
    let config = format!(
        "[core]\nrepositoryformatversion = 1\nbare = false\nfileMode = {has_modes}\n[extensions]\nobjectFormat = {format}\n"
    );
    fs::write(own.path().join("HEAD"), format!("{commit}\n")).map_err(failed)?;
    fs::write(own.path().join("config"), config).map_err(failed)?;
    fs::create_dir(own.path().join("refs")).map_err(failed)?;
    Ok(own)
}

/// The head of a submodule. A link, or a folder without a repository of its own, would lead to another one.
fn submodule_head(dir: &Path) -> Result<Option<Head>, GitError> {
    let is_own = dir.join(".git").exists() && fs::canonicalize(dir).is_ok_and(|real| real == dir);
    if is_own { Repository::around(dir).head() } else { Ok(None) }
}

/// Whether the folder of a submodule is not there or empty: it was never checked out.
fn is_unused(dir: &Path) -> bool {
    match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn pointer(blob: &[u8]) -> Option<(String, u64)> {
    let text = std::str::from_utf8(blob).ok().filter(|_| blob.len() < POINTER_BYTES_MAX)?;
    let value = |key: &str| text.strip_prefix(POINTER_START)?.lines().find_map(|line| line.strip_prefix(key));
    Some((value("oid sha256:")?.to_owned(), value("size ")?.parse().ok()?))
}

fn hash_file(path: &Path) -> io::Result<String> {
    let (mut file, mut hasher, mut chunk) = (fs::File::open(path)?, Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            read => hasher.update(&chunk[..read]),
        }
    }
}
