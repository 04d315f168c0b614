//! Whether two checkouts are the same build.
//!
//! A program may read any file of its checkout, so all files must be the same, whether git tracks them or the build wrote
//! them. Left out are documents and what compilers leave for their next run, unless a command names them or a folder above
//! them, and whatever the suite declares as no input. Build ids and the folder of the checkout itself do not count.

use crate::machine::hex;
use holdpoint_model::ab::SameBuild;
use holdpoint_model::pattern::{matches, takes_path};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names of documents.
const DOCUMENTS: &[&str] = &["*.md", "LICENSE*", ".git*"];
/// Names of files that git and compilers leave for their next run.
const LEFTOVERS: &[&str] =
    &[".git", "*.o", "*.lo", "*.a", "*.d", "*.rlib", "*.rmeta", "*.pyc", ".ninja_log", ".ninja_deps"];
/// Folders, at any depth, of such files.
const LEFTOVER_FOLDERS: &[&str] = &[".git", "CMakeFiles", "__pycache__"];
/// Folders of cargo, in a folder `target` or below it.
const LEFTOVERS_IN_TARGET: &[&str] = &[".fingerprint", "incremental", "deps", "build", "examples"];
/// Files of cargo, in a folder `target` or below it.
const LEFTOVER_NAMES_IN_TARGET: &[&str] = &[".rustc_info.json", "CACHEDIR.TAG", ".cargo-lock"];
/// Larger checkouts are measured: reading them would take longer.
const BYTES_MAX: u64 = 2 << 30;
/// Ignored files that are named.
const NAMED_MAX: usize = 20;

/// Files that the suite names or ignores.
#[derive(Debug, Default)]
pub struct Inputs<'a> {
    /// Patterns of paths within the checkout that no workload reads.
    pub ignored: &'a [String],
    /// Files and folders that commands name, relative to the checkout.
    pub named: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A program may read it.
    Input,
    /// No program reads it.
    Document,
    /// Of interest to compilers only.
    Leftover,
}

impl Inputs<'_> {
    fn kind(&self, path: &Path) -> Kind {
        let is_named = || self.named.iter().any(|named| path.starts_with(named));
        match path.file_name().and_then(|name| name.to_str()) {
            _ if self.ignored.iter().any(|glob| takes_path(glob, path)) => Kind::Document,
            _ if is_named() => Kind::Input,
            _ if is_leftover(path) => Kind::Leftover,
            Some(name) if DOCUMENTS.iter().any(|pattern| matches(pattern, name)) => Kind::Document,
            _ => Kind::Input,
        }
    }
}

fn is_leftover(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let Some((name, folders)) = parts.split_last() else { return false };
    let in_target = folders.iter().position(|folder| *folder == "target").map(|at| &folders[at..]);
    LEFTOVERS.iter().any(|pattern| matches(pattern, name))
        || folders.iter().any(|folder| LEFTOVER_FOLDERS.contains(folder))
        || in_target.is_some_and(|below| {
            LEFTOVER_NAMES_IN_TARGET.contains(name) || below.iter().any(|f| LEFTOVERS_IN_TARGET.contains(f))
        })
}

/// The proof that two checkouts are the same build; absent where they are not, or cannot be read.
pub(super) fn same_build(base: &Path, head: &Path, inputs: &Inputs) -> Option<SameBuild> {
    if base.as_os_str().len() != head.as_os_str().len() {
        return None;
    }
    let (base_files, head_files) = (list(base).ok()?, list(head).ok()?);
    let mut ignored = Vec::new();
    let mut compared = Vec::new();
    for path in base_files.keys().chain(head_files.keys().filter(|path| !base_files.contains_key(*path))) {
        let sides = (base_files.get(path), head_files.get(path));
        match inputs.kind(path) {
            Kind::Input => compared.push((path, sides.0?, sides.1?)),
            Kind::Document if fs::read(base.join(path)).ok() != fs::read(head.join(path)).ok() => {
                ignored.push(path.to_string_lossy().into_owned());
            }
            Kind::Document | Kind::Leftover => {}
        }
    }
    let bytes: u64 = compared.iter().map(|(_, base, _)| base.len()).sum();
    if bytes > BYTES_MAX || !compared.iter().all(|(_, base, head)| is_alike(base, head)) {
        return None;
    }
    let mut hashes = [Sha256::new(), Sha256::new()];
    for (path, ..) in &compared {
        let contents = [(base, &base_files), (head, &head_files)]
            .map(|(root, files)| content(root, path, &files[*path]));
        let [base, head] = contents.map(Result::ok);
        let (base, head) = (base?, head?);
        if base != head {
            return None;
        }
        for (hash, content) in hashes.iter_mut().zip([base, head]) {
            hash.update(path.as_os_str().as_encoded_bytes());
            hash.update((content.len() as u64).to_le_bytes());
            hash.update(content);
        }
    }
    let [base_sha256, head_sha256] = hashes.map(|hash| hex(&hash.finalize()));
    ignored.truncate(NAMED_MAX);
    Some(SameBuild { base_sha256, head_sha256, files_count: compared.len() as u64, ignored })
}

/// Whether two files can be the same, without reading them.
fn is_alike(base: &Metadata, head: &Metadata) -> bool {
    let of = |file: &Metadata| (file.file_type(), file.len(), file.permissions().mode() & 0o111);
    of(base) == of(head)
}

/// The entries below a folder, by their path in it.
#[derive(Default)]
pub(super) struct Tree {
    /// Files and links.
    pub(super) files: BTreeMap<PathBuf, Metadata>,
    /// The folder itself, under an empty path, and those below it.
    pub(super) folders: BTreeMap<PathBuf, Metadata>,
}

/// All files and links below a folder.
fn list(root: &Path) -> io::Result<BTreeMap<PathBuf, Metadata>> {
    Ok(walk(root, &[])?.files)
}

/// All below a folder but what has one of these names.
pub(super) fn walk(root: &Path, left_out: &[&str]) -> io::Result<Tree> {
    let mut tree = Tree::default();
    let mut folders = vec![(PathBuf::new(), fs::metadata(root)?)];
    while let Some((folder, metadata)) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            if left_out.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let (path, found) = (folder.join(entry.file_name()), entry.metadata()?);
            if found.is_dir() {
                folders.push((path, found));
            } else {
                tree.files.insert(path, found);
            }
        }
        tree.folders.insert(folder, metadata);
    }
    Ok(tree)
}

/// The content of a file or the target of a link, without what differs between checkouts of the same build.
fn content(root: &Path, path: &Path, found: &Metadata) -> io::Result<Vec<u8>> {
    let path = root.join(path);
    let mut bytes = if found.is_symlink() {
        fs::read_link(path)?.into_os_string().into_encoded_bytes()
    } else if found.is_file() {
        fs::read(path)?
    } else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    if bytes.starts_with(b"\x7fELF") {
        blank_build_id(&mut bytes);
    }
    blank(&mut bytes, root.as_os_str().as_encoded_bytes());
    Ok(bytes)
}

/// Overwrites every occurrence of some text.
fn blank(bytes: &mut [u8], text: &[u8]) {
    let (Some(first), len) = (text.first(), text.len()) else { return };
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| byte == first)) {
        at += found;
        if bytes[at..].starts_with(text) {
            bytes[at..at + len].fill(0);
            at += len;
        } else {
            at += 1;
        }
    }
}

/// A note of GNU's of type 3, after the length of its description: what linkers write a build id into.
fn blank_build_id(bytes: &mut [u8]) {
    const NAME_AND_TYPE: &[u8] = b"\x03\0\0\0GNU\0";
    /// The longest: a SHA-512.
    const LEN_MAX: usize = 64;
    let starts = bytes.windows(NAME_AND_TYPE.len()).enumerate().skip(8);
    let starts: Vec<usize> =
        starts.filter(|(_, window)| *window == NAME_AND_TYPE).map(|(at, _)| at).collect();
    for at in starts {
        let (name_len, len) = (&bytes[at - 8..at - 4], &bytes[at - 4..at]);
        let (is_gnu, len) =
            (name_len == [4, 0, 0, 0], u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize);
        let id = at + NAME_AND_TYPE.len()..at + NAME_AND_TYPE.len() + len;
        if is_gnu
            && len <= LEN_MAX
            && let Some(id) = bytes.get_mut(id)
        {
            id.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Checkouts(tempfile::TempDir);

    impl Checkouts {
        /// Two checkouts with the same program and data, each of which has its own folder in it.
        fn new() -> Self {
            let checkouts = Self(tempfile::tempdir().unwrap());
            for (side, id) in [("base", b"\x01\x02\x03\x04"), ("head", b"\x05\x06\x07\x08")] {
                let root = checkouts.root(side);
                let mut program = b"\x7fELF code\x04\0\0\0\x04\0\0\0\x03\0\0\0GNU\0".to_vec();
                program.extend_from_slice(id);
                program.extend_from_slice(root.as_os_str().as_encoded_bytes());
                checkouts.write(side, "prog", &program);
                checkouts.write(side, "data/in.txt", b"input");
                checkouts.write(side, "README.md", side.as_bytes());
                checkouts.write(side, "target/release/deps/x", side.as_bytes());
            }
            checkouts
        }

        fn root(&self, side: &str) -> PathBuf {
            self.0.path().join(side)
        }

        fn write(&self, side: &str, name: &str, content: &[u8]) {
            let path = self.root(side).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        fn same(&self, inputs: &Inputs) -> Option<SameBuild> {
            same_build(&self.root("base"), &self.root("head"), inputs)
        }
    }

    #[test]
    fn builds_that_differ_in_build_ids_paths_and_documents_are_the_same() {
        let checkouts = Checkouts::new();
        let same = checkouts.same(&Inputs::default()).unwrap();
        assert_eq!(same.base_sha256, same.head_sha256);
        assert_eq!((same.files_count, same.ignored), (2, vec!["README.md".to_owned()]));
    }

    #[test]
    fn whatever_a_program_can_read_must_be_the_same() {
        for (name, content) in [
            ("data/in.txt", &b"inpuT"[..]),
            ("data/more.txt", b""),
            ("prog", b"\x7fELF other"),
            ("src.c", b"int x;"),
        ] {
            let checkouts = Checkouts::new();
            checkouts.write("head", name, content);
            assert_eq!(checkouts.same(&Inputs::default()), None, "{name}");
        }
        let checkouts = Checkouts::new();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(checkouts.root("head").join("data/in.txt"), mode).unwrap();
        assert_eq!(checkouts.same(&Inputs::default()), None, "it can be run now");
    }

    #[test]
    fn a_suite_may_declare_no_inputs_and_a_command_may_name_one() {
        let checkouts = Checkouts::new();
        checkouts.write("head", "src/a.c", b"int x;");
        let ignored = ["src/**".to_owned()];
        assert!(checkouts.same(&Inputs { ignored: &ignored, named: Vec::new() }).is_some());
        checkouts.write("head", "README.md", b"HEAD");
        let named = vec![PathBuf::from("README.md")];
        assert_eq!(checkouts.same(&Inputs { ignored: &ignored, named }), None);
        let named = vec![PathBuf::new()];
        assert_eq!(checkouts.same(&Inputs { ignored: &ignored, named }), None, "all of the checkout");
    }
}
